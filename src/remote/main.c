/* jerboa-remote VERSION CLIENT create ARGUMENTS… - a container on a machine that sees none of our
 * files: made, given what it needs, started. engine/client.c starts this, once a sandbox.
 *
 * stdin and stdout are init's, and the last program's: they are not touched before. Descriptor 3 is
 * the table of system calls, which `create` reads; 4 is a tar, which goes to /.jerboa, a volume of
 * the container. Then this becomes `CLIENT start`. What fails is said on stderr, in the client's
 * words.
 *
 * If the server is gone meanwhile, it goes on all the same: init finds the end of its stdin and
 * exits, and the container goes. Killed in between it leaves a container that was never started,
 * with the label of its run: the next start of Jerboa removes it (store/container.h). */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/version.h"

enum { PARCEL_FD = 4, ID_MAX = 128, SAID_MAX = 4096 };

static void repeat(int said_fd)
{
    char    said[SAID_MAX];
    ssize_t n = pread(said_fd, said, sizeof said, 0);

    if (n > 0)
        fd_write_all(STDERR_FILENO, said, (size_t)n);
}

/* What it says is repeated only if it fails: clients tell of their successes, too. */
static int run(const char *const *argv, int in_fd, int out_fd)
{
    autofd int                 said = memfd_create("said", MFD_CLOEXEC);
    posix_spawn_file_actions_t actions;
    pid_t                      pid;
    int                        status = -1;

    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in_fd, 0);
    posix_spawn_file_actions_adddup2(&actions, out_fd, 1);
    posix_spawn_file_actions_adddup2(&actions, said, 2);
    errno = posix_spawn(&pid, argv[0], &actions, NULL, (char *const *)argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (errno) {
        fprintf(stderr, "run %s: %s\n", argv[0], strerror(errno));
        return -1;
    }
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (status != 0)
        repeat(said);
    return status == 0 ? 0 : -1;
}

/* Its id is all that `create` prints on stdout. */
static int create(const char *const *argv, int nothing_fd, char ret_id[ID_MAX])
{
    autofd int out = memfd_create("id", MFD_CLOEXEC);
    ssize_t    n;

    if (out < 0 || run(argv, nothing_fd, out) < 0)
        return -1;
    n = pread(out, ret_id, ID_MAX - 1, 0);
    ret_id[n > 0 ? n : 0] = '\0';
    ret_id[strspn(ret_id, "0123456789abcdef")] = '\0';
    if (*ret_id)
        return 0;
    fprintf(stderr, "%s told no id of the container that it made\n", argv[0]);
    return -1;
}

static void become_start(const char *client, const char *id)
{
    const char *const argv[] = {client, "start", "--attach", "--interactive", id, NULL};

    execv(client, (char *const *)argv);
    fprintf(stderr, "run %s: %s\n", client, strerror(errno));
}

int main(int argc, char **argv)
{
    char               id[ID_MAX], place[ID_MAX + 16];
    const char *const *client = (const char *const *)argv + 2;
    autofd int         nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    struct err         e = {0};

    if (argc < 4 || nothing < 0 || version_check("jerboa-remote", argv[1], &e) < 0) {
        fprintf(stderr, "%s\n", e.kind ? e.msg : "jerboa-remote is started by jerboa");
        return 2;
    }
    if (create(client, nothing, id) < 0)
        return 1;
    snprintf(place, sizeof place, "%s:/.jerboa", id);
    const char *const copy[] = {*client, "cp", "-", place, NULL};
    const char *const remove[] = {*client, "rm", "--force", "--volumes", id, NULL};
    if (run(copy, PARCEL_FD, nothing) == 0)
        become_start(*client, id);
    run(remove, nothing, nothing);
    return 1;
}
