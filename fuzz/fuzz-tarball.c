/* fuzz-tarball - members of a package; compressed or not: libarchive takes both.
 *
 * Asserted: a path that is handed out stays in the package, sizes and counts keep their bounds, and
 * no more is read of a member than it claimed. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"
#include "npm/tarball.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct tarball_limits limits = {.members = 50, .bytes = 1 << 16};

static void require(int truth)
{
    if (!truth)
        abort();
}

static void check_path(const char *path)
{
    require(*path != '/');
    for (size_t n; *path; path += n + (path[n] == '/')) {
        n = strcspn(path, "/");
        require(n > 0 && !(n == 1 && *path == '.') && !(n == 2 && memcmp(path, "..", 2) == 0));
    }
}

struct seen {
    int64_t members, bytes;
};

static int take(void *owner, struct tarball *t, const struct tarball_member *m, struct err *e)
{
    struct seen *s = owner;
    char         block[1000];
    ssize_t      n;
    int64_t      bytes = 0;

    check_path(m->path);
    require(m->is_dir || *m->path);
    if (++s->members % 3 == 0) /* not read */
        return 0;
    while ((n = tarball_read(t, block, sizeof block, e)) > 0)
        bytes += n;
    require(bytes <= m->size);
    s->bytes += bytes;
    return (int)n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    autofd int  fd = memfd_create("tgz", MFD_CLOEXEC);
    struct seen seen = {0};
    struct err  e = {0};

    require(fd >= 0 && fd_write_all(fd, data, size) == 0 && lseek(fd, 0, SEEK_SET) == 0);
    if (tarball_each(fd, &limits, take, &seen, &e) < 0)
        require(e.kind != ERR_NONE && e.msg[0]);
    require(seen.members <= limits.members && seen.bytes <= limits.bytes);
    return 0;
}
