#include "store/layer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/json.h"
#include "base/sha256.h"
#include "base/str.h"
#include "base/tree.h"
#include "npm/semver.h"
#include "store/runtime.h"
#include "store/store.h"

enum { BOOT_SIZE = 64, META_MAX = 1 << 18 };

static const char layers[] = "layers";

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct layer_dep *)a)->name, ((const struct layer_dep *)b)->name);
}

/* n is at most LAYER_DEPS_MAX. */
static int sort_deps(const struct layer_dep *deps, size_t n, struct layer_dep ret[LAYER_DEPS_MAX],
                     struct err *e)
{
    if (n > 0) /* of none there may be no list */
        memcpy(ret, deps, n * sizeof *ret);
    qsort(ret, n, sizeof *ret, by_name);
    for (size_t i = 1; i < n; i++)
        if (by_name(&ret[i - 1], &ret[i]) == 0)
            return err_set(e, ERR_INVALID, "dependency %.80s is named twice", ret[i].name);
    return 0;
}

/* With its NUL: no two lists of words give the same bytes. */
static void hash_word(struct sha256 *h, const char *word)
{
    sha256_add(h, word, strlen(word) + 1);
}

int layer_key(const struct layer_set *set, char ret[LAYER_KEY_SIZE], struct err *e)
{
    struct layer_dep deps[LAYER_DEPS_MAX];
    size_t           n = set->n;
    struct semver    node;
    struct sha256    h;
    char             abi[24];

    if (semver_parse(set->node_version, &node) < 0)
        return err_set(e, ERR_INVALID, "%.40s is no version of Node", set->node_version);
    if (n > LAYER_DEPS_MAX)
        return err_set(e, ERR_INVALID, "more than %d dependencies", LAYER_DEPS_MAX);
    TRY(sort_deps(set->deps, n, deps, e));
    snprintf(abi, sizeof abi, "node-%ju", (uintmax_t)node.n[0]);
    sha256_init(&h);
    hash_word(&h, "jerboa-layer-1");
    hash_word(&h, "linux-" RUNTIME_ARCH "-glibc"); /* what the runtimes of the registry are */
    hash_word(&h, abi);
    hash_word(&h, set->installer);
    for (size_t i = 0; i < n; i++) {
        hash_word(&h, deps[i].name);
        hash_word(&h, deps[i].range);
    }
    sha256_hex(&h, ret);
    return 0;
}

static bool is_within(const struct timespec *then, int64_t max_age_ms)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)(now.tv_sec - then->tv_sec) * 1000 + (now.tv_nsec - then->tv_nsec) / 1000000 <=
           max_age_ms;
}

/* ---- until it is on the disk ---- */

/* "": it cannot be told, and no layer counts before it is on the disk. */
static void read_boot(char ret[BOOT_SIZE])
{
    autofree char *text = NULL;

    *ret = '\0';
    if (file_read_text(AT_FDCWD, "/proc/sys/kernel/random/boot_id", BOOT_SIZE, &text, NULL) == 0)
        snprintf(ret, BOOT_SIZE, "%.*s", (int)strcspn(text, "\n"), text);
}

static bool is_of_this_boot(int dir_fd)
{
    char             boot[BOOT_SIZE];
    autofree char   *text = NULL;
    autojson json_t *meta = NULL;
    const char      *made;

    read_boot(boot);
    if (file_read_text(dir_fd, LAYER_META_BOOT, META_MAX, &text, NULL) < 0)
        return false;
    meta = json_parse(text, strlen(text), NULL);
    made = json_string_value(json_object_get(meta, "boot"));
    return *boot && made && strcmp(made, boot) == 0;
}

static bool is_file(int dir_fd, const char *name, struct stat *ret)
{
    return fstatat(dir_fd, name, ret, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(ret->st_mode);
}

/* In this order: the one becomes the other meanwhile. */
static bool is_whole(int dir_fd, struct stat *ret_meta)
{
    return (is_file(dir_fd, LAYER_META_BOOT, ret_meta) && is_of_this_boot(dir_fd)) ||
           is_file(dir_fd, LAYER_META, ret_meta);
}

static int settle(int dir_fd)
{
    if (syncfs(dir_fd) < 0)
        return -1;
    return renameat(dir_fd, LAYER_META_BOOT, dir_fd, LAYER_META);
}

void layer_settle(struct entry *entry)
{
    if (settle(entry->dir_fd) < 0)
        unlinkat(entry->dir_fd, LAYER_META_BOOT, 0);
    fd_close(&entry->dir_fd);
    fd_close(&entry->parent_fd);
}

/* ---- finding ---- */

/* An entry_check; `arg` is the greatest age. */
static int is_good(int dir_fd, const void *arg, struct err *e)
{
    const int64_t *max_age_ms = arg;
    struct stat    st;

    if (fstatat(dir_fd, "node_modules", &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(st.st_mode))
        return err_set(e, ERR_INVALID, "it has no node_modules");
    if (!is_whole(dir_fd, &st))
        return err_set(e, ERR_INVALID, "it has no " LAYER_META);
    if (*max_age_ms > 0 && !is_within(&st.st_mtim, *max_age_ms))
        return err_set(e, ERR_INVALID, "it is too old");
    return 0;
}

int layer_find(const char *key, struct layer_hold *ret, int64_t max_age_ms, struct err *e)
{
    char       path[STORE_PATH_MAX];
    struct err missing = {0};
    autofd int parent = -1, fd = -1;

    TRY(store_path(layers, path, e));
    parent = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (parent < 0)
        return errno == ENOENT ? 0 : err_sys(e, "%s", path);
    fd = entry_hold(parent, key, &missing);
    if (fd < 0 && missing.kind != ERR_NOT_FOUND) {
        if (e)
            *e = missing;
        return -1;
    }
    if (fd < 0 || is_good(fd, &max_age_ms, NULL) < 0)
        return 0;
    ret->fd = take_fd(&fd);
    snprintf(ret->dir, sizeof ret->dir, "%s/%.200s", path, key);
    return 1;
}

void layer_release(struct layer_hold *h)
{
    fd_close(&h->fd);
}

/* ---- making ---- */

int layer_begin(const char *key, int64_t max_age_ms, struct entry *ret, struct err *e)
{
    autofd int parent = store_ensure(layers, e);
    int        begun;

    if (parent < 0)
        return store_explain(e);
    begun = entry_begin_now(parent, key, is_good, &max_age_ms, ret, e);
    if (begun < 0)
        return store_explain(e);
    if (begun == 0)
        take_fd(&parent);
    return begun;
}

static json_t *describe(const struct layer_set *set, int64_t bytes)
{
    json_t *deps = json_object();
    char    boot[BOOT_SIZE];

    read_boot(boot);
    for (size_t i = 0; i < set->n; i++)
        json_object_set_new(deps, set->deps[i].name, json_string(set->deps[i].range));
    return json_pack("{sI ss so ss ss sI}", "made", (json_int_t)time(NULL), "boot", boot,
                     "dependencies", deps, "node", set->node_version, "installer", set->installer,
                     "bytes", (json_int_t)bytes);
}

/* What stands there under these names is not ours. */
static int write_meta(int dir_fd, const char *text, struct err *e)
{
    autofd int fd = -1;

    if (unlinkat(dir_fd, LAYER_META, 0) < 0 && errno != ENOENT)
        return err_sys(e, "write " LAYER_META);
    unlinkat(dir_fd, LAYER_META_BOOT, 0);
    fd =
        openat(dir_fd, LAYER_META_BOOT, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (fd < 0 || fd_write_all(fd, text, strlen(text)) < 0)
        return err_sys(e, "write " LAYER_META);
    return 0;
}

static int finish(int dir_fd, const struct layer_set *set, struct err *e)
{
    const int64_t    any_age = 0;
    int64_t          bytes;
    autojson json_t *meta = NULL;
    autofree char   *text = NULL;

    TRY(tree_size(dir_fd, &bytes, e));
    meta = describe(set, bytes);
    text = meta ? json_dumps(meta, JSON_INDENT(1)) : NULL;
    if (!text)
        return err_set(e, ERR_INVALID, "a dependency's name or range is not UTF-8");
    TRY(write_meta(dir_fd, text, e));
    if (!is_of_this_boot(dir_fd) && settle(dir_fd) < 0) /* nobody knows which boot this is */
        return err_sys(e, "sync");
    return is_good(dir_fd, &any_age, e);
}

int layer_commit(struct entry *entry, const struct layer_set *set, struct err *e)
{
    if (finish(entry->dir_fd, set, e) < 0) {
        err_wrap(e, "a new layer");
        layer_abort(entry);
        return store_explain(e);
    }
    if (entry_place(entry, e) < 0) {
        fd_close(&entry->parent_fd);
        return store_explain(e);
    }
    return 0;
}

void layer_abort(struct entry *entry)
{
    entry_abort(entry);
    fd_close(&entry->parent_fd);
}

void layer_refresh(const struct layer_hold *h)
{
    if (utimensat(h->fd, LAYER_META_BOOT, NULL, AT_SYMLINK_NOFOLLOW) < 0)
        utimensat(h->fd, LAYER_META, NULL, AT_SYMLINK_NOFOLLOW);
}
