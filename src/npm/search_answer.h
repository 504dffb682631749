/* search_answer - what a registry found, ordered and cut. The answer is hostile. Pure. */
#pragma once

#include "base/json.h"

/* The most popular ones, at most `max`: an array of {name, description}. By
 * score.detail.popularity, where that is the same by downloads, else in the registry's own order.
 * A name that npm would not take is left out, a description cut behind 1,000 bytes.
 * NULL: this is no answer to a search. The caller frees. */
json_t *search_answer_pick(const json_t *answer, size_t max);
