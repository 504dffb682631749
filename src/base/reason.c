#include "base/reason.h"

#include <string.h>

#include "base/str.h"

static const char mark[] = "...";

/* Podman's log, which goes before its own sentence and may tell of what came of the failure. */
static bool is_logged(const char *line)
{
    return str_starts(line, "time=\"");
}

static bool is_warning(const char *line, size_t n)
{
    static const char level[] = " level=warning ";

    return str_starts(line, "WARNING") ||
           (is_logged(line) && memmem(line, n, level, strlen(level)));
}

/* Where to end what has only this much room: between words, unless one alone takes half of it. */
static size_t cut(const char *line, size_t room)
{
    for (size_t n = room; n > room / 2; n--)
        if (line[n] == ' ')
            return n + 1;
    return room;
}

void reason_take(const char *line, char *ret, size_t size)
{
    size_t n = strcspn(line, "\r\n");
    bool   fits = n < size;

    if (!fits)
        n = cut(line, size - sizeof mark - 1);
    for (size_t i = 0; i < n; i++)
        ret[i] = (char)(line[i] < ' ' || line[i] > '~' ? ' ' : line[i]);
    memcpy(ret + n, fits ? "" : mark, fits ? 1 : sizeof mark);
}

bool reason_find(const char *text, char *ret, size_t size)
{
    const char *found = NULL;

    for (size_t n; *text; text += n + (text[n] != '\0')) {
        n = strcspn(text, "\r\n");
        if (n == 0 || is_warning(text, n))
            continue;
        if (!found || !is_logged(text))
            found = text;
        if (!is_logged(text))
            break;
    }
    reason_take(found ? found : "", ret, size);
    return found;
}
