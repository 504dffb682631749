#include "npm/registry.h"

#include <stdlib.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/str.h"
#include "npm/http.h"

enum { PACKUMENT_MAX = 32 << 20, TARBALL_MAX = 256 << 20 };

struct registry {
    struct npm_config config;
    struct http      *http;
};

struct download {
    int                  file_fd;
    int64_t              bytes;
    struct integrity_sum sum;
    registry_progress   *progress;
    void                *owner;
};

struct registry *registry_new(const struct npm_config *config)
{
    struct registry *r = calloc(1, sizeof *r);

    if (!r)
        abort();
    r->config = *config;
    r->http = http_new(config->cafile);
    return r;
}

void registry_free(struct registry *r)
{
    if (!r)
        return;
    http_free(r->http);
    free(r);
}

static int take_text(void *owner, const void *data, size_t size, int64_t total_bytes, struct err *e)
{
    (void)total_bytes;
    if (buf_add(owner, data, size) < 0)
        return err_set(e, ERR_LIMIT, "longer than %d MiB", PACKUMENT_MAX >> 20);
    return 0;
}

static json_t *get_packument(struct registry *r, const char *package, struct err *e)
{
    autofree char      *url = str_format("%s%s", r->config.registry, package);
    autobuf struct buf  text;
    struct http_request request = {
        .url = url,
        .accept = "application/vnd.npm.install-v1+json, application/json;q=0.8",
        .max_bytes = PACKUMENT_MAX,
        .take = take_text,
        .owner = &text,
    };
    json_t *packument;

    buf_init(&text, PACKUMENT_MAX);
    if (http_get(r->http, &request, e) < 0)
        return NULL;
    packument = json_parse((const char *)text.data, text.size, NULL);
    if (!packument) /* the parser's sentence would quote the server */
        err_set(e, ERR_INVALID, "the registry's answer is not JSON");
    return packument;
}

int registry_resolve(struct registry *r, const char *package, const struct release_want *want,
                     struct release *ret, struct err *e)
{
    autojson json_t *packument = get_packument(r, package, e);

    if (!packument || packument_pick(packument, r->config.registry, want, ret, e) < 0)
        return err_wrap(e, "npm package %s", package);
    return 0;
}

static int take_tarball(void *owner, const void *data, size_t size, int64_t total_bytes,
                        struct err *e)
{
    struct download *d = owner;

    if (fd_write_all(d->file_fd, data, size) < 0)
        return err_sys(e, "write a tarball into the store");
    integrity_add(&d->sum, data, size);
    d->bytes += (int64_t)size;
    d->progress(d->owner, d->bytes, total_bytes);
    return 0;
}

int registry_download(struct registry *r, const struct release *release, int file_fd,
                      registry_progress *progress, void *owner, struct err *e)
{
    struct download d = {.file_fd = file_fd, .progress = progress, .owner = owner};
    int             got, same;

    integrity_begin(&d.sum);
    got = http_get(
        r->http,
        &(struct http_request){
            .url = release->url, .max_bytes = TARBALL_MAX, .take = take_tarball, .owner = &d},
        e);
    same = integrity_end(&d.sum, &release->integrity, got < 0 ? NULL : e);
    return got < 0 || same < 0 ? -1 : 0;
}
