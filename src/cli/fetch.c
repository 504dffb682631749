/* jerboa fetch - what Jerboa itself does over the network, for whoever wants to see it done alone:
 * becomes the program jerboa-fetch (see there). Listed nowhere. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/program.h"
#include "cli/verb.h"

static const struct option options[] = {{0}};

static int fetch_main(int argc, char **argv)
{
    struct err      e = {0};
    autofree char  *program = program_find("jerboa-fetch", &e);
    autofree char **args = calloc((size_t)argc + 2, sizeof *args);

    if (!args)
        abort();
    args[0] = program;
    for (int i = 0; i < argc; i++)
        args[i + 1] = argv[i];
    if (program && execv(program, args) < 0)
        err_sys(&e, "run %s", program);
    fprintf(stderr, "jerboa: %s\n", e.msg);
    return EXIT_FAILED;
}

const struct verb verb_fetch = {
    .name = "fetch",
    .usage = "fetch runtime IMAGE | verify IMAGE | tool NAME | package NAME [RANGE] | config KEY",
    .options = options,
    .main = fetch_main,
};
