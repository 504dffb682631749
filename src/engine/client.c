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
 * is compared: its name and the time. */
static const char **compose(const json_t *plan, const char *first, const char *client,
                            const char *name, const char *label)
{
    const json_t *arguments = json_object_get(plan, "arguments");
    size_t        n = json_array_size(arguments), to = 0;
    const char  **argv = calloc(n + 6, sizeof *argv);

    if (!argv)
        abort();
    argv[to++] = first;
    if (client) {
        argv[to++] = version_own;
        argv[to++] = client;
    }
    argv[to++] = json_string_value(json_array_get(arguments, 0)); /* run, or create */
    argv[to++] = name;
    argv[to++] = label;
    for (size_t i = 1; i < n; i++)
        argv[to++] = json_string_value(json_array_get(arguments, i));
    return argv;
}

/* *ret is -1 where ours will do. */
static int open_directory(const json_t *plan, int *ret, struct err *e)
{
    const char *path = json_string_value(json_object_get(plan, "directory"));

    *ret = path ? open(path, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
    return path && *ret < 0 ? err_sys(e, "%s", path) : 0;
}

static void give_name(char ret[ENGINE_NAME_SIZE])
{
    static unsigned long count;

    snprintf(ret, ENGINE_NAME_SIZE, "jerboa-%s-%lu", run_id(), ++count);
}

int client_start(const json_t *plan, struct engine_ends *ret, struct child *child,
                 struct event_base *base, void (*exited)(void *owner, int status), void *owner,
                 struct err *e)
{
    const char    *program = json_string_value(json_object_get(plan, "program"));
    bool           is_remote = json_is_true(json_object_get(plan, "remote"));
    autofree char *carrier = is_remote ? program_find("jerboa-remote", e) : NULL, *name = NULL;
    autofree char *label =
        str_format("--label=mcp-creation-timestamp=%lld", (long long)run_id_now_ms());
    autofd int in_read = -1, in_write = -1, out_read = -1, out_write = -1, said_read = -1,
               said_write = -1, seccomp = -1, parcel = -1, directory = -1;
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
    TRY(open_directory(plan, &directory, e));
    struct child_fd fds[] = {
        {directory, CHILD_DIRECTORY}, {in_read, 0},        {out_write, 1}, {said_write, 2},
        {seccomp, SECCOMP_FD},        {parcel, PARCEL_FD}, {-1, -1}};
    give_name(ret->name);
    name = str_format("--name=%s", ret->name);
    argv =
        compose(plan, is_remote ? "jerboa-remote" : program, is_remote ? path : NULL, name, label);
    TRY(child_start(child, base, is_remote ? carrier : path, argv, (const char *const *)environ,
                    directory < 0 ? &fds[1] : fds, exited, owner, e));
    ret->to_init_fd = take_fd(&in_write);
    ret->from_init_fd = take_fd(&out_read);
    ret->control_fd = -1;
    ret->said_fd = take_fd(&said_read);
    return 0;
}

int client_sweep(const struct engine *engine, const char *name, struct child *child,
                 struct event_base *base, void (*exited)(void *owner, int status), void *owner,
                 struct err *e)
{
    const char *const argv[] = {"jerboa", "container", "remove", engine->name, name, NULL};
    autofree char    *program = program_find("jerboa", e);
    autofd int        null = open("/dev/null", O_RDWR | O_CLOEXEC);

    if (!program)
        return -1;
    if (null < 0)
        return err_sys(e, "/dev/null");
    struct child_fd fds[] = {{null, 0}, {null, 1}, {null, 2}, {-1, -1}};
    return child_start(child, base, program, argv, (const char *const *)environ, fds, exited, owner,
                       e);
}
