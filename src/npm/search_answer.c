#include "npm/search_answer.h"

#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "npm/package_name.h"

enum { FOUND_MAX = 250 }; /* what a registry gives at most */

struct found {
    const char *name, *description;
    double      popularity, downloads;
    size_t      place; /* in the answer */
};

static int compare(double a, double b)
{
    return (a < b) - (a > b); /* the larger first */
}

static int by_popularity(const void *a, const void *b)
{
    const struct found *x = a, *y = b;
    int                 c = compare(x->popularity, y->popularity);

    if (c == 0)
        c = compare(x->downloads, y->downloads);
    return c ? c : (x->place > y->place) - (x->place < y->place);
}

static bool read_found(const json_t *object, struct found *ret)
{
    const json_t *package = json_object_get(object, "package");
    const json_t *detail = json_object_get(json_object_get(object, "score"), "detail");
    const char   *description = json_string_value(json_object_get(package, "description"));

    ret->name = json_string_value(json_object_get(package, "name"));
    ret->description = description ? description : "";
    ret->popularity = json_number_value(json_object_get(detail, "popularity"));
    ret->downloads =
        json_number_value(json_object_get(json_object_get(object, "downloads"), "monthly"));
    return ret->name && package_name_is_one(ret->name, strlen(ret->name));
}

static json_t *describe(const struct found *f)
{
    size_t size = utf8_first((const uint8_t *)f->description, strlen(f->description),
                             SEARCH_ANSWER_DESCRIPTION);

    return json_pack("{s:s, s:s%}", "name", f->name, "description", f->description, size);
}

json_t *search_answer_pick(const json_t *answer, size_t max)
{
    const json_t *objects = json_object_get(answer, "objects");
    struct found  found[FOUND_MAX];
    json_t       *object, *list;
    size_t        i, n = 0;

    if (!json_is_array(objects))
        return NULL;
    json_array_foreach ((json_t *)objects, i, object) {
        if (n < FOUND_MAX && read_found(object, &found[n]))
            found[n++].place = i;
    }
    qsort(found, n, sizeof found[0], by_popularity);
    list = json_array();
    for (i = 0; i < n && i < max; i++)
        json_array_append_new(list, describe(&found[i]));
    return list;
}
