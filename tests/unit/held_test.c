/* Who can have a Node that was booted ahead: a run that is just what it was booted for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/layout.h"
#include "sandbox/held.h"

static const char *boot_env[] = {"PATH=/bin", "HOME=/root", NULL};
static const char *argv_same[] = {NULL, "/workspace/index.js", NULL};

static const struct held_boot boot = {boot_env, "/workspace/index.js"};

static struct run_spec fitting(void)
{
    static const char *env[] = {"PATH=/bin", "HOME=/root", NULL};

    argv_same[0] = layout_node;
    return (struct run_spec){.argv = argv_same, .env = env, .cwd = layout_workspace};
}

static void test_the_run_it_was_booted_for(void **state)
{
    struct run_spec spec = fitting();

    (void)state;
    assert_null(held_misfit(&boot, &spec));
    spec.timeout_ms = 1; /* what is not Node's business may be anything */
    spec.files = &(struct run_file){"/workspace/x", NULL, 0};
    spec.n_files = 1;
    assert_null(held_misfit(&boot, &spec));
}

static void test_a_stdin(void **state)
{
    struct run_spec spec = fitting();

    (void)state;
    spec.has_stdin = true;
    assert_non_null(held_misfit(&boot, &spec));
}

static void test_another_command_line(void **state)
{
    const char *lines[][4] = {{layout_node, "/workspace/other.js"},
                              {layout_node, "/workspace/index.ts"},
                              {layout_node, "/workspace/index.js", "argument"},
                              {layout_node, "--test", "/workspace/index.js"},
                              {layout_node},
                              {"/bin/sh", "/workspace/index.js"}};

    (void)state;
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        struct run_spec spec = fitting();
        spec.argv = lines[i];
        assert_non_null(held_misfit(&boot, &spec));
    }
}

static void test_another_directory(void **state)
{
    struct run_spec spec = fitting();

    (void)state;
    spec.cwd = "/workspace/files";
    assert_non_null(held_misfit(&boot, &spec));
}

static void test_another_environment(void **state)
{
    const char *others[][4] = {{"PATH=/bin", "HOME=/root", "TZ=Asia/Tokyo"},
                               {"PATH=/bin", "HOME=/tmp"},
                               {"PATH=/bin"},
                               {NULL}};

    (void)state;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        struct run_spec spec = fitting();
        spec.env = others[i];
        assert_non_null(held_misfit(&boot, &spec));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_run_it_was_booted_for), cmocka_unit_test(test_a_stdin),
        cmocka_unit_test(test_another_command_line),      cmocka_unit_test(test_another_directory),
        cmocka_unit_test(test_another_environment),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
