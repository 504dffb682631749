#include "npm/registry.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/str.h"
#include "npm/document.h"
#include "npm/http.h"
#include "npm/package_name.h"

enum { PACKUMENT_MAX = 32 << 20, TARBALL_MAX = 256 << 20 };

struct registry {
    struct npm_config *config;
    struct http       *http;
};

struct tarball_file {
    int                  file_fd;
    int64_t              bytes;
    struct integrity_sum sum;
    registry_progress   *progress;
    void                *owner;
};

struct registry *registry_open(enum npm_config_reach reach, struct err *e)
{
    struct npm_config *config = npm_config_load(reach, e);
    struct registry   *r;

    if (!config)
        return NULL;
    r = calloc(1, sizeof *r);
    if (!r)
        abort();
    r->config = config;
    r->http = http_new(config);
    return r;
}

void registry_free(struct registry *r)
{
    if (!r)
        return;
    http_free(r->http);
    npm_config_free(r->config);
    free(r);
}

const char *registry_note(const struct registry *r)
{
    return npm_config_note(r->config);
}

const char *registry_cafile(const struct registry *r)
{
    return npm_config_trust(r->config).cafile;
}

/* ---- documents ---- */

static int check_name(const char *package, struct err *e)
{
    if (!package_name_is_one(package, strlen(package)))
        return err_set(e, ERR_INVALID, "\"%.80s\" is no name of an npm package", package);
    return 0;
}

static int take_text(void *owner, const void *data, size_t size, int64_t total_bytes, struct err *e)
{
    (void)total_bytes;
    if (buf_add(owner, data, size) < 0)
        return err_set(e, ERR_LIMIT, "longer than %d MiB", PACKUMENT_MAX >> 20);
    return 0;
}

/* A scoped name is one part of the path: its slash is written %2f. */
static char *packument_url(const char *registry, const char *package)
{
    const char *slash = strchr(package, '/');

    if (!slash)
        return str_format("%s%s", registry, package);
    return str_format("%s%.*s%%2f%s", registry, (int)(slash - package), package, slash + 1);
}

static json_t *get_json(struct registry *r, const char *url, const char *accept, struct err *e)
{
    autobuf struct buf  text;
    struct http_request request = {
        .url = url,
        .accept = accept,
        .max_bytes = PACKUMENT_MAX,
        .take = take_text,
        .owner = &text,
    };

    buf_init(&text, PACKUMENT_MAX);
    if (http_get(r->http, &request, e) < 0)
        return NULL;
    return document_parse((char *)text.data, text.size, e);
}

/* What an installer needs, where the registry has that; or all of it. */
static const char brief[] = "application/vnd.npm.install-v1+json, application/json;q=0.8";
static const char whole[] = "application/json";

static json_t *get_packument(struct registry *r, const char *package, const char *accept,
                             char ret_registry[NPM_CONFIG_URL_MAX], struct err *e)
{
    autofree char *url = NULL;

    if (npm_config_registry(r->config, package, ret_registry, e) < 0)
        return NULL;
    url = packument_url(ret_registry, package);
    return get_json(r, url, accept, e);
}

static int resolve(struct registry *r, const char *package, const struct release_want *want,
                   struct release *ret, struct err *e)
{
    char             registry[NPM_CONFIG_URL_MAX];
    autojson json_t *packument = get_packument(r, package, brief, registry, e);

    return packument ? packument_pick(packument, registry, want, ret, e) : -1;
}

int registry_resolve(struct registry *r, const char *package, const struct release_want *want,
                     struct release *ret, struct err *e)
{
    TRY(check_name(package, e));
    return resolve(r, package, want, ret, e) < 0 ? err_wrap(e, "npm package %s", package) : 0;
}

/* npm itself writes such a sentence where a package has none. */
static bool is_readme(const char *text)
{
    return text && text[strspn(text, " \t\r\n")] &&
           !str_starts(text, "ERROR: No README data found");
}

static int resolve_readme(struct registry *r, const char *package, char **ret_readme,
                          struct release *ret, struct err *e)
{
    static const struct release_want latest = {.range = "latest", .use_tags = true};
    char                             registry[NPM_CONFIG_URL_MAX];
    struct err                       failed = {0};
    autojson json_t *packument = get_packument(r, package, whole, registry, &failed);
    const char      *readme = json_string_value(json_object_get(packument, "readme"));

    *ret_readme = NULL;
    if (!packument && failed.kind == ERR_LIMIT) /* thousands of versions: the tarball has it, too */
        return resolve(r, package, &latest, ret, e);
    if (!packument) {
        *e = failed;
        return -1;
    }
    if (!is_readme(readme))
        return packument_pick(packument, registry, &latest, ret, e);
    *ret_readme = str_dup(readme);
    return 0;
}

int registry_resolve_readme(struct registry *r, const char *package, char **ret_readme,
                            struct release *ret, struct err *e)
{
    TRY(check_name(package, e));
    return resolve_readme(r, package, ret_readme, ret, e) < 0
               ? err_wrap(e, "npm package %s", package)
               : 0;
}

int registry_get(struct registry *r, const char *scope, const char *path,
                 char ret_registry[NPM_CONFIG_URL_MAX], json_t **ret, struct err *e)
{
    autofree char *any = str_format("%s%sany", scope, *scope ? "/" : "");
    autofree char *url = NULL;

    *ret_registry = '\0';
    TRY(npm_config_registry(r->config, any, ret_registry, e));
    url = str_format("%s%s", ret_registry, path);
    *ret = get_json(r, url, whole, e);
    return *ret ? 0 : -1;
}

/* ---- tarballs ---- */

/* The server sends from here on: what we have of the rest is forgotten. */
static int begin_tarball(void *owner, int64_t at, struct err *e)
{
    struct tarball_file *d = owner;

    if (at == d->bytes)
        return 0;
    if (ftruncate(d->file_fd, 0) < 0 || lseek(d->file_fd, 0, SEEK_SET) < 0)
        return err_sys(e, "write a tarball into the store");
    integrity_begin(&d->sum);
    d->bytes = 0;
    return 0;
}

static int take_tarball(void *owner, const void *data, size_t size, int64_t total_bytes,
                        struct err *e)
{
    struct tarball_file *d = owner;

    if (fd_write_all(d->file_fd, data, size) < 0)
        return err_sys(e, "write a tarball into the store");
    integrity_add(&d->sum, data, size);
    d->bytes += (int64_t)size;
    d->progress(d->owner, d->bytes, total_bytes);
    return 0;
}

static int read_beginning(struct tarball_file *d, struct err *e)
{
    char    block[1 << 16];
    ssize_t n;

    if (lseek(d->file_fd, 0, SEEK_SET) < 0)
        return err_sys(e, "read a tarball of the store");
    while ((n = read(d->file_fd, block, sizeof block)) > 0) {
        integrity_add(&d->sum, block, (size_t)n);
        d->bytes += n;
    }
    return n < 0 ? err_sys(e, "read a tarball of the store") : 0;
}

static int get_rest(struct registry *r, struct tarball_file *d, const struct release *release,
                    struct err *e)
{
    TRY(http_get(r->http,
                 &(struct http_request){
                     .url = release->url,
                     .from = d->bytes,
                     .max_bytes = TARBALL_MAX,
                     .begin = begin_tarball,
                     .take = take_tarball,
                     .owner = d,
                 },
                 e));
    if (!integrity_is_whole(&d->sum, &release->integrity))
        return err_set(e, ERR_INVALID, "its sha512 is not the one that the registry promises");
    return 0;
}

static int download(struct registry *r, struct tarball_file *d, const struct release *release,
                    struct err *e)
{
    struct err failed = {0};
    bool       resumed;

    TRY(read_beginning(d, e));
    if (d->bytes > 0 && integrity_is_whole(&d->sum, &release->integrity))
        return 0;
    resumed = d->bytes > 0;
    if (get_rest(r, d, release, &failed) == 0)
        return 0;
    if (resumed && failed.kind == ERR_INVALID) { /* not the same bytes, or past their end */
        TRY(begin_tarball(d, 0, e));
        return get_rest(r, d, release, e);
    }
    *e = failed;
    return -1;
}

int registry_download(struct registry *r, const struct release *release, int file_fd,
                      registry_progress *progress, void *owner, struct err *e)
{
    struct tarball_file d = {.file_fd = file_fd, .progress = progress, .owner = owner};
    int                 done;

    integrity_begin(&d.sum);
    done = download(r, &d, release, e);
    integrity_end(&d.sum, &release->integrity, NULL);
    return done;
}
