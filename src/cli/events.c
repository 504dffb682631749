/* jerboa events - docs/audit.md, from the table that the audit log has its events from; listed
 * nowhere. */
#include "trail/events.h"

#include "cli/verb.h"

static int events_main(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    events_print();
    return 0;
}

static const struct option options[] = {{0}};

const struct verb verb_events = {
    .name = "events", .usage = "events", .options = options, .main = events_main};
