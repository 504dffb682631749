#include "npm/search_answer.h"

#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

/* What a registry gives at most; npm's own limit on names, and several times that on what stands
 * in a search. */
enum { FOUND_MAX = 250, NAME_BYTES = 214, DESCRIPTION_BYTES = 1000 };

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
    return ret->name && strlen(ret->name) <= NAME_BYTES;
}

static json_t *cut(const char *text)
{
    size_t size = strnlen(text, DESCRIPTION_BYTES);

    return json_stringn(text, size - utf8_cut_end((const uint8_t *)text, size));
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
        json_array_append_new(list, json_pack("{s:s, s:o}", "name", found[i].name, "description",
                                              cut(found[i].description)));
    return list;
}
