#include "jail/idrange.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"

/* 0x70000000 to 0x7ffdffff: systemd's registry of uid ranges leaves it unused; nspawn's, docker's
 * and useradd's lie below. */
enum { FIRST_BASE = 0x70000000 };

static const char directory[] = "/run/jerboa";
const char        idrange_file[] = "/run/jerboa/ids";

/* ---- what this process may map ---- */

/* CAP_SYS_ADMIN too, for the idmapped mounts without which a range could own nothing. */
static int look_at_capabilities(bool *ret, struct err *e)
{
    const uint32_t wanted = 1u << CAP_SETUID | 1u << CAP_SETGID | 1u << CAP_SYS_ADMIN;
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct   data[2] = {0};

    if (syscall(SYS_capget, &header, data) < 0)
        return err_sys(e, "look at the own capabilities");
    *ret = (data[0].effective & wanted) == wanted;
    return 0;
}

/* Whether the ranges exist in our own user namespace: `inside outside count` a line. */
static int look_at_map(bool *ret, struct err *e)
{
    autofree char *text = NULL;
    unsigned       inside, outside, count;

    TRY(file_read_text(AT_FDCWD, "/proc/self/uid_map", 1 << 16, &text, e));
    *ret = false;
    for (const char *line = text; line; line = strchr(line, '\n'), line = line ? line + 1 : NULL)
        if (sscanf(line, "%u %u %u", &inside, &outside, &count) == 3 && inside <= FIRST_BASE &&
            count >= FIRST_BASE - inside + IDRANGE_SLOTS * IDRANGE_SIZE)
            *ret = true;
    return 0;
}

static enum { UNKNOWN, NO_CAPABILITY, NO_RANGE, POSSIBLE } answer;

int idrange_look(struct err *e)
{
    bool may_map = false, exist = false;

    if (answer != UNKNOWN) /* a second look could find something else */
        return 0;
    TRY(look_at_capabilities(&may_map, e));
    TRY(look_at_map(&exist, e));
    answer = !may_map ? NO_CAPABILITY : !exist ? NO_RANGE : POSSIBLE;
    return 0;
}

bool idrange_is_possible(struct err *e)
{
    assert(answer != UNKNOWN);
    if (answer == POSSIBLE)
        return true;
    if (geteuid() == 0)
        err_set(e, ERR_UNAVAILABLE, "root of this container has no %s to give",
                answer == NO_RANGE ? "uids of its own" : "capability to map uids, and so none");
    else
        err_set(e, ERR_UNAVAILABLE,
                "only root can give a sandbox uids of its own: it runs as uid %u",
                (unsigned)geteuid());
    return false;
}

/* ---- slots ---- */

static int open_locks(const char *file, struct err *e)
{
    int fd;

    if (file == idrange_file && mkdir(directory, 0700) < 0 && errno != EEXIST)
        return err_sys(e, "%s", directory);
    fd = open(file, O_RDWR | (file == idrange_file ? O_CREAT : 0) | O_CLOEXEC | O_NOFOLLOW, 0600);
    return fd < 0 ? err_sys(e, "%s", file) : fd;
}

static int lock_slot(int fd, unsigned slot)
{
    /* A lock of the open file description: it goes when the last copy of this descriptor does, not
     * when some other one of the same file is closed. The child's copy goes before its exec. */
    struct flock byte = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = slot, .l_len = 1};

    return fcntl(fd, F_OFD_SETLK, &byte);
}

static struct idrange range_of(unsigned slot, const char *file, int lock_fd)
{
    if (file == idrange_file) {
        uid_t base = FIRST_BASE + slot * IDRANGE_SIZE;
        return (struct idrange){lock_fd, slot, base, base, IDRANGE_SIZE};
    }
    return (struct idrange){lock_fd, slot, geteuid(), getegid(), 1};
}

int idrange_take(struct idrange *ret, const char *file, struct err *e)
{
    autofd int fd = -1;

    if (!file) {
        *ret = range_of(0, NULL, -1);
        return 0;
    }
    fd = open_locks(file, e);
    if (fd < 0)
        return -1;
    for (unsigned slot = 0; slot < IDRANGE_SLOTS; slot++) {
        if (lock_slot(fd, slot) == 0) {
            *ret = range_of(slot, file, take_fd(&fd));
            return 0;
        }
        if (errno != EAGAIN && errno != EACCES)
            return err_sys(e, "lock %s", file);
    }
    return err_set(e, ERR_LIMIT, "all %d slots for sandboxes are in use", IDRANGE_SLOTS);
}

void idrange_release(struct idrange *r)
{
    fd_close(&r->lock_fd);
}
