#include "fetch/untar.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "fetch/forked.h"
#include "fetch/roles.h"
#include "fetch/told.h"
#include "npm/unpack.h"

/* What went wrong, or an error of kind ERR_NONE, in one write. */
static void __attribute__((noreturn))
work(int tgz_fd, int dir_fd, const struct tarball_limits *limits, int answer_fd)
{
    struct err e = {0};

    if (roles_become_untar(dir_fd, &e) == 0)
        unpack_tgz(tgz_fd, dir_fd, limits, &e);
    _exit(fd_write_all(answer_fd, &e, sizeof e) < 0 ? 1 : 0);
}

int untar(int tgz_fd, int dir_fd, const struct tarball_limits *limits, struct err *e)
{
    int        fds[2];
    autofd int answer = -1, answered = -1;
    struct err told = {0};
    pid_t      pid;
    ssize_t    n;

    if (pipe2(fds, O_CLOEXEC) < 0)
        return err_sys(e, "pipe");
    answer = fds[0], answered = fds[1];
    pid = forked_start("untar", e);
    if (pid < 0)
        return -1;
    if (pid == 0)
        work(tgz_fd, dir_fd, limits, answered);
    fd_close(&answered);
    do
        n = read(answer, &told, sizeof told);
    while (n < 0 && errno == EINTR);
    fd_close(&answer);
    TRY(forked_reap(pid, "untar", e));
    if (n != sizeof told)
        return err_set(e, ERR_INTERNAL, "the untar of jerboa-fetch gave no answer");
    return told_check(&told, e);
}
