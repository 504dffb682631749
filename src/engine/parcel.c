#include "engine/parcel.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"

enum { BLOCK = 512, FILE_MAX = 16 << 20 };

static const char place[] = "/.jerboa/";

/* The header of POSIX's ustar, as far as files need it. */
struct header {
    char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8], type, link[100],
        magic[8], rest[247];
};
_Static_assert(sizeof(struct header) == BLOCK, "a block");

static int put(int fd, const char *name, const char *bytes, size_t size, struct err *e)
{
    static const char zeros[BLOCK];
    struct header     h = {.mode = "0000755", .uid = "0000000", .gid = "0000000", .type = '0'};
    unsigned          sum = 0;

    if (str_copy(h.name, sizeof h.name, name) < 0)
        return err_set(e, ERR_INTERNAL, "%.60s: the name is too long", name);
    snprintf(h.size, sizeof h.size, "%011zo", size);
    snprintf(h.mtime, sizeof h.mtime, "%011o", 0U);
    memcpy(h.magic, "ustar\00000", sizeof h.magic);
    memset(h.checksum, ' ', sizeof h.checksum);
    for (size_t i = 0; i < sizeof h; i++)
        sum += ((const uint8_t *)&h)[i];
    snprintf(h.checksum, sizeof h.checksum, "%06o", sum);
    if (fd_write_all(fd, &h, sizeof h) < 0 || fd_write_all(fd, bytes, size) < 0 ||
        fd_write_all(fd, zeros, (BLOCK - size % BLOCK) % BLOCK) < 0)
        return err_sys(e, "pack %.60s", name);
    return 0;
}

static int put_entry(int fd, const json_t *entry, struct err *e)
{
    const char    *target = json_string_value(json_object_get(entry, "target"));
    const char    *text = json_string_value(json_object_get(entry, "text"));
    const char    *source = json_string_value(json_object_get(entry, "source"));
    autofree char *read = NULL;
    size_t         size = text ? strlen(text) : 0;

    if (!str_starts(target, place))
        return err_set(e, ERR_INTERNAL, "%.60s cannot be copied", target);
    if (!text) {
        autofd int from = open(source, O_RDONLY | O_CLOEXEC);
        if (from < 0)
            return err_sys(e, "%.150s", source);
        TRY(fd_read_text(from, FILE_MAX, &read, &size, e));
    }
    return put(fd, target + strlen(place), text ? text : read, size, e);
}

int parcel_open(const json_t *entries, struct err *e)
{
    static const char end[2 * BLOCK];
    autofd int        fd = memfd_create("parcel", MFD_CLOEXEC);
    size_t            i;
    json_t           *entry;

    if (fd < 0)
        return err_sys(e, "make a file in memory");
    json_array_foreach (entries, i, entry)
        if (strcmp(json_string_value(json_object_get(entry, "kind")), "copy") == 0)
            TRY(put_entry(fd, entry, e));
    if (fd_write_all(fd, end, sizeof end) < 0)
        return err_sys(e, "pack");
    lseek(fd, 0, SEEK_SET);
    return take_fd(&fd);
}
