#include "box/pressure.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cgroup_file.h"
#include "base/fd.h"
#include "base/str.h"

enum {
    BELIEVED_MS = 100,
    GROUPS_MAX = 16, /* from the process's own up to the root of what is mounted */
    FLOOR_MAX = 256 << 20,
    FLOOR_SHARE = 16,
};

/* Files of a cgroup with a memory controller, and the lines of memory.stat that can be taken back.
 */
static const struct names {
    const char *limit, *usage, *stat[3];
} v1 = {"memory.limit_in_bytes",
        "memory.usage_in_bytes",
        {"total_inactive_file", "total_active_file", NULL}},
  v2 = {"memory.max", "memory.current", {"inactive_file", "active_file", NULL}};

struct pressure {
    int                 proc_fd;
    int64_t             floor, left, looked_ms;
    bool                looked, is_short;
    const struct names *names;
    int                 groups[GROUPS_MAX];
    int                 n;
};

/* ---- the machine ---- */

/* `Name:   123 kB` */
static int64_t meminfo(const struct pressure *p, const char *name)
{
    autofree char *text = NULL;
    const char    *line;

    if (file_read_text(p->proc_fd, "meminfo", 1 << 16, &text, NULL) < 0)
        return INT64_MAX;
    line = strstr(text, name);
    return line ? strtoll(line + strlen(name), NULL, 10) * 1024 : INT64_MAX;
}

/* ---- cgroups ---- */

/* "max" is no limit, and v1's is a number that no machine has. */
static int64_t number(int dir, const char *name, const char *word)
{
    uint64_t n;

    if (cgroup_file_get(dir, name, word, &n) < 0)
        return -1;
    return n > INT64_MAX ? INT64_MAX : (int64_t)n;
}

static int64_t limit_of(const struct pressure *p, int dir)
{
    int64_t limit = number(dir, p->names->limit, NULL);

    return limit > 0 ? limit : INT64_MAX; /* "max" reads as 0 */
}

static int64_t left_in(const struct pressure *p, int dir)
{
    int64_t limit = limit_of(p, dir), used = number(dir, p->names->usage, NULL), left;

    if (limit == INT64_MAX || used < 0)
        return INT64_MAX;
    left = limit > used ? limit - used : 0;
    if (left > 4 * p->floor) /* far away: the rest need not be known */
        return left;
    for (const char *const *word = p->names->stat; *word; word++) {
        int64_t n = number(dir, "memory.stat", *word);
        left += n > 0 && n <= used ? n : 0;
    }
    return left;
}

/* From this directory upwards, those that have files of the controller. */
static void add_groups(struct pressure *p, char *path, size_t point_size)
{
    for (;;) {
        int dir = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (dir >= 0 && faccessat(dir, p->names->usage, R_OK, 0) == 0 && p->n < GROUPS_MAX)
            p->groups[p->n++] = take_fd(&dir);
        fd_close(&dir);
        char *slash = strrchr(path, '/');
        if (strlen(path) <= point_size || !slash)
            return;
        *slash = '\0';
    }
}

static bool find_groups(struct pressure *p, const char *mounts, const char *cgroups,
                        const struct names *names, const char *type, const char *controller)
{
    autofree char      *own = cgroup_file_own(cgroups, controller);
    struct cgroup_mount m;
    char                path[PATH_MAX];

    p->names = names;
    for (int i = 0; own && p->n == 0 && cgroup_file_mount(mounts, type, i, &m); i++) {
        if ((!*controller || cgroup_file_has_word(m.options, controller, ",")) &&
            cgroup_file_locate(&m, own, path, sizeof path) == 0)
            add_groups(p, path, strlen(m.point));
        cgroup_mount_done(&m);
    }
    return p->n > 0;
}

static void find(struct pressure *p)
{
    autofree char *mounts = NULL, *cgroups = NULL;

    if (file_read_text(p->proc_fd, "self/mountinfo", 1 << 20, &mounts, NULL) < 0 ||
        file_read_text(p->proc_fd, "self/cgroup", 1 << 16, &cgroups, NULL) < 0)
        return;
    if (!find_groups(p, mounts, cgroups, &v1, "cgroup", "memory"))
        find_groups(p, mounts, cgroups, &v2, "cgroup2", "");
}

static int64_t total(const struct pressure *p)
{
    int64_t least = meminfo(p, "MemTotal:");

    for (int i = 0; i < p->n; i++) {
        int64_t limit = limit_of(p, p->groups[i]);
        if (limit < least)
            least = limit;
    }
    return least;
}

/* ---- the face ---- */

struct pressure *pressure_new(const char *proc, int64_t floor_bytes)
{
    struct pressure *p = calloc(1, sizeof *p);

    if (!p)
        abort();
    p->floor = floor_bytes < INT64_MAX / 4 ? floor_bytes : INT64_MAX / 4; /* see left_in */
    p->proc_fd = open(proc, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (floor_bytes == 0)
        return p;
    find(p);
    if (floor_bytes < 0) {
        int64_t share = total(p) / FLOOR_SHARE;
        p->floor = share < FLOOR_MAX ? share : FLOOR_MAX;
    }
    return p;
}

void pressure_free(struct pressure *p)
{
    for (int i = 0; i < p->n; i++)
        fd_close(&p->groups[i]);
    fd_close(&p->proc_fd);
    free(p);
}

int64_t pressure_left(struct pressure *p, int64_t now_ms)
{
    if (p->floor == 0)
        return INT64_MAX;
    if (p->looked && now_ms - p->looked_ms < BELIEVED_MS)
        return p->left;
    p->left = meminfo(p, "MemAvailable:");
    for (int i = 0; i < p->n; i++) {
        int64_t left = left_in(p, p->groups[i]);
        if (left < p->left)
            p->left = left;
    }
    p->looked = true;
    p->looked_ms = now_ms;
    return p->left;
}

int64_t pressure_floor(const struct pressure *p)
{
    return p->floor;
}

void pressure_promise(struct pressure *p, int64_t bytes)
{
    if (p->left != INT64_MAX)
        p->left -= bytes;
}

bool pressure_is_out(struct pressure *p, int64_t now_ms)
{
    return pressure_left(p, now_ms) < p->floor;
}

bool pressure_is_short(struct pressure *p, int64_t now_ms)
{
    int64_t left = pressure_left(p, now_ms), twice = 2 * p->floor;

    p->is_short = left < (p->is_short ? twice + p->floor / 2 : twice);
    return p->is_short;
}
