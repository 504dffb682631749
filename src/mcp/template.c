#include "mcp/template.h"

#include <string.h>

bool template_is(const char *uri)
{
    return strchr(uri, '{') != NULL;
}

/* A variable ends where the literal that follows it begins; the last one takes the rest. */
static size_t value_size(const char *uri, const char *literal, bool with_slashes)
{
    size_t      length = strcspn(literal, "{");
    size_t      longest = with_slashes ? strlen(uri) : strcspn(uri, "/");
    const char *at = uri;

    if (length == 0)
        return longest;
    while ((at = strchr(at, literal[0])) && (size_t)(at - uri) <= longest) {
        if (strncmp(at, literal, length) == 0)
            return (size_t)(at - uri);
        at++;
    }
    return 0;
}

json_t *template_match(const char *pattern, const char *uri)
{
    json_t *variables = json_object();

    while (*pattern) {
        const char *end = *pattern == '{' ? strchr(pattern, '}') : NULL;
        if (!end) {
            if (*pattern++ != *uri++)
                goto mismatch;
            continue;
        }
        bool        plus = pattern[1] == '+';
        const char *name = pattern + 1 + plus;
        size_t      size = value_size(uri, end + 1, plus);
        if (size == 0)
            goto mismatch;
        json_t *value = json_stringn(uri, size);
        if (!value ||
            json_object_setn_new_nocheck(variables, name, (size_t)(end - name), value) < 0)
            goto mismatch;
        uri += size;
        pattern = end + 1;
    }
    if (!*uri)
        return variables;
mismatch:
    json_decref(variables);
    return NULL;
}
