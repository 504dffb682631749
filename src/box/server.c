/* Theory of operation. Two objects: the server, which lives as long as its process and belongs to
 * its box (box_data has the list), and its start, which a caller waits for. The start goes through
 * its states when what it waits for has happened; when it is over it lets go of the server. */
#include "box/server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/str.h"
#include "box/box_trail.h"
#include "engine/layout.h"
#include "loop/later.h"
#include "sandbox/download.h"
#include "sandbox/port.h"

enum { LOG_BYTES_MAX = 16 << 20 }; /* of one that died: its end tells why */

struct server {
    struct server       *next;
    struct servers      *all;
    struct run          *run;
    struct run_spec      spec;
    struct run_file     *files; /* copies: it outlives its start */
    size_t               n_files;
    const char          *argv[4];
    char                *command;
    uint16_t             port;
    char                 log[SERVER_LOG_MAX];
    struct files_mark   *mark;     /* bounds what it adds to files/; or NULL */
    struct server_start *start;    /* who waits for it, or NULL */
    struct server_start *replacer; /* who waits for its end, or NULL */
    struct trail        *trail;    /* that is told of its end, also when the box is gone */
    struct trail_subject subject;
};

struct servers { /* of one box */
    struct box    *box;
    struct server *first;
};

enum start_state { START_REPLACE, START_RUN, START_WAIT, START_LOG, START_DONE };

struct server_start {
    struct box        *box;
    struct server_spec spec;
    void (*done)(void *owner, const struct server_result *r);
    void                *owner;
    enum start_state     state;
    bool                 waiting, cancelled;
    struct server       *old, *server;
    struct port_wait    *wait;
    struct later         later;
    struct server_result result;
};

/* ---- servers of a box ---- */

static void server_free(struct server *s)
{
    struct server **at = s->all ? &s->all->first : NULL;

    while (at && *at != s)
        at = &(*at)->next;
    if (at)
        *at = s->next;
    for (size_t i = 0; i < s->n_files; i++) {
        free((void *)s->files[i].path);
        free((void *)s->files[i].bytes);
    }
    if (s->mark)
        files_mark_free(s->mark);
    free(s->files);
    free(s->command);
    free(s);
}

/* The box is gone; those whose end was not told yet free themselves. */
static void servers_free(void *data)
{
    struct servers *all = data;

    for (struct server *s = all->first; s; s = s->next)
        s->all = NULL;
    free(all);
}

static struct servers *servers_of(struct box *b)
{
    struct servers *all = box_data(b);

    if (!all) {
        all = calloc(1, sizeof *all);
        if (!all)
            abort();
        all->box = b;
        box_set_data(b, all, servers_free);
    }
    return all;
}

static struct server *find(const struct servers *all, uint16_t port)
{
    for (struct server *s = all->first; s; s = s->next)
        if (s->port == port)
            return s;
    return NULL;
}

static bool log_is_used(const struct servers *all, const char *log)
{
    for (const struct server *s = all->first; s; s = s->next)
        if (strcmp(s->log, log) == 0)
            return true;
    return false;
}

/* ---- the process ---- */

static void on_output(void *owner, uint8_t stream, const uint8_t *bytes, size_t size)
{
    struct server *s = owner;

    (void)bytes; /* only the shell's own words come here: what the script prints is in its log */
    if (run_process(s->run))
        process_consumed(run_process(s->run), stream, size);
}

static void on_running(void *owner)
{
    (void)owner;
}

static void on_run_done(void *owner, const struct run_result *r)
{
    struct server *s = owner;

    telling_run(s->trail, &s->subject, &(struct telling_program){.kind = "server"}, r);
    if (s->start) {
        s->start->result.run = *r;
        s->start->result.died = true;
        s->start->server = NULL;
        s->start->waiting = false;
        later_ask(&s->start->later);
    }
    if (s->replacer) {
        s->replacer->old = NULL;
        s->replacer->waiting = false;
        later_ask(&s->replacer->later);
    }
    server_free(s);
}

static const struct run_ops run_ops = {on_output, on_running, on_run_done};

static void on_over_quota(void *owner)
{
    struct server *s = owner;

    if (s->all)
        box_note(s->all->box,
                 "the server on port %u of %s is ended: files/ grew by more than a run may add, or "
                 "past what can be counted, while it lived, by whomever",
                 s->port, box_id(s->all->box));
    run_end(s->run, VERDICT_DISK);
}

static void on_marked(void *owner, const struct files_row *rows, size_t n, bool cut)
{
    (void)owner, (void)rows, (void)n, (void)cut; /* it is never ended: nobody asks what changed */
}

static const struct files_mark_ops mark_ops = {on_over_quota, on_marked};

static void copy_files(struct server *s, const struct server_spec *spec)
{
    s->n_files = spec->n_files;
    s->files = calloc(spec->n_files + 1, sizeof *s->files);
    if (!s->files)
        abort();
    for (size_t i = 0; i < spec->n_files; i++)
        s->files[i] = (struct run_file){
            str_dup(spec->files[i].path),
            (uint8_t *)str_ndup((const char *)spec->files[i].bytes, spec->files[i].size),
            spec->files[i].size};
}

/* The log is the shell's business: so it can be read inside like any file, and what is printed does
 * not pass through us. */
static struct server *server_new(struct server_start *st)
{
    struct servers *all = servers_of(st->box);
    struct server  *s = calloc(1, sizeof *s);

    if (!s)
        abort();
    s->all = all;
    s->start = st;
    s->port = st->spec.port;
    s->trail = box_trail(st->box);
    s->subject = box_subject(st->box);
    snprintf(s->log, sizeof s->log, "output.log");
    if (log_is_used(all, s->log))
        snprintf(s->log, sizeof s->log, "output-%u.log", s->port);
    s->command = str_format("exec %s %s >/workspace/%s 2>&1", layout_node, st->spec.script, s->log);
    s->argv[0] = "/bin/sh", s->argv[1] = "-c", s->argv[2] = s->command;
    copy_files(s, &st->spec);
    s->spec = (struct run_spec){.files = s->files,
                                .n_files = s->n_files,
                                .argv = s->argv,
                                .env = (const char **)box_env(st->box),
                                .cwd = layout_workspace};
    s->next = all->first;
    all->first = s;
    s->run = run_start(box_sandbox(st->box), &s->spec, &run_ops, s);
    if (st->spec.watch && st->spec.quota_bytes > 0)
        s->mark = files_mark(st->spec.watch, st->spec.quota_bytes, &mark_ops, s);
    return s;
}

/* ---- the start: what each state begins ---- */

static void begin_replace(struct server_start *st)
{
    st->old = find(servers_of(st->box), st->spec.port);
    if (!st->old)
        return;
    st->old->replacer = st;
    st->waiting = true;
    run_end(st->old->run, VERDICT_CANCELLED);
}

static void on_answer(void *owner, bool answered)
{
    struct server_start *st = owner;

    st->wait = NULL;
    st->result.answered = answered;
    st->waiting = false;
    later_ask(&st->later);
}

static void begin_run(struct server_start *st)
{
    if (box_publish(st->box, st->spec.port, &st->result.host_port, &st->result.err) < 0) {
        st->result.unpublished = true;
        return;
    }
    st->server = server_new(st);
    snprintf(st->result.log, sizeof st->result.log, "%s", st->server->log);
    st->wait =
        port_wait_start(box_sandbox(st->box), st->spec.port, st->spec.answer_ms, on_answer, st);
    st->waiting = true;
}

static void on_log(void *owner, const struct err *e, const uint8_t *bytes, size_t size,
                   uint64_t whole)
{
    struct server_start *st = owner;

    (void)whole;
    if (!e->kind) { /* a log that cannot be read is one that says nothing */
        st->result.output = keep_new(KEEP_SHOWN, KEEP_KEPT, box_scratch_dir(st->box));
        keep_add(st->result.output, bytes, size);
    }
    st->waiting = false;
    later_ask(&st->later);
}

static void begin_log(struct server_start *st)
{
    if (!st->result.died || st->result.run.err.kind || !box_sandbox(st->box))
        return;
    download_start(box_sandbox(st->box), st->result.log, LOG_BYTES_MAX, on_log, st);
    st->waiting = true;
}

static void finish(struct server_start *st)
{
    if (st->server)
        st->server->start = NULL;
    if (st->old)
        st->old->replacer = NULL;
    st->done(st->owner, &st->result);
    later_done(&st->later);
    keep_free(st->result.output);
    free(st);
}

static void step(void *owner)
{
    struct server_start *st = owner;

    while (!st->waiting) {
        if (st->wait) /* it died first */
            port_wait_cancel(st->wait);
        st->wait = NULL;
        if (st->result.err.kind || st->cancelled)
            st->state = START_DONE;
        switch (st->state) {
        case START_REPLACE:
            st->state = START_RUN;
            begin_replace(st);
            break;
        case START_RUN:
            st->state = START_WAIT;
            begin_run(st);
            break;
        case START_WAIT:
            st->state = START_LOG;
            begin_log(st);
            break;
        case START_LOG:
        case START_DONE:
            finish(st);
            return;
        }
    }
}

/* ---- beginning and end ---- */

struct server_start *server_start(struct box *b, const struct server_spec *spec,
                                  void (*done)(void *owner, const struct server_result *r),
                                  void *owner)
{
    struct server_start *st = calloc(1, sizeof *st);

    if (!st)
        abort();
    *st = (struct server_start){.box = b, .spec = *spec, .done = done, .owner = owner};
    later_init(&st->later, box_base(b), step, st);
    later_ask(&st->later);
    return st;
}

void server_start_cancel(struct server_start *st)
{
    if (st->cancelled)
        return;
    st->cancelled = true;
    err_set(&st->result.err, ERR_CANCELLED, "cancelled");
    if (st->server)
        run_end(st->server->run, VERDICT_CANCELLED); /* its end ends the waiting */
    later_ask(&st->later);
}

const char *server_log(struct box *b, size_t i)
{
    const struct servers *all = box_data(b);
    const struct server  *s = all ? all->first : NULL;

    while (s && i-- > 0)
        s = s->next;
    return s ? s->log : NULL;
}
