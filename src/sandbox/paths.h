/* paths - relative paths in order, with a value each: a directory and all below it stand together.
 *
 * The order is that of a walk: part by part, bytes as numbers, so that "a" comes before "a/b" and
 * that before "a-b". Pointers to paths and values hold until their own path is removed. Lookups
 * cost the logarithm of the number, whatever the names: the balance is by chance of our own. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct paths {
    struct path *root;
    size_t       n;
    size_t       bytes; /* that all of them hold, about */
    size_t       value_size;
    uint64_t     chance;
};

void paths_init(struct paths *s, size_t value_size);
void paths_done(struct paths *s);

void *paths_find(const struct paths *s, const char *path); /* its value, or NULL */
void *paths_put(struct paths *s, const char *path);        /* the same; zeros if it is new */
void  paths_remove(struct paths *s, const char *path);     /* fine if it is not there */

/* The first one behind `path` (which need not be there; NULL: of all), or NULL; `past`: behind
 * everything below it, too. */
enum paths_from { PATHS_AFTER, PATHS_PAST };
const char *paths_next(const struct paths *s, const char *path, enum paths_from from,
                       void **ret_value);

int  paths_compare(const char *a, const char *b);
bool paths_is_below(const char *path, const char *dir); /* everything is below "" */
