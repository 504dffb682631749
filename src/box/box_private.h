/* box_private - what box.c (one box, its line, its end) and boxes.c (the table, and those made
 * ahead) know of each other. */
#pragma once

#include <sys/queue.h>

#include "base/sha256.h"
#include "box/box.h"
#include "box/pool.h"
#include "box/ports.h"
#include "box/runtimes.h"
#include "loop/deadline.h"
#include "loop/later.h"
#include "sandbox/held.h"
#include "sandbox/telling.h"

enum box_state { BOX_FETCHING, BOX_STARTING, BOX_READY, BOX_ENDING };

struct box {
    TAILQ_ENTRY(box) entry;
    struct boxes        *all;
    struct shelf        *shelf;                   /* it was made ahead and is nobody's; else NULL */
    bool                 made_ahead, tried_again; /* tried_again: its sandbox is the second one */
    char                 fingerprint[SHA256_HEX_SIZE]; /* of its plan, if it was made ahead */
    char                 id[BOX_ID_MAX];
    char                *owner, *files_dir, *image;
    const struct engine *engine;
    const struct policy *policy;
    bool                 one_call;
    bool                 is_somebodys; /* else nobody hears of it or finds it */
    enum box_state       state;
    struct runtime_wait *wait;
    struct runtime       runtime;
    int                  runtime_fd; /* held, so that gc does not remove it */
    struct telling       telling;    /* of its connections */
    struct sandbox      *sandbox;
    struct twin         *twin; /* of files_dir, if its daemon cannot be shown that; or NULL */
    json_t              *walls;
    struct ports         ports;
    struct layer_hold    layer;
    struct held         *held; /* the Node of its next run; or NULL */
    unsigned             held_failures;
    bool                 rests; /* unused for long: it has no Node until it is used */
    struct turn         *line;  /* the first one is on, once the box is ready */
    struct deadline      age, idle, hold, news; /* news: for who waits while its Node is fetched */
    int64_t              made_ms;
    struct later         later;
    void                *data;
    void (*free_data)(void *data);

    /* facts */
    bool        ready, stop_wanted, gone; /* ready stays while its sandbox ends */
    bool        again;                    /* gone, but another sandbox takes its place */
    const char *why;                      /* stop_wanted; else NULL */
    struct err  err;                      /* why it ended by itself */
};

struct boxes {
    struct boxes_spec       spec;
    const struct boxes_ops *ops;
    void                   *owner;
    struct runtimes        *runtimes;
    TAILQ_HEAD(box_list, box) list; /* oldest first */
    size_t           count;         /* of those that are somebody's and do not end */
    size_t           ending;
    struct pool     *pool;        /* NULL: nothing is made ahead */
    struct deadline  tend;        /* the next look at it */
    int64_t          fill_ms;     /* when tend is due and is not put off; 0: it may be */
    int64_t          compared_ms; /* when those made ahead were, with what would be made */
    bool             told_spare_failed;
    struct pressure *pressure; /* on memory */
    struct deadline  relief;   /* the next look at it */
    bool             is_short; /* nothing is kept ahead */
    struct port_set  ports;
    bool             told_walls;
    void (*stopped)(void *owner);
    void        *stopped_owner;
    struct later stopped_later;
};

/* One for `spec`, in the table, on its way; `shelf`: it is made ahead. */
struct box *box_new(struct boxes *all, const struct box_spec *spec, struct shelf *shelf);
void        box_begin_life(struct box *b); /* it is somebody's and ready: its age begins */
void        box_rest(struct box *b);       /* without a Node, until it is used */
bool        box_is_well(const struct box *b);

/* What boxes hear of their own. */
void                 boxes_spare_ready(struct box *b);
void                 boxes_spare_ended(struct box *b);
void                 boxes_cold_ready(struct boxes *all);
void                 boxes_leave(struct boxes *all); /* one that was somebody's ends */
void                 boxes_forget(struct box *b);
void                 boxes_fill_soon(struct boxes *all);
const struct engine *boxes_engine(const struct boxes *all, const char *image);
bool                 boxes_may_pull(const struct boxes *all, const char *image);
json_t *boxes_plan(const struct boxes *all, const struct engine *engine, const char *runtime_dir,
                   const char *files_dir, bool host_network, struct err *e);
