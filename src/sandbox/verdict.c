#include "sandbox/verdict.h"

#include <signal.h>

/* The counter says that some process was killed; it was the run's own end only if the main process
 * died of a SIGKILL that we did not send (or a wrapper such as sh reported one). */
static bool is_killed_for_memory(const struct verdict_facts *f)
{
    return f->oom_kills > 0 && (f->signal == SIGKILL || f->code == 128 + SIGKILL);
}

static bool is_oom(const struct verdict_facts *f)
{
    if (is_killed_for_memory(f))
        return true;
    return f->heap_exhausted && (f->signal == SIGABRT || f->signal == SIGTRAP ||
                                 f->code == 128 + SIGABRT || f->code == 128 + SIGTRAP);
}

enum verdict verdict_of(const struct verdict_facts *f)
{
    if (f->lost)
        return VERDICT_SANDBOX_LOST;
    if (f->code == 0)
        return VERDICT_OK;
    if (f->cancelled)
        return VERDICT_CANCELLED;
    if (f->timed_out)
        return VERDICT_TIMEOUT;
    if (f->output_exceeded)
        return VERDICT_OUTPUT;
    if (f->quota_exceeded) /* our own doing, as the three before: no other reason to be looked for
                            */
        return VERDICT_DISK;
    if (is_oom(f))
        return VERDICT_OOM;
    if (f->forks_refused > 0)
        return VERDICT_PIDS;
    if (f->disk_full)
        return VERDICT_DISK;
    return VERDICT_ERROR;
}

const char *verdict_name(enum verdict v)
{
    static const char *const names[] = {
        [VERDICT_OK] = "ok",
        [VERDICT_SANDBOX_LOST] = "sandbox_lost",
        [VERDICT_CANCELLED] = "cancelled",
        [VERDICT_TIMEOUT] = "timeout",
        [VERDICT_OUTPUT] = "output",
        [VERDICT_OOM] = "oom",
        [VERDICT_PIDS] = "pids",
        [VERDICT_DISK] = "disk",
        [VERDICT_ERROR] = "error",
    };

    return names[v];
}

const char *verdict_source(enum verdict v, const struct verdict_facts *f)
{
    switch (v) {
    case VERDICT_OOM:
        return !is_killed_for_memory(f) ? "v8" : f->watched ? "watch" : "cgroup";
    case VERDICT_PIDS:
        return "cgroup";
    case VERDICT_DISK:
        return f->quota_exceeded ? "quota" : "tmpfs";
    default:
        return NULL;
    }
}

int verdict_exit_status(enum verdict v, const struct verdict_facts *f)
{
    switch (v) {
    case VERDICT_OK:
        return 0;
    case VERDICT_SANDBOX_LOST:
        return 125;
    case VERDICT_TIMEOUT:
        return 124;
    case VERDICT_OOM:
        return 128 + SIGKILL;
    default:
        return f->signal ? 128 + f->signal : f->code;
    }
}
