#include "init/inherit.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char *const *inherited; /* NULL: nothing is */

/* What is added to what the image says: by docker's client the proxies of its config.json,
 * passwords and all; by podman two with these values, even where there is no terminal. */
static const struct {
    const char *name, *value; /* NULL: any */
} not_the_images[] = {
    {"HTTP_PROXY", NULL}, {"HTTPS_PROXY", NULL}, {"FTP_PROXY", NULL},   {"ALL_PROXY", NULL},
    {"NO_PROXY", NULL},   {"http_proxy", NULL},  {"https_proxy", NULL}, {"ftp_proxy", NULL},
    {"all_proxy", NULL},  {"no_proxy", NULL},    {"TERM", "xterm"},     {"container", "podman"},
};

static size_t count(const char *const *list)
{
    size_t n = 0;

    while (list && list[n])
        n++;
    return n;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

int inherit_begin(struct err *e)
{
    for (size_t i = 0; i < sizeof not_the_images / sizeof not_the_images[0]; i++) {
        const char *told = getenv(not_the_images[i].name), *value = not_the_images[i].value;

        if (told && (!value || strcmp(told, value) == 0))
            unsetenv(not_the_images[i].name);
    }
    if (setenv("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", 0) < 0 ||
        setenv("LANG", "C.UTF-8", 0) < 0)
        return err_sys(e, "the environment of programs");
    /* podman has them in another order each time */
    qsort(environ, count((const char *const *)environ), sizeof *environ, by_text);
    inherited = environ;
    return 0;
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
