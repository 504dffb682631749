#include "npm/project.h"

#include <fcntl.h>
#include <fnmatch.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/json.h"
#include "base/str.h"

enum { PACKAGE_JSON_MAX = 1 << 20 };

static bool has(const char *dir, const char *name, mode_t type)
{
    char        path[PATH_MAX];
    struct stat st;

    return snprintf(path, sizeof path, "%s/%s", dir, name) < (int)sizeof path &&
           stat(path, &st) == 0 && (st.st_mode & S_IFMT) == type;
}

/* "./packages/x/" and "packages/x" are the same. */
static void clean_pattern(const char *text, char ret[PATH_MAX])
{
    size_t n;

    while (str_starts(text, "./"))
        text += 2;
    str_copy(ret, PATH_MAX, text);
    n = strlen(ret);
    while (n > 0 && ret[n - 1] == '/')
        ret[--n] = '\0';
}

/* The last pattern that speaks of `below` decides; one with "!" takes it out again. */
static bool is_workspace(const json_t *patterns, const char *below)
{
    bool          is = false;
    size_t        i;
    const json_t *item;

    json_array_foreach (patterns, i, item) {
        const char *text = json_string_value(item);
        bool        out = text && *text == '!';
        char        pattern[PATH_MAX];
        if (!text)
            continue;
        clean_pattern(text + out, pattern);
        if (fnmatch(pattern, below, strstr(pattern, "**") ? 0 : FNM_PATHNAME) == 0)
            is = !out;
    }
    return is;
}

/* Whether `dir` says that `below`, a path under it, is a workspace of its. */
static bool owns(const char *dir, const char *below)
{
    char             path[PATH_MAX];
    autofree char   *text = NULL;
    autojson json_t *package = NULL;
    const json_t    *patterns;

    if (snprintf(path, sizeof path, "%s/package.json", dir) >= (int)sizeof path ||
        file_read_text(AT_FDCWD, path, PACKAGE_JSON_MAX, &text, NULL) < 0)
        return false;
    package = json_loads(text, 0, NULL);
    patterns = json_object_get(package, "workspaces");
    if (json_is_object(patterns))
        patterns = json_object_get(patterns, "packages");
    return is_workspace(patterns, below);
}

/* Cuts the last part off; false at the root. */
static bool go_up(char *dir)
{
    char *slash = strrchr(dir, '/');

    if (!slash || !dir[1])
        return false;
    slash[slash == dir] = '\0';
    return true;
}

int project_find(char ret[PATH_MAX], struct err *e)
{
    char cwd[PATH_MAX], dir[PATH_MAX];

    if (!getcwd(cwd, sizeof cwd))
        return err_sys(e, "the working directory");
    str_copy(dir, sizeof dir, cwd);
    while (!has(dir, "package.json", S_IFREG) && !has(dir, "node_modules", S_IFDIR))
        if (!go_up(dir)) {
            str_copy(ret, PATH_MAX, cwd);
            return 0;
        }
    str_copy(ret, PATH_MAX, dir);
    while (go_up(dir))
        if (has(dir, "package.json", S_IFREG) && owns(dir, ret + strlen(dir) + (dir[1] != '\0'))) {
            str_copy(ret, PATH_MAX, dir);
            return 0;
        }
    return 0;
}
