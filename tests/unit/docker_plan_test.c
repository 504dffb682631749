#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"
#include "engine/docker.h"
#include "engine/podman.h"
#include "engine/run_id.h"

#include "init_beside.h"

enum { NOBODY = 65534 };

static const struct engine_spec plain = {
    .engine = &docker,
    .memory_bytes = 256 << 20,
    .disk_bytes = 64 << 20,
    .cpus_milli = 1500,
    .pids = 64,
    .fds = 1024,
    .runtime_dir = "sha256:0123",
};

static int set_up(void **state)
{
    const char *const variables[] = {"DOCKER_HOST", "DOCKER_CONTEXT", "CONTAINER_HOST",
                                     "CONTAINER_CONNECTION"};

    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++)
        unsetenv(variables[i]); /* whatever who tests has */
    setenv("DOCKER_CONFIG", "/nonexistent", 1);
    return put_init_beside_us(state);
}

static bool has(const json_t *plan, const char *word)
{
    const json_t *list = json_object_get(plan, "arguments"), *at;
    size_t        i;

    json_array_foreach (list, i, at)
        if (strcmp(json_string_value(at), word) == 0)
            return true;
    return false;
}

static void walls_limits_and_labels_are_words_of_run(void **state)
{
    autofree char    *run = str_format("--label=mcp-server-run-id=%s", run_id());
    const char *const words[] = {"run",
                                 "--interactive",
                                 "--rm",
                                 "--pull=never",
                                 "--read-only",
                                 "--cap-drop=ALL",
                                 "--security-opt=no-new-privileges",
                                 "--label=mcp-sandbox=true",
                                 "--network=none",
                                 "--memory=268435456",
                                 "--cpus=1.500",
                                 "sha256:0123",
                                 run};
    struct err        e = {0};
    json_t           *plan = docker.plan(&plain, &e);

    (void)state;
    if (!plan)
        fail_msg("%s", e.msg);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (!has(plan, words[i]))
            fail_msg("'%s' is missing", words[i]);
    assert_false(json_is_true(json_object_get(plan, "remote")));
    json_decref(plan);
}

static void one_on_another_machine_is_created(void **state)
{
    struct engine_spec spec = plain;
    struct err         e = {0};

    (void)state;
    spec.remote = true;
    json_t *plan = docker.plan(&spec, &e);
    assert_non_null(plan);
    assert_true(has(plan, "create") && !has(plan, "run"));
    assert_true(json_is_true(json_object_get(plan, "remote")));
    json_decref(plan);
    spec.engine = &podman;
    assert_null(podman.plan(&spec, &e));
    assert_non_null(strstr(e.msg, "podman is asked on this machine alone"));
}

static void strict_refuses(void **state)
{
    struct engine_spec spec = plain;
    struct err         e = {0};

    (void)state;
    spec.strict = true;
    assert_null(docker.plan(&spec, &e));
    assert_non_null(strstr(e.msg, "--strict: the wall 'user-namespace' is missing"));
}

/* Code has the rights of its owner: else who may ask the daemon could have it read anything. */
static void files_where_we_may_not_write_are_refused(void **state)
{
    char               dir[] = "/tmp/docker-plan-XXXXXX";
    struct engine_spec spec = plain;
    struct err         e = {0};

    (void)state;
    if (geteuid() != 0)
        skip();
    assert_non_null(mkdtemp(dir));
    assert_int_equal(chmod(dir, 0755), 0);
    spec.files_dir = dir;
    json_t *plan = docker.plan(&spec, &e);
    assert_non_null(plan);
    json_decref(plan);
    assert_int_equal(seteuid(NOBODY), 0);
    plan = docker.plan(&spec, &e);
    assert_int_equal(seteuid(0), 0);
    assert_null(plan);
    assert_non_null(strstr(e.msg, "Permission denied"));
    assert_int_equal(rmdir(dir), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(walls_limits_and_labels_are_words_of_run),
        cmocka_unit_test(one_on_another_machine_is_created),
        cmocka_unit_test(strict_refuses),
        cmocka_unit_test(files_where_we_may_not_write_are_refused),
    };

    return cmocka_run_group_tests(tests, set_up, remove_init);
}
