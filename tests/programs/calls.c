/* calls - makes the system calls that the walls are made of and prints the errno of each. */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define TRY(name, ...) printf("%s %d\n", name, (int)(syscall(__VA_ARGS__) < 0 ? errno : 0))

int main(void)
{
    TRY("ptrace", SYS_ptrace, 16, 1, 0, 0);
    TRY("bpf", SYS_bpf, 0, 0, 0);
    TRY("io_uring", SYS_io_uring_setup, 1, 0);
    TRY("keyctl", SYS_keyctl, 0, -3, 0);
    TRY("add_key", SYS_add_key, "user", "x", "y", 1, -3);
    TRY("perf", SYS_perf_event_open, 0, 0, -1, -1, 0);
    TRY("userfaultfd", SYS_userfaultfd, 0);
    TRY("unshare", SYS_unshare, CLONE_NEWUSER);
    TRY("setns", SYS_setns, 0, 0);
    TRY("clone", SYS_clone, CLONE_NEWUSER | 17, 0, 0, 0, 0);
    TRY("clone3", SYS_clone3, 0, 0);
    TRY("mount", SYS_mount, "none", "/tmp", "tmpfs", 0, 0);
    TRY("fsopen", SYS_fsopen, "tmpfs", 0);
    TRY("open_tree", SYS_open_tree, -100, "/", 1);
    TRY("pivot_root", SYS_pivot_root, ".", ".");
    TRY("chroot", SYS_chroot, "/");
    TRY("init_module", SYS_init_module, 0, 0, "");
    TRY("kexec", SYS_kexec_load, 0, 0, 0, 0);
    TRY("reboot", SYS_reboot, 0, 0, 0, 0);
    TRY("quotactl", SYS_quotactl, 0, 0, 0, 0);
    TRY("name_to_handle", SYS_name_to_handle_at, -100, "/", 0, 0, 0);
    TRY("open_by_handle", SYS_open_by_handle_at, -100, 0, 0);
    TRY("process_vm_readv", SYS_process_vm_readv, 1, 0, 0, 0, 0, 0);
    TRY("raw socket", SYS_socket, AF_INET, SOCK_RAW, 1);
    TRY("raw socket of IPv6", SYS_socket, AF_INET6, SOCK_RAW, 58);
    TRY("ping socket", SYS_socket, AF_INET, SOCK_DGRAM, 1);
    TRY("ping socket of IPv6", SYS_socket, AF_INET6, SOCK_DGRAM, 58);
    TRY("packet socket", SYS_socket, AF_PACKET, SOCK_RAW, 0);
    TRY("vsock", SYS_socket, 40, SOCK_STREAM, 0);
    TRY("alg", SYS_socket, 38, SOCK_SEQPACKET, 0);
    TRY("netfilter socket", SYS_socket, AF_NETLINK, SOCK_RAW, 12);
    TRY("swapon", SYS_swapon, "/x", 0);
    TRY("acct", SYS_acct, 0);
    TRY("settimeofday", SYS_settimeofday, 0, 0);
    TRY("tiocsti", SYS_ioctl, 0, 0x5412, "x");
    TRY("tiocsti in disguise", SYS_ioctl, 0, 0x100005412UL, "x");
    TRY("fchmodat2", 452, -100, "/tmp", 04755, 0);
    TRY("personality", SYS_personality, 0x0400000);
    return 0;
}
