#include "engine/endpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

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

static void hash_of(const char *text, char ret[SHA256_HEX_SIZE])
{
    struct sha256 hash;

    sha256_init(&hash);
    sha256_add(&hash, text, strlen(text));
    sha256_hex(&hash, ret);
}

/* A directory of contexts has one for each, called by the hash of its name. */
static char *url_of_context(const char *dir, const char *name)
{
    char             hex[SHA256_HEX_SIZE];
    autofree char   *file = NULL;
    autojson json_t *meta = NULL;
    const char      *host = NULL;

    hash_of(name, hex);
    file = str_format("contexts/meta/%s/meta.json", hex);
    meta = read_json(dir, file);
    json_unpack(meta, "{s:{s:{s:s}}}", "Endpoints", "docker", "Host", &host);
    return str_dup(host ? host : "");
}

static char *url_of_chosen_context(void)
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
    return name && *name ? url_of_context(dir, name) : str_dup("");
}

/* "": there is no daemon, which podman does without. */
static char *url_of(const char *program)
{
    bool        is_podman = strcmp(program, "podman") == 0;
    const char *host = getenv(is_podman ? "CONTAINER_HOST" : "DOCKER_HOST");

    if (host && *host)
        return str_dup(host);
    if (is_podman)
        return str_dup("");
    autofree char *chosen = url_of_chosen_context();
    return str_dup(*chosen ? chosen : "unix:///var/run/docker.sock");
}

bool endpoint_is_remote(const char *program)
{
    autofree char *url = url_of(program);

    return endpoint_url_is_remote(url);
}

bool endpoint_is_deaf(const char *program)
{
    static const char  scheme[] = "unix://";
    autofree char     *url = url_of(program);
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    autofd int         fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0 || !str_starts(url, scheme) ||
        str_copy(at.sun_path, sizeof at.sun_path, url + strlen(scheme)) < 0)
        return false;
    return connect(fd, (struct sockaddr *)&at, sizeof at) < 0 && errno != EAGAIN;
}

struct endpoint_name endpoint_name(const char *program)
{
    autofree char       *url = url_of(program);
    char                 hex[SHA256_HEX_SIZE];
    struct endpoint_name name;

    hash_of(url, hex);
    snprintf(name.text, sizeof name.text, "%.10s-%.16s", program, hex);
    return name;
}
