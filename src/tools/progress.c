#include "tools/progress.h"

#include "base/clock.h"

enum { PAUSE_MS = 200 };

void progress_tell(struct progress *p, struct mcp_call *c, const char *sentence)
{
    int64_t now = clock_ms();

    if (!mcp_call_wants_progress(c) || (p->count > 0 && now - p->told_ms < PAUSE_MS))
        return;
    p->told_ms = now;
    p->count += 1;
    mcp_call_progress(c, p->count, 0, sentence);
}
