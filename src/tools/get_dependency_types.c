/* get_dependency_types - TypeScript declarations of npm packages, each fetched by a program of its
 * own. One that cannot be had is told in its own entry and harms no other. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/str.h"
#include "deps/deps.h"
#include "tools/errors.h"
#include "tools/fetches.h"
#include "tools/progress.h"
#include "tools/tools.h"

enum { PACKAGES_MAX = 20, ALL_BYTES = 256 << 10, ONE_BYTES = 64 << 10, ONE_MS = 60000 };

struct arguments {
    const json_t *dependencies;
};

static const struct field fields[] = {
    {"dependencies", FIELD_LIST, offsetof(struct arguments, dependencies), true, 1, PACKAGES_MAX,
     "As [{\"name\":\"zod\",\"version\":\"^4\"}]; version as in run_js (latest).",
     "{\"items\":{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\"},"
     "\"version\":{\"type\":\"string\"}},\"required\":[\"name\"]}}"},
    {0},
};

static const struct field package_fields[] = {
    {"name", FIELD_STRING, offsetof(struct layer_dep, name), true, 0, 1000, "package"},
    {"version", FIELD_STRING, offsetof(struct layer_dep, range), false, 0, 1000, "range or tag"},
    {0},
};

struct package {
    struct typing   *typing;
    struct layer_dep dep;    /* borrowed from the arguments */
    struct fetch    *fetch;  /* NULL: it has its answer */
    json_t          *answer; /* an object, or NULL */
};

struct typing {
    struct mcp_call *call;
    struct progress  progress;
    size_t           n, left;
    struct package   packages[PACKAGES_MAX];
};

static void typing_free(void *data)
{
    struct typing *t = data;

    progress_done(&t->progress);
    for (size_t i = 0; i < t->n; i++) {
        if (t->packages[i].fetch)
            fetch_cancel(t->packages[i].fetch);
        json_decref(t->packages[i].answer);
    }
    free(t);
}

/* ---- the answer ---- */

/* jerboa-fetch says everything but the name. In the text what is not there is left out, as the
 * predecessor does; among the fields it is null. */
static json_t *describe(const struct package *p, const json_t *told)
{
    static const char *const members[] = {"hasTypes", "version", "typesPackage",
                                          "reason",   "types",   NULL};
    const json_t            *left_out = json_object_get(told, "leftOut");
    json_t                  *o = json_pack("{s:s}", "name", p->dep.name);

    for (size_t i = 0; members[i]; i++) {
        json_t *value = json_object_get(told, members[i]);
        json_object_set_new(o, members[i], value ? json_incref(value) : json_null());
    }
    json_object_set_new(o, "leftOut", left_out ? json_incref((json_t *)left_out) : json_array());
    return o;
}

static json_t *without_nothing(const json_t *package)
{
    json_t     *o = json_object(), *value;
    const char *name;

    json_object_foreach ((json_t *)package, name, value)
        if (!json_is_null(value) && !(json_is_array(value) && json_array_size(value) == 0))
            json_object_set(o, name, value);
    return o;
}

static void answer(struct typing *t)
{
    struct mcp_call *c = t->call;
    json_t          *list = json_array();
    autojson json_t *brief = json_array();
    autofree char   *text = NULL;

    for (size_t i = 0; i < t->n; i++) {
        json_array_append(list, t->packages[i].answer);
        json_array_append_new(brief, without_nothing(t->packages[i].answer));
    }
    text = json_dumps(brief, JSON_INDENT(2));
    mcp_call_text(c, text ? text : "[]");
    mcp_call_structured(c, json_pack("{s:o}", "packages", list));
    mcp_call_done(c);
}

static json_t *explain(const struct package *p, const char *why)
{
    autojson json_t *told =
        json_pack("{s:b, s:o}", "hasTypes", 0, "reason", json_text(why, strlen(why)));

    return describe(p, told);
}

static void on_fetched(void *owner, const char *text, size_t size, const struct err *e)
{
    struct package  *p = owner;
    struct typing   *t = p->typing;
    autojson json_t *told = text ? json_parse(text, size, NULL) : NULL;
    autofree char   *news = NULL;

    p->fetch = NULL;
    if (json_is_object(told))
        p->answer = describe(p, told);
    else
        p->answer = explain(p, e->kind ? e->msg : "jerboa-fetch gave no answer");
    t->left--;
    news = str_format("%zu of %zu packages: %s", t->n - t->left, t->n, p->dep.name);
    progress_tell(&t->progress, news);
    if (t->left == 0)
        answer(t);
}

/* ---- the call ---- */

static void begin(struct package *p, size_t max_bytes)
{
    char              max[32];
    const char *const words[] = {"types", max, p->dep.name, p->dep.range, NULL};
    struct err        e = {0};

    snprintf(max, sizeof max, "%zu", max_bytes);
    if (deps_check(&p->dep, 1, &e) < 0) {
        p->answer = explain(p, e.msg);
        p->typing->left--;
        return;
    }
    p->fetch = fetch_start(tools_of(p->typing->call)->fetches, p->typing->call, words, ONE_MS,
                           on_fetched, p);
}

static int read_packages(struct typing *t, const json_t *list, struct err *e)
{
    json_t *row;
    size_t  i;

    json_array_foreach ((json_t *)list, i, row) {
        t->packages[i] = (struct package){.typing = t, .dep = {.range = "latest"}};
        TRY(fields_decode(package_fields, row, "dependencies", &t->packages[i].dep, e));
        t->n = t->left = i + 1;
    }
    return 0;
}

static void call(struct mcp_call *c)
{
    struct arguments a = {0};
    struct err       e = {0};
    struct typing   *t = calloc(1, sizeof *t);
    size_t           max_bytes;

    if (!t)
        abort();
    mcp_call_decode(c, &a);
    t->call = c;
    progress_init(&t->progress, fetches_base(tools_of(c)->fetches), c);
    mcp_call_set_data(c, t, typing_free);
    if (read_packages(t, a.dependencies, &e) < 0) {
        errors_fail(c, BAD_DEPENDENCY, e.msg);
        return;
    }
    max_bytes = ALL_BYTES / t->n < ONE_BYTES ? ALL_BYTES / t->n : ONE_BYTES;
    for (size_t i = 0; i < t->n; i++)
        begin(&t->packages[i], max_bytes);
    progress_tell(&t->progress, "asking the registry");
    if (t->left == 0)
        answer(t);
}

#define OR_NULL(name) "\"" name "\":{\"type\":[\"string\",\"null\"]},"

const struct mcp_tool tool_get_dependency_types = {
    .name = "get_dependency_types",
    .title = "Read types",
    .description =
        "Read TypeScript declarations of npm packages for run_js_ephemeral code, from the package "
        "or @types. types: entry, then files it references, 64 KiB each, 256 KiB in all; leftOut: "
        "the rest. None or error: hasTypes false, reason. Returns a JSON array.",
    .fields = fields,
    .output_schema =
        "{\"type\":\"object\",\"properties\":{\"packages\":{\"type\":\"array\",\"items\":{"
        "\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\"},"
        "\"hasTypes\":{\"type\":\"boolean\"}," OR_NULL("version") OR_NULL("typesPackage")
            OR_NULL("reason") OR_NULL(
                "types") "\"leftOut\":{\"type\":\"array\",\"items\":{"
                         "\"type\":\"string\"}}},\"required\":[\"name\",\"hasTypes\",\"version\","
                         "\"typesPackage\","
                         "\"reason\",\"types\",\"leftOut\"]}}},\"required\":[\"packages\"]}",
    .hints = {.read_only = true, .idempotent = true, .open_world = true},
    .call = call,
};
