/* jerboa-fetch - what Jerboa does over the network: a program of its own, so that `jerboa` starts
 * without the libraries that this takes.
 *
 *   jerboa-fetch [--answer] runtime IMAGE          its directory in the store
 *   jerboa-fetch [--answer] verify IMAGE           the same, every file compared
 *   jerboa-fetch [--answer] tool NAME              a program of Jerboa's own use: its directory
 *   jerboa-fetch [--answer] package NAME [RANGE]   a tarball in the store
 *   jerboa-fetch config KEY                        what npm's configuration says
 *
 * stdout: the path, or the value. stderr: progress, and one sentence when it fails; with --answer
 * that goes to stdout too, for a program that reads it. Ends with 0, 1 failed, 2 usage, 3 the
 * registry cannot be reached. A signal may end it at any point: the next one cleans up, or goes on
 * from there (store/entry.h, fetch/download.h). */
#include <errno.h>
#include <locale.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include "fetch/assemble.h"
#include "fetch/package.h"
#include "fetch/tool.h"
#include "store/runtime.h"

static int do_runtime(char **words, char ret[PATH_MAX], struct err *e)
{
    return assemble_runtime(words[0], ret, e);
}

static int do_verify(char **words, char ret[PATH_MAX], struct err *e)
{
    return assemble_verified(words[0], ret, e);
}

static int do_tool(char **words, char ret[PATH_MAX], struct err *e)
{
    return tool_fetch(words[0], ret, e);
}

static int do_package(char **words, char ret[PATH_MAX], struct err *e)
{
    return package_fetch(words[0], words[1] ? words[1] : "latest", ret, e);
}

static int do_config(char **words, char ret[PATH_MAX], struct err *e)
{
    return package_config(words[0], ret, e);
}

static const struct job {
    const char *name;
    int         words_min, words_max;
    int (*run)(char **words, char ret[PATH_MAX], struct err *e); /* words end with NULL */
} jobs[] = {
    {"runtime", 1, 1, do_runtime}, {"verify", 1, 1, do_verify}, {"tool", 1, 1, do_tool},
    {"package", 1, 2, do_package}, {"config", 1, 1, do_config},
};

static const struct job *find(const char *name, int words)
{
    for (size_t i = 0; name && i < sizeof jobs / sizeof *jobs; i++)
        if (strcmp(jobs[i].name, name) == 0 && words >= jobs[i].words_min &&
            words <= jobs[i].words_max)
            return &jobs[i];
    return NULL;
}

static int status_of(enum err_kind kind)
{
    return kind == ERR_UNAVAILABLE ? RUNTIME_FETCH_UNAVAILABLE : 1;
}

int main(int argc, char **argv)
{
    bool              answer = argc > 1 && strcmp(argv[1], "--answer") == 0;
    const struct job *job = find(argv[1 + answer], argc - answer - 2);
    struct err        e = {0};
    char              result[PATH_MAX];

    if (!job) {
        fprintf(stderr, "usage: jerboa-fetch [--answer] runtime IMAGE | verify IMAGE | "
                        "tool NAME | package NAME [RANGE] | config KEY\n");
        return 2;
    }
    if (answer)
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* nobody would read it; the next one cleans up */
    umask(022);                           /* sandboxes read the store as another user */
    signal(SIGPIPE, SIG_IGN);
    setlocale(LC_CTYPE, "C.UTF-8"); /* libarchive reads names by it */
    if (job->run(argv + 2 + answer, result, &e) < 0) {
        fprintf(answer ? stdout : stderr, "%s%s\n", answer ? "" : "jerboa: ", e.msg);
        return status_of(e.kind);
    }
    if (printf("%s\n", result) < 0 || fflush(stdout) != 0) {
        fprintf(stderr, "jerboa: write to stdout: %s\n", strerror(errno));
        return 1;
    }
    return 0;
}
