#include "init/inherit.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char *const *inherited; /* NULL: nothing is */

/* Docker's client adds those of its config.json to what the image says, passwords and all. */
static const char *const not_the_images[] = {
    "HTTP_PROXY", "HTTPS_PROXY", "FTP_PROXY", "ALL_PROXY", "NO_PROXY",
    "http_proxy", "https_proxy", "ftp_proxy", "all_proxy", "no_proxy",
};

int inherit_begin(struct err *e)
{
    for (size_t i = 0; i < sizeof not_the_images / sizeof not_the_images[0]; i++)
        unsetenv(not_the_images[i]);
    if (setenv("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", 0) < 0 ||
        setenv("LANG", "C.UTF-8", 0) < 0)
        return err_sys(e, "the environment of programs");
    inherited = environ;
    return 0;
}

static size_t count(const char *const *list)
{
    size_t n = 0;

    while (list && list[n])
        n++;
    return n;
}

static bool has_name(const char *const *list, const char *variable)
{
    size_t name = strcspn(variable, "=") + 1;

    for (; *list; list++)
        if (strncmp(*list, variable, name) == 0)
            return true;
    return false;
}

const char **inherit_compose(const char *const *given)
{
    const char *const *image = (const char *const *)inherited;
    size_t             n = count(given);
    const char       **all = calloc(n + count(image) + 1, sizeof *all);

    if (!all)
        abort();
    memcpy(all, given, n * sizeof *all);
    for (; image && *image; image++)
        if (!has_name(given, *image))
            all[n++] = *image;
    return all;
}
