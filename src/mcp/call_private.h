/* The inside of a call, for the methods that make calls and for tasks that keep them. */
#pragma once

#include "loop/deadline.h"
#include "loop/later.h"
#include "mcp/call.h"
#include "mcp/request.h"

struct task;

enum call_kind { CALL_TOOL, CALL_PROMPT, CALL_READ, CALL_COMPLETION, CALL_LIST };

struct mcp_call {
    LIST_ENTRY(mcp_call) entry; /* among the server's */
    enum call_kind             kind;
    struct mcp_server         *server;
    struct mcp_exchange       *x;    /* NULL once it is a task */
    struct task               *task; /* or NULL */
    const struct mcp_revision *revision;
    char                      *principal;
    char                      *owner;
    json_t                    *capabilities; /* the client's; ours to release */
    const char                *tool;         /* or NULL */
    const struct field        *fields;       /* of the tool, or NULL */
    bool                       may_be_task;
    json_t                    *arguments; /* an object */
    char                      *uri;
    json_t                    *variables;
    void (*handler)(struct mcp_call *c);

    json_t    *items; /* collected: content, messages, contents, values or rows */
    json_t    *structured;
    json_int_t left_out; /* values beyond what may be sent */
    char      *next;     /* cursor of the next page, or NULL */
    bool       failed;
    bool       refused; /* the client would not answer a question */

    char   *state;
    json_t *asks;    /* this round's: key to {method, params} */
    bool    asked;   /* there are some with the client */
    size_t  waiting; /* legacy: for so many responses */
    json_t *answers; /* of all rounds */

    void *data;
    void (*free_data)(void *data);
    void (*on_cancel)(struct mcp_call *c);
    void           *witness;
    mcp_witness    *tell_witness;
    struct deadline deadline; /* of all of it */
    struct deadline patience; /* with a client that was asked */
    struct deadline pause;
    void (*after_pause)(struct mcp_call *c);
    unsigned     turns;
    struct later again, ask_soon;
    bool         runs; /* its handler is on the stack */
    bool         over; /* it ended meanwhile */
};

/* Takes x over. Fill in what its kind has, then start. */
struct mcp_call *call_new(struct mcp_exchange *x, enum call_kind kind,
                          void (*handler)(struct mcp_call *c));
void             call_start(struct mcp_call *c); /* takes answers and state in, calls the handler */

json_t *call_result(const struct mcp_call *c); /* of what was collected: call_result.c */

int call_check_answers(const json_t *answers, struct err *e); /* an object of objects */

/* For tasks: answers to all that was asked came (an object of results), or it is to end. */
void call_take_answers(struct mcp_call *c, const json_t *answers);
void call_cancel(struct mcp_call *c);
/* Ends it without its handler, who is told as of a cancellation. */
void call_give_up(struct mcp_call *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void call_give_up_all(struct mcp_server *s);
