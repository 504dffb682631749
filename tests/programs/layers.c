/* layers - one sandbox, into which layers are attached between commands, for the tests of both.
 *
 *   layers RUNTIME_DIR DISK_BYTES (attach DIR | sh COMMAND | meanwhile COMMAND | wait)…
 *
 * Prints a line of JSON for each: {"attached", "error", "us"}, {"verdict", "stdout"}; `meanwhile`
 * prints none and goes on at once, `wait` prints one and goes on at a line of input. It lies beside
 * jerboa in the build directory, so that the jail and init are found. */
#include <event2/event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/json.h"
#include "engine/native.h"
#include "loop/later.h"
#include "sandbox/attach.h"
#include "sandbox/run.h"

enum { TEXT_MAX = 1 << 16, TIMEOUT_MS = 60000 };

struct story {
    struct event_base *base;
    struct sandbox    *sandbox;
    struct later       later;
    struct run        *run;
    struct command {
        struct run_spec spec;
        const char     *argv[4];
    } command, meanwhile;
    char          **words; /* what is left to do */
    bool            busy, stopped;
    struct buf      text;
    struct timespec begun;
    int             status;
};

static void tell(json_t *line)
{
    json_dumpf(line, stdout, JSON_COMPACT);
    putchar('\n');
    fflush(stdout);
    json_decref(line);
}

static void go_on(struct story *s)
{
    s->busy = false;
    later_ask(&s->later);
}

static void on_attached(void *owner, const struct err *e)
{
    struct story   *s = owner;
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    tell(json_pack("{s:b, s:s, s:I}", "attached", !e->kind, "error", e->msg, "us",
                   (json_int_t)((now.tv_sec - s->begun.tv_sec) * 1000000 +
                                (now.tv_nsec - s->begun.tv_nsec) / 1000)));
    go_on(s);
}

static void on_output(void *owner, uint8_t stream, const uint8_t *bytes, size_t size)
{
    struct story *s = owner;
    size_t        room = TEXT_MAX - 1 - s->text.size;

    buf_add(&s->text, bytes, size < room ? size : room);
    process_consumed(run_process(s->run), stream, size);
}

static void on_stdin_room(void *owner)
{
    (void)owner;
}

static void on_run_done(void *owner, const struct run_result *r)
{
    struct story *s = owner;

    tell(json_pack("{s:s, s:o}", "verdict", verdict_name(r->verdict), "stdout",
                   json_text((const char *)s->text.data, s->text.size)));
    buf_drop(&s->text, s->text.size);
    go_on(s);
}

static void on_nobody_done(void *owner, const struct run_result *r)
{
    (void)owner, (void)r;
}

static void on_nobody_output(void *owner, uint8_t stream, const uint8_t *bytes, size_t size)
{
    (void)owner, (void)stream, (void)bytes, (void)size; /* less than a window */
}

static const struct run_ops run_ops = {on_output, on_stdin_room, on_run_done};
static const struct run_ops meanwhile_ops = {on_nobody_output, on_stdin_room, on_nobody_done};

static struct run *run_command(struct story *s, struct command *c, const char *command,
                               const struct run_ops *ops)
{
    c->argv[0] = "/bin/sh", c->argv[1] = "-c", c->argv[2] = command;
    c->spec = (struct run_spec){.argv = c->argv,
                                .env = (const char **)native.environment(&(struct engine_spec){0}),
                                .cwd = "/workspace",
                                .timeout_ms = TIMEOUT_MS};
    return run_start(s->sandbox, &c->spec, ops, s);
}

static void wait_for_line(struct story *s)
{
    char line[8];

    tell(json_pack("{s:s}", "waiting", "for a line"));
    if (!fgets(line, sizeof line, stdin))
        s->status = 1;
    go_on(s);
}

static void step(void *owner)
{
    struct story *s = owner;

    if (s->busy || s->stopped)
        return;
    s->busy = true;
    clock_gettime(CLOCK_MONOTONIC, &s->begun);
    if (!s->words[0]) {
        s->stopped = true;
        sandbox_stop(s->sandbox);
    } else if (strcmp(s->words[0], "wait") == 0) {
        s->words++;
        wait_for_line(s);
    } else if (strcmp(s->words[0], "attach") == 0) {
        s->words += 2;
        sandbox_attach(s->sandbox, s->words[-1], on_attached, s);
    } else if (strcmp(s->words[0], "meanwhile") == 0) {
        s->words += 2;
        run_command(s, &s->meanwhile, s->words[-1], &meanwhile_ops);
        go_on(s);
    } else {
        s->words += 2;
        s->run = run_command(s, &s->command, s->words[-1], &run_ops);
    }
}

static void on_sandbox_done(void *owner, const struct err *e)
{
    struct story *s = owner;

    if (e->kind)
        fprintf(stderr, "layers: %s\n", e->msg);
    s->status |= e->kind != ERR_NONE;
    event_base_loopbreak(s->base);
}

static const struct sandbox_ops sandbox_ops = {on_sandbox_done, NULL};

int main(int argc, char **argv)
{
    struct story       s = {.base = event_base_new(), .words = argv + 3};
    struct engine_spec spec = {.memory_bytes = ENGINE_MEMORY_BYTES,
                               .disk_bytes = argc > 2 ? atoll(argv[2]) : 0,
                               .cpus_milli = ENGINE_CPUS_MILLI,
                               .pids = ENGINE_PIDS,
                               .fds = ENGINE_FDS,
                               .runtime_dir = argv[1]};
    struct err         e = {0};
    autojson json_t   *plan = argc > 2 ? native.plan(&spec, &e) : NULL;

    signal(SIGPIPE, SIG_IGN);
    buf_init(&s.text, TEXT_MAX);
    s.sandbox = plan ? sandbox_start(s.base, &native, plan, NULL, &sandbox_ops, &s, &e) : NULL;
    if (!s.sandbox) {
        fprintf(stderr, "layers: %s\n", argc > 2 ? e.msg : "see its head");
        return 2;
    }
    later_init(&s.later, s.base, step, &s);
    later_ask(&s.later);
    event_base_dispatch(s.base);
    later_done(&s.later);
    buf_done(&s.text);
    event_base_free(s.base);
    return s.status;
}
