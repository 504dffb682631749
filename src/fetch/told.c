#include "fetch/told.h"

#include <string.h>

void told_show(const char *text, size_t size, char *ret)
{
    size_t n = 0;

    for (; n < size - 1 && text[n]; n++)
        ret[n] = (char)((unsigned char)text[n] < ' ' || text[n] == 0x7f ? '?' : text[n]);
    ret[n] = '\0';
}

int told_check(const struct err *told, struct err *e)
{
    struct err shown = {.kind = told->kind, .sys = told->sys};

    if (told->kind == ERR_NONE)
        return 0;
    if ((unsigned)told->kind > ERR_INTERNAL)
        shown.kind = ERR_INTERNAL;
    told_show(told->msg, sizeof told->msg, shown.msg);
    if (e)
        *e = shown;
    return -1;
}

int told_release(const struct release *told, struct err *e)
{
    struct semver version;

    if (!memchr(told->version, '\0', sizeof told->version) ||
        !memchr(told->url, '\0', sizeof told->url) || semver_parse(told->version, &version) < 0)
        return err_set(e, ERR_INVALID, "the line of jerboa-fetch tells a release that is none");
    return 0;
}
