/* Theory of operation. A request either finds its layer in the store, a matter of a few system
 * calls, or joins the making of its key, which begins with the first turn of who waits for it:
 * owners have turns, and some makings run at a time, since each is an installer that may want much
 * memory. A making is one child; what it prints on stderr is told to all its requests, what it
 * prints on stdout is the answer. When both pipes have ended each request looks for the layer and
 * holds it by itself; the child goes on for as long as the disk takes, and the making is over when
 * it was reaped.
 *
 * Callbacks record; `layers_step`, `making_step` and `request_step` decide. A making that nobody
 * waits for any more is killed, and stays in the list until it is over. */
#include "deps/layers.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/program.h"
#include "base/str.h"
#include "base/turns.h"
#include "base/version.h"
#include "deps/installer.h"
#include "deps/sources.h"
#include "loop/child.h"
#include "loop/deadline.h"
#include "loop/later.h"
#include "loop/stream.h"

enum {
    ANSWER_MAX = 2 << 20, /* output, each byte escaped */
    LINE_BYTES_MAX = 4096,
    MAKINGS_MAX = 4,            /* at once */
    WAIT_MS = 5 * 60 * 1000,    /* for its turn */
    MAKING_MS = 30 * 60 * 1000, /* its own steps have limits; another process may be waited for */
    SYNC_MS = 10000,            /* for the disk, at our end */
};

struct making {
    struct making  *next;
    struct layers  *layers;
    json_t         *request; /* NULL: it has begun */
    char            key[LAYER_KEY_SIZE];
    struct child    child;
    struct stream  *answer_stream, *lines_stream;
    struct buf      answer;
    struct deadline deadline;
    struct later    later;
    struct err      err; /* it could not begin */
    bool            exited, answer_ended, lines_ended, timed_out;
    bool            abandoned; /* nobody joins it any more */
    bool            told; /* what it does now nobody waits for, but it should come to its end */
};

struct layer_request {
    struct place          place; /* first: it is found by it. Without an owner: not in line */
    struct layer_request *next;
    struct layers        *layers;
    struct making        *making; /* NULL: its result is there, or it has an error */
    struct deadline       wait;   /* for its turn */
    bool                  told_wait;
    struct layer_result   result;
    int64_t               started_ms;
    struct later          later;
    void (*progress)(void *owner, const char *line);
    void (*done)(void *owner, const struct layer_result *r);
    void *owner;
};

struct layers {
    struct layers_spec    spec;
    char                  installer[16], identity[SOURCES_IDENTITY_SIZE];
    struct making        *makings;
    struct layer_request *requests;
    struct turns          turns;
    struct later          later;
};

/* ---- requests ---- */

static void request_free(struct layer_request *r)
{
    struct layer_request **at = &r->layers->requests;

    while (*at != r)
        at = &(*at)->next;
    *at = r->next;
    if (r->place.owner)
        turns_drop(&r->layers->turns, &r->place);
    deadline_done(&r->wait);
    later_done(&r->later);
    free(r);
}

/* Its result is there. */
static void request_step(void *owner)
{
    struct layer_request *r = owner;

    r->result.ms = clock_ms() - r->started_ms;
    r->done(r->owner, &r->result);
    request_free(r);
}

static bool is_awaited(const struct making *m)
{
    for (const struct layer_request *r = m->layers->requests; r; r = r->next)
        if (r->making == m)
            return true;
    return false;
}

/* It ends without a child's help. */
static void end_unmade(struct making *m)
{
    m->exited = m->answer_ended = m->lines_ended = true;
    later_ask(&m->later);
}

static void abandon(struct making *m)
{
    m->abandoned = true;
    if (m->request)
        end_unmade(m);
    else
        child_kill(&m->child);
}

static void leave_making(struct layer_request *r)
{
    struct making *m = r->making;

    r->making = NULL;
    if (m && !m->told && !is_awaited(m))
        abandon(m);
}

void layer_request_cancel(struct layer_request *r)
{
    if (r->result.hold.fd >= 0)
        layer_release(&r->result.hold);
    leave_making(r);
    request_free(r);
}

/* ---- a making: its end ---- */

static void making_free(struct making *m)
{
    struct making **at = &m->layers->makings;

    while (*at != m)
        at = &(*at)->next;
    *at = m->next;
    json_decref(m->request);
    child_done(&m->child);
    stream_free(m->answer_stream);
    stream_free(m->lines_stream);
    buf_done(&m->answer);
    deadline_done(&m->deadline);
    later_done(&m->later);
    free(m);
}

static void read_error(const struct making *m, const json_t *answer, struct err *e)
{
    const char *sentence = json_string_value(json_object_get(answer, "error"));
    json_int_t  kind = json_integer_value(json_object_get(answer, "kind"));

    if (m->err.kind)
        *e = m->err;
    else if (m->timed_out)
        err_set(e, ERR_TIMEOUT, "installing the dependencies took more than %d minutes",
                MAKING_MS / 60000);
    else if (!answer)
        err_set(e, ERR_INTERNAL, "the installer's process ended without an answer");
    else if (sentence)
        err_set(e, kind > ERR_NONE && kind <= ERR_INTERNAL ? (enum err_kind)kind : ERR_INTERNAL,
                "%s", sentence);
}

static void settle(struct layer_request *r, const struct err *failed, const json_t *answer)
{
    struct layer_result *result = &r->result;

    result->err = *failed;
    if (!failed->kind && layer_find(r->making->key, &result->hold, 0, &result->err) == 0)
        err_set(&result->err, ERR_UNAVAILABLE,
                "the layer was removed as soon as it was made: is the store full?");
    result->was_there = json_is_true(json_object_get(answer, "wasThere"));
    result->output = json_string_value(json_object_get(answer, "output"));
    if (!result->output)
        result->output = "";
    r->making = NULL;
    request_step(r);
}

/* The request that waits longest, as `done` may cancel others. */
static struct layer_request *first_waiting(const struct making *m)
{
    struct layer_request *found = NULL;

    for (struct layer_request *r = m->layers->requests; r; r = r->next)
        if (r->making == m)
            found = r;
    return found;
}

static void tell_answer(struct making *m)
{
    struct err            failed = {0};
    struct layer_request *r;
    autojson json_t      *answer = NULL;
    const char           *note;

    m->told = m->abandoned = true; /* who comes now looks for itself */
    later_ask(&m->layers->later);
    answer = json_parse((const char *)m->answer.data, m->answer.size, NULL);
    read_error(m, answer, &failed);
    note = json_string_value(json_object_get(answer, "note"));
    if (note && *note && m->layers->spec.note)
        m->layers->spec.note(note);
    while ((r = first_waiting(m)))
        settle(r, &failed, answer);
}

static void making_step(void *owner)
{
    struct making *m = owner;

    if (!m->answer_ended || !m->lines_ended)
        return;
    if (!m->told)
        tell_answer(m);
    if (m->exited)
        making_free(m);
}

/* ---- a making: facts ---- */

static void on_exited(void *owner, int status)
{
    struct making *m = owner;

    (void)status; /* the answer tells */
    m->exited = true;
    later_ask(&m->later);
}

static void on_answer(void *owner, struct buf *in, bool ended)
{
    struct making *m = owner;

    if (buf_add(&m->answer, in->data, in->size) < 0)
        buf_drop(&m->answer, m->answer.size); /* what is too long is no answer */
    buf_drop(in, in->size);
    m->answer_ended = ended;
    later_ask(&m->later);
}

static void tell_line(struct making *m, const char *line)
{
    struct layer_request *next;

    for (struct layer_request *r = m->layers->requests; r; r = next) {
        next = r->next;
        if (r->making == m && r->progress)
            r->progress(r->owner, line);
    }
}

static void on_lines(void *owner, struct buf *in, bool ended)
{
    struct making *m = owner;

    while (in->size > 0) {
        char           line[LINE_BYTES_MAX + 1];
        const uint8_t *end = memchr(in->data, '\n', in->size);
        size_t         size = end ? (size_t)(end - in->data) : in->size;
        if (!end && !ended && in->size < LINE_BYTES_MAX)
            break;
        snprintf(line, sizeof line, "%.*s", (int)size, (const char *)in->data);
        buf_drop(in, size + (end ? 1 : 0));
        if (*line)
            tell_line(m, line);
    }
    m->lines_ended = ended;
    later_ask(&m->later);
}

static void on_late(void *owner)
{
    struct making *m = owner;

    m->timed_out = true;
    child_kill(&m->child);
}

static const struct stream_ops answer_ops = {.input = on_answer};
static const struct stream_ops lines_ops = {.input = on_lines};

/* ---- a making: its beginning ---- */

/* In memory: a pipe would have to be waited for. */
static int request_fd(const json_t *request, struct err *e)
{
    autofree char *text = json_dumps(request, JSON_COMPACT);
    autofd int     fd = memfd_create("jerboa-layer", MFD_CLOEXEC);

    if (!text || fd < 0 || fd_write_all(fd, text, strlen(text)) < 0 || lseek(fd, 0, SEEK_SET) < 0)
        return err_sys(e, "memory for a request");
    return take_fd(&fd);
}

static json_t *describe(const struct layers *l, const char *key, const struct layer_set *set,
                        const struct layers_node *node)
{
    json_t *deps = json_object();

    for (size_t i = 0; i < set->n; i++)
        if (json_object_set_new(deps, set->deps[i].name, json_string(set->deps[i].range)) < 0) {
            json_decref(deps);
            return NULL; /* it is no UTF-8 */
        }
    return json_pack(
        "{s:s, s:o, s:s, s:s, s:s, s:s, s:s, s:s, s:I, s:b, s:b}", "version", version_own,
        "dependencies", deps, "key", key, "installer", l->installer, "identity", set->installer,
        "nodeVersion", node->version, "engine", node->engine, "runtimeDir", node->dir, "maxAgeMs",
        (json_int_t)l->spec.fresh_ms, "strict", l->spec.strict, "remote", l->spec.remote);
}

static int spawn(struct making *m, const json_t *request, struct err *e)
{
    autofree char     *program = program_find("jerboa-layer", e);
    autofd int         in = program ? request_fd(request, e) : -1;
    autofd int         out_read = -1, out_write = -1, err_read = -1, err_write = -1;
    int                ends[2];
    const char *const  argv[] = {"jerboa-layer", NULL};
    struct event_base *base = m->layers->spec.base;

    if (in < 0)
        return -1;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_sys(e, "pipe");
    out_read = ends[0], out_write = ends[1];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_sys(e, "pipe");
    err_read = ends[0], err_write = ends[1];
    struct child_fd fds[] = {{in, 0}, {out_write, 1}, {err_write, 2}, {-1, -1}};
    TRY(child_start(&m->child, base, program, argv, (const char *const *)environ, fds, on_exited, m,
                    e));
    m->answer_stream = stream_new(base, take_fd(&out_read), -1, ANSWER_MAX, 0, &answer_ops, m);
    m->lines_stream = stream_new(base, take_fd(&err_read), -1, LINE_BYTES_MAX, 0, &lines_ops, m);
    return 0;
}

static void begin(struct making *m)
{
    autojson json_t *request = m->request;

    m->request = NULL;
    for (struct layer_request *r = m->layers->requests; r; r = r->next)
        if (r->making == m)
            deadline_clear(&r->wait);
    deadline_set(&m->deadline, MAKING_MS);
    if (spawn(m, request, &m->err) < 0)
        end_unmade(m);
}

static struct making *making_new(struct layers *l, const char *key, json_t *request_take)
{
    struct making *m = calloc(1, sizeof *m);

    if (!m)
        abort();
    m->layers = l;
    m->next = l->makings;
    l->makings = m;
    m->request = request_take;
    str_copy(m->key, sizeof m->key, key);
    buf_init(&m->answer, ANSWER_MAX);
    later_init(&m->later, l->spec.base, making_step, m);
    deadline_init(&m->deadline, l->spec.base, on_late, m);
    return m;
}

static struct making *making_of(struct layers *l, const char *key)
{
    for (struct making *m = l->makings; m; m = m->next)
        if (!m->abandoned && strcmp(m->key, key) == 0)
            return m;
    return NULL;
}

/* ---- whose turn it is ---- */

static size_t count_running(const struct layers *l)
{
    size_t n = 0;

    for (const struct making *m = l->makings; m; m = m->next)
        n += !m->request && !m->told;
    return n;
}

/* Room may have come. Who shares a making that has begun by another's turn takes none. */
static void layers_step(void *owner)
{
    struct layers        *l = owner;
    struct layer_request *r, *next;

    while (count_running(l) < MAKINGS_MAX && (r = (struct layer_request *)turns_take(&l->turns)))
        if (r->making && r->making->request)
            begin(r->making);
    for (r = l->requests; r; r = next) {
        next = r->next;
        if (!r->making || !r->making->request || r->told_wait)
            continue;
        r->told_wait = true;
        if (r->progress)
            r->progress(r->owner, "waiting: other dependencies are being installed");
    }
}

static void on_waited(void *owner)
{
    struct layer_request *r = owner;

    err_set(&r->result.err, ERR_LIMIT,
            "others are being installed, and their turn did not come within %d minutes: try again "
            "later",
            WAIT_MS / 60000);
    leave_making(r);
    later_ask(&r->later);
}

static void stand_in_line(struct layer_request *r, const char *whose)
{
    turns_add(&r->layers->turns, &r->place, whose, r);
    deadline_set(&r->wait, WAIT_MS);
    later_ask(&r->layers->later);
}

/* ---- the whole ---- */

static int look_or_make(struct layer_request *r, const struct layer_set *set,
                        const struct layers_node *node, const char *whose, struct err *e)
{
    struct layers *l = r->layers;
    char           key[LAYER_KEY_SIZE];
    int            found;

    if (set->n == 0)
        return err_set(e, ERR_INVALID, "there is no dependency to install");
    TRY(deps_check(set->deps, set->n, e));
    TRY(layer_key(set, key, e));
    found = layer_find(key, &r->result.hold, l->spec.fresh_ms, e);
    if (found < 0)
        return -1;
    if (found == 1) {
        r->result.was_there = true;
        r->result.output = "the dependencies had been installed before";
        return 0;
    }
    r->making = making_of(l, key);
    if (!r->making) {
        json_t *request = describe(l, key, set, node);
        if (!request)
            return err_set(e, ERR_INVALID, "a dependency, or a path of Node, is not UTF-8");
        r->making = making_new(l, key, request);
    }
    if (r->making->request)
        stand_in_line(r, whose);
    return 0;
}

/* What was built in an image is for this image: others have other libraries. */
static char *identity_of(const struct layers *l, const struct layers_node *node)
{
    return strcmp(node->engine, "native") == 0
               ? str_dup(l->identity)
               : str_format("%s %s %s", l->identity, node->engine, node->dir);
}

struct layer_request *layers_ensure(struct layers *l, const struct layer_dep *deps, size_t n,
                                    const struct layers_node *node, const char *whose,
                                    void (*progress)(void *owner, const char *line),
                                    void (*done)(void *owner, const struct layer_result *r),
                                    void *owner)
{
    struct layer_request *r = calloc(1, sizeof *r);
    autofree char        *identity = identity_of(l, node);
    struct layer_set      set = {deps, n, node->version, identity};

    if (!r)
        abort();
    *r = (struct layer_request){.next = l->requests,
                                .layers = l,
                                .result = {.hold.fd = -1, .output = ""},
                                .started_ms = clock_ms(),
                                .progress = progress,
                                .done = done,
                                .owner = owner};
    l->requests = r;
    later_init(&r->later, l->spec.base, request_step, r);
    deadline_init(&r->wait, l->spec.base, on_waited, r);
    look_or_make(r, &set, node, whose, &r->result.err);
    if (!r->making)
        later_ask(&r->later);
    return r;
}

struct layers *layers_new(const struct layers_spec *spec, struct err *e)
{
    const struct installer *installer = installer_find(spec->installer, e);
    struct npm_config      *config = installer ? npm_config_load(NPM_CONFIG_USER, e) : NULL;
    struct layers          *l;

    if (!config)
        return NULL;
    l = calloc(1, sizeof *l);
    if (!l)
        abort();
    l->spec = *spec;
    str_copy(l->installer, sizeof l->installer, installer->name);
    sources_identity(config, installer->name, l->identity);
    npm_config_free(config);
    turns_init(&l->turns);
    later_init(&l->later, spec->base, layers_step, l);
    return l;
}

/* What the disk does not take in time goes on without us, and is ended with us: then the layer has
 * still the mark of this boot, and after the next one it is made again. */
static void await_sync(struct making *m, int64_t until_ms)
{
    int64_t left = until_ms - clock_ms();

    if (!child_wait(&m->child, left > 0 ? (int)left : 0) && m->layers->spec.note)
        m->layers->spec.note(
            "the disk is slow to take a new layer of dependencies: it counts until "
            "this machine starts again");
}

void layers_free(struct layers *l)
{
    int64_t until_ms = clock_ms() + SYNC_MS;

    while (l->requests)
        layer_request_cancel(l->requests);
    while (l->makings) {
        if (l->makings->told)
            await_sync(l->makings, until_ms);
        else
            child_end(&l->makings->child);
        making_free(l->makings);
    }
    later_done(&l->later);
    free(l);
}
