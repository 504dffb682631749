/* running - a call that runs JavaScript, from its arguments to its answer: what run_js and
 * run_js_ephemeral have in common. */
#pragma once

#include "box/box.h"
#include "mcp/call.h"

struct running_arguments {
    const char   *code;
    const json_t *dependencies;
    const char   *network; /* or NULL: as it was */
    int64_t       listen_on_port, timeout_ms;
};

enum { CODE_MAX = 4 << 20, DEPENDENCIES_MAX = 64, RUN_MS_MAX = 600000 };

/* Rows of their tables. */
#define RUNNING_CODE                                                                               \
    "An ES module: import and top-level await work, require does not. Runs as "                    \
    "/workspace/index.js. Example: console.log(process.version)"
#define RUNNING_DEPENDENCIES                                                                       \
    "npm packages it imports: [{\"name\":\"lodash\",\"version\":\"^4.17\"}]. version: semver "     \
    "range, dist-tag or npm:name@range; no URLs, git, file:. They replace those of earlier runs. " \
    "Default: none."
#define RUNNING_DEPENDENCIES_SCHEMA                                                                \
    "{\"items\":{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\"},\"version\":{" \
    "\"type\":\"string\"}},\"required\":[\"name\",\"version\"],\"additionalProperties\":false}}"
#define RUNNING_TIMEOUT "Time limit in ms from Node's start ({timeoutMs})."
#define RUNNING_TIMEOUT_OR_PORT RUNNING_TIMEOUT " With listenOnPort: to wait for the port (10000)."

/* False: the call was failed, and nothing was made. */
bool running_check(struct mcp_call *c, const struct running_arguments *a);
/* The same for the policy that a sandbox is to have. */
bool running_check_network(struct mcp_call *c, const struct box *b,
                           const struct running_arguments *a);
/* After these. stops_box: it goes with the call. */
void running_start(struct mcp_call *c, struct box *b, const struct running_arguments *a,
                   bool stops_box);
