/* state - requestState: what a call must remember while the client fetches answers. It travels
 * through the client, so it is hostile when it comes back: a MAC over it, bound to who asked what,
 * with an expiry, good for one use. */
#pragma once

#include "base/err.h"
#include "base/json.h"

struct states;

enum { STATES_WINDOW = 1 << 20 }; /* 1,700 a second for as long as one lives */

/* A fresh random key; only the newest `window` states can be opened, a multiple of 8. */
struct states *states_new(int64_t window);
void           states_free(struct states *s);

/* `subject` is what the state belongs to: principal, method, parameters. The caller frees the text;
 * NULL when the content is too large to travel. */
char   *states_seal(struct states *s, const char *subject, const json_t *content);
json_t *states_open(struct states *s, const char *subject, const char *text, struct err *e);
