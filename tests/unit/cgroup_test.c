/* Both versions of cgroups on a tree of plain files. What the kernel does by itself is done here in
 * its place: a new directory has its files at once, and a directory without groups can be removed
 * with them (the linker leads mkdir, mkdirat, unlinkat, rmdir and cgroup_file_put here: see
 * meson.build). What only the kernel can do, tests/guest shows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "jail/cgroup.h"
#include "jail/cgroup_version.h"
#include "jail/idrange.h"

enum { SLOT = 7 };

/* ---- the kernel's part ---- */

struct file {
    const char *name, *text;
};

static const struct file files_v1[] = {
    {"tasks", ""},
    {"cgroup.procs", ""},
    {"memory.limit_in_bytes", ""},
    {"memory.memsw.limit_in_bytes", ""},
    {"memory.swappiness", ""},
    {"memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n"},
    {"memory.max_usage_in_bytes", "5000000\n"},
    {"cpu.cfs_period_us", ""},
    {"cpu.cfs_quota_us", ""},
    {"cpuacct.usage", "12345678\n"},
    {"pids.max", ""},
    {"pids.events", "max 4\n"},
    {0},
};

static const struct file files_v2[] = {
    {"cgroup.procs", ""},
    {"cgroup.controllers", "cpuset cpu io memory pids\n"},
    {"cgroup.subtree_control", ""},
    {"cgroup.events", "populated 0\nfrozen 0\n"},
    {"cgroup.kill", ""},
    {"memory.max", ""},
    {"memory.swap.max", ""},
    {"memory.events", "low 0\nhigh 0\nmax 9\noom 8\noom_kill 3\noom_group_kill 0\n"},
    {"memory.current", "4000000\n"},
    {"memory.peak", "5000000\n"},
    {"cpu.max", ""},
    {"cpu.stat", "usage_usec 12345\nuser_usec 12000\nsystem_usec 345\n"},
    {"pids.max", ""},
    {"pids.events", "max 4\n"},
    {0},
};

static const struct file *files;
static const char        *without;   /* a file that this kernel does not have, or NULL */
static const char        *refused;   /* a group that it does not make, or NULL */
static const char        *exhausted; /* a file for which no descriptor is left, or NULL */

int __real_mkdirat(int dir, const char *path, mode_t mode);
int __wrap_mkdirat(int dir, const char *path, mode_t mode);
int __real_unlinkat(int dir, const char *path, int flags);
int __wrap_unlinkat(int dir, const char *path, int flags);
int __wrap_rmdir(const char *path);
int __real_cgroup_file_put(int dir, const char *name, const char *text, struct err *e);
int __wrap_cgroup_file_put(int dir, const char *name, const char *text, struct err *e);
int __real_mkdir(const char *path, mode_t mode);
int __wrap_mkdir(const char *path, mode_t mode);

static void populate(int dir)
{
    for (const struct file *f = files; f->name; f++)
        if (!without || strcmp(f->name, without) != 0)
            assert_int_equal(file_write_text(dir, f->name, f->text, NULL), 0);
}

int __wrap_mkdirat(int dir, const char *path, mode_t mode)
{
    if (refused && strcmp(path, refused) == 0) {
        errno = ENOSPC;
        return -1;
    }
    if (__real_mkdirat(dir, path, mode) < 0)
        return -1;
    autofd int made = openat(dir, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    populate(made);
    return 0;
}

int __wrap_unlinkat(int dir, const char *path, int flags)
{
    autofd int     fd = openat(dir, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR           *d = fd < 0 ? NULL : fdopendir(dup(fd));
    struct dirent *entry;

    assert_int_equal(flags, AT_REMOVEDIR);
    while (d && (entry = readdir(d)))
        if (entry->d_type == DT_DIR && entry->d_name[0] != '.') {
            closedir(d);
            errno = EBUSY;
            return -1;
        }
    if (d)
        closedir(d);
    for (const struct file *f = files; fd >= 0 && f->name; f++)
        __real_unlinkat(fd, f->name, 0);
    return __real_unlinkat(dir, path, flags);
}

int __wrap_mkdir(const char *path, mode_t mode)
{
    return __wrap_mkdirat(AT_FDCWD, path, mode);
}

int __wrap_rmdir(const char *path)
{
    return __wrap_unlinkat(AT_FDCWD, path, AT_REMOVEDIR);
}

/* A group with processes takes no controllers (see block). */
int __wrap_cgroup_file_put(int dir, const char *name, const char *text, struct err *e)
{
    if (exhausted && strcmp(name, exhausted) == 0) {
        errno = EMFILE;
        return err_sys(e, "cgroup file %s", name);
    }
    if (__real_cgroup_file_put(dir, name, text, e) == 0)
        return 0;
    if (errno == EISDIR)
        errno = EBUSY;
    return err_sys(e, "cgroup file %s", name);
}

/* ---- the tree ---- */

static char root[64];

/* Sandboxes of those who have no uid ranges are called jerboa-u7. */
static void rename_slot(char *path, size_t size)
{
    char *name = strstr(path, "/jerboa-"), *digit = name ? name + strlen("/jerboa-") : NULL;

    if (!digit || *digit < '0' || *digit > '9' || idrange_is_possible(NULL))
        return;
    assert_true(strlen(path) + 2 <= size);
    memmove(digit + 1, digit, strlen(digit) + 1);
    *digit = 'u';
}

/* A path in the tree. */
static const char *at(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static const char *at(const char *fmt, ...)
{
    static char paths[4][512];
    static int  turn;
    char       *path = paths[turn++ % 4];
    va_list     ap;
    int         n = snprintf(path, sizeof paths[0], "%s/", root);

    va_start(ap, fmt);
    vsnprintf(path + n, sizeof paths[0] - (size_t)n, fmt, ap);
    va_end(ap);
    rename_slot(path, sizeof paths[0]);
    return path;
}

static void group(const char *name)
{
    assert_int_equal(__wrap_mkdirat(AT_FDCWD, at("%s", name), 0755), 0);
}

static void put(const char *name, const char *text)
{
    assert_int_equal(file_write_text(AT_FDCWD, at("%s", name), text, NULL), 0);
}

static void assert_text(const char *name, const char *expected)
{
    autofree char *text = NULL;

    if (file_read_text(AT_FDCWD, at("%s", name), 1 << 16, &text, NULL) < 0)
        fail_msg("%s is not there", name);
    assert_string_equal(text, expected);
}

static bool exists(const char *name)
{
    return access(at("%s", name), F_OK) == 0;
}

static mode_t mode_of(const char *name)
{
    struct stat st;

    assert_int_equal(stat(at("%s", name), &st), 0);
    return st.st_mode & 07777;
}

static int start_tree(const struct file *kernel)
{
    assert_int_equal(idrange_look(NULL), 0); /* names follow it */
    files = kernel;
    without = refused = exhausted = NULL;
    strcpy(root, "/var/tmp/cgroup-test-XXXXXX"); /* a disk: tmpfs may not have user.* attributes */
    return mkdtemp(root) ? 0 : -1;
}

static int setup_v1(void **state)
{
    (void)state;
    return start_tree(files_v1);
}

static int setup_v2(void **state)
{
    (void)state;
    if (start_tree(files_v2) < 0)
        return -1;
    autofd int dir = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    populate(dir);
    return 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st, (void)type, (void)ftw;
    return remove(path);
}

static int teardown(void **state)
{
    (void)state;
    return nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* ---- where groups are made ---- */

/* cpu and cpuacct together, as systemd mounts them; another one that is nobody's business. */
static const char *mounts_v1(void)
{
    static char mounts[1024];

    snprintf(mounts, sizeof mounts,
             "21 1 0:19 / /sys rw,nosuid - sysfs sysfs rw\n"
             "30 21 0:26 / %s/freezer rw - cgroup cgroup rw,freezer\n"
             "31 21 0:27 / %s/memory rw,nosuid shared:9 - cgroup cgroup rw,memory\n"
             "32 21 0:28 / %s/cpu rw,nosuid - cgroup cgroup rw,cpu,cpuacct\n"
             "33 21 0:29 /docker/abc %s/pids rw - cgroup cgroup rw,pids\n"
             "34 21 0:30 / %s/unified rw - cgroup2 cgroup2 rw\n",
             root, root, root, root, root);
    return mounts;
}

static int find_v1(const char *own, struct err *e)
{
    char cgroups[512];

    snprintf(cgroups, sizeof cgroups,
             "5:freezer:/\n4:pids:/docker/abc%s\n3:cpu,cpuacct:%s\n2:memory:%s\n0::/elsewhere\n",
             own, own, own);
    return cgroup_find_in(mounts_v1(), cgroups, e);
}

static int find_v2(const char *own, struct err *e)
{
    char mounts[256], cgroups[512];

    snprintf(mounts, sizeof mounts,
             "21 1 0:19 / /sys rw,nosuid - sysfs sysfs rw\n"
             "30 21 0:26 / %s rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n",
             root);
    snprintf(cgroups, sizeof cgroups, "0::%s\n", own);
    return cgroup_find_in(mounts, cgroups, e);
}

static const struct cgroup_limits limits = {
    .memory_bytes = 209715200, .init_memory_bytes = 33554432, .cpus_milli = 1500, .pids = 77};

/* Makes a sandbox and asserts that it stands in this group. */
static struct cgroup make_in(const char *place)
{
    struct cgroup c;
    struct err    e = {0};

    if (cgroup_make(SLOT, &limits, &c, &e) < 0)
        fail_msg("%s", e.msg);
    if (access(at("%s/jerboa-%d/init", place, SLOT), F_OK) < 0 ||
        access(at("%s/jerboa-%d/box", place, SLOT), F_OK) < 0)
        fail_msg("it does not stand in %s", place);
    return c;
}

static void make_v1_groups(void)
{
    group("memory"), group("cpu"), group("pids"), group("freezer"), group("unified");
    group("memory/own"), group("cpu/own"), group("pids/own");
}

/* What is written to the descriptors arrives in these files. */
static void assert_enters(const int *fds, int n, const char *const *names, int n_names)
{
    assert_int_equal(n, n_names);
    for (int i = 0; i < n; i++) {
        assert_int_equal(write(fds[i], "0", 1), 1);
        close(fds[i]);
    }
    for (int i = 0; i < n_names; i++)
        assert_text(names[i], "0");
}

/* Ends a run, and finds what the kernel's files say. */
static void assert_counted(const struct cgroup *c, uint32_t run)
{
    struct message_group_ended counters;

    cgroup_end_run(c, run, &counters);
    cgroup_remove_run(c, run);
    assert_int_equal(counters.oom_kills, 3);
    assert_int_equal(counters.forks_refused, 4);
    assert_int_equal(counters.peak_bytes, 5000000);
    assert_int_equal(counters.cpu_us, 12345);
}

static void test_v1(void **state)
{
    static const char *const init[] = {"memory/own/jerboa-7/init/tasks",
                                       "cpu/own/jerboa-7/init/tasks",
                                       "pids/own/jerboa-7/init/tasks"};
    static const char *const run[] = {"memory/own/jerboa-7/box/run-3/tasks",
                                      "cpu/own/jerboa-7/box/run-3/tasks",
                                      "pids/own/jerboa-7/box/run-3/tasks"};
    int                      fds[CGROUP_HIERARCHIES_MAX];

    (void)state;
    make_v1_groups();
    assert_int_equal(find_v1("/own", NULL), 0);
    struct cgroup c = make_in("memory/own");
    assert_text("memory/own/jerboa-7/box/memory.limit_in_bytes", "209715200");
    assert_text("memory/own/jerboa-7/box/memory.memsw.limit_in_bytes", "209715200");
    assert_text("memory/own/jerboa-7/box/memory.swappiness", "0");
    assert_text("memory/own/jerboa-7/init/memory.swappiness", "0");
    assert_text("memory/own/jerboa-7/init/memory.limit_in_bytes", "33554432");
    assert_text("cpu/own/jerboa-7/box/cpu.cfs_period_us", "100000");
    assert_text("cpu/own/jerboa-7/box/cpu.cfs_quota_us", "150000");
    assert_text("pids/own/jerboa-7/box/pids.max", "77");
    assert_enters(fds, cgroup_open_init(&c, fds, NULL), init, 3);
    assert_enters(fds, cgroup_make_run(&c, &limits, 3, fds, NULL), run, 3);
    assert_text("pids/own/jerboa-7/box/run-3/pids.max", "77");

    assert_counted(&c, 3);
    assert_false(exists("memory/own/jerboa-7/box/run-3"));
    assert_false(exists("cpu/own/jerboa-7/box/run-3"));
    cgroup_remove_box(&c);
    cgroup_remove(&c);
    assert_false(exists("memory/own/jerboa-7"));
    assert_false(exists("pids/own/jerboa-7"));
}

static void test_v1_without_swap(void **state)
{
    (void)state;
    without = "memory.memsw.limit_in_bytes";
    make_v1_groups();
    assert_int_equal(find_v1("/own", NULL), 0);
    struct cgroup c = make_in("memory/own");
    cgroup_remove(&c);
}

/* The first group cannot be made whole: nothing of it stays. */
static void test_v1_half_made(void **state)
{
    struct cgroup c;
    struct err    e = {0};

    (void)state;
    make_v1_groups();
    assert_int_equal(find_v1("/own", NULL), 0);
    refused = "box";
    assert_int_equal(cgroup_make(SLOT, &limits, &c, &e), -1);
    assert_non_null(strstr(e.msg, "make cgroup box: No space left"));
    assert_false(exists("memory/own/jerboa-7"));
}

/* Own groups in some hierarchies only: then a user's own are used in all of them, or none. */
static void test_v1_made_over(void **state)
{
    struct err  e = {0};
    char        place[64], owned[64];
    struct stat st;
    mode_t      mask;

    (void)state;
    make_v1_groups();
    group("pids/half"); /* memory and cpu have none */
    assert_int_equal(find_v1("/half", &e), -1);
    assert_non_null(strstr(e.msg, "/memory/half: No such file or directory"));

    mask = umask(077); /* root's, often */
    assert_int_equal(cgroup_v1_delegate(mounts_v1(), getuid(), NULL), 0);
    umask(mask);
    assert_int_equal(mode_of("memory/jerboa"), 0755);
    assert_int_equal(chmod(at("memory/jerboa"), 0700), 0);
    assert_int_equal(cgroup_v1_delegate(mounts_v1(), getuid(), NULL),
                     0); /* once more is no error, and mends */
    assert_int_equal(mode_of("memory/jerboa"), 0755);
    assert_false(exists("freezer/jerboa"));
    assert_int_equal(find_v1("/half", NULL), 0);
    snprintf(place, sizeof place, "memory/jerboa/%u", (unsigned)getuid());
    struct cgroup c = make_in(place);
    snprintf(owned, sizeof owned, "pids/jerboa/%u/jerboa-7", (unsigned)getuid());
    assert_true(exists(owned));
    assert_false(exists("pids/half/jerboa-7"));
    cgroup_remove(&c);
    assert_int_equal(find_v1("/own", NULL), 0); /* where the own ones will do, they are used */
    c = make_in("memory/own");
    cgroup_remove(&c);

    if (getuid() != 0)
        return;
    assert_int_equal(cgroup_v1_delegate(mounts_v1(), 54321, NULL), 0);
    for (const char *const *name = (const char *const[]){"", "/tasks", "/cgroup.procs", NULL};
         *name; name++) {
        assert_int_equal(stat(at("cpu/jerboa/54321%s", *name), &st), 0);
        assert_int_equal(st.st_uid, 54321);
    }
    assert_int_equal(stat(at("cpu/jerboa/54321/cpu.cfs_quota_us"), &st), 0);
    assert_int_equal(st.st_uid, 0); /* limits stay root's */
}

static void test_v2(void **state)
{
    static const char *const init[] = {"own/jerboa-7/init/cgroup.procs"};
    static const char *const run[] = {"own/jerboa-7/box/run-3/cgroup.procs"};
    int                      fds[CGROUP_HIERARCHIES_MAX];

    (void)state;
    group("own");
    assert_int_equal(find_v2("/own", NULL), 0);
    assert_text("own/cgroup.subtree_control", "+memory +pids +cpu");
    struct cgroup c = make_in("own");
    assert_text("own/jerboa-7/cgroup.subtree_control", "+memory +pids +cpu");
    assert_text("own/jerboa-7/box/cgroup.subtree_control", "+memory +pids");
    assert_text("own/jerboa-7/init/cgroup.subtree_control", "");
    assert_text("own/jerboa-7/box/memory.max", "209715200");
    assert_text("own/jerboa-7/box/memory.swap.max", "0");
    assert_text("own/jerboa-7/init/memory.max", "33554432");
    assert_text("own/jerboa-7/init/memory.swap.max", "0");
    assert_text("own/jerboa-7/box/cpu.max", "150000 100000");
    assert_text("own/jerboa-7/box/pids.max", "77");
    assert_enters(fds, cgroup_open_init(&c, fds, NULL), init, 1);
    assert_enters(fds, cgroup_make_run(&c, &limits, 3, fds, NULL), run, 1);
    assert_text("own/jerboa-7/box/run-3/pids.max", "77");

    assert_counted(&c, 3);
    assert_false(exists("own/jerboa-7/box/run-3"));
    cgroup_remove_box(&c);
    cgroup_remove(&c);
    assert_false(exists("own/jerboa-7"));
}

static void test_v2_older_kernels(void **state)
{
    struct message_group_ended counters;
    int                        fds[CGROUP_HIERARCHIES_MAX];

    (void)state;
    group("own");
    assert_int_equal(find_v2("/own", NULL), 0);

    without = "memory.swap.max";
    struct cgroup c = make_in("own");
    cgroup_remove(&c);

    without = "memory.peak";
    c = make_in("own");
    assert_int_equal(cgroup_make_run(&c, &limits, 1, fds, NULL), 1);
    close(fds[0]);
    cgroup_end_run(&c, 1, &counters);
    cgroup_remove_run(&c, 1);
    assert_int_equal(counters.peak_bytes, 4000000);
    cgroup_remove(&c);

    /* A limit that cannot be set is not passed over. */
    without = "memory.max";
    struct err e = {0};
    assert_int_equal(cgroup_make(SLOT, &limits, &c, &e), -1);
    assert_non_null(strstr(e.msg, "box/memory.max"));
    assert_false(exists("own/jerboa-7"));
}

/* The kernel's side of a kill: once the file `told` of a group begins with this character, `answer`
 * holds the text. */
static pid_t start_kernel(const char *name, const char *told, char begin, const char *answer,
                          const char *text)
{
    struct timespec ms = {0, 1000000};
    pid_t           pid = fork();

    if (pid != 0)
        return pid;
    for (int i = 0; i < 10000; i++, nanosleep(&ms, NULL)) {
        autofree char *seen = NULL;
        if (file_read_text(AT_FDCWD, at("%s/%s", name, told), 16, &seen, NULL) == 0 &&
            seen[0] == begin)
            _exit(file_write_text(AT_FDCWD, at("%s/%s", name, answer), text, NULL));
    }
    _exit(9);
}

/* A sandbox in a group of its own, with run 1 in it, of which the kernel says that it has members.
 */
static struct cgroup make_populated(void)
{
    int fds[CGROUP_HIERARCHIES_MAX];

    group("own");
    assert_int_equal(find_v2("/own", NULL), 0);
    struct cgroup c = make_in("own");
    assert_int_equal(cgroup_make_run(&c, &limits, 1, fds, NULL), 1);
    close(fds[0]);
    put("own/jerboa-7/box/run-1/cgroup.events", "populated 1\n");
    return c;
}

/* The run ends once the kernel did its part. */
static void assert_ends(struct cgroup *c, pid_t kernel)
{
    struct message_group_ended counters;
    int                        status;

    cgroup_end_run(c, 1, &counters);
    cgroup_remove_run(c, 1);
    assert_int_equal(waitpid(kernel, &status, 0), kernel);
    assert_int_equal(status, 0);
    assert_false(exists("own/jerboa-7/box/run-1"));
    cgroup_remove(c);
}

static void test_v2_kill(void **state)
{
    (void)state;
    struct cgroup c = make_populated();
    assert_ends(&c, start_kernel("own/jerboa-7/box/run-1", "cgroup.kill", '1', "cgroup.events",
                                 "populated 0\n"));
}

/* Before Linux 5.14: by the list, whose members go once none can fork. A pid that has meanwhile
 * become another's is left alone. */
static void test_v2_without_kill(void **state)
{
    char pid[16];
    int  status;

    (void)state;
    without = "cgroup.kill";
    struct cgroup c = make_populated();
    pid_t         other = fork();
    if (other == 0) {
        alarm(10);
        pause();
        _exit(0);
    }
    snprintf(pid, sizeof pid, "%d\n", (int)other);
    put("own/jerboa-7/box/run-1/cgroup.procs", pid);
    /* '0' goes over the limit that was there: these files are plain */
    assert_ends(&c, start_kernel("own/jerboa-7/box/run-1", "pids.max", '0', "cgroup.procs", ""));
    assert_int_equal(waitpid(other, &status, WNOHANG), 0);
    kill(other, SIGKILL);
    assert_int_equal(waitpid(other, &status, 0), other);
}

static void test_kill_refused(void **state)
{
    int status;

    (void)state;
    struct cgroup c = make_populated();
    put("own/jerboa-7/box/run-1/pids.events", "max 0\n");
    cgroup_kill_refused(&c, 1);
    assert_text("own/jerboa-7/box/run-1/cgroup.kill", "");
    put("own/jerboa-7/box/run-1/pids.events", "max 1\n");
    pid_t kernel = start_kernel("own/jerboa-7/box/run-1", "cgroup.kill", '1', "cgroup.events",
                                "populated 0\n");
    cgroup_kill_refused(&c, 1);
    assert_int_equal(waitpid(kernel, &status, 0), kernel);
    assert_int_equal(status, 0);
    cgroup_remove(&c);
}

/* Alive is whose jail holds the lock. */
static void test_sweep(void **state)
{
    struct cgroup c;

    (void)state;
    group("own"), group("own/jerboa-4092"), group("own/jerboa-4092/box");
    group("own/jerboa-host");
    assert_int_equal(find_v2("/own", NULL), 0);
    assert_int_equal(cgroup_make(4093, &limits, &c, NULL), 0);
    assert_int_equal(cgroup_sweep(NULL), 0);
    assert_false(exists("own/jerboa-4092"));
    assert_true(exists("own/jerboa-4093/box"));
    assert_true(exists("own/jerboa-host"));
    close(c.locks[0]), close(c.dirs[0]); /* all that the kernel does when the jail is killed */
    assert_int_equal(cgroup_sweep(NULL), 0);
    assert_false(exists("own/jerboa-4093"));
}

/* What a dead sandbox left under the slot is gone before the new one is made. */
static void test_leftovers(void **state)
{
    (void)state;
    group("own"), group("own/jerboa-7"), group("own/jerboa-7/box"), group("own/jerboa-7/box/run-9");
    group("own/jerboa-8");
    assert_int_equal(find_v2("/own", NULL), 0);
    struct cgroup c = make_in("own");
    assert_false(exists("own/jerboa-7/box/run-9"));
    cgroup_remove(&c);
    assert_true(exists("own/jerboa-8"));
}

/* ---- the place on v2 ---- */

/* A group whose subtree_control takes nothing, as if it had processes. */
static void block(const char *name)
{
    unlink(at("%s/cgroup.subtree_control", name));
    assert_int_equal(__real_mkdir(at("%s/cgroup.subtree_control", name), 0755), 0);
}

static void test_place_above(void **state)
{
    (void)state;
    group("a.slice"), group("a.slice/b.slice"), group("a.slice/b.slice/x.scope");
    block("a.slice/b.slice/x.scope");
    put("a.slice/b.slice/cgroup.controllers", "memory pids\n"); /* cpu has to come from above */
    assert_int_equal(find_v2("/a.slice/b.slice/x.scope", NULL), 0);
    assert_text("a.slice/cgroup.subtree_control", "+memory +pids +cpu");
    assert_text("cgroup.subtree_control", "");
    struct cgroup c = make_in("a.slice/b.slice");
    cgroup_remove(&c);
}

/* Root's sandboxes do not stand in a user's group. */
static void test_place_of_others(void **state)
{
    (void)state;
    group("user.slice"), group("user.slice/app.slice"), group("user.slice/app.slice/x.scope");
    if (chown(at("user.slice/app.slice"), 1000, 1000) < 0 ||
        chown(at("user.slice/app.slice/x.scope"), 1000, 1000) < 0)
        skip(); /* not root */
    assert_int_equal(find_v2("/user.slice/app.slice/x.scope", NULL), 0);
    assert_text("user.slice/app.slice/cgroup.subtree_control", "");
    struct cgroup c = make_in("user.slice");
    cgroup_remove(&c);
}

static void test_place_enabled(void **state)
{
    (void)state;
    group("own");
    put("own/cgroup.subtree_control", "cpu memory pids\n");
    assert_int_equal(find_v2("/own", NULL), 0);
    assert_text("own/cgroup.subtree_control", "cpu memory pids\n");
}

static void test_place_host(void **state)
{
    (void)state;
    group("own"), group("own/jerboa-host");
    assert_int_equal(find_v2("/own/jerboa-host", NULL), 0);
    struct cgroup c = make_in("own");
    cgroup_remove(&c);
}

static void test_place_delegated(void **state)
{
    (void)state;
    group("own.service");
    put("own.service/cgroup.procs", "123456789\n");
    if (setxattr(at("own.service"), "user.delegate", "1", 1, 0) < 0)
        skip(); /* a file system without them */
    assert_int_equal(find_v2("/own.service", NULL), 0);
    assert_text("own.service/jerboa-host/cgroup.procs", "123456789");
    assert_text("own.service/cgroup.subtree_control", "+memory +pids +cpu");
    struct cgroup c = make_in("own.service");
    cgroup_remove(&c);
}

static void test_place_container(void **state)
{
    char mounts[256];

    (void)state;
    group("own");
    snprintf(mounts, sizeof mounts, "30 21 0:26 /docker/abc %s rw - cgroup2 cgroup2 rw\n", root);
    assert_int_equal(cgroup_find_in(mounts, "0::/docker/abc/own\n", NULL), 0);
    struct cgroup c = make_in("own");
    cgroup_remove(&c);
}

static void test_place_none(void **state)
{
    struct err e = {0};

    (void)state;
    assert_int_equal(cgroup_find_in("", "0::/\n", &e), -1);
    assert_string_equal(e.msg, "no mounted hierarchy has the cgroup controller 'memory'");

    put("cgroup.controllers", "cpu memory\n");
    assert_int_equal(find_v2("/", &e), -1);
    assert_non_null(strstr(e.msg, "has the cgroup controller 'pids'"));

    put("cgroup.controllers", "cpu memory pids\n");
    block(".");
    assert_int_equal(find_v2("/", &e), -1);
    assert_non_null(strstr(e.msg, "give controllers to the groups below"));
}

/* ---- what cannot be looked at just now ---- */

/* Finds the place with `n` descriptors to be had. */
static int find_with(int n, const char *own, struct err *e)
{
    struct rlimit saved, low;
    autofd int    lowest = open("/dev/null", O_RDONLY | O_CLOEXEC);
    int           r;

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &saved), 0);
    low = saved;
    low.rlim_cur = (rlim_t)lowest + (rlim_t)n;
    fd_close(&lowest);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
    r = find_v2(own, e);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &saved), 0);
    return r;
}

/* At each look that needs a descriptor: never another place, nor that there is none. */
static void test_v2_out_of_descriptors(void **state)
{
    int n = 0, r;

    (void)state;
    group("slice"), group("slice/own");
    block("slice/own");
    do {
        struct err e = {0};
        r = find_with(n, "/slice/own", &e);
        if (r < 0) {
            assert_int_equal(e.sys, EMFILE);
            assert_false(err_is_lasting(&e));
            assert_false(exists("slice/own/jerboa-host"));
        }
    } while (r < 0 && ++n < 10);
    assert_true(n > 1);
    struct cgroup c = make_in("slice");
    cgroup_remove(&c);
}

static int make_one(struct err *e)
{
    struct cgroup c;

    TRY(cgroup_make(SLOT, &limits, &c, e));
    cgroup_remove(&c);
    return 0;
}

/* No limit is left out for want of descriptors, the optional ones as little as the others. */
static void test_v1_out_of_descriptors(void **state)
{
    (void)state;
    make_v1_groups();
    assert_int_equal(find_v1("/own", NULL), 0);
    for (const struct cgroup_setting *s = cgroup_v1.settings; s->file; s++) {
        struct err e = {0};
        exhausted = s->file;
        assert_int_equal(make_one(&e), -1);
        assert_int_equal(e.sys, EMFILE);
        assert_false(err_is_lasting(&e));
        assert_false(exists("memory/own/jerboa-7"));
    }
    exhausted = NULL;
    assert_int_equal(make_one(NULL), 0);
}

/* Who sweeps holds the lock of a slot, and never for long. */
static void test_lock_of_another(void **state)
{
    struct flock all = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    struct err   e = {0};

    (void)state;
    make_v1_groups();
    assert_int_equal(find_v1("/own", NULL), 0);
    autofd int fd = open(at("cpu/own/cgroup.procs"), O_RDWR | O_CLOEXEC);
    assert_int_equal(fcntl(fd, F_OFD_SETLK, &all), 0);
    assert_int_equal(make_one(&e), -1);
    assert_int_equal(e.kind, ERR_TIMEOUT);
    assert_false(err_is_lasting(&e));
    assert_false(exists("memory/own/jerboa-7"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_v1, setup_v1, teardown),
        cmocka_unit_test_setup_teardown(test_v1_without_swap, setup_v1, teardown),
        cmocka_unit_test_setup_teardown(test_v1_half_made, setup_v1, teardown),
        cmocka_unit_test_setup_teardown(test_v1_made_over, setup_v1, teardown),
        cmocka_unit_test_setup_teardown(test_v2, setup_v2, teardown),
        cmocka_unit_test_setup_teardown(test_v2_older_kernels, setup_v2, teardown),
        cmocka_unit_test_setup_teardown(test_v2_kill, setup_v2, teardown),
        cmocka_unit_test_setup_teardown(test_v2_without_kill, setup_v2, teardown),
        cmocka_unit_test_setup_teardown(test_kill_refused, setup_v2, teardown),
        cmocka_unit_test_setup_teardown(test_sweep, setup_v2, teardown),
        cmocka_unit_test_setup_teardown(test_leftovers, setup_v2, teardown),
        cmocka_unit_test_setup_teardown(test_place_above, setup_v2, teardown),
        cmocka_unit_test_setup_teardown(test_place_of_others, setup_v2, teardown),
        cmocka_unit_test_setup_teardown(test_place_enabled, setup_v2, teardown),
        cmocka_unit_test_setup_teardown(test_place_host, setup_v2, teardown),
        cmocka_unit_test_setup_teardown(test_place_delegated, setup_v2, teardown),
        cmocka_unit_test_setup_teardown(test_place_container, setup_v2, teardown),
        cmocka_unit_test_setup_teardown(test_place_none, setup_v2, teardown),
        cmocka_unit_test_setup_teardown(test_v2_out_of_descriptors, setup_v2, teardown),
        cmocka_unit_test_setup_teardown(test_v1_out_of_descriptors, setup_v1, teardown),
        cmocka_unit_test_setup_teardown(test_lock_of_another, setup_v1, teardown),
    };

    return cmocka_run_group_tests_name("cgroup", tests, NULL, NULL);
}
