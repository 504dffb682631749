/* jerboa - the command line: finds the verb and leaves the rest to it. */
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/str.h"
#include "base/version.h"
#include "cli/verb.h"
#include "config.h"

const struct verb *const verbs[] = {
    &verb_serve,     &verb_run,    &verb_pull,   &verb_doctor, &verb_gc, &verb_fetch,
    &verb_container, &verb_errors, &verb_events, &verb_man,    NULL};

static const struct verb *find(const char *name)
{
    for (const struct verb *const *v = verbs; *v; v++)
        if (strcmp((*v)->name, name) == 0)
            return *v;
    return NULL;
}

static int print_help(void)
{
    printf("jerboa %s - runs JavaScript in isolated Node.js sandboxes\n\n", JERBOA_VERSION);
    for (const struct verb *const *v = verbs; *v; v++)
        if ((*v)->summary)
            printf("  jerboa %-8s %s\n", (*v)->name, (*v)->summary);
    printf("  jerboa %-8s %s\n", "help", "jerboa help VERB tells more");
    printf("\n  --help, --version\n");
    return 0;
}

static int unknown_verb(const char *word)
{
    const char *names[sizeof verbs / sizeof verbs[0] + 3] = {"help", "--help", "--version"}, *near;

    for (size_t i = 0, n = 3; verbs[i]; i++)
        if (verbs[i]->summary)
            names[n++] = verbs[i]->name;
    near = str_nearest(word, names);
    if (near)
        fprintf(stderr, "jerboa: unknown verb '%s': did you mean '%s'?\n", word, near);
    else
        fprintf(stderr, "jerboa: unknown verb '%s': see jerboa --help\n", word);
    return EXIT_USAGE;
}

static int print_verb_help(const char *name)
{
    const struct verb *v = find(name);

    if (!v)
        return unknown_verb(name);
    printf("usage: jerboa %s\n\n", v->usage);
    if (v->summary)
        printf("%s.\n\n", v->summary);
    options_print_help(v->options);
    if (v->details)
        printf("\n%s", v->details);
    return 0;
}

static bool wants_help(int argc, char **argv)
{
    return argc > 0 && (strcmp(argv[0], "--help") == 0 || strcmp(argv[0], "-h") == 0);
}

/* What we inherited must not surprise us: a closed standard descriptor would become one of ours, an
 * open one would reach the programs we start, who ignores SIGCHLD cannot wait for them, and a limit
 * on the size of files (`ulimit -f`) is an error of the file that is too long, not the end of us.
 */
static void tidy_up(void)
{
    int fd;

    while ((fd = open("/dev/null", O_RDWR)) >= 0 && fd <= 2)
        ;
    close(fd);
    close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);
    signal(SIGCHLD, SIG_DFL);
    signal(SIGXFSZ, SIG_IGN);
}

static int dispatch(int argc, char **argv)
{
    const struct verb *v;

    if (argc < 2) {
        fprintf(stderr, "jerboa: no verb: see jerboa --help\n");
        return EXIT_USAGE;
    }
    if (wants_help(argc - 1, argv + 1) || (strcmp(argv[1], "help") == 0 && argc == 2))
        return print_help();
    if (strcmp(argv[1], "help") == 0)
        return print_verb_help(argv[2]);
    if (strcmp(argv[1], "--version") == 0) {
        printf("jerboa %s\n", version_own);
        return 0;
    }
    v = find(argv[1]);
    if (!v)
        return unknown_verb(argv[1]);
    if (wants_help(argc - 2, argv + 2))
        return print_verb_help(v->name);
    return v->main(argc - 2, argv + 2);
}

/* What libevent has to say is a line of our log, too. */
static void on_event_log(int severity, const char *text)
{
    log_line(severity == EVENT_LOG_ERR ? LOG_ERROR : LOG_WARN, "loop", "%s", text);
}

/* What was to be printed and could not be is a failure: a full disk must not look like success. */
int main(int argc, char **argv)
{
    int status;

    tidy_up();
    event_set_log_callback(on_event_log);
    status = dispatch(argc, argv);
    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    fprintf(stderr, "jerboa: write to stdout: %s\n", strerror(errno));
    return status ? status : EXIT_FAILED;
}
