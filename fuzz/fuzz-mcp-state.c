/* fuzz-mcp-state - requestState, as a client might make it, change it, or use it again.
 *
 * An input is a subject, a content, and a text, separated by newlines; of the text, every three
 * bytes are one change to a sealed state (what, where, with which byte), and the text itself is
 * tried as a state too. Asserted: what was not sealed, or was changed in any way, never opens; what
 * was sealed opens once, for its subject alone, with its content. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/fd.h"
#include "base/str.h"
#include "mcp/state.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct states *states;

static void must_refuse(const char *subject, const char *text)
{
    struct err       e = {0};
    autojson json_t *opened = states_open(states, subject, text, &e);

    assert(!opened && e.kind == ERR_INVALID && e.msg[0]);
}

/* Applies the changes; NULL-ended, the caller frees. */
static char *changed(const char *sealed, const char *changes)
{
    size_t size = strlen(sealed);
    char  *text = malloc(size + strlen(changes) + 1);

    memcpy(text, sealed, size + 1);
    for (; changes[0] && changes[1] && changes[2] && size > 0; changes += 3) {
        size_t at = (unsigned char)changes[1] * size / 256;
        switch (changes[0] % 4) {
        case 0: /* another byte */
            text[at] = changes[2];
            break;
        case 1: /* one more */
            memmove(text + at + 1, text + at, size++ - at + 1);
            text[at] = changes[2];
            break;
        case 2: /* one less */
            memmove(text + at, text + at + 1, size-- - at);
            break;
        case 3: /* the end is missing */
            text[at] = '\0';
            size = at;
            break;
        }
    }
    return text;
}

/* The payload that base64 hides is changed, the MAC is not. */
static char *forged(const char *sealed, const char *changes)
{
    const char             *dot = strchr(sealed, '.');
    size_t                  size;
    autofree unsigned char *payload = base64_decode(sealed, (size_t)(dot - sealed), &size);
    autofree char          *plain = strndup((char *)payload, size);
    autofree char          *other = changed(plain, changes);
    autofree char          *left = base64_encode(other, strlen(other));

    return str_format("%s%s", left, dot);
}

/* The last digit before the padding has bits that are not part of the MAC. */
static void try_last_digits(const char *subject, const char *sealed)
{
    autofree char *other = strdup(sealed);
    char          *last = other + strlen(other) - 2;

    for (*last = '+'; *last <= 'z'; ++*last)
        if (strcmp(other, sealed) != 0)
            must_refuse(subject, other);
}

static void try_one(const char *subject, json_t *content, const char *text)
{
    struct err       e = {0};
    autofree char   *sealed = states_seal(states, subject, content);
    autofree char   *other_subject = str_format("%s.", subject);
    autojson json_t *opened = NULL;

    must_refuse(subject, text);
    assert(sealed);
    autofree char *broken = changed(sealed, text), *forgery = forged(sealed, text);
    if (strcmp(broken, sealed) != 0)
        must_refuse(subject, broken);
    if (strcmp(forgery, sealed) != 0)
        must_refuse(subject, forgery);
    must_refuse(other_subject, sealed);
    try_last_digits(subject, sealed);
    opened = states_open(states, subject, sealed, &e);
    assert(opened && json_equal(opened, content));
    must_refuse(subject, sealed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    autofree char *input = strndup((const char *)data, size);
    char *content = strchr(input, '\n'), *text = content ? strchr(content + 1, '\n') : NULL;

    states = states ? states : states_new(STATES_WINDOW);
    if (!text)
        return 0;
    *content++ = '\0';
    *text++ = '\0';
    json_t *j = json_loads(content, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, NULL);
    j = j ? j : json_stringn_nocheck("x", 1);
    try_one(input, j, text);
    json_decref(j);
    return 0;
}
