#include "box/record.h"

#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

enum { LINE_MAX_BYTES = 200 };

struct record {
    struct run              *run;
    struct keep             *kept[STREAM_COUNT]; /* [STREAM_IN] has none */
    const struct record_ops *ops;
    void                    *owner;
};

/* The last line in these bytes that is not empty; a line that comes in two pieces is shown in two:
 * it is a sign of life, not a transcript. */
static void tell_line(struct record *r, const uint8_t *bytes, size_t size)
{
    char   line[LINE_MAX_BYTES + 1];
    size_t begin, n;

    while (size > 0 && (bytes[size - 1] == '\n' || bytes[size - 1] == '\r'))
        size--;
    for (begin = size; begin > 0 && bytes[begin - 1] != '\n'; begin--)
        ;
    n = size - begin;
    if (n > LINE_MAX_BYTES)
        n = LINE_MAX_BYTES - utf8_cut_end(bytes + begin, LINE_MAX_BYTES);
    if (n == 0)
        return;
    memcpy(line, bytes + begin, n);
    line[n] = '\0';
    r->ops->line(r->owner, line);
}

static void on_output(void *owner, uint8_t stream, const uint8_t *bytes, size_t size)
{
    struct record *r = owner;

    if (!keep_add(r->kept[stream], bytes, size))
        run_end(r->run, VERDICT_OUTPUT);
    if (run_process(r->run))
        process_consumed(run_process(r->run), stream, size);
    if (r->ops->line)
        tell_line(r, bytes, size);
}

static void on_stdin_room(void *owner)
{
    (void)owner; /* its stdin is at its end */
}

static void on_done(void *owner, const struct run_result *result)
{
    struct record *r = owner;

    r->ops->done(r->owner, result, r->kept[STREAM_OUT], r->kept[STREAM_ERR]);
    free(r);
}

static void on_succeeded(void *owner)
{
    struct record *r = owner;

    if (r->ops->succeeded)
        r->ops->succeeded(r->owner, r->kept[STREAM_OUT], r->kept[STREAM_ERR]);
}

static const struct run_ops run_ops = {on_output, on_stdin_room, on_done, on_succeeded};

struct record *record_start(struct sandbox *s, const struct run_spec *spec, const char *dir,
                            const struct record_ops *ops, void *owner)
{
    struct record *r = calloc(1, sizeof *r);

    if (!r)
        abort();
    *r = (struct record){.ops = ops, .owner = owner};
    r->kept[STREAM_OUT] = keep_new(KEEP_SHOWN, KEEP_KEPT, dir);
    r->kept[STREAM_ERR] = keep_new(KEEP_SHOWN, KEEP_KEPT, dir);
    r->run = run_start(s, spec, &run_ops, r);
    return r;
}

void record_begin(struct record *r)
{
    run_begin(r->run);
}

void record_end(struct record *r, enum verdict why)
{
    run_end(r->run, why);
}
