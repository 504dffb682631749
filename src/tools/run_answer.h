/* run_answer - what an agent reads of a run: blocks in their fixed order, and the same as fields.
 */
#pragma once

#include "box/job.h"
#include "mcp/call.h"
#include "tools/outputs.h"

/* ---- one output ---- */

struct run_text {
    char    *text; /* UTF-8; what is too much is cut out of its middle, with a notice */
    bool     cut;
    uint64_t bytes;               /* of the whole */
    char     uri[OUTPUT_URI_MAX]; /* of the whole; "" when the text is all of it */
};

void run_text_init(struct run_text *t, struct mcp_call *c, struct keep *k);
void run_text_done(struct run_text *t);

/* ---- how it ended ---- */

enum { RUN_ENDING_MAX = 96 };

void run_ending(const struct run_result *r, char ret[RUN_ENDING_MAX]); /* "exit code 3" */

/* ---- what was not brought back, what the network did not give ---- */

/* As a job has it; "": no block. */
void run_files_note(struct mcp_call *c, const char *note);

/* In words, since an agent may not look at fields; nothing was refused: no block. */
void run_refused(struct mcp_call *c, const json_t *refused);

/* ---- all of it ---- */

/* Ends the call. */
void run_answer(struct mcp_call *c, const struct job_spec *spec, const struct job_result *r);

extern const char run_answer_schema[]; /* of its structuredContent */
