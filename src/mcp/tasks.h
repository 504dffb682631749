/* tasks - the tasks extension: calls that go on after their request was answered.
 *
 * A task belongs to a principal and has 128 random bits for a name. It is kept until its time to
 * live is over, whatever became of it. Number and bytes are bounded, in all and a principal, of
 * what a call keeps while it runs (arguments, questions, answers) and of its result: when there are
 * too many, calls run within their request, and answers are refused; a result that finds no room is
 * lost, and the task says so. */
#pragma once

#include "base/json.h"
#include "mcp/call.h"
#include "mcp/server.h"

struct tasks;
struct task;

struct tasks *tasks_new(struct mcp_server *server);
void          tasks_free(struct tasks *t); /* cancels what runs */

struct task *tasks_create(struct tasks *t, struct mcp_call *c); /* NULL: no room */
json_t      *tasks_describe_created(const struct task *task);
void         tasks_complete(struct task *task, json_t *result_take);
void         tasks_fail(struct task *task, int code, const char *message, json_t *data_take);
void         tasks_wait(struct task *task, const json_t *asks); /* for answers from tasks/update */

/* Those of the ids that this principal has, as a list. */
json_t *tasks_known(struct tasks *t, const char *principal, const json_t *ids);
