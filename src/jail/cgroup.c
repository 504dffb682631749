#include "jail/cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "jail/idrange.h"

enum controller { MEMORY, CPU, PIDS, CPUACCT, CONTROLLERS };

/* Which hierarchy (an index into dirs) each controller lives in, and where that is. */
struct hierarchies {
    int  n;
    int  of[CONTROLLERS];                         /* -1: not on this machine */
    char paths[CGROUP_HIERARCHIES_MAX][PATH_MAX]; /* the jail's own cgroup there */
};

static const struct {
    const char *name;
    bool        required;
} controllers[CONTROLLERS] = {
    [MEMORY] = {"memory", true},
    [CPU] = {"cpu", true},
    [PIDS] = {"pids", true},
    [CPUACCT] = {"cpuacct", false}, /* without it, CPU time is what wait4 tells */
};

static struct hierarchies found; /* the same for all sandboxes of a process; filled once */

/* ---- where the hierarchies are ---- */

static bool list_has(const char *list, const char *word)
{
    size_t n = strlen(word);

    for (const char *p = list; (p = strstr(p, word)); p += n)
        if ((p == list || p[-1] == ',') && (p[n] == ',' || p[n] == '\0'))
            return true;
    return false;
}

/* The path of this process in the hierarchy of a controller, from lines `ID:controllers:path`. */
static char *own_path(char *cgroups, const char *controller)
{
    char *save = NULL, *result = NULL, *copy = strdup(cgroups);

    if (!copy)
        abort();
    for (char *line = strtok_r(copy, "\n", &save); line && !result;
         line = strtok_r(NULL, "\n", &save)) {
        char *names = strchr(line, ':'), *path = names ? strchr(names + 1, ':') : NULL;
        if (!path)
            continue;
        *path++ = '\0';
        if (list_has(names + 1, controller))
            result = strdup(path);
    }
    free(copy);
    return result;
}

/* One line of mountinfo: `… root mountpoint options … - cgroup source superoptions`. */
static bool parse_mount(char *line, char **ret_root, char **ret_point, char **ret_options)
{
    char *rest = strstr(line, " - cgroup "), *fields[6], *save = NULL;
    int   n = 0;

    if (!rest)
        return false;
    *rest = '\0';
    for (char *f = strtok_r(line, " ", &save); f && n < 6; f = strtok_r(NULL, " ", &save))
        fields[n++] = f;
    char *options = strrchr(rest + 1, ' ');
    if (n < 5 || !options)
        return false;
    *ret_root = fields[3];
    *ret_point = fields[4];
    *ret_options = options + 1;
    return true;
}

/* Where an ordinary user's groups stand, below each hierarchy, once root made it over to him. */
static void user_path(char *ret, size_t size, const char *point, uid_t uid)
{
    snprintf(ret, size, "%s/jerboa/%u", point, (unsigned)uid);
}

/* The own cgroup where that may be written, so that limits on it hold; else the user's. */
static void choose_path(char path[PATH_MAX], const char *point)
{
    char users[PATH_MAX];

    user_path(users, sizeof users, point, getuid());
    if (access(path, W_OK) < 0 && access(users, W_OK) == 0)
        str_copy(path, PATH_MAX, users);
}

static int add_hierarchy(const char *root, const char *point, const char *own)
{
    char path[PATH_MAX];

    /* In a container the mount shows a subtree: its root is a prefix of our path. */
    size_t n = strcmp(root, "/") == 0 ? 0 : strlen(root);
    if (strncmp(own, root, n) == 0 && (own[n] == '/' || own[n] == '\0'))
        own += n;
    snprintf(path, sizeof path, "%s%s", point, strcmp(own, "/") == 0 ? "" : own);
    choose_path(path, point);
    for (int i = 0; i < found.n; i++)
        if (strcmp(found.paths[i], path) == 0)
            return i;
    if (found.n == CGROUP_HIERARCHIES_MAX ||
        str_copy(found.paths[found.n], sizeof found.paths[0], path) < 0)
        return -1;
    return found.n++;
}

static void find_controller(enum controller which, char *mounts, char *cgroups)
{
    autofree char *copy = strdup(mounts);
    autofree char *own = own_path(cgroups, controllers[which].name);
    char          *save = NULL, *root, *point, *options;

    found.of[which] = -1;
    if (!own || !copy)
        return;
    for (char *line = strtok_r(copy, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
        if (parse_mount(line, &root, &point, &options) &&
            list_has(options, controllers[which].name)) {
            found.of[which] = add_hierarchy(root, point, own);
            return;
        }
}

static int find_hierarchies(struct err *e)
{
    autofree char *mounts = NULL, *cgroups = NULL;

    if (found.n > 0)
        return 0;
    TRY(file_read_text(AT_FDCWD, "/proc/self/mountinfo", 1 << 20, &mounts, e));
    TRY(file_read_text(AT_FDCWD, "/proc/self/cgroup", 1 << 16, &cgroups, e));
    for (int i = 0; i < CONTROLLERS; i++) {
        find_controller((enum controller)i, mounts, cgroups);
        if (found.of[i] < 0 && controllers[i].required) {
            err_set(e, ERR_UNAVAILABLE, "no cgroup v1 controller '%s' is mounted",
                    controllers[i].name);
            e->sys = ENODEV;
            return -1;
        }
    }
    return 0;
}

int cgroup_find(struct err *e)
{
    TRY(find_hierarchies(e));
    for (int i = 0; i < found.n; i++)
        if (access(found.paths[i], W_OK) < 0)
            return err_sys(e, "%s", found.paths[i]);
    return 0;
}

const char *cgroup_lock_file(void)
{
    static char path[PATH_MAX + 16];

    snprintf(path, sizeof path, "%s/cgroup.procs", found.paths[found.of[MEMORY]]);
    return path;
}

/* ---- small files ---- */

static int put(int dir, const char *name, int64_t value, struct err *e)
{
    char       text[32];
    autofd int fd = openat(dir, name, O_WRONLY | O_CLOEXEC);

    snprintf(text, sizeof text, "%lld", (long long)value);
    if (fd < 0 || write(fd, text, strlen(text)) < 0)
        return err_sys(e, "cgroup file %s", name);
    return 0;
}

/* The number behind `word ` in a file of words and numbers, or the file's only number when word is
 * NULL; 0 when there is none. */
static uint64_t get(int dir, const char *name, const char *word)
{
    autofree char *text = NULL;
    const char    *p;

    if (dir < 0 || file_read_text(dir, name, 1 << 16, &text, NULL) < 0)
        return 0;
    for (p = text; word && (p = strstr(p, word)); p++)
        if ((p == text || p[-1] == '\n') && p[strlen(word)] == ' ')
            break;
    if (!p)
        return 0;
    return strtoull(word ? p + strlen(word) : p, NULL, 10);
}

static int make_dir(int parent, const char *name, struct err *e)
{
    int fd;

    if (mkdirat(parent, name, 0755) < 0 && errno != EEXIST)
        return err_sys(e, "make cgroup %s", name);
    fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? err_sys(e, "open cgroup %s", name) : fd;
}

static int open_tasks(int dir, const char *group, struct err *e)
{
    char path[64];
    int  fd;

    snprintf(path, sizeof path, "%s/tasks", group);
    fd = openat(dir, path, O_WRONLY | O_CLOEXEC);
    return fd < 0 ? err_sys(e, "cgroup file %s", path) : fd;
}

static int open_all_tasks(const struct cgroup *c, const char *group, int *fds, struct err *e)
{
    for (int i = 0; i < c->n; i++) {
        fds[i] = open_tasks(c->dirs[i], group, e);
        if (fds[i] < 0) {
            while (i > 0)
                fd_close(&fds[--i]);
            return -1;
        }
    }
    return c->n;
}

/* ---- ending what is inside ---- */

/* Whether a line of /proc/PID/cgroup ends in the path, or goes on below it. */
static bool has_path(const char *text, const char *path)
{
    for (const char *p = text; (p = strstr(p, path)); p++)
        if (strchr("\n/", p[strlen(path)]))
            return true;
    return false;
}

/* Kills one process, if it is still the one that the group listed: between the list and the signal
 * its pid may have become another's. */
static void kill_member(pid_t pid, const char *group_path)
{
    autofd int     fd = pidfd_open(pid, 0);
    autofree char *text = NULL;
    char           path[64];

    snprintf(path, sizeof path, "/proc/%d/cgroup", (int)pid);
    if (fd < 0 || file_read_text(AT_FDCWD, path, 1 << 16, &text, NULL) < 0)
        return;
    if (has_path(text, group_path))
        pidfd_send_signal(fd, SIGKILL, NULL, 0);
}

/* One round over the members; returns how many there were. */
static int kill_members(int dir, const char *group_path)
{
    autofree char *text = NULL;
    char          *save = NULL;
    int            n = 0;

    if (file_read_text(dir, "cgroup.procs", 64 << 20, &text, NULL) < 0)
        return errno == ENODEV || errno == ENOENT ? 0 : 1; /* not to be read is not empty */
    for (char *p = strtok_r(text, "\n", &save); p; p = strtok_r(NULL, "\n", &save), n++)
        kill_member((pid_t)atol(p), group_path);
    return n;
}

static void pause_ms(long ms)
{
    struct timespec t = {0, ms * 1000000};

    nanosleep(&t, NULL);
}

/* With pids.max at 0 nothing can fork any more, so two or three rounds always suffice; the bound is
 * for processes that the kernel does not let die. */
static void kill_group(int dir, const char *group_path)
{
    put(dir, "pids.max", 0, NULL);
    for (int round = 0; round < 2000 && kill_members(dir, group_path) > 0; round++)
        if (round > 0)
            pause_ms(1);
}

static int remove_dir(int parent, const char *name)
{
    for (int i = 0; i < 200; i++) {
        if (unlinkat(parent, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
            return 0;
        if (errno != EBUSY)
            break;
        pause_ms(1); /* the last member is dead but not yet gone */
    }
    return -1;
}

/* Removes parent/name with all groups below; members are killed where pids can be bounded. */
static void remove_tree(int parent, const char *name, const char *path)
{
    autofd int     fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR           *dir = fd < 0 ? NULL : fdopendir(fcntl(fd, F_DUPFD_CLOEXEC, 3));
    struct dirent *d;

    if (!dir)
        return;
    while ((d = readdir(dir)))
        if (d->d_type == DT_DIR && d->d_name[0] != '.') {
            autofree char *below = str_format("%s/%s", path, d->d_name);
            remove_tree(fd, d->d_name, below);
        }
    closedir(dir);
    kill_group(fd, path);
    remove_dir(parent, name);
}

/* ---- sandboxes ---- */

static const char name_prefix[] = "jerboa-";

static int open_parent(int hierarchy, struct err *e)
{
    int fd = open(found.paths[hierarchy], O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    return fd < 0 ? err_sys(e, "%s", found.paths[hierarchy]) : fd;
}

static void remove_slot(unsigned slot)
{
    char path[32], *name = path + 1;

    snprintf(path, sizeof path, "/%s%u", name_prefix, slot);
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
        snprintf(path, sizeof path, "%s/%s%u", found.paths[i], name_prefix, slot);
        if (access(path, F_OK) == 0)
            return true;
    }
    return false;
}

static int make_levels(int hierarchy, unsigned slot, struct err *e)
{
    char       name[32];
    autofd int parent = open_parent(hierarchy, e), dir = -1, init = -1, box = -1;

    snprintf(name, sizeof name, "%s%u", name_prefix, slot);
    if (parent < 0)
        return -1;
    dir = make_dir(parent, name, e);
    init = dir < 0 ? -1 : make_dir(dir, "init", e);
    box = init < 0 ? -1 : make_dir(dir, "box", e);
    return box < 0 ? -1 : take_fd(&dir);
}

static int limit_memory(int dir, const char *group, int64_t bytes, struct err *e)
{
    char name[64];

    snprintf(name, sizeof name, "%s/memory.limit_in_bytes", group);
    TRY(put(dir, name, bytes, e));
    snprintf(name, sizeof name, "%s/memory.memsw.limit_in_bytes", group);
    put(dir, name, bytes, NULL); /* only kernels that account swap have it */
    return 0;
}

static int set_limits(const struct cgroup *c, const struct cgroup_limits *limits, struct err *e)
{
    enum { PERIOD_US = 100000 };
    int memory = c->dirs[found.of[MEMORY]], cpu = c->dirs[found.of[CPU]];

    TRY(limit_memory(memory, "box", limits->memory_bytes, e));
    TRY(limit_memory(memory, "init", limits->init_memory_bytes, e));
    TRY(put(cpu, "box/cpu.cfs_period_us", PERIOD_US, e));
    TRY(put(cpu, "box/cpu.cfs_quota_us", limits->cpus_milli * PERIOD_US / 1000, e));
    return put(c->dirs[found.of[PIDS]], "box/pids.max", limits->pids, e);
}

int cgroup_make(unsigned slot, const struct cgroup_limits *limits, struct cgroup *ret,
                struct err *e)
{
    struct cgroup c = {.slot = slot};

    TRY(find_hierarchies(e));
    if (slot_is_used(slot)) /* the slot is ours: its last owner was killed */
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
    cgroup_remove(&c);
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
        snprintf(path, sizeof path, "%s/%s%u", found.paths[i], name_prefix, c->slot);
        if (unlinkat(c->dirs[i], "init", AT_REMOVEDIR) < 0 || rmdir(path) < 0)
            return false;
    }
    return true;
}

void cgroup_remove(struct cgroup *c)
{
    if (!remove_empty(c))
        remove_slot(c->slot);
    while (c->n > 0)
        fd_close(&c->dirs[--c->n]);
}

int cgroup_open_init(const struct cgroup *c, int fds[CGROUP_HIERARCHIES_MAX], struct err *e)
{
    return open_all_tasks(c, "init", fds, e);
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
    /* v1 counts a refused fork in the group of the one who forks, if that group has a limit. */
    snprintf(file, sizeof file, "%s/pids.max", name);
    TRY(put(c->dirs[found.of[PIDS]], file, limits->pids, e));
    return open_all_tasks(c, name, fds, e);
}

static int open_run(const struct cgroup *c, enum controller which, const char *name)
{
    if (found.of[which] < 0)
        return -1;
    return openat(c->dirs[found.of[which]], name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

void cgroup_end_run(const struct cgroup *c, uint32_t run, struct message_group_ended *ret)
{
    char name[32], path[64];

    run_name(run, name, sizeof name);
    snprintf(path, sizeof path, "/%s%u/%s", name_prefix, c->slot, name);
    autofd int pids = open_run(c, PIDS, name), memory = open_run(c, MEMORY, name),
               cpuacct = open_run(c, CPUACCT, name);
    /* Before kill_group, which refuses forks itself. A group that could not be made counts nothing.
     */
    ret->forks_refused = get(pids, "pids.events", "max");
    if (pids >= 0)
        kill_group(pids, path);
    ret->oom_kills = get(memory, "memory.oom_control", "oom_kill");
    ret->peak_bytes = get(memory, "memory.max_usage_in_bytes", NULL);
    ret->cpu_us = get(cpuacct, "cpuacct.usage", NULL) / 1000;
    for (int i = 0; i < c->n; i++)
        remove_dir(c->dirs[i], name);
}

/* ---- what dead sandboxes left ---- */

static void sweep_slot(unsigned slot)
{
    const char    *file = idrange_is_possible(NULL) ? idrange_file : cgroup_lock_file();
    struct idrange lock;

    if (idrange_take_slot(slot, &lock, file, NULL) < 0)
        return; /* alive */
    remove_slot(slot);
    idrange_release(&lock);
}

int cgroup_sweep(struct err *e)
{
    TRY(find_hierarchies(e));
    for (int i = 0; i < found.n; i++) {
        int            fd = open_parent(i, e);
        DIR           *dir = fd < 0 ? NULL : fdopendir(fd);
        struct dirent *d;
        unsigned       slot;

        if (!dir)
            return -1;
        while ((d = readdir(dir)))
            if (d->d_type == DT_DIR && sscanf(d->d_name, "jerboa-%u", &slot) == 1)
                sweep_slot(slot);
        closedir(dir);
    }
    return 0;
}

/* ---- making over ---- */

/* The directory, to make groups in; `tasks` and `cgroup.procs`, to come in and to lock. The files
 * with the limits stay root's, so that what root writes there bounds all that the user starts. */
static int give(const char *path, uid_t uid, struct err *e)
{
    static const char *const files[] = {"", "/tasks", "/cgroup.procs"};

    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        autofree char *file = str_format("%s%s", path, files[i]);
        if (chown(file, uid, (gid_t)-1) < 0)
            return err_sys(e, "%s", file);
    }
    return 0;
}

static int make_over(const char *point, uid_t uid, struct err *e)
{
    char path[PATH_MAX], *slash;

    user_path(path, sizeof path, point, uid);
    slash = strrchr(path, '/');
    *slash = '\0';
    if (mkdir(path, 0755) < 0 && errno != EEXIST)
        return err_sys(e, "make cgroup %s", path);
    *slash = '/';
    if (mkdir(path, 0755) < 0 && errno != EEXIST)
        return err_sys(e, "make cgroup %s", path);
    return give(path, uid, e);
}

int cgroup_delegate(uid_t uid, struct err *e)
{
    autofree char *mounts = NULL;
    char          *save = NULL, *root, *point, *options;
    int            n = 0;

    TRY(file_read_text(AT_FDCWD, "/proc/self/mountinfo", 1 << 20, &mounts, e));
    for (char *line = strtok_r(mounts, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        bool wanted = false;
        if (!parse_mount(line, &root, &point, &options))
            continue;
        for (int i = 0; i < CONTROLLERS; i++)
            wanted |= list_has(options, controllers[i].name);
        if (wanted) {
            TRY(make_over(point, uid, e));
            n++;
        }
    }
    if (n == 0)
        return err_set(e, ERR_UNAVAILABLE, "no cgroup v1 controller is mounted");
    return 0;
}
