/* probe NAME ARGUMENT…: tries one way out, by the system call itself. The word it was sent for is
 * on stdout when it got there, and only then; else one line on stderr and exit status 1.
 *
 * Of ways that end in a right and not in a place (a namespace, a socket, a trace of init) the word
 * is the first argument, printed once the right was seen to be there. Nothing but what it is told
 * is touched, for the same program runs on the bare host as a control. */
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/capability.h>
#include <linux/if_packet.h>
#include <linux/io_uring.h>
#include <linux/keyctl.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/openat2.h>
#include <linux/perf_event.h>
#include <linux/rtnetlink.h>
#include <linux/sched.h>
#include <linux/userfaultfd.h>
#include <net/if.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/swap.h>
#include <sys/syscall.h>
#include <sys/timex.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { INIT = 1, WORD_MAX = 256 };

/* ---- what they share: each returns 0, or -1 with errno ---- */

static int say(const char *word)
{
    return puts(word) < 0 ? -1 : 0;
}

static int show_file(const char *path)
{
    char    text[WORD_MAX];
    int     fd = open(path, O_RDONLY);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text);

    return n < 0 ? -1 : (int)fwrite(text, (size_t)n, 1, stdout) - 1;
}

static int write_file(const char *path, const char *word)
{
    int fd = open(path, O_WRONLY);

    return fd < 0 || write(fd, word, strlen(word)) < 0 ? -1 : 0;
}

/* All capabilities, of whatever namespace this is. */
static int has_rights(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct   data[2] = {0};

    if (syscall(SYS_capget, &header, data) < 0)
        return -1;
    errno = EPERM;
    return data[0].effective & (1U << CAP_SYS_ADMIN) ? 0 : -1;
}

static int wait_for(pid_t pid)
{
    int status;

    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        return -1;
    errno = ECHILD;
    return status == 0 ? 0 : -1;
}

/* ---- mounts ---- */

static int probe_remount(char **a) /* a read-only mount, a file in it, the word it then says */
{
    if (mount(NULL, a[0], NULL, MS_REMOUNT | MS_BIND | MS_NOSUID | MS_NODEV, NULL) < 0)
        return -1;
    return write_file(a[1], a[2]);
}

static int probe_umount(char **a) /* a cover, a file below it */
{
    return umount2(a[0], MNT_DETACH) < 0 ? -1 : show_file(a[1]);
}

static int probe_chroot(char **a) /* a directory, a file as it is named then */
{
    return chroot(a[0]) < 0 ? -1 : show_file(a[1]);
}

static int probe_pivot_root(char **a)
{
    if (chdir(a[0]) < 0 || syscall(SYS_pivot_root, ".", ".") < 0)
        return -1;
    return show_file(a[1]);
}

static int probe_fsopen(char **a)
{
    return syscall(SYS_fsopen, "tmpfs", 0) < 0 ? -1 : say(a[0]);
}

static int probe_open_tree(char **a)
{
    return syscall(SYS_open_tree, AT_FDCWD, "/", 1 /* OPEN_TREE_CLONE */) < 0 ? -1 : say(a[0]);
}

/* A number is as good as a path, for who may use it: no root and no mount stands between. */
static int
probe_handle(char **a) /* a file; where it is opened by its number, somewhere beside it */
{
    char                text[WORD_MAX] = "";
    int                 mount_id, beside = open(a[1], O_RDONLY), fd;
    struct file_handle *handle = calloc(1, sizeof *handle + MAX_HANDLE_SZ);

    if (beside < 0 || !handle)
        return -1;
    handle->handle_bytes = MAX_HANDLE_SZ;
    if (name_to_handle_at(AT_FDCWD, a[0], handle, &mount_id, 0) < 0)
        return -1;
    fd = open_by_handle_at(beside, handle, O_RDONLY);
    return fd < 0 || read(fd, text, sizeof text - 1) < 0 ? -1 : say(text);
}

/* ---- cgroups of version 1, of which the sandbox sees none: it mounts one on /tmp ---- */

static int mount_cgroup(const char *controller)
{
    return mount("cgroup", "/tmp", "cgroup", 0, controller);
}

/* Its own place in the hierarchy, as it sees it. */
static int own_cgroup(const char *controller, char ret[WORD_MAX])
{
    char  line[WORD_MAX];
    int   found = -1;
    FILE *file = fopen("/proc/self/cgroup", "r");

    while (file && found < 0 && fgets(line, sizeof line, file)) {
        char *names = strchr(line, ':'), *path = names ? strchr(names + 1, ':') : NULL;
        if (!path)
            continue;
        *path++ = '\0';
        path[strcspn(path, "\n")] = '\0';
        if (strcmp(names + 1, controller) == 0)
            found = snprintf(ret, WORD_MAX, "%s", path);
    }
    if (file)
        fclose(file);
    return found < 0 ? -1 : 0;
}

/* Into init's, around which the limits of the sandbox do not stand. */
static int probe_leave_cgroup(char **a)
{
    char path[WORD_MAX];

    if (mount_cgroup("pids") < 0 || write_file("/tmp/tasks", "0") < 0 ||
        own_cgroup("pids", path) < 0)
        return -1;
    errno = ESRCH;
    return strcmp(path, "/") == 0 ? say(a[0]) : -1;
}

static int probe_raise_limit(char **a)
{
    static const char more[] = "1073741824\n";
    char              own[WORD_MAX], path[2 * WORD_MAX], now[WORD_MAX] = "";
    int               fd;

    if (own_cgroup("memory", own) < 0 || mount_cgroup("memory") < 0)
        return -1;
    snprintf(path, sizeof path, "/tmp%s/../memory.memsw.limit_in_bytes", own);
    (void)write_file(path, more); /* which must be the larger, where the kernel has it */
    snprintf(path, sizeof path, "/tmp%s/../memory.limit_in_bytes", own);
    if (write_file(path, more) < 0 || (fd = open(path, O_RDONLY)) < 0 ||
        read(fd, now, sizeof now - 1) < 0)
        return -1;
    errno = EPERM;
    return strcmp(now, more) == 0 ? say(a[0]) : -1;
}

/* What the kernel starts outside, as root, when a group becomes empty: it stays what it was. */
static int probe_release_agent(char **a)
{
    char    now[WORD_MAX];
    ssize_t n;
    int     fd;

    if (mount_cgroup("memory") < 0 || (fd = open("/tmp/release_agent", O_RDWR)) < 0 ||
        (n = read(fd, now, sizeof now)) < 0 || pwrite(fd, now, (size_t)n, 0) < 0)
        return -1;
    return say(a[0]);
}

/* ---- namespaces ---- */

static int probe_unshare(char **a)
{
    return unshare(CLONE_NEWUSER) < 0 || has_rights() < 0 ? -1 : say(a[0]);
}

static int probe_clone(char **a)
{
    pid_t pid = (pid_t)syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0);

    if (pid == 0)
        _exit(has_rights() < 0);
    return wait_for(pid) < 0 ? -1 : say(a[0]);
}

static int probe_clone3(char **a)
{
    struct clone_args args = {.flags = CLONE_NEWUSER, .exit_signal = SIGCHLD};
    pid_t             pid = (pid_t)syscall(SYS_clone3, &args, sizeof args);

    if (pid == 0)
        _exit(has_rights() < 0);
    return wait_for(pid) < 0 ? -1 : say(a[0]);
}

static int probe_setns(char **a)
{
    int fd = open("/proc/self/ns/uts", O_RDONLY);

    return fd < 0 || setns(fd, CLONE_NEWUTS) < 0 ? -1 : say(a[0]);
}

/* ---- init ---- */

static int probe_ptrace(char **a)
{
    return ptrace(PTRACE_SEIZE, INIT, NULL, NULL) < 0 ? -1 : say(a[0]);
}

static int probe_limits(char **a) /* its own, given back to it */
{
    struct rlimit now;

    if (prlimit(INIT, RLIMIT_NOFILE, NULL, &now) < 0 ||
        prlimit(INIT, RLIMIT_NOFILE, &now, NULL) < 0)
        return -1;
    return say(a[0]);
}

static int probe_affinity(char **a)
{
    cpu_set_t now;

    if (sched_getaffinity(INIT, sizeof now, &now) < 0 ||
        sched_setaffinity(INIT, sizeof now, &now) < 0)
        return -1;
    return say(a[0]);
}

/* At 0, unlike 1, a crash starts the host's core_pattern program. */
static int probe_core(char **a)
{
    struct rlimit none = {0, 0}, now = {1, 1};

    if (prlimit(0, RLIMIT_CORE, &none, NULL) < 0 || prlimit(0, RLIMIT_CORE, NULL, &now) < 0)
        return -1;
    errno = EPERM;
    return now.rlim_max == 0 ? say(a[0]) : -1;
}

/* Where init keeps what it may write: of its maps the first such. */
static void *init_data(void)
{
    char          line[WORD_MAX], rights[5];
    unsigned long from;
    void         *found = NULL;
    FILE         *maps = fopen("/proc/1/maps", "r");

    while (maps && !found && fgets(line, sizeof line, maps))
        if (sscanf(line, "%lx-%*x %4s", &from, rights) == 2 && strncmp(rights, "rw", 2) == 0)
            found = (void *)from; /* NOLINT(performance-no-int-to-ptr): an address of another's */
    if (maps)
        fclose(maps);
    return found;
}

static int probe_vm_read(char **a)
{
    char         bytes[16];
    struct iovec here = {bytes, sizeof bytes}, there = {init_data(), sizeof bytes};

    return process_vm_readv(INIT, &here, 1, &there, 1, 0) < 0 ? -1 : say(a[0]);
}

/* One zero byte: that init may not outlive it is the sandbox's loss alone. */
static int probe_vm_write(char **a)
{
    char         byte = 0;
    struct iovec here = {&byte, 1}, there = {init_data(), 1};

    return process_vm_writev(INIT, &here, 1, &there, 1, 0) < 0 ? -1 : say(a[0]);
}

/* Whoever has it says to the server what init would say. */
static int probe_pipe(char **a)
{
    int init = (int)syscall(SYS_pidfd_open, INIT, 0);

    return init < 0 || syscall(SYS_pidfd_getfd, init, 1, 0) < 0 ? -1 : say(a[0]);
}

/* ---- the kernel's surface ---- */

static int probe_bpf(char **a)
{
    union bpf_attr attr = {
        .map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 8, .max_entries = 1};

    return syscall(SYS_bpf, BPF_MAP_CREATE, &attr, sizeof attr) < 0 ? -1 : say(a[0]);
}

static int probe_perf(char **a)
{
    struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
                                   .size = sizeof attr,
                                   .config = PERF_COUNT_SW_TASK_CLOCK,
                                   .exclude_kernel = 1,
                                   .exclude_hv = 1};

    return syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0) < 0 ? -1 : say(a[0]);
}

static int probe_io_uring(char **a)
{
    struct io_uring_params params = {0};

    return syscall(SYS_io_uring_setup, 1, &params) < 0 ? -1 : say(a[0]);
}

static int probe_userfaultfd(char **a)
{
    return syscall(SYS_userfaultfd, UFFD_USER_MODE_ONLY) < 0 ? -1 : say(a[0]);
}

/* With arguments that can do no harm the call itself says no, in other words than a wall does. */
static int reached(int r, int answer, const char *word)
{
    return r < 0 && errno == answer ? say(word) : -1;
}

static int probe_module(char **a) /* no module at all */
{
    char junk[64] = "jerboa";

    return reached((int)syscall(SYS_init_module, junk, sizeof junk, ""), ENOEXEC, a[0]);
}

static int probe_swap(char **a) /* a file that is not there */
{
    return reached(swapoff("/jerboa/no/such"), ENOENT, a[0]);
}

static int probe_clock(char **a) /* it stays what it was */
{
    struct timex now = {0}, same = {0};

    if (clock_adjtime(CLOCK_REALTIME, &now) < 0)
        return -1;
    same.modes = ADJ_TICK;
    same.tick = now.tick;
    return clock_adjtime(CLOCK_REALTIME, &same) < 0 ? -1 : say(a[0]);
}

/* ---- terminals ---- */

/* A terminal that is nobody's yet; it is there until stdin ends. */
static int terminal(char **a)
{
    char        byte;
    int         fd = posix_openpt(O_RDWR | O_NOCTTY);
    const char *name;

    (void)a;
    if (fd < 0 || grantpt(fd) < 0 || unlockpt(fd) < 0 || !(name = ptsname(fd)) ||
        chmod(name, 0666) < 0)
        return -1;
    puts(name);
    fflush(stdout);
    return read(0, &byte, 1) < 0 ? -1 : 0;
}

/* What is typed there by somebody else: whoever reads from the terminal takes it for the user's. */
static int probe_type(char **a) /* a terminal, the word */
{
    char line[WORD_MAX] = "";
    int  fd;

    if (setsid() < 0 || (fd = open(a[0], O_RDONLY)) < 0) /* now it is ours */
        return -1;
    for (const char *c = a[1]; *c; c++)
        if (ioctl(fd, TIOCSTI, c) < 0)
            return -1;
    if (ioctl(fd, TIOCSTI, "\n") < 0 || read(fd, line, sizeof line - 1) < 0)
        return -1;
    return say(line);
}

/* ---- keys and shared memory: what the host put there, by `with-key` and `shm-put` ---- */

static int probe_key(char **a) /* its name */
{
    char text[WORD_MAX] = "";
    long key = syscall(SYS_keyctl, KEYCTL_SEARCH, KEY_SPEC_SESSION_KEYRING, "user", a[0], 0);

    if (key < 0 || syscall(SYS_keyctl, KEYCTL_READ, key, text, sizeof text - 1) < 0)
        return -1;
    return say(text);
}

static int with_key(char **a) /* its name, the word, a program and its arguments */
{
    if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) < 0 ||
        syscall(SYS_add_key, "user", a[0], a[1], strlen(a[1]), KEY_SPEC_SESSION_KEYRING) < 0)
        return -1;
    return execv(a[2], a + 2);
}

static key_t number(const char *text)
{
    return (key_t)strtol(text, NULL, 10);
}

static int shm_put(char **a) /* a number, the word */
{
    char *at;
    int   id = shmget(number(a[0]), WORD_MAX, IPC_CREAT | IPC_EXCL | 0666);

    if (id < 0 || (at = shmat(id, NULL, 0)) == (void *)-1)
        return -1;
    snprintf(at, WORD_MAX, "%s", a[1]);
    return 0;
}

static int shm_drop(char **a)
{
    int id = shmget(number(a[0]), 0, 0);

    return id < 0 ? -1 : shmctl(id, IPC_RMID, NULL);
}

static int probe_shm(char **a)
{
    int   id = shmget(number(a[0]), 0, 0);
    void *at = id < 0 ? (void *)-1 : shmat(id, NULL, SHM_RDONLY);

    return at == (void *)-1 ? -1 : say(at);
}

/* ---- the network ---- */

static int probe_raw(char **a)
{
    return socket(AF_INET, SOCK_RAW, IPPROTO_ICMP) < 0 ? -1 : say(a[0]);
}

static int probe_packet(char **a)
{
    return socket(AF_PACKET, SOCK_RAW, 0) < 0 ? -1 : say(a[0]);
}

/* By netlink; its answer is the errno of the first message that it acknowledges or refuses. */
static int ask_kernel(int protocol, const void *message, size_t size)
{
    struct {
        struct nlmsghdr head;
        struct nlmsgerr error;
        char            rest[512];
    } told;
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol);

    if (fd < 0 || send(fd, message, size, 0) < 0 || recv(fd, &told, sizeof told, 0) < 0)
        return -1;
    errno = -told.error.error;
    return errno ? -1 : 0;
}

/* One more address for lo, as the first step of whoever would lead the routes elsewhere. */
static int probe_address(char **a)
{
    struct {
        struct nlmsghdr  head;
        struct ifaddrmsg body;
        struct rtattr    attr;
        struct in_addr   address;
    } ask = {.head = {.nlmsg_len = sizeof ask,
                      .nlmsg_type = RTM_NEWADDR,
                      .nlmsg_flags = NLM_F_REQUEST | NLM_F_CREATE | NLM_F_EXCL | NLM_F_ACK},
             .body = {.ifa_family = AF_INET, .ifa_prefixlen = 32, .ifa_index = 1},
             .attr = {.rta_len = RTA_LENGTH(4), .rta_type = IFA_LOCAL},
             .address.s_addr = htonl(0xc0000209)}; /* 192.0.2.9, nobody's */

    return ask_kernel(NETLINK_ROUTE, &ask, sizeof ask) < 0 ? -1 : say(a[0]);
}

/* The rules that lead all connections to init: the table of jail/redirect.c, in a batch. */
static int probe_redirect(char **a)
{
    enum { NAME = sizeof "jerboa", DELETE = NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_DELTABLE };
    enum { MARK = sizeof(struct nlmsghdr) + sizeof(struct nfgenmsg) };
    struct {
        struct nlmsghdr begin;
        struct nfgenmsg begin_body;
        struct nlmsghdr delete;
        struct nfgenmsg delete_body;
        struct nlattr   attr;
        char            name[NLA_ALIGN(NAME)];
        struct nlmsghdr end;
        struct nfgenmsg end_body;
    } ask = {
        .begin = {MARK, NFNL_MSG_BATCH_BEGIN, NLM_F_REQUEST, 1},
        .begin_body = {.res_id = htons(NFNL_SUBSYS_NFTABLES)},
        .delete = {MARK + NLA_HDRLEN + NLA_ALIGN(NAME), DELETE, NLM_F_REQUEST | NLM_F_ACK, 2},
        .delete_body = {.nfgen_family = AF_INET},
        .attr = {NLA_HDRLEN + NAME, NFTA_TABLE_NAME},
        .name = "jerboa",
        .end = {MARK, NFNL_MSG_BATCH_END, NLM_F_REQUEST, 3},
        .end_body = {.res_id = htons(NFNL_SUBSYS_NFTABLES)},
    };

    return ask_kernel(NETLINK_NETFILTER, &ask, sizeof ask) < 0 ? -1 : say(a[0]);
}

/* ---- files ---- */

static int probe_chmod(char **a) /* a file: who sent it looks at it from outside */
{
    return (int)syscall(SYS_fchmodat, AT_FDCWD, a[0], 06755);
}

static int probe_create(char **a)
{
    umask(0);
    return (int)syscall(SYS_openat, AT_FDCWD, a[0], O_WRONLY | O_CREAT | O_EXCL, 06755) < 0 ? -1
                                                                                            : 0;
}

/* Every other call that takes a mode: an existing file, or one that it makes. */
#ifdef SYS_chmod
static int set_chmod(const char *path)
{
    return (int)syscall(SYS_chmod, path, 06755);
}

static int set_creat(const char *path)
{
    return (int)syscall(SYS_creat, path, 06755);
}

static int set_open(const char *path)
{
    return (int)syscall(SYS_open, path, O_WRONLY | O_CREAT, 06755);
}

static int set_mknod(const char *path)
{
    return (int)syscall(SYS_mknod, path, S_IFREG | 06755, 0);
}
#endif

static int set_fchmod(const char *path)
{
    return (int)syscall(SYS_fchmod, open(path, O_WRONLY | O_CREAT, 0600), 06755);
}

static int set_fchmodat2(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT, 0600);

    return fd < 0 ? -1 : (int)syscall(452 /* fchmodat2 */, AT_FDCWD, path, 06755, 0);
}

static int set_mknodat(const char *path)
{
    return (int)syscall(SYS_mknodat, AT_FDCWD, path, S_IFREG | 06755, 0);
}

static int set_openat2(const char *path)
{
    struct open_how how = {.flags = O_WRONLY | O_CREAT, .mode = 06755};

    return (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof how);
}

static int set_tmpfile(const char *path) /* it has no name until the end */
{
    char own[64], dir[WORD_MAX];
    int  fd;

    snprintf(dir, sizeof dir, "%.*s", (int)(strrchr(path, '/') - path), path);
    fd = (int)syscall(SYS_openat, AT_FDCWD, dir, O_TMPFILE | O_WRONLY, 06755);
    snprintf(own, sizeof own, "/proc/self/fd/%d", fd);
    return fd < 0 ? -1 : linkat(AT_FDCWD, own, AT_FDCWD, path, AT_SYMLINK_FOLLOW);
}

static int probe_set_id(char **a) /* the call, a file: who sent it looks at it from outside */
{
    static const struct {
        const char *name;
        int (*set)(const char *path);
    } ways[] = {
#ifdef SYS_chmod
        {"chmod", set_chmod},     {"creat", set_creat},         {"open", set_open},
        {"mknod", set_mknod},
#endif
        {"fchmod", set_fchmod},   {"fchmodat2", set_fchmodat2}, {"mknodat", set_mknodat},
        {"openat2", set_openat2}, {"openat", set_tmpfile},
    };

    umask(0);
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++)
        if (strcmp(ways[i].name, a[0]) == 0)
            return ways[i].set(a[1]) < 0 ? -1 : 0;
    errno = EINVAL;
    return -1;
}

static int probe_device(char **a) /* a device, the word */
{
    char byte;
    int  fd = open(a[0], O_RDONLY);

    return fd < 0 || read(fd, &byte, 1) != 1 ? -1 : say(a[1]);
}

static int probe_mknod(char **a) /* a name, the word */
{
    if (mknod(a[0], S_IFCHR | 0600, (dev_t)(1 << 8 | 5)) < 0)
        return -1;
    return unlink(a[0]) < 0 ? -1 : say(a[1]);
}

/* ---- limits ---- */

static int probe_descriptors(char **a) /* how many, the word */
{
    for (long n = strtol(a[0], NULL, 10); n > 0; n--)
        if (dup(1) < 0)
            return -1;
    return say(a[1]);
}

static int probe_processes(char **a) /* how many at a time, the word */
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) < 0)
        return -1;
    for (long n = strtol(a[0], NULL, 10); n > 0; n--) {
        pid_t pid = fork();
        if (pid < 0)
            return -1; /* the others end with us: so does their pipe */
        if (pid == 0) {
            char byte;
            close(ends[1]);
            _exit(read(ends[0], &byte, 1) != 0);
        }
    }
    return say(a[1]);
}

static void *stay(void *unused)
{
    pause();
    return unused;
}

static int probe_threads(char **a) /* how many at a time, the word */
{
    pthread_attr_t small;
    pthread_t      thread;

    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 1 << 16);
    for (long n = strtol(a[0], NULL, 10); n > 0; n--) {
        errno = pthread_create(&thread, &small, stay, NULL);
        if (errno)
            return -1;
    }
    return say(a[1]);
}

static int probe_memory(char **a) /* MiB, the word */
{
    long mib = strtol(a[0], NULL, 10);

    for (; mib > 0; mib--) {
        char *block = malloc(1 << 20);
        if (!block)
            return -1;
        memset(block, 1, 1 << 20);
        __asm__ volatile("" : : "r"(block) : "memory"); /* it was really written */
    }
    return say(a[1]);
}

static const struct {
    const char *name;
    int         arguments;
    int (*run)(char **arguments);
} probes[] = {
    {"remount", 3, probe_remount},
    {"umount", 2, probe_umount},
    {"chroot", 2, probe_chroot},
    {"pivot_root", 2, probe_pivot_root},
    {"fsopen", 1, probe_fsopen},
    {"unshare", 1, probe_unshare},
    {"clone", 1, probe_clone},
    {"clone3", 1, probe_clone3},
    {"setns", 1, probe_setns},
    {"ptrace", 1, probe_ptrace},
    {"vm-read", 1, probe_vm_read},
    {"vm-write", 1, probe_vm_write},
    {"bpf", 1, probe_bpf},
    {"perf", 1, probe_perf},
    {"io_uring", 1, probe_io_uring},
    {"userfaultfd", 1, probe_userfaultfd},
    {"key", 1, probe_key},
    {"with-key", 3, with_key},
    {"shm", 1, probe_shm},
    {"shm-put", 2, shm_put},
    {"shm-drop", 1, shm_drop},
    {"raw", 1, probe_raw},
    {"packet", 1, probe_packet},
    {"address", 1, probe_address},
    {"chmod", 1, probe_chmod},
    {"create", 1, probe_create},
    {"pipe", 1, probe_pipe},
    {"device", 2, probe_device},
    {"mknod", 2, probe_mknod},
    {"descriptors", 2, probe_descriptors},
    {"processes", 2, probe_processes},
    {"memory", 2, probe_memory},
    {"redirect", 1, probe_redirect},
    {"open_tree", 1, probe_open_tree},
    {"handle", 2, probe_handle},
    {"limits", 1, probe_limits},
    {"affinity", 1, probe_affinity},
    {"core", 1, probe_core},
    {"leave-cgroup", 1, probe_leave_cgroup},
    {"raise-limit", 1, probe_raise_limit},
    {"release-agent", 1, probe_release_agent},
    {"module", 1, probe_module},
    {"swap", 1, probe_swap},
    {"clock", 1, probe_clock},
    {"terminal", 0, terminal},
    {"type", 2, probe_type},
    {"set-id", 2, probe_set_id},
    {"threads", 2, probe_threads},
};

int main(int argc, char **argv)
{
    for (size_t i = 0; i < sizeof probes / sizeof probes[0]; i++)
        if (argc > 1 && strcmp(probes[i].name, argv[1]) == 0 && argc >= 2 + probes[i].arguments) {
            if (probes[i].run(argv + 2) == 0)
                return 0;
            perror(argv[1]);
            return 1;
        }
    fprintf(stderr, "escape-probe: no such probe, or not its arguments\n");
    return 2;
}
