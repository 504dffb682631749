/* call - one request that a handler works on: tools/call, resources/read, prompts/get, a
 * completion, a list that is made when it is asked for.
 *
 * Contract. The handler gets the call and ends it exactly once, at once or later from the loop,
 * with mcp_call_done, mcp_call_fail or mcp_call_error; after that the call is gone. When the client
 * cancels, goes away, cannot be asked or its time is up, `on_cancel` is called once, and the call
 * is gone then: the handler stops its work and must not touch it again. So it is when a modern
 * client was asked: its retry is another call. Its time is an hour unless it says otherwise.
 *
 * Asking the client back (elicitation, sampling, roots) is written once for all eras: mcp_call_ask
 * gives the answer, or remembers the question, and then the handler just returns. Questions of one
 * round go out together. The handler is called again when answers came: in the legacy era after a
 * request to the client on this call's stream, in the modern era by the client's retry, in a task
 * by tasks/update. What must be remembered between rounds goes into the call's state, which travels
 * through the client under a MAC.
 *
 * JSON that a handler gives (`_take`) must have been made: NULL is an error of the program. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/json.h"

struct mcp_call;

/* ---- what was asked ---- */

void       *mcp_call_context(const struct mcp_call *c);   /* of mcp_server_new */
const char *mcp_call_principal(const struct mcp_call *c); /* "" on stdio or without tokens */
/* To whom belongs what it makes: "token:NAME", else "stdio", else a legacy session ("session:ID",
 * see mcp_server_on_session_end), else "": nobody who could be recognised. */
const char   *mcp_call_owner(const struct mcp_call *c);
const char   *mcp_call_tool(const struct mcp_call *c);      /* its name; NULL: it is none */
const json_t *mcp_call_arguments(const struct mcp_call *c); /* an object, maybe empty */
/* Decodes the arguments into a struct by the tool's field table (validated: cannot fail). */
void        mcp_call_decode(const struct mcp_call *c, void *target);
const char *mcp_call_uri(const struct mcp_call *c);
const char *mcp_call_variable(const struct mcp_call *c, const char *name); /* of the uri template */
/* The client's: "sampling", "elicitation/url". */
bool mcp_call_has_capability(const struct mcp_call *c, const char *name);
bool mcp_call_wants_progress(const struct mcp_call *c);
bool mcp_call_knows_links(const struct mcp_call *c); /* resource_link blocks: since 2025-06-18 */

/* The handler's own data for this call, freed with it. */
void  mcp_call_set_data(struct mcp_call *c, void *data, void (*free_data)(void *data));
void *mcp_call_data(const struct mcp_call *c);
void  mcp_call_on_cancel(struct mcp_call *c, void (*cancelled)(struct mcp_call *c));
/* From now. Then it is cancelled, and the client told so. It goes on while the client is asked. */
void mcp_call_set_deadline(struct mcp_call *c, int64_t ms);

/* Who stands beside the handler, and hears how it ended, before anything of the call is freed. */
enum mcp_ending { MCP_ANSWERED, MCP_FAILED, MCP_CANCELLED };
typedef void mcp_witness(void *data, enum mcp_ending how);
void         mcp_call_set_witness(struct mcp_call *c, void *data, mcp_witness *ended);
void        *mcp_call_witness(const struct mcp_call *c); /* its data; or NULL */

/* ---- while it runs ---- */

/* Goes on with `next` in a while. The timer goes with the call: who only waits needs no on_cancel.
 */
void     mcp_call_after(struct mcp_call *c, int64_t ms, void (*next)(struct mcp_call *c));
unsigned mcp_call_turns(const struct mcp_call *c); /* how often it went on so */

double mcp_call_progressed(const struct mcp_call *c); /* what was told last; 0: nothing */
void   mcp_call_progress(struct mcp_call *c, double progress, double total, const char *message);
void   mcp_call_log(struct mcp_call *c, const char *level, const char *logger, const char *text);

/* ---- asking back ---- */

const json_t *mcp_call_answer(const struct mcp_call *c, const char *key); /* NULL: not yet */
/* The answer if it is there; else NULL, and the client is asked once the handler has returned. */
const json_t *mcp_call_ask(struct mcp_call *c, const char *key, const char *method,
                           json_t *params_take);
void          mcp_call_set_state(struct mcp_call *c, const char *state); /* for the next round */
const char   *mcp_call_state(const struct mcp_call *c);                  /* or NULL */

/* ---- the result (texts need not be UTF-8: what is not becomes U+FFFD) ---- */

void mcp_call_text(struct mcp_call *c, const char *text);
void mcp_call_image(struct mcp_call *c, const char *base64, const char *mime_type);
void mcp_call_audio(struct mcp_call *c, const char *base64, const char *mime_type);
void mcp_call_resource(struct mcp_call *c, json_t *resource_take);  /* {uri, mimeType, text|blob} */
void mcp_call_resource_link(struct mcp_call *c, json_t *link_take); /* {uri, name, …} */
void mcp_call_content(struct mcp_call *c, json_t *block_take);
void mcp_call_structured(struct mcp_call *c, json_t *object_take);
void mcp_call_message(struct mcp_call *c, const char *role, json_t *block_take); /* prompts */
void mcp_call_message_text(struct mcp_call *c, const char *role, const char *text);
void mcp_call_contents(struct mcp_call *c, const char *mime_type, const char *text); /* resources */
void mcp_call_contents_blob(struct mcp_call *c, const char *mime_type, const char *base64);
void mcp_call_contents_meta(struct mcp_call *c, json_t *meta_take); /* of the last contents */
/* How long the client may keep it, and whether it is the same for everybody; else not at all. */
void mcp_call_cache(struct mcp_call *c, int64_t ttl_ms, bool for_all);

void mcp_call_done(struct mcp_call *c);
void mcp_call_finish(struct mcp_call *c, const char *fmt, ...)
    __attribute__((format(printf, 2, 3))); /* a block of text, and done */
void mcp_call_fail(struct mcp_call *c, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));   /* a result with isError, which the model should see */
void mcp_call_not_found(struct mcp_call *c); /* resources: the code differs by revision */
void mcp_call_error(struct mcp_call *c, int code, const char *message, json_t *data_take);

void mcp_call_set_failed(struct mcp_call *c); /* isError, with the content collected */

/* ---- completions: mcp_call_value for each, then mcp_call_done ---- */

const char *mcp_call_completes(const struct mcp_call *c); /* the argument or variable */
const char *mcp_call_prefix(const struct mcp_call *c);    /* what was typed so far */
/* mcp_call_arguments has the others that were chosen already. */
void mcp_call_value(struct mcp_call *c, const char *value); /* the first 100 are sent */

/* ---- lists: mcp_call_listed for each, then mcp_call_done ---- */

const char *mcp_call_cursor(const struct mcp_call *c); /* NULL: from the beginning */
void        mcp_call_listed(struct mcp_call *c, json_t *row_take);
void        mcp_call_set_next(struct mcp_call *c, const char *cursor); /* there is more */

/* Goes on in the background if the client knows tasks: it gets the task's id now and polls. True:
 * it is a task (also when it was one already). */
bool mcp_call_as_task(struct mcp_call *c);

/* Closes the connection under a legacy call; its result waits for the client to come back with
 * Last-Event-ID. Elsewhere: nothing. */
void mcp_call_drop_connection(struct mcp_call *c);
