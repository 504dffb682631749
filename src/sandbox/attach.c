#include "sandbox/attach.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/fd.h"
#include "base/str.h"
#include "engine/layout.h"
#include "loop/later.h"
#include "pipe/message.h"
#include "sandbox/send_tree.h"

enum { PAYLOAD_MAX = 8192 }; /* of an ATTACH frame */

struct attach {
    struct sandbox *sandbox; /* NULL once it is lost */
    uint32_t        id;
    struct later    later;
    struct err      err;
    void (*done)(void *owner, const struct err *e);
    void *owner;
};

static void step(void *owner)
{
    struct attach *a = owner;

    a->done(a->owner, &a->err);
    if (a->sandbox)
        sandbox_close_channel(a->sandbox, a->id);
    later_done(&a->later);
    free(a);
}

static void on_frame(void *owner, const struct frame *f)
{
    struct attach *a = owner;

    if (f->type != FRAME_ATTACHED && f->type != FRAME_ERROR) { /* init has no business here */
        sandbox_fail(a->sandbox, ERR_INVALID, "the sandbox sent a frame that fits no layer");
        return;
    }
    if (f->type == FRAME_ERROR)
        message_take_error(f, &a->err);
    later_ask(&a->later);
}

static void on_lost(void *owner, const struct err *e)
{
    struct attach *a = owner;

    a->sandbox = NULL;
    a->err = *e;
    later_ask(&a->later);
}

static const struct channel_ops channel_ops = {on_frame, on_lost};

static void ask_jail(struct sandbox *s, const char                        *source,
                     void (*done)(void *owner, const struct err *e), void *owner)
{
    struct message_attach m = {source, layout_modules};
    struct attach        *a = calloc(1, sizeof *a);
    autobuf struct buf    b;

    if (!a)
        abort();
    *a = (struct attach){.sandbox = s, .done = done, .owner = owner};
    later_init(&a->later, sandbox_base(s), step, a);
    a->id = sandbox_open_channel(s, &channel_ops, a);
    buf_init(&b, PAYLOAD_MAX);
    if (message_pack_attach(&b, &m) == 0) {
        sandbox_send_jail(s, FRAME_ATTACH, a->id, b.data, b.size);
        return;
    }
    err_set(&a->err, ERR_INVALID, "the path of the layer is too long");
    later_ask(&a->later);
}

void sandbox_attach(struct sandbox *s, const char                        *layer_dir,
                    void (*done)(void *owner, const struct err *e), void *owner)
{
    autofree char   *source = str_format("%s/node_modules", layer_dir);
    struct send_tree tree = {source, layout_modules, -1, "the dependencies"};

    if (sandbox_has_groups(s))
        ask_jail(s, source, done, owner);
    else
        send_tree_start(s, &tree, done, owner);
}
