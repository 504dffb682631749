/* search_npm_packages - packages that the registry finds, the most popular ones.
 *
 * First one program searches, then one a package looks for its README, side by side. All of it has
 * ten seconds: what has no README by then goes without. */
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/str.h"
#include "loop/deadline.h"
#include "npm/search_query.h"
#include "tools/errors.h"
#include "tools/fetches.h"
#include "tools/progress.h"
#include "tools/tools.h"

enum { FOUND_MAX = 5, ALL_MS = 10000, WORD_MAX = 200 };

static const char no_readme[] = "README not available.";

struct arguments {
    const char   *term;
    const json_t *qualifiers;
};

#define STRING(name) "\"" name "\":{\"type\":\"string\"},"

static const struct field fields[] = {
    {"searchTerm", FIELD_BYTES, offsetof(struct arguments, term), true, 1, WORD_MAX,
     "Words joined by +: markdown+parser."},
    {"qualifiers", FIELD_OBJECT, offsetof(struct arguments, qualifiers), false, 0, 0,
     "Filters, default none. keywords: a,b or; a+b and. is, not: unstable, insecure.",
     "{\"properties\":{" STRING("author") STRING("maintainer") STRING("scope") STRING("keywords")
         STRING("not") STRING("is") "\"boostExact\":{\"type\":\"boolean\",\"default\":false}},"
                                    "\"additionalProperties\":false}"},
    {0},
};
#undef STRING

#define AT(member) offsetof(struct search_terms, member)
static const struct field qualifier_fields[] = {
    {"author", FIELD_STRING, AT(author), false, 1, WORD_MAX, "name"},
    {"maintainer", FIELD_STRING, AT(maintainer), false, 1, WORD_MAX, "name"},
    {"scope", FIELD_STRING, AT(scope), false, 1, WORD_MAX, "name"},
    {"keywords", FIELD_STRING, AT(keywords), false, 1, WORD_MAX, "words"},
    {"not", FIELD_STRING, AT(not ), false, 1, WORD_MAX, "word"},
    {"is", FIELD_STRING, AT(is), false, 1, WORD_MAX, "word"},
    {"boostExact", FIELD_STRING, AT(boost_exact), false, 1, WORD_MAX, "true or false"},
    {0},
};
#undef AT

struct found {
    struct searching *searching;
    struct fetch     *fetch;  /* of its README; NULL: it is over */
    json_t           *answer; /* {name, description, readmeSnippet} */
};

struct searching {
    struct mcp_call *call;
    struct progress  progress;
    struct deadline  deadline;
    struct fetch    *fetch; /* of the search; NULL: it is over */
    size_t           n, left;
    struct found     found[FOUND_MAX];
};

static void searching_free(void *data)
{
    struct searching *s = data;

    progress_done(&s->progress);
    deadline_done(&s->deadline);
    if (s->fetch)
        fetch_cancel(s->fetch);
    for (size_t i = 0; i < s->n; i++) {
        if (s->found[i].fetch)
            fetch_cancel(s->found[i].fetch);
        json_decref(s->found[i].answer);
    }
    free(s);
}

/* ---- the answer ---- */

static void answer(struct searching *s)
{
    struct mcp_call *c = s->call;
    json_t          *list = json_array();
    autofree char   *text = NULL;

    for (size_t i = 0; i < s->n; i++)
        json_array_append(list, s->found[i].answer);
    text = json_dumps(list, JSON_INDENT(2));
    mcp_call_text(c, s->n && text ? text : "No packages found.");
    mcp_call_structured(c, json_pack("{s:o}", "packages", list));
    mcp_call_done(c);
}

static void on_too_late(void *owner)
{
    struct searching *s = owner;

    if (s->fetch)
        errors_fail(s->call, SEARCH, "the registry did not answer within 10 s");
    else
        answer(s);
}

/* ---- README ---- */

static void on_readme(void *owner, const char *text, size_t size, const struct err *e)
{
    struct found     *f = owner;
    struct searching *s = f->searching;
    autojson json_t  *told = text ? json_parse(text, size, NULL) : NULL;
    json_t           *readme = json_object_get(told, "readme");

    (void)e; /* without a README a package is still found */
    f->fetch = NULL;
    if (json_is_string(readme))
        json_object_set(f->answer, "readmeSnippet", readme);
    if (--s->left == 0)
        answer(s);
}

static void add_found(struct searching *s, const json_t *package)
{
    struct found     *f = &s->found[s->n];
    json_t           *name = json_object_get(package, "name");
    const char *const words[] = {"readme", json_string_value(name), NULL};

    if (!json_is_string(name))
        return;
    s->n++;
    s->left++;
    f->searching = s;
    f->answer = json_pack("{s:O, s:O, s:s}", "name", name, "description",
                          json_object_get(package, "description"), "readmeSnippet", no_readme);
    f->fetch = fetch_start(tools_of(s->call)->fetches, s->call, words, ALL_MS, on_readme, f);
}

/* ---- the search ---- */

static void on_searched(void *owner, const char *text, size_t size, const struct err *e)
{
    struct searching *s = owner;
    autojson json_t  *told = text ? json_parse(text, size, NULL) : NULL;
    const json_t     *packages = json_object_get(told, "packages");
    const char       *reason = json_string_value(json_object_get(told, "reason"));

    s->fetch = NULL;
    if (reason) {
        errors_fail(s->call, NO_SEARCH, reason);
        return;
    }
    if (!json_is_array(packages)) {
        errors_fail(s->call, SEARCH, e->kind ? e->msg : "jerboa-fetch gave no answer");
        return;
    }
    progress_tell(&s->progress, "reading READMEs");
    for (size_t i = 0; i < json_array_size(packages) && i < FOUND_MAX; i++)
        add_found(s, json_array_get(packages, i));
    if (s->left == 0)
        answer(s);
}

/* ---- the call ---- */

/* The predecessor wants boostExact as a text, its meaning is a truth: both will do. */
static int read_terms(const struct arguments *a, json_t *qualifiers, struct search_terms *ret,
                      struct err *e)
{
    const json_t *boost = json_object_get(qualifiers, "boostExact");

    ret->term = a->term;
    if (json_is_boolean(boost))
        json_object_set_new(qualifiers, "boostExact",
                            json_string(json_is_true(boost) ? "true" : "false"));
    return fields_decode(qualifier_fields, qualifiers, "qualifiers", ret, e);
}

static void start(struct mcp_call *c, const char *query, const char *scope)
{
    struct searching *s = calloc(1, sizeof *s);
    const char *const words[] = {"search", query, scope, NULL};

    if (!s)
        abort();
    s->call = c;
    progress_init(&s->progress, fetches_base(tools_of(c)->fetches), c);
    deadline_init(&s->deadline, fetches_base(tools_of(c)->fetches), on_too_late, s);
    deadline_set(&s->deadline, ALL_MS);
    mcp_call_set_data(c, s, searching_free);
    s->fetch = fetch_start(tools_of(c)->fetches, c, words, ALL_MS, on_searched, s);
    progress_tell(&s->progress, "searching");
}

static void call(struct mcp_call *c)
{
    struct arguments    a = {0};
    struct search_terms terms = {0};
    struct err          e = {0};
    autobuf struct buf  query;
    autojson json_t    *qualifiers = NULL;
    autofree char      *scope = NULL;

    buf_init(&query, SEARCH_QUERY_MAX);
    mcp_call_decode(c, &a);
    qualifiers = a.qualifiers ? json_copy((json_t *)a.qualifiers) : json_object();
    if (read_terms(&a, qualifiers, &terms, &e) < 0 || search_query(&terms, &query, &e) < 0) {
        errors_fail(c, BAD_SEARCH, e.msg);
        return;
    }
    if (terms.scope)
        scope = str_format("%s%s", *terms.scope == '@' ? "" : "@", terms.scope);
    start(c, buf_text(&query), scope ? scope : "");
}

const struct mcp_tool tool_search_npm_packages = {
    .name = "search_npm_packages",
    .title = "Search npm",
    .description =
        "Search npm for packages to give run_js_ephemeral: the 5 most popular, with 500 characters "
        "of README; get_dependency_types has their API. At most 10 s; a registry without search "
        "is an error. Returns a JSON array.",
    .fields = fields,
    .output_schema =
        "{\"type\":\"object\",\"properties\":{\"packages\":{\"type\":\"array\",\"items\":{"
        "\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\"},"
        "\"description\":{\"type\":\"string\"},\"readmeSnippet\":{\"type\":\"string\"}},"
        "\"required\":[\"name\",\"description\",\"readmeSnippet\"]}}},"
        "\"required\":[\"packages\"]}",
    .hints = {.read_only = true, .idempotent = true, .open_world = true},
    .call = call,
};
