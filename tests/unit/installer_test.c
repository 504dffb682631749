/* What installers say, as their real versions printed it: one sentence, of one kind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "deps/installer.h"

static const struct {
    const char   *installer, *output;
    enum err_kind kind;
    const char   *sentence;
    bool          other; /* whether npm is tried then */
} rows[] = {
    {"bun",
     "bun install v1.4.4\nResolving dependencies\nerror: GET https://r.example/nope - 404\nerror: "
     "nope@1 failed to resolve\n",
     ERR_NOT_FOUND, "the registry has no such package (bun: GET https://r.example/nope - 404)",
     false},
    {"bun",
     "error: No version matching \"^99\" found for specifier \"lodash\" (but package exists)\n",
     ERR_NOT_FOUND,
     "bun: No version matching \"^99\" found for specifier \"lodash\" (but package exists)", false},
    {"bun", "error: Package \"lodash\" with tag \"x\" not found, but package exists\n",
     ERR_NOT_FOUND, "bun: Package \"lodash\" with tag \"x\" not found, but package exists", false},
    {"bun", "error: ConnectionRefused downloading package manifest lodash\n", ERR_UNAVAILABLE,
     "bun: ConnectionRefused downloading package manifest lodash", false},
    {"bun", "error: DNSResolveFailed downloading tarball lodash@4\n", ERR_UNAVAILABLE,
     "bun: DNSResolveFailed downloading tarball lodash@4", true},
    {"bun", "error: Integrity check failed for tarball: x\n", ERR_INVALID,
     "bun: Integrity check failed for tarball: x", true},
    {"bun", "error: a failed to resolve\nerror: GET http://u:secret@r.example/a - 404\n",
     ERR_NOT_FOUND, "the registry has no such package (bun: GET http://r.example/a - 404)", false},
    {"bun", "error: something new\n", ERR_INTERNAL, "bun: something new", true},
    {"bun", "panic!\n", ERR_INTERNAL, "bun gave no reason", true},
    {"npm",
     "npm error code ETARGET\nnpm error notarget No matching version found for lodash@^99.\nnpm "
     "error notarget In most cases\n",
     ERR_NOT_FOUND, "npm: No matching version found for lodash@^99.", false},
    {"npm", "npm error code E404\nnpm error 404 Not Found - GET https://r.example/nope\n",
     ERR_NOT_FOUND,
     "the registry has no such package (npm: 404 Not Found - GET https://r.example/nope)", false},
    {"npm",
     "npm error code ECONNRESET\nnpm error syscall read\nnpm error network request to "
     "http://127.0.0.1:9/lodash failed, reason: read ECONNRESET\n",
     ERR_UNAVAILABLE, "npm: request to http://127.0.0.1:9/lodash failed, reason: read ECONNRESET",
     false},
    {"npm",
     "npm error code EINTEGRITY\nnpm error sha512-x integrity checksum failed when using sha512\n",
     ERR_INVALID, "npm: sha512-x integrity checksum failed when using sha512", false},
};

static void says_why(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct installer *installer = installer_find(rows[i].installer, NULL);
        struct err              e = {0};
        assert_int_equal(installer_reason(installer, rows[i].output, &e), -1);
        assert_string_equal(e.msg, rows[i].sentence);
        assert_int_equal(e.kind, rows[i].kind);
        assert_int_equal(installer_other(installer, &e) != NULL, rows[i].other);
    }
}

static void knows_two(void **state)
{
    struct err e = {0};

    (void)state;
    assert_null(installer_find("yarn", &e));
    assert_int_equal(e.kind, ERR_INVALID);
    assert_string_equal(installer_find("bun", NULL)->lock, "bun.lock");
    assert_string_equal(installer_find("npm", NULL)->lock, "package-lock.json");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(says_why), cmocka_unit_test(knows_two)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
