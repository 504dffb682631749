#include "base/version.h"

#include <string.h>

#include "config.h"

const char version_own[] = JERBOA_VERSION;
const char version_answer[] = "--answer=" JERBOA_VERSION;

int version_check(const char *program, const char *asked, struct err *e)
{
    if (asked && strcmp(asked, version_own) == 0)
        return 0;
    return err_set(e, ERR_INTERNAL,
                   "%s is version %s, but the jerboa that started it is %.40s: it was upgraded "
                   "meanwhile, restart it",
                   program, version_own, asked ? asked : "older");
}
