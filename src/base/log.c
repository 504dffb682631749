#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

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
    int                      n;
    va_list                  ap;

    if (level > log_highest)
        return;
    n = snprintf(line, sizeof line, "%s %s ", names[level], area);
    va_start(ap, fmt);
    vsnprintf(line + n, sizeof line - (size_t)n - 1, fmt, ap);
    va_end(ap);
    for (char *p = line; *p; p++)
        if ((unsigned char)*p < ' ')
            *p = ' '; /* one event, one line, whatever the text quotes */
    strcat(line, "\n");
    fd_write_all(2, line, strlen(line)); /* one write, so that lines of two processes do not mix */
}
