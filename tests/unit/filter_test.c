/* The seccomp program of this build, run by a small interpreter: what it answers to calls as the
 * machine it was made for numbers them. In a cross build that is not the machine that made it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/netlink.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "filter.h"

#define N(a) (sizeof(a) / sizeof((a)[0]))

#if defined(__x86_64__)
enum { OWN_ARCH = (int)AUDIT_ARCH_X86_64, OTHER_ARCH = (int)AUDIT_ARCH_AARCH64 };
#elif defined(__aarch64__)
enum { OWN_ARCH = (int)AUDIT_ARCH_AARCH64, OTHER_ARCH = (int)AUDIT_ARCH_X86_64 };
#endif

enum { ALLOWED = (int)SECCOMP_RET_ALLOW, KILLED = (int)SECCOMP_RET_KILL_PROCESS };
#define REFUSED(number) ((int)(SECCOMP_RET_ERRNO | (number)))

static bool holds(const struct sock_filter *f, uint32_t a)
{
    switch (BPF_OP(f->code)) {
    case BPF_JA:
        return true;
    case BPF_JEQ:
        return a == f->k;
    case BPF_JGT:
        return a > f->k;
    case BPF_JGE:
        return a >= f->k;
    case BPF_JSET:
        return a & f->k;
    default:
        fail_msg("jump 0x%x", f->code);
        return false;
    }
}

/* The instructions that libseccomp writes; jumps only go forward, so it ends. */
static int answer(const struct seccomp_data *d)
{
    uint32_t a = 0;

    for (size_t i = 0; i < N(filter); i++) {
        const struct sock_filter *f = &filter[i];
        if (f->code == (BPF_LD | BPF_W | BPF_ABS)) {
            assert_true(f->k + sizeof a <= sizeof *d);
            memcpy(&a, (const char *)d + f->k, sizeof a);
        } else if (f->code == (BPF_ALU | BPF_AND | BPF_K)) {
            a &= f->k;
        } else if (f->code == (BPF_JMP | BPF_JA)) {
            i += f->k;
        } else if (BPF_CLASS(f->code) == BPF_JMP) {
            i += holds(f, a) ? f->jt : f->jf;
        } else if (f->code == (BPF_RET | BPF_K)) {
            return (int)f->k;
        } else {
            fail_msg("instruction 0x%x", f->code);
        }
    }
    fail_msg("the program has no end");
    return 0;
}

static const struct {
    const char *name;
    int         number;
    uint64_t    args[6];
    int         expected;
} calls[] = {
    {"read", SYS_read, {0}, ALLOWED},
    {"exit_group", SYS_exit_group, {0}, ALLOWED},
    {"execve", SYS_execve, {0}, ALLOWED},
    {"newfstatat", SYS_newfstatat, {0}, ALLOWED},
    {"epoll_pwait", SYS_epoll_pwait, {0}, ALLOWED},
    {"rt_sigreturn", SYS_rt_sigreturn, {0}, ALLOWED},
    {"set_robust_list", SYS_set_robust_list, {0}, ALLOWED},

    {"a thread", SYS_clone, {CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_THREAD}, ALLOWED},
    {"clone into a user namespace", SYS_clone, {CLONE_NEWUSER | 17}, REFUSED(ENOSYS)},
    {"clone into a network", SYS_clone, {CLONE_NEWNET | 17}, REFUSED(ENOSYS)},
    {"clone3", SYS_clone3, {0}, REFUSED(ENOSYS)},
    {"setresuid to what it is", SYS_setresuid, {~0U, 0, ~0U}, REFUSED(0)},
    {"setresgid to what it is", SYS_setresgid, {~0ULL, 0, ~0ULL}, REFUSED(0)},
    {"setresuid to another", SYS_setresuid, {~0U, 1, ~0U}, REFUSED(ENOSYS)},
    {"setresuid of all", SYS_setresuid, {0, 0, 0}, REFUSED(ENOSYS)},
    {"setresgid of all", SYS_setresgid, {0, 0, 0}, REFUSED(ENOSYS)},
    {"setuid", SYS_setuid, {0}, REFUSED(ENOSYS)},
    {"unshare", SYS_unshare, {0}, REFUSED(ENOSYS)},
    {"setns", SYS_setns, {0}, REFUSED(ENOSYS)},
    {"mount", SYS_mount, {0}, REFUSED(ENOSYS)},
    {"pivot_root", SYS_pivot_root, {0}, REFUSED(ENOSYS)},
    {"ptrace", SYS_ptrace, {0}, REFUSED(ENOSYS)},
    {"process_vm_writev", SYS_process_vm_writev, {0}, REFUSED(ENOSYS)},
    {"bpf", SYS_bpf, {0}, REFUSED(ENOSYS)},
    {"io_uring_setup", SYS_io_uring_setup, {0}, REFUSED(ENOSYS)},
    {"userfaultfd", SYS_userfaultfd, {0}, REFUSED(ENOSYS)},
    {"keyctl", SYS_keyctl, {0}, REFUSED(ENOSYS)},
    {"open_by_handle_at", SYS_open_by_handle_at, {0}, REFUSED(ENOSYS)},
    {"openat2", SYS_openat2, {0}, REFUSED(ENOSYS)},
    {"init_module", SYS_init_module, {0}, REFUSED(ENOSYS)},
    {"finit_module", SYS_finit_module, {0}, REFUSED(ENOSYS)},
    {"delete_module", SYS_delete_module, {0}, REFUSED(ENOSYS)},
    {"kexec_load", SYS_kexec_load, {0}, REFUSED(ENOSYS)},
    {"kexec_file_load", SYS_kexec_file_load, {0}, REFUSED(ENOSYS)},
    {"clock_settime", SYS_clock_settime, {0}, REFUSED(ENOSYS)},
    {"clock_adjtime", SYS_clock_adjtime, {0}, REFUSED(ENOSYS)},
    {"adjtimex", SYS_adjtimex, {0}, REFUSED(ENOSYS)},
    {"settimeofday", SYS_settimeofday, {0}, REFUSED(ENOSYS)},
    {"swapon", SYS_swapon, {0}, REFUSED(ENOSYS)},
    {"swapoff", SYS_swapoff, {0}, REFUSED(ENOSYS)},
    {"reboot", SYS_reboot, {0}, REFUSED(ENOSYS)},
    {"quotactl", SYS_quotactl, {0}, REFUSED(ENOSYS)},
    {"add_key", SYS_add_key, {0}, REFUSED(ENOSYS)},
    {"request_key", SYS_request_key, {0}, REFUSED(ENOSYS)},
    {"perf_event_open", SYS_perf_event_open, {0}, REFUSED(ENOSYS)},
    {"process_vm_readv", SYS_process_vm_readv, {0}, REFUSED(ENOSYS)},
    {"pidfd_getfd", SYS_pidfd_getfd, {0}, REFUSED(ENOSYS)},
    {"fsopen", SYS_fsopen, {0}, REFUSED(ENOSYS)},
    {"open_tree", SYS_open_tree, {0}, REFUSED(ENOSYS)},
    {"move_mount", SYS_move_mount, {0}, REFUSED(ENOSYS)},
    {"mount_setattr", SYS_mount_setattr, {0}, REFUSED(ENOSYS)},
    {"chroot", SYS_chroot, {0}, REFUSED(ENOSYS)},
    {"umount2", SYS_umount2, {0}, REFUSED(ENOSYS)},
    {"name_to_handle_at", SYS_name_to_handle_at, {0}, REFUSED(ENOSYS)},
    {"personality", SYS_personality, {0}, REFUSED(ENOSYS)},
    {"mbind", SYS_mbind, {0}, REFUSED(ENOSYS)},
    {"kcmp", SYS_kcmp, {0}, REFUSED(ENOSYS)},
    {"acct", SYS_acct, {0}, REFUSED(ENOSYS)},
    {"syslog", SYS_syslog, {0}, REFUSED(ENOSYS)},
    {"vhangup", SYS_vhangup, {0}, REFUSED(ENOSYS)},
    {"sethostname", SYS_sethostname, {0}, REFUSED(ENOSYS)},
    {"fchmodat2", 452, {0}, REFUSED(ENOSYS)}, /* newer than some headers */
    {"a call of the future", 5000, {0}, REFUSED(ENOSYS)},

    {"openat to read", SYS_openat, {0, 0, O_RDONLY | O_DIRECTORY, 04777}, ALLOWED},
    {"openat to create", SYS_openat, {0, 0, O_CREAT | O_WRONLY, 0644}, ALLOWED},
    {"openat setuid", SYS_openat, {0, 0, O_CREAT | O_WRONLY, 04755}, REFUSED(EPERM)},
    {"openat setgid", SYS_openat, {0, 0, O_CREAT | O_WRONLY, 02755}, REFUSED(EPERM)},
    {"openat a nameless file", SYS_openat, {0, 0, O_TMPFILE | O_RDWR, 0600}, ALLOWED},
    {"openat it setuid", SYS_openat, {0, 0, O_TMPFILE | O_RDWR, 04755}, REFUSED(EPERM)},
    {"fchmod", SYS_fchmod, {0, 0755}, ALLOWED},
    {"fchmod setuid", SYS_fchmod, {0, 04755}, REFUSED(EPERM)},
    {"fchmod setuid, high half set", SYS_fchmod, {0, 0x100004755}, REFUSED(EPERM)},
    {"fchmodat setgid", SYS_fchmodat, {0, 0, 02755}, REFUSED(EPERM)},
    {"mkdirat setgid", SYS_mkdirat, {0, 0, 02755}, REFUSED(EPERM)},
    {"mknodat setuid", SYS_mknodat, {0, 0, 04755}, REFUSED(EPERM)},

    {"TCGETS", SYS_ioctl, {0, TCGETS}, ALLOWED},
    {"FIONBIO", SYS_ioctl, {0, FIONBIO}, ALLOWED},
    {"TIOCGPTN", SYS_ioctl, {0, TIOCGPTN}, ALLOWED},
    {"TIOCSTI", SYS_ioctl, {0, TIOCSTI}, REFUSED(ENOSYS)},
    {"TIOCSTI, high half set", SYS_ioctl, {0, 1ULL << 32 | TIOCSTI}, REFUSED(ENOSYS)},

    {"a TCP socket", SYS_socket, {AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK}, ALLOWED},
    {"a unix socket", SYS_socket, {AF_UNIX, SOCK_DGRAM}, ALLOWED},
    {"a raw socket", SYS_socket, {AF_INET, SOCK_RAW}, REFUSED(ENOSYS)},
    {"a packet socket", SYS_socket, {AF_PACKET, SOCK_DGRAM}, REFUSED(ENOSYS)},
    {"routes", SYS_socket, {AF_NETLINK, SOCK_RAW, NETLINK_ROUTE}, ALLOWED},
    {"netfilter", SYS_socket, {AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER}, REFUSED(ENOSYS)},

    {"own limit", SYS_prlimit64, {0, RLIMIT_NOFILE, 1}, ALLOWED},
    {"the limit of init", SYS_prlimit64, {1, RLIMIT_NOFILE, 1}, REFUSED(ENOSYS)},
    {"ask for the core limit", SYS_prlimit64, {0, RLIMIT_CORE, 0}, ALLOWED},
    {"set the core limit", SYS_prlimit64, {0, RLIMIT_CORE, 1}, REFUSED(ENOSYS)},
};

static void calls_get_their_answer(void **state)
{
    (void)state;
    for (size_t i = 0; i < N(calls); i++) {
        struct seccomp_data d = {.nr = calls[i].number, .arch = (uint32_t)OWN_ARCH};
        memcpy(d.args, calls[i].args, sizeof d.args);
        if (answer(&d) != calls[i].expected)
            fail_msg("%s: 0x%x, expected 0x%x", calls[i].name, (unsigned)answer(&d),
                     (unsigned)calls[i].expected);
    }
}

/* A 32-bit call of the same machine, or a program made for another one. */
static void another_architecture_kills(void **state)
{
    static const uint32_t others[] = {(uint32_t)OTHER_ARCH, AUDIT_ARCH_I386, AUDIT_ARCH_ARM, 0};

    (void)state;
    for (size_t i = 0; i < N(others); i++)
        assert_int_equal(answer(&(struct seccomp_data){.nr = SYS_read, .arch = others[i]}), KILLED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_get_their_answer),
        cmocka_unit_test(another_architecture_kills),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
