#include "deps/installer.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "deps/audit.h"

enum { LINE_MAX_BYTES = 512 };

/* bun would link files of its cache into the layer (the mounts being two, it cannot; said all the
 * same): a package's script that writes to one would write to the cache. */
static const struct installer installers[] = {
    {.name = "bun",
     .lock = "bun.lock",
     .argv = {"/opt/bun/bin/bun", "install", "--ignore-scripts", "--backend=copyfile",
              "--linker=hoisted", "--save-text-lockfile", "--no-progress", "--no-env-file"},
     .env = {"BUN_INSTALL_CACHE_DIR=/cache/bun", "DO_NOT_TRACK=1", "NO_COLOR=1"},
     .needs_bun = true,
     .audit = audit_bun_lock,
     .prefix = "error: "},
    {.name = "npm",
     .lock = "package-lock.json",
     .argv = {"/opt/node/bin/npm", "install", "--ignore-scripts", "--no-audit", "--no-fund",
              "--no-progress", "--no-update-notifier", "--package-lock=true", "--omit=dev"},
     .env = {"npm_config_cache=/cache/npm", "npm_config_fetch_retries=1",
             "npm_config_fetch_retry_mintimeout=1000", "npm_config_color=false",
             "npm_config_logs_max=0", "npm_config_replace_registry_host=always",
             "npm_config_omit_lockfile_registry_resolved=true"},
     .audit = audit_npm_lock,
     .prefix = "npm error "},
};

enum { INSTALLERS = sizeof installers / sizeof installers[0] };

const struct installer *installer_find(const char *name, struct err *e)
{
    for (size_t i = 0; i < INSTALLERS; i++)
        if (strcmp(installers[i].name, name) == 0)
            return &installers[i];
    err_set(e, ERR_INVALID, "installer '%.40s' is unknown: there are 'bun' and 'npm'", name);
    return NULL;
}

const struct installer *installer_other(const struct installer *i, const struct err *failed)
{
    /* A registry that does not answer is asked once; a tarball that its documents place elsewhere
     * is one that npm asks the registry itself for. */
    if (failed->kind == ERR_UNAVAILABLE && strstr(failed->msg, "package manifest"))
        return NULL;
    if (!i->needs_bun || failed->kind == ERR_NOT_FOUND || failed->kind == ERR_LIMIT ||
        failed->kind == ERR_TIMEOUT)
        return NULL;
    return &installers[1];
}

/* ---- what it says ---- */

/* Words of either installer; the first row that fits a line decides. */
static const struct {
    const char   *words;
    enum err_kind kind;
} meanings[] = {
    {" - 404", ERR_NOT_FOUND},
    {"404 Not Found", ERR_NOT_FOUND},
    {"No version matching", ERR_NOT_FOUND},
    {"No matching version", ERR_NOT_FOUND},
    {"but package exists", ERR_NOT_FOUND},
    {"ntegrity check", ERR_INVALID}, /* bun: "Integrity check failed"; npm: "integrity checksum" */
    {"IntegrityCheckFailed", ERR_INVALID},
    {"ConnectionRefused", ERR_UNAVAILABLE},
    {"ConnectionClosed", ERR_UNAVAILABLE},
    {"ConnectionReset", ERR_UNAVAILABLE},
    {"DNSResolveFailed", ERR_UNAVAILABLE},
    {"Timeout", ERR_UNAVAILABLE},
    {"request to ", ERR_UNAVAILABLE},
    {" - 401", ERR_UNAVAILABLE},
    {" - 403", ERR_UNAVAILABLE},
    {" - 5", ERR_UNAVAILABLE},
    {"401 Unauthorized", ERR_UNAVAILABLE},
    {"403 Forbidden", ERR_UNAVAILABLE},
};

static enum err_kind meaning_of(const char *line)
{
    for (size_t i = 0; i < sizeof meanings / sizeof meanings[0]; i++)
        if (strstr(line, meanings[i].words))
            return meanings[i].kind;
    return ERR_INTERNAL;
}

/* npm names its kind of error before each line. */
static void drop_label(char *line)
{
    static const char *const labels[] = {"notarget ", "network "};

    for (size_t i = 0; i < sizeof labels / sizeof labels[0]; i++)
        if (str_starts(line, labels[i]))
            memmove(line, line + strlen(labels[i]), strlen(line + strlen(labels[i])) + 1);
}

/* The next line in which it complains, without its prefix; false: none is left. */
static bool next_complaint(const char **at, const char *prefix, char ret[LINE_MAX_BYTES])
{
    while (**at) {
        const char *line = *at;
        size_t      size = strcspn(line, "\n");
        *at += size + (line[size] == '\n');
        if (!str_starts(line, prefix))
            continue;
        snprintf(ret, LINE_MAX_BYTES, "%.*s", (int)(size - strlen(prefix)), line + strlen(prefix));
        drop_label(ret);
        /* npm's lines that say nothing to a person */
        if (*ret && !str_starts(ret, "code ") && !str_starts(ret, "A complete log"))
            return true;
    }
    return false;
}

/* A registry's address may hold a password. */
static void hide_password(char *line)
{
    for (char *host = strstr(line, "://"); host; host = strstr(host, "://")) {
        char  *start = host += 3;
        size_t size = strcspn(start, "/ '\"");
        char  *at = memrchr(start, '@', size);
        if (at)
            memmove(start, at + 1, strlen(at + 1) + 1);
    }
}

int installer_reason(const struct installer *i, const char *output, struct err *e)
{
    char          line[LINE_MAX_BYTES], first[LINE_MAX_BYTES] = "";
    enum err_kind kind = ERR_INTERNAL;

    while (kind == ERR_INTERNAL && next_complaint(&output, i->prefix, line)) {
        kind = meaning_of(line);
        if (!*first || kind != ERR_INTERNAL)
            memcpy(first, line, sizeof first);
    }
    if (!*first)
        return err_set(e, ERR_INTERNAL, "%s gave no reason", i->name);
    hide_password(first);
    if (kind == ERR_NOT_FOUND && strstr(first, "404"))
        return err_set(e, kind, "the registry has no such package (%s: %.180s)", i->name, first);
    return err_set(e, kind, "%s: %.200s", i->name, first);
}
