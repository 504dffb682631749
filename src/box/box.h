/* box - a sandbox as agents know it: an id, an owner, an order of calls, an end.
 *
 * Boxes belong to their table; others hold the id and look it up, or stand in line. A box exists
 * from boxes_make on: its Node is found or fetched, the sandbox starts, and then whoever stands
 * first in its line is called. It ends when it is stopped, when it reaches its age, when nobody
 * used it for long, or when the sandbox is lost; then all who stand in line are told. */
#pragma once

#include <event2/event.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/json.h"
#include "deps/layers.h"
#include "egress/egress.h"
#include "engine/engine.h"
#include "sandbox/sandbox.h"
#include "sandbox/twin.h"
#include "store/layer.h"

struct boxes;
struct box;
struct trail;
struct held;

enum { BOX_ID_MAX = sizeof "js-sbx-" + 36 };

/* ---- the table ---- */

struct boxes_spec { /* what it points to must outlive the table */
    struct event_base   *base;
    struct engine_spec   limits; /* of each; directories are filled in */
    const struct engine *of_node,
        *of_others; /* makes sandboxes of node images, and of others; of_others: or NULL */
    bool               native_works;   /* dependencies of containers are installed there */
    bool               pulls_any;      /* else images of node only, and `image` */
    const char        *why_not_native; /* it was wanted and cannot work; "": it can, or was not */
    struct egress_spec network;        /* the operator's */
    bool               host_network;
    int64_t            max;               /* at once */
    int64_t            max_each;          /* of one owner, as far as he can be recognised */
    int64_t            age_ms;            /* of one; 0: no end */
    int64_t            idle_ms;           /* without a call; 0: never */
    const char        *image;             /* of who names none */
    const char        *files_dir;         /* of who asks, as far as one knows before; or NULL */
    bool               files_dirs_differ; /* each who asks has his own */
    int64_t            pool_min;          /* sandboxes made ahead; 0: none */
    int64_t            pool_bytes;        /* what all of them may take, as those of `image` do */
    int64_t            reserve_bytes;     /* of memory that stay free, see pressure.h */
    int64_t            hold_ms; /* how long an unused one keeps a Node booted; 0: not at all */
    const char *const *env, *const *env_of_others; /* of every program; ended by NULL */
    const char   *scratch_dir;                     /* of this machine, for files without a name */
    struct trail *trail; /* is told of boxes and their connections; or NULL */
};

struct box_spec {
    const char          *image;     /* NULL: the default */
    const char          *owner;     /* as mcp_call_owner has it; "": whoever knows the id */
    const char          *files_dir; /* of this machine; NULL: /workspace/files goes with the box */
    const struct policy *policy;    /* in addition to the operator's; or NULL */
    bool                 one_call;  /* for one call that stops it: nobody else finds it */
    const char          *call;      /* that makes it, for the trail; or NULL */
};

struct boxes_ops {
    /* Each may be NULL. */
    void (*changed)(void *owner, const char *box_owner); /* one has come or gone */
    void (*walls)(void *owner, const json_t *list);      /* of the first one: all have the same */
    void (*note)(void *owner, const char *sentence);     /* for the operator */
    void (*room)(void *owner); /* for one more there may be some: see room.h; start nothing in it */
};

struct boxes *boxes_new(const struct boxes_spec *spec, const struct boxes_ops *ops, void *owner);
int           boxes_check_image(const struct boxes *all, const char *image, struct err *e);
/* NULL: the image is none, or the server stops. Whether there is room is the caller's to know. */
struct box *boxes_make(struct boxes *all, const struct box_spec *spec, struct err *e);
struct box *boxes_find(struct boxes *all, const char *id, const char *owner); /* or NULL */
/* The next one of this owner after `last` (NULL: the first), oldest first; NULL at the end. */
struct box *boxes_next(struct boxes *all, const char *owner, const struct box *last);
void        boxes_stop_owner(struct boxes *all, const char *owner);
/* Ends all of them; `stopped` once, from the loop, when nothing of them is left on the machine. */
void boxes_stop(struct boxes *all, void (*stopped)(void *owner), void *owner);
void boxes_free(struct boxes *all); /* when it is empty */

/* ---- one of them ---- */

struct event_base *box_base(const struct box *b);
const char        *box_id(const struct box *b);
const char        *box_owner(const struct box *b);
struct sandbox    *box_sandbox(const struct box *b);       /* for who has his turn */
bool               box_lacks_runtime(const struct box *b); /* it ended for want of a Node */
bool               box_was_ready(const struct box *b);     /* false: it never came up */
bool               box_is_usable(const struct box *b);     /* its sandbox is there, and is well */
const json_t      *box_walls(const struct box *b); /* as the sandbox told them; NULL: not yet */
const char        *box_files_dir(const struct box *b);
/* Who has his turn sends it first and fetches it last; NULL: the sandbox sees the directory itself,
 * or there is none. */
struct twin *box_twin(const struct box *b);
/* Where its dependencies are installed: by its own Node, or, of a container, outside, by one of the
 * store of the same major version; if native cannot work, in a container of the same image. */
struct box_installing {
    struct layers_node node;
    char               dir[PATH_MAX];
};
int                box_installing(const struct box *b, struct box_installing *ret, struct err *e);
const char *const *box_env(const struct box *b);
const char        *box_scratch_dir(const struct box *b);
extern const char  box_script[];                 /* what a run's code becomes, inside */
struct held       *box_take_held(struct box *b); /* for box_script; or NULL; for who has his turn */
/* The layer that is mounted in it, held as long as it lives (or another one replaces it): takes the
 * hold over. */
void box_hold_layer(struct box *b, const struct layer_hold *hold);
/* That port of it appears on this machine's loopback, see ports.h. For who has his turn. */
int box_publish(struct box *b, uint16_t port, uint16_t *ret_host, struct err *e);
/* From now on, together with the operator's; must live as long as the box. Not of one that shares
 * the host's network. */
void box_set_policy(struct box *b, const struct policy *policy);
bool box_has_egress(const struct box *b);
/* Idempotent; from now on nobody finds it. `why`: a few words that live for ever. */
void box_stop(struct box *b, const char *why);

/* A sentence for the operator. */
void box_note(const struct box *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* What others keep with a box (its servers): freed with it. */
void  box_set_data(struct box *b, void *data, void (*free_data)(void *data));
void *box_data(const struct box *b);

/* ---- its line: one call at a time ---- */

struct turn_ops {
    void (*go)(void *owner); /* it is your turn, until turn_end */
    /* The box has ended, and the turn is over. Or (turn_is_for_naught) only its sandbox has. */
    void (*lost)(void *owner, const struct err *e);
    /* Every second while its Node is fetched, what takes so long; the turn must not end in it. May
     * be NULL. */
    void (*waits)(void *owner, const char *sentence);
};

struct turn { /* its owner's storage */
    struct turn           *next;
    struct box            *box; /* NULL: it does not stand in line */
    const struct turn_ops *ops;
    void                  *owner;
    const char            *call; /* whose it is, for the trail; or NULL */
    bool                   is_on, again;
};

/* Both ops are called from the top of the loop; `call`, or NULL, must live until the turn ends. */
void turn_start(struct turn *t, struct box *b, const char *call, const struct turn_ops *ops,
                void *owner);
void turn_end(struct turn *t);      /* idempotent; also of one that still waits */
void turn_go_first(struct turn *t); /* before all who wait: after a turn that was for naught */
/* The sandbox was made ahead and is lost before a program ran in it, and the box gets another one:
 * who ends this turn and stands in line once more can do all that he wanted to. */
bool turn_is_for_naught(const struct turn *t);
