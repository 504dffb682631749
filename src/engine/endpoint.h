/* endpoint - where the daemon is that a container client would ask: on this machine, or on one that
 * sees none of our files.
 *
 * Known as the client knows it: DOCKER_HOST (CONTAINER_HOST for podman), else the context that is
 * chosen by DOCKER_CONTEXT or `docker context use`, by its files. A unix socket is this machine;
 * who has one that leads elsewhere says --remote. */
#pragma once

#include <stdbool.h>

struct endpoint_name {
    char text[32];
};

bool endpoint_is_remote(const char *program);
/* Nobody listens at its unix socket, or not to us. */
bool endpoint_is_deaf(const char *program);
/* The same for the same daemon; a file may be called so. */
struct endpoint_name endpoint_name(const char *program);
bool endpoint_url_is_remote(const char *url); /* one of them, of this kind or that */
