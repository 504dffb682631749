#include "jail/handover.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "jail/cgroup.h"

/* Else the kernel would put one more than there is room for into the padding. */
_Static_assert(CMSG_SPACE(sizeof(int) * CGROUP_HIERARCHIES_MAX) ==
                   CMSG_LEN(sizeof(int) * CGROUP_HIERARCHIES_MAX),
               "an even number of descriptors");

int handover_send(int socket_fd, uint32_t group, const int *fds, int n)
{
    char          control[CMSG_SPACE(sizeof(int) * CGROUP_HIERARCHIES_MAX)] = {0};
    struct iovec  number = {&group, sizeof group};
    struct msghdr msg = {.msg_iov = &number, .msg_iovlen = 1};

    if (n > 0) {
        msg.msg_control = control;
        msg.msg_controllen = CMSG_SPACE(sizeof(int) * (size_t)n);
        struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
        *c = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof(int) * (size_t)n),
                              .cmsg_level = SOL_SOCKET,
                              .cmsg_type = SCM_RIGHTS};
        memcpy(CMSG_DATA(c), fds, sizeof(int) * (size_t)n);
    }
    return (int)sendmsg(socket_fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT); /* init may never read */
}

int handover_receive(int socket_fd, int *ret_fds)
{
    char            control[CMSG_SPACE(sizeof(int) * CGROUP_HIERARCHIES_MAX)];
    uint32_t        group;
    struct iovec    number = {&group, sizeof group};
    struct msghdr   msg = {.msg_iov = &number,
                           .msg_iovlen = 1,
                           .msg_control = control,
                           .msg_controllen = sizeof control};
    struct cmsghdr *c;
    ssize_t         n;

    do
        n = recvmsg(socket_fd, &msg, MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    if (n != sizeof group)
        return -1;
    c = CMSG_FIRSTHDR(&msg);
    if (!c || c->cmsg_type != SCM_RIGHTS)
        return 0;
    size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    memcpy(ret_fds, CMSG_DATA(c), count * sizeof(int));
    return (int)count;
}
