#include "base/json.h"

json_t *json_parse(const char *text, size_t size, struct err *e)
{
    json_error_t at;
    json_t      *j = json_loadb(text, size, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &at);

    if (!j)
        err_set(e, ERR_INVALID, "not JSON at line %d, column %d: %s", at.line, at.column, at.text);
    return j;
}
