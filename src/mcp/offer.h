/* offer - the inside of struct mcp_server: what is registered, and who is connected. */
#pragma once

#include <event2/event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
    void (*list_resources)(struct mcp_call *c); /* those that come and go, or NULL */
    struct requests requests;                   /* open, and of nobody who has a session */
    LIST_HEAD(sessions, mcp_session) sessions;
    LIST_HEAD(listeners, listener) listeners;
    struct tasks  *tasks;
    struct states *states; /* of requests that wait for answers: MAC key, used ones */
};

bool offer_has_tools(const struct mcp_server *s);
bool offer_has_resources(const struct mcp_server *s);
bool offer_has_prompts(const struct mcp_server *s);
bool offer_has_completions(const struct mcp_server *s);
bool offer_has_tasks(const struct mcp_server *s);

const struct mcp_tool   *offer_tool(const struct mcp_server *s, const char *name, enum mcp_era era);
const struct mcp_prompt *offer_prompt(const struct mcp_server *s, const char *name,
                                      enum mcp_era era);

json_t *offer_schema(const struct mcp_tool *t); /* of its arguments */
json_t *offer_about(const struct mcp_server *s, const struct mcp_revision *revision);
json_t *offer_capabilities(const struct mcp_server *s, const struct mcp_revision *revision);

json_t *offer_versions(const struct mcp_exchange *x); /* spoken where it came from */

/* Answers with one page of a table: the rows from the cursor on that `describe` does not answer
 * with NULL. `rest`: makes the pages after the last, or NULL. */
void offer_list(struct mcp_exchange *x, const struct offer_table *table, const char *member,
                json_t *(*describe)(const void *row, const struct mcp_revision *revision),
                void (*rest)(struct mcp_call *c));
