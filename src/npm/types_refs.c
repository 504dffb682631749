#include "npm/types_refs.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

/* What stood before a string decides whether it names a module. */
enum word { WORD_OTHER, WORD_MODULE /* from, import, require */, WORD_CALL /* import( require( */ };

struct scan {
    const char      *p, *end;
    enum word        last;
    types_refs_take *take;
    void            *owner;
};

static bool is_at(const struct scan *s, const char *text)
{
    size_t n = strlen(text);

    return (size_t)(s->end - s->p) >= n && memcmp(s->p, text, n) == 0;
}

static void tell(struct scan *s, const char *path, size_t size)
{
    char copy[TYPES_REF_MAX];

    if (size == 0 || size >= sizeof copy || memchr(path, '\0', size))
        return;
    memcpy(copy, path, size);
    copy[size] = '\0';
    s->take(s->owner, copy);
}

static const char *find(const char *p, const char *end, const char *text)
{
    return p < end ? memmem(p, (size_t)(end - p), text, strlen(text)) : NULL;
}

static const char *skip_blanks(const char *p, const char *end)
{
    while (p < end && isspace((unsigned char)*p))
        p++;
    return p;
}

/* The value of an attribute of a tag: path="a.d.ts". */
static const char *read_attribute(const char *tag, const char *end, const char *name,
                                  size_t *ret_size)
{
    const char *at = tag, *quote;

    do {
        at = find(at, end, name);
        if (!at)
            return NULL;
        at = skip_blanks(at + strlen(name), end);
    } while (at == end || *at != '=');
    at = skip_blanks(at + 1, end);
    if (at == end || (*at != '"' && *at != '\''))
        return NULL;
    quote = memchr(at + 1, *at, (size_t)(end - at - 1));
    if (!quote)
        return NULL;
    *ret_size = (size_t)(quote - at - 1);
    return at + 1;
}

/* "/// <reference path="a.d.ts" />"; types="./a" is a file as well, types="node" is a package. */
static void read_reference(struct scan *s, const char *end)
{
    const char *tag = find(s->p, end, "<reference"), *value;
    size_t      size;

    if (!tag)
        return;
    value = read_attribute(tag, end, "path", &size);
    if (value)
        tell(s, value, size);
    value = read_attribute(tag, end, "types", &size);
    if (value && *value == '.')
        tell(s, value, size);
}

static void skip_line(struct scan *s)
{
    const char *end = memchr(s->p, '\n', (size_t)(s->end - s->p));

    if (!end)
        end = s->end;
    if (is_at(s, "///"))
        read_reference(s, end);
    s->p = end;
}

static void skip_comment(struct scan *s)
{
    const char *end = find(s->p + 2, s->end, "*/");

    s->p = end ? end + 2 : s->end;
}

/* A line ends a string that nothing else has ended; a template goes on. */
static void read_string(struct scan *s)
{
    char        quote = *s->p++;
    const char *start = s->p;

    while (s->p < s->end && *s->p != quote && (quote == '`' || *s->p != '\n'))
        s->p += *s->p == '\\' && s->end - s->p > 1 ? 2 : 1;
    if (s->last != WORD_OTHER && quote != '`' && start < s->end && (*start == '.' || *start == '#'))
        tell(s, start, (size_t)(s->p - start));
    if (s->p < s->end)
        s->p++;
    s->last = WORD_OTHER;
}

static bool is_letter(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '$' || (unsigned char)c >= 0x80;
}

static void read_word(struct scan *s)
{
    static const char *const words[] = {"from", "import", "require", NULL};
    const char              *start = s->p;
    size_t                   size;

    while (s->p < s->end && is_letter(*s->p))
        s->p++;
    size = (size_t)(s->p - start);
    s->last = WORD_OTHER;
    for (size_t i = 0; words[i]; i++)
        if (strlen(words[i]) == size && memcmp(words[i], start, size) == 0)
            s->last = WORD_MODULE;
}

static void read_mark(struct scan *s)
{
    if (!isspace((unsigned char)*s->p))
        s->last = *s->p == '(' && s->last == WORD_MODULE ? WORD_CALL : WORD_OTHER;
    s->p++;
}

void types_refs(const char *text, size_t size, types_refs_take *take, void *owner)
{
    struct scan s = {.p = text, .end = text + size, .take = take, .owner = owner};

    while (s.p < s.end)
        if (is_at(&s, "//"))
            skip_line(&s);
        else if (is_at(&s, "/*"))
            skip_comment(&s);
        else if (strchr("\"'`", *s.p) && *s.p)
            read_string(&s);
        else if (is_letter(*s.p))
            read_word(&s);
        else
            read_mark(&s);
}
