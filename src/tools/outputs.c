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

static void drop_oldest(struct outputs *o)
{
    struct output *oldest = TAILQ_FIRST(&o->list);

    TAILQ_REMOVE(&o->list, oldest, entry);
    o->n--;
    o->bytes -= keep_size(oldest->keep);
    keep_free(oldest->keep);
    free(oldest->owner);
    free(oldest);
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

static struct output *find(const struct outputs *o, const char *uri, const char *owner)
{
    struct output *output;

    TAILQ_FOREACH (output, &o->list, entry)
        if (strcmp(output->uri, uri) == 0)
            return !*output->owner || strcmp(output->owner, owner) == 0 ? output : NULL;
    return NULL;
}

void outputs_read(struct mcp_call *c)
{
    struct output     *output = find(tools_of(c)->outputs, mcp_call_uri(c), mcp_call_owner(c));
    autobuf struct buf bytes;
    struct err         e = {0};

    buf_init(&bytes, SIZE_MAX);
    if (!output) {
        mcp_call_not_found(c);
        return;
    }
    if (keep_read(output->keep, 0, keep_size(output->keep), &bytes, &e) < 0) {
        errors_refuse(c, LOST_OUTPUT, e.msg);
        return;
    }
    if (utf8_is_valid(bytes.data, bytes.size) && !memchr(bytes.data, '\0', bytes.size)) {
        mcp_call_contents(c, "text/plain", buf_text(&bytes));
    } else {
        autofree char *blob = base64_encode(bytes.data, bytes.size);
        mcp_call_contents_blob(c, "application/octet-stream", blob);
    }
    mcp_call_done(c);
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
