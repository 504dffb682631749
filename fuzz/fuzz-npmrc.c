/* fuzz-npmrc - the text of an npmrc, which may come with somebody else's checkout.
 *
 * Asserted: a key is never empty; a text without variables is its own expansion; what is expanded
 * stays within its maximum. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "npm/npmrc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { EXPANDED_MAX = 4096 };

static void require(int truth)
{
    if (!truth)
        abort();
}

static const char *get(const char *name)
{
    return *name == 'A' ? "a longer value than its name, with ${A} in it" : NULL;
}

static void expand(const char *text)
{
    struct buf b;

    buf_init(&b, EXPANDED_MAX);
    if (npmrc_expand(text, get, &b) == 0 && !npmrc_has_variable(text))
        require(b.size == strlen(text) && (b.size == 0 || memcmp(b.data, text, b.size) == 0));
    require(b.size <= EXPANDED_MAX);
    buf_done(&b);
}

static int take(void *owner, const struct npmrc_line *line)
{
    (void)owner;
    require(*line->key != '\0');
    expand(line->key);
    expand(line->value);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = calloc(1, size + 1);

    require(text != NULL);
    memcpy(text, data, size);
    require(npmrc_parse(text, take, NULL) == 0);
    free(text);
    return 0;
}
