#include "npm/document.h"

#include <ctype.h>
#include <string.h>

#include "base/fd.h"
#include "base/utf8.h"

/* What jansson allocates, about: for an object, a member, an element. A document of 30 MB that
 * lists versions takes half of the limit. */
enum { OBJECT_BYTES = 240, MEMBER_BYTES = 160, ELEMENT_BYTES = 40, PARSED_MAX = 512 << 20 };

enum { ESCAPE = 6, PAIR = 12 }; /* \u0000, \ud83d\ude00 */

static const char no_character[] = {'f', 'f', 'f', 'd'};

/* ---- escapes ---- */

/* The unit that "\u...." at `p` stands for, or -1. */
static int unit_at(const char *p, const char *end)
{
    int unit = 0;

    if (end - p < ESCAPE || p[0] != '\\' || p[1] != 'u')
        return -1;
    for (int i = 2; i < ESCAPE; i++) {
        char c = (char)tolower((unsigned char)p[i]);
        if (!isxdigit((unsigned char)c))
            return -1;
        unit = unit * 16 + (c <= '9' ? c - '0' : c - 'a' + 10);
    }
    return unit;
}

static bool is_high(int unit)
{
    return unit >= 0xd800 && unit < 0xdc00;
}

static bool is_low(int unit)
{
    return unit >= 0xdc00 && unit < 0xe000;
}

/* Mends the escape at `p`; returns what is behind it. */
static char *mend_escape(char *p, const char *end)
{
    int unit = unit_at(p, end);

    if (unit < 0)
        return end - p < 2 ? p + 1 : p + 2;
    if (is_high(unit) && is_low(unit_at(p + ESCAPE, end)))
        return p + PAIR;
    if (unit == 0 || is_high(unit) || is_low(unit))
        memcpy(p + 2, no_character, sizeof no_character);
    return p + ESCAPE;
}

/* From behind the quote to behind the next one. */
static char *mend_string(char *p, const char *end)
{
    while (p < end && *p != '"')
        p = *p == '\\' ? mend_escape(p, end) : p + 1;
    return p < end ? p + 1 : p;
}

/* ---- all of it ---- */

/* Mends what is in strings and counts what is outside. */
static int mend(char *p, const char *end, struct err *e)
{
    int64_t bytes = 0;

    while (p < end) {
        char c = *p++;
        if (c == '"')
            p = mend_string(p, end);
        else if (c == '{')
            bytes += OBJECT_BYTES;
        else if (c == ':')
            bytes += MEMBER_BYTES;
        else if (c == ',' || c == '[')
            bytes += ELEMENT_BYTES;
        if (bytes > PARSED_MAX)
            return err_set(e, ERR_LIMIT, "the registry's answer has too many values");
    }
    return 0;
}

static json_t *parse(const char *text, size_t size)
{
    autobuf struct buf whole;

    buf_init(&whole, 3 * size + 1);
    if (!utf8_is_valid((const uint8_t *)text, size)) {
        utf8_mend((const uint8_t *)text, size, &whole);
        text = (const char *)whole.data;
        size = whole.size;
    }
    return json_loadb(text, size, JSON_DECODE_ANY | JSON_DECODE_INT_AS_REAL, NULL);
}

json_t *document_parse(char *text, size_t size, struct err *e)
{
    static const char mark[] = "\xef\xbb\xbf";
    json_t           *document;

    if (size >= strlen(mark) && memcmp(text, mark, strlen(mark)) == 0) {
        text += strlen(mark);
        size -= strlen(mark);
    }
    if (mend(text, text + size, e) < 0)
        return NULL;
    document = parse(text, size);
    if (!document)
        err_set(e, ERR_INVALID, "the registry's answer is not JSON");
    return document;
}
