#include "cli/script.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"

enum { CODE_MAX = 64 << 20, FIFO_MS = 5000 };

static const char main_module[] = "/workspace/index.js";

/* Names that /workspace has already. */
static const char *const taken[] = {"files", "dir", NULL};

int script_from_text(struct script *ret, const char *text)
{
    *ret = (struct script){.path = strdup(main_module), .code = strdup(text), .size = strlen(text)};
    if (!ret->path || !ret->code)
        abort();
    return 0;
}

int script_from_stdin(struct script *ret, struct err *e)
{
    *ret = (struct script){.took_stdin = true};
    if (fd_read_text(0, CODE_MAX, &ret->code, &ret->size, e) < 0)
        return err_wrap(e, "standard input");
    ret->path = strdup(main_module);
    return 0;
}

static int open_script(const char *file, struct err *e)
{
    struct stat st;
    /* O_NONBLOCK: a FIFO without a writer must not hang us before the script even starts */
    autofd int fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

    if (fd < 0 || fstat(fd, &st) < 0)
        return err_sys(e, "%s", file);
    if (S_ISDIR(st.st_mode))
        return err_set(e, ERR_INVALID, "%s is a directory: name the file to run", file);
    struct pollfd first = {fd, POLLIN, 0};
    if (S_ISFIFO(st.st_mode) && poll(&first, 1, FIFO_MS) == 0)
        return err_set(e, ERR_TIMEOUT, "%s: nobody wrote to this pipe within %d s", file,
                       FIFO_MS / 1000);
    fd_set_nonblock(fd, false);
    return take_fd(&fd);
}

/* The part of file below dir, or NULL. */
static char *below(const char *file, const char *dir)
{
    char file_path[PATH_MAX], dir_path[PATH_MAX];

    if (!dir || !realpath(file, file_path) || !realpath(dir, dir_path))
        return NULL;
    size_t n = strlen(dir_path);
    if (!str_starts(file_path, dir_path) || file_path[n] != '/')
        return NULL;
    return strdup(file_path + n + 1);
}

int script_from_file(struct script *ret, const char *file, const char *dir, struct err *e)
{
    autofd int     fd = open_script(file, e);
    autofree char *inner = below(file, dir);
    const char    *slash = strrchr(file, '/'), *name = slash ? slash + 1 : file;

    *ret = (struct script){0};
    if (fd < 0)
        return -1;
    if (inner) {
        ret->path = str_format("/workspace/dir/%s", inner);
        return 0;
    }
    for (const char *const *t = taken; *t; t++)
        if (strcmp(name, *t) == 0)
            return err_set(e, ERR_INVALID, "a script cannot be called '%s': rename it", name);
    if (fd_read_text(fd, CODE_MAX, &ret->code, &ret->size, e) < 0)
        return err_wrap(e, "%s", file);
    ret->path = str_format("/workspace/%s", name);
    return 0;
}

void script_done(struct script *s)
{
    free(s->path);
    free(s->code);
}
