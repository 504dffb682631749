#include "egress/names.h"

#include <stdlib.h>

#include "base/json.h"

enum { NAMES_MAX = 8192, FIRST = 256 }; /* 198.18.0.x stays free: the name server is there */

struct names {
    json_t *by_name; /* to its number */
    json_t *list;    /* of names, by number */
};

struct names *names_new(void)
{
    struct names *n = malloc(sizeof *n);

    if (!n)
        abort();
    *n = (struct names){json_object(), json_array()};
    return n;
}

void names_free(struct names *n)
{
    if (!n)
        return;
    json_decref(n->by_name);
    json_decref(n->list);
    free(n);
}

static struct ip address_of(size_t number)
{
    size_t at = number + FIRST;

    return ip_from_v4(
        (uint8_t[]){198, (uint8_t)(18 + (at >> 16)), (uint8_t)(at >> 8), (uint8_t)at});
}

int names_take(struct names *n, const char *name, struct ip *ret)
{
    json_t *known = json_object_get(n->by_name, name);
    size_t  number = known ? (size_t)json_integer_value(known) : json_array_size(n->list);

    if (number >= NAMES_MAX)
        return -1;
    if (!known) {
        json_object_set_new(n->by_name, name, json_integer((json_int_t)number));
        json_array_append_new(n->list, json_string(name));
    }
    *ret = address_of(number);
    return 0;
}

bool names_is_made_up(const struct ip *address)
{
    struct ip first = ip_from_v4((uint8_t[]){198, 18, 0, 0});

    return ip_is_inside(address, &first, 96 + 15);
}

const char *names_find(const struct names *n, const struct ip *address)
{
    const uint8_t *four = address->bytes + 12;
    size_t         at = (size_t)(four[1] - 18) << 16 | (size_t)four[2] << 8 | four[3];

    if (!names_is_made_up(address) || at < FIRST)
        return NULL;
    return json_string_value(json_array_get(n->list, at - FIRST));
}
