#include "mcp/tasks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/random.h"
#include "base/str.h"
#include "loop/deadline.h"
#include "mcp/call_private.h"
#include "mcp/listen.h"
#include "mcp/offer.h"
#include "mcp/request.h"

enum {
    TASKS_MAX = 10000,
    OWNER_TASKS_MAX = 1000,
    BYTES_MAX = 256 << 20,
    OWNER_BYTES_MAX = 64 << 20,
    BUCKETS = 1024,
    TTL_MS = 60 * 60 * 1000,
    POLL_MS = 500
};

enum task_status { TASK_WORKING, TASK_INPUT_REQUIRED, TASK_COMPLETED, TASK_FAILED, TASK_CANCELLED };

static const char *const status_names[] = {
    [TASK_WORKING] = "working",     [TASK_INPUT_REQUIRED] = "input_required",
    [TASK_COMPLETED] = "completed", [TASK_FAILED] = "failed",
    [TASK_CANCELLED] = "cancelled",
};

struct owner { /* a principal, for as long as there are tasks of his */
    LIST_ENTRY(owner) entry;
    char  *principal;
    size_t tasks, bytes;
};

struct task {
    LIST_ENTRY(task) entry; /* in its bucket */
    struct tasks    *tasks;
    struct owner    *owner;
    char             id[33];
    size_t           bytes; /* of what it keeps */
    enum task_status status;
    char             created[32], updated[32];
    struct mcp_call *call; /* NULL once it is over */
    json_t          *asks; /* open questions: key to {method, params} */
    json_t          *got;  /* answers that wait for the others */
    json_t          *result, *error;
    struct deadline  deadline;
};

struct tasks {
    struct mcp_server *server;
    LIST_HEAD(bucket, task) buckets[BUCKETS];
    LIST_HEAD(owners, owner) owners;
    size_t n, bytes;
};

static void stamp(char ret[32])
{
    struct timespec now;
    struct tm       tm;
    char            seconds[24];

    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &tm);
    strftime(seconds, sizeof seconds, "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(ret, 32, "%.19s.%03dZ", seconds, (int)(now.tv_nsec / 1000000));
}

static int64_t ttl_ms(const struct tasks *all)
{
    int64_t ms = all->server->about->task_ttl_ms;

    return ms ? ms : TTL_MS;
}

/* ---- what is told of a task ---- */

static json_t *describe(const struct task *t)
{
    return rpc_pack("{s:s, s:s, s:s, s:s, s:I, s:i}", "taskId", t->id, "status",
                    status_names[t->status], "createdAt", t->created, "lastUpdatedAt", t->updated,
                    "ttlMs", (json_int_t)ttl_ms(t->tasks), "pollIntervalMs", POLL_MS);
}

json_t *tasks_describe_created(const struct task *t)
{
    json_t *j = describe(t);

    json_object_set_new(j, "resultType", json_string("task"));
    return j;
}

static json_t *describe_whole(const struct task *t)
{
    json_t *j = describe(t);

    if (t->status == TASK_INPUT_REQUIRED)
        json_object_set(j, "inputRequests", t->asks);
    if (t->result)
        json_object_set(j, "result", t->result);
    if (t->error)
        json_object_set(j, "error", t->error);
    return j;
}

/* The one place where a status changes. */
static void set_status(struct task *t, enum task_status status)
{
    t->status = status;
    stamp(t->updated);
    if (status >= TASK_COMPLETED)
        t->call = NULL;
    listen_tell_task(t->tasks->server, t->owner->principal, t->id, describe_whole(t));
}

/* ---- life ---- */

static struct owner *owner_of(struct tasks *all, const char *principal)
{
    struct owner *o;

    LIST_FOREACH (o, &all->owners, entry)
        if (strcmp(o->principal, principal) == 0)
            return o;
    o = calloc(1, sizeof *o);
    if (!o)
        abort();
    o->principal = str_dup(principal);
    LIST_INSERT_HEAD(&all->owners, o, entry);
    return o;
}

static void owner_forget_if_idle(struct owner *o)
{
    if (o->tasks > 0)
        return;
    LIST_REMOVE(o, entry);
    free(o->principal);
    free(o);
}

static struct bucket *bucket_of(struct tasks *all, const char *id)
{
    return &all->buckets[random_id_bucket(id, BUCKETS)];
}

static size_t size_of(const json_t *value)
{
    return json_dumpb(value, NULL, 0, JSON_COMPACT | JSON_ENCODE_ANY);
}

/* Room for what a task is about to keep; false: there is none. */
static bool reserve(struct task *t, size_t bytes)
{
    if (t->tasks->bytes + bytes > BYTES_MAX || t->owner->bytes + bytes > OWNER_BYTES_MAX)
        return false;
    t->bytes += bytes;
    t->tasks->bytes += bytes;
    t->owner->bytes += bytes;
    return true;
}

static void give_back(struct task *t)
{
    t->tasks->bytes -= t->bytes;
    t->owner->bytes -= t->bytes;
    t->bytes = 0;
}

/* What its call kept goes with the call. */
static void forget_call(struct task *t)
{
    json_decref(t->asks);
    t->asks = NULL;
    json_object_clear(t->got);
    give_back(t);
}

static void task_free(struct task *t)
{
    LIST_REMOVE(t, entry);
    give_back(t);
    t->tasks->n--;
    t->owner->tasks--;
    owner_forget_if_idle(t->owner);
    if (t->call)
        call_cancel(t->call);
    deadline_done(&t->deadline);
    json_decref(t->asks);
    json_decref(t->got);
    json_decref(t->result);
    json_decref(t->error);
    free(t);
}

static void on_expired(void *owner)
{
    task_free(owner);
}

struct tasks *tasks_new(struct mcp_server *server)
{
    struct tasks *t = calloc(1, sizeof *t);

    if (!t)
        abort();
    t->server = server;
    return t;
}

void tasks_free(struct tasks *t)
{
    for (size_t i = 0; i < BUCKETS; i++)
        while (!LIST_EMPTY(&t->buckets[i]))
            task_free(LIST_FIRST(&t->buckets[i]));
    free(t);
}

struct task *tasks_create(struct tasks *all, struct mcp_call *c)
{
    struct owner *owner = owner_of(all, c->principal);
    struct task  *t;

    if (all->n >= TASKS_MAX || owner->tasks >= OWNER_TASKS_MAX) {
        owner_forget_if_idle(owner);
        return NULL;
    }
    t = calloc(1, sizeof *t);
    if (!t)
        abort();
    *t = (struct task){.tasks = all, .owner = owner, .call = c, .got = json_object()};
    random_id(t->id);
    stamp(t->created);
    stamp(t->updated);
    deadline_init(&t->deadline, all->server->base, on_expired, t);
    deadline_set(&t->deadline, ttl_ms(all));
    LIST_INSERT_HEAD(bucket_of(all, t->id), t, entry);
    all->n++;
    owner->tasks++;
    if (!reserve(t, size_of(c->arguments) + size_of(c->capabilities) + size_of(c->answers))) {
        t->call = NULL; /* it goes on without */
        task_free(t);
        return NULL;
    }
    return t;
}

void tasks_complete(struct task *t, json_t *result_take)
{
    forget_call(t);
    if (!reserve(t, size_of(result_take))) {
        json_decref(result_take);
        tasks_fail(t, RPC_INTERNAL_ERROR, "there is no room to keep the result", NULL);
        return;
    }
    t->result = result_take;
    set_status(t, TASK_COMPLETED);
}

void tasks_fail(struct task *t, int code, const char *message, json_t *data_take)
{
    forget_call(t);
    if (data_take && !reserve(t, size_of(data_take))) {
        json_decref(data_take);
        data_take = NULL;
    }
    t->error =
        rpc_pack("{s:i, s:o, s:o*}", "code", code, "message", rpc_text(message), "data", data_take);
    set_status(t, TASK_FAILED);
}

void tasks_wait(struct task *t, const json_t *asks)
{
    if (!reserve(t, size_of(asks))) {
        call_give_up(t->call, "there is no room to keep the questions");
        return;
    }
    json_decref(t->asks);
    t->asks = json_deep_copy(asks);
    set_status(t, TASK_INPUT_REQUIRED);
}

/* ---- methods ---- */

static struct task *find(struct tasks *all, const char *principal, const char *id)
{
    struct task *t;

    if (!id)
        return NULL;
    LIST_FOREACH (t, bucket_of(all, id), entry)
        if (strcmp(t->id, id) == 0 && strcmp(t->owner->principal, principal) == 0)
            break;
    return t;
}

/* NULL: the request has been answered with an error. */
static struct task *find_or_fail(struct mcp_exchange *x)
{
    struct task *t = find(x->server->tasks, x->principal, request_param_string(x, "taskId"));

    if (!t)
        request_error(x, RPC_INVALID_PARAMS, "there is no such task", NULL);
    return t;
}

json_t *tasks_known(struct tasks *all, const char *principal, const json_t *ids)
{
    json_t *known = json_array(), *id;
    size_t  i;

    json_array_foreach ((json_t *)ids, i, id)
        if (find(all, principal, json_string_value(id)))
            json_array_append(known, id);
    return known;
}

void tasks_get(struct mcp_exchange *x)
{
    struct task *t = find_or_fail(x);

    if (t)
        request_respond(x, describe_whole(t));
}

/* Answers to questions that are open; when the last one has come, the call goes on. -1: there is no
 * room for them. */
static int take_answers(struct task *t, const json_t *answers)
{
    autojson json_t *expected = json_object();
    const char      *key;
    json_t          *answer;

    json_object_foreach ((json_t *)answers, key, answer)
        if (json_object_get(t->asks, key))
            json_object_set(expected, key, answer);
    if (!reserve(t, size_of(expected)))
        return -1;
    json_object_foreach (expected, key, answer) {
        json_object_del(t->asks, key);
        json_object_set(t->got, key, answer);
    }
    if (json_object_size(t->asks) > 0) {
        stamp(t->updated);
        return 0;
    }
    call_take_answers(t->call, t->got);
    json_object_clear(t->got);
    set_status(t, TASK_WORKING);
    return 0;
}

void tasks_update(struct mcp_exchange *x)
{
    struct task  *t = find_or_fail(x);
    const json_t *answers = t ? request_param(x, "inputResponses") : NULL;
    struct err    e = {0};

    if (!t)
        return;
    if (call_check_answers(answers, &e) < 0) {
        request_error(x, RPC_INVALID_PARAMS, e.msg, NULL);
        return;
    }
    if (t->status == TASK_INPUT_REQUIRED && take_answers(t, answers) < 0) {
        request_error(x, RPC_INVALID_PARAMS, "there is no room to keep the answers", NULL);
        return;
    }
    request_respond(x, json_object());
}

void tasks_cancel(struct mcp_exchange *x)
{
    struct task *t = find_or_fail(x);

    if (!t)
        return;
    if (t->status < TASK_COMPLETED) {
        call_cancel(t->call);
        forget_call(t);
        set_status(t, TASK_CANCELLED);
    }
    request_respond(x, json_object());
}
