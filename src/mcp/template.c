/* A pattern is cut into parts: literals and variables. Whether the parts from p on can match the
 * uri from i on is kept in a table, filled from the end, so that each question is answered once:
 * the work is parts times bytes, whatever the pattern. Values are then read off from the front.
 *
 * A variable goes through the uri in steps, a byte or a whole escape each; an escape that no value
 * may have is no step. */
#include "mcp/template.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/str.h"

enum { PARTS_MAX = 2 * TEMPLATE_VARIABLES_MAX + 1 };

struct part {
    enum { LITERAL, SEGMENT, PATH } kind;
    const char *text; /* the literal, or the variable's name */
    size_t      size;
};

bool template_is(const char *uri)
{
    return strchr(uri, '{') != NULL;
}

/* What the text begins with, and where that ends. A brace that is never closed is a literal. */
static struct part first_part(const char *text, const char **ret_end)
{
    const char *close = *text == '{' ? strchr(text, '}') : NULL, *brace;
    bool        plus = text[1] == '+';

    if (close) {
        const char *name = text + 1 + plus;
        *ret_end = close + 1;
        return (struct part){plus ? PATH : SEGMENT, name, (size_t)(close - name)};
    }
    brace = strchr(text + 1, '{');
    *ret_end = brace ? brace : text + strlen(text);
    return (struct part){LITERAL, text, (size_t)(*ret_end - text)};
}

/* How many parts; -1: too many. */
static int cut(const char *pattern, struct part ret[PARTS_MAX])
{
    int n = 0;

    while (*pattern) {
        if (n == PARTS_MAX)
            return -1;
        ret[n++] = first_part(pattern, &pattern);
    }
    return n;
}

/* ---- matching ---- */

/* The byte that stands at `at`, escaped or not; -1: a bad escape. */
static int byte_at(const char *at)
{
    if (*at != '%')
        return (uint8_t)*at;
    if (str_hex_digit(at[1]) < 0 || str_hex_digit(at[2]) < 0)
        return -1;
    return str_hex_digit(at[1]) << 4 | str_hex_digit(at[2]);
}

/* The size of the next character of a value; 0: none that it may have. */
static size_t step(const struct part *variable, const char *at)
{
    int byte = byte_at(at);

    if (byte <= 0 || (byte == '/' && (*at == '%' || variable->kind == SEGMENT)))
        return 0;
    return *at == '%' ? 3 : 1;
}

/* One row a part and one for the end, size + 1 columns. The caller frees. */
static bool *fill_table(const struct part *parts, size_t n, const char *uri, size_t size)
{
    bool *table = calloc((n + 1) * (size + 1), sizeof *table);

    if (!table)
        abort();
    table[n * (size + 1) + size] = true;
    for (size_t p = n; p-- > 0;) {
        bool *here = table + p * (size + 1), *next = here + size + 1;
        for (size_t i = size + 1; i-- > 0;) {
            size_t k = parts[p].kind == LITERAL ? parts[p].size : step(&parts[p], uri + i);
            if (parts[p].kind == LITERAL)
                here[i] = k <= size - i && next[i + k] && memcmp(uri + i, parts[p].text, k) == 0;
            else
                here[i] = k > 0 && (next[i + k] || here[i + k]);
        }
    }
    return table;
}

/* The longest value from `i` on behind which the next row goes on. */
static size_t value_end(const struct part *variable, const char *uri, size_t i, const bool *next)
{
    size_t end = i, k;

    while ((k = step(variable, uri + i)) > 0) {
        i += k;
        if (next[i])
            end = i;
    }
    return end;
}

static bool has_dots(const char *path)
{
    for (const char *slash; path; path = slash ? slash + 1 : NULL) {
        slash = strchr(path, '/');
        size_t size = slash ? (size_t)(slash - path) : strlen(path);
        if ((size == 1 || size == 2) && strncmp(path, "..", size) == 0)
            return true;
    }
    return false;
}

/* A JSON string, or NULL when it must not be a value. */
static json_t *decode(const char *text, size_t size)
{
    autofree char *value = malloc(size + 1);
    size_t         n = 0;

    if (!value)
        abort();
    for (size_t i = 0; i < size; i += text[i] == '%' ? 3 : 1)
        value[n++] = (char)byte_at(text + i);
    value[n] = '\0';
    return has_dots(value) ? NULL : json_stringn(value, n);
}

static int read_values(const struct part *parts, size_t n, const char *uri, const bool *table,
                       json_t *ret)
{
    size_t width = strlen(uri) + 1, i = 0;

    for (size_t p = 0; p < n; p++) {
        size_t end = parts[p].kind == LITERAL
                         ? i + parts[p].size
                         : value_end(&parts[p], uri, i, table + (p + 1) * width);
        if (parts[p].kind != LITERAL &&
            json_object_setn_new(ret, parts[p].text, parts[p].size, decode(uri + i, end - i)) < 0)
            return -1;
        i = end;
    }
    return 0;
}

json_t *template_match(const char *pattern, const char *uri)
{
    struct part      parts[PARTS_MAX];
    int              n = cut(pattern, parts);
    size_t           size = strnlen(uri, TEMPLATE_URI_MAX + 1);
    autojson json_t *values = NULL;

    if (n < 0 || size > TEMPLATE_URI_MAX ||
        (n > 0 && parts[0].kind == LITERAL && strncmp(uri, parts[0].text, parts[0].size) != 0))
        return NULL;
    autofree bool *table = fill_table(parts, (size_t)n, uri, size);
    if (!table[0])
        return NULL;
    values = json_object();
    return read_values(parts, (size_t)n, uri, table, values) < 0 ? NULL : json_incref(values);
}

/* ---- making ---- */

/* All but what RFC 3986 calls unreserved is escaped, and the slashes of a path. Even what {+name}
 * could leave as it is: a '?' or '#' in a file's name would end the path for others. */
static void add_value(struct buf *uri, const struct part *variable, const char *value)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
                                "-._~";

    for (; *value; value++)
        if (strchr(plain, *value) || (*value == '/' && variable->kind == PATH))
            buf_add(uri, value, 1);
        else
            buf_printf(uri, "%%%02X", (uint8_t)*value);
}

/* What comes out is read back: the one way to know that it stands for these values. What does not
 * fit into the buffer is missing then. */
char *template_expand(const char *pattern, const json_t *values)
{
    struct part        parts[PARTS_MAX];
    int                n = cut(pattern, parts);
    autobuf struct buf uri;

    buf_init(&uri, TEMPLATE_URI_MAX + 1);
    for (int p = 0; p < n; p++) {
        const json_t *value = json_object_getn(values, parts[p].text, parts[p].size);
        if (parts[p].kind == LITERAL)
            buf_add(&uri, parts[p].text, parts[p].size);
        else
            add_value(&uri, &parts[p], json_is_string(value) ? json_string_value(value) : "");
    }
    const char      *text = buf_text(&uri);
    autojson json_t *back = text ? template_match(pattern, text) : NULL;
    return back && json_equal(back, values) ? str_dup(text) : NULL;
}
