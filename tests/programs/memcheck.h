/* memcheck - what the helper of memcheck.c is asked, and how a descriptor travels. */
#pragma once

#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/types.h>

struct memcheck_call {
    long     nr;
    pid_t    pid;                  /* of pidfd_open */
    uint64_t flags, mode, resolve; /* of openat2, whose directory comes along */
    char     path[PATH_MAX];
};

static inline ssize_t memcheck_send(int socket_fd, const void *data, size_t size, int fd)
{
    char          control[CMSG_SPACE(sizeof(int))] = {0};
    struct iovec  v = {(void *)data, size};
    struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1};

    if (fd >= 0) {
        m.msg_control = control;
        m.msg_controllen = sizeof control;
        *CMSG_FIRSTHDR(&m) = (struct cmsghdr){
            .cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
        memcpy(CMSG_DATA(CMSG_FIRSTHDR(&m)), &fd, sizeof fd);
    }
    return sendmsg(socket_fd, &m, MSG_NOSIGNAL);
}

static inline ssize_t memcheck_receive(int socket_fd, void *data, size_t size, int *ret_fd)
{
    char          control[CMSG_SPACE(sizeof(int))] = {0};
    struct iovec  v = {data, size};
    struct msghdr m = {
        .msg_iov = &v, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    ssize_t         n = recvmsg(socket_fd, &m, MSG_CMSG_CLOEXEC);
    struct cmsghdr *c = n < 0 ? NULL : CMSG_FIRSTHDR(&m);

    *ret_fd = -1;
    if (c && c->cmsg_type == SCM_RIGHTS)
        memcpy(ret_fd, CMSG_DATA(c), sizeof *ret_fd);
    return n;
}
