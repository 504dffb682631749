/* Locks of both installers: all from registries, or the first that is not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "deps/audit.h"

static const char *const registries[] = {"https://registry.example/", "http://127.0.0.1:4873/npm/",
                                         NULL};

#define BUN(packages) "{\n \"lockfileVersion\": 1,\n \"packages\": {\n" packages "\n },\n}\n"
#define NPM(packages) "{\"packages\": {\"\": {\"dependencies\": {\"a\": \"1\"}}, " packages "}}"

struct expectation {
    const char *text;
    const char *words; /* of the refusal; NULL: it passes */
};

static const struct expectation bun[] = {
    {BUN(""), NULL},
    {BUN("\"a\": [\"a@1.2.3\", \"\", {}, \"sha512-x\"],"), NULL},
    {BUN("\"a\": [\"a@1.2.3\", \"\", { \"dependencies\": { \"b\": \"^1, ]\", }, }, \"x\"],"), NULL},
    {BUN("\"a\": [\"@s/a@1.2.3-rc.1\", \"https://registry.example/a/-/a.tgz\", {}, \"\"],"), NULL},
    {BUN("\"a\": [\"a@1.2.3\", \"http://127.0.0.1:4873/npm/a.tgz\", {}, \"\"],"), NULL},
    {BUN("\"a\": [\"a@1.2.3\", \"http://127.0.0.1:4874/npm/a.tgz\", {}, \"\"],"), "4874"},
    {BUN("\"a\": [\"a@1.2.3\", \"https://registry.example.evil/a.tgz\", {}, \"\"],"), "evil"},
    {BUN("\"a\": [\"a@git+ssh://host/a.git#1\", {}, \"x\"],"), "package a"},
    {BUN("\"a\": [\"a@github:o/a#1\", {}, \"x\"],"), "github:o/a"},
    {BUN("\"a\": [\"a@file:../x\", {}],"), "file:../x"},
    {BUN("\"a\": [\"a@https://registry.example/a.tgz\", {}],"), "package a"},
    {BUN("\"a\": [\"a@workspace:x\"],"), "workspace:x"},
    {BUN("\"a\": [\"a@1.2.3\", {}, \"x\"],"), "package a"},
    {BUN("\"a\": [],"), "package a"},
    {BUN("\"a\": {},"), "package a"},
    {BUN("\"a\": [\"a@1.0.0\", \"\", { \"dependencies\": { \"b\": \"o/b\" } }, \"\"],"), "wants b"},
    {BUN("\"a\": [\"a@1.0.0\", \"\", { \"optionalDependencies\": { \"b\": \"file:b\" } }, \"\"],"),
     "wants b"},
    {BUN("\"a\": [\"a@1.0.0\", \"\", { \"peerDependencies\": { \"b\": \"file:b\" } }, \"\"],"),
     NULL},
    {"{}", "no packages"},
    {"[]", "no packages"},
    {"", "bun.lock"},
    {"{\"packages\": {", "bun.lock"},
};

static const struct expectation npm[] = {
    {NPM("\"node_modules/a\": {\"version\": \"1.0.0\", \"resolved\": "
         "\"https://registry.example/a.tgz\"}"),
     NULL},
    {NPM("\"node_modules/a/node_modules/b\": {\"version\": \"1.0.0\", \"inBundle\": true}"), NULL},
    {NPM("\"node_modules/a\": {\"version\": \"1.0.0\"}"), NULL},
    {NPM("\"node_modules/a\": {\"version\": \"file:x\"}"), "package a"},
    {NPM("\"node_modules/a\": {}"), "package a"},
    {NPM("\"node_modules/a\": {\"resolved\": \"git+ssh://git@host/a.git#1\"}"), "git+ssh"},
    {NPM("\"node_modules/a\": {\"resolved\": \"file:../x\"}"), "file:../x"},
    {NPM("\"node_modules/a\": {\"resolved\": \"https://registry.example/a.tgz\", \"link\": true}"),
     "package a"},
    {NPM("\"x\": {\"resolved\": \"https://registry.example/a.tgz\"}"), "package x"},
    {NPM("\"node_modules/a\": {\"resolved\": \"https://elsewhere.example/a.tgz\"}"), "elsewhere"},
    {NPM("\"node_modules/@s/a/node_modules/@t/b\": {\"resolved\": \"x\"}"), "package @t/b"},
    {NPM("\"node_modules/a\": {\"resolved\": \"https://registry.example/a.tgz\", \"dependencies\": "
         "{\"b\": \"git://host/b\"}}"),
     "wants b"},
    {NPM("\"node_modules/a\": {\"resolved\": \"https://registry.example/a.tgz\", "
         "\"optionalDependencies\": {\"b\": 1}}"),
     "wants b"},
    {"{\"lockfileVersion\": 1, \"dependencies\": {}}", "no packages"},
    {"nonsense", "package-lock.json"},
};

static void check(const struct expectation *rows, size_t n,
                  int (*audit)(const char *, const char *const *, struct err *))
{
    for (size_t i = 0; i < n; i++) {
        struct err e = {0};
        int        r = audit(rows[i].text, registries, &e);
        if (rows[i].words ? r == 0 || !strstr(e.msg, rows[i].words) : r < 0)
            fail_msg("%s\n%s", rows[i].text, r < 0 ? e.msg : "passed");
    }
}

static void judges_bun(void **state)
{
    (void)state;
    check(bun, sizeof bun / sizeof bun[0], audit_bun_lock);
}

static void judges_npm(void **state)
{
    (void)state;
    check(npm, sizeof npm / sizeof npm[0], audit_npm_lock);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(judges_bun), cmocka_unit_test(judges_npm)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
