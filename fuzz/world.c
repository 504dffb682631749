#include "world.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "init/channel.h"
#include "init/world.h"

enum { FIRST_PID = 1 << 30 }; /* no kernel gives such a number, should a call slip through */

static struct program {
    char what;
    bool ended; /* and not waited for yet */
    int  status;
    int  in, out, err;
    int  net;         /* its socket, or -1 */
    bool lost_leader; /* and told nobody */
} programs[CHANNELS_MAX * 2];

static size_t   n_programs;
static bool     has_leaders;
static uint64_t n_counted;

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

static void end_program(struct program *p, int status)
{
    if (p->ended || !p->what)
        return;
    p->ended = true;
    p->status = status;
    fd_close(&p->in);
    fd_close(&p->out);
    fd_close(&p->err);
    fd_close(&p->net);
}

void world_give_leaders(void)
{
    has_leaders = true;
}

/* A leader tells of its program by the descriptor that it was given: the file's size is its number.
 */
static int open_exit(size_t program)
{
    int fd = memfd_create("exit", MFD_CLOEXEC);

    if (fd < 0 || ftruncate(fd, (off_t)program) < 0)
        abort();
    return fd;
}

int world_launch(const struct message_spawn *m, struct launched *ret, struct err *e)
{
    int             in[2] = {-1, -1}, out[2] = {-1, -1}, err[2] = {-1, -1};
    struct program *p = &programs[n_programs];
    char            what = *last_part(m->argv[0]);

    if (n_programs == sizeof programs / sizeof programs[0] || what == 'n' ||
        pipe2(in, O_CLOEXEC | O_NONBLOCK) < 0 || pipe2(out, O_CLOEXEC | O_NONBLOCK) < 0 ||
        pipe2(err, O_CLOEXEC | O_NONBLOCK) < 0) {
        for (int i = 0; i < 2; i++) {
            fd_close(&in[i]);
            fd_close(&out[i]);
            fd_close(&err[i]);
        }
        return err_set(e, ERR_UNAVAILABLE, "start %.100s", m->argv[0]);
    }
    fcntl(in[0], F_SETPIPE_SZ, 4096); /* small, so that init has to keep some */
    if (!m->has_stdin)
        fd_close(&in[1]);
    *p = (struct program){
        .what = what ? what : '?', .in = in[0], .out = out[1], .err = err[1], .net = -1};
    *ret = (struct launched){FIRST_PID + (pid_t)n_programs,
                             FIRST_PID + (pid_t)n_programs,
                             in[1],
                             out[0],
                             err[0],
                             .has_leader = has_leaders,
                             .exit_fd = has_leaders ? open_exit(n_programs) : -1};
    n_programs++;
    return 0;
}

static struct program *led_by(int exit_fd)
{
    struct stat st;

    if (!has_leaders || fstat(exit_fd, &st) < 0 || (size_t)st.st_size >= n_programs)
        abort();
    return &programs[st.st_size];
}

bool world_read_exit(int exit_fd, int *status, struct rusage *usage)
{
    const struct program *p = led_by(exit_fd);

    for (size_t i = 0; p->lost_leader && i < n_programs; i++)
        end_program(&programs[i], SIGKILL); /* all but init */
    *status = p->status;
    usage->ru_maxrss = 2;
    return !p->lost_leader;
}

void world_end(pid_t leader, int exit_fd)
{
    struct program *p = led_by(exit_fd);

    if (p != &programs[leader - FIRST_PID])
        abort();
    end_program(p, SIGKILL);
}

/* They only rise, and each number is one of its own. */
struct message_group_ended world_counters(void)
{
    n_counted++;
    return (struct message_group_ended){
        .oom_kills = n_counted, .forks_refused = 2 * n_counted, .peak_bytes = n_counted};
}

/* ---- the network ---- */

enum { DOOR_CONNECTIONS, DOOR_LOOKUPS };

static struct door {
    struct sockaddr_un address;
    socklen_t          size;
} door_addresses[2];

static int open_door(int which, int type)
{
    struct door *d = &door_addresses[which];
    int          fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    *d = (struct door){.address.sun_family = AF_UNIX, .size = sizeof d->address};
    if (fd < 0 || bind(fd, (struct sockaddr *)&d->address, sizeof(sa_family_t)) < 0 ||
        getsockname(fd, (struct sockaddr *)&d->address, &d->size) < 0 ||
        (type == SOCK_STREAM && listen(fd, 100) < 0))
        return -1;
    return fd;
}

int world_open_doors(struct doors *ret, struct err *e)
{
    *ret = (struct doors){{open_door(DOOR_CONNECTIONS, SOCK_STREAM), -1},
                          {open_door(DOOR_LOOKUPS, SOCK_DGRAM), -1}};
    return ret->connections[0] < 0 || ret->lookups[0] < 0 ? err_sys(e, "doors") : 0;
}

int world_find_destination(int fd, struct message_connect *ret)
{
    (void)fd;
    *ret = (struct message_connect){{0x20, 1}, 443};
    return n_programs % 8 == 7 ? -1 : 0;
}

/* A socket with a name of its own, so that answers find it. */
static int call_door(int which, int type)
{
    const struct door *d = &door_addresses[which];
    struct sockaddr_un own = {.sun_family = AF_UNIX};
    int                fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0 || bind(fd, (struct sockaddr *)&own, sizeof(sa_family_t)) < 0 ||
        connect(fd, (struct sockaddr *)&d->address, d->size) < 0)
        fd_close(&fd);
    return fd;
}

static void use_network(struct program *p)
{
    static char bytes[4096];
    bool        asks = p->what == 'd', is_new = p->net < 0;
    ssize_t     n;

    if (is_new && (p->what == 's' || p->what == 'l'))
        return; /* until somebody dials */
    if (is_new)
        p->net =
            asks ? call_door(DOOR_LOOKUPS, SOCK_DGRAM) : call_door(DOOR_CONNECTIONS, SOCK_STREAM);
    if (p->net < 0)
        return;
    n = p->what == 'f' ? 0 : read(p->net, bytes, sizeof bytes);
    if (asks)
        n = write(p->net, bytes, 12 + n_programs);
    else if (p->what == 'f')
        n = write(p->net, bytes, sizeof bytes);
    else if (p->what == 'h' && is_new && write(p->net, bytes, 5) == 5)
        shutdown(p->net, SHUT_WR);
    else if (n == 0 || (p->what == 'r' && n > 0))
        fd_close(&p->net); /* and connects again: next turn */
    else if (strchr("tsl", p->what) && n > 0)
        n = write(p->net, bytes, (size_t)n);
}

void world_turn(void)
{
    static char bytes[4096];

    for (size_t i = 0; i < n_programs; i++) {
        struct program *p = &programs[i];
        ssize_t         n = 0;

        if (p->ended || !p->what)
            continue;
        if (strchr("tfhrdsl", p->what))
            use_network(p);
        else if (p->what == 'x')
            end_program(p, 3 << 8);
        else if (p->what == 'k') {
            p->lost_leader = true;
            end_program(p, SIGKILL);
        } else if (p->what == 'y')
            n = write(p->out, bytes, sizeof bytes);
        else if (p->what == 'c' && (n = read(p->in, bytes, sizeof bytes)) == 0)
            end_program(p, 0);
        else if (p->what == 'c' && n > 0)
            n = write(p->out, bytes, (size_t)n);
    }
}

void world_reset(void)
{
    for (size_t i = 0; i < n_programs; i++)
        end_program(&programs[i], 0);
    memset(programs, 0, sizeof programs);
    n_programs = 0;
}

/* ---- calls of init that the linker sends here ---- */

int   __wrap_kill(pid_t pid, int number);
pid_t __wrap_wait4(pid_t pid, int *status, int options, struct rusage *usage);

int __wrap_kill(pid_t pid, int number)
{
    if (number != SIGCHLD && number != SIGCONT)
        end_program(&programs[pid - FIRST_PID], number);
    return 0;
}

pid_t __wrap_wait4(pid_t pid, int *status, int options, struct rusage *usage)
{
    *usage = (struct rusage){.ru_maxrss = 1};
    for (size_t i = 0; i < n_programs; i++)
        if (programs[i].ended && programs[i].what && (pid < 0 || pid == FIRST_PID + (pid_t)i)) {
            programs[i].what = 0;
            *status = programs[i].status;
            return FIRST_PID + (pid_t)i;
        }
    if (!(options & WNOHANG))
        abort(); /* init would wait for ever */
    errno = ECHILD;
    return -1;
}

/* ---- servers inside ---- */

int world_dial(uint16_t port, bool is_ipv6, struct err *e)
{
    int ends[2], fd = -1;

    errno = ECONNREFUSED;
    for (size_t i = 0; i < n_programs; i++) {
        struct program *p = &programs[i];
        bool            wants_ipv6 = p->what == 'l';

        if (p->ended || p->net >= 0 || (p->what != 's' && p->what != 'l') || port == 1)
            continue;
        if (is_ipv6 == wants_ipv6 &&
            socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) == 0) {
            fd = ends[0];
            p->net = ends[1];
            break;
        }
    }
    return fd < 0 ? err_sys(e, "connect to port %u inside", port) : fd;
}

/* ---- files ---- */

int world_create_file(const char *temp_path, mode_t mode, struct err *e)
{
    int fd = -1;

    (void)mode;
    errno = ENOENT;
    if (*last_part(temp_path) == 'w')
        fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
    else if (*last_part(temp_path) != 'n')
        fd = memfd_create("file", MFD_CLOEXEC);
    return fd < 0 ? err_sys(e, "create %.120s", temp_path) : fd;
}

int world_publish(const char *temp_path, const char *path, struct err *e)
{
    (void)temp_path;
    return *last_part(path) == 'p' ? err_set(e, ERR_UNAVAILABLE, "write %.120s", path) : 0;
}

void world_discard(const char *temp_path)
{
    (void)temp_path;
}

/* A small tree, made once, so that there is something to find: a file, a directory with another, a
 * link, a FIFO. It goes when the fuzzer ends by itself. */
static char workspace[] = "/tmp/fuzz-init.XXXXXX";

static const char *const tree[] = {"d/b", "d", "a", "l", "p"};

static void remove_workspace(void)
{
    int fd = open(workspace, O_PATH | O_DIRECTORY | O_CLOEXEC);

    for (size_t i = 0; i < sizeof tree / sizeof tree[0]; i++)
        unlinkat(fd, tree[i], tree[i][0] == 'd' && !tree[i][1] ? AT_REMOVEDIR : 0);
    fd_close(&fd);
    rmdir(workspace);
}

static int make_workspace(void)
{
    int fd = mkdtemp(workspace) ? open(workspace, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;

    atexit(remove_workspace);
    mkdirat(fd, "d", 0755);
    for (int i = 0; i < 2; i++) {
        int made = openat(fd, i ? "d/b" : "a", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
        fd_write_all(made, "some text", 9);
        fd_close(&made);
    }
    (void)!symlinkat("/etc/passwd", fd, "l");
    mkfifoat(fd, "p", 0644);
    return fd;
}

int world_open_workspace(struct err *e)
{
    static int fd = -1;
    int        copy;

    if (fd < 0)
        fd = make_workspace();
    copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    return copy < 0 ? err_sys(e, "open the workspace") : copy;
}

bool world_disk_is_full(void)
{
    return n_programs % 2;
}
