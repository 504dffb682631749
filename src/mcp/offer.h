/* offer - the inside of struct mcp_server: what is registered, and who is connected. */
#pragma once

#include <event2/event.h>
#include <stdbool.h>
#include <stddef.h>

#include "mcp/request.h"
#include "mcp/revision.h"
#include "mcp/server.h"

#define MCP_NS "io.modelcontextprotocol/"
#define MCP_TASKS_EXTENSION "extensions/" MCP_NS "tasks"

enum { OFFER_MAX = 256, OFFER_PAGE = 100 };

struct offer_table {
    const void *rows[OFFER_MAX];
    size_t      n;
};

struct mcp_server {
    struct event_base      *base;
    const struct mcp_about *about;
    void                   *context;
    struct offer_table      tools, resources, prompts;
    void (*list_resources)(struct mcp_call *c);              /* those that come and go, or NULL */
    void (*session_ended)(void *context, const char *owner); /* or NULL */
    void (*subscribed)(void *context);                       /* or NULL */
    struct requests requests; /* open, and of nobody who has a session */
    LIST_HEAD(sessions, mcp_session) sessions;
    LIST_HEAD(listeners, listener) listeners;
    LIST_HEAD(calls, mcp_call) calls; /* that are not over */
    struct tasks  *tasks;
    struct states *states; /* of requests that wait for answers: MAC key, used ones */
};

bool offer_has_tools(const struct mcp_server *s);
bool offer_has_resources(const struct mcp_server *s);
bool offer_has_prompts(const struct mcp_server *s);
bool offer_has_completions(const struct mcp_server *s);
bool offer_has_tasks(const struct mcp_server *s);

/* By name; NULL: there is none, or not in this revision's era, or no name. */
const struct mcp_tool   *offer_tool(const struct mcp_exchange *x, const char *name);
const struct mcp_prompt *offer_prompt(const struct mcp_exchange *x, const char *name);

json_t *offer_schema(const struct mcp_tool *t);        /* of its arguments */
json_t *offer_output_schema(const struct mcp_tool *t); /* or NULL */
json_t *offer_about(const struct mcp_server *s, const struct mcp_revision *revision);
json_t *offer_capabilities(const struct mcp_server *s, const struct mcp_revision *revision);

json_t *offer_versions(const struct mcp_exchange *x); /* spoken where it came from */

/* What a table says of eras, and of icons to clients that know them. */
bool offer_is_in(enum mcp_era eras, const struct mcp_revision *revision);
void offer_add_icons(json_t *row, const char *icons, const struct mcp_revision *revision);

/* A cursor is the index of the next row; or, past the rows, this and a cursor of who makes the
 * rest. */
#define REST_MARK ':'

/* Answers with one page of a table: the rows from the cursor on that `describe` does not answer
 * with NULL. `rest`: makes the pages after the last, or NULL. */
void offer_list(struct mcp_exchange *x, const struct offer_table *table, const char *member,
                json_t *(*describe)(const void *row, const struct mcp_revision *revision),
                void (*rest)(struct mcp_call *c));
