#include "jail/idrange.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/fd.h"

/* 0x70000000 to 0x7ffdffff: systemd's registry of uid ranges leaves it unused; nspawn's, docker's
 * and useradd's lie below. */
enum { FIRST_BASE = 0x70000000, SLOTS = 4094 };

static const char directory[] = "/run/jerboa", file[] = "/run/jerboa/ids";

static int open_locks(struct err *e)
{
    int fd;

    if (mkdir(directory, 0700) < 0 && errno != EEXIST)
        return err_sys(e, "%s", directory);
    fd = open(file, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    return fd < 0 ? err_sys(e, "%s", file) : fd;
}

static int lock_slot(int fd, unsigned slot)
{
    /* A lock of the open file description: it goes when the last copy of this descriptor does, not
     * when some other one of the same file is closed. The child's copy goes before its exec. */
    struct flock byte = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = slot, .l_len = 1};

    return fcntl(fd, F_OFD_SETLK, &byte);
}

int idrange_take_slot(unsigned slot, struct idrange *ret, struct err *e)
{
    autofd int fd = open_locks(e);

    if (fd < 0)
        return -1;
    if (slot >= SLOTS)
        return err_set(e, ERR_INVALID, "there is no uid range %u", slot);
    if (lock_slot(fd, slot) < 0)
        return err_sys(e, "uid range %u", slot);
    *ret = (struct idrange){take_fd(&fd), slot, FIRST_BASE + slot * IDRANGE_SIZE};
    return 0;
}

int idrange_take(struct idrange *ret, struct err *e)
{
    autofd int fd = open_locks(e);

    if (fd < 0)
        return -1;
    for (unsigned slot = 0; slot < SLOTS; slot++) {
        if (lock_slot(fd, slot) == 0) {
            *ret = (struct idrange){take_fd(&fd), slot, FIRST_BASE + slot * IDRANGE_SIZE};
            return 0;
        }
        if (errno != EAGAIN && errno != EACCES)
            return err_sys(e, "lock %s", file);
    }
    return err_set(e, ERR_LIMIT, "all %d uid ranges are in use", SLOTS);
}

void idrange_release(struct idrange *r)
{
    fd_close(&r->lock_fd);
}
