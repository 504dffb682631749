/* search_query - a search as npm's registries want it asked: GET REGISTRY/-/v1/search?text=…, where
 * the text is words and qualifiers (author:NAME, boost-exact:false) separated by blanks. Pure. */
#pragma once

#include "base/buf.h"
#include "base/err.h"

struct search_terms {
    const char *term; /* words, joined by "+" */
    const char *author, *maintainer, *scope, *keywords, *not, *is, *boost_exact; /* or NULL */
};

enum { SEARCH_QUERY_MAX = 8 << 10 };

/* ERR_INVALID: a term or qualifier is empty, has a blank in it, or a value it cannot have; or all
 * of it is longer than `ret` takes. */
int search_query(const struct search_terms *terms, struct buf *ret, struct err *e);
