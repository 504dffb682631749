/* tools - the MCP tools of Jerboa, one file each: file, symbol and protocol name are the same.
 *
 * A handler decodes its arguments, starts an object of src/box, and turns what that tells into
 * content. All of them work on one context, which whoever serves makes. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "box/box.h"
#include "deps/layers.h"
#include "egress/policy.h"
#include "mcp/server.h"
#include "tools/fetches.h"
#include "tools/outputs.h"
#include "tools/shares.h"
#include "tools/words.h"

enum { TOOLS_POLICIES = 3 };

struct admission;
struct following;
struct trail;

struct tools {
    struct mcp_server *mcp;
    struct trail      *trail; /* the audit log; or NULL */
    struct boxes      *boxes;
    struct admission  *admission; /* of calls that need one more of these */
    struct layers     *layers;
    struct shares     *shares;                   /* FILES_DIR, for each who has one */
    struct outputs    *outputs;                  /* of runs, whole */
    struct fetches    *fetches;                  /* what asks the registry */
    struct following  *following;                /* files of sandboxes, for subscribers */
    struct policy     *policies[TOOLS_POLICIES]; /* that a sandbox may be given */
    bool               told_private;             /* that files/ goes with its sandbox: once */
    int64_t            files_quota_bytes;        /* how much a run may add; 0: no limit */
    struct words       words;                    /* for texts */
    struct mcp_tool   *rows;                     /* as they are registered: their texts filled in */
};

extern const char tools_instructions[];

void tools_register(struct tools *t); /* tools, resources, prompts; t->words must be there */
void tools_done(struct tools *t);     /* after the server was freed */

/* ---- each in its own file ---- */

extern const struct mcp_prompt   tools_prompts[];
extern const struct mcp_resource tools_resources[];
void                             tools_list_resources(struct mcp_call *c);

#define TOOLS(X)                                                                                   \
    X(sandbox_initialize)                                                                          \
    X(sandbox_exec)                                                                                \
    X(run_js) X(sandbox_stop) X(run_js_ephemeral) X(get_dependency_types) X(search_npm_packages)

#define TOOLS_DECLARE(name) extern const struct mcp_tool tool_##name;
TOOLS(TOOLS_DECLARE)
#undef TOOLS_DECLARE

/* ---- what several of them need ---- */

extern const char *const tools_policy_names[TOOLS_POLICIES + 1];

struct tools *tools_of(const struct mcp_call *c);

/* The caller's sandbox of that id; NULL: the call was failed. */
struct box *tools_find_box(struct mcp_call *c, const char *id);

/* One that a sandbox may be given; NULL: there is none of that name. */
const struct policy *tools_find_policy(const struct mcp_call *c, const char *name);

/* False: the call was failed, and no sandbox can have this. Either may be NULL. */
bool tools_check_box(struct mcp_call *c, const char *image, const char *network);

/* A new one for the caller, who was admitted; NULL: the call was failed. */
struct box *tools_make_box(struct mcp_call *c, const char *image, const char *network,
                           bool one_call);

#define TOOLS_CONTAINER_ID "Id that sandbox_initialize returned (js-sbx-…)."
