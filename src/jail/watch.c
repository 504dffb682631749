/* Theory of operation. The sandbox's own /proc, reached through /proc/INIT/root, lists exactly its
 * processes. A look adds up what their `status` says: cheap, and never too little; but pages that a
 * fork shares are counted twice. So when the sum is over the limit, it is checked by
 * `smaps_rollup`, which shares them out, and by kcmp, for a child between vfork and exec is its
 * parent once more.
 *
 * The check, and any killing, is done by a process of ours inside the pid namespace, where one
 * kill(-1) takes everybody but init at once, however fast they fork. It is not dumpable, so nobody
 * there can reach into it; but with the same uid they can kill, stop or slow it. Its parent, whom
 * they do not see, notices at once or when the time is up. Then it is tried again, and after a few
 * times init is killed, which nobody can prevent. */
#include "jail/watch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"

enum {
    BYTES_PER_MS = 10 << 20, /* nobody fills memory faster than that, on two processors */
    PAUSE_MIN_MS = 1,
    PAUSE_MAX_MS = 20,
    HELPER_MS = 1000, /* times the next: how long code that slows the helper has its way */
    FAILURES_MAX = 3,
    STATUS_MAX = 1 << 14,
};

void watch_init(struct watch *w, pid_t init, int init_fd, int up_fd, int64_t limit_bytes)
{
    *w = (struct watch){.init = init,
                        .init_fd = init_fd,
                        .up_fd = up_fd,
                        .proc_fd = -1,
                        .disk_fd = -1,
                        .limit_bytes = limit_bytes};
    w->has_killed = mmap(NULL, sizeof *w->has_killed, PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (w->has_killed == MAP_FAILED)
        abort(); /* out of memory */
}

void watch_done(struct watch *w)
{
    fd_close(&w->proc_fd);
    fd_close(&w->disk_fd);
    if (w->has_killed)
        munmap(w->has_killed, sizeof *w->has_killed);
    w->has_killed = NULL;
}

/* ---- counting ---- */

/* The number behind `word` in a text of lines; 0 when there is none. */
static uint64_t number(const char *text, const char *word)
{
    for (const char *p = text; (p = strstr(p, word)); p++)
        if (p == text || p[-1] == '\n')
            return strtoull(p + strlen(word), NULL, 10);
    return 0;
}

/* One small file of a process, without allocation; "" when it is gone. */
static const char *read_file(int proc_fd, int pid, const char *name)
{
    static char text[STATUS_MAX];
    char        path[64];
    ssize_t     n;
    autofd int  fd = -1;

    snprintf(path, sizeof path, "%d/%s", pid, name);
    fd = openat(proc_fd, path, O_RDONLY | O_CLOEXEC);
    n = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
    text[n < 0 ? 0 : n] = '\0';
    return text;
}

static bool has_memory(int proc_fd, int pid)
{
    return strstr(read_file(proc_fd, pid, "status"), "\nRssAnon:") != NULL;
}

/* A process whose first thread has ended shows no memory, and has it: then any other thread tells,
 * by its own number. */
static int find_teller(int proc_fd, int pid)
{
    char           path[32];
    int            fd, teller = 0;
    DIR           *dir;
    struct dirent *d;

    if (has_memory(proc_fd, pid))
        return pid;
    snprintf(path, sizeof path, "%d/task", pid);
    fd = openat(proc_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    dir = fd < 0 ? NULL : fdopendir(fd);
    while (dir && !teller && (d = readdir(dir)))
        if (atoi(d->d_name) > 1 && has_memory(proc_fd, atoi(d->d_name)))
            teller = atoi(d->d_name);
    if (dir)
        closedir(dir);
    return teller;
}

static uint64_t status_bytes(int proc_fd, int pid)
{
    const char *status = read_file(proc_fd, pid, "status");

    return (number(status, "RssAnon:") + number(status, "RssShmem:") + number(status, "VmSwap:") +
            number(status, "VmPTE:"))
           << 10;
}

/* What is its own: shared pages count by their share, and the memory of a parent only once. */
static uint64_t exact_bytes(int proc_fd, int pid)
{
    const char *status = read_file(proc_fd, pid, "status"), *rollup;
    int         parent = (int)number(status, "PPid:");
    uint64_t    tables = number(status, "VmPTE:"); /* before its place is taken by the next */

    if (parent > 1 && syscall(SYS_kcmp, pid, parent, KCMP_VM, 0, 0) == 0)
        return 0;
    rollup = read_file(proc_fd, pid, "smaps_rollup");
    if (!*rollup)
        return status_bytes(proc_fd, pid);
    return (number(rollup, "Pss_Anon:") + number(rollup, "Pss_Shmem:") +
            number(rollup, "SwapPss:") + tables)
           << 10;
}

/* All processes but init and `skip`, a number of the sandbox's own (-1: none), and what the
 * writable places hold. -1: it could not be counted, which is not little. */
static int count_bytes(const struct watch *w, pid_t                          skip,
                       uint64_t (*bytes_of)(int proc_fd, int pid), uint64_t *ret)
{
    struct statfs  disk;
    uint64_t       sum;
    int            fd = openat(w->proc_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR           *dir = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *d;

    if (!dir || fstatfs(w->disk_fd, &disk) < 0) {
        if (dir)
            closedir(dir);
        else
            fd_close(&fd);
        return -1;
    }
    sum = (uint64_t)(disk.f_blocks - disk.f_bfree) * (uint64_t)disk.f_bsize;
    while ((d = readdir(dir))) {
        int pid = atoi(d->d_name), teller;
        if (pid <= 1 || pid == skip)
            continue;
        teller = find_teller(w->proc_fd, pid);
        if (teller > 0)
            sum += bytes_of(w->proc_fd, teller);
    }
    closedir(dir);
    *ret = sum;
    return 0;
}

/* ---- inside ---- */

enum outcome { UNDER = 0, KILLED = 3, FAILED = 4 };

static enum outcome kill_all(const struct watch *w)
{
    (void)w;
    return kill(-1, SIGKILL) == 0 || errno == ESRCH ? KILLED : FAILED;
}

static enum outcome judge(const struct watch *w)
{
    uint64_t used;

    if (count_bytes(w, getpid(), exact_bytes, &used) < 0)
        return FAILED;
    if (used <= (uint64_t)w->limit_bytes)
        return UNDER;
    *w->has_killed = true; /* before: the time may be up right after */
    enum outcome outcome = kill_all(w);
    *w->has_killed = outcome == KILLED;
    return outcome;
}

static enum outcome exit_of(pid_t pid)
{
    int status;

    for (;;) {
        if (waitpid(pid, &status, WUNTRACED) < 0) {
            if (errno != EINTR)
                return FAILED;
        } else if (WIFSTOPPED(status)) {
            kill(pid, SIGKILL); /* somebody wants to win time */
        } else {
            return WIFEXITED(status) ? (enum outcome)WEXITSTATUS(status) : FAILED;
        }
    }
}

/* Enters the namespaces; who is in the pid namespace is its child. */
static enum outcome enter_and(enum outcome (*deed)(const struct watch *w), const struct watch *w)
{
    pid_t pid;

    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 ||
        setns(w->init_fd, CLONE_NEWUSER | CLONE_NEWPID) < 0)
        return FAILED;
    pid = fork();
    if (pid < 0)
        return FAILED;
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0); /* when the time is up */
        _exit(deed(w));
    }
    return exit_of(pid);
}

static enum outcome inside(enum outcome (*deed)(const struct watch *w), const struct watch *w)
{
    autofd int    fd = -1;
    struct pollfd p;
    pid_t         pid;

    *w->has_killed = false;
    pid = fork();
    if (pid < 0)
        return FAILED;
    if (pid == 0)
        _exit(enter_and(deed, w));
    fd = pidfd_open(pid, 0);
    p = (struct pollfd){fd, POLLIN, 0};
    if (fd < 0 || poll(&p, 1, HELPER_MS) != 1)
        kill(pid, SIGKILL);
    return exit_of(pid);
}

/* ---- the face ---- */

/* Before the new root stands, /proc/INIT/root is the host's. */
static bool is_up(struct watch *w)
{
    struct pollfd p = {w->up_fd, 0, 0};
    char          path[64];

    if (w->proc_fd >= 0 && w->disk_fd >= 0)
        return true;
    if (poll(&p, 1, 0) != 1 || !(p.revents & POLLERR))
        return false;
    snprintf(path, sizeof path, "/proc/%d/root/workspace", (int)w->init);
    if (w->disk_fd < 0)
        w->disk_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    snprintf(path, sizeof path, "/proc/%d/root/proc", (int)w->init);
    if (w->proc_fd < 0)
        w->proc_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return w->proc_fd >= 0 && w->disk_fd >= 0;
}

/* Nobody escapes by keeping us from looking: only a helper that came to its end clears the count.
 */
static void note(struct watch *w, enum outcome outcome)
{
    w->failures = outcome == FAILED ? w->failures + 1 : 0;
    if (w->failures >= FAILURES_MAX)
        kill(w->init, SIGKILL);
}

int watch_look(struct watch *w)
{
    uint64_t     used, limit = (uint64_t)w->limit_bytes;
    enum outcome outcome = UNDER;

    if (!is_up(w))
        return PAUSE_MIN_MS;
    if (count_bytes(w, -1, status_bytes, &used) < 0) {
        note(w, FAILED);
        return PAUSE_MAX_MS;
    }
    if (used > limit) {
        outcome = inside(judge, w);
        note(w, outcome);
    }
    bool killed = used > limit && *w->has_killed; /* even by one who did not come to tell */
    w->kills += killed;
    if (used > w->peak_bytes && (used <= limit || killed)) /* else some of it twice */
        w->peak_bytes = used;
    if (outcome == FAILED)
        return PAUSE_MIN_MS;
    if (used > limit)
        return PAUSE_MAX_MS;
    uint64_t ms = (limit - used) / BYTES_PER_MS;
    return ms < PAUSE_MIN_MS ? PAUSE_MIN_MS : ms > PAUSE_MAX_MS ? PAUSE_MAX_MS : (int)ms;
}

void watch_end(struct watch *w)
{
    enum outcome outcome;

    do {
        outcome = inside(kill_all, w);
        note(w, outcome);
    } while (outcome == FAILED && w->failures < FAILURES_MAX);
}
