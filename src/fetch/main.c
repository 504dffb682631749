/* jerboa-fetch - what Jerboa does over the network: a program of its own, so that `jerboa` starts
 * without the libraries that this takes.
 *
 *   jerboa-fetch [--answer] runtime IMAGE
 *
 * stdout: the directory. stderr: progress, and one sentence when it fails; with --answer that goes
 * to stdout too, for a program that reads it. Ends with 0, 1 failed, 2 usage, 3 the registry cannot
 * be reached. A signal may end it at any point: the next one cleans up (see store/entry.h). */
#include <locale.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include "fetch/assemble.h"
#include "store/runtime.h"

static int status_of(enum err_kind kind)
{
    return kind == ERR_UNAVAILABLE ? RUNTIME_FETCH_UNAVAILABLE : 1;
}

int main(int argc, char **argv)
{
    bool       answer = argc > 1 && strcmp(argv[1], "--answer") == 0;
    struct err e = {0};
    char       dir[PATH_MAX];

    if (argc - answer != 3 || strcmp(argv[1 + answer], "runtime") != 0) {
        fprintf(stderr, "usage: jerboa-fetch [--answer] runtime IMAGE\n");
        return 2;
    }
    if (answer)
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* nobody would read it; the next one cleans up */
    umask(022);                           /* sandboxes read the store as another user */
    signal(SIGPIPE, SIG_IGN);
    setlocale(LC_CTYPE, "C.UTF-8"); /* libarchive reads names by it */
    if (assemble_runtime(argv[2 + answer], dir, &e) < 0) {
        fprintf(answer ? stdout : stderr, "%s%s\n", answer ? "" : "jerboa: ", e.msg);
        return status_of(e.kind);
    }
    printf("%s\n", dir);
    return 0;
}
