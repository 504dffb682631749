#include "fetch/package.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "fetch/download.h"
#include "store/downloads.h"
#include "store/store.h"

static int fetch(struct line *l, const char *name, const char *range, char ret_path[PATH_MAX],
                 struct err *e)
{
    struct release release;

    downloads_sweep();
    TRY(line_resolve(l, name, &(struct line_want){.range = range, .use_tags = true}, &release, e));
    return download_keep(l, name, &release, ret_path, e);
}

int package_fetch(const char *name, const char *range, char ret_path[PATH_MAX], struct err *e)
{
    static const char *const parts[] = {"downloads", NULL};
    struct line             *l = line_open(NPM_CONFIG_PROJECT, parts, e);
    int                      done;

    if (!l)
        return -1;
    if (*line_note(l))
        dprintf(2, "jerboa: %s\n", line_note(l));
    done = fetch(l, name, range, ret_path, e);
    line_free(l);
    return done < 0 ? store_explain(e) : 0;
}

int package_config(const char *key, char ret[PATH_MAX], struct err *e)
{
    struct npm_config *config;
    const char        *value;

    if (*key == '_' || strstr(key, ":_") || str_starts(key, "//"))
        return err_set(e, ERR_INVALID, "credentials are not shown");
    config = npm_config_load(NPM_CONFIG_PROJECT, e);
    if (!config)
        return -1;
    value = npm_config_get(config, key);
    snprintf(ret, PATH_MAX, "%s", value ? value : "null");
    npm_config_free(config);
    return 0;
}
