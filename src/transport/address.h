/* address - where a server listens: "[HOST:]PORT" or "unix:PATH". Hosts are numeric, or localhost;
 * nothing here asks a name server. */
#pragma once

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

#include "base/err.h"

struct address {
    union {
        struct sockaddr         any;
        struct sockaddr_storage inet;
        struct sockaddr_un      local;
    } to;
    socklen_t size;
    bool      is_unix;
    bool      is_local; /* only this machine can reach it: loopback or unix */
    dev_t     dev;      /* of the unix socket that we made: another may take its place */
    ino_t     ino;
};

int address_parse(const char *text, struct address *ret, struct err *e);

/* A listening socket, non-blocking; *a then tells the port that was chosen. A unix socket is made
 * with mode 0600; one that nobody serves any more is replaced. */
int  address_listen(struct address *a, struct err *e);
void address_unlink(const struct address *a); /* of a unix socket; else nothing */
char *
address_url(const struct address *a); /* "http://HOST:PORT/mcp" or "unix:PATH"; the caller frees */
