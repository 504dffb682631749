#include "fetch/assemble.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "fetch/progress.h"
#include "npm/registry.h"
#include "npm/unpack.h"
#include "store/entry.h"
#include "store/image.h"
#include "store/runtime.h"
#include "store/store.h"

static const char node_package[] = "node-linux-" RUNTIME_ARCH;

/* A file without a name: whatever ends us, nothing stays in downloads/. */
static int open_download(struct err *e)
{
    autofd int dir = store_ensure("downloads", e);
    char       name[32];
    int        fd;

    if (dir < 0)
        return -1;
    snprintf(name, sizeof name, "%d.tgz", (int)getpid());
    fd = openat(dir, name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_sys(e, "write into downloads of the store");
    unlinkat(dir, name, 0);
    return fd;
}

static int fetch_into(struct registry *r, const char *name, const struct release *release,
                      int dir_fd, struct err *e)
{
    autofd int      tgz = open_download(e);
    struct progress progress;
    int             got;

    if (tgz < 0)
        return -1;
    progress_start(&progress, name, release->version);
    got = registry_download(r, release, tgz, progress_update, &progress, e);
    progress_end(&progress);
    if (got < 0 || lseek(tgz, 0, SEEK_SET) < 0 || unpack_tgz(tgz, dir_fd, &unpack_limits, e) < 0)
        return err_wrap(e, "%s %s", name, release->version);
    return 0;
}

static int add_node(struct registry *r, const struct release *release, int dir_fd, struct err *e)
{
    TRY(fetch_into(r, "node", release, dir_fd, e));
    if (fchmodat(dir_fd, "bin/node", 0755, 0) < 0)
        return err_set(e, ERR_INVALID, "npm package %s holds no bin/node", node_package);
    return 0;
}

/* As npm's own installer: the file that the link names must be executable. */
static int link_npm(int dir_fd, const char *command, struct err *e)
{
    char target[64], link[32];

    snprintf(target, sizeof target, "../lib/node_modules/npm/bin/%s-cli.js", command);
    snprintf(link, sizeof link, "bin/%s", command);
    if (fchmodat(dir_fd, target + 3, 0755, 0) < 0)
        return err_set(e, ERR_INVALID, "npm package npm holds no bin/%s-cli.js", command);
    if (symlinkat(target, dir_fd, link) < 0)
        return err_sys(e, "link %s in the store", link);
    return 0;
}

static int add_npm(struct registry *r, const char *node_version, int dir_fd, struct err *e)
{
    static const char *const dirs[] = {"lib", "lib/node_modules", "lib/node_modules/npm"};
    struct semver            node;
    struct release           release;
    autofd int               npm_fd = -1;

    if (semver_parse(node_version, &node) < 0)
        return err_set(e, ERR_INTERNAL, "%s is no version", node_version);
    TRY(registry_resolve(r, "npm", &(struct release_want){"*", &node}, &release, e));
    for (size_t i = 0; i < 3; i++)
        mkdirat(dir_fd, dirs[i], 0755); /* the Node build may have one; the open below tells */
    npm_fd = openat(dir_fd, dirs[2], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (npm_fd < 0)
        return err_sys(e, "make %s in the store", dirs[2]);
    TRY(fetch_into(r, "npm", &release, npm_fd, e));
    TRY(link_npm(dir_fd, "npm", e));
    return link_npm(dir_fd, "npx", e);
}

static int fill(struct registry *r, int runtimes_fd, const char *name,
                const struct release *release, struct err *e)
{
    struct entry entry;
    int          there = entry_begin(runtimes_fd, name, &entry, e);

    if (there != 0)
        return there < 0 ? -1 : 0;
    if (add_node(r, release, entry.dir_fd, e) < 0 ||
        add_npm(r, release->version, entry.dir_fd, e) < 0) {
        entry_abort(&entry);
        return -1;
    }
    return entry_commit(&entry, e);
}

static int assemble(struct registry *r, const char *range, char ret_dir[PATH_MAX], struct err *e)
{
    struct release release;
    char           path[STORE_PATH_MAX], name[NAME_MAX + 1];
    autofd int     runtimes = store_ensure("runtimes", e);

    if (runtimes < 0)
        return -1;
    entry_sweep(runtimes);
    TRY(registry_resolve(r, node_package, &(struct release_want){range, NULL}, &release, e));
    TRY(runtime_name(release.version, name, e));
    TRY(fill(r, runtimes, name, &release, e));
    TRY(store_path("runtimes", path, e));
    snprintf(ret_dir, PATH_MAX, "%s/%s", path, name);
    return 0;
}

int assemble_runtime(const char *image, char ret_dir[PATH_MAX], struct err *e)
{
    struct image      wanted;
    struct npm_config config;
    struct registry  *r;
    int               done;

    TRY(image_parse(image, &wanted, e));
    TRY(npm_config_load(&config, e));
    r = registry_new(&config);
    done = assemble(r, wanted.range, ret_dir, e);
    registry_free(r);
    return done;
}
