/* box_view - what a call sees of its box, and what it gives it to keep. How a box lives is box.c's.
 */
#include "box/box.h"

#include <stdarg.h>

#include "base/fd.h"
#include "base/str.h"
#include "box/box_private.h"
#include "engine/native.h"
#include "store/container.h"

struct event_base *box_base(const struct box *b)
{
    return b->all->spec.base;
}

const char *box_id(const struct box *b)
{
    return b->id;
}

const char *box_owner(const struct box *b)
{
    return b->owner;
}

/* A daemon that does not answer, or cannot be asked, says nothing of its images; nor does who stops
 * a box while its image is pulled. */
bool box_lacks_runtime(const struct box *b)
{
    if (!b->err.kind)
        return false;
    if (*b->runtime.dir)
        return b->err.kind == ERR_NOT_FOUND;
    return b->engine == &native || (b->err.kind != ERR_UNAVAILABLE && b->err.kind != ERR_INTERNAL);
}

bool box_was_ready(const struct box *b)
{
    return b->ready;
}

bool box_is_usable(const struct box *b)
{
    return b->sandbox && sandbox_is_well(b->sandbox);
}

struct sandbox *box_sandbox(const struct box *b)
{
    return b->sandbox;
}

const json_t *box_walls(const struct box *b)
{
    return b->walls;
}

const char *box_files_dir(const struct box *b)
{
    return b->files_dir;
}

struct twin *box_twin(const struct box *b)
{
    return b->twin;
}

static int find_sibling(const struct box *b, struct runtime *ret, struct err *e)
{
    char image[32];

    TRY(container_sibling(&b->runtime, image, e));
    if (runtime_find(image, ret, e) < 0)
        return err_set(e, ERR_UNAVAILABLE,
                       "dependencies of this image need a Node.js outside; on the server's "
                       "machine: jerboa pull %s",
                       image);
    return 0;
}

int box_installing(const struct box *b, struct box_installing *ret, struct err *e)
{
    bool           outside = b->engine != &native && b->all->spec.native_works;
    struct runtime runtime = b->runtime;
    char           image[32];

    if (outside)
        TRY(find_sibling(b, &runtime, e));
    else if (b->engine != &native)
        TRY(container_sibling(&runtime, image, e)); /* it must tell its version here, too */
    str_copy(ret->dir, sizeof ret->dir, runtime.dir);
    ret->node =
        (struct layers_node){b->runtime.version, (outside ? &native : b->engine)->name, ret->dir};
    return 0;
}

const char *box_scratch_dir(const struct box *b)
{
    return b->all->spec.scratch_dir;
}

const char *const *box_env(const struct box *b)
{
    return b->engine == b->all->spec.of_node ? b->all->spec.env : b->all->spec.env_of_others;
}

void box_hold_layer(struct box *b, const struct layer_hold *hold)
{
    layer_release(&b->layer);
    b->layer = *hold;
}

bool box_has_egress(const struct box *b)
{
    return b->sandbox && sandbox_egress(b->sandbox);
}

void box_set_policy(struct box *b, const struct policy *policy)
{
    b->policy = policy; /* of another sandbox, too, if this one is lost */
    if (box_has_egress(b))
        egress_set_policy(sandbox_egress(b->sandbox), policy);
}

int box_publish(struct box *b, uint16_t port, uint16_t *ret_host, struct err *e)
{
    return ports_publish(&b->ports, &b->all->ports, b->sandbox, port, ret_host, e);
}

void box_note(const struct box *b, const char *fmt, ...)
{
    autofree char *sentence = NULL;
    va_list        ap;

    va_start(ap, fmt);
    sentence = str_vformat(fmt, ap);
    va_end(ap);
    if (b->all->ops->note)
        b->all->ops->note(b->all->owner, sentence);
}

void box_set_data(struct box *b, void *data, void (*free_data)(void *data))
{
    b->data = data;
    b->free_data = free_data;
}

void *box_data(const struct box *b)
{
    return b->data;
}
