/* jerboa gc - makes room in the store: removes what was not used for long, and says what. */
#include <stdio.h>

#include "cli/verb.h"
#include "store/gc.h"

enum { MB = 1000000 };

struct gc_options {
    int64_t max_size;
};

static const struct option options[] = {
    {"max-size", 0, OPTION_SIZE, offsetof(struct gc_options, max_size), "SIZE",
     "remove also what was used since, the least recently used first, until the store takes no "
     "more"},
    {0},
};

static const char details[] =
    "Runtimes, layers of dependencies, tools and the installers' cache go in the order of their\n"
    "last use. What a running Jerboa uses stays, and so does the runtime that is taken when none\n"
    "is named. What broken-off downloads and killed processes left goes, too. All of it comes\n"
    "back when it is needed.\n";

static void on_removed(void *owner, const char *path, int64_t bytes)
{
    (void)owner;
    printf("removed %s, %.1f MB\n", path, (double)bytes / MB);
}

/* What is held cannot go, nor can the default runtime: then the bound is missed, which is said. */
static void tell_missed(const struct gc_options *o, const struct gc_result *r)
{
    if (o->max_size >= 0 && r->left_bytes > o->max_size)
        fprintf(stderr,
                "jerboa: the store takes more than --max-size: %zu of its entries are in use, and "
                "the default runtime stays\n",
                r->held);
}

static int gc_main(int argc, char **argv)
{
    struct gc_options o = {.max_size = -1};
    struct gc_result  r;
    struct err        e = {0};
    int               used = 0;

    if (options_from_env(options, &o, &e) == 0 &&
        options_from_args(options, &o, argc, argv, &used, &e) == 0 && used < argc)
        err_set(&e, ERR_INVALID, "gc takes no '%.60s'", argv[used]);
    if (e.kind) {
        fprintf(stderr, "jerboa: %s\n", e.msg);
        return EXIT_USAGE;
    }
    struct gc_spec spec = {.max_bytes = o.max_size,
                           .max_age_ms = (int64_t)GC_DAYS * 24 * 60 * 60 * 1000,
                           .removed = on_removed};
    if (gc_run(&spec, &r, &e) < 0) {
        fprintf(stderr, "jerboa: %s\n", e.msg);
        return EXIT_FAILED;
    }
    printf("freed %.1f MB; the store takes %.1f MB\n", (double)r.removed_bytes / MB,
           (double)r.left_bytes / MB);
    tell_missed(&o, &r);
    return 0;
}

const struct verb verb_gc = {
    .name = "gc",
    .summary = "Removes from the store what was not used for 30 days",
    .usage = "gc [--max-size SIZE]",
    .options = options,
    .details = details,
    .main = gc_main,
};
