#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "fetch/manifest.h"
#include "store/host.h"
#include "store/runtime.h"
#include "store/store.h"

static char home[64];

static void test_store_path(void **state)
{
    char       path[STORE_PATH_MAX];
    struct err e = {0};

    (void)state;
    assert_int_equal(setenv("HOME", "/h", 1), 0);
    assert_int_equal(setenv("XDG_CACHE_HOME", "/x", 1), 0);
    unsetenv("JERBOA_HOME");
    assert_int_equal(store_path("runtimes", path, NULL), 0);
    assert_string_equal(path, "/x/jerboa/runtimes");
    setenv("XDG_CACHE_HOME", "", 1);
    assert_int_equal(store_path("runtimes", path, NULL), 0);
    assert_string_equal(path, "/h/.cache/jerboa/runtimes");
    setenv("JERBOA_HOME", "/j", 1);
    assert_int_equal(store_path("runtimes", path, NULL), 0);
    assert_string_equal(path, "/j/runtimes");
    setenv("JERBOA_HOME", "relative", 1);
    assert_int_equal(store_path("runtimes", path, &e), -1);
    assert_int_equal(e.kind, ERR_INVALID);
}

/* One file and its seal. */
static void make_runtime(int parent_fd, const char *name)
{
    static const char *const front[] = {"node", NULL};
    autofd int               dir = -1;

    assert_int_equal(mkdirat(parent_fd, name, 0755), 0);
    dir = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(file_write_text(dir, "node", "x", NULL), 0);
    assert_int_equal(fchmodat(dir, "node", 0755, 0), 0);
    assert_int_equal(manifest_seal(dir, front, NULL), 0);
}

static void test_damaged_is_not_found(void **state)
{
    static const char name[] = "node-24.9.0-" RUNTIME_ARCH;
    autofd int        dir = store_ensure("runtimes", NULL);
    struct runtime    runtime;
    struct err        e = {0};
    char              path[128];

    (void)state;
    make_runtime(dir, name);
    assert_int_equal(runtime_find("24", &runtime, NULL), 0);
    snprintf(path, sizeof path, "%s/node", name);
    assert_int_equal(fchmodat(dir, path, 0644, 0), 0);
    assert_int_equal(runtime_find("24", &runtime, &e), -1);
    assert_string_equal(e.msg, "node-24.9.0-" RUNTIME_ARCH
                               " in the store is damaged (node cannot be executed by all)");
    assert_int_equal(file_write_text(dir, path, "xx", NULL), 0);
    assert_int_equal(runtime_find("24", &runtime, &e), -1);
    assert_int_equal(e.kind, ERR_NOT_FOUND);
    assert_string_equal(e.msg,
                        "node-24.9.0-" RUNTIME_ARCH " in the store is damaged (node has changed)");
    assert_int_equal(runtime_newest("24", &runtime, NULL), 0);
    assert_int_equal(unlinkat(dir, path, 0), 0);
    assert_int_equal(runtime_find("24", &runtime, &e), -1);
    assert_string_equal(e.msg,
                        "node-24.9.0-" RUNTIME_ARCH " in the store is damaged (node is missing)");
}

static void test_find(void **state)
{
    static const char *const names[] = {
        "node-24.9.0-" RUNTIME_ARCH,
        "node-24.10.0-" RUNTIME_ARCH,
        "node-22.1.0-" RUNTIME_ARCH,
        "node-27.0.0-rc.1-" RUNTIME_ARCH,
        "node-24.99.0-other",
        ".node-24.98.0-" RUNTIME_ARCH ".part",
        "node-24.97.0-" RUNTIME_ARCH "~",
        "node--" RUNTIME_ARCH,
    };
    static const struct {
        const char *image, *version;
    } rows[] = {
        {"node:lts-slim", "24.10.0"},
        {"24.9", "24.9.0"},
        {"22", "22.1.0"},
        {"current", "24.10.0"},
        {"20", NULL},
        {"24.99", NULL},
        {"27", NULL},
    };
    autofd int dir = store_ensure("runtimes", NULL);
    char       expected[256];

    (void)state;
    assert_true(dir >= 0);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        make_runtime(dir, names[i]);
    assert_int_equal(file_write_text(dir, "node-24.96.0-" RUNTIME_ARCH, "a file", NULL), 0);
    assert_int_equal(symlinkat("nowhere", dir, "node-24.95.0-" RUNTIME_ARCH), 0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct runtime runtime;
        struct err     e = {0};
        int            found = runtime_find(rows[i].image, &runtime, &e);
        assert_int_equal(found, rows[i].version ? 0 : -1);
        if (found < 0) {
            assert_int_equal(e.kind, ERR_NOT_FOUND);
            continue;
        }
        assert_string_equal(runtime.version, rows[i].version);
        snprintf(expected, sizeof expected, "%s/runtimes/node-%s-" RUNTIME_ARCH, home,
                 rows[i].version);
        assert_string_equal(runtime.dir, expected);
        assert_false(runtime.is_host);
    }
}

/* What read a registry's bytes says which one it is, not where. */
static void test_answer_names_no_place(void **state)
{
    static const char *const lines[] = {
        "/etc/node-24.9.0-" RUNTIME_ARCH,
        "/../../node-24.9.0-" RUNTIME_ARCH,
    };
    struct runtime runtime;
    struct err     e = {0};
    char           expected[256];

    (void)state;
    snprintf(expected, sizeof expected, "%s/runtimes/node-24.9.0-" RUNTIME_ARCH, home);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        assert_int_equal(runtime_take_answer("24", 0, lines[i], &runtime, &e), 0);
        assert_string_equal(runtime.dir, expected);
    }
    assert_int_equal(runtime_take_answer("24", 0, "/etc", &runtime, &e), -1);
    assert_int_equal(e.kind, ERR_INTERNAL);
}

static void test_find_in_no_store(void **state)
{
    struct runtime runtime;
    struct err     e = {0};

    (void)state;
    assert_int_equal(runtime_find("lts", &runtime, &e), -1);
    assert_int_equal(e.kind, ERR_NOT_FOUND);
    assert_int_equal(runtime_find("banana", &runtime, &e), -1);
    assert_int_equal(e.kind, ERR_INVALID);
}

/* `text` becomes HOME/FOLDER/node, alone on PATH. */
static void install_node(const char *folder, const char *text)
{
    autofd int dir = -1;
    char       path[128];

    snprintf(path, sizeof path, "%s/%s", home, folder);
    assert_int_equal(mkdir(path, 0755), 0);
    setenv("PATH", path, 1);
    dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(file_write_text(dir, "node", text, NULL), 0);
    assert_int_equal(fchmodat(dir, "node", 0755, 0), 0);
}

static void test_host(void **state)
{
    struct runtime runtime = {0};

    (void)state;
    install_node("bin", "#!/bin/sh\necho v20.1.2\n");
    assert_int_equal(host_find(&runtime, NULL), 0);
    assert_string_equal(runtime.dir, home);
    assert_string_equal(runtime.version, "20.1.2");
}

static void test_no_host(void **state)
{
    static const struct {
        const char *folder, *text;
    } rows[] = {
        {"shims", "#!/bin/sh\necho v20.1.2\n"},
        {"a", "#!/bin/sh\necho v20.1.2; exit 1\n"},
        {"b", "#!/bin/sh\necho 20\n"},
        {"c", "#!/bin/sh\n"},
    };
    struct runtime runtime;
    struct err     e = {0};

    (void)state;
    setenv("PATH", home, 1);
    assert_int_equal(host_find(&runtime, &e), -1);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        install_node(rows[i].folder, rows[i].text);
        assert_int_equal(host_find(&runtime, &e), -1);
        assert_int_equal(e.kind, ERR_NOT_FOUND);
    }
}

static int set_up(void **state)
{
    (void)state;
    strcpy(home, "/tmp/jerboa-runtime-XXXXXX");
    return mkdtemp(home) ? setenv("JERBOA_HOME", home, 1) : -1;
}

static int tear_down(void **state)
{
    char command[80];

    (void)state;
    setenv("PATH", "/usr/bin:/bin", 1);
    snprintf(command, sizeof command, "rm -rf %s", home);
    return system(command);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_store_path), TEST(test_damaged_is_not_found), TEST(test_answer_names_no_place),
        TEST(test_find),       TEST(test_find_in_no_store),     TEST(test_host),
        TEST(test_no_host),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
