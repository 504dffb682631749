#include "fetch/tool.h"

#include <stdio.h>

#include "base/fd.h"
#include "fetch/download.h"
#include "fetch/manifest.h"
#include "fetch/untar.h"
#include "store/entry.h"
#include "store/seal.h"
#include "store/store.h"
#include "store/tool.h"

static int unpack(const struct tool *t, struct entry *entry, int tgz_fd, struct err *e)
{
    const char *const front[] = {t->program, NULL};

    TRY(untar(tgz_fd, entry->dir_fd, &tarball_limits, e));
    if (file_make_executable(entry->dir_fd, t->program) < 0)
        return err_set(e, ERR_INVALID, "npm package %s holds no %s", t->package, t->program);
    return manifest_seal(entry->dir_fd, front, e);
}

static int fill(struct line *l, const struct tool *t, struct entry *entry, struct err *e)
{
    struct release  release;
    struct download tarball;

    if (line_resolve(l, t->package, &(struct line_want){.range = t->range}, &release, e) < 0 ||
        download_get(l, t->name, &release, &tarball, e) < 0) {
        entry_abort(entry);
        return -1;
    }
    if (unpack(t, entry, tarball.fd, e) < 0) {
        download_drop(&tarball);
        entry_abort(entry);
        return -1;
    }
    download_drop(&tarball);
    return entry_commit(entry, e);
}

static int ensure(struct line *l, const struct tool *t, struct err *e)
{
    autofd int   tools = store_ensure("tools", e);
    struct entry entry;
    int          there;

    if (tools < 0)
        return -1;
    entry_sweep(tools);
    there = entry_begin(tools, t->entry, seal_check_entry, NULL, &entry, e);
    if (there != 0)
        return there < 0 ? -1 : 0;
    return fill(l, t, &entry, e);
}

int tool_fetch(const char *name, char ret_dir[PATH_MAX], struct err *e)
{
    static const char *const parts[] = {"tools", "downloads", NULL};
    const struct tool       *t = tool_find(name, e);
    struct line             *l = t ? line_open(NPM_CONFIG_USER, parts, e) : NULL;
    char                     path[STORE_PATH_MAX];
    int                      done;

    if (!l)
        return -1;
    done = ensure(l, t, e);
    line_free(l);
    if (done < 0)
        return store_explain(e);
    TRY(store_path("tools", path, e));
    snprintf(ret_dir, PATH_MAX, "%s/%s", path, t->entry);
    return 0;
}
