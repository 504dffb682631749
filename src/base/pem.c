#include "base/pem.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { LABEL_MAX = 40 };

static const char begin[] = "-----BEGIN ", dashes[] = "-----";

/* "CERTIFICATE", and the older "X509 CERTIFICATE" and "TRUSTED CERTIFICATE". */
static bool is_certificate(const char *label, size_t size)
{
    static const char word[] = "CERTIFICATE";
    const size_t      n = sizeof word - 1;

    return size >= n && size < LABEL_MAX && memcmp(label + size - n, word, n) == 0;
}

const char *pem_next_certificate(const char *text, size_t *ret_size)
{
    for (; (text = strstr(text, begin)); text++) {
        const char *label = text + sizeof begin - 1, *end = strstr(label, dashes);
        char        last[LABEL_MAX + 16];

        if (!end || !is_certificate(label, (size_t)(end - label)))
            continue;
        snprintf(last, sizeof last, "-----END %.*s-----", (int)(end - label), label);
        label = strstr(end + sizeof dashes - 1, dashes);
        if (!label || strncmp(label, last, strlen(last)) != 0)
            continue; /* something else begins before it ends */
        *ret_size = (size_t)(label - text) + strlen(last);
        return text;
    }
    return NULL;
}
