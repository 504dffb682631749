/* jerboa container - what `serve` asks a container engine through, so that its loop does not wait:
 * finds an image, or has it pulled, and answers in one line on stdout, `ID VERSION` or why not; or
 * removes a container. Listed nowhere; for people there is `jerboa pull --engine`. */
#include <stdio.h>
#include <string.h>

#include "cli/verb.h"
#include "engine/endpoint.h"
#include "store/container.h"

static const struct option options[] = {{0}};

static int refuse(const char *engine, const char *image, struct err *e)
{
    return err_set(e, ERR_NOT_FOUND,
                   "%s has no image '%.80s', and this server pulls those of node only: on its "
                   "machine '%s pull' it, or serve with --pull any",
                   engine, image, engine);
}

static int find(const char *engine, const char *image, bool may_pull, struct err *e)
{
    struct runtime runtime;

    int found = may_pull ? container_ensure(engine, image, &runtime, e)
                         : container_find(engine, image, &runtime, e);
    if (found == 0 || e->kind == ERR_NOT_FOUND) /* it answers; and before there are new ones */
        container_sweep(engine, endpoint_name(engine).text);
    if (found < 0)
        return e->kind == ERR_NOT_FOUND && !may_pull ? refuse(engine, image, e) : -1;
    printf("%s %s\n", runtime.dir, runtime.version);
    return 0;
}

static int answer(int argc, char **argv, struct err *e)
{
    const char *wish = argc == 3 ? argv[0] : "";

    if (strcmp(wish, "find") == 0 || strcmp(wish, "pull") == 0)
        return find(argv[1], argv[2], strcmp(wish, "pull") == 0, e);
    if (strcmp(wish, "remove") == 0)
        return container_remove(argv[1], argv[2], e);
    return err_set(e, ERR_INVALID, "usage: jerboa %s", verb_container.usage);
}

/* What failed on this machine is not the image's fault, either. */
static int status_of(const struct err *e)
{
    return e->kind == ERR_INVALID                                  ? EXIT_USAGE
           : e->kind == ERR_UNAVAILABLE || e->kind == ERR_INTERNAL ? CONTAINER_UNAVAILABLE
                                                                   : EXIT_FAILED;
}

static int container_main(int argc, char **argv)
{
    struct err e = {0};

    if (answer(argc, argv, &e) == 0)
        return 0;
    printf("%s\n", e.msg);
    return status_of(&e);
}

const struct verb verb_container = {
    .name = "container",
    .usage = "container find|pull ENGINE IMAGE | remove ENGINE NAME",
    .options = options,
    .main = container_main,
};
