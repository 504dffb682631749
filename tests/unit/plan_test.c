#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "jail/plan.h"

#define N(a) (sizeof(a) / sizeof((a)[0]))

static const char head[] = "{\"init\":\"/i\",\"memoryBytes\":1,\"initMemoryBytes\":1,"
                           "\"cpusMilli\":1000,\"pids\":1,\"fds\":16,\"entries\":[";

static int decode(const char *text, struct plan *ret, struct err *e)
{
    json_t *j = json_parse(text, strlen(text), e);
    int     r;

    assert_non_null(j);
    r = plan_decode(j, ret, e);
    json_decref(j); /* ret's strings are gone now: look at numbers only */
    return r;
}

static int decode_entry(const char *entry, struct plan *ret, struct err *e)
{
    char text[1024];

    snprintf(text, sizeof text, "%s%s]}", head, entry);
    return decode(text, ret, e);
}

/* What each kind needs besides its target: source, text, bytes. */
static const struct {
    const char    *name, *needs;
    enum plan_kind kind;
} kinds[] = {
    {"bind", "s", PLAN_BIND},        {"device", "s", PLAN_DEVICE},
    {"tmpfs", "b", PLAN_TMPFS},      {"proc", "", PLAN_PROC},
    {"dir", "", PLAN_DIR},           {"file", "t", PLAN_FILE},
    {"link", "t", PLAN_LINK},        {"inner", "s", PLAN_INNER},
    {"aside", "", PLAN_ASIDE},       {"mask", "", PLAN_MASK},
    {"readonly", "", PLAN_READONLY}, {"certificates", "s", PLAN_CERTIFICATES},
};

static const char *const sets[] = {"", "s", "t", "b", "st", "sb", "tb", "stb"};

static void kinds_have_what_they_need(void **state)
{
    (void)state;
    for (size_t i = 0; i < N(kinds); i++)
        for (size_t k = 0; k < N(sets); k++) {
            struct plan plan;
            struct err  e = {0};
            char        entry[200];
            bool        good = strcmp(sets[k], kinds[i].needs) == 0;

            snprintf(entry, sizeof entry, "{\"kind\":\"%s\",\"target\":\"/t\"%s%s%s}",
                     kinds[i].name, strchr(sets[k], 's') ? ",\"source\":\"/s\"" : "",
                     strchr(sets[k], 't') ? ",\"text\":\"t\"" : "",
                     strchr(sets[k], 'b') ? ",\"bytes\":1" : "");
            if ((decode_entry(entry, &plan, &e) == 0) != good)
                fail_msg("%s: %s", entry, e.msg);
            if (good) {
                assert_int_equal(plan.n_entries, 1);
                assert_int_equal(plan.entries[0].kind, kinds[i].kind);
                assert_int_equal(plan.entries[0].mode, 0755);
                assert_int_equal(plan.entries[0].source_fd, -1);
                assert_false(plan.entries[0].writable);
                assert_string_equal(plan_kind_name(kinds[i].kind), kinds[i].name);
            } else {
                assert_memory_equal(e.msg, "plan.entries[0] lacks or has too much for kind '", 48);
            }
        }
}

static const struct {
    const char *entry, *sentence;
} refused[] = {
    {"{\"kind\":\"bnid\",\"target\":\"/t\"}", "plan.entries[0].kind 'bnid' is unknown"},
    {"{\"kind\":\"dir\"}", "plan.entries[0].target is missing"},
    {"{\"target\":\"/t\"}", "plan.entries[0].kind is missing"},
    {"{\"kind\":\"dir\",\"target\":\"t/t\"}", "plan.entries[0].target must be absolute and plain"},
    {"{\"kind\":\"dir\",\"target\":\"/../t\"}",
     "plan.entries[0].target must be absolute and plain"},
    {"{\"kind\":\"dir\",\"target\":\"/t/..\"}",
     "plan.entries[0].target must be absolute and plain"},
    {"{\"kind\":\"dir\",\"target\":\"..\"}", "plan.entries[0].target must be absolute and plain"},
    {"{\"kind\":\"dir\",\"target\":\"/\"}", "plan.entries[0].target must be from 2 to 4095 bytes"},
    {"{\"kind\":\"bind\",\"target\":\"/t\",\"source\":\"s\"}",
     "plan.entries[0].source must be absolute"},
    {"{\"kind\":\"dir\",\"target\":\"/t\",\"mode\":1024}",
     "plan.entries[0].mode must be from 0 to 1023"},
    {"{\"kind\":\"dir\",\"target\":\"/t\",\"owner\":1}", "plan.entries[0] has no member 'owner'"},
    {"{\"kind\":\"dir\",\"target\":\"/t\"},[]", "plan.entries[1] must be an object"},
    {"", "plan.entries must be from 1 to 128 entries"},
};

static void bad_entries_are_named(void **state)
{
    (void)state;
    for (size_t i = 0; i < N(refused); i++) {
        struct plan plan = {.n_entries = 77};
        struct err  e = {0};

        if (decode_entry(refused[i].entry, &plan, &e) == 0)
            fail_msg("%s was taken", refused[i].entry);
        assert_int_equal(e.kind, ERR_INVALID);
        assert_string_equal(e.msg, refused[i].sentence);
        assert_int_equal(plan.n_entries, 77); /* written only on success */
    }
}

static void members_are_bounded(void **state)
{
    static const struct {
        const char *from, *to, *sentence;
    } cases[] = {
        {"\"memoryBytes\":1,", "", "plan.memoryBytes is missing"},
        {"\"cpusMilli\":1000", "\"cpusMilli\":9", "plan.cpusMilli must be from 10 to 1024000"},
        {"\"pids\":1", "\"pids\":0", "plan.pids must be from 1 to 4194304"},
        {"\"fds\":16", "\"fds\":15", "plan.fds must be from 16 to 1048576"},
        {"\"init\":\"/i\"", "\"init\":\"i\"", "plan.init must be from 2 to 4095 bytes"},
        {"\"fds\":16", "\"fds\":16,\"fun\":1", "plan has no member 'fun'"},
        {"\"fds\":16", "\"fds\":16,\"hostLoopback\":[{\"address\":\"10.0.0.1\",\"port\":80}]",
         "plan.hostLoopback[0].address is not on the loopback"},
        {"\"fds\":16", "\"fds\":16,\"hostLoopback\":[{\"address\":\"::2\",\"port\":80}]",
         "plan.hostLoopback[0].address is not on the loopback"},
        {"\"fds\":16", "\"fds\":16,\"hostLoopback\":[{\"address\":\"127.1\",\"port\":80}]",
         "plan.hostLoopback[0].address is not on the loopback"},
        {"\"fds\":16", "\"fds\":16,\"hostLoopback\":[{\"address\":\"::1\",\"port\":0}]",
         "plan.hostLoopback[0].port must be from 1 to 65535"},
        {"\"fds\":16", "\"fds\":16,\"egress\":true,\"hostNetwork\":true",
         "plan.egress and plan.hostNetwork exclude each other"},
    };
    char text[1024], changed[1200];

    (void)state;
    snprintf(text, sizeof text, "%s{\"kind\":\"proc\",\"target\":\"/proc\"}]}", head);
    for (size_t i = 0; i < N(cases); i++) {
        const char *at = strstr(text, cases[i].from);
        struct plan plan;
        struct err  e = {0};

        assert_non_null(at);
        snprintf(changed, sizeof changed, "%.*s%s%s", (int)(at - text), text, cases[i].to,
                 at + strlen(cases[i].from));
        assert_int_equal(decode(changed, &plan, &e), -1);
        assert_string_equal(e.msg, cases[i].sentence);
    }
}

static void places_of_the_host(void **state)
{
    char        text[1024];
    struct plan plan;
    struct err  e = {0};

    (void)state;
    snprintf(text, sizeof text,
             "{\"hostLoopback\":[{\"address\":\"127.0.0.2\",\"port\":4873},"
             "{\"address\":\"::1\",\"port\":65535}],%s{\"kind\":\"proc\",\"target\":\"/proc\"}]}",
             head + 1);
    assert_int_equal(decode(text, &plan, &e), 0);
    assert_int_equal(plan.n_host_loopback, 2);
    assert_int_equal(plan.host_loopback[0].family, AF_INET);
    assert_memory_equal(plan.host_loopback[0].address, ((uint8_t[]){127, 0, 0, 2}), 4);
    assert_int_equal(plan.host_loopback[0].port, 4873);
    assert_int_equal(plan.host_loopback[1].family, AF_INET6);
    assert_int_equal(plan.host_loopback[1].port, 65535);
}

static void entries_are_counted(void **state)
{
    static char text[PLAN_ENTRIES_MAX * 64];
    struct plan plan;
    struct err  e = {0};

    (void)state;
    for (size_t n = PLAN_ENTRIES_MAX; n <= PLAN_ENTRIES_MAX + 1; n++) {
        size_t at = (size_t)snprintf(text, sizeof text, "%s", head);

        for (size_t i = 0; i < n; i++)
            at += (size_t)snprintf(text + at, sizeof text - at,
                                   "%s{\"kind\":\"dir\",\"target\":\"/t%zu\"}", i ? "," : "", i);
        snprintf(text + at, sizeof text - at, "]}");
        assert_int_equal(decode(text, &plan, &e), n == PLAN_ENTRIES_MAX ? 0 : -1);
    }
    assert_int_equal(plan.n_entries, PLAN_ENTRIES_MAX);
    assert_string_equal(e.msg, "plan.entries must be from 1 to 128 entries");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kinds_have_what_they_need), cmocka_unit_test(bad_entries_are_named),
        cmocka_unit_test(members_are_bounded),       cmocka_unit_test(places_of_the_host),
        cmocka_unit_test(entries_are_counted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
