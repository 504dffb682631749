/* fuzz-locks - the locks that installers write, made of what hostile registries said.
 *
 * Asserted: a lock that passes names no package but of our registry, and what does not pass has one
 * sentence. An input is the text of bun.lock or package-lock.json: it is read as both. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/json.h"
#include "base/str.h"
#include "base/url.h"
#include "deps/audit.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const registries[] = {"https://registry.test/npm/", NULL};

static void check_npm(const char *text)
{
    autojson json_t *lock = json_loads(text, 0, NULL);
    const char      *name;
    json_t          *row;
    struct url       url;

    json_object_foreach (json_object_get(lock, "packages"), name, row) {
        const char *from = json_string_value(json_object_get(row, "resolved"));

        if (!*name || json_is_true(json_object_get(row, "inBundle")))
            continue; /* what was asked for, and what came in another one's tarball */
        assert(!from || (url_parse(from, &url, NULL) == 0 && url.is_tls &&
                         strcmp(url.host, "registry.test") == 0));
        assert(!json_is_true(json_object_get(row, "link")));
    }
}

static void audit(const char *text)
{
    struct err e = {0};

    if (audit_bun_lock(text, registries, &e) < 0)
        assert(e.kind != ERR_NONE && e.msg[0]);
    e = (struct err){0};
    if (audit_npm_lock(text, registries, &e) < 0)
        assert(e.kind != ERR_NONE && e.msg[0]);
    else
        check_npm(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    autofree char *text = str_ndup(size ? (const char *)data : "", size);

    audit(text);
    return 0;
}
