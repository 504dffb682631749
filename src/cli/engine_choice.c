#include "cli/engine_choice.h"

#include <string.h>

#include "base/fd.h"
#include "base/program.h"
#include "base/str.h"
#include "engine/docker.h"
#include "engine/endpoint.h"
#include "engine/native.h"
#include "engine/podman.h"
#include "store/capture.h"
#include "store/image.h"

enum { LOOK_MS = 5000 };

static bool is_deaf(const struct engine *engine)
{
    return endpoint_is_deaf(engine->name) || (engine == &podman && podman_check(false, NULL) < 0);
}

static const struct engine *find_containers(const struct engine **ret_passed_by)
{
    static const struct engine *const by_preference[] = {&docker, &podman};
    const struct engine              *first = NULL;
    char                              path[PATH_MAX];

    for (size_t i = 0; i < sizeof by_preference / sizeof by_preference[0]; i++) {
        if (program_on_path(by_preference[i]->name, path, NULL) < 0)
            continue;
        if (!is_deaf(by_preference[i])) {
            *ret_passed_by = first;
            return by_preference[i];
        }
        if (!first)
            first = by_preference[i];
    }
    return first; /* whose own error says what is wrong */
}

/* Whether native can work, by the jail's own look. A jail that is not there or does not answer is
 * no reason to leave: native's own error says more. */
static bool native_works(char why[ERR_MSG_MAX])
{
    autofree char    *jail = program_find("jerboa-jail", NULL);
    const char *const argv[] = {"jerboa-jail", "look", NULL};
    struct capture    c;

    if (!jail || capture_run_quietly(jail, argv, LOOK_MS, &c, NULL) < 0 || c.status != 1)
        return true;
    str_copy(why, ERR_MSG_MAX, c.output);
    return false;
}

int engine_choice_make(const char *name, struct engine_choice *ret, struct err *e)
{
    const struct engine *named = engine_find(name);

    if (!named && strcmp(name, "auto") != 0)
        return err_set(e, ERR_INVALID,
                       "--engine '%.60s' is unknown: there are native, docker, podman and auto",
                       name);
    if (named == &podman)
        TRY(podman_check(false, e));
    *ret = (struct engine_choice){.of_node = named ? named : &native, .is_auto = !named};
    ret->of_others = named ? (named == &native ? NULL : named) : find_containers(&ret->passed_by);
    ret->native_works = !ret->of_others || native_works(ret->why);
    if (ret->is_auto && !ret->native_works)
        ret->of_node = ret->of_others;
    if (!ret->is_auto)
        *ret->why = '\0'; /* it was not asked for */
    return 0;
}

const struct engine *engine_choice_for(const struct engine_choice *choice, const char *image,
                                       struct err *e)
{
    struct image parsed;
    struct err   unknown = {0};

    if (choice->of_node == choice->of_others || image_parse(image, &parsed, &unknown) == 0)
        return choice->of_node;
    if (!choice->of_others && e) {
        *e = unknown;
        if (choice->is_auto)
            err_append(e, "any other image needs docker or podman, and neither is on PATH");
    }
    return choice->of_others;
}

int engine_choice_explain(const struct engine_choice *choice, const char *image, struct err *e)
{
    struct err failed = *e;
    bool       is_node = image_parse(image, &(struct image){0}, NULL) == 0;

    if (choice->passed_by)
        err_set(e, failed.kind, "%s; %s was passed by, for nobody listens to you at its socket",
                failed.msg, choice->passed_by->name);
    failed = *e;
    if (*choice->why && is_node)
        err_set(e, failed.kind, "%s; native cannot work here: %s", failed.msg, choice->why);
    return -1;
}
