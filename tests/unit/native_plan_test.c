#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "config.h"
#include "engine/layout.h"
#include "engine/native.h"
#include "jail/plan.h"

#include "init_beside.h"

static const struct engine_spec plain = {
    .memory_bytes = 256 << 20,
    .disk_bytes = 64 << 20,
    .cpus_milli = 1500,
    .pids = 64,
    .fds = 1024,
    .runtime_dir = "/store/node",
};

/* The plan of a spec, decoded as the jail will; the document lives on for its strings. */
static struct plan plan_of(const struct engine_spec *spec, json_t **ret_document)
{
    struct plan plan = {0};
    struct err  e = {0};
    json_t     *document = native.plan(spec, &e);

    if (!document || plan_decode(document, &plan, &e) < 0)
        fail_msg("%s", e.msg);
    *ret_document = document;
    return plan;
}

static size_t find(const struct plan *plan, enum plan_kind kind, const char *target)
{
    for (size_t i = 0; i < plan->n_entries; i++)
        if (plan->entries[i].kind == kind && strcmp(plan->entries[i].target, target) == 0)
            return i;
    fail_msg("no %s at %s", plan_kind_name(kind), target);
    return 0;
}

static bool has_target(const struct plan *plan, const char *target)
{
    for (size_t i = 0; i < plan->n_entries; i++)
        if (strcmp(plan->entries[i].target, target) == 0)
            return true;
    return false;
}

static void limits_are_handed_on(void **state)
{
    autojson json_t *document = NULL;
    struct plan      plan = plan_of(&plain, &document);

    (void)state;
    assert_string_equal(plan.init, "/.jerboa/init");
    assert_string_equal(plan.entries[find(&plan, PLAN_BIND, plan.init)].source, init_path);
    assert_string_equal(plan.entries[find(&plan, PLAN_BIND, "/opt/node")].source, "/store/node");
    assert_true(str_starts(layout_node, "/opt/node/"));
    assert_int_equal(plan.memory_bytes, plain.memory_bytes);
    assert_true(plan.init_memory_bytes > plain.disk_bytes); /* files are charged to it */
    assert_int_equal(plan.cpus_milli, 1500);
    assert_int_equal(plan.pids, 64);
    assert_int_equal(plan.fds, 1024);
    assert_false(plan.host_network);
}

static void node_finds_its_limits(void **state)
{
    static const struct {
        const char *path, *text;
    } files[] = {
        {"/sys/fs/cgroup/memory.max", "268435456\n"},
        {"/sys/fs/cgroup/memory.high", "268435456\n"},
        {"/sys/fs/cgroup/memory/memory.limit_in_bytes", "268435456\n"},
        {"/sys/fs/cgroup/memory/memory.soft_limit_in_bytes", "268435456\n"},
        {"/sys/fs/cgroup/cpu.max", "150000 100000\n"},
        {"/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "150000\n"},
        {"/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"},
    };
    autojson json_t *document = NULL;
    struct plan      plan = plan_of(&plain, &document);

    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        assert_string_equal(plan.entries[find(&plan, PLAN_FILE, files[i].path)].text,
                            files[i].text);
}

/* Everything writable is one tmpfs of the size asked for, with inodes to suit it. */
static void the_disk_has_a_cap(void **state)
{
    static const struct {
        int64_t bytes, inodes;
    } cases[] = {{64 << 20, 16384}, {64 << 10, 1024}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        autojson json_t   *document = NULL;
        struct engine_spec spec = plain;

        spec.disk_bytes = cases[i].bytes;
        struct plan plan = plan_of(&spec, &document);
        size_t      n = 0;
        for (size_t k = 0; k < plan.n_entries; k++)
            if (plan.entries[k].kind == PLAN_TMPFS) {
                n++;
                assert_int_equal(plan.entries[k].bytes, cases[i].bytes);
                assert_int_equal(plan.entries[k].inodes, cases[i].inodes);
            }
        assert_int_equal(n, 1);
    }
}

static void order_of_the_build(void **state)
{
    static const struct {
        enum plan_kind kind;
        const char    *target;
    } order[] = {
        {PLAN_BIND, "/usr"},        {PLAN_DEVICE, "/dev/null"},    {PLAN_TMPFS, "/.jerboa/disk"},
        {PLAN_INNER, "/workspace"}, {PLAN_ASIDE, "/.jerboa/disk"}, {PLAN_BIND, "/workspace/files"},
        {PLAN_PROC, "/proc"},       {PLAN_MASK, "/proc/kcore"},    {PLAN_READONLY, "/proc/sys"},
    };
    autojson json_t   *document = NULL;
    struct engine_spec spec = plain;

    (void)state;
    spec.files_dir = "/home/u/files";
    spec.dir = "/home/u/dir";
    struct plan plan = plan_of(&spec, &document);
    for (size_t i = 1; i < sizeof order / sizeof order[0]; i++)
        assert_true(find(&plan, order[i - 1].kind, order[i - 1].target) <
                    find(&plan, order[i].kind, order[i].target));
    for (size_t i = 0; i < plan.n_entries; i++) /* a mask must not be covered by what comes later */
        if (plan.entries[i].kind == PLAN_DEVICE || plan.entries[i].kind == PLAN_BIND)
            assert_true(i < find(&plan, PLAN_PROC, "/proc"));
    assert_true(find(&plan, PLAN_BIND, "/workspace/dir") >
                find(&plan, PLAN_ASIDE, "/.jerboa/disk"));
}

static void binds_are_readonly_unless_asked(void **state)
{
    autojson json_t   *document = NULL;
    struct engine_spec spec = plain;

    (void)state;
    spec.files_dir = "/home/u/files";
    spec.dir = "/home/u/dir";
    struct plan plan = plan_of(&spec, &document);
    for (size_t i = 0; i < plan.n_entries; i++) {
        const struct plan_entry *entry = &plan.entries[i];
        bool                     is_files = strcmp(entry->target, "/workspace/files") == 0;
        bool is_users = is_files || strcmp(entry->target, "/workspace/dir") == 0;

        assert_int_equal(entry->writable, is_files);
        assert_int_equal(entry->as_owner, is_users);
    }
    assert_string_equal(plan.entries[find(&plan, PLAN_BIND, "/workspace/files")].source,
                        spec.files_dir);
    assert_string_equal(plan.entries[find(&plan, PLAN_BIND, "/workspace/dir")].source, spec.dir);
}

static void without_directories_of_the_user(void **state)
{
    autojson json_t *document = NULL;
    struct plan      plan = plan_of(&plain, &document);

    (void)state;
    assert_int_equal(plan.entries[find(&plan, PLAN_DIR, "/workspace/files")].mode, 0755);
    assert_false(has_target(&plan, "/workspace/dir"));
    assert_false(has_target(&plan, "/home"));
    assert_true(has_target(&plan, "/etc/resolv.conf")); /* made up: queries go to init */
}

static void the_network_of_the_host(void **state)
{
    autojson json_t   *document = NULL;
    struct engine_spec spec = plain;

    (void)state;
    spec.host_network = true;
    struct plan plan = plan_of(&spec, &document);
    assert_true(plan.host_network);
    assert_int_equal(has_target(&plan, "/etc/resolv.conf"), access("/etc/resolv.conf", R_OK) == 0);
}

static const char bundle[] = "/etc/ssl/certs/ca-certificates.crt";

/* Copied, not shown, as soon as there is a file that may hold more than certificates. */
static void certificates_are_added(void **state)
{
    static const char *const files[] = {"/home/u/extra.pem", "/home/u/npm.pem", NULL};
    autojson json_t         *document = NULL;
    struct engine_spec       spec = plain;

    (void)state;
    spec.certificates = files;
    spec.certificates_text = "PEM";
    setenv("SSL_CERT_FILE", init_path, 1);
    struct plan plan = plan_of(&spec, &document);
    unsetenv("SSL_CERT_FILE");
    size_t at = find(&plan, PLAN_FILE, bundle);
    assert_string_equal(plan.entries[at].text, "PEM\n");
    const char *const sources[] = {init_path, files[0], files[1]};
    for (size_t n = 0; n < 3; n++) {
        assert_int_equal(plan.entries[++at].kind, PLAN_CERTIFICATES);
        assert_string_equal(plan.entries[at].target, bundle);
        assert_string_equal(plan.entries[at].source, sources[n]);
    }
    assert_string_equal(plan.entries[find(&plan, PLAN_LINK, "/etc/ssl/cert.pem")].text, bundle);
    assert_string_equal(
        plan.entries[find(&plan, PLAN_LINK, "/etc/pki/tls/certs/ca-bundle.crt")].text, bundle);
}

static void a_named_bundle_is_copied(void **state)
{
    autojson json_t *document = NULL;

    (void)state;
    setenv("SSL_CERT_FILE", init_path, 1);
    struct plan plan = plan_of(&plain, &document);
    unsetenv("SSL_CERT_FILE");
    assert_string_equal(plan.entries[find(&plan, PLAN_CERTIFICATES, bundle)].source, init_path);
    for (size_t i = 0; i < plan.n_entries; i++)
        assert_false(plan.entries[i].kind == PLAN_BIND &&
                     strcmp(plan.entries[i].target, bundle) == 0);
}

static void the_systems_bundle_may_be_named(void **state)
{
    autojson json_t *document = NULL;

    (void)state;
    if (access(bundle, R_OK) < 0)
        skip();
    setenv("SSL_CERT_FILE", "/etc/../etc/ssl/certs/ca-certificates.crt", 1);
    struct plan plan = plan_of(&plain, &document);
    unsetenv("SSL_CERT_FILE");
    assert_string_equal(plan.entries[find(&plan, PLAN_BIND, bundle)].source, bundle);
}

static void registries_of_the_host(void **state)
{
    static const struct engine_place places[] = {{"127.0.0.1", 4873}, {"::1", 4873}};
    autojson json_t                 *document = NULL;
    struct engine_spec               spec = plain;

    (void)state;
    assert_int_equal(ENGINE_PLACES_MAX, REDIRECT_PLACES_MAX);
    spec.host_loopback = places;
    spec.n_host_loopback = 2;
    spec.npmrc = "@scope:registry=http://x.test/\n";
    struct plan plan = plan_of(&spec, &document);
    assert_int_equal(plan.n_host_loopback, 2);
    assert_int_equal(plan.host_loopback[1].family, AF_INET6);
    assert_int_equal(plan.host_loopback[1].port, 4873);
    assert_string_equal(plan.entries[find(&plan, PLAN_FILE, "/etc/npmrc")].text, spec.npmrc);
}

static void environments_name_the_runtime(void **state)
{
    bool has_path = false;

    (void)state;
    for (const char *const *env = native.environment(&plain); *env; env++) {
        assert_non_null(strchr(*env, '='));
        has_path |= str_starts(*env, "PATH=/opt/node/bin:");
    }
    assert_true(has_path);
}

static void a_missing_init_is_named(void **state)
{
    struct err e = {0};

    (void)state;
    unlink(init_path);
    if (access(JERBOA_LIBEXEC "/jerboa-init", X_OK) < 0) {
        assert_null(native.plan(&plain, &e));
        assert_int_equal(e.kind, ERR_UNAVAILABLE);
        assert_memory_equal(e.msg, "jerboa-init is neither beside jerboa nor in ", 44);
    }
    put_init_beside_us(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(limits_are_handed_on),
        cmocka_unit_test(node_finds_its_limits),
        cmocka_unit_test(the_disk_has_a_cap),
        cmocka_unit_test(order_of_the_build),
        cmocka_unit_test(binds_are_readonly_unless_asked),
        cmocka_unit_test(without_directories_of_the_user),
        cmocka_unit_test(the_network_of_the_host),
        cmocka_unit_test(certificates_are_added),
        cmocka_unit_test(a_named_bundle_is_copied),
        cmocka_unit_test(the_systems_bundle_may_be_named),
        cmocka_unit_test(registries_of_the_host),
        cmocka_unit_test(environments_name_the_runtime),
        cmocka_unit_test(a_missing_init_is_named),
    };

    return cmocka_run_group_tests(tests, put_init_beside_us, remove_init);
}
