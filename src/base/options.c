#include "base/options.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"

static int list_add(struct option_list *list, const char *item, struct err *e)
{
    if (list->n == OPTION_LIST_MAX)
        return err_set(e, ERR_LIMIT, "given more than %d times", OPTION_LIST_MAX);
    list->items[list->n++] = item;
    return 0;
}

static int store_flag(const char *text, bool *ret, struct err *e)
{
    if (strcmp(text, "1") == 0 || strcmp(text, "true") == 0)
        *ret = true;
    else if (strcmp(text, "0") == 0 || strcmp(text, "false") == 0 || !*text)
        *ret = false;
    else
        return err_set(e, ERR_INVALID, "'%.60s' is neither 1 nor 0", text);
    return 0;
}

static int store(const struct option *o, const char *text, int64_t bare_ms, void *target,
                 struct err *e)
{
    void *at = (char *)target + o->offset;

    switch (o->type) {
    case OPTION_FLAG:
        return store_flag(text, at, e);
    case OPTION_STRING:
        *(const char **)at = text;
        return 0;
    case OPTION_SIZE:
        return str_parse_size(text, at, e);
    case OPTION_DURATION:
        return str_parse_duration(text, bare_ms, at, e);
    case OPTION_CPUS:
        return str_parse_cpus(text, at, e);
    case OPTION_COUNT:
        return str_parse_count(text, 1, 1000000, at, e);
    case OPTION_COUNT_0:
        return str_parse_count(text, 0, 1000000, at, e);
    case OPTION_LIST:
        return list_add(at, text, e);
    }
    return 0;
}

/* ---- the environment ---- */

static void env_name(const struct option *o, char *ret, size_t size)
{
    snprintf(ret, size, "JERBOA_%s", o->name);
    for (char *p = ret; *p; p++)
        *p = (char)(*p == '-' ? '_' : toupper((unsigned char)*p));
}

static int store_lines(const struct option *o, const char *lines, void *target, struct err *e)
{
    struct option_list *list = (void *)((char *)target + o->offset);
    char               *save = NULL;

    free(list->owned); /* of the second name: our own wins */
    list->n = 0;
    list->owned = str_dup(lines);
    for (char *line = strtok_r(list->owned, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
        TRY(list_add(list, line, e));
    return 0;
}

static int from_variable(const struct option *o, const char *variable, int64_t bare_ms,
                         void *target, struct err *e)
{
    const char *text = variable ? getenv(variable) : NULL;
    int         r;

    if (!text || !*text)
        return 0; /* empty is as good as unset */
    r = o->type == OPTION_LIST ? store_lines(o, text, target, e)
                               : store(o, text, bare_ms, target, e);
    return r < 0 ? err_wrap(e, "%s", variable) : 0;
}

int options_from_env(const struct option *rows, void *target, struct err *e)
{
    char name[80];

    for (const struct option *o = rows; o->name; o++) {
        env_name(o, name, sizeof name);
        TRY(from_variable(o, o->second_env, o->second_env_is_ms ? 1 : 1000, target, e));
        TRY(from_variable(o, name, 1000, target, e));
    }
    return 0;
}

/* ---- the command line ---- */

static int unknown_option(const struct option *rows, const char *word, size_t length, struct err *e)
{
    const char *names[64] = {0};
    char        name[64];
    size_t      n = 0;

    for (; rows->name && n < 63; rows++)
        names[n++] = rows->name;
    snprintf(name, sizeof name, "%.*s", (int)length, word);
    const char *near = str_nearest(name, names);
    if (near)
        return err_set(e, ERR_INVALID, "unknown option '--%s': did you mean '--%s'?", name, near);
    return err_set(e, ERR_INVALID, "unknown option '--%s'", name);
}

static const struct option *by_name(const struct option *rows, const char *name, size_t length)
{
    for (; rows->name; rows++)
        if (strlen(rows->name) == length && strncmp(rows->name, name, length) == 0)
            return rows;
    return NULL;
}

static const struct option *by_letter(const struct option *rows, char letter)
{
    for (; rows->name; rows++)
        if (rows->letter && rows->letter == letter)
            return rows;
    return NULL;
}

/* One word of the command line: the option it names, and the value behind '=' if it has one. */
static const struct option *find(const struct option *rows, const char *word,
                                 const char **ret_value, struct err *e)
{
    const struct option *o;

    *ret_value = NULL;
    if (word[1] == '-') {
        const char *name = word + 2, *equals = strchr(name, '=');
        size_t      length = equals ? (size_t)(equals - name) : strlen(name);
        o = by_name(rows, name, length);
        if (equals)
            *ret_value = equals + 1;
        if (!o)
            unknown_option(rows, name, length, e);
        return o;
    }
    o = word[2] ? NULL : by_letter(rows, word[1]);
    if (!o)
        err_set(e, ERR_INVALID, "unknown option '%.60s'", word);
    return o;
}

int options_from_args(const struct option *rows, void *target, int argc, char *const *argv,
                      int *ret_used, struct err *e)
{
    int i = 0;

    while (i < argc && argv[i][0] == '-' && argv[i][1]) {
        const char          *word = argv[i++], *value;
        const struct option *o;

        if (strcmp(word, "--") == 0)
            break;
        o = find(rows, word, &value, e);
        if (!o)
            return -1;
        if (!value && o->type == OPTION_FLAG)
            value = "1";
        if (!value && i < argc)
            value = argv[i++];
        if (!value)
            return err_set(e, ERR_INVALID, "--%s needs %s", o->name, o->argument);
        if (store(o, value, 1000, target, e) < 0)
            return err_wrap(e, "--%s", o->name);
    }
    *ret_used = i;
    return 0;
}

void options_print_help(const struct option *rows)
{
    for (; rows->name; rows++) {
        char left[64], letter[8] = "    ";

        if (rows->letter)
            snprintf(letter, sizeof letter, "-%c, ", rows->letter);
        snprintf(left, sizeof left, "%s--%s%s%s", letter, rows->name, rows->argument ? " " : "",
                 rows->argument ? rows->argument : "");
        printf("  %-26s %s\n", left, rows->help);
    }
}

void options_done(const struct option *rows, void *target)
{
    for (; rows->name; rows++)
        if (rows->type == OPTION_LIST)
            free(((struct option_list *)(void *)((char *)target + rows->offset))->owned);
}
