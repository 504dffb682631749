#include "fetch/download.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "store/lock.h"
#include "store/store.h"

enum { HASH_BYTES = 32 }; /* half of a sha512 names it well enough */

static void hash_name(const struct release *release, const char *before, const char *after,
                      char ret[NAME_MAX + 1])
{
    int n = snprintf(ret, NAME_MAX + 1, "%s", before);

    for (size_t i = 0; i < HASH_BYTES; i++)
        n += snprintf(ret + n, NAME_MAX + 1 - (size_t)n, "%02x", release->integrity.sha512[i]);
    snprintf(ret + n, NAME_MAX + 1 - (size_t)n, "%s", after);
}

/* Its lock is ours when this returns; who had it before may have renamed or removed the file. */
static int open_part(struct download *d, const char *what, struct err *e)
{
    for (;;) {
        autofd int fd = openat(d->dir_fd, d->part, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd < 0 || lock_wait(fd, what) < 0)
            return err_sys(e, "write into downloads of the store");
        if (lock_is_still(d->dir_fd, d->part, fd)) {
            d->fd = take_fd(&fd);
            return 0;
        }
    }
}

static int begin(const char *name, const struct release *release, struct download *d, struct err *e)
{
    autofree char *what = str_format("%s %s", name, release->version);

    d->fd = -1;
    hash_name(release, ".", ".part", d->part);
    d->dir_fd = store_ensure("downloads", e);
    if (d->dir_fd < 0 || open_part(d, what, e) < 0) {
        fd_close(&d->dir_fd);
        return -1;
    }
    return 0;
}

void download_leave(struct download *d)
{
    fd_close(&d->fd);
    fd_close(&d->dir_fd);
}

void download_unlock(struct download *d)
{
    flock(d->fd, LOCK_UN);
}

void download_drop(struct download *d)
{
    if (lock_is_still(d->dir_fd, d->part, d->fd)) /* after download_unlock it may be another's */
        unlinkat(d->dir_fd, d->part, 0);
    download_leave(d);
}

/* A beginning is kept only when the line broke: anything else would fail again, or fills a disk. */
static void give_up(struct download *d, const struct err *e)
{
    struct stat st;

    if (e->kind == ERR_UNAVAILABLE && fstat(d->fd, &st) == 0 && st.st_size > 0)
        download_leave(d);
    else
        download_drop(d);
}

static int fill(struct line *l, const char *name, const struct release *release, struct download *d,
                struct err *e)
{
    if (line_download(l, name, release, d->fd, e) < 0)
        return err_wrap(e, "%s %s", name, release->version);
    return lseek(d->fd, 0, SEEK_SET) < 0 ? err_sys(e, "read a tarball of the store") : 0;
}

int download_get(struct line *l, const char *name, const struct release *release,
                 struct download *ret, struct err *e)
{
    TRY(begin(name, release, ret, e));
    if (fill(l, name, release, ret, e) < 0) {
        give_up(ret, e);
        return -1;
    }
    return 0;
}

/* Whether the file is there and holds what the registry promises. */
static bool is_sound(int dir_fd, const char *file, const struct release *release)
{
    autofd int           fd = openat(dir_fd, file, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    struct integrity_sum sum = {0};
    char                 block[1 << 16];
    ssize_t              n;

    if (fd < 0)
        return false;
    integrity_begin(&sum);
    while ((n = read(fd, block, sizeof block)) > 0)
        integrity_add(&sum, block, (size_t)n);
    return integrity_end(&sum, &release->integrity, NULL) == 0 && n == 0;
}

/* The part has its lock: nobody else puts the file there. */
static int complete(struct line *l, const char *name, const struct release *release,
                    struct download *d, const char *file, struct err *e)
{
    if (is_sound(d->dir_fd, file, release)) { /* it came while we waited */
        download_drop(d);
        return 0;
    }
    if (fill(l, name, release, d, e) < 0) {
        give_up(d, e);
        return -1;
    }
    if (fchmod(d->fd, 0644) < 0 || fsync(d->fd) < 0 ||
        renameat(d->dir_fd, d->part, d->dir_fd, file) < 0) {
        err_sys(e, "put %s %s into the store", name, release->version);
        download_drop(d);
        return -1;
    }
    download_leave(d);
    return 0;
}

int download_keep(struct line *l, const char *name, const struct release *release,
                  char ret_path[PATH_MAX], struct err *e)
{
    char            file[NAME_MAX + 1], path[STORE_PATH_MAX];
    struct download d;
    autofd int      dir = -1;

    hash_name(release, "", ".tgz", file);
    TRY(store_path("downloads", path, e));
    dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0 || !is_sound(dir, file, release)) {
        TRY(begin(name, release, &d, e));
        TRY(complete(l, name, release, &d, file, e));
    }
    snprintf(ret_path, PATH_MAX, "%s/%s", path, file);
    return 0;
}
