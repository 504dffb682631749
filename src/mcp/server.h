/* server - what an MCP server offers: tools, resources, prompts, completions. No sockets here.
 *
 * Descriptions are static tables of the program that uses the library; the server keeps pointers to
 * them. Lists go out in the order of registration. A transport (stdio, HTTP) brings messages in
 * through mcp/exchange.h. */
#pragma once

#include <event2/event.h>
#include <stdbool.h>

#include "base/fields.h"
#include "base/json.h"
#include "mcp/call.h"
#include "mcp/revision.h"

struct mcp_server;

struct mcp_about {
    const char *name, *title, *version;
    const char *instructions; /* or NULL */
    const char *icons;        /* JSON array, or NULL */
    int64_t     list_ttl_ms;  /* how long clients may keep what is registered at start */
    int64_t     task_ttl_ms;  /* how long a task is known; 0: an hour */
    int64_t     answer_ms;    /* how long a person may think (legacy); 0: ten minutes */
};

enum mcp_task_mode { MCP_TASK_NEVER, MCP_TASK_OPTIONAL, MCP_TASK_REQUIRED };

struct mcp_tool {
    const char         *name, *title, *description;
    const struct field *fields;        /* arguments: validated, and the input schema */
    const char         *input_schema;  /* instead of fields: listed verbatim, the tool validates */
    const char         *output_schema; /* JSON, or NULL */
    const char         *icons;         /* JSON array, or NULL */
    struct {
        bool read_only, destructive, idempotent, open_world;
    } hints;
    enum mcp_era       eras; /* 0 is MCP_BOTH */
    enum mcp_task_mode task;
    const char        *needs; /* a client capability ("sampling") without which it cannot run */
    /* Called for the call and again after each answer to something it asked (see call.h). Must end
     * in mcp_call_done, _finish, _fail, _error, now or later. */
    void (*call)(struct mcp_call *c);
};

struct mcp_resource {
    const char *uri; /* or a template: test://template/{id}/data, {+path} */
    const char *name, *title, *description, *mime_type;
    void (*read)(struct mcp_call *c);     /* mcp_call_uri, mcp_call_variable */
    void (*complete)(struct mcp_call *c); /* a variable of a template; NULL: none */
    const char *icons;                    /* JSON array, or NULL */
};

struct mcp_prompt_argument {
    const char *name, *description;
    bool        required;
};

struct mcp_prompt {
    const char                       *name, *title, *description;
    const struct mcp_prompt_argument *arguments; /* the last has no name; or NULL */
    enum mcp_era                      eras;
    void (*get)(struct mcp_call *c);      /* mcp_call_message, then mcp_call_done */
    void (*complete)(struct mcp_call *c); /* an argument; NULL: none */
    const char *icons;                    /* JSON array, or NULL */
};

struct mcp_server *mcp_server_new(struct event_base *base, const struct mcp_about *about,
                                  void *context); /* context: for handlers, mcp_call_context */
void               mcp_server_free(struct mcp_server *s); /* cancels what runs */

/* Tables; the last row has no name. */
void mcp_server_add_tools(struct mcp_server *s, const struct mcp_tool *rows);
void mcp_server_add_resources(struct mcp_server *s, const struct mcp_resource *rows);
void mcp_server_add_prompts(struct mcp_server *s, const struct mcp_prompt *rows);
/* Resources that come and go, or differ by principal: `list` is called for the pages after those
 * that are registered. A registered template reads them. */
void mcp_server_set_resource_lister(struct mcp_server *s, void (*list)(struct mcp_call *c));

/* A legacy session is over: what belongs to it (mcp_call_owner) can go. */
void mcp_server_on_session_end(struct mcp_server *s,
                               void (*ended)(void *context, const char *owner));

/* What clients subscribed to, each once for each who did. `subscribed` is called when there may be
 * more of it: for resources that have to be looked at to know that they changed. */
typedef void mcp_each_subscription(void *data, const char *owner, const char *principal,
                                   const char *uri);
void         mcp_server_on_subscribe(struct mcp_server *s, void (*subscribed)(void *context));
void mcp_server_subscriptions(const struct mcp_server *s, mcp_each_subscription *each, void *data);

/* Ends the open listen streams properly; what else runs is left alone. */
void mcp_server_stop(struct mcp_server *s);
/* Ends what runs, and tells who asked for it. From the top of the loop only. */
void mcp_server_give_up(struct mcp_server *s);

/* Something changed: who asked for it is told. `principal`: only that one is; NULL: everybody. */
void mcp_server_tools_changed(struct mcp_server *s);
void mcp_server_prompts_changed(struct mcp_server *s);
void mcp_server_resources_changed(struct mcp_server *s, const char *principal);
void mcp_server_resource_updated(struct mcp_server *s, const char *principal, const char *uri);
