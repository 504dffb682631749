#include "jail/cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cgroup_file.h"
#include "base/fd.h"
#include "base/str.h"
#include "jail/cgroup_kill.h"
#include "jail/cgroup_version.h"
#include "jail/idrange.h"

static struct cgroup_place found; /* the same for all sandboxes of a process; filled once */
static bool                is_v2;

/* ---- where the groups are ---- */

int cgroup_find_in(const char *mounts, const char *own, struct err *e)
{
    struct cgroup_place place;
    struct err          why = {0}, why_v2 = {0};

    /* Where v1 has the controllers, v2 has none of them. */
    is_v2 = cgroup_v1.find(mounts, own, &place, &why) < 0 && why.sys == ENODEV;
    if (is_v2) {
        bool is_partly_v1 = place.n > 0;
        if (cgroup_v2.find(mounts, own, &place, &why_v2) < 0) {
            if (e) /* v1's names the one that is missing */
                *e = is_partly_v1 && err_is_lasting(&why_v2) ? why : why_v2;
            return -1;
        }
    } else if (why.kind) {
        if (e)
            *e = why;
        return -1;
    }
    found = place;
    return 0;
}

int cgroup_find(struct err *e)
{
    autofree char *mounts = NULL, *own = NULL;

    if (found.n > 0)
        return 0;
    TRY(file_read_text(AT_FDCWD, "/proc/self/mountinfo", 1 << 20, &mounts, e));
    TRY(file_read_text(AT_FDCWD, "/proc/self/cgroup", 1 << 16, &own, e));
    return cgroup_find_in(mounts, own, e);
}

bool cgroup_is_v2(void)
{
    return is_v2;
}

const char *cgroup_lock_file(void)
{
    static char path[PATH_MAX + 16];

    snprintf(path, sizeof path, "%s/cgroup.procs", found.paths[found.of[CGROUP_MEMORY]]);
    return path;
}

int cgroup_delegate(uid_t uid, struct err *e)
{
    autofree char *mounts = NULL;

    TRY(file_read_text(AT_FDCWD, "/proc/self/mountinfo", 1 << 20, &mounts, e));
    return cgroup_v1_delegate(mounts, uid, e);
}

/* ---- limits ---- */

static int set(const struct cgroup *c, const struct cgroup_setting *s,
               const struct cgroup_limits *limits, struct err *e)
{
    long long quota = limits->cpus_milli * atoll(CGROUP_PERIOD) / 1000;
    char      text[64] = "";

    switch (s->value) {
    case VALUE_MEMORY:
        snprintf(text, sizeof text, "%lld", (long long)limits->memory_bytes);
        break;
    case VALUE_INIT_MEMORY:
        snprintf(text, sizeof text, "%lld", (long long)limits->init_memory_bytes);
        break;
    case VALUE_CPU_QUOTA:
        snprintf(text, sizeof text, "%lld", quota);
        break;
    case VALUE_CPU_QUOTA_PERIOD:
        snprintf(text, sizeof text, "%lld " CGROUP_PERIOD, quota);
        break;
    case VALUE_PIDS:
        snprintf(text, sizeof text, "%lld", (long long)limits->pids);
        break;
    }
    return cgroup_file_put(c->dirs[found.of[s->controller]], s->file, s->text ? s->text : text, e);
}

/* An optional one is left out where the kernel does not have it; for a reason of the moment, none.
 */
static int set_limits(const struct cgroup *c, const struct cgroup_limits *limits, struct err *e)
{
    for (const struct cgroup_setting *s = found.version->settings; s->file; s++) {
        struct err why = {0};
        if (set(c, s, limits, &why) == 0 || (s->optional && err_is_lasting(&why)))
            continue;
        if (e)
            *e = why;
        return -1;
    }
    return 0;
}

/* ---- directories ---- */

static int make_dir(int parent, const char *name, struct err *e)
{
    if (mkdirat(parent, name, 0755) < 0 && errno != EEXIST)
        return err_sys(e, "make cgroup %s", name);
    return 0;
}

static int open_enter(int dir, const char *group, struct err *e)
{
    char path[64];
    int  fd;

    snprintf(path, sizeof path, "%s/%s", group, found.version->enter);
    fd = openat(dir, path, O_WRONLY | O_CLOEXEC);
    return fd < 0 ? err_sys(e, "cgroup file %s", path) : fd;
}

static int open_enter_all(const struct cgroup *c, const char *group, int *fds, struct err *e)
{
    for (int i = 0; i < c->n; i++) {
        fds[i] = open_enter(c->dirs[i], group, e);
        if (fds[i] < 0) {
            while (i > 0)
                fd_close(&fds[--i]);
            return -1;
        }
    }
    return c->n;
}

static int remove_dir(int parent, const char *name)
{
    for (int i = 0; i < 2000; i++) { /* a busy machine may take a second */
        if (unlinkat(parent, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
            return 0;
        if (errno != EBUSY)
            break;
        cgroup_kill_pause(); /* the last member is dead but not yet gone */
    }
    return -1;
}

/* Removes parent/name with all groups below and their members. */
static void remove_tree(int parent, const char *name, const char *path)
{
    autofd int     fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR           *dir = fd < 0 ? NULL : fdopendir(fcntl(fd, F_DUPFD_CLOEXEC, 3));
    struct dirent *d;

    if (fd >= 0)
        found.version->kill(fd, path);
    if (!dir)
        return;
    while ((d = readdir(dir)))
        if (d->d_type == DT_DIR && d->d_name[0] != '.') {
            autofree char *below = str_format("%s/%s", path, d->d_name);
            remove_tree(fd, d->d_name, below);
        }
    closedir(dir);
    remove_dir(parent, name);
}

/* ---- sandboxes ---- */

/* Whose slots are locked in another file has other names, so that the root of a namespace and the
 * root of the machine, in one cgroup, never take each other's groups for dead ones. */
static const char *name_prefix(void)
{
    static const char *prefix;

    if (!prefix)
        prefix = idrange_is_possible(NULL) ? "jerboa-" : "jerboa-u";
    return prefix;
}

static int open_parent(int hierarchy, struct err *e)
{
    int fd = open(found.paths[hierarchy], O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    return fd < 0 ? err_sys(e, "%s", found.paths[hierarchy]) : fd;
}

/* ---- who is alive ---- */

/* Behind the slots of ordinary users, which are locked in the same file; and theirs behind root's.
 */
static int lock(int fd, unsigned slot, short type)
{
    unsigned     range = name_prefix()[strlen("jerboa-")] ? 2 : 1;
    struct flock byte = {
        .l_type = type, .l_whence = SEEK_SET, .l_start = range * IDRANGE_SLOTS + slot, .l_len = 1};

    return fcntl(fd, F_OFD_SETLK, &byte);
}

static int open_locks(int hierarchy, struct err *e)
{
    char path[PATH_MAX + 16];
    int  fd;

    snprintf(path, sizeof path, "%s/cgroup.procs", found.paths[hierarchy]);
    fd = open(path, O_RDWR | O_CLOEXEC);
    return fd < 0 ? err_sys(e, "%s", path) : fd;
}

/* The slot is ours: who has the lock sweeps what is dead, and lets go. */
static int take_lock(int hierarchy, unsigned slot, struct err *e)
{
    autofd int fd = open_locks(hierarchy, e);

    if (fd < 0)
        return -1;
    for (int i = 0; lock(fd, slot, F_WRLCK) < 0; i++) {
        if (errno != EAGAIN && errno != EACCES)
            return err_sys(e, "lock cgroup %u", slot);
        if (i == 2000)
            return err_set(e, ERR_TIMEOUT, "cgroup %u is being swept by another for too long",
                           slot);
        cgroup_kill_pause();
    }
    return take_fd(&fd);
}

/* ---- making and removing ---- */

static void remove_slot(unsigned slot)
{
    char path[32], *name = path + 1;

    snprintf(path, sizeof path, "/%s%u", name_prefix(), slot);
    for (int i = 0; i < found.n; i++) {
        autofd int parent = open_parent(i, NULL);
        if (parent >= 0)
            remove_tree(parent, name, path);
    }
}

static bool slot_is_used(unsigned slot)
{
    char path[PATH_MAX + 32];

    for (int i = 0; i < found.n; i++) {
        snprintf(path, sizeof path, "%s/%s%u", found.paths[i], name_prefix(), slot);
        if (access(path, F_OK) == 0 || errno != ENOENT)
            return true;
    }
    return false;
}

static int make_levels(int hierarchy, unsigned slot, struct err *e)
{
    char       name[32];
    autofd int parent = open_parent(hierarchy, e), dir = -1;

    snprintf(name, sizeof name, "%s%u", name_prefix(), slot);
    if (parent < 0 || make_dir(parent, name, e) < 0)
        return -1;
    dir = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return err_sys(e, "open cgroup %s", name);
    return make_dir(dir, "init", e) < 0 || make_dir(dir, "box", e) < 0 ? -1 : take_fd(&dir);
}

static void close_all(struct cgroup *c)
{
    for (int i = 0; i < found.n; i++) {
        fd_close(&c->dirs[i]);
        fd_close(&c->locks[i]); /* last: until then it is alive */
    }
    c->n = 0;
}

int cgroup_make(unsigned slot, const struct cgroup_limits *limits, struct cgroup *ret,
                struct err *e)
{
    struct cgroup c = {.slot = slot};

    TRY(cgroup_find(e));
    for (int i = 0; i < CGROUP_HIERARCHIES_MAX; i++)
        c.dirs[i] = c.locks[i] = -1;
    for (int i = 0; i < found.n; i++) {
        c.locks[i] = take_lock(i, slot, e);
        if (c.locks[i] < 0)
            goto failed;
    }
    if (slot_is_used(slot)) /* its last owner was killed */
        remove_slot(slot);
    for (; c.n < found.n; c.n++) {
        c.dirs[c.n] = make_levels(c.n, slot, e);
        if (c.dirs[c.n] < 0)
            goto failed;
    }
    if (set_limits(&c, limits, e) < 0)
        goto failed;
    *ret = c;
    return 0;
failed:
    if (c.locks[found.n - 1] >= 0) /* all: before, it is not ours */
        remove_slot(slot);         /* with the one that was only half made, which c does not have */
    close_all(&c);
    return -1;
}

void cgroup_remove_box(const struct cgroup *c)
{
    for (int i = 0; i < c->n; i++)
        unlinkat(c->dirs[i], "box", AT_REMOVEDIR); /* what is left cgroup_remove removes */
}

/* How it nearly always ends: the runs are over and init is dead, so two empty groups are left. */
static bool remove_empty(const struct cgroup *c)
{
    char path[PATH_MAX + 32];

    for (int i = 0; i < c->n; i++) {
        snprintf(path, sizeof path, "%s/%s%u", found.paths[i], name_prefix(), c->slot);
        if (unlinkat(c->dirs[i], "init", AT_REMOVEDIR) < 0 || rmdir(path) < 0)
            return false;
    }
    return true;
}

void cgroup_remove(struct cgroup *c)
{
    if (!remove_empty(c))
        remove_slot(c->slot);
    close_all(c);
}

int cgroup_open_init(const struct cgroup *c, int fds[CGROUP_HIERARCHIES_MAX], struct err *e)
{
    return open_enter_all(c, "init", fds, e);
}

/* ---- runs ---- */

static void run_name(uint32_t run, char *ret, size_t size)
{
    snprintf(ret, size, "box/run-%u", run);
}

int cgroup_make_run(const struct cgroup *c, const struct cgroup_limits *limits, uint32_t run,
                    int fds[CGROUP_HIERARCHIES_MAX], struct err *e)
{
    char name[32], file[64];

    run_name(run, name, sizeof name);
    for (int i = 0; i < c->n; i++)
        if (mkdirat(c->dirs[i], name, 0755) < 0)
            return err_sys(e, "make cgroup %s", name);
    /* The kernel counts a refused fork in the group of the one who forks (v1, v2 before 6.11) or in
     * the one whose limit it was (v2 since): with the same limit in the run's group that is here.
     */
    snprintf(file, sizeof file, "%s/pids.max", name);
    TRY(set(c, &(struct cgroup_setting){CGROUP_PIDS, file, VALUE_PIDS}, limits, e));
    return open_enter_all(c, name, fds, e);
}

static void count(const struct cgroup *c, const char *run, bool before_kill,
                  struct message_group_ended *ret)
{
    char     path[64];
    uint64_t value;

    for (const struct cgroup_counter *row = found.version->counters; row->file; row++) {
        if (row->before_kill != before_kill || found.of[row->controller] < 0)
            continue;
        snprintf(path, sizeof path, "%s/%s", run, row->file);
        /* A group that could not be made counts nothing. */
        if (cgroup_file_get(c->dirs[found.of[row->controller]], path, row->word, &value) < 0)
            continue;
        uint64_t *to = (uint64_t *)(void *)((char *)ret + row->offset);
        if (value / row->divide_by > *to)
            *to = value / row->divide_by;
    }
}

/* One that was never made has no members. */
static int kill_run(const struct cgroup *c, const char *name)
{
    char       path[64];
    autofd int dir =
        openat(c->dirs[found.of[CGROUP_PIDS]], name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (dir < 0)
        return errno == ENOENT ? 0 : -1;
    snprintf(path, sizeof path, "/%s%u/%s", name_prefix(), c->slot, name);
    found.version->kill(dir, path);
    return 0;
}

int cgroup_end_run(const struct cgroup *c, uint32_t run, struct message_group_ended *ret)
{
    char name[32];

    *ret = (struct message_group_ended){0};
    run_name(run, name, sizeof name);
    count(c, name, true, ret);
    TRY(kill_run(c, name));
    count(c, name, false, ret);
    return 0;
}

int cgroup_kill_refused(const struct cgroup *c, uint32_t run)
{
    struct message_group_ended counters = {0};
    char                       name[32];

    run_name(run, name, sizeof name);
    count(c, name, true, &counters);
    return counters.forks_refused > 0 ? kill_run(c, name) : 0;
}

void cgroup_remove_run(const struct cgroup *c, uint32_t run)
{
    char name[32];

    run_name(run, name, sizeof name);
    for (int i = 0; i < c->n; i++)
        remove_dir(c->dirs[i], name);
}

/* ---- what dead sandboxes left ---- */

static void sweep_slot(int parent, const char *name, int locks, unsigned slot)
{
    char path[NAME_MAX + 2];

    if (lock(locks, slot, F_WRLCK) < 0)
        return; /* alive */
    snprintf(path, sizeof path, "/%s", name);
    remove_tree(parent, name, path);
    lock(locks, slot, F_UNLCK);
}

/* Hierarchy by hierarchy: who stands in the same place of one may stand elsewhere in another. */
static int sweep_hierarchy(int i, struct err *e)
{
    autofd int     locks = open_locks(i, e);
    int            fd = locks < 0 ? -1 : open_parent(i, e);
    DIR           *dir = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *d;
    unsigned       slot;
    char           name[32];

    if (!dir)
        return -1;
    while ((d = readdir(dir)))
        if (d->d_type == DT_DIR && str_starts(d->d_name, name_prefix()) &&
            sscanf(d->d_name + strlen(name_prefix()), "%u", &slot) == 1 && slot < IDRANGE_SLOTS) {
            snprintf(name, sizeof name, "%s%u", name_prefix(), slot);
            sweep_slot(fd, name, locks, slot);
        }
    closedir(dir);
    return 0;
}

int cgroup_sweep(struct err *e)
{
    TRY(idrange_look(e));
    TRY(cgroup_find(e));
    for (int i = 0; i < found.n; i++)
        TRY(sweep_hierarchy(i, e));
    return 0;
}
