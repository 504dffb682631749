#include "engine/endpoint.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/json.h"
#include "base/sha256.h"
#include "base/str.h"

enum { CONFIG_MAX = 1 << 18 }; /* credentials stand there, too */

/* Without a scheme it is TCP's: "host:2375". */
bool endpoint_url_is_remote(const char *url)
{
    return *url && !str_starts(url, "unix://") && !str_starts(url, "fd://");
}

static json_t *read_json(const char *dir, const char *file)
{
    autofree char *path = str_format("%s/%s", dir, file), *text = NULL;
    struct err     e = {0};

    if (file_read_text(AT_FDCWD, path, CONFIG_MAX, &text, &e) < 0)
        return NULL;
    return json_parse(text, strlen(text), &e);
}

/* A directory of contexts has one for each, called by the hash of its name. */
static bool context_is_remote(const char *dir, const char *name)
{
    char             hex[SHA256_HEX_SIZE];
    struct sha256    hash;
    autofree char   *file = NULL;
    autojson json_t *meta = NULL;
    const char      *host = NULL;

    sha256_init(&hash);
    sha256_add(&hash, name, strlen(name));
    sha256_hex(&hash, hex);
    file = str_format("contexts/meta/%s/meta.json", hex);
    meta = read_json(dir, file);
    json_unpack(meta, "{s:{s:{s:s}}}", "Endpoints", "docker", "Host", &host);
    return host && endpoint_url_is_remote(host);
}

static bool chosen_context_is_remote(void)
{
    const char      *name = getenv("DOCKER_CONTEXT"), *home = getenv("HOME");
    const char      *told = getenv("DOCKER_CONFIG");
    autofree char   *dir = str_format("%s%s",
                                    told && *told ? told
                                      : home        ? home
                                                    : "",
                                    told && *told ? "" : "/.docker");
    autojson json_t *config = NULL;

    if (!name || !*name) {
        config = read_json(dir, "config.json");
        name = json_string_value(json_object_get(config, "currentContext"));
    }
    return name && *name && context_is_remote(dir, name);
}

bool endpoint_is_remote(const char *program)
{
    bool        is_podman = strcmp(program, "podman") == 0;
    const char *host = getenv(is_podman ? "CONTAINER_HOST" : "DOCKER_HOST");

    if (host && *host)
        return endpoint_url_is_remote(host);
    return !is_podman && chosen_context_is_remote();
}
