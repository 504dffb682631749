/* fuzz-words - short texts that people and agents write, each through what takes it apart.
 *
 * An input is the name of a parser (the table below), a newline, the text. Asserted is what whoever
 * uses the result relies on: what was accepted can be written again and means the same, keeps its
 * alphabet and its bounds; what was refused has one sentence. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/base64.h"
#include "base/fd.h"
#include "base/str.h"
#include "base/url.h"
#include "deps/deps.h"
#include "egress/policy.h"
#include "mcp/template.h"
#include "npm/integrity.h"
#include "npm/package_name.h"
#include "npm/search_query.h"
#include "npm/semver.h"
#include "store/image.h"
#include "tools/file_uri.h"
#include "transport/address.h"
#include "transport/origin.h"
#include "transport/token.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { LINES_MAX = 80 };

/* The lines of a text, in place; the list ends with NULL. */
static size_t split(char *text, const char *ret[LINES_MAX + 1])
{
    size_t n = 0;

    for (char *next = text; next && n < LINES_MAX;)
        ret[n++] = strsep(&next, "\n");
    ret[n] = NULL;
    return n;
}

static void check_refusal(const struct err *e)
{
    assert(e->kind != ERR_NONE && e->msg[0]);
}

static void image(char *text)
{
    struct image i = {0};
    struct err   e = {0};

    if (image_parse(text, &i, &e) < 0)
        check_refusal(&e);
    else
        assert(semver_range_test(i.range, &(struct semver){.n = {24}}) >= 0);
}

static void url(char *text)
{
    struct url u, again;
    struct err e = {0};
    char       shown[URL_HOST_MAX + URL_PATH_MAX + 16];

    if (url_parse(text, &u, &e) < 0) {
        check_refusal(&e);
        return;
    }
    url_show(&u, shown, sizeof shown);
    assert(url_parse(shown, &again, &e) == 0 && url_same_origin(&u, &again));
    assert(strcmp(u.path, again.path) == 0 && u.is_loopback == again.is_loopback);
    assert(!strstr(u.path, "/../") && !strpbrk(u.host, "@/?#\\ "));
}

static void address(char *text)
{
    struct address a = {0};
    struct err     e = {0};

    if (address_parse(text, &a, &e) < 0) {
        check_refusal(&e);
        return;
    }
    autofree char *shown = address_url(&a);
    assert(shown && a.size <= sizeof a.to && (!a.is_unix || a.is_local));
}

static void policy(char *text)
{
    const char *rules[LINES_MAX + 1], *const registries[] = {"https://registry.test/", NULL};
    struct err     e = {0};
    size_t         n = split(text, rules);
    struct policy *p = policy_new("allow", rules, registries, &e);
    struct ip      address = ip_from_v4((const uint8_t[]){93, 184, 216, 34});

    if (!p) {
        check_refusal(&e);
        return;
    }
    assert(policy_exempts(p, "registry.test", 443) && !policy_exempts(p, "registry.test", 80));
    for (size_t i = 0; i < n; i++)
        if (policy_allows_name_at(p, rules[i], 443))
            assert(policy_allows_name(p, rules[i]));
    policy_allows_address_at(p, &address, 443);
    policy_free(p);
}

static void ip(char *text)
{
    struct ip a, again;
    char      shown[IP_TEXT];

    if (ip_parse(text, &a) < 0)
        return;
    ip_format(&a, shown);
    assert(strlen(shown) < sizeof shown && ip_parse(shown, &again) == 0);
    assert(memcmp(&a, &again, sizeof a) == 0);
}

/* Names and ranges, a line each. */
static void dependencies(char *text)
{
    const char      *lines[LINES_MAX + 1];
    struct layer_dep deps[LINES_MAX / 2];
    size_t           n = split(text, lines) / 2;
    struct layer_set set = {.deps = deps, .n = n, .node_version = "24.1.0", .installer = "bun"};
    char             key[LAYER_KEY_SIZE];
    struct err       e = {0};

    for (size_t i = 0; i < n; i++)
        deps[i] = (struct layer_dep){lines[2 * i], lines[2 * i + 1]};
    if (deps_check(deps, n, &e) < 0) {
        check_refusal(&e);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        assert(!strchr("-./", deps[i].name[0]) && !strstr(deps[i].name, "/."));
        assert(deps[i].range[0] != '/');
        assert(deps_is_of_registry(deps[i].range));
    }
    assert(layer_key(&set, key, &e) == 0 && strlen(key) == LAYER_KEY_SIZE - 1);
}

static void search(char *text)
{
    const char         *w[LINES_MAX + 1] = {0};
    struct search_terms terms;
    struct err          e = {0};
    autobuf struct buf  query;

    split(text, w);
    terms = (struct search_terms){.term = w[0]};
    if (w[0] && w[1] && w[2])
        terms.author = w[1], terms.not = w[2];
    if (terms.author && w[3] && w[4])
        terms.scope = w[3], terms.is = w[4];
    buf_init(&query, SEARCH_QUERY_MAX);
    if (search_query(&terms, &query, &e) < 0) {
        check_refusal(&e);
        return;
    }
    for (size_t i = 0; i < query.size; i++)
        assert(query.data[i] > ' ' && query.data[i] < 0x7f && !strchr("#\"<>\\", query.data[i]));
}

static void file_uri(char *text)
{
    autofree char *path = file_uri_below(text, "/files"), *uri = NULL, *again = NULL;

    if (path) {
        uri = file_uri_on_host("/files", path);
        again = file_uri_below(uri, "/files");
        assert(*path && again && strcmp(path, again) == 0);
    }
}

static void uri_template(char *text)
{
    static const char *const patterns[] = {"sandbox://{id}/{+path}", "a{b}c{d}e", "{+all}"};

    for (size_t i = 0; i < sizeof patterns / sizeof patterns[0]; i++) {
        autojson json_t *values = template_match(patterns[i], text), *same = NULL;
        autofree char   *uri = values ? template_expand(patterns[i], values) : NULL;
        const char      *name;
        json_t          *value;

        if (!values)
            continue;
        json_object_foreach (values, name, value) {
            assert(*json_string_value(value));
            assert(strcmp(json_string_value(value), "..") != 0);
        }
        same = uri ? template_match(patterns[i], uri) : NULL;
        assert(!uri || json_equal(values, same));
    }
}

static void base64(char *text)
{
    size_t            n;
    autofree uint8_t *bytes = base64_decode(text, strlen(text), &n);
    autofree char    *again = bytes ? base64_encode(bytes, n) : NULL;

    assert(!bytes || strcmp(text, again) == 0);
}

static void integrity(char *text)
{
    struct integrity i;
    struct err       e = {0};

    if (integrity_parse(text, &i, &e) < 0)
        check_refusal(&e);
    else
        assert(strstr(text, "sha512-"));
}

/* A name of this machine, or one of 127.0.0.0/8 by its number; then nothing, or a port. */
static bool is_at_home(const char *authority)
{
    static const char *const names[] = {"localhost", "[::1]", "jerboa.test"};
    size_t                   length = 0;
    int                      number_length = 0;

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strncasecmp(authority, names[i], strlen(names[i])) == 0)
            length = strlen(names[i]);
    sscanf(authority, "127.%*3u.%*3u.%*3u%n", &number_length);
    length += (size_t)number_length;
    return length > 0 && (authority[length] == '\0' || authority[length] == ':');
}

/* Whom a browser that was led here cannot pretend to be. */
static void origin(char *text)
{
    static const char *const         hosts[] = {"jerboa.test", NULL};
    static const struct origin_rules rules = {.local_only = true, .hosts = hosts};
    const char                      *slashes = strstr(text, "://");

    if (origin_allows_host(&rules, text))
        assert(is_at_home(text));
    if (origin_allows(&rules, text))
        assert(slashes && is_at_home(slashes + 3));
}

static void bearer(char *text)
{
    const char *token = token_of_header(text);

    assert(!token || (token >= text && token < text + strlen(text)));
}

static const struct {
    const char *name;
    void (*parse)(char *text);
} parsers[] = {
    {"image", image},
    {"url", url},
    {"address", address},
    {"policy", policy},
    {"ip", ip},
    {"dependencies", dependencies},
    {"search", search},
    {"file-uri", file_uri},
    {"template", uri_template},
    {"base64", base64},
    {"integrity", integrity},
    {"origin", origin},
    {"bearer", bearer},
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    autofree char *input = str_ndup(size ? (const char *)data : "", size);
    char          *text = input, *name = strsep(&text, "\n");

    for (size_t i = 0; text && i < sizeof parsers / sizeof parsers[0]; i++)
        if (strcmp(parsers[i].name, name) == 0)
            parsers[i].parse(text);
    return 0;
}
