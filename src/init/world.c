#include "init/world.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "init/counters.h"
#include "init/inherit.h"
#include "init/leader.h"
#include "init/offspring.h"
#include "pipe/ports.h"

enum {
    GROUP_SOCKET = 3,  /* where the jail puts the cgroups it made; see receive_group */
    GROUP_FDS_MAX = 8, /* one a cgroup controller */
    EXEC_MS = 10000,
    SET_CLOEXEC = 4,     /* CLOSE_RANGE_CLOEXEC, which musl does not know */
    PIPE_SIZE = 1 << 20, /* process.exit() loses what its pipe cannot hold: give it a large one */
};

/* All writable places are one file system (see the plan), so one look tells. */
static const char disk[] = "/workspace";

/* ---- the cgroup of a run ----
 *
 * The jail makes one group a GROUP_MAKE and sends its number with one descriptor a controller; who
 * writes "0" there enters. A number without descriptors: it could not be made. Numbers ascend, so
 * those below the wanted one belong to spawns that never came this far. Init only listens here;
 * nothing it says can reach the jail. */

/* Else the kernel would put one more than there is room for into the padding. */
_Static_assert(CMSG_SPACE(sizeof(int) * GROUP_FDS_MAX) == CMSG_LEN(sizeof(int) * GROUP_FDS_MAX),
               "an even number of descriptors");

/* One message: how many descriptors came with it, or -1. */
static int receive_message(uint32_t *ret_group, int fds[GROUP_FDS_MAX], struct err *e)
{
    struct iovec  number = {ret_group, sizeof *ret_group};
    char          control[CMSG_SPACE(sizeof(int) * GROUP_FDS_MAX)];
    struct msghdr msg = {.msg_iov = &number,
                         .msg_iovlen = 1,
                         .msg_control = control,
                         .msg_controllen = sizeof control};
    ssize_t       n;

    do
        n = recvmsg(GROUP_SOCKET, &msg, MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    if (n != sizeof *ret_group)
        return err_set(e, ERR_UNAVAILABLE, "the jail is gone");
    struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
    if (!c || c->cmsg_type != SCM_RIGHTS)
        return 0;
    size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    memcpy(fds, CMSG_DATA(c), count * sizeof(int));
    return (int)count;
}

static void close_all(int *fds, int n)
{
    while (n > 0)
        close(fds[--n]);
}

static int receive_group(uint32_t wanted, int fds[GROUP_FDS_MAX], struct err *e)
{
    uint32_t group;
    int      n;

    for (;;) {
        n = receive_message(&group, fds, e);
        TRY(n);
        if (group == wanted && n > 0)
            return n;
        close_all(fds, n);
        if (group >= wanted)
            return err_set(e, ERR_UNAVAILABLE, "cgroup %u was not made", wanted);
    }
}

/* ---- between fork and exec ---- */

struct child_fds {
    int in, out, err, report;
};

/* Everything here is async-signal-safe; a failure travels to the parent through `report`. */
static void __attribute__((noreturn))
become(const struct message_spawn *m, const char *const *env, const struct child_fds *fds,
       const int *groups, int n_groups)
{
    sigset_t none;

    for (int i = 0; i < n_groups; i++)
        if (write(groups[i], "0", 1) != 1)
            goto failed;
    setsid();
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    if (dup2(fds->in, 0) < 0 || dup2(fds->out, 1) < 0 || dup2(fds->err, 2) < 0)
        goto failed;
    if (chdir(m->cwd) < 0)
        goto failed;
    /* Each is born close-on-exec; here nobody's mistake matters any more. */
    if (syscall(SYS_close_range, 3, ~0U, SET_CLOEXEC) < 0)
        goto failed;
    execve(m->argv[0], (char *const *)m->argv, (char *const *)env);
failed:
    fd_write_all(fds->report, &errno, sizeof errno);
    _exit(127);
}

static int open_pipe(int ends[2], struct err *e)
{
    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_sys(e, "pipe");
    fcntl(ends[0], F_SETPIPE_SZ, PIPE_SIZE); /* best effort: smaller only buffers less */
    return 0;
}

/* Waits until the child has exec'd, which closes its end, or has told why it could not. Code of an
 * earlier run can stop it before that, so not for ever. */
static int await_exec(pid_t pid, int report_fd, const char *program, struct err *e)
{
    struct pollfd p = {report_fd, POLLIN, 0};
    int           cause;

    if (poll(&p, 1, EXEC_MS) == 0) {
        offspring_end(pid); /* where a leader was to start it */
        kill(pid, SIGKILL);
        return err_set(e, ERR_TIMEOUT, "start %.100s: it was held up", program);
    }
    if (read(report_fd, &cause, sizeof cause) == sizeof cause) {
        errno = cause;
        return err_sys(e, "start %.100s", program);
    }
    return 0;
}

static int launch_in(const struct message_spawn *m, const int *groups, int n_groups,
                     struct launched *ret, struct err *e)
{
    autofd int in_read = -1, in_write = -1, out_read = -1, out_write = -1, err_read = -1,
               err_write = -1, report_read = -1, report_write = -1, exit_fd = -1;
    autofree const char **env = inherit_compose(m->env);
    int                   ends[2];
    pid_t                 pid;

    if (m->has_stdin) {
        TRY(open_pipe(ends, e));
        in_read = ends[0], in_write = ends[1];
    } else {
        in_read = open("/dev/null", O_RDONLY | O_CLOEXEC);
    }
    TRY(open_pipe(ends, e));
    out_read = ends[0], out_write = ends[1];
    TRY(open_pipe(ends, e));
    err_read = ends[0], err_write = ends[1];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_sys(e, "pipe");
    report_read = ends[0], report_write = ends[1];

    pid = m->group ? fork() : leader_fork(report_write, &exit_fd);
    if (pid < 0)
        return err_sys(e, "fork");
    if (pid == 0) {
        struct child_fds fds = {in_read, out_write, err_write, report_write};
        become(m, env, &fds, groups, n_groups);
    }
    fd_close(&report_write);
    TRY(await_exec(pid, report_read, m->argv[0], e));
    if (in_write >= 0)
        fd_set_nonblock(in_write, true);
    fd_set_nonblock(out_read, true);
    fd_set_nonblock(err_read, true);
    *ret = (struct launched){.pid = pid,
                             .program = m->group ? pid : leader_program(exit_fd, pid),
                             .in_fd = take_fd(&in_write),
                             .out_fd = take_fd(&out_read),
                             .err_fd = take_fd(&err_read),
                             .has_leader = m->group == 0,
                             .exit_fd = take_fd(&exit_fd)};
    return 0;
}

int world_launch(const struct message_spawn *m, struct launched *ret, struct err *e)
{
    int groups[GROUP_FDS_MAX] = {0};
    int n_groups = m->group ? receive_group(m->group, groups, e) : 0;
    int r;

    TRY(n_groups);
    r = launch_in(m, groups, n_groups, ret, e);
    close_all(groups, n_groups);
    return r;
}

bool world_read_exit(int exit_fd, int *status, struct rusage *usage)
{
    struct leader_report r;

    if (!leader_read(exit_fd, &r)) {
        kill(-1, SIGKILL); /* whose the orphans are is not known */
        return false;
    }
    *status = r.status;
    *usage = r.usage;
    return true;
}

void world_end(pid_t leader, int exit_fd)
{
    leader_end(leader, exit_fd);
}

struct message_group_ended world_counters(void)
{
    return counters_read();
}

/* ---- files ---- */

int world_create_file(const char *temp_path, mode_t mode, struct err *e)
{
    int fd = open(temp_path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode & 0777);

    return fd < 0 ? err_sys(e, "create %.120s", temp_path) : fd;
}

int world_publish(const char *temp_path, const char *path, struct err *e)
{
    if (rename(temp_path, path) < 0)
        return err_sys(e, "write %.120s", path);
    return 0;
}

void world_discard(const char *temp_path)
{
    unlink(temp_path);
}

int world_open_workspace(struct err *e)
{
    int fd = open(disk, O_PATH | O_DIRECTORY | O_CLOEXEC);

    return fd < 0 ? err_sys(e, "open %s", disk) : fd;
}

static bool is_full(const char *path)
{
    struct statvfs s;

    if (statvfs(path, &s) < 0 || s.f_flag & ST_RDONLY)
        return false;
    return s.f_bavail == 0 || (s.f_files > 0 && s.f_ffree == 0);
}

/* The jail makes one disk of them all; in a container each is one. */
bool world_disk_is_full(void)
{
    return is_full(disk) || is_full("/tmp") || is_full("/var/tmp") || is_full("/root") ||
           is_full("/dev/shm");
}

/* ---- the doors of egress ---- */

enum {
    DOOR_BACKLOG = 4096,
    DOOR_BUFFER = 1 << 17,     /* what the kernel holds of a connection whose reader is slow */
    ORIGINAL_DESTINATION = 80, /* SO_ORIGINAL_DST and IP6T_SO_ORIGINAL_DST */
};

union door_address {
    struct sockaddr     any;
    struct sockaddr_in  v4;
    struct sockaddr_in6 v6;
};

static socklen_t set_loopback(union door_address *ret, sa_family_t family, uint16_t port)
{
    if (family == AF_INET)
        ret->v4 = (struct sockaddr_in){.sin_family = AF_INET,
                                       .sin_port = htons(port),
                                       .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    else
        ret->v6 = (struct sockaddr_in6){
            .sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    return family == AF_INET ? sizeof ret->v4 : sizeof ret->v6;
}

static int open_door(sa_family_t family, int type, uint16_t port, struct err *e)
{
    union door_address a = {0};
    socklen_t          address_size = set_loopback(&a, family, port);
    autofd int         fd = socket(family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int                on = 1, size = DOOR_BUFFER;

    if (fd < 0)
        return err_sys(e, "open a door");
    if (bind(fd, &a.any, address_size) < 0)
        return err_sys(e, "bind port %u", port);
    if (type == SOCK_STREAM) { /* whom it accepts inherits these */
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
        if (listen(fd, DOOR_BACKLOG) < 0)
            return err_sys(e, "listen on port %u", port);
    }
    return take_fd(&fd);
}

static int open_doors(sa_family_t family, int *ret_connections, int *ret_lookups, struct err *e)
{
    autofd int connections = open_door(family, SOCK_STREAM, PORT_CONNECTIONS, e);

    TRY(connections);
    *ret_lookups = open_door(family, SOCK_DGRAM, PORT_LOOKUPS, e);
    TRY(*ret_lookups);
    *ret_connections = take_fd(&connections);
    return 0;
}

int world_open_doors(struct doors *ret, struct err *e)
{
    struct err no_ipv6 = {0};

    *ret = (struct doors){{-1, -1}, {-1, -1}};
    TRY(open_doors(AF_INET, &ret->connections[0], &ret->lookups[0], e));
    if (open_doors(AF_INET6, &ret->connections[1], &ret->lookups[1], &no_ipv6) < 0 &&
        no_ipv6.sys != EAFNOSUPPORT && no_ipv6.sys != EADDRNOTAVAIL) {
        *e = no_ipv6;
        return -1;
    }
    return 0;
}

int world_find_destination(int fd, struct message_connect *ret)
{
    static const uint8_t mapped[12] = {[10] = 0xff, 0xff};
    union door_address   a = {0};
    socklen_t            size = sizeof a;

    if (getsockname(fd, &a.any, &size) < 0)
        return -1;
    bool is_v4 = a.any.sa_family == AF_INET;
    size = sizeof a;
    if (getsockopt(fd, is_v4 ? IPPROTO_IP : IPPROTO_IPV6, ORIGINAL_DESTINATION, &a, &size) < 0)
        return -1;
    if (is_v4) {
        memcpy(ret->address, mapped, 12);
        memcpy(ret->address + 12, &a.v4.sin_addr, 4);
        ret->port = ntohs(a.v4.sin_port);
        return ret->address[12] == 127 && ret->port == PORT_CONNECTIONS ? -1 : 0;
    }
    memcpy(ret->address, &a.v6.sin6_addr, 16);
    ret->port = ntohs(a.v6.sin6_port);
    return IN6_IS_ADDR_LOOPBACK(&a.v6.sin6_addr) && ret->port == PORT_CONNECTIONS ? -1 : 0;
}

/* ---- servers inside ---- */

int world_dial(uint16_t port, bool is_ipv6, struct err *e)
{
    sa_family_t        family = is_ipv6 ? AF_INET6 : AF_INET;
    union door_address a = {0};
    socklen_t          address_size = set_loopback(&a, family, port);
    autofd int         fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int                on = 1, size = DOOR_BUFFER;

    if (fd < 0)
        return err_sys(e, "socket");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
    if (connect(fd, &a.any, address_size) < 0 && errno != EINPROGRESS)
        return err_sys(e, "connect to port %u inside", port);
    return take_fd(&fd);
}
