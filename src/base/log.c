#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/fd.h"

static enum log_level log_highest = LOG_WARN;

void log_set_level(enum log_level level)
{
    log_highest = level;
}

void log_line(enum log_level level, const char *area, const char *fmt, ...)
{
    static const char *const names[] = {"error", "warn", "info", "debug"};
    char                     line[1024];
    size_t                   n;
    va_list                  ap;

    if (level > log_highest)
        return;
    n = (size_t)snprintf(line, sizeof line, "%s %.60s ", names[level], area);
    va_start(ap, fmt);
    vsnprintf(line + n, sizeof line - n - 1, fmt, ap);
    va_end(ap);
    for (n = 0; line[n]; n++)
        if ((unsigned char)line[n] < ' ')
            line[n] = ' '; /* one event, one line, whatever the text quotes */
    line[n++] = '\n';
    fd_write_all(2, line, n); /* one write, so that lines of two processes do not mix */
}
