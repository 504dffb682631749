/* Whether a node_modules wants to run something, and why that failed. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "base/tree.h"
#include "deps/scripts.h"

struct place {
    char path[64];
    int  fd;
};

static int make(void **state)
{
    struct place *p = calloc(1, sizeof *p);

    strcpy(p->path, "/tmp/jerboa-scripts-XXXXXX");
    assert_non_null(mkdtemp(p->path));
    p->fd = open(p->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    *state = p;
    return 0;
}

static int drop(void **state)
{
    struct place *p = *state;

    tree_remove(p->fd);
    close(p->fd);
    rmdir(p->path);
    free(p);
    return 0;
}

static void put(struct place *p, const char *path, const char *text)
{
    char part[256];

    for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
        snprintf(part, sizeof part, "%.*s", (int)(slash - path), path);
        mkdirat(p->fd, part, 0755);
    }
    assert_int_equal(file_write_text(p->fd, path, text, NULL), 0);
}

static void none_wants(void **state)
{
    struct place *p = *state;

    put(p, "a/package.json", "{\"scripts\": {\"test\": \"x\", \"prepare\": \"x\"}}");
    put(p, "@s/b/package.json", "\xef\xbb\xbf{\"name\": 1, \"name\": 2}");
    put(p, "a/node_modules/c/package.json", "{}");
    put(p, "d/index.js", "");
    put(p, ".bin/install", "");
    put(p, "a/lib/binding.gyp", "{}");
    assert_int_equal(symlinkat("/etc", p->fd, "etc"), 0);
    assert_int_equal(scripts_look(p->fd, NULL), 0);
}

static void each_is_found(void **state)
{
    static const struct {
        const char *path, *text;
    } rows[] = {
        {"a/package.json", "{\"scripts\": {\"preinstall\": \"x\"}}"},
        {"a/package.json", "{\"scripts\": {\"install\": \"x\"}}"},
        {"@s/b/package.json", "{\"scripts\": {\"postinstall\": \"x\"}}"},
        {"a/binding.gyp", "{}"},
        {"a/node_modules/@s/c/binding.gyp", "{}"},
        {"a/package.json", "not JSON"},
    };
    struct place *p = *state;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        tree_remove(p->fd);
        put(p, "z/package.json", "{}");
        put(p, rows[i].path, rows[i].text);
        if (scripts_look(p->fd, NULL) != 1)
            fail_msg("%s %s was not seen", rows[i].path, rows[i].text);
    }
}

/* A link is not followed, a pipe is not waited for: npm shall look at it, in its sandbox. */
static void odd_files_count_as_yes(void **state)
{
    struct place *p = *state;

    put(p, "target", "{}");
    mkdirat(p->fd, "a", 0755);
    assert_int_equal(symlinkat("../target", p->fd, "a/package.json"), 0);
    assert_int_equal(scripts_look(p->fd, NULL), 1);
    unlinkat(p->fd, "a/package.json", 0);
    assert_int_equal(mkfifoat(p->fd, "a/package.json", 0644), 0);
    assert_int_equal(scripts_look(p->fd, NULL), 1);
}

static void depth_is_bounded(void **state)
{
    struct place *p = *state;
    char          path[2000] = "a";
    struct err    e = {0};

    mkdirat(p->fd, path, 0755);
    for (int i = 0; i < 80; i++) {
        strcat(path, "/node_modules");
        mkdirat(p->fd, path, 0755);
        strcat(path, "/a");
        mkdirat(p->fd, path, 0755);
    }
    assert_int_equal(scripts_look(p->fd, &e), -1);
    assert_int_equal(e.kind, ERR_LIMIT);
}

static void failures_have_a_reason(void **state)
{
    static const struct {
        const char   *output, *sentence;
        enum err_kind kind;
    } rows[] = {
        {"npm error gyp ERR! find Python\nnpm error x", "this machine lacks python3",
         ERR_UNAVAILABLE},
        {"sh: 1: make: not found\n", "this machine lacks make", ERR_UNAVAILABLE},
        {"x.cc:1:10: fatal error: node_api.h: No such file", "lacks the headers of Node",
         ERR_UNAVAILABLE},
        {"npm error path /workspace/node_modules/@s/a\nnpm error Error: too small\r\nnpm error b",
         "the install script of @s/a failed: too small", ERR_INTERNAL},
        {"", "the install script of a package failed: it gave no reason", ERR_INTERNAL},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct err e = {0};
        assert_int_equal(scripts_reason(rows[i].output, &e), -1);
        assert_int_equal(e.kind, rows[i].kind);
        if (!strstr(e.msg, rows[i].sentence))
            fail_msg("'%s' of '%s'", e.msg, rows[i].output);
    }
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make, drop)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(none_wants), TEST(each_is_found),
                                       TEST(odd_files_count_as_yes), TEST(depth_is_bounded),
                                       cmocka_unit_test(failures_have_a_reason)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
