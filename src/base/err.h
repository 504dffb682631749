/* err - an error is a value: a kind, an errno, one sentence for a person.
 *
 * No allocation, no owner; it fits in one pipe write. Fallible functions return 0 or -1 (or an fd)
 * and take `struct err *e` last. Who knows the object writes the sentence (err_set, err_sys); who
 * knows the intent puts it in front (err_wrap). All three return -1, so that `return err_sys(...)`
 * is a whole error path. Passing NULL for `e` drops the sentence. */
#pragma once

#include <stdbool.h>

enum err_kind {
    ERR_NONE,
    ERR_INVALID, /* the caller's words are off; nothing was changed */
    ERR_NOT_FOUND,
    ERR_LIMIT, /* a cap of ours was reached */
    ERR_TIMEOUT,
    ERR_CANCELLED,
    ERR_UNAVAILABLE, /* something outside of us does not answer or is not there */
    ERR_INTERNAL,
};

enum { ERR_MSG_MAX = 480 }; /* a name of ours and another program's whole reason */

struct err {
    enum err_kind kind;
    int           sys;              /* errno behind it, or 0 */
    char          msg[ERR_MSG_MAX]; /* one sentence */
};

int err_set(struct err *e, enum err_kind kind, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
int  err_sys(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
int  err_wrap(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void err_append(struct err *e, const char *what_to_do); /* behind the reason, after a colon */

/* Descriptors or memory ran out: it says nothing of what was looked at. */
bool err_is_shortage(const struct err *e);

/* Whether the reason is the machine, not the moment: asked again, it would say the same. Only what
 * is known to last does; want of descriptors or memory, an error of a device, a lock that others
 * hold, or a limit that others have used up (ENOSPC, EAGAIN: of cgroups) does not. */
bool err_is_lasting(const struct err *e);

#define TRY(expr)                                                                                  \
    do {                                                                                           \
        if ((expr) < 0)                                                                            \
            return -1;                                                                             \
    } while (0)
