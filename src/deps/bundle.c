#include "deps/bundle.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/pem.h"
#include "base/sha256.h"
#include "base/str.h"
#include "engine/native.h"
#include "store/lock.h"
#include "store/store.h"

enum { FILE_MAX = 1 << 20, BUNDLE_MAX = 4 << 20, TRIES = 3 };

static int add_text(struct buf *b, const char *text, struct err *e)
{
    size_t size;

    for (; (text = pem_next_certificate(text, &size)); text += size)
        if (buf_add(b, text, size) < 0 || buf_add(b, "\n", 1) < 0)
            return err_set(e, ERR_LIMIT, "the certificates are more than %d MiB", BUNDLE_MAX >> 20);
    return 0;
}

static int add_file(struct buf *b, const char *path, struct err *e)
{
    autofree char *text = NULL;

    if (file_read_text(AT_FDCWD, path, FILE_MAX, &text, e) < 0)
        return err_wrap(e, "certificates of %.120s", path);
    return add_text(b, text, e);
}

static int write_file(int dir_fd, const char *name, struct buf *b, struct err *e)
{
    autofree char *temp = str_format("%s.%d", name, (int)getpid());
    autofd int     fd = -1;

    if (faccessat(dir_fd, name, R_OK, 0) == 0)
        return 0;
    fd = openat(dir_fd, temp, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (fd < 0 || fd_write_all(fd, b->data, b->size) < 0 ||
        renameat(dir_fd, temp, dir_fd, name) < 0) {
        err_sys(e, "write certificates");
        unlinkat(dir_fd, temp, 0);
        return store_explain(e);
    }
    return 0;
}

/* Again if `jerboa gc` took it between writing and holding. */
static int hold(int dir_fd, const char *name, struct buf *b, struct err *e)
{
    for (int i = 0; i < TRIES; i++) {
        TRY(write_file(dir_fd, name, b, e));
        autofd int fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0 || lock_take(fd, LOCK_SH) < 0 || !lock_is_still(dir_fd, name, fd))
            continue;
        futimens(fd, NULL); /* used now; in a store that is read-only nothing is removed either */
        return take_fd(&fd);
    }
    return err_sys(e, "hold certificates/%s", name);
}

int bundle_ensure(const char *const *files, const char *text, char ret[PATH_MAX], struct err *e)
{
    autofd int         dir = store_ensure("certificates", e);
    char               path[STORE_PATH_MAX], name[SHA256_HEX_SIZE];
    struct sha256      hash;
    autobuf struct buf b;
    int                fd;

    buf_init(&b, BUNDLE_MAX);
    if (dir < 0)
        return store_explain(e);
    TRY(store_path("certificates", path, e));
    if (native_bundle())
        TRY(add_file(&b, native_bundle(), e));
    for (; *files; files++)
        TRY(add_file(&b, *files, e));
    if (text)
        TRY(add_text(&b, text, e));
    sha256_init(&hash);
    sha256_add(&hash, b.data, b.size);
    sha256_hex(&hash, name);
    fd = hold(dir, name, &b, e);
    TRY(fd);
    snprintf(ret, PATH_MAX, "%s/%s", path, name);
    return fd;
}
