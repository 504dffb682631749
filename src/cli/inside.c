#include "cli/inside.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/str.h"

enum { VALUE_MAX = 256 };

static const char *const namespaces[] = {"user", "mnt", "pid", "net", "ipc", "uts", "cgroup"};

const char inside_script[] =
    "cat /proc/self/status\n"
    "for n in user mnt pid net ipc uts cgroup; do echo \"ns_$n: $(readlink /proc/self/ns/$n)\"; "
    "done\n"
    "while read -r line; do echo \"uid_map: $line\"; done </proc/self/uid_map\n"
    "while read -r id parent device root point rest; do\n"
    "  [ \"$point\" != / ] || echo \"root: $device ${rest#* - }\"\n"
    "done </proc/self/mountinfo\n"
    "while read -r name rest; do\n"
    "  case $name in *:*) [ \"${name%%:*}\" = lo ] || echo \"interface: ${name%%:*}\";; esac\n"
    "done </proc/net/dev\n"
    "if (echo 500 >/proc/self/oom_score_adj) 2>/dev/null; then echo 'write_proc: done'\n"
    "else echo 'write_proc: refused'; fi\n"; /* only Landlock forbids that */

/* ---- facts ---- */

static bool get(const char *facts, const char *name, char ret[VALUE_MAX])
{
    size_t n = strlen(name), size;

    for (const char *line = facts; line; line = strchr(line, '\n'), line += line ? 1 : 0) {
        if (strncmp(line, name, n) != 0 || line[n] != ':')
            continue;
        line += n + 1;
        line += strspn(line, " \t");
        size = strcspn(line, "\n");
        snprintf(ret, VALUE_MAX, "%.*s", (int)(size < VALUE_MAX ? size : VALUE_MAX - 1), line);
        return true;
    }
    return false;
}

int inside_own_facts(struct buf *ret, struct err *e)
{
    struct stat root;
    char        path[64], link[64];

    for (size_t i = 0; i < sizeof namespaces / sizeof namespaces[0]; i++) {
        snprintf(path, sizeof path, "/proc/self/ns/%s", namespaces[i]);
        ssize_t n = readlink(path, link, sizeof link - 1);
        if (n < 0)
            return err_sys(e, "%s", path);
        buf_printf(ret, "ns_%s: %.*s\n", namespaces[i], (int)n, link);
    }
    if (stat("/", &root) < 0)
        return err_sys(e, "/");
    buf_printf(ret, "root: %u:%u\nUid: %u\n", major(root.st_dev), minor(root.st_dev),
               (unsigned)getuid());
    return 0;
}

/* ---- what they show ---- */

struct look {
    const char *fact; /* its name */
    char        inside[VALUE_MAX], own[VALUE_MAX];
    const char *facts, *want;
};

static int differs(const struct look *l, struct err *e)
{
    if (!l->own[0] || strcmp(l->inside, l->own) == 0)
        return err_set(e, ERR_UNAVAILABLE, "inside it is this machine's own: %.60s", l->inside);
    return 0;
}

static int network(const struct look *l, struct err *e)
{
    char name[VALUE_MAX];

    TRY(differs(l, e));
    if (get(l->facts, "interface", name))
        return err_set(e, ERR_UNAVAILABLE, "inside there is a network interface '%.30s'", name);
    return 0;
}

static int is_wanted(const struct look *l, struct err *e)
{
    if (strcmp(l->inside, l->want) == 0)
        return 0;
    return err_set(e, ERR_UNAVAILABLE, "inside, %s is %.40s", l->fact, l->inside);
}

/* `DEVICE TYPE …`: a file system of its own, and not this machine's root. */
static int fresh_root(const struct look *l, struct err *e)
{
    size_t device = strcspn(l->inside, " ");

    if (strlen(l->own) == device && strncmp(l->inside, l->own, device) == 0)
        return err_set(e, ERR_UNAVAILABLE, "inside, / is this machine's");
    if (!str_starts(l->inside + device, " tmpfs "))
        return err_set(e, ERR_UNAVAILABLE, "inside, / is %.60s", l->inside);
    return 0;
}

/* `INSIDE OUTSIDE COUNT`, and the own uid. */
static int foreign_ids(const struct look *l, struct err *e)
{
    unsigned inside, outside, count, own;

    if (sscanf(l->inside, "%u %u %u", &inside, &outside, &count) != 3 ||
        sscanf(l->own, "%u", &own) != 1)
        return err_set(e, ERR_UNAVAILABLE, "its map of uids is '%.60s'", l->inside);
    if (own >= outside && own - outside < count)
        return err_set(e, ERR_UNAVAILABLE, "uid %u inside is uid %u here", inside, outside);
    return 0;
}

static const char no_bits[] = "0000000000000000";

static const struct {
    const char *wall, *fact;
    int (*stands)(const struct look *l, struct err *e);
    const char *want;     /* for is_wanted */
    const char *own_fact; /* NULL: of the same name */
} checks[] = {
    {"user-namespace", "ns_user", differs},
    {"mount-namespace", "ns_mnt", differs},
    {"pid-namespace", "ns_pid", differs},
    {"network-namespace", "ns_net", network},
    {"ipc-namespace", "ns_ipc", differs},
    {"uts-namespace", "ns_uts", differs},
    {"cgroup-namespace", "ns_cgroup", differs},
    {"root", "root", fresh_root},
    {"capabilities", "CapInh", is_wanted, no_bits},
    {"capabilities", "CapPrm", is_wanted, no_bits},
    {"capabilities", "CapEff", is_wanted, no_bits},
    {"capabilities", "CapBnd", is_wanted, no_bits},
    {"capabilities", "CapAmb", is_wanted, no_bits},
    {"no-new-privileges", "NoNewPrivs", is_wanted, "1"},
    {"seccomp", "Seccomp", is_wanted, "2"},
    {"uid-range", "uid_map", foreign_ids, .own_fact = "Uid"},
    {"landlock", "write_proc", is_wanted, "refused"},
};

int inside_shows(const char *wall, const char *facts, const char *own_facts, struct err *e)
{
    int shown = 0;

    for (size_t i = 0; i < sizeof checks / sizeof checks[0]; i++) {
        struct look l = {.fact = checks[i].fact, .facts = facts, .want = checks[i].want};
        if (strcmp(checks[i].wall, wall) != 0)
            continue;
        if (!get(facts, l.fact, l.inside))
            return err_set(e, ERR_UNAVAILABLE, "the probe inside did not tell %s", l.fact);
        get(own_facts, checks[i].own_fact ? checks[i].own_fact : l.fact, l.own);
        TRY(checks[i].stands(&l, e));
        shown = 1;
    }
    return shown;
}
