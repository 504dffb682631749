/* walls - the walls around a sandbox: one table of their names, and which of them stand.
 *
 * Walls that keep code in are never optional: a step that cannot build one stops the making, and
 * walls_explain puts the fix behind the reason. Walls that bound it may be missing on a machine:
 * the jail notes which, why and what to do (walls_miss), tells the server before anything runs (the
 * WALLS frame), and goes on, or with `strict` in the plan refuses. One that cannot be looked at or
 * built just now (err_is_lasting) is not missing, and stops the making as well: else whoever uses
 * up the machine's descriptors or cgroups would take the limits off the next sandbox. Whoever wants
 * the list (`jerboa run`'s one line, `walls.missing` in results, the doctor) reads that frame. How
 * each looks from inside is the doctor's own business (cli/inside.c), by the names of this table.
 */
#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "base/json.h"

enum wall {
    WALL_NONE, /* a step that builds none */

    /* keep code in */
    WALL_USER,
    WALL_MOUNT,
    WALL_PID,
    WALL_NETWORK,
    WALL_IPC,
    WALL_UTS,
    WALL_CGROUP_NAMESPACE,
    WALL_ROOT,
    WALL_CAPABILITIES,
    WALL_NO_NEW_PRIVILEGES,
    WALL_SECCOMP,

    /* bound it */
    WALL_LIMITS,
    WALL_UID_RANGE,
    WALL_LANDLOCK,

    WALLS,
};

struct walls {
    struct wall_gap {
        bool missing, waived;
        char why[ERR_MSG_MAX];
        char fix[ERR_MSG_MAX]; /* "": none is known */
    } gaps[WALLS];
};

/* A wall that bounds is not there, because of `why`. -1 and a sentence when that is a reason of the
 * moment: a wall that this machine has is not left out. */
int walls_miss(struct walls *w, enum wall wall, const struct err *why, struct err *e);

/* A wall is not there because the user wanted it so: off, but nothing that is missing. */
void walls_waive(struct walls *w, enum wall wall, const char *option);

/* A list of {name, what, keeps, on, why, fix}; the last two only where it is off. One that `keeps`
 * and is off was waived. */
json_t *walls_json(const struct walls *w);

/* -1 and a sentence when one is missing: for `strict`. */
int walls_check(const struct walls *w, struct err *e);

/* Puts what to do behind the reason why a wall could not be built, where that is known. */
void walls_explain(enum wall wall, struct err *e);
