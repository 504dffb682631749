/* deny NUMBER ERRNO PROGRAM [ARG…] - runs the program on a kernel that lacks one system call, or
 * answers it with another error. */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    if (argc < 4)
        return 2;
    struct sock_filter code[] = {
        {BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(struct seccomp_data, nr)},
        {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, (unsigned)atoi(argv[1])},
        {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | (unsigned)atoi(argv[2])},
        {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW},
    };
    struct sock_fprog program = {sizeof code / sizeof code[0], code};

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0) {
        perror("deny");
        return 2;
    }
    execv(argv[3], argv + 3);
    perror(argv[3]);
    return 2;
}
