#include "engine/client.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/program.h"
#include "base/str.h"
#include "base/version.h"
#include "engine/parcel.h"
#include "engine/run_id.h"

enum { SECCOMP_FD = 3, PARCEL_FD = 4 };

static const char seccomp_text[] =
#include "seccomp.json.h"
    ;

/* The client reads it from its descriptor, so that there is no file to be found, or to be left. */
static int open_seccomp(struct err *e)
{
    autofd int fd = memfd_create("seccomp.json", MFD_CLOEXEC);

    if (fd < 0 || fd_write_all(fd, seccomp_text, strlen(seccomp_text)) < 0)
        return err_sys(e, "write the seccomp table");
    lseek(fd, 0, SEEK_SET);
    return take_fd(&fd);
}

/* `jerboa-remote` if it is needed, `docker`, its arguments, and what cannot be part of a plan that
 * is compared: the time. */
static const char **compose(const json_t *plan, const char *first, const char *client,
                            char **ret_label)
{
    const json_t *arguments = json_object_get(plan, "arguments");
    size_t        n = json_array_size(arguments), to = 0;
    const char  **argv = calloc(n + 5, sizeof *argv);

    if (!argv)
        abort();
    *ret_label = str_format("--label=mcp-creation-timestamp=%lld", (long long)run_id_now_ms());
    argv[to++] = first;
    if (client) {
        argv[to++] = version_own;
        argv[to++] = client;
    }
    argv[to++] = json_string_value(json_array_get(arguments, 0)); /* run, or create */
    argv[to++] = *ret_label;
    for (size_t i = 1; i < n; i++)
        argv[to++] = json_string_value(json_array_get(arguments, i));
    return argv;
}

int client_start(const json_t *plan, struct engine_ends *ret, struct child *child,
                 struct event_base *base, void (*exited)(void *owner, int status), void *owner,
                 struct err *e)
{
    const char    *program = json_string_value(json_object_get(plan, "program"));
    bool           is_remote = json_is_true(json_object_get(plan, "remote"));
    autofree char *label = NULL, *carrier = is_remote ? program_find("jerboa-remote", e) : NULL;
    autofd int     in_read = -1, in_write = -1, out_read = -1, out_write = -1, said_read = -1,
               said_write = -1, seccomp = -1, parcel = -1;
    char                  path[PATH_MAX];
    autofree const char **argv = NULL;

    TRY(program_on_path(program, path, e));
    if (is_remote && !carrier)
        return -1;
    seccomp = open_seccomp(e); /* first: descriptors are moved in their order, none onto another */
    TRY(seccomp);
    if (is_remote) {
        parcel = parcel_open(json_object_get(plan, "entries"), e);
        TRY(parcel);
    }
    TRY(engine_open_pipe(&in_read, &in_write, ENGINE_PIPE_USUAL, e));
    TRY(engine_open_pipe(&out_read, &out_write, ENGINE_PIPE_USUAL, e));
    TRY(engine_open_pipe(&said_read, &said_write, ENGINE_PIPE_USUAL, e));
    fd_set_nonblock(said_read, true);
    struct child_fd fds[] = {{in_read, 0},          {out_write, 1},      {said_write, 2},
                             {seccomp, SECCOMP_FD}, {parcel, PARCEL_FD}, {-1, -1}};
    argv = compose(plan, is_remote ? "jerboa-remote" : program, is_remote ? path : NULL, &label);
    TRY(child_start(child, base, is_remote ? carrier : path, argv, (const char *const *)environ,
                    fds, exited, owner, e));
    *ret = (struct engine_ends){take_fd(&in_write), take_fd(&out_read), -1, take_fd(&said_read)};
    return 0;
}
