#include "npm/npmrc.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/json.h"

enum { LINE_MAX_BYTES = 1 << 16, NAME_MAX_BYTES = 256 };

/* ---- lines ---- */

struct slice {
    const char *p;
    size_t      size;
};

static struct slice trimmed(struct slice s)
{
    while (s.size > 0 && isspace((unsigned char)*s.p))
        s.p++, s.size--;
    while (s.size > 0 && isspace((unsigned char)s.p[s.size - 1]))
        s.size--;
    return s;
}

static char *copy(struct slice s)
{
    char *text = malloc(s.size + 1);

    if (!text)
        abort();
    memcpy(text, s.p, s.size);
    text[s.size] = '\0';
    return text;
}

/* The JSON string that the text is, or NULL. */
static char *unquoted_json(struct slice s)
{
    autojson json_t *value = json_loadb(s.p, s.size, JSON_DECODE_ANY, NULL);

    return json_is_string(value) ? strdup(json_string_value(value)) : NULL;
}

/* Up to a comment; a backslash keeps ; and # and itself. */
static char *unescaped(struct slice s)
{
    char  *text = copy(s);
    size_t used = 0;

    for (size_t i = 0; i < s.size && s.p[i] != ';' && s.p[i] != '#'; i++) {
        if (s.p[i] == '\\' && i + 1 < s.size && strchr("\\;#", s.p[i + 1]))
            i++;
        text[used++] = s.p[i];
    }
    while (used > 0 && isspace((unsigned char)text[used - 1]))
        used--;
    text[used] = '\0';
    return text;
}

static char *decode(struct slice s)
{
    char *text;

    s = trimmed(s);
    if (s.size == 0 || (*s.p != '"' && *s.p != '\'') || s.p[s.size - 1] != *s.p)
        return unescaped(s);
    if (*s.p == '\'')
        s = s.size < 2 ? (struct slice){"", 0} : (struct slice){s.p + 1, s.size - 2};
    text = unquoted_json(s);
    return text ? text : copy(s); /* npm keeps what JSON does not read */
}

static bool is_section(struct slice line)
{
    const char *close;

    if (line.size < 2 || *line.p != '[')
        return false;
    close = memchr(line.p, ']', line.size);
    return close &&
           trimmed((struct slice){close + 1, line.size - (size_t)(close + 1 - line.p)}).size == 0;
}

static int take_line(struct slice line, int (*take)(void *, const struct npmrc_line *), void *owner)
{
    const char       *equals = memchr(line.p, '=', line.size);
    struct slice      key = {line.p, equals ? (size_t)(equals - line.p) : line.size};
    struct slice      value = {"true", 4};
    autofree char    *key_text = NULL, *value_text = NULL;
    struct npmrc_line told;
    size_t            n;

    if (key.size == 0)
        return 0;
    if (equals)
        value = (struct slice){equals + 1, line.size - key.size - 1};
    key_text = decode(key);
    value_text = decode(value);
    n = strlen(key_text);
    told = (struct npmrc_line){key_text, value_text, n > 2 && strcmp(key_text + n - 2, "[]") == 0};
    if (told.is_list)
        key_text[n - 2] = '\0';
    return *key_text ? take(owner, &told) : 0;
}

int npmrc_parse(const char *text, int (*take)(void *owner, const struct npmrc_line *line),
                void       *owner)
{
    for (const char *p = text; *p; p += strspn(p, "\r\n")) {
        struct slice line = {p, strcspn(p, "\r\n")}, inner = trimmed(line);
        p += line.size;
        if (inner.size == 0 || *inner.p == ';' || *inner.p == '#' || line.size > LINE_MAX_BYTES)
            continue;
        if (is_section(line))
            return 0; /* nothing leads back out of a section */
        if (take_line(line, take, owner) < 0)
            return -1;
    }
    return 0;
}

/* ---- variables ---- */

struct variable {
    size_t slashes; /* backslashes in front */
    size_t size;    /* of all of it, those included; 0: none here */
    char   name[NAME_MAX_BYTES];
    bool   or_nothing;
};

/* What begins at p: \\\${NAME} with its backslashes. */
static struct variable read_variable(const char *p)
{
    struct variable v = {.slashes = strspn(p, "\\")};
    const char     *name = p + v.slashes + 2;
    size_t          n;

    if (strncmp(p + v.slashes, "${", 2) != 0)
        return v;
    n = strcspn(name, "${}?");
    v.or_nothing = name[n] == '?';
    if (n == 0 || n >= sizeof v.name || name[n + v.or_nothing] != '}')
        return v;
    memcpy(v.name, name, n);
    v.name[n] = '\0';
    v.size = (size_t)(name + n + v.or_nothing + 1 - p);
    return v;
}

static int add_variable(const char *p, const struct variable *v, const char *(*get)(const char *),
                        struct buf *ret)
{
    const char *value = get(v->name);

    if (v->slashes % 2 == 1) {
        size_t dropped = (v->slashes + 1) / 2;
        return buf_add(ret, p + dropped, v->size - dropped);
    }
    if (buf_add(ret, p, v->slashes / 2) < 0)
        return -1;
    if (value)
        return buf_add(ret, value, strlen(value));
    return v->or_nothing ? 0 : buf_printf(ret, "${%s}", v->name);
}

int npmrc_expand(const char *text, const char *(*get)(const char *name), struct buf *ret)
{
    for (const char *p = text; *p;) {
        struct variable v = read_variable(p);
        size_t          plain = v.slashes > 0 ? v.slashes : 1;
        if (v.size > 0 ? add_variable(p, &v, get, ret) < 0 : buf_add(ret, p, plain) < 0)
            return -1;
        p += v.size > 0 ? v.size : plain;
    }
    return 0;
}

int npmrc_has_variable(const char *text)
{
    for (const char *p = strchr(text, '$'); p; p = strchr(p + 1, '$'))
        if (read_variable(p).size > 0)
            return 1;
    return 0;
}
