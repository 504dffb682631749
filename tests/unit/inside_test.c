#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "cli/inside.h"

#define N(a) (sizeof(a) / sizeof((a)[0]))

static const char own[] = "ns_user: user:[1]\nns_mnt: mnt:[1]\nns_pid: pid:[1]\nns_net: net:[1]\n"
                          "ns_ipc: ipc:[1]\nns_uts: uts:[1]\nns_cgroup: cgroup:[1]\n"
                          "root: 8:1\nUid: 1000\n";

static const char good[] =
    "Name:\tcat\nCapInh:\t0000000000000000\nCapPrm:\t0000000000000000\nCapEff:\t0000000000000000\n"
    "CapBnd:\t0000000000000000\nCapAmb:\t0000000000000000\nNoNewPrivs:\t1\nSeccomp:\t2\n"
    "Seccomp_filters:\t1\n"
    "ns_user: user:[2]\nns_mnt: mnt:[2]\nns_pid: pid:[2]\nns_net: net:[2]\nns_ipc: ipc:[2]\n"
    "ns_uts: uts:[2]\nns_cgroup: cgroup:[2]\nuid_map: 0 1879048192 65536\n"
    "root: 0:99 tmpfs tmpfs ro,size=4k\nwrite_proc: refused\n";

static const char *const walls[] = {
    "user-namespace", "mount-namespace",  "pid-namespace", "network-namespace", "ipc-namespace",
    "uts-namespace",  "cgroup-namespace", "root",          "capabilities",      "no-new-privileges",
    "seccomp",        "uid-range",        "landlock",
};

static void every_wall_is_seen(void **state)
{
    (void)state;
    for (size_t i = 0; i < N(walls); i++) {
        struct err e = {0};
        int        shown = inside_shows(walls[i], good, own, &e);
        if (shown != 1)
            fail_msg("%s: %d %s", walls[i], shown, e.msg);
    }
    assert_int_equal(inside_shows("cgroup", good, own, NULL), 0); /* the limits are tried */
}

static const struct {
    const char *wall, *from, *to;
} faults[] = {
    {"user-namespace", "user:[2]", "user:[1]"},
    {"user-namespace", "ns_user:", "ns_other:"},
    {"mount-namespace", "mnt:[2]", "mnt:[1]"},
    {"pid-namespace", "pid:[2]", "pid:[1]"},
    {"network-namespace", "net:[2]", "net:[1]"},
    {"network-namespace", "root:", "interface: eth0\nroot:"},
    {"ipc-namespace", "ipc:[2]", "ipc:[1]"},
    {"uts-namespace", "uts:[2]", "uts:[1]"},
    {"cgroup-namespace", "cgroup:[2]", "cgroup:[1]"},
    {"root", "0:99 tmpfs", "8:1 tmpfs"},
    {"root", "0:99 tmpfs", "0:99 ext4"},
    {"root", "root: 0:99 tmpfs", "root: "},
    {"capabilities", "CapInh:\t0", "CapInh:\t1"},
    {"capabilities", "CapPrm:\t0", "CapPrm:\t1"},
    {"capabilities", "CapEff:\t0", "CapEff:\t1"},
    {"capabilities", "CapBnd:\t0", "CapBnd:\t1"},
    {"capabilities", "CapAmb:\t0000000000000000", "CapAmb:\t"},
    {"no-new-privileges", "NoNewPrivs:\t1", "NoNewPrivs:\t0"},
    {"seccomp", "Seccomp:\t2", "Seccomp:\t1"},
    {"seccomp", "Seccomp:\t2", "Seccomp:\t22"},
    {"uid-range", "0 1879048192 65536", "0 1000 1"},
    {"uid-range", "0 1879048192 65536", "0 0 65536"},
    {"uid-range", "0 1879048192 65536", "0 x"},
    {"landlock", "write_proc: refused", "write_proc: done"},
};

static void a_missing_one_too(void **state)
{
    (void)state;
    for (size_t i = 0; i < N(faults); i++) {
        const char *at = strstr(good, faults[i].from);
        struct err  e = {0};
        char        text[2048];

        assert_non_null(at);
        snprintf(text, sizeof text, "%.*s%s%s", (int)(at - good), good, faults[i].to,
                 at + strlen(faults[i].from));
        if (inside_shows(faults[i].wall, text, own, &e) != -1 || !e.msg[0])
            fail_msg("%s stands although %s", faults[i].wall, faults[i].to);
    }
}

/* Without the other half nothing is one's own. */
static void own_facts_are_needed(void **state)
{
    autobuf struct buf b;

    (void)state;
    assert_int_equal(inside_shows("pid-namespace", good, "", NULL), -1);
    buf_init(&b, 4096);
    assert_int_equal(inside_own_facts(&b, NULL), 0);
    assert_non_null(strstr(buf_text(&b), "ns_cgroup: cgroup:["));
    assert_non_null(strstr(buf_text(&b), "\nUid: "));
    assert_int_equal(inside_shows("pid-namespace", good, buf_text(&b), NULL), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_wall_is_seen),
        cmocka_unit_test(a_missing_one_too),
        cmocka_unit_test(own_facts_are_needed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
