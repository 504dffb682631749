#include "cli/install.h"

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/str.h"
#include "deps/layers.h"
#include "loop/deadline.h"

enum { FIRST_MS = 1000, NEXT_MS = 5000, LINE_BYTES = 160 };

struct installing {
    struct event_base  *base;
    struct deadline     tell;
    char                line[LINE_BYTES]; /* the last one */
    struct layer_result result;
};

/* ---- NAME[@RANGE] ---- */

static int split(const char *item, struct layer_dep *ret, char **ret_owned, struct err *e)
{
    char *name = str_dup(item), *at = *name ? strchr(name + 1, '@') : NULL;

    *ret_owned = name;
    *ret = (struct layer_dep){name, at ? at + 1 : "latest"};
    if (at)
        *at = '\0';
    if (at && !at[1])
        return err_set(e, ERR_INVALID, "'%.60s' ends where its version should begin", item);
    return 0;
}

struct wanted {
    struct layer_dep deps[OPTION_LIST_MAX];
    char            *owned[OPTION_LIST_MAX];
    size_t           n;
};

static int wanted_init(struct wanted *w, const struct option_list *items, struct err *e)
{
    *w = (struct wanted){0};
    for (; w->n < items->n; w->n++)
        if (split(items->items[w->n], &w->deps[w->n], &w->owned[w->n], e) < 0)
            return -1;
    return 0;
}

static void wanted_done(struct wanted *w)
{
    for (size_t i = 0; i < OPTION_LIST_MAX; i++)
        free(w->owned[i]);
}

int install_check(const struct option_list *deps, struct err *e)
{
    struct wanted w;
    int           done = wanted_init(&w, deps, e);

    if (done == 0)
        done = deps_check(w.deps, w.n, e);
    wanted_done(&w);
    return done;
}

/* ---- facts ---- */

static void on_progress(void *owner, const char *line)
{
    struct installing *i = owner;

    snprintf(i->line, sizeof i->line, "%s", line);
}

static void on_time(void *owner)
{
    struct installing *i = owner;

    fprintf(stderr, "jerboa: installing dependencies%s%s\n", *i->line ? ": " : "", i->line);
    *i->line = '\0';
    deadline_set(&i->tell, NEXT_MS);
}

static void on_done(void *owner, const struct layer_result *r)
{
    struct installing *i = owner;

    i->result = *r;
    i->result.output = NULL; /* not ours */
    event_base_loopbreak(i->base);
}

static void on_note(const char *sentence)
{
    log_line(LOG_WARN, "deps", "%s", sentence);
}

/* A signal ends this process as it ends any other, and the installer with it. */
static int wait_for(const struct install_spec *spec, const struct wanted *w, struct install *ret,
                    struct err *e)
{
    struct installing  i = {.base = event_base_new()};
    struct layers_spec layers = {.base = i.base,
                                 .installer = spec->installer,
                                 .fresh_ms = spec->fresh_ms,
                                 .strict = spec->strict,
                                 .remote = spec->remote,
                                 .note = on_note};
    struct layers_node node = {spec->runtime->version, spec->engine->name, spec->runtime->dir};

    if (!i.base)
        return err_set(e, ERR_INTERNAL, "no event loop");
    ret->base = i.base;
    ret->layers = layers_new(&layers, e);
    if (!ret->layers)
        return -1;
    deadline_init(&i.tell, i.base, on_time, &i);
    deadline_set(&i.tell, FIRST_MS);
    layers_ensure(ret->layers, w->deps, w->n, &node, "", on_progress, on_done, &i);
    event_base_dispatch(i.base);
    deadline_done(&i.tell);
    *e = i.result.err;
    ret->hold = i.result.hold;
    return e->kind ? -1 : 0;
}

int install_deps(const struct install_spec *spec, struct install *ret, struct err *e)
{
    struct wanted w;
    int           done = wanted_init(&w, spec->deps, e);

    *ret = (struct install){.hold.fd = -1};
    if (done == 0 && w.n > 0)
        done = wait_for(spec, &w, ret, e);
    if (done == 0 && w.n > 0)
        ret->package_json = deps_manifest(w.deps, w.n);
    wanted_done(&w);
    if (done < 0)
        install_done(ret);
    return done;
}

void install_done(struct install *i)
{
    layer_release(&i->hold);
    free(i->package_json);
    if (i->layers)
        layers_free(i->layers);
    if (i->base)
        event_base_free(i->base);
}
