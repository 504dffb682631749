#include "base/json.h"

#include <stdlib.h>
#include <string.h>

static json_t *load(const char *text, size_t size, json_error_t *at)
{
    return json_loadb(text, size, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, at);
}

json_t *json_parse(const char *text, size_t size, struct err *e)
{
    json_error_t at;
    json_t      *j = load(text, size, &at);

    if (!j)
        err_set(e, ERR_INVALID, "not JSON at line %d, column %d: %s", at.line, at.column, at.text);
    return j;
}

json_t *json_parse_told(const char *text, size_t size, bool *ret_is_json, struct err *e)
{
    json_error_t         at;
    json_t              *j = load(text, size, &at);
    enum json_error_code code = j ? json_error_unknown : json_error_code(&at);

    if (j) {
        *ret_is_json = true;
        return j;
    }
    *ret_is_json = code == json_error_duplicate_key || code == json_error_numeric_overflow ||
                   code == json_error_null_character || code == json_error_null_byte_in_key ||
                   code == json_error_stack_overflow;
    err_set(e, ERR_INVALID, "%s at line %d, column %d: %s",
            *ret_is_json ? "JSON that is refused here," : "not JSON", at.line, at.column, at.text);
    return NULL;
}

/* How many bytes the character at `p` has; 0: it is none (RFC 3629). */
static size_t character_size(const unsigned char *p, size_t size)
{
    size_t n = p[0] < 0x80 ? 1 : p[0] < 0xc2 ? 0 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;

    if (n == 0 || n > size || p[0] > 0xf4)
        return 0;
    for (size_t i = 1; i < n; i++)
        if ((p[i] & 0xc0) != 0x80)
            return 0;
    if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] >= 0xa0) || /* overlong, surrogate */
        (p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] >= 0x90))   /* overlong, too large */
        return 0;
    return n;
}

json_t *json_text(const char *text, size_t size)
{
    static const char replacement[] = "\xef\xbf\xbd";
    json_t           *j = json_stringn(text, size);
    char             *mended, *out;

    if (j)
        return j;
    mended = out = malloc(3 * size);
    if (!mended)
        abort();
    for (size_t i = 0, n; i < size; i += n ? n : 1) {
        n = character_size((const unsigned char *)text + i, size - i);
        memcpy(out, n ? text + i : replacement, n ? n : 3);
        out += n ? n : 3;
    }
    j = json_stringn(mended, (size_t)(out - mended));
    free(mended);
    if (!j)
        abort();
    return j;
}
