#include "tools/outputs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/base64.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/random.h"
#include "base/str.h"
#include "base/utf8.h"
#include "tools/errors.h"
#include "tools/tools.h"

struct output {
    TAILQ_ENTRY(output) entry;
    char         uri[OUTPUT_URI_MAX];
    char        *owner;
    struct keep *keep;
};

struct outputs {
    TAILQ_HEAD(output_list, output) list; /* oldest first */
    size_t   n;
    uint64_t bytes;
};

static void drop(struct outputs *o, struct output *output)
{
    TAILQ_REMOVE(&o->list, output, entry);
    o->n--;
    o->bytes -= keep_size(output->keep);
    keep_free(output->keep);
    free(output->owner);
    free(output);
}

static void drop_oldest(struct outputs *o)
{
    drop(o, TAILQ_FIRST(&o->list));
}

struct outputs *outputs_new(void)
{
    struct outputs *o = calloc(1, sizeof *o);

    if (!o)
        abort();
    TAILQ_INIT(&o->list);
    return o;
}

void outputs_free(struct outputs *o)
{
    while (o->n > 0)
        drop_oldest(o);
    free(o);
}

void outputs_add(struct outputs *o, const char *owner, struct keep *k, char ret_uri[OUTPUT_URI_MAX])
{
    struct output *new = calloc(1, sizeof *new);
    char id[33];

    if (!new)
        abort();
    random_id(id);
    snprintf(new->uri, sizeof new->uri, "output://%s", id);
    new->owner = str_dup(owner);
    new->keep = keep_ref(k);
    TAILQ_INSERT_TAIL(&o->list, new, entry);
    o->n++;
    o->bytes += keep_size(k);
    while (o->n > OUTPUTS_MAX || (o->n > 1 && o->bytes > OUTPUTS_BYTES_MAX))
        drop_oldest(o);
    memcpy(ret_uri, new->uri, OUTPUT_URI_MAX);
}

void outputs_drop_owner(struct outputs *o, const char *owner)
{
    struct output *output = TAILQ_FIRST(&o->list), *next;

    for (; output && *owner; output = next) {
        next = TAILQ_NEXT(output, entry);
        if (strcmp(output->owner, owner) == 0)
            drop(o, output);
    }
}

static struct output *find(const struct outputs *o, const char *id, const char *owner)
{
    struct output *output;

    TAILQ_FOREACH (output, &o->list, entry)
        if (strcmp(output->uri + strlen("output://"), id) == 0)
            return !*output->owner || strcmp(output->owner, owner) == 0 ? output : NULL;
    return NULL;
}

/* How many bytes at `at` belong to a character that began before. They go with the part before it:
 * no character is cut in two, and it depends on nothing but the place. */
static size_t tail_of_character(const struct buf *b, size_t at)
{
    size_t n = 0;

    while (n < 3 && at + n < b->size && (b->data[at + n] & 0xc0) == 0x80)
        n++;
    return n;
}

static void answer_part(struct mcp_call *c, const uint8_t *bytes, size_t size)
{
    if (utf8_is_valid(bytes, size) && !memchr(bytes, '\0', size)) {
        autofree char *text = str_ndup((const char *)bytes, size);
        mcp_call_contents(c, "text/plain", text);
    } else {
        autofree char *blob = base64_encode(bytes, size);
        mcp_call_contents_blob(c, "application/octet-stream", blob);
    }
}

static void read_part(struct mcp_call *c, const struct output *output, uint64_t from)
{
    autobuf struct buf bytes;
    struct err         e = {0};
    size_t             begin, end;

    buf_init(&bytes, OUTPUTS_PART + 3);
    if (keep_read(output->keep, from, OUTPUTS_PART + 3, &bytes, &e) < 0) {
        errors_refuse(c, LOST_OUTPUT, e.msg);
        return;
    }
    begin = from > 0 ? tail_of_character(&bytes, 0) : 0;
    end = bytes.size <= OUTPUTS_PART ? bytes.size
                                     : OUTPUTS_PART + tail_of_character(&bytes, OUTPUTS_PART);
    answer_part(c, bytes.data + begin, end - begin);
    if (from + end < keep_size(output->keep))
        mcp_call_contents_meta(
            c, json_pack("{s:I, s:o}", "bytes", (json_int_t)keep_size(output->keep), "next",
                         json_sprintf("%s/%llu", output->uri,
                                      (unsigned long long)(from + OUTPUTS_PART))));
    mcp_call_done(c);
}

void outputs_read(struct mcp_call *c)
{
    const char    *place = mcp_call_variable(c, "from");
    struct output *output =
        find(tools_of(c)->outputs, mcp_call_variable(c, "id"), mcp_call_owner(c));
    int64_t from = 0;

    if (!output ||
        (place && str_parse_count(place, 0, (int64_t)keep_size(output->keep) - 1, &from, NULL) < 0))
        mcp_call_not_found(c);
    else
        read_part(c, output, (uint64_t)from);
}

void outputs_list(const struct outputs *o, const char *owner, struct mcp_call *c)
{
    const struct output *output;

    TAILQ_FOREACH (output, &o->list, entry)
        if (*output->owner && strcmp(output->owner, owner) == 0)
            mcp_call_listed(c, json_pack("{s:s, s:s, s:I}", "uri", output->uri, "name",
                                         "output of a run", "size",
                                         (json_int_t)keep_size(output->keep)));
}
