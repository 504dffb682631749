#include "mcp/call.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/str.h"
#include "mcp/call_private.h"
#include "mcp/capability.h"
#include "mcp/offer.h"
#include "mcp/session.h"
#include "mcp/state.h"
#include "mcp/tasks.h"

enum {
    CALL_MS = 60 * 60 * 1000,
    ANSWER_MS = 10 * 60 * 1000,
};

/* ---- beginning and end ---- */

static void release(struct mcp_call *c)
{
    if (c->free_data)
        c->free_data(c->data);
    deadline_done(&c->deadline);
    deadline_done(&c->patience);
    deadline_done(&c->pause);
    later_done(&c->again);
    later_done(&c->ask_soon);
    json_t *owned[] = {c->capabilities, c->arguments, c->variables, c->items,
                       c->structured,   c->asks,      c->answers};
    for (size_t i = 0; i < sizeof owned / sizeof owned[0]; i++)
        json_decref(owned[i]);
    free(c->principal);
    free(c->owner);
    free(c->uri);
    free(c->next);
    free(c->state);
    free(c);
}

/* Nothing of it is heard any more. Its memory stays while its handler is on the stack. */
static void call_free(struct mcp_call *c, enum mcp_ending how)
{
    if (c->tell_witness)
        c->tell_witness(c->witness, how);
    c->witness = NULL;
    LIST_REMOVE(c, entry);
    if (c->x) {
        c->x->cancel = NULL;
        if (c->x->session)
            session_forget(c->x->session, c->x);
    }
    c->over = true;
    if (!c->runs)
        release(c);
}

/* Before every end that the handler does not make itself. */
static void stop_work(struct mcp_call *c)
{
    if (c->on_cancel)
        c->on_cancel(c);
}

void call_cancel(struct mcp_call *c)
{
    stop_work(c);
    call_free(c, MCP_CANCELLED);
}

static void on_exchange_cancel(void *data)
{
    call_cancel(data);
}

void call_give_up(struct mcp_call *c, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    autofree char *why = str_vformat(fmt, ap);
    va_end(ap);
    stop_work(c);
    mcp_call_fail(c, "%s", why);
}

void call_give_up_all(struct mcp_server *s)
{
    struct mcp_call *c;

    while ((c = LIST_FIRST(&s->calls))) /* what one stopped may have ended any other */
        call_give_up(c, "the server is stopping");
}

static void on_deadline(void *owner)
{
    call_give_up(owner, "timed out");
}

static void on_patience(void *owner)
{
    call_give_up(owner, "the client did not answer in time");
}

static void ask_client(void *owner);

static void run(struct mcp_call *c, void (*handler)(struct mcp_call *c))
{
    c->runs = true;
    handler(c);
    c->runs = false;
    if (c->over)
        release(c);
    else
        ask_client(c);
}

static void on_pause(void *owner)
{
    struct mcp_call *c = owner;

    run(c, c->after_pause);
}

static void call_again(void *owner)
{
    struct mcp_call *c = owner;

    deadline_clear(&c->patience);
    c->asked = false;
    if (c->refused)
        call_give_up(c, "the client refused to answer");
    else
        run(c, c->handler);
}

struct mcp_call *call_new(struct mcp_exchange *x, enum call_kind kind,
                          void (*handler)(struct mcp_call *c))
{
    struct mcp_call *c = calloc(1, sizeof *c);

    if (!c)
        abort();
    *c = (struct mcp_call){.kind = kind,
                           .handler = handler,
                           .server = x->server,
                           .x = x,
                           .revision = x->revision,
                           .principal = str_dup(x->principal),
                           .owner = request_owner(x),
                           .capabilities = json_incref((json_t *)x->capabilities),
                           .arguments = json_object(),
                           .items = json_array(),
                           .asks = json_object(),
                           .answers = json_object()};
    deadline_init(&c->deadline, x->server->base, on_deadline, c);
    deadline_init(&c->patience, x->server->base, on_patience, c);
    deadline_init(&c->pause, x->server->base, on_pause, c);
    later_init(&c->again, x->server->base, call_again, c);
    later_init(&c->ask_soon, x->server->base, ask_client, c);
    LIST_INSERT_HEAD(&x->server->calls, c, entry);
    x->cancel = on_exchange_cancel;
    x->cancel_data = c;
    return c;
}

/* Who asked what: a state is good for that alone. */
static char *subject_of(const struct mcp_exchange *x)
{
    autojson json_t *params = json_copy((json_t *)x->rpc.params);
    autofree char   *text = NULL;

    json_object_del(params, "_meta");
    json_object_del(params, "inputResponses");
    json_object_del(params, "requestState");
    text = json_dumps(params, JSON_COMPACT | JSON_SORT_KEYS);
    return str_format("%s\n%s\n%s", x->principal, x->rpc.method, text ? text : "");
}

static int take_state(struct mcp_call *c, const json_t *sealed, struct err *e)
{
    const char      *text = json_string_value(sealed), *state;
    autojson json_t *content = NULL;

    if (!text)
        return err_set(e, ERR_INVALID, "requestState must be a string");
    autofree char *subject = subject_of(c->x);
    content = states_open(c->server->states, subject, text, e);
    if (!content)
        return -1;
    state = rpc_string(content, "s");
    if (state)
        c->state = str_dup(state);
    json_object_update(c->answers, json_object_get(content, "a"));
    return 0;
}

int call_check_answers(const json_t *answers, struct err *e)
{
    const char *key;
    json_t     *answer;

    if (!json_is_object(answers))
        return err_set(e, ERR_INVALID, "inputResponses must be an object");
    json_object_foreach ((json_t *)answers, key, answer) {
        if (!json_is_object(answer))
            return err_set(e, ERR_INVALID, "inputResponses.%.60s must be an object", key);
    }
    return 0;
}

void call_start(struct mcp_call *c)
{
    const json_t *responses = request_param(c->x, "inputResponses");
    const json_t *state = request_param(c->x, "requestState");
    struct err    e = {0};

    if (!request_is_modern(c->x))
        responses = state = NULL; /* words that its revision does not know */
    if ((responses && call_check_answers(responses, &e) < 0) ||
        (state && take_state(c, state, &e) < 0)) {
        mcp_call_error(c, RPC_INVALID_PARAMS, e.msg, NULL);
        return;
    }
    if (responses)
        json_object_update(c->answers, (json_t *)responses);
    deadline_set(&c->deadline, CALL_MS);
    run(c, c->handler);
}

static void deliver(struct mcp_call *c, json_t *result_take)
{
    struct mcp_exchange *x = c->x;
    struct task         *task = c->task;

    call_free(c, c->failed ? MCP_FAILED : MCP_ANSWERED);
    if (task)
        tasks_complete(task, result_take);
    else
        request_respond(x, result_take);
}

void mcp_call_done(struct mcp_call *c)
{
    deliver(c, call_result(c));
}

void mcp_call_finish(struct mcp_call *c, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    autofree char *text = str_vformat(fmt, ap);
    va_end(ap);
    mcp_call_text(c, text);
    mcp_call_done(c);
}

void mcp_call_fail(struct mcp_call *c, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    autofree char *text = str_vformat(fmt, ap);
    va_end(ap);
    if (c->kind != CALL_TOOL) {
        mcp_call_error(c, RPC_INTERNAL_ERROR, text, NULL);
        return;
    }
    c->failed = true;
    mcp_call_text(c, text);
    mcp_call_done(c);
}

void mcp_call_error(struct mcp_call *c, int code, const char *message, json_t *data_take)
{
    struct mcp_exchange *x = c->x;
    struct task         *task = c->task;

    call_free(c, MCP_FAILED);
    if (task)
        tasks_fail(task, code, message, data_take);
    else
        request_error(x, code, message, data_take);
}

/* ---- what was asked ---- */

void *mcp_call_context(const struct mcp_call *c)
{
    return c->server->context;
}

const char *mcp_call_principal(const struct mcp_call *c)
{
    return c->principal;
}

const char *mcp_call_owner(const struct mcp_call *c)
{
    return c->owner;
}

const char *mcp_call_tool(const struct mcp_call *c)
{
    return c->tool;
}

const json_t *mcp_call_arguments(const struct mcp_call *c)
{
    return c->arguments;
}

void mcp_call_decode(const struct mcp_call *c, void *target)
{
    int r = fields_decode(c->fields, c->arguments, "arguments", target, NULL);

    assert(r == 0);
    (void)r;
}

const char *mcp_call_uri(const struct mcp_call *c)
{
    return c->uri;
}

const char *mcp_call_variable(const struct mcp_call *c, const char *name)
{
    return rpc_string(c->variables, name);
}

bool mcp_call_has_capability(const struct mcp_call *c, const char *name)
{
    return capability_has(c->capabilities, name);
}

bool mcp_call_wants_progress(const struct mcp_call *c)
{
    return c->x && c->x->progress_token;
}

bool mcp_call_knows_links(const struct mcp_call *c)
{
    return c->revision->has_links;
}

void mcp_call_set_data(struct mcp_call *c, void *data, void (*free_data)(void *data))
{
    c->data = data;
    c->free_data = free_data;
}

void *mcp_call_data(const struct mcp_call *c)
{
    return c->data;
}

void mcp_call_on_cancel(struct mcp_call *c, void (*cancelled)(struct mcp_call *c))
{
    c->on_cancel = cancelled;
}

void mcp_call_set_witness(struct mcp_call *c, void *data, mcp_witness *ended)
{
    c->witness = data;
    c->tell_witness = ended;
}

void *mcp_call_witness(const struct mcp_call *c)
{
    return c->witness;
}

void mcp_call_set_deadline(struct mcp_call *c, int64_t ms)
{
    deadline_set(&c->deadline, ms);
}

/* ---- while it runs ---- */

void mcp_call_after(struct mcp_call *c, int64_t ms, void (*next)(struct mcp_call *c))
{
    c->turns++;
    c->after_pause = next;
    deadline_set(&c->pause, ms);
}

unsigned mcp_call_turns(const struct mcp_call *c)
{
    return c->turns;
}

double mcp_call_progressed(const struct mcp_call *c)
{
    return c->x ? c->x->progress : 0;
}

void mcp_call_progress(struct mcp_call *c, double progress, double total, const char *message)
{
    if (!mcp_call_wants_progress(c) || !isfinite(progress) || progress <= c->x->progress)
        return;
    c->x->progress = progress;
    request_send(c->x, rpc_notification(
                           "notifications/progress",
                           rpc_pack("{s:O, s:o, s:o*, s:o*}", "progressToken", c->x->progress_token,
                                    "progress", rpc_number(progress), "total",
                                    total > 0 ? rpc_number(total) : NULL, "message",
                                    c->revision->has_progress_text ? rpc_text(message) : NULL)));
}

void mcp_call_log(struct mcp_call *c, const char *level, const char *logger, const char *text)
{
    if (!c->x || c->x->log_level < 0 || mcp_log_level(level) < c->x->log_level)
        return;
    request_send(c->x, rpc_notification("notifications/message",
                                        rpc_pack("{s:s, s:o, s:o*}", "level", level, "data",
                                                 rpc_text(text), "logger", rpc_text(logger))));
}

void mcp_call_drop_connection(struct mcp_call *c)
{
    if (c->x && c->x->session && c->x->ops->drop_connection)
        c->x->ops->drop_connection(c->x->owner);
}

bool mcp_call_as_task(struct mcp_call *c)
{
    struct mcp_exchange *x = c->x;

    if (c->task)
        return true;
    if (!c->may_be_task || !request_is_modern(x) || !request_has_capability(x, MCP_TASKS_EXTENSION))
        return false;
    c->task = tasks_create(c->server->tasks, c);
    if (!c->task)
        return false;
    x->cancel = NULL;
    c->x = NULL;
    request_respond(x, tasks_describe_created(c->task));
    return true;
}

/* ---- asking back ---- */

const json_t *mcp_call_answer(const struct mcp_call *c, const char *key)
{
    return json_object_get(c->answers, key);
}

const json_t *mcp_call_ask(struct mcp_call *c, const char *key, const char *method,
                           json_t *params_take)
{
    const json_t *answer = mcp_call_answer(c, key);

    assert(params_take);
    if (answer) {
        json_decref(params_take);
        return answer;
    }
    json_object_set_new(c->asks, key,
                        rpc_pack("{s:s, s:o}", "method", method, "params", params_take));
    if (!c->runs) /* no handler will return: it was asked from the loop */
        later_ask(&c->ask_soon);
    return NULL;
}

void mcp_call_set_state(struct mcp_call *c, const char *state)
{
    free(c->state);
    c->state = str_dup(state);
}

const char *mcp_call_state(const struct mcp_call *c)
{
    return c->state;
}

void call_take_answers(struct mcp_call *c, const json_t *answers)
{
    const char *key;
    json_t     *answer;

    json_object_foreach ((json_t *)answers, key, answer) {
        json_object_set(c->answers, key, answer);
        json_object_del(c->asks, key); /* others may have been asked meanwhile */
    }
    later_ask(&c->again);
}

/* The first question that the client cannot answer, or NULL. */
static const char *missing_capability(const struct mcp_call *c)
{
    const char *key;
    json_t     *ask;

    json_object_foreach (c->asks, key, ask) {
        const char *capability =
            capability_to_ask(rpc_string(ask, "method"), json_object_get(ask, "params"));
        if (capability && !mcp_call_has_capability(c, capability))
            return capability;
    }
    return NULL;
}

/* Modern: the call ends here; the client's retry makes a new one that knows what this one knew. */
static void return_to_client(struct mcp_call *c)
{
    json_t *result =
        rpc_pack("{s:s, s:O}", "resultType", "input_required", "inputRequests", c->asks);

    if (c->state || json_object_size(c->answers) > 0) {
        autojson json_t *content =
            rpc_pack("{s:o*, s:O}", "s", rpc_text(c->state), "a", c->answers);
        autofree char *subject = subject_of(c->x);
        autofree char *sealed = states_seal(c->server->states, subject, content);
        if (!sealed) {
            json_decref(result);
            call_give_up(c, "the answers are too large to remember");
            return;
        }
        json_object_set_new(result, "requestState", json_string(sealed));
    }
    stop_work(c);
    deliver(c, result);
}

static void on_answer(void *owner, const char *key, const json_t *result)
{
    struct mcp_call *c = owner;

    const char *method = rpc_string(json_object_get(c->asks, key), "method");

    if (json_is_object(result))
        json_object_set(c->answers, key, (json_t *)result);
    else if (method && strcmp(method, "elicitation/create") == 0) /* a refusal is an answer there */
        json_object_set_new(c->answers, key, rpc_pack("{s:s}", "action", "cancel"));
    else
        c->refused = true;
    json_object_del(c->asks, key);
    if (--c->waiting == 0) /* what was asked meanwhile goes out when the handler has returned */
        later_ask(&c->again);
}

static void send_questions(struct mcp_call *c)
{
    const char *key;
    json_t     *ask;
    int64_t     answer_ms = c->server->about->answer_ms;

    deadline_set(&c->patience, answer_ms ? answer_ms : ANSWER_MS);
    c->waiting = json_object_size(c->asks);
    json_object_foreach (c->asks, key, ask) {
        session_ask(c->x->session, c->x, key, rpc_string(ask, "method"),
                    json_incref(json_object_get(ask, "params")), on_answer, c);
    }
}

static void ask_client(void *owner)
{
    struct mcp_call *c = owner;
    const char      *missing;

    if (c->asked || json_object_size(c->asks) == 0)
        return;
    missing = missing_capability(c);
    c->asked = true;
    if (missing && c->x && request_is_modern(c->x)) {
        struct mcp_exchange *x = c->x;
        call_cancel(c);
        request_miss_capability(x, missing);
    } else if (missing) {
        call_give_up(c, "the client does not support %s, which this needs", missing);
    } else if (c->task) {
        tasks_wait(c->task, c->asks);
    } else if (request_is_modern(c->x)) {
        return_to_client(c);
    } else {
        send_questions(c);
    }
}
