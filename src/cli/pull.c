/* jerboa pull - fetches ahead of its first use, and prints where it is: a runtime, and sets of
 * dependencies for it. */
#include <stdio.h>
#include <string.h>

#include "base/fd.h"
#include "base/str.h"
#include "cli/engine_choice.h"
#include "cli/install.h"
#include "cli/verb.h"
#include "engine/endpoint.h"
#include "engine/native.h"
#include "store/container.h"
#include "store/runtime.h"

struct pull_options {
    const char        *image, *installer, *engine;
    int64_t            fresh_ms;
    struct option_list sets; /* of dependencies: NAME@RANGE,NAME@RANGE */
    bool               verify, strict;
};

#define AT(member) offsetof(struct pull_options, member)
static const struct option options[] = {
    {"verify", 0, OPTION_FLAG, AT(verify), NULL,
     "compare every file of a runtime that is in the store with what was fetched; one that is "
     "damaged is fetched again"},
    {"deps", 0, OPTION_LIST, AT(sets), "SET",
     "install these npm packages, NAME[@RANGE],… (RANGE: latest); may be repeated"},
    {"image", 0, OPTION_STRING, AT(image), "IMAGE", "the same as IMAGE behind the options"},
    {"engine", 0, OPTION_STRING, AT(engine), "ENGINE",
     "native, docker, podman, or auto: native for node images, else docker or podman (auto)"},
    INSTALL_ROW_INSTALLER(AT(installer)),
    INSTALL_ROW_FRESH(AT(fresh_ms)),
    INSTALL_ROW_STRICT(AT(strict)),
    {0},
};
#undef AT

static int get_runtime(const struct pull_options *o, struct runtime *ret, struct err *e)
{
    TRY(o->verify ? runtime_verify(o->image, ret, e) : runtime_ensure(o->image, ret, e));
    if (ret->is_host) /* good enough for a run, but nothing was pulled */
        return err_set(e, ERR_UNAVAILABLE, "nothing was fetched; a run would be %s", ret->note);
    return 0;
}

/* ---- sets of dependencies ---- */

/* As `run` is given them, one by one. Cuts the text up; ret borrows from it. */
static int split_set(char *text, struct option_list *ret, struct err *e)
{
    char *item;

    *ret = (struct option_list){0};
    while ((item = strsep(&text, ","))) {
        if (ret->n == OPTION_LIST_MAX)
            return err_set(e, ERR_LIMIT, "more than %d dependencies", OPTION_LIST_MAX);
        ret->items[ret->n++] = item;
    }
    return 0;
}

static int check_set(const char *set, struct err *e)
{
    autofree char     *text = str_dup(set);
    struct option_list deps;

    if (split_set(text, &deps, e) < 0 || install_check(&deps, e) < 0)
        return err_wrap(e, "--deps '%.80s'", set);
    return 0;
}

static int get_set(const struct pull_options *o, const char *set, const struct runtime *runtime,
                   struct err *e)
{
    autofree char      *text = str_dup(set);
    struct option_list  deps;
    struct install_spec spec = {&deps,   o->installer, o->fresh_ms, o->strict,
                                runtime, &native,      false};
    struct install      install;

    TRY(split_set(text, &deps, e));
    if (install_deps(&spec, &install, e) < 0)
        return err_wrap(e, "--deps '%.80s'", set);
    printf("%s\n", install.hold.dir);
    install_done(&install);
    return 0;
}

/* ---- the verb ---- */

static int read_options(struct pull_options *o, int argc, char **argv, struct err *e)
{
    int used;

    TRY(options_from_env(options, o, e));
    TRY(options_from_args(options, o, argc, argv, &used, e));
    if (argc - used > 1)
        return err_set(e, ERR_INVALID, "pull takes one image");
    if (argc > used)
        o->image = argv[used];
    for (size_t i = 0; i < o->sets.n; i++)
        TRY(check_set(o->sets.items[i], e));
    return 0;
}

static int get_image(const struct pull_options *o, const struct engine *engine, struct err *e)
{
    struct runtime runtime;

    if (o->sets.n > 0)
        return err_set(e, ERR_INVALID,
                       "--deps is of the native engine, and the image '%.60s' is %s's; packages "
                       "are told apart by commas: --deps a,b",
                       o->image, engine->name);
    TRY(container_ensure(engine->name, o->image, &runtime, e));
    container_sweep(engine->name, endpoint_name(engine->name).text);
    printf("%s %s\n", runtime.dir, runtime.version);
    return 0;
}

static int get_all(const struct pull_options *o, struct err *e)
{
    struct engine_choice choice;
    const struct engine *engine;
    struct runtime       runtime;
    autofd int           held = -1;

    TRY(engine_choice_make(o->engine, &choice, e));
    engine = engine_choice_for(&choice, o->image, e);
    if (!engine)
        return -1;
    if (engine != &native)
        return get_image(o, engine, e) < 0 ? engine_choice_explain(&choice, o->image, e) : 0;
    TRY(get_runtime(o, &runtime, e));
    printf("%s\n", runtime.dir);
    if (o->sets.n == 0)
        return 0;
    held = runtime_hold(&runtime, e);
    if (held < 0)
        return -1;
    for (size_t i = 0; i < o->sets.n; i++)
        TRY(get_set(o, o->sets.items[i], &runtime, e));
    return 0;
}

static int pull_main(int argc, char **argv)
{
    struct pull_options o = {.image = RUNTIME_DEFAULT,
                             .engine = "auto",
                             .installer = INSTALL_INSTALLER,
                             .fresh_ms = INSTALL_FRESH_MS};
    struct err          e = {0};
    int                 done = read_options(&o, argc, argv, &e);

    if (done == 0)
        done = get_all(&o, &e);
    options_done(options, &o);
    if (done == 0)
        return 0;
    fprintf(stderr, "jerboa: %s\n", e.msg);
    return e.kind == ERR_INVALID ? EXIT_USAGE : EXIT_FAILED;
}

const struct verb verb_pull = {
    .name = "pull",
    .summary = "Fetches a Node.js runtime, and npm packages, into the store and prints where they "
               "are",
    .usage = "pull [--verify] [--deps NAME[@RANGE],…]… [IMAGE]",
    .options = options,
    .details =
        "IMAGE is " RUNTIME_DEFAULT
        " unless given: node:22, node:24.1, node:current; of a container "
        "engine any, which it pulls, and printed is its id. For a runtime npm's own "
        "configuration counts: registry, credentials, cafile, ca, strict-ssl and proxies of "
        "npm_config_*, ~/.npmrc and the global npmrc; not a project's .npmrc, because all "
        "projects share the store. A download that broke off goes on where it was.\n\n"
        "The packages of one SET are what one run or call asks for together: it finds them when it "
        "names the same packages with the same ranges, in any order, and IMAGE, --installer and "
        "npm's registries are the same. Whoever runs with --fresh resolves ranges anew when they "
        "are older than that; --fresh 0 never does. Printed are the runtime's directory and one "
        "line for each set.\n",
    .main = pull_main,
};
