/* record - a run whose output is kept (see keep.h): what an answer shows, and the whole of it.
 *
 * A run that prints more than is kept ends with the verdict `output`. */
#pragma once

#include "sandbox/keep.h"
#include "sandbox/run.h"

struct record;

struct record_ops {
    void (*line)(void *owner, const char *line); /* the newest line it printed; may be NULL */
    /* The two keeps are the owner's from here on. */
    void (*done)(void *owner, const struct run_result *r, struct keep *out, struct keep *err);
    /* As the run's; the keeps, which hold all of it, stay the record's. May be NULL. */
    void (*succeeded)(void *owner, struct keep *out, struct keep *err);
};

/* `dir`: where the whole is kept, see keep_new. */
struct record *record_start(struct sandbox *s, const struct run_spec *spec, const char *dir,
                            const struct record_ops *ops, void *owner);
void           record_begin(struct record *r);                 /* as run_begin */
void           record_end(struct record *r, enum verdict why); /* as run_end */
