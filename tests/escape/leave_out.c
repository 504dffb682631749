/* What the jail of the escape tests leaves out: the lines of a file `left-out` beside the program,
 * each a kind and a name (jail/leave_out.h). It is read at the first question, which comes before
 * the jail has given anything up; the child that becomes init has it in its memory. */
#include "jail/leave_out.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"

enum { TEXT_MAX = 4096, FILTER_MAX = 4096 };

#define CALL(name)                                                                                 \
    {                                                                                              \
#name, SYS_##name                                                                          \
    }
static const struct {
    const char *name;
    unsigned    number;
} calls[] = {
    CALL(add_key),
    CALL(bpf),
    CALL(clock_adjtime),
    CALL(fchmod),
    CALL(init_module),
    CALL(io_uring_enter),
    CALL(io_uring_register),
    CALL(io_uring_setup),
    CALL(mknodat),
    CALL(name_to_handle_at),
    CALL(openat2),
    CALL(open_by_handle_at),
    CALL(swapoff),
#ifdef SYS_chmod
    CALL(chmod),
    CALL(creat),
    CALL(mknod),
    CALL(open),
#endif
    {"fchmodat2", 452}, /* newer than some headers */
    CALL(chroot),
    CALL(clone),
    CALL(clone3),
    CALL(fchmodat),
    CALL(fsopen),
    CALL(ioctl),
    CALL(keyctl),
    CALL(pidfd_open),
    CALL(pidfd_getfd),
    CALL(mount),
    CALL(openat),
    CALL(perf_event_open),
    CALL(pivot_root),
    CALL(open_tree),
    CALL(prlimit64),
    CALL(sched_setaffinity),
    CALL(process_vm_readv),
    CALL(ptrace),
    CALL(process_vm_writev),
    CALL(setns),
    CALL(socket),
    CALL(umount2),
    CALL(unshare),
    CALL(userfaultfd),
};

/* A test that does not get what it asked for would show nothing: it must not go on. */
static void __attribute__((noreturn)) give_up(const char *what)
{
    fprintf(stderr, "escape-jail: %s\n", what);
    abort();
}

static const char *left_out(void)
{
    static char *text; /* begins and ends with a line end */

    if (!text) {
        char           self[PATH_MAX];
        ssize_t        n = readlink("/proc/self/exe", self, sizeof self - 1);
        autofree char *lines = NULL;
        self[n < 0 ? 0 : n] = '\0';
        char *slash = strrchr(self, '/');
        if (!slash)
            give_up("no /proc/self/exe");
        *slash = '\0';
        autofree char *path = str_format("%s/left-out", self);
        if (file_read_text(AT_FDCWD, path, TEXT_MAX, &lines, NULL) < 0)
            give_up("no file 'left-out' beside it");
        text = str_format("\n%s\n", lines);
    }
    return text;
}

bool jail_leaves_out(const char *kind, const char *name)
{
    autofree char *line = str_format("\n%s %s\n", kind, name ? name : "");

    return strstr(left_out(), line) != NULL;
}

/* Before the filter's own first line: LD nr; for each call JEQ, RET ALLOW. */
const struct sock_filter *jail_filter(const struct sock_filter *code, size_t *n)
{
    static struct sock_filter open[FILTER_MAX];
    size_t                    used = 0;

    if (*n + 1 + 2 * sizeof calls / sizeof calls[0] > FILTER_MAX)
        give_up("the filter is too long");
    open[used++] =
        (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
        if (jail_leaves_out("call", calls[i].name)) {
            open[used++] =
                (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, calls[i].number, 0, 1);
            open[used++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
        }
    memcpy(open + used, code, *n * sizeof *code);
    *n += used;
    return open;
}
