#include "fetch/assemble.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "fetch/download.h"
#include "fetch/manifest.h"
#include "fetch/untar.h"
#include "store/downloads.h"
#include "store/entry.h"
#include "store/image.h"
#include "store/runtime.h"
#include "store/seal.h"
#include "store/store.h"

static const char node_package[] = "node-linux-" RUNTIME_ARCH;

/* What a runtime stands on; each use of it looks whether these are as they were. */
static const char *const front[] = {
    "bin/node",
    "bin/npm",
    "bin/npx",
    "lib/node_modules/npm/bin/npm-cli.js",
    "lib/node_modules/npm/bin/npx-cli.js",
    NULL,
};

enum { NODE, NPM, TARBALLS };

/* A runtime that is being put together. The tarballs stay until all is in place: when the second
 * one cannot be had now, the first need not be fetched again. */
struct assembly {
    struct line    *line;
    int             dir_fd; /* of the entry, borrowed */
    struct download tarballs[TARBALLS];
    int             n; /* of tarballs that are ours to drop or leave */
};

/* An entry_check. */
static int is_verified(int dir_fd, const void *arg, struct err *e)
{
    (void)arg;
    return manifest_verify(dir_fd, e);
}

static int fetch_into(struct assembly *a, const char *name, const struct release *release,
                      int dir_fd, struct err *e)
{
    TRY(download_get(a->line, name, release, &a->tarballs[a->n], e));
    a->n++;
    download_unlock(
        &a->tarballs[a->n - 1]); /* the next may be the same file: we would wait for us */
    if (untar(a->tarballs[a->n - 1].fd, dir_fd, &tarball_limits, e) < 0)
        return err_wrap(e, "%s %s", name, release->version);
    return 0;
}

static int add_node(struct assembly *a, const struct release *release, struct err *e)
{
    TRY(fetch_into(a, "node", release, a->dir_fd, e));
    if (file_make_executable(a->dir_fd, "bin/node") < 0)
        return err_set(e, ERR_INVALID, "npm package %s holds no bin/node", node_package);
    return 0;
}

/* As npm's own installer: the file that the link names must be executable. */
static int link_npm(int dir_fd, const char *command, struct err *e)
{
    char target[64], link[32];

    snprintf(target, sizeof target, "../lib/node_modules/npm/bin/%s-cli.js", command);
    snprintf(link, sizeof link, "bin/%s", command);
    if (file_make_executable(dir_fd, target + 3) < 0)
        return err_set(e, ERR_INVALID, "npm package npm holds no bin/%s-cli.js", command);
    if (symlinkat(target, dir_fd, link) < 0)
        return err_sys(e, "link %s in the store", link);
    return 0;
}

static int add_npm(struct assembly *a, const char *node_version, struct err *e)
{
    static const char *const dirs[] = {"lib", "lib/node_modules", "lib/node_modules/npm"};
    struct release           release;
    autofd int               npm_fd = -1;

    TRY(line_resolve(a->line, "npm", &(struct line_want){.range = "*", .node = node_version},
                     &release, e));
    for (size_t i = 0; i < 3; i++)
        mkdirat(a->dir_fd, dirs[i], 0755); /* the Node build may have one; the open below tells */
    npm_fd = openat(a->dir_fd, dirs[2], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (npm_fd < 0)
        return err_sys(e, "make %s in the store", dirs[2]);
    TRY(fetch_into(a, "npm", &release, npm_fd, e));
    TRY(link_npm(a->dir_fd, "npm", e));
    return link_npm(a->dir_fd, "npx", e);
}

static int fill(struct assembly *a, struct entry *entry, const struct release *release,
                struct err *e)
{
    a->dir_fd = entry->dir_fd;
    if (add_node(a, release, e) < 0 || add_npm(a, release->version, e) < 0 ||
        manifest_seal(entry->dir_fd, front, e) < 0) {
        entry_abort(entry);
        return -1;
    }
    return entry_commit(entry, e);
}

/* Fills the entry unless it is there and passes the check. */
static int ensure(struct line *l, int runtimes_fd, const char *name, const struct release *release,
                  entry_check *check, struct err *e)
{
    struct assembly a = {.line = l};
    struct entry    entry;
    int             there = entry_begin(runtimes_fd, name, check, NULL, &entry, e);
    int             done;

    if (there != 0)
        return there < 0 ? -1 : 0;
    done = fill(&a, &entry, release, e);
    for (int i = 0; i < a.n; i++)
        if (done < 0 && e->kind == ERR_UNAVAILABLE)
            download_leave(&a.tarballs[i]);
        else
            download_drop(&a.tarballs[i]);
    return done;
}

static int assemble(struct line *l, const char *range, entry_check *check, char ret_dir[PATH_MAX],
                    struct err *e)
{
    struct release release;
    struct err     damage = {0};
    char           path[STORE_PATH_MAX], name[NAME_MAX + 1];
    autofd int     runtimes = store_ensure("runtimes", e);

    if (runtimes < 0)
        return -1;
    entry_sweep(runtimes);
    downloads_sweep();
    TRY(line_resolve(l, node_package, &(struct line_want){.range = range}, &release, e));
    TRY(runtime_name(release.version, name, e));
    if (entry_look(runtimes, name, check, NULL, &damage) < 0) {
        if (err_is_shortage(&damage)) {
            *e = damage;
            return -1;
        }
        dprintf(2, "jerboa: %s in the store is damaged (%s): fetching it again\n", name,
                damage.msg);
    }
    TRY(ensure(l, runtimes, name, &release, check, e));
    TRY(store_path("runtimes", path, e));
    snprintf(ret_dir, PATH_MAX, "%s/%s", path, name);
    return 0;
}

static int assemble_range(const char *range, entry_check *check, char ret_dir[PATH_MAX],
                          struct err *e)
{
    static const char *const parts[] = {"runtimes", "downloads", NULL};
    struct line             *l = line_open(NPM_CONFIG_USER, parts, e);
    int                      done;

    if (!l)
        return -1;
    done = assemble(l, range, check, ret_dir, e);
    line_free(l);
    return done < 0 ? store_explain(e) : 0;
}

int assemble_runtime(const char *image, char ret_dir[PATH_MAX], struct err *e)
{
    struct image wanted;

    TRY(image_parse(image, &wanted, e));
    return assemble_range(wanted.range, seal_check_entry, ret_dir, e);
}

int assemble_verified(const char *image, char ret_dir[PATH_MAX], struct err *e)
{
    struct runtime there;
    autofd int     dir = -1;

    if (runtime_newest(image, &there, e) < 0)
        return e->kind == ERR_NOT_FOUND ? assemble_runtime(image, ret_dir, e) : -1;
    dir = open(there.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0 || manifest_verify(dir, NULL) < 0)
        return assemble_range(there.version, is_verified, ret_dir, e);
    str_copy(ret_dir, PATH_MAX, there.dir);
    return 0;
}
