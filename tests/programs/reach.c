/* reach - one sandbox with one Node program in it, and commands for what reaches inside.
 *
 *   reach RUNTIME_DIR SCRIPT
 *
 * A command a line on stdin, an answer a line on stdout, JSON, with the command's number; the
 * program's outputs go to stderr. The end of stdin ends the sandbox, whose end ends reach.
 *
 *   N wait PORT MS            true or false: whether the port inside answers
 *   N give-up PORT            true: a wait was begun and cancelled
 *   N open PORT               the port of this machine that leads there
 *   N close NUMBER            null: that port is closed
 *   N read MAX PATH           {text, size, whole}, or {error}: kind and sentence
 *   N list ENTRIES DEPTH MS DIR   {rows: [path kind size], cut}, or {error}
 *   N cancel                  ms until the run was done: it is killed
 *   N stop                    true, when the sandbox is gone: its ports are still open objects
 *   N memory                  KiB resident of this process
 *
 * It lies beside jerboa in the build directory, so that the jail and init are found. */
#include <event2/event.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/json.h"
#include "engine/layout.h"
#include "engine/native.h"
#include "loop/stream.h"
#include "sandbox/download.h"
#include "sandbox/listing.h"
#include "sandbox/port.h"
#include "sandbox/run.h"

enum { PORTS = 16 };

static struct event_base *base;
static struct sandbox    *sandbox;
static struct run        *run;
static struct port       *ports[PORTS];
static long               stop_number, cancel_number;
static int64_t            cancelled_ms;
static bool               input_ended;

static void answer(long number, json_t *value)
{
    autojson json_t *line = json_pack("[I, o]", (json_int_t)number, value);
    autofree char   *text = line ? json_dumps(line, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;

    if (!text)
        abort();
    puts(text);
    fflush(stdout);
}

static json_t *error_json(const struct err *e)
{
    return json_pack("{s:[i, s]}", "error", (int)e->kind, e->msg);
}

/* ---- answers that come later: their owner is the command's number ---- */

static void on_waited(void *owner, bool answered)
{
    answer((long)owner, json_boolean(answered));
}

static void on_read(void *owner, const struct err *e, const uint8_t *bytes, size_t size,
                    uint64_t whole)
{
    if (e->kind)
        answer((long)owner, error_json(e));
    else
        answer((long)owner, json_pack("{s:s%, s:I, s:I}", "text", size ? (const char *)bytes : "",
                                      size < 100 ? size : 100, "size", (json_int_t)size, "whole",
                                      (json_int_t)whole));
}

static void on_listed(void *owner, const struct err *e, const struct listing_row *rows, size_t n,
                      bool cut)
{
    json_t *list = json_array();

    for (size_t i = 0; i < n; i++)
        json_array_append_new(list, json_pack("[s, i, I]", rows[i].path, (int)rows[i].kind,
                                              (json_int_t)rows[i].size));
    if (!e->kind) {
        answer((long)owner, json_pack("{s:o, s:b}", "rows", list, "cut", cut));
        return;
    }
    json_decref(list);
    answer((long)owner, error_json(e));
}

/* ---- commands ---- */

static void give_up(long number, uint16_t port)
{
    port_wait_cancel(port_wait_start(sandbox, port, 1000, on_waited, (void *)number));
    answer(number, json_true());
}

static void open_port(long number, uint16_t inside)
{
    struct err e = {0};

    for (size_t i = 0; i < PORTS; i++)
        if (!ports[i]) {
            ports[i] = port_open(sandbox, 0, inside, &e);
            answer(number, ports[i] ? json_integer(port_number(ports[i])) : error_json(&e));
            return;
        }
    abort();
}

static void close_port(long number, uint16_t which)
{
    for (size_t i = 0; i < PORTS; i++)
        if (ports[i] && port_number(ports[i]) == which) {
            port_close(ports[i]);
            ports[i] = NULL;
        }
    answer(number, json_null());
}

static json_t *resident_kib(void)
{
    long  pages = 0;
    FILE *f = fopen("/proc/self/statm", "re");

    if (!f || fscanf(f, "%*d %ld", &pages) != 1)
        abort();
    fclose(f);
    return json_integer(pages * (sysconf(_SC_PAGESIZE) / 1024));
}

static void cancel_run(long number)
{
    cancel_number = number;
    cancelled_ms = clock_ms();
    run_end(run, VERDICT_CANCELLED);
}

static void obey(const char *line)
{
    char  word[20] = "", path[5000] = "";
    long  number = 0, a = 0, b = 0, c = 0;
    void *owner;

    sscanf(line, "%ld %19s", &number, word);
    owner = (void *)number;
    if (strcmp(word, "wait") == 0 && sscanf(line, "%*d %*s %ld %ld", &a, &b) == 2)
        port_wait_start(sandbox, (uint16_t)a, b, on_waited, owner);
    else if (strcmp(word, "give-up") == 0 && sscanf(line, "%*d %*s %ld", &a) == 1)
        give_up(number, (uint16_t)a);
    else if (strcmp(word, "open") == 0 && sscanf(line, "%*d %*s %ld", &a) == 1)
        open_port(number, (uint16_t)a);
    else if (strcmp(word, "close") == 0 && sscanf(line, "%*d %*s %ld", &a) == 1)
        close_port(number, (uint16_t)a);
    else if (strcmp(word, "read") == 0 && sscanf(line, "%*d %*s %ld %4999[^\n]", &a, path) >= 1)
        download_start(sandbox, path, (size_t)a, on_read, owner);
    else if (strcmp(word, "list") == 0 &&
             sscanf(line, "%*d %*s %ld %ld %ld %4999[^\n]", &a, &b, &c, path) >= 3)
        listing_start(sandbox, path, &(struct listing_bounds){(uint32_t)a, (uint32_t)b, c},
                      on_listed, owner);
    else if (strcmp(word, "cancel") == 0 && run)
        cancel_run(number);
    else if (strcmp(word, "stop") == 0)
        stop_number = number, sandbox_stop(sandbox);
    else if (strcmp(word, "memory") == 0)
        answer(number, resident_kib());
    else
        abort();
}

static void end(void)
{
    for (size_t i = 0; i < PORTS; i++)
        port_close(ports[i]);
    memset(ports, 0, sizeof ports);
    event_base_loopbreak(base);
}

static void on_input(void *owner, struct buf *in, bool ended)
{
    uint8_t *newline;

    (void)owner;
    while (in->size > 0 && (newline = memchr(in->data, '\n', in->size))) {
        *newline = '\0';
        obey((const char *)in->data);
        buf_drop(in, (size_t)(newline - in->data) + 1);
    }
    input_ended |= ended;
    if (ended && sandbox)
        sandbox_stop(sandbox);
    else if (ended)
        end();
}

/* ---- the program and its sandbox ---- */

static void on_output(void *owner, uint8_t stream, const uint8_t *bytes, size_t size)
{
    (void)owner;
    (void)!write(2, bytes, size);
    process_consumed(run_process(run), stream, size);
}

static void on_stdin_room(void *owner)
{
    (void)owner;
}

static void on_run_done(void *owner, const struct run_result *r)
{
    (void)owner;
    fprintf(stderr, "reach: the run ended: %s %s\n", verdict_name(r->verdict), r->err.msg);
    run = NULL;
    if (cancel_number)
        answer(cancel_number, json_integer(clock_ms() - cancelled_ms));
}

static void on_sandbox_done(void *owner, const struct err *e)
{
    (void)owner;
    sandbox = NULL;
    if (e->kind)
        fprintf(stderr, "reach: %s\n", e->msg);
    if (stop_number)
        answer(stop_number, json_true());
    if (input_ended)
        end();
}

int main(int argc, char **argv)
{
    static const struct run_ops     run_ops = {on_output, on_stdin_room, on_run_done};
    static const struct sandbox_ops sandbox_ops = {.done = on_sandbox_done};
    static const struct stream_ops  stream_ops = {.input = on_input};
    struct err                      e = {0};

    if (argc != 3) {
        fprintf(stderr, "usage: reach RUNTIME_DIR SCRIPT\n");
        return 2;
    }
    struct engine_spec spec = {.memory_bytes = ENGINE_MEMORY_BYTES,
                               .disk_bytes = ENGINE_MEMORY_BYTES / 2,
                               .cpus_milli = ENGINE_CPUS_MILLI,
                               .pids = ENGINE_PIDS,
                               .fds = ENGINE_FDS,
                               .runtime_dir = argv[1]};
    const char        *program[] = {layout_node, "--input-type=module", "-e", argv[2], NULL};
    struct run_spec    run_spec = {.argv = program,
                                   .env = (const char **)native.environment(&(struct engine_spec){0}),
                                   .cwd = "/workspace",
                                   .timeout_ms = 120000};
    autojson json_t   *plan = native.plan(&spec, &e);

    signal(SIGPIPE, SIG_IGN);
    base = event_base_new();
    sandbox = plan ? sandbox_start(base, &native, plan, NULL, &sandbox_ops, NULL, &e) : NULL;
    if (!sandbox) {
        fprintf(stderr, "reach: %s\n", e.msg);
        return 1;
    }
    run = run_start(sandbox, &run_spec, &run_ops, NULL);
    struct stream *in = stream_new(base, stream_reopen(0, 0), -1, 8192, 0, &stream_ops, NULL);
    event_base_dispatch(base);
    stream_free(in);
    event_base_free(base);
    return 0;
}
