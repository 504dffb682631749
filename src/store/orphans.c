/* Theory of operation. Command lines tell: conmon's has the name and the id of its container, and
 * the runtime that made it, whose `delete` ends one that was made and not started, with its
 * cgroups, and refuses one that runs. While it is being made `delete` finds nothing, and is called
 * again: what podman removed meanwhile would leave its cgroups.
 *
 * What stands there is run, so who could call himself conmon, with any command line, matters. Code
 * in a container could: only our own pid namespace is believed. Where we are root, any user of the
 * machine could, by a link of that name to a setuid program that waits for a password: only who
 * has our rights by himself is ours. */
#include "store/orphans.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/program.h"
#include "base/str.h"
#include "store/capture.h"

enum { WORDS_MAX = 16384, DELETE_MS = 5000, ID_SIZE = 64, PAUSE_MS = 50, PAUSE_MAX_MS = 800 };

struct process {
    int    proc_fd;   /* /proc/PID, which is never another's who got its pid */
    bool   is_conmon; /* else it is podman */
    char  *words;     /* of its command line, each ended by NUL */
    size_t size;
};

/* What stands behind this option: behind its "=", or else in the next word; NULL: it has none. */
static const char *value_of(const struct process *p, const char *option)
{
    const char *end = p->words + p->size;
    bool        is_one_word = str_ends(option, "=");

    for (const char *at = p->words; at < end; at += strlen(at) + 1) {
        const char *next = at + strlen(at) + 1;
        if (is_one_word && str_starts(at, option))
            return at + strlen(option);
        if (strcmp(at, option) == 0)
            return next < end ? next : NULL;
    }
    return NULL;
}

static bool is_ours(int proc_fd)
{
    struct stat process, exe, its, ours;

    return fstat(proc_fd, &process) == 0 && process.st_uid == geteuid() &&
           fstatat(proc_fd, "exe", &exe, 0) == 0 && !(exe.st_mode & S_ISUID) &&
           fstatat(proc_fd, "ns/pid", &its, 0) == 0 && stat("/proc/self/ns/pid", &ours) == 0 &&
           its.st_ino == ours.st_ino;
}

static void process_done(struct process *p)
{
    fd_close(&p->proc_fd);
    free(p->words);
}

/* False: it is neither, or gone. Looked at twice: it may become another program meanwhile. */
static bool read_process(const char *pid, struct process *ret)
{
    autofree char *dir = str_format("/proc/%s", pid), *comm = NULL, *words = NULL;
    autofd int     proc_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), fd = -1;
    size_t         size;

    if (proc_fd < 0 || file_read_text(proc_fd, "comm", 64, &comm, NULL) < 0)
        return false;
    bool is_conmon = strcmp(comm, "conmon\n") == 0;
    if ((!is_conmon && strcmp(comm, "podman\n") != 0) || !is_ours(proc_fd))
        return false;
    fd = openat(proc_fd, "cmdline", O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fd_read_text(fd, WORDS_MAX, &words, &size, NULL) < 0 || !is_ours(proc_fd))
        return false;
    *ret = (struct process){take_fd(&proc_fd), is_conmon, words, size};
    words = NULL;
    return true;
}

/* One of PATH, whatever directory it says. */
static bool find_runtime(const char *told, char ret[PATH_MAX])
{
    static const char *const runtimes[] = {"runc", "crun", "runsc"};
    const char              *slash = strrchr(told, '/'), *name = slash ? slash + 1 : told;

    for (size_t i = 0; i < sizeof runtimes / sizeof runtimes[0]; i++)
        if (strcmp(name, runtimes[i]) == 0)
            return program_on_path(name, ret, NULL) == 0;
    return false;
}

static bool is_whole_id(const char *s)
{
    return strlen(s) == ID_SIZE && strspn(s, "0123456789abcdef") == ID_SIZE;
}

/* An ordinary user's stands in podman's namespaces. */
static void delete_container(const char *told, const char *id, int64_t left_ms)
{
    char              runtime[PATH_MAX], podman[PATH_MAX];
    const char *const argv[] = {"podman", "unshare", runtime, "delete", id, NULL};
    bool              is_root = geteuid() == 0;
    struct capture    c;

    if (find_runtime(told, runtime) && is_whole_id(id) &&
        (is_root || program_on_path("podman", podman, NULL) == 0))
        capture_run_quietly(is_root ? runtime : podman, is_root ? &argv[2] : argv,
                            left_ms < DELETE_MS ? (int)left_ms : DELETE_MS, &c, NULL);
}

/* True: it was one of them. */
static bool end_one(const struct process *p, const char *names, int64_t end_ms, bool is_late)
{
    const char *name = value_of(p, p->is_conmon ? "-n" : "--name=");
    int64_t     left_ms = end_ms - clock_ms();

    if (!name || fnmatch(names, name, 0) != 0)
        return false;
    const char *runtime = value_of(p, "-r"), *id = value_of(p, "-c");
    if (p->is_conmon && runtime && id && left_ms > 0)
        delete_container(runtime, id, left_ms);
    else if (!p->is_conmon && is_late)
        pidfd_send_signal(p->proc_fd, SIGKILL, NULL, 0);
    return true;
}

/* True: there was none. */
static bool end_those_of_now(const char *names, int64_t end_ms, bool are_late)
{
    DIR                 *proc = opendir("/proc");
    const struct dirent *d;
    struct process       p;
    bool                 were_there = !proc;

    while (proc && (d = readdir(proc))) {
        if (!isdigit((unsigned char)d->d_name[0]) || !read_process(d->d_name, &p))
            continue;
        if (end_one(&p, names, end_ms, are_late))
            were_there = true;
        process_done(&p);
    }
    if (proc)
        closedir(proc);
    return !were_there;
}

bool orphans_end(const char *names, int64_t end_ms)
{
    for (int pause_ms = PAUSE_MS;;
         pause_ms = pause_ms < PAUSE_MAX_MS ? 2 * pause_ms : PAUSE_MAX_MS) {
        bool is_late = clock_ms() >= end_ms; /* then all are looked at once more */
        if (end_those_of_now(names, end_ms, is_late))
            return true;
        if (is_late)
            return false;
        poll(NULL, 0, pause_ms);
    }
}
