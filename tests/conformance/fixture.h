/* fixture - what the files of the conformance server share.
 *
 * The server registers everything that the official suite asks of a server, and a few tools of its
 * own for our tests. Read tools.c for plain tools, ask.c for those that ask the client back,
 * tasks.c for those that go on in the background, then resources.c and prompts.c. */
#pragma once

#include "mcp/server.h"

struct fixture { /* the context of every handler */
    struct mcp_server *server;
};

#define JSON(...) #__VA_ARGS__ /* a schema as one writes it */

extern const struct field no_arguments[];
extern const char         png_base64[], wav_base64[]; /* one pixel, one moment of silence */

/* What is offered; the last row of each table has no name. */
extern const struct mcp_tool     plain_tools[], asking_tools[], task_tools[];
extern const struct mcp_resource resources[];
void                             list_by_id(struct mcp_call *c); /* those that a template reads */
extern const struct mcp_prompt   prompts[];

/* What the person filled into a form; NULL: declined, cancelled, or no proper answer. */
const json_t *accepted(const json_t *answer);

/* The parameters of elicitation/create: a question, and the properties of its form as JSON text. */
json_t *form(const char *message, const char *properties);
json_t *name_form(void);

/* Completes from a list that ends with NULL. */
void complete_from(struct mcp_call *c, const char *const *words);
