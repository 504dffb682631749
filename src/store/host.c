#include "store/host.h"

#include <stdio.h>
#include <string.h>

#include "base/program.h"
#include "base/str.h"
#include "npm/semver.h"
#include "store/capture.h"

enum { VERSION_MS = 5000 };

/* PREFIX of PREFIX/bin/node; a version manager's shim lies elsewhere and is no Node. */
static int strip_bin(char *path)
{
    static const char tail[] = "/bin/node";
    size_t            n = strlen(path);

    if (n < sizeof tail || strcmp(path + n - strlen(tail), tail) != 0)
        return -1;
    path[n - strlen(tail)] = '\0';
    return 0;
}

int host_find(struct runtime *ret, struct err *e)
{
    char              node[PATH_MAX];
    const char *const argv[] = {node, "--version", NULL};
    struct capture    capture;
    struct semver     v;

    if (program_on_path("node", node, NULL) < 0)
        return err_set(e, ERR_NOT_FOUND, "there is no node on PATH");
    TRY(capture_run(node, argv, VERSION_MS, &capture, e));
    if (capture.status != 0 || *capture.output != 'v' ||
        strlen(capture.output) > sizeof ret->version || semver_parse(capture.output + 1, &v) < 0)
        return err_set(e, ERR_NOT_FOUND, "%.100s does not tell its version", node);
    snprintf(ret->version, sizeof ret->version, "%.*s", (int)sizeof ret->version - 1,
             capture.output + 1);
    if (strip_bin(node) < 0)
        return err_set(e, ERR_NOT_FOUND, "%.100s stands in no bin directory", node);
    return str_copy(ret->dir, sizeof ret->dir, node);
}
