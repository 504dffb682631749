#include "store/tool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/program.h"
#include "base/str.h"
#include "base/version.h"
#include "store/capture.h"
#include "store/entry.h"
#include "store/runtime.h"
#include "store/seal.h"
#include "store/store.h"

#if defined(__x86_64__)
#define BUN_ARCH "x64"
#else
#define BUN_ARCH "aarch64"
#endif

const struct tool tool_bun = {"bun", "@oven/bun-linux-" BUN_ARCH, "1", "bun-1-" RUNTIME_ARCH,
                              "bin/bun"};

const struct tool *tool_find(const char *name, struct err *e)
{
    if (strcmp(name, tool_bun.name) == 0)
        return &tool_bun;
    err_set(e, ERR_INVALID, "there is no tool '%.40s'", name);
    return NULL;
}

static int fetch(const struct tool *t, struct err *e)
{
    autofree char    *program = program_find("jerboa-fetch", e);
    const char *const argv[] = {"jerboa-fetch", version_answer, "tool", t->name, NULL};
    struct capture    answer;

    if (!program)
        return -1;
    TRY(capture_run(program, argv, -1, &answer, e));
    if (answer.status == 0)
        return 0;
    return err_set(e, answer.status == RUNTIME_FETCH_UNAVAILABLE ? ERR_UNAVAILABLE : ERR_INTERNAL,
                   "%s", *answer.output ? answer.output : "jerboa-fetch failed");
}

/* A descriptor that holds it; -1: it is not there, or damaged. */
static int hold(const struct tool *t, struct err *e)
{
    autofd int parent = store_ensure("tools", e);
    autofd int fd = parent < 0 ? -1 : entry_hold(parent, t->entry, e);

    if (fd < 0 || seal_check(fd, e) < 0)
        return -1;
    return take_fd(&fd);
}

int tool_ensure(const struct tool *t, char ret_dir[PATH_MAX], int *ret_fd, struct err *e)
{
    char       path[STORE_PATH_MAX], joined[PATH_MAX];
    autofd int fd = hold(t, NULL);

    if (fd < 0) {
        TRY(fetch(t, e));
        fd = hold(t, e);
    }
    if (fd < 0)
        return -1;
    TRY(store_path("tools", path, e));
    snprintf(joined, sizeof joined, "%s/%s", path, t->entry);
    if (!realpath(joined, ret_dir))
        return err_sys(e, "%s", joined);
    *ret_fd = take_fd(&fd);
    return 0;
}
