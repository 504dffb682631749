/* Theory of operation. A look at /proc tells who descends from whom. Who is killed makes room for
 * what others fork, so nobody is killed before all stand still: each look stops those that still
 * run, until one finds none. Then all are killed. A process that cannot be stopped (it sleeps in
 * the kernel, or dies) is not waited for: the looks are counted. */
#include "init/offspring.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"

enum {
    LOOKS_MAX = 200, /* until all stand still */
    ROUNDS_MAX = 20, /* of stopping and killing */
    STAT_MAX = 512,
};

struct kin {
    pid_t pid, parent;
    char  state;
    bool  is_ours;
};

struct look {
    struct kin *all;
    size_t      n, room;
};

static void add(struct look *l, struct kin k)
{
    if (l->n == l->room) {
        l->room = l->room ? 2 * l->room : 256;
        l->all = realloc(l->all, l->room * sizeof *l->all);
        if (!l->all)
            abort();
    }
    l->all[l->n++] = k;
}

/* `PID (NAME) STATE PARENT …`; the name may hold anything. */
static bool read_kin(const char *pid, struct kin *ret)
{
    char       path[64], text[STAT_MAX + 1];
    autofd int fd = -1;
    ssize_t    n;

    snprintf(path, sizeof path, "/proc/%.20s/stat", pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    n = fd < 0 ? -1 : read(fd, text, STAT_MAX);
    if (n <= 0)
        return false;
    text[n] = '\0';
    const char *behind = strrchr(text, ')');
    int         parent;
    if (!behind || sscanf(behind + 1, " %c %d", &ret->state, &parent) != 2)
        return false;
    ret->pid = (pid_t)strtol(pid, NULL, 10);
    ret->parent = (pid_t)parent;
    ret->is_ours = false;
    return true;
}

static void mark(struct look *l, pid_t ancestor)
{
    bool found;

    do {
        found = false;
        for (size_t i = 0; i < l->n; i++)
            for (size_t k = 0; k < l->n && !l->all[i].is_ours; k++)
                if (l->all[i].parent == ancestor ||
                    (l->all[k].is_ours && l->all[k].pid == l->all[i].parent))
                    found = l->all[i].is_ours = true;
    } while (found);
}

static void look(struct look *l, pid_t ancestor)
{
    DIR                 *proc = opendir("/proc");
    const struct dirent *d;
    struct kin           k;

    l->n = 0;
    while (proc && (d = readdir(proc)))
        if (isdigit((unsigned char)d->d_name[0]) && read_kin(d->d_name, &k))
            add(l, k);
    if (proc)
        closedir(proc);
    mark(l, ancestor);
}

/* How many it was sent to: those that are not in one of these states. */
static size_t send(const struct look *l, int number, const char *but)
{
    size_t n = 0;

    for (size_t i = 0; i < l->n; i++)
        if (l->all[i].is_ours && !strchr(but, l->all[i].state) && kill(l->all[i].pid, number) == 0)
            n++;
    return n;
}

void offspring_end(pid_t ancestor)
{
    struct look l = {0};

    for (int round = 0; round < ROUNDS_MAX; round++) {
        for (int i = 0; i < LOOKS_MAX; i++) {
            look(&l, ancestor);
            if (send(&l, SIGSTOP, "TtZX") == 0)
                break;
        }
        if (send(&l, SIGKILL, "ZX") == 0)
            break;
    }
    free(l.all);
}
