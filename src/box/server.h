/* server - a script that goes on in the background and is reached by a port.
 *
 * It is started when the port inside answers, when it has died, or when its time to answer is over
 * (then it goes on all the same). A server of the same box on the same port is ended first. It has
 * no run limit: it ends by itself, with its box, or when another takes its port. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "box/box.h"
#include "sandbox/files.h"
#include "sandbox/keep.h"
#include "sandbox/run.h"

enum { SERVER_LOG_MAX = 64 };

struct server_spec {              /* what it points to must live until done */
    const struct run_file *files; /* written first */
    size_t                 n_files;
    const char            *script; /* path inside */
    uint16_t               port;
    int64_t                answer_ms;
    struct files          *watch;       /* over its files/, which it may make grow by … */
    int64_t                quota_bytes; /* … so much while it lives; NULL or 0: no limit */
};

struct server_result {
    struct err        err;         /* it was not started: it was cancelled, … */
    bool              unpublished; /* … or its port could not be published */
    bool              answered;
    bool              died; /* before it answered: then `run` tells how, and output has its log */
    struct run_result run;
    struct keep      *output; /* or NULL; borrowed */
    uint16_t          host_port;
    char              log[SERVER_LOG_MAX]; /* a path relative to /workspace */
};

struct server_start;

/* The caller has the box's turn until `done`, which is called once. */
struct server_start *server_start(struct box *b, const struct server_spec *spec,
                                  void (*done)(void *owner, const struct server_result *r),
                                  void *owner);
/* Ends the server too; done still comes. Due also when the box is lost: it is not touched then. */
void server_start_cancel(struct server_start *s);

/* The log of its i-th server that lives, as in server_result; NULL: there are not so many. */
const char *server_log(struct box *b, size_t i);
