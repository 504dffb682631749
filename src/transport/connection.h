/* connection - one connection of an HTTP/1.1 server: bytes in, requests out, answers back.
 *
 * A request is looked at when its head is there (`head`), before any of its body is kept; head,
 * body, unread answers and the time from a request's first byte to its last are bounded.
 *
 * Contract. After `head` has let a request pass, `request` is called once with its body. Each
 * request that reached either gets exactly one answer: connection_write as often as needed, then
 * connection_answered; the next request is taken after that. Nothing is freed inside these calls; a
 * client that leaves before its answer is complete is told of by `gone`, from the top of the loop.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/http_head.h"

enum {
    CONNECTION_BODY_MAX = 8 << 20, /* of one request */
    CONNECTION_REQUEST_MS = 60000, /* from its first byte to its last */
};

struct connection;

struct connection_ops {
    /* True: the body may come. False: it was refused, and answered. */
    bool (*head)(void *owner, struct connection *c);
    void (*request)(void *owner, struct connection *c);
    /* This is no request, or one too large or too late: answer it so. */
    void (*refuse)(void *owner, struct connection *c, int status, const char *why);
    void (*quiet)(void *owner); /* one connection less waits for something; it only records */
};

/* Of the request at hand, inside the ops only. */
const struct http_head       *
connection_head(const struct connection *c); /* NULL: it could not be read */
char *connection_body(const struct connection *c, size_t *ret_size);

/* What `head` found out, for `request`. */
void  connection_set_note(struct connection *c, void *note);
void *connection_note(const struct connection *c);

bool connection_closes(const struct connection *c); /* after this answer */
void connection_set_closes(struct connection *c);

void connection_write(struct connection *c, const void *data, size_t size);
void connection_answered(struct connection *c);
/* The answer takes its time: whom to tell when the client leaves. */
void connection_watch(struct connection *c, void (*gone)(void *arg), void *arg);
