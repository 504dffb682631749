#include "tools/progress.h"

#include <stdio.h>

#include "base/clock.h"

enum { PAUSE_MS = 200 };

static void tell(struct progress *p, const char *sentence)
{
    p->told_ms = clock_ms();
    p->count += 1;
    mcp_call_progress(p->call, p->count, 0, sentence);
}

static void on_pause_over(void *owner)
{
    struct progress *p = owner;

    tell(p, p->waiting);
    p->waiting[0] = '\0';
}

void progress_init(struct progress *p, struct event_base *base, struct mcp_call *c)
{
    *p = (struct progress){.call = c, .count = mcp_call_progressed(c)};
    deadline_init(&p->pause, base, on_pause_over, p);
}

void progress_tell(struct progress *p, const char *sentence)
{
    int64_t left = p->told_ms + PAUSE_MS - clock_ms();

    if (!mcp_call_wants_progress(p->call))
        return;
    if (p->told_ms == 0 || left <= 0) {
        deadline_clear(&p->pause);
        p->waiting[0] = '\0';
        tell(p, sentence);
        return;
    }
    if (!p->waiting[0])
        deadline_set(&p->pause, left);
    snprintf(p->waiting, sizeof p->waiting, "%s", sentence);
}

void progress_done(struct progress *p)
{
    deadline_done(&p->pause);
}
