#include "deps/scripts.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/json.h"

enum { DEPTH_MAX = 64, PACKAGE_JSON_MAX = 4 << 20 };

/* ---- whether one is there ---- */

static bool is_there(int dir_fd, const char *name)
{
    struct stat st;

    return fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Packages in the wild repeat names: not as strict as json_parse. */
static bool text_has_script(const char *text)
{
    static const char *const names[] = {"preinstall", "install", "postinstall"};
    bool                     has_bom = strncmp(text, "\xef\xbb\xbf", 3) == 0;
    autojson json_t         *package = json_loads(text + (has_bom ? 3 : 0), 0, NULL);
    const json_t            *scripts = json_object_get(package, "scripts");

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (json_object_get(scripts, names[i]))
            return true;
    return !package;
}

static bool has_script(int package_fd)
{
    autofd int     fd = openat(package_fd, "package.json",
                               O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    autofree char *text = NULL;
    struct stat    st;

    if (fd < 0)
        return errno != ENOENT;
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) ||
        fd_read_text(fd, PACKAGE_JSON_MAX, &text, NULL, NULL) < 0)
        return true;
    return text_has_script(text);
}

static int look_at_modules(int modules_fd, int depth, struct err *e);

static int look_at_package(int package_fd, int depth, struct err *e)
{
    autofd int below = -1;

    if (is_there(package_fd, "binding.gyp") || has_script(package_fd))
        return 1;
    below = openat(package_fd, "node_modules", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return below < 0 ? 0 : look_at_modules(below, depth + 1, e);
}

/* A directory of packages: node_modules, or a scope in it. */
static int look_at_modules(int modules_fd, int depth, struct err *e)
{
    autofd int     fd = openat(modules_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR           *dir = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *d;
    int            found = 0;

    if (!dir)
        return err_sys(e, "list node_modules");
    take_fd(&fd);
    if (depth > DEPTH_MAX)
        found = err_set(e, ERR_LIMIT, "packages are nested too deeply");
    while (found == 0 && (d = readdir(dir))) {
        autofd int below =
            d->d_name[0] == '.'
                ? -1
                : openat(modules_fd, d->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (below >= 0)
            found = d->d_name[0] == '@' ? look_at_modules(below, depth + 1, e)
                                        : look_at_package(below, depth, e);
    }
    closedir(dir);
    return found;
}

int scripts_look(int modules_fd, struct err *e)
{
    return look_at_modules(modules_fd, 0, e);
}

/* ---- why one failed ---- */

/* The rest of the first line that has the words, behind them. */
static bool line_with(const char *output, const char *words, char *ret, size_t size)
{
    const char *at = strstr(output, words);

    *ret = '\0';
    if (at)
        snprintf(ret, size, "%.*s", (int)strcspn(at + strlen(words), "\r\n"), at + strlen(words));
    return at;
}

int scripts_reason(const char *output, struct err *e)
{
    static const struct {
        const char *words, *missing;
    } causes[] = {
        {"ERR! find Python", "python3"},
        {"not found: make", "make"},
        {"make: not found", "make"},
        {"g++: No such file", "g++"},
        {"g++: not found", "g++"},
        {"gcc: not found", "gcc"},
        {"cc: No such file", "gcc"},
        {"node_api.h: No such file", "the headers of Node"},
        {"node.h: No such file", "the headers of Node"},
    };
    char name[80], line[160];

    for (size_t i = 0; i < sizeof causes / sizeof causes[0]; i++)
        if (strstr(output, causes[i].words))
            return err_set(e, ERR_UNAVAILABLE,
                           "a package must be compiled and this machine lacks %s: install it "
                           "(on Debian: build-essential and python3)",
                           causes[i].missing);
    line_with(output, "npm error path /workspace/node_modules/", name, sizeof name);
    if (!line_with(output, " error: ", line, sizeof line) &&
        !line_with(output, "Error: ", line, sizeof line))
        snprintf(line, sizeof line, "it gave no reason");
    return err_set(e, ERR_INTERNAL, "the install script of %s failed: %s",
                   *name ? name : "a package", line);
}
