#include "store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int store_path(const char *part, char ret[STORE_PATH_MAX], struct err *e)
{
    static const struct {
        const char *variable, *below;
    } places[] = {{"JERBOA_HOME", ""}, {"XDG_CACHE_HOME", "/jerboa"}, {"HOME", "/.cache/jerboa"}};

    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        const char *base = getenv(places[i].variable);
        if (!base || !*base)
            continue;
        if (*base != '/')
            return err_set(e, ERR_INVALID, "%s is not an absolute path", places[i].variable);
        if (snprintf(ret, STORE_PATH_MAX, "%s%s/%s", base, places[i].below, part) >= STORE_PATH_MAX)
            return err_set(e, ERR_INVALID, "%s is too long", places[i].variable);
        return 0;
    }
    return err_set(e, ERR_INVALID, "neither JERBOA_HOME nor HOME is set: where is the store?");
}

static int make_parents(char *path)
{
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(path, 0755) < 0 && errno != EEXIST)
            return -1;
        *slash = '/';
    }
    return 0;
}

int store_ensure(const char *part, struct err *e)
{
    char path[STORE_PATH_MAX];
    int  fd;

    TRY(store_path(part, path, e));
    fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0)
        return fd;
    if (make_parents(path) < 0 || (mkdir(path, 0755) < 0 && errno != EEXIST))
        return err_sys(e, "make %s", path);
    fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? err_sys(e, "%s", path) : fd;
}

int store_explain(struct err *e)
{
    char path[STORE_PATH_MAX];
    int  sys = e ? e->sys : 0;

    if (!sys || store_path("", path, NULL) < 0)
        return -1;
    path[strlen(path) - 1] = '\0';
    if (sys == ENOSPC || sys == EDQUOT)
        err_set(e, ERR_INTERNAL,
                "there is no space left for the store %.100s: free some, or set JERBOA_HOME to a "
                "directory elsewhere",
                path);
    else if (sys == EROFS || sys == EACCES || sys == EPERM)
        err_set(e, ERR_INTERNAL,
                "the store %.100s cannot be written (%s): set JERBOA_HOME to a directory that can",
                path, strerror(sys));
    if (e)
        e->sys = sys;
    return -1;
}
