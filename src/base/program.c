#include "base/program.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "config.h"

char *program_find(const char *name, struct err *e)
{
    char    self[PATH_MAX], *slash, *path;
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);

    self[n < 0 ? 0 : n] = '\0';
    slash = strrchr(self, '/');
    if (slash) {
        path = str_format("%.*s/%s", (int)(slash - self), self, name);
        if (access(path, X_OK) == 0)
            return path;
        free(path);
    }
    path = str_format("%s/%s", JERBOA_LIBEXEC, name);
    if (access(path, X_OK) == 0)
        return path;
    free(path);
    err_set(e, ERR_UNAVAILABLE, "%s is neither beside jerboa nor in %s: install Jerboa again", name,
            JERBOA_LIBEXEC);
    return NULL;
}

int program_on_path(const char *name, char ret[PATH_MAX], struct err *e)
{
    const char *path = getenv("PATH");

    for (size_t n; path && *path; path += n + (path[n] == ':')) {
        char file[PATH_MAX];
        n = strcspn(path, ":");
        if (*path == '/' && snprintf(file, sizeof file, "%.*s/%s", (int)n, path, name) < PATH_MAX &&
            access(file, X_OK) == 0 && realpath(file, ret))
            return 0;
    }
    return err_set(e, ERR_UNAVAILABLE, "there is no program '%.60s' on PATH", name);
}
