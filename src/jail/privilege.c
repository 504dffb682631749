#include "jail/privilege.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/keyctl.h>
#include <linux/seccomp.h>
#include <linux/securebits.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "jail/leave_out.h"

#include "filter.h" /* generated: static const struct sock_filter filter[] */

int privilege_drop_capabilities(struct err *e)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct   none[2] = {0};

    for (int cap = 0; prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0 || errno != EINVAL; cap++)
        if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0)
            return err_sys(e, "drop capability %d from the bounding set", cap);
    /* uid 0 means nothing any more, whatever is executed */
    if (prctl(PR_SET_SECUREBITS,
              SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP |
                  SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_KEEP_CAPS_LOCKED |
                  SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED,
              0, 0, 0) < 0)
        return err_sys(e, "set secure bits");
    if (syscall(SYS_capset, &header, none) < 0)
        return err_sys(e, "capset");
    return 0;
}

/* The keys of whoever started us stay his; ours is empty and goes with the last process. Where it
 * cannot be had (no keys in the kernel, a container that forbids the call, a quota), the filter
 * alone keeps code from asking for any. */
void privilege_leave_keys(void)
{
    (void)syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL);
}

int privilege_forbid_new(struct err *e)
{
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return err_sys(e, "no_new_privs");
    return 0;
}

static int load(const struct sock_filter *code, size_t n, struct err *e)
{
    struct sock_fprog program = {.len = (unsigned short)n, .filter = (struct sock_filter *)code};

    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0)
        return err_sys(e, "seccomp");
    return 0;
}

int privilege_filter_calls(struct err *e)
{
    size_t                    n = sizeof filter / sizeof filter[0];
    const struct sock_filter *code = jail_filter(filter, &n);

    return load(code, n, e);
}

int privilege_filter_unseen(struct err *e)
{
    static const struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_memfd_create, 6, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_shmget, 5, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_semget, 4, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 0, 4),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[3])), /* its flags */
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, MAP_ANONYMOUS, 0, 2),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, MAP_SHARED, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW), /* and the other filter's turn */
    };

    return load(code, sizeof code / sizeof code[0], e);
}

static int limit(int which, rlim_t most, struct err *e)
{
    struct rlimit now;

    if (getrlimit(which, &now) < 0)
        return err_sys(e, "getrlimit %d", which);
    if (now.rlim_max < most)
        most = now.rlim_max;
    if (setrlimit(which, &(struct rlimit){most, most}) < 0)
        return err_sys(e, "setrlimit %d", which);
    return 0;
}

int privilege_limit_processes(int64_t most, struct err *e)
{
    return limit(RLIMIT_NPROC, (rlim_t)most, e);
}

int privilege_limit_resources(int64_t fds, struct err *e)
{
    const struct {
        const char *name;
        int         which;
        rlim_t      most;
    } limits[] = {
        {"descriptors", RLIMIT_NOFILE, (rlim_t)fds},
        {"core", RLIMIT_CORE, 1}, /* 0 would still start a core_pattern program: filter_gen.c */
        /* Beyond any disk of ours: for sparse files in FILES_DIR, which whoever copies it fills. */
        {"file size", RLIMIT_FSIZE, 16ULL << 30},
        {"locked memory", RLIMIT_MEMLOCK, 8 << 20},
        {"message queues", RLIMIT_MSGQUEUE, 0},
        {"real-time priority", RLIMIT_RTPRIO, 0},
        {"queued signals", RLIMIT_SIGPENDING, 4096},
    };

    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++)
        if (!jail_leaves_out("limit", limits[i].name))
            TRY(limit(limits[i].which, limits[i].most, e));
    return 0;
}
