/* search_answer - what a registry found, ordered and cut. The answer is hostile. Pure. */
#pragma once

#include "base/json.h"

enum { SEARCH_ANSWER_DESCRIPTION = 1000 }; /* characters that are kept of one */

/* The most popular ones, at most `max`: an array of {name, description}. By
 * score.detail.popularity, where that is the same by downloads, else in the registry's own order.
 * What has no name of npm/package_name.h is left out. NULL: this is no answer to a search. The
 * caller frees. */
json_t *search_answer_pick(const json_t *answer, size_t max);
