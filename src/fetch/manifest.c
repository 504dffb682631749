/* The list is made the same way for writing and for comparing: by a walk in the order of names. So
 * the first line that differs names what has happened. */
#include "fetch/manifest.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/tree.h"
#include "store/seal.h"

enum { MANIFEST_MAX = 64 << 20, DIGEST = 32 };

struct walk {
    struct buf *list;
    char        path[PATH_MAX]; /* of what is being described, from the entry's directory */
    EVP_MD_CTX *hash;
    bool        is_full; /* the list's maximum was reached */
};

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void free_names(char **names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        free(names[i]);
    free(names);
}

/* The names in a directory, sorted by their bytes; the caller frees them. */
static int list_names(int dir_fd, char ***ret, size_t *ret_n, struct err *e)
{
    DIR           *dir = tree_list(dir_fd);
    char         **names = NULL;
    size_t         n = 0;
    struct dirent *d;

    if (!dir)
        return err_sys(e, "list a directory of the store");
    while ((d = tree_next(dir))) {
        char **longer = reallocarray(names, n + 1, sizeof *names);
        if (!longer || !(longer[n++] = strdup(d->d_name)))
            abort();
        names = longer;
    }
    closedir(dir);
    if (n > 0)
        qsort(names, n, sizeof *names, by_name);
    *ret = names;
    *ret_n = n;
    return 0;
}

static void add_line(struct walk *w, char type, mode_t mode, const unsigned char *digest)
{
    char hex[2 * DIGEST + 1] = "-";

    for (size_t i = 0; digest && i < DIGEST; i++)
        snprintf(hex + 2 * i, 3, "%02x", digest[i]);
    if (buf_printf(w->list, "%c %03o %s %s\n", type, (unsigned)mode & 0777, hex, w->path) < 0)
        w->is_full = true;
}

static int describe_file(struct walk *w, int dir_fd, const char *name, mode_t mode, struct err *e)
{
    autofd int    fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    char          block[1 << 16];
    unsigned char digest[EVP_MAX_MD_SIZE];
    ssize_t       n = fd < 0 ? -1 : 0;

    if (!EVP_DigestInit_ex(w->hash, EVP_sha256(), NULL))
        abort();
    while (fd >= 0 && (n = read(fd, block, sizeof block)) > 0)
        if (!EVP_DigestUpdate(w->hash, block, (size_t)n))
            abort();
    if (n < 0)
        return err_sys(e, "read %.80s", w->path);
    if (!EVP_DigestFinal_ex(w->hash, digest, NULL))
        abort();
    add_line(w, 'f', mode, digest);
    return 0;
}

static int describe_link(struct walk *w, int dir_fd, const char *name, struct err *e)
{
    char          target[PATH_MAX];
    unsigned char digest[EVP_MAX_MD_SIZE];
    ssize_t       n = readlinkat(dir_fd, name, target, sizeof target);

    if (n < 0)
        return err_sys(e, "read %.80s", w->path);
    if (!EVP_Digest(target, (size_t)n, digest, NULL, EVP_sha256(), NULL))
        abort();
    add_line(w, 'l', 0777, digest);
    return 0;
}

static int describe_dir(struct walk *w, int dir_fd, struct err *e);

static int describe(struct walk *w, int dir_fd, const char *name, struct err *e)
{
    struct stat st;
    autofd int  below = -1;

    if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return err_sys(e, "%.80s", w->path);
    if (S_ISREG(st.st_mode))
        return describe_file(w, dir_fd, name, st.st_mode, e);
    if (S_ISLNK(st.st_mode))
        return describe_link(w, dir_fd, name, e);
    if (!S_ISDIR(st.st_mode)) {
        add_line(w, '?', st.st_mode, NULL);
        return 0;
    }
    add_line(w, 'd', st.st_mode, NULL);
    below = tree_open_dir(dir_fd, name);
    return below < 0 ? err_sys(e, "%.80s", w->path) : describe_dir(w, below, e);
}

/* As deep as what unpack writes: one descriptor a level. */
static int describe_dir(struct walk *w, int dir_fd, struct err *e)
{
    size_t at = strlen(w->path), n = 0;
    char **names = NULL;
    int    done = list_names(dir_fd, &names, &n, e);

    for (size_t i = 0; i < n && done == 0; i++) {
        if (at == 0 && strcmp(names[i], SEAL_NAME) == 0)
            continue;
        if (snprintf(w->path + at, sizeof w->path - at, "%s%s", at > 0 ? "/" : "", names[i]) >=
            (int)(sizeof w->path - at))
            done = err_set(e, ERR_LIMIT, "%.80s: too long a name", w->path);
        else
            done = describe(w, dir_fd, names[i], e);
    }
    w->path[at] = '\0';
    free_names(names, n);
    return done;
}

static int describe_all(int dir_fd, struct buf *list, struct err *e)
{
    struct walk w = {.list = list, .hash = EVP_MD_CTX_new()};
    int         done;

    if (!w.hash)
        abort();
    done = describe_dir(&w, dir_fd, e);
    EVP_MD_CTX_free(w.hash);
    if (done == 0 && (w.is_full || !buf_text(list)))
        return err_set(e, ERR_LIMIT, "the entry has too many files");
    return done;
}

int manifest_seal(int dir_fd, const char *const *front, struct err *e)
{
    autobuf struct buf text;

    buf_init(&text, MANIFEST_MAX);
    if (seal_front(dir_fd, front, &text, e) < 0 || describe_all(dir_fd, &text, e) < 0)
        return -1;
    return file_write_text(dir_fd, SEAL_NAME, buf_text(&text), e);
}

/* "f 755 SHA256 path": the path. */
static const char *path_of(const char *line)
{
    for (int i = 0; i < 3 && line; i++)
        line = (line = strchr(line, ' ')) ? line + 1 : NULL;
    return line ? line : "";
}

/* Both are lists in the same order, from the first line on in which they differ. */
static int name_difference(const char *was, const char *is, struct err *e)
{
    const char *sealed = path_of(was), *found = path_of(is);
    int         n_sealed = (int)strcspn(sealed, "\n"), n_found = (int)strcspn(found, "\n");

    if (n_sealed == n_found && memcmp(sealed, found, (size_t)n_sealed) == 0)
        return err_set(e, ERR_INVALID, "%.*s has changed", n_sealed > 80 ? 80 : n_sealed, sealed);
    if (n_sealed > 0) {
        autofree char *line = strndup(sealed - 1, (size_t)n_sealed + 2);
        if (!line || !strstr(is, line))
            return err_set(e, ERR_INVALID, "%.*s is missing", n_sealed > 80 ? 80 : n_sealed,
                           sealed);
    }
    return err_set(e, ERR_INVALID, "%.*s does not belong to it", n_found > 80 ? 80 : n_found,
                   found);
}

static int compare(const char *was, const char *is, struct err *e)
{
    while (*was || *is) {
        size_t n = strcspn(was, "\n") + 1;
        if (strncmp(was, is, n) != 0 || !*was)
            return name_difference(was, is, e);
        was += n;
        is += n;
    }
    return 0;
}

int manifest_verify(int dir_fd, struct err *e)
{
    autobuf struct buf is;
    autofree char     *was = NULL;
    const char        *body;

    buf_init(&is, MANIFEST_MAX);
    TRY(seal_check(dir_fd, e));
    if (file_read_text(dir_fd, SEAL_NAME, MANIFEST_MAX, &was, e) < 0)
        return err_set(e, ERR_INVALID, "its seal cannot be read");
    body = strstr(was, "\n\n");
    TRY(describe_all(dir_fd, &is, e));
    return body ? compare(body + 2, buf_text(&is), e)
                : err_set(e, ERR_INVALID, "its seal cannot be read");
}
