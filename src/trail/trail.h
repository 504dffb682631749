/* trail - the audit log: a line of JSON an event (events.h), at the end of one file.
 *
 * A line goes out by one write, so that several servers can share the file. A line that cannot be
 * written is lost and counted, never kept: nothing waits for a disk, and memory does not grow. All
 * of it may be called without a trail (NULL), which is always well. */
#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "base/json.h"
#include "trail/events.h"

struct trail;

struct trail_spec {
    const char *path;
    const char *outside_dir;            /* it must not lie below this; or NULL */
    bool        strict;                 /* nothing new begins while lines are lost */
    void (*note)(const char *sentence); /* for the operator: lines are lost, or are not any more */
};

struct trail *trail_open(const struct trail_spec *spec, struct err *e);
void          trail_close(struct trail *t);

/* The members of events.h that are known; strings are cut here. -1: it was lost. */
int trail_write(struct trail *t, enum trail_event event, json_t *members_take, struct err *e);

/* Whether something may begin whose line this was (`written`: what trail_write returned), … */
bool trail_allows(const struct trail *t, int written);
/* … or, before there is a line: the last one was written. */
bool trail_is_well(const struct trail *t);

/* ---- of whom a line tells ---- */

enum { TRAIL_CALL_MAX = 17, TRAIL_OWNER_MAX = 80, TRAIL_SANDBOX_MAX = 21 };

struct trail_subject {
    char call[TRAIL_CALL_MAX]; /* "": none */
    char owner[TRAIL_OWNER_MAX];
    char sandbox[TRAIL_SANDBOX_MAX]; /* "": none */
};

void trail_new_call(char ret[TRAIL_CALL_MAX]);
/* Of a right (an id of a sandbox or a session) only the beginning is kept. */
void    trail_set_owner(struct trail_subject *s, const char *owner);
void    trail_set_sandbox(struct trail_subject *s, const char *id);
json_t *trail_digest(const void *bytes, size_t size); /* {sha256, bytes} */
/* A package's name or version as it was asked for; of an address, which none can be, only what
 * comes before its "//": behind that it may have a password. */
json_t *trail_asked(const char *text, size_t size);
json_t *trail_members(const struct trail_subject *s); /* {call, owner, sandbox} */
