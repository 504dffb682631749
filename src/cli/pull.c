/* jerboa pull - fetches a runtime ahead of its first use and prints where it is. */
#include <stdio.h>

#include "cli/verb.h"
#include "store/runtime.h"

struct pull_options {
    bool verify;
};

static const struct option options[] = {
    {"verify", 0, OPTION_FLAG, offsetof(struct pull_options, verify), NULL,
     "compare every file of a runtime that is in the store with what was fetched; one that is "
     "damaged is fetched again"},
    {0},
};

static int get(const struct pull_options *o, const char *image, struct runtime *ret, struct err *e)
{
    return o->verify ? runtime_verify(image, ret, e) : runtime_ensure(image, ret, e);
}

static int pull_main(int argc, char **argv)
{
    struct pull_options o = {0};
    const char         *image;
    struct runtime      runtime;
    struct err          e = {0};
    int                 used = 0;

    if (options_from_env(options, &o, &e) == 0 &&
        options_from_args(options, &o, argc, argv, &used, &e) == 0 && argc - used > 1)
        err_set(&e, ERR_INVALID, "pull takes one image");
    if (e.kind) {
        fprintf(stderr, "jerboa: %s\n", e.msg);
        return EXIT_USAGE;
    }
    image = argc > used ? argv[used] : RUNTIME_DEFAULT;
    if (get(&o, image, &runtime, &e) < 0) {
        fprintf(stderr, "jerboa: %s\n", e.msg);
        return e.kind == ERR_INVALID ? EXIT_USAGE : EXIT_FAILED;
    }
    if (runtime.is_host) { /* good enough for a run, but nothing was pulled */
        fprintf(stderr, "jerboa: nothing was fetched; a run would be %s\n", runtime.note);
        return EXIT_FAILED;
    }
    printf("%s\n", runtime.dir);
    return 0;
}

const struct verb verb_pull = {
    .name = "pull",
    .summary = "Fetches a Node.js runtime into the store and prints its directory",
    .usage = "pull [--verify] [IMAGE]",
    .options = options,
    .details =
        "IMAGE is " RUNTIME_DEFAULT " unless given: node:22, node:24.1, node:current. npm's own "
        "configuration counts: registry, credentials, cafile, ca, strict-ssl and proxies of "
        "npm_config_*, ~/.npmrc and the global npmrc; not a project's .npmrc, because all "
        "projects share the store. A download that broke off goes on where it was.\n",
    .main = pull_main,
};
