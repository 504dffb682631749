/* log - one line an event on stderr: `level area text`. Library code never logs; the edges do,
 * once. Never code, tokens, environment or arguments of users. */
#pragma once

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

void log_set_level(enum log_level level); /* what is above it is dropped; LOG_WARN to begin with */
void log_line(enum log_level level, const char *area, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
