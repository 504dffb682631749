/* declarations - the TypeScript files of a package: their names, and what is known of their texts.
 *
 * The files are a list that is made once (declarations_add, then declarations_sort) and then asked:
 * declarations_find turns what a package.json or an import says ("./dist/index.js", "lib") into the
 * file that has its types, as the compiler looks for it. Paths are relative to the package. Pure.
 *
 * A directory of the package may have a package.json of its own, which says what its name means
 * ("pkg/sub" is then another file): such a one is in the list, too, and is no declaration. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct declaration {
    char               *path;
    int64_t             size;      /* of the file */
    char               *text;      /* its beginning, or NULL: it was not kept */
    char               *means;     /* of a directory's package.json: the module; else NULL */
    size_t              text_size; /* of what was kept */
    bool                is_listed; /* among what is gathered (npm/types_gather.h) */
    struct declaration *next;      /* of those, in the order in which they were met */
};

struct declarations {
    struct declaration *list;
    size_t              n, room;
};

bool declarations_is_one(const char *path); /* by its name */
void declarations_add(struct declarations *d, const char *path, int64_t size);
/* `module` is relative to the package.json's directory. */
void declarations_add_directory(struct declarations *d, const char *path, const char *module);
void declarations_sort(struct declarations *d); /* once, after the last was added */
void declarations_done(struct declarations *d);

struct declaration *declarations_get(const struct declarations *d, const char *path); /* or NULL */

/* What `module` means in the file `from` ("": in the package's directory); NULL: there is none, or
 * it leads out of the package. */
struct declaration *declarations_find(const struct declarations *d, const char *from,
                                      const char *module);
