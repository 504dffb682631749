#include "fetch/progress.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { MB = 1000000 };

void progress_start(struct progress *p, const char *name, const char *version)
{
    *p = (struct progress){.name = name, .version = version, .shown = -1};
}

/* One write a line, so that lines of two programs on one terminal do not mix. */
static void say_once(const struct progress *p, int64_t total_bytes)
{
    if (total_bytes >= 0)
        dprintf(2, "fetching %s %s (%.0f MB)\n", p->name, p->version, (double)total_bytes / MB);
    else
        dprintf(2, "fetching %s %s\n", p->name, p->version);
}

static void draw_bar(const struct progress *p, int percent, int64_t bytes, int64_t total_bytes)
{
    static const char full[] = "##############################",
                      empty[] = "..............................";
    int n = percent * (int)strlen(full) / 100;

    dprintf(2, "\r\033[Kfetching %s %s [%.*s%s] %3d%% %.0f of %.0f MB", p->name, p->version, n,
            full, empty + n, percent, (double)bytes / MB, (double)total_bytes / MB);
}

void progress_update(void *progress, int64_t bytes, int64_t total_bytes)
{
    struct progress *p = progress;
    int              percent = total_bytes > 0 ? (int)(bytes * 100 / total_bytes) : 0;

    if (percent == p->shown)
        return;
    if (!isatty(2)) {
        if (p->shown < 0)
            say_once(p, total_bytes);
        p->shown = percent;
        return;
    }
    p->shown = percent;
    draw_bar(p, percent, bytes, total_bytes);
}

void progress_end(struct progress *p)
{
    if (p->shown >= 0 && isatty(2))
        dprintf(2, "\r\033[K");
}
