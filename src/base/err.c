#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int err_set(struct err *e, enum err_kind kind, const char *fmt, ...)
{
    va_list ap;

    if (!e)
        return -1;
    e->kind = kind;
    e->sys = 0;
    va_start(ap, fmt);
    vsnprintf(e->msg, sizeof e->msg, fmt, ap);
    va_end(ap);
    return -1;
}

int err_sys(struct err *e, const char *fmt, ...)
{
    int     saved = errno;
    va_list ap;
    char    what[ERR_MSG_MAX];

    if (!e)
        return -1;
    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    err_set(e, ERR_INTERNAL, "%.180s: %s", what, strerror(saved));
    e->sys = saved;
    return -1;
}

int err_wrap(struct err *e, const char *fmt, ...)
{
    va_list ap;
    char    what[ERR_MSG_MAX], whole[2 * ERR_MSG_MAX + 2];

    if (!e)
        return -1;
    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    snprintf(whole, sizeof whole, "%s: %s", what, e->msg);
    size_t n =
        strnlen(whole, sizeof e->msg - 1); /* no byte more: errors travel between processes */
    memcpy(e->msg, whole, n);
    e->msg[n] = '\0';
    return -1;
}

bool err_is_shortage(const struct err *e)
{
    return e->sys == EMFILE || e->sys == ENFILE || e->sys == ENOMEM;
}

bool err_is_lasting(const struct err *e)
{
    static const int lasting[] = {
        ENOENT, ENODEV, ENOSYS, EOPNOTSUPP, EINVAL, /* this kernel does not have it */
        EACCES, EPERM,  EROFS, /* not for this user, or not in this container */
        EBUSY, /* what another arranged is in the way: on v2, processes in a group of limits */
    };

    if (e->kind == ERR_TIMEOUT || e->kind == ERR_CANCELLED)
        return false;
    for (size_t i = 0; i < sizeof lasting / sizeof lasting[0]; i++)
        if (e->sys == lasting[i])
            return true;
    return e->sys == 0;
}

void err_append(struct err *e, const char *what_to_do)
{
    size_t n = strlen(e->msg);

    snprintf(e->msg + n, sizeof e->msg - n, ": %s", what_to_do);
}
