#include "transport/origin.h"

#include <arpa/inet.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

static const char *const local_names[] = {"localhost", "[::1]", NULL};

static bool is_in(const char *const *list, const char *name, size_t length)
{
    for (; list && *list; list++)
        if (strlen(*list) == length && strncasecmp(*list, name, length) == 0)
            return true;
    return false;
}

/* NAME, NAME:PORT, [ADDRESS], [ADDRESS]:PORT: the length of the name, or 0 when it is none. */
static size_t name_length(const char *authority)
{
    size_t length = *authority == '[' ? strcspn(authority, "]") + 1 : strcspn(authority, ":");

    if (*authority == '[' && authority[length - 1] != ']')
        return 0;
    if (authority[length] == '\0')
        return length;
    if (authority[length] != ':' ||
        strspn(authority + length + 1, "0123456789") != strlen(authority + length + 1))
        return 0;
    return length;
}

/* 127.0.0.2 and its neighbours: numbers, which no name server can give another meaning. */
static bool is_loopback(const char *name, size_t length)
{
    char           text[INET_ADDRSTRLEN];
    struct in_addr address;

    if (length >= sizeof text)
        return false;
    memcpy(text, name, length);
    text[length] = '\0';
    return inet_pton(AF_INET, text, &address) == 1 && ntohl(address.s_addr) >> 24 == 127;
}

static bool is_known(const struct origin_rules *rules, const char *authority)
{
    size_t length = name_length(authority);

    return length > 0 && (is_in(local_names, authority, length) || is_loopback(authority, length) ||
                          is_in(rules->hosts, authority, length));
}

bool origin_allows_host(const struct origin_rules *rules, const char *host)
{
    bool is_open = !rules->local_only && !(rules->hosts && *rules->hosts);

    return is_open || (host && is_known(rules, host));
}

bool origin_allows(const struct origin_rules *rules, const char *origin)
{
    static const char *const schemes[] = {"http://", "https://"};

    if (!origin)
        return true;
    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++)
        if (strncasecmp(origin, schemes[i], strlen(schemes[i])) == 0)
            return is_known(rules, origin + strlen(schemes[i]));
    return false; /* "null" too: a sandboxed frame, a file */
}
