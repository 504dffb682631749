#include "base/json.h"

#include <stdlib.h>

#include "base/buf.h"
#include "base/utf8.h"

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

json_t *json_text(const char *text, size_t size)
{
    json_t            *j = json_stringn(size ? text : "", size); /* an empty buffer has no bytes */
    autobuf struct buf mended = {0};

    if (j)
        return j;
    buf_init(&mended, 3 * size);
    utf8_mend((const uint8_t *)text, size, &mended);
    j = json_stringn((const char *)mended.data, mended.size);
    if (!j)
        abort();
    return j;
}
