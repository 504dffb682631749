#include "npm/search_query.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

enum { FOUND = 20 }; /* more than are shown: not every registry orders by popularity */

/* Everything but what a URL leaves alone; a "+" would be a blank there. */
static void encode(struct buf *ret, const char *text, size_t size)
{
    for (const char *c = text; c < text + size; c++)
        if (isascii((unsigned char)*c) && (isalnum((unsigned char)*c) || strchr("-_.~", *c)))
            buf_add(ret, c, 1);
        else
            buf_printf(ret, "%%%02X", (unsigned char)*c);
}

static int check(const char *name, const char *text, struct err *e)
{
    if (!*text)
        return err_set(e, ERR_INVALID, "%s is empty", name);
    for (const char *c = text; *c; c++)
        if (isspace((unsigned char)*c) || iscntrl((unsigned char)*c))
            return err_set(e, ERR_INVALID, "%s has a blank or a control character in it", name);
    return 0;
}

static void encode_text(struct buf *ret, const char *text)
{
    encode(ret, text, strlen(text));
}

static int add_words(struct buf *ret, const char *term, struct err *e)
{
    bool any = false;

    TRY(check("searchTerm", term, e));
    for (size_t n; *term; term += n + (term[n] == '+')) {
        n = strcspn(term, "+");
        if (n > 0 && any)
            encode_text(ret, " ");
        encode(ret, term, n);
        any = any || n > 0;
    }
    return any ? 0 : err_set(e, ERR_INVALID, "searchTerm has no word in it");
}

static int add_qualifier(struct buf *ret, const char *name, const char *word, const char *value,
                         struct err *e)
{
    if (!value)
        return 0;
    TRY(check(name, value, e));
    encode_text(ret, " ");
    encode_text(ret, word);
    encode_text(ret, ":");
    encode_text(ret, value);
    return 0;
}

int search_query(const struct search_terms *t, struct buf *ret, struct err *e)
{
    const struct {
        const char *name, *word, *value;
    } rows[] = {
        {"author", "author", t->author},
        {"maintainer", "maintainer", t->maintainer},
        {"scope", "scope", t->scope && *t->scope == '@' ? t->scope + 1 : t->scope},
        {"keywords", "keywords", t->keywords},
        {"not", "not", t->not },
        {"is", "is", t->is},
        {"boostExact", "boost-exact", t->boost_exact},
    };

    if (t->boost_exact && strcmp(t->boost_exact, "true") != 0 &&
        strcmp(t->boost_exact, "false") != 0)
        return err_set(e, ERR_INVALID, "boostExact must be true or false");
    buf_printf(ret, "-/v1/search?text=");
    TRY(add_words(ret, t->term, e));
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        TRY(add_qualifier(ret, rows[i].name, rows[i].word, rows[i].value, e));
    if (buf_printf(ret, "&size=%d&popularity=1.0&quality=0.0&maintenance=0.0", FOUND) < 0)
        return err_set(e, ERR_INVALID, "the search is too long");
    return 0;
}
