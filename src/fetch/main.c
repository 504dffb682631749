/* jerboa-fetch - what Jerboa does over the network: a program of its own, so that `jerboa` starts
 * without the libraries that this takes.
 *
 *   jerboa-fetch [--answer] runtime IMAGE          its directory in the store
 *   jerboa-fetch [--answer] verify IMAGE           the same, every file compared
 *   jerboa-fetch [--answer] tool NAME              a program of Jerboa's own use: its directory
 *   jerboa-fetch [--answer] package NAME [RANGE]   a tarball in the store
 *   jerboa-fetch config KEY                        what npm's configuration says
 *   jerboa-fetch [--answer] types MAX NAME RANGE   its types, at most so many bytes: JSON
 *   jerboa-fetch [--answer] search QUERY SCOPE     packages that the registry finds: JSON
 *   jerboa-fetch [--answer] readme NAME            the beginning of its README: JSON
 *
 * stdout: the path, the value, the JSON. stderr: progress, and one sentence when it fails; with
 * --answer that goes to stdout too, for a program that reads it. Ends with 0, 1 failed, 2 usage, 3
 * the registry cannot be reached. What reads foreign bytes does so in processes of their own,
 * behind walls: fetch/roles.h. A signal may end it at any point: the next one cleans up, or goes on
 * from there (store/entry.h, fetch/download.h). */
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/str.h"
#include "base/version.h"
#include "fetch/assemble.h"
#include "fetch/package.h"
#include "fetch/search.h"
#include "fetch/tool.h"
#include "fetch/types.h"
#include "store/runtime.h"

enum { TYPES_MAX = 1 << 20, ANSWER_MAX = 8 << 20 };

static int do_runtime(char **words, struct buf *ret, struct err *e)
{
    char path[PATH_MAX];

    TRY(assemble_runtime(words[0], path, e));
    return buf_printf(ret, "%s", path);
}

static int do_verify(char **words, struct buf *ret, struct err *e)
{
    char path[PATH_MAX];

    TRY(assemble_verified(words[0], path, e));
    return buf_printf(ret, "%s", path);
}

static int do_tool(char **words, struct buf *ret, struct err *e)
{
    char path[PATH_MAX];

    TRY(tool_fetch(words[0], path, e));
    return buf_printf(ret, "%s", path);
}

static int do_package(char **words, struct buf *ret, struct err *e)
{
    char path[PATH_MAX];

    TRY(package_fetch(words[0], words[1] ? words[1] : "latest", path, e));
    return buf_printf(ret, "%s", path);
}

static int do_config(char **words, struct buf *ret, struct err *e)
{
    char value[PATH_MAX];

    TRY(package_config(words[0], value, e));
    return buf_printf(ret, "%s", value);
}

static int do_types(char **words, struct buf *ret, struct err *e)
{
    int64_t max_bytes;

    TRY(str_parse_count(words[0], 1, TYPES_MAX, &max_bytes, e));
    return types_fetch(words[1], words[2], (size_t)max_bytes, ret, e);
}

static int do_search(char **words, struct buf *ret, struct err *e)
{
    return search_fetch(words[0], words[1], ret, e);
}

static int do_readme(char **words, struct buf *ret, struct err *e)
{
    return search_readme(words[0], ret, e);
}

static const struct job {
    const char *name;
    int         words_min, words_max;
    int (*run)(char **words, struct buf *ret, struct err *e); /* words end with NULL */
} jobs[] = {
    {"runtime", 1, 1, do_runtime}, {"verify", 1, 1, do_verify}, {"tool", 1, 1, do_tool},
    {"package", 1, 2, do_package}, {"config", 1, 1, do_config}, {"types", 3, 3, do_types},
    {"search", 2, 2, do_search},   {"readme", 1, 1, do_readme},
};

static const struct job *find(const char *name, int words)
{
    for (size_t i = 0; name && i < sizeof jobs / sizeof *jobs; i++)
        if (strcmp(jobs[i].name, name) == 0 && words >= jobs[i].words_min &&
            words <= jobs[i].words_max)
            return &jobs[i];
    return NULL;
}

/* Nothing that whoever started us left open is for the processes that read foreign bytes; and none
 * of them reads this program's input. */
static int leave_behind(struct err *e)
{
    int fd = open("/dev/null", O_RDWR);

    if (fd < 0 || dup2(fd, 0) < 0 || close_range(3, ~0U, 0) < 0)
        return err_sys(e, "leave descriptors behind");
    return 0;
}

#define ANSWER "--answer"

/* Alone it is somebody's at a shell. */
static int check_version(const char *argument, struct err *e)
{
    const char *asked = argument + strlen(ANSWER);

    return *asked == '\0' ? 0 : version_check("jerboa-fetch", *asked == '=' ? asked + 1 : NULL, e);
}

static int status_of(enum err_kind kind)
{
    return kind == ERR_UNAVAILABLE ? RUNTIME_FETCH_UNAVAILABLE : 1;
}

int main(int argc, char **argv)
{
    bool               answer = argc > 1 && strncmp(argv[1], ANSWER, strlen(ANSWER)) == 0;
    const struct job  *job = find(argv[1 + answer], argc - answer - 2);
    struct err         e = {0};
    autobuf struct buf result;

    buf_init(&result, ANSWER_MAX);
    if (answer && check_version(argv[1], &e) < 0) {
        printf("%s\n", e.msg);
        return 1;
    }
    if (!job) {
        fprintf(stderr, "usage: jerboa-fetch [--answer] runtime IMAGE | verify IMAGE | "
                        "tool NAME | package NAME [RANGE] | config KEY | types MAX NAME RANGE | "
                        "search QUERY SCOPE | readme NAME\n");
        return 2;
    }
    if (answer)
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* nobody would read it; the next one cleans up */
    umask(022);                           /* sandboxes read the store as another user */
    signal(SIGPIPE, SIG_IGN);
    signal(SIGCHLD, SIG_DFL);       /* we wait for our children */
    setlocale(LC_CTYPE, "C.UTF-8"); /* libarchive reads names by it */
    if (leave_behind(&e) < 0 || job->run(argv + 2 + answer, &result, &e) < 0) {
        fprintf(answer ? stdout : stderr, "%s%s\n", answer ? "" : "jerboa: ", e.msg);
        return status_of(e.kind);
    }
    if (printf("%s\n", buf_text(&result)) < 0 || fflush(stdout) != 0) {
        if (!answer) /* else who asked says that there is none */
            fprintf(stderr, "jerboa: write to stdout: %s\n", strerror(errno));
        return 1;
    }
    return 0;
}
