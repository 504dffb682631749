#include "cli/chart.h"

#include <assert.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/json.h"
#include "base/str.h"
#include "config.h"

static const char *const state_names[] = {
    [CHART_UNTRIED] = "untried", [CHART_ON] = "on", [CHART_OFF] = "off"};

/* ---- rows ---- */

void chart_put(char **to, const char *fmt, ...)
{
    char   *text;
    va_list args;

    va_start(args, fmt);
    text = str_vformat(fmt, args);
    va_end(args);
    free(*to);
    *to = text;
}

struct chart_row *chart_add(struct chart *c, const char *kind, const char *name, const char *what)
{
    struct chart_row *row = &c->rows[c->n++];

    assert(c->n <= CHART_ROWS_MAX);
    row->kind = kind;
    chart_put(&row->name, "%s", name);
    chart_put(&row->what, "%s", what);
    return row;
}

void chart_done(struct chart *c)
{
    for (size_t i = 0; i < c->n; i++) {
        free(c->rows[i].name);
        free(c->rows[i].what);
        free(c->rows[i].why);
        free(c->rows[i].fix);
    }
}

struct chart_row *chart_find(struct chart *c, const char *name)
{
    for (size_t i = 0; i < c->n; i++)
        if (strcmp(c->rows[i].name, name) == 0)
            return &c->rows[i];
    return NULL;
}

const char *chart_sudo(void)
{
    return geteuid() == 0 ? "" : "sudo ";
}

/* The command in a sentence of the jail's, which ends in `as root: COMMAND`; returns where those
 * words begin, or NULL. */
static const char *take_command(struct chart_row *row, const char *sentence)
{
    const struct {
        const char *words, *prefix;
    } marks[] = {{"as root: ", chart_sudo()}, {"start it from: ", ""}};

    for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++) {
        const char *mark = strstr(sentence, marks[i].words);
        if (!mark)
            continue;
        chart_put(&row->fix, "%s%s", marks[i].prefix, mark + strlen(marks[i].words));
        return mark;
    }
    return NULL;
}

void chart_set_off_with(struct chart_row *row, const char *why, const char *fix)
{
    row->state = CHART_OFF;
    if (!*fix || take_command(row, fix))
        chart_put(&row->why, "%s", why);
    else
        chart_put(&row->why, "%s; %s", why, fix);
}

void chart_set_off(struct chart_row *row, const char *sentence)
{
    const char *command = take_command(row, sentence);
    size_t      n = command ? (size_t)(command - sentence) : strlen(sentence);

    row->state = CHART_OFF;
    while (n > 0 && strchr(" :;", sentence[n - 1]))
        n--;
    chart_put(&row->why, "%.*s", (int)n, sentence);
}

/* ---- telling ---- */

bool chart_works(const struct chart *c)
{
    for (size_t i = 0; i < c->n; i++)
        if (c->rows[i].required && c->rows[i].state != CHART_ON)
            return false;
    return true;
}

static char *user_name(void) /* the caller frees; NULL: has none */
{
    const struct passwd *user = getpwuid(getuid());

    return user ? str_format("%s", user->pw_name) : NULL;
}

static struct utsname find_kernel(void)
{
    struct utsname os;

    if (uname(&os) < 0)
        abort();
    return os;
}

static json_t *row_json(const struct chart_row *row)
{
    json_t *j = json_pack("{s:s, s:s, s:s, s:b, s:o}", "kind", row->kind, "name", row->name,
                          "state", state_names[row->state], "required", row->required, "what",
                          json_text(row->what, strlen(row->what)));

    if (!j)
        abort();
    if (row->why)
        json_object_set_new(j, "why", json_text(row->why, strlen(row->why)));
    if (row->fix)
        json_object_set_new(j, "fix", json_text(row->fix, strlen(row->fix)));
    return j;
}

/* Rows in the order of kinds; within one, as they were tried. */
static void sort_rows(const struct chart *c, const struct chart_row *ret[CHART_ROWS_MAX])
{
    static const char *const kinds[] = {"need", "wall", "bound", "limit", "more"};
    size_t                   n = 0;

    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++)
        for (size_t i = 0; i < c->n; i++)
            if (strcmp(c->rows[i].kind, kinds[k]) == 0)
                ret[n++] = &c->rows[i];
    assert(n == c->n);
}

void chart_print_json(const struct chart *c)
{
    const struct chart_row *sorted[CHART_ROWS_MAX];
    autofree char          *name = user_name();
    struct utsname          os = find_kernel();
    json_t                 *rows = json_array();
    autojson json_t        *j =
        json_pack("{s:b, s:s, s:{s:i, s:s?}, s:s, s:s, s:o}", "works", chart_works(c), "version",
                  JERBOA_VERSION, "user", "uid", (int)getuid(), "name", name, "kernel", os.release,
                  "machine", os.machine, "checks", rows);

    if (!j)
        abort();
    sort_rows(c, sorted);
    for (size_t i = 0; i < c->n; i++)
        json_array_append_new(rows, row_json(sorted[i]));
    json_dumpf(j, stdout, JSON_INDENT(2));
    putchar('\n');
}

static void print_row(const struct chart_row *row)
{
    enum { INDENT = 35 };

    printf("%-7s  %-5s  %-17s  %s\n", state_names[row->state], row->kind, row->name,
           row->why ? row->why : row->what);
    if (row->fix)
        printf("%*sfix: %s\n", INDENT, "", row->fix);
}

void chart_print(const struct chart *c)
{
    const struct chart_row *sorted[CHART_ROWS_MAX];
    autofree char          *name = user_name();
    struct utsname          os = find_kernel();
    int                     off = 0;

    printf("jerboa %s as %s%suid %u on Linux %s %s\n\n", JERBOA_VERSION, name ? name : "",
           name ? ", " : "", (unsigned)getuid(), os.release, os.machine);
    sort_rows(c, sorted);
    for (size_t i = 0; i < c->n; i++) {
        print_row(sorted[i]);
        off += sorted[i]->state == CHART_OFF;
    }
    printf("\nThe native engine %s", chart_works(c) ? "works" : "does not work");
    if (chart_works(c) && off > 0)
        printf("; %d of the above %s off", off, off == 1 ? "is" : "are");
    printf(".\n");
}
