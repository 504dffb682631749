#include "store/runtime.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/program.h"
#include "base/str.h"
#include "base/version.h"
#include "npm/semver.h"
#include "store/capture.h"
#include "store/entry.h"
#include "store/host.h"
#include "store/image.h"
#include "store/seal.h"
#include "store/store.h"

static const char name_prefix[] = "node-";
static const char name_suffix[] = "-" RUNTIME_ARCH;

int runtime_name(const char *version, char ret[NAME_MAX + 1], struct err *e)
{
    if (strlen(version) >= RUNTIME_VERSION_MAX)
        return err_set(e, ERR_INVALID, "too long a version");
    snprintf(ret, NAME_MAX + 1, "%s%s%s", name_prefix, version, name_suffix);
    return 0;
}

static bool name_version(const char *name, char ret[RUNTIME_VERSION_MAX])
{
    size_t n = strlen(name), prefix = strlen(name_prefix), suffix = strlen(name_suffix);

    if (n <= prefix + suffix || n - prefix - suffix >= RUNTIME_VERSION_MAX ||
        !str_starts(name, name_prefix) || strcmp(name + n - suffix, name_suffix) != 0)
        return false;
    memcpy(ret, name + prefix, n - prefix - suffix);
    ret[n - prefix - suffix] = '\0';
    return true;
}

static bool is_dir(int parent_fd, const char *name)
{
    struct stat st;

    return fstatat(parent_fd, name, &st, 0) == 0 && S_ISDIR(st.st_mode);
}

/* The newest version among the directory's names that the range accepts, or "". */
static void find_newest(DIR *dir, const char *range, char ret[RUNTIME_VERSION_MAX])
{
    char           version[RUNTIME_VERSION_MAX];
    struct semver  v, best;
    struct dirent *d;

    *ret = '\0';
    while ((d = readdir(dir))) {
        if (!name_version(d->d_name, version) || semver_parse(version, &v) < 0 ||
            semver_range_test(range, &v) != 1 || !is_dir(dirfd(dir), d->d_name))
            continue;
        if (*ret && semver_parse(ret, &best) == 0 && semver_compare(&v, &best) <= 0)
            continue;
        str_copy(ret, RUNTIME_VERSION_MAX, version);
    }
}

int runtime_newest(const char *image, struct runtime *ret, struct err *e)
{
    struct image wanted;
    char         path[STORE_PATH_MAX], version[RUNTIME_VERSION_MAX] = "", name[NAME_MAX + 1];
    DIR         *dir;

    TRY(image_parse(image, &wanted, e));
    TRY(store_path("runtimes", path, e));
    dir = opendir(path);
    if (!dir && errno != ENOENT)
        return err_sys(e, "%s", path);
    if (dir) {
        find_newest(dir, wanted.range, version);
        closedir(dir);
    }
    if (!*version)
        return err_set(e, ERR_NOT_FOUND, "no Node for %.40s is in the store", image);
    TRY(runtime_name(version, name, e));
    *ret = (struct runtime){0};
    str_copy(ret->version, sizeof ret->version, version);
    snprintf(ret->dir, sizeof ret->dir, "%s/%s", path, name);
    return 0;
}

int runtime_find(const char *image, struct runtime *ret, struct err *e)
{
    struct runtime newest;
    struct err     damage = {0};
    autofd int     dir = -1;

    TRY(runtime_newest(image, &newest, e));
    dir = open(newest.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return err_sys(e, "%s", newest.dir);
    if (seal_check(dir, &damage) == 0) {
        *ret = newest;
        return 0;
    }
    if (!err_is_shortage(&damage))
        return err_set(e, ERR_NOT_FOUND, "%s in the store is damaged (%.60s)",
                       strrchr(newest.dir, '/') + 1, damage.msg);
    if (e)
        *e = damage;
    return -1;
}

/* ERR_UNAVAILABLE when the registry is out of reach. */
static int read_answer(int status, const char *line, struct runtime *ret, struct err *e)
{
    const char *slash = strrchr(line, '/');
    char        path[STORE_PATH_MAX];

    *ret = (struct runtime){0};
    if (status == 0 && slash && name_version(slash + 1, ret->version)) {
        TRY(store_path("runtimes", path, e)); /* what parsed a registry's bytes names no place */
        snprintf(ret->dir, sizeof ret->dir, "%s/%s", path, slash + 1);
        return 0;
    }
    if (status == 0 || !*line)
        return err_set(e, ERR_INTERNAL, "jerboa-fetch ended with status %d", status);
    return err_set(e, status == RUNTIME_FETCH_UNAVAILABLE ? ERR_UNAVAILABLE : ERR_INTERNAL, "%s",
                   line);
}

static int fetch(const char *job, const char *image, struct runtime *ret, struct err *e)
{
    autofree char    *program = program_find("jerboa-fetch", e);
    const char *const argv[] = {"jerboa-fetch", version_answer, job, image, NULL};
    struct capture    answer;

    if (!program)
        return -1;
    TRY(capture_run(program, argv, -1, &answer, e));
    return read_answer(answer.status, answer.output, ret, e);
}

/* `missing` says what is wrong with the store, `unfetched` why nothing could be fetched: they are
 * part of the note, or the error. */
static int use_host(const char *image, const struct err *missing, const struct err *unfetched,
                    struct runtime *ret, struct err *e)
{
    struct image   wanted;
    struct runtime host = {.is_host = true};
    struct semver  v;

    TRY(image_parse(image, &wanted, e));
    if (host_find(&host, NULL) < 0 || semver_parse(host.version, &v) < 0 ||
        (!wanted.any_version && semver_range_test(wanted.range, &v) != 1))
        return err_set(e, ERR_UNAVAILABLE, "%.110s, none of this machine suits, and %s",
                       missing->msg, unfetched->msg);
    snprintf(host.note, sizeof host.note, "using Node %s of this machine (%.60s/bin/node): %s",
             host.version, host.dir, unfetched->msg);
    *ret = host;
    return 0;
}

int runtime_take_answer(const char *image, int status, const char *line, struct runtime *ret,
                        struct err *e)
{
    struct err failed = {0}, missing = {0};

    if (read_answer(status, line, ret, &failed) == 0)
        return 0;
    if (failed.kind == ERR_UNAVAILABLE) {
        runtime_find(image, ret, &missing);
        return use_host(image, &missing, &failed, ret, e);
    }
    if (e)
        *e = failed;
    return -1;
}

int runtime_ensure(const char *image, struct runtime *ret, struct err *e)
{
    struct err missing = {0}, failed = {0};

    if (runtime_find(image, ret, &missing) == 0)
        return 0;
    failed = missing;
    if (missing.kind == ERR_NOT_FOUND && fetch("runtime", image, ret, &failed) == 0)
        return 0;
    if (failed.kind == ERR_UNAVAILABLE)
        return use_host(image, &missing, &failed, ret, e);
    if (e)
        *e = failed;
    return -1;
}

int runtime_verify(const char *image, struct runtime *ret, struct err *e)
{
    struct image wanted;

    TRY(image_parse(image, &wanted, e));
    return fetch("verify", image, ret, e);
}

int runtime_hold(const struct runtime *runtime, struct err *e)
{
    const char *name = strrchr(runtime->dir, '/') + 1;
    char        path[PATH_MAX];
    autofd int  parent = -1;
    int         fd;

    if (runtime->is_host) {
        fd = open(runtime->dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
        return fd < 0 ? err_sys(e, "%s", runtime->dir) : fd;
    }
    snprintf(path, sizeof path, "%.*s", (int)(name - runtime->dir), runtime->dir);
    parent = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return parent < 0 ? err_sys(e, "%s", path) : entry_hold(parent, name, e);
}

int runtime_ensure_held(const char *image, struct runtime *ret, int *ret_fd, struct err *e)
{
    struct err why = {0};

    do {
        TRY(runtime_ensure(image, ret, e));
        why = (struct err){0};
        *ret_fd = runtime_hold(ret, &why);
    } while (*ret_fd < 0 && why.kind == ERR_NOT_FOUND); /* it was removed just now */
    if (*ret_fd < 0 && e)
        *e = why;
    return *ret_fd < 0 ? -1 : 0;
}
