/* fuzz-types - which file of a package holds its types, and what that one names.
 *
 * An input is package.json, a NUL, names of files separated by newlines, a NUL, the text that each
 * of them has, or, if it is a package.json, the module that its directory means. Asserted: what is
 * found is one of the files, and what is shown has its bounds. */
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/str.h"
#include "npm/types_entry.h"
#include "npm/types_gather.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { SHOWN_MAX = 300 };

static void require(int truth)
{
    if (!truth)
        abort();
}

/* What stands before the next NUL; *at moves behind it. */
static char *take_part(const uint8_t **at, size_t *size)
{
    const uint8_t *end = *size ? memchr(*at, '\0', *size) : NULL;
    size_t         n = end ? (size_t)(end - *at) : *size;
    char          *part = str_ndup((const char *)*at, n);

    *at += n + (end != NULL);
    *size -= n + (end != NULL);
    return part;
}

static const char package_json[] = "/package.json";

static void add_files(struct declarations *d, char *names, const char *text, size_t text_size)
{
    for (char *name = strtok(names, "\n"); name; name = strtok(NULL, "\n")) {
        size_t size = strlen(name);
        if (size >= PATH_MAX)
            continue;
        if (size > strlen(package_json) &&
            strcmp(name + size - strlen(package_json), package_json) == 0) {
            autofree char *module = str_ndup(text, strnlen(text, text_size));
            declarations_add_directory(d, name, module);
        }
        if (!declarations_is_one(name))
            continue;
        declarations_add(d, name, d->n % 5 == 2 ? 0 : (int64_t)text_size); /* an empty one */
        if (d->n % 5 == 4) /* one that was not kept */
            continue;
        d->list[d->n - 1].text = malloc(text_size + 1);
        require(d->list[d->n - 1].text != NULL);
        if (text_size)
            memcpy(d->list[d->n - 1].text, text, text_size);
        d->list[d->n - 1].text_size = (size_t)d->list[d->n - 1].size;
    }
    declarations_sort(d);
}

static void gather(const json_t *package, struct declarations *d, struct declaration *entry)
{
    autobuf struct buf text;
    autojson json_t   *left_out = json_array();

    require(entry >= d->list && entry < d->list + d->n && !entry->means);
    buf_init(&text, SHOWN_MAX + 2 * PATH_MAX);
    types_gather(package, d, entry, SHOWN_MAX, &text, left_out);
    require(text.size <= SHOWN_MAX || text.size <= strlen(entry->path) + 8);
    require(json_array_size(left_out) <= 41);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct declarations d = {0};
    const uint8_t      *at = data ? data : (const uint8_t *)"";
    autofree char      *json = take_part(&at, &size), *names = take_part(&at, &size);
    autojson json_t    *package = json_loads(json, 0, NULL);
    struct declaration *entry;

    add_files(&d, names, (const char *)at, size);
    entry = types_entry(package, &d);
    if (entry)
        gather(package, &d, entry);
    declarations_done(&d);
    return 0;
}
