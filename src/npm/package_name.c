#include "npm/package_name.h"

#include <ctype.h>
#include <string.h>

static bool is_letter(char c)
{
    return isascii((unsigned char)c) && (isalnum((unsigned char)c) || (c && strchr("-._~", c)));
}

static bool is_word(const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (!is_letter(text[i]))
            return false;
    return size > 0;
}

bool package_name_is_part(const char *text, size_t size)
{
    return is_word(text, size) && !strchr("._-", text[0]);
}

bool package_name_is_one(const char *text, size_t size)
{
    static const char reserved[] = "node_modules";
    const char       *slash = memchr(text, '/', size);

    if (size == 0 || size > PACKAGE_NAME_MAX)
        return false;
    if (text[0] == '@')
        return slash && is_word(text + 1, (size_t)(slash - text - 1)) &&
               package_name_is_part(slash + 1, (size_t)(text + size - slash - 1));
    return package_name_is_part(text, size) &&
           !(size == strlen(reserved) && memcmp(text, reserved, size) == 0);
}
