/* json - jansson, with our cleanup and our strictness: duplicates, bad UTF-8 and trailing bytes are
 * refused. It runs at 18 MB/s, and the loop stands still meanwhile: who parses there bounds what it
 * takes. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

static inline void autojson_done(json_t **j)
{
    json_decref(*j);
}

#define autojson __attribute__((cleanup(autojson_done)))

json_t *json_parse(const char *text, size_t size, struct err *e); /* NULL on error */

/* The same for who must tell what is not JSON from JSON that we refuse: duplicate names, \u0000,
 * numbers past 64 bits, depth past 2048. Behind the first such place the text was not looked at. */
json_t *json_parse_told(const char *text, size_t size, bool *ret_is_json, struct err *e);

/* A JSON string of any bytes: what is not UTF-8 becomes U+FFFD. Never NULL. */
json_t *json_text(const char *text, size_t size);
