/* jerboa errors - docs/errors.md, from the table that the tools have their errors from; listed
 * nowhere. */
#include "tools/errors.h"

#include "cli/verb.h"

static int errors_main(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    errors_print();
    return 0;
}

static const struct option options[] = {{0}};

const struct verb verb_errors = {
    .name = "errors", .usage = "errors", .options = options, .main = errors_main};
