/* A treap: a search tree by path, a heap by a random number, and so about as deep as a balanced
 * one. The numbers come from a seed of the kernel's: whoever chooses the names cannot choose the
 * shape. */
#include "sandbox/paths.h"

#include <stdlib.h>
#include <string.h>

#include "base/random.h"

struct path {
    struct path *left, *right;
    uint64_t     chance;
    void        *value;  /* behind the name, in the same piece of memory */
    char         name[]; /* ends with NUL */
};

int paths_compare(const char *a, const char *b)
{
    while (*a && *a == *b)
        a++, b++;
    if (*a == *b)
        return 0;
    if (!*a || !*b)
        return *a ? 1 : -1;
    if (*a == '/' || *b == '/')
        return *a == '/' ? -1 : 1; /* a shorter part goes first, with all below it */
    return (unsigned char)*a < (unsigned char)*b ? -1 : 1;
}

bool paths_is_below(const char *path, const char *dir)
{
    size_t n = strlen(dir);

    return n == 0 ? *path != '\0' : strncmp(path, dir, n) == 0 && path[n] == '/';
}

/* ---- the tree ---- */

static uint64_t next_chance(struct paths *s)
{
    s->chance ^= s->chance << 13; /* xorshift: never zero, since the seed is not */
    s->chance ^= s->chance >> 7;
    s->chance ^= s->chance << 17;
    return s->chance;
}

/* All before `name` to the left; the rest to the right. */
static void split(struct path *p, const char *name, struct path **ret_left, struct path **ret_right)
{
    while (p) {
        if (paths_compare(p->name, name) < 0) {
            *ret_left = p;
            ret_left = &p->right;
            p = p->right;
        } else {
            *ret_right = p;
            ret_right = &p->left;
            p = p->left;
        }
    }
    *ret_left = *ret_right = NULL;
}

/* Of two trees, the left one before the right one. */
static struct path *join(struct path *left, struct path *right)
{
    struct path *whole = NULL, **at = &whole;

    while (left && right) {
        if (left->chance >= right->chance) {
            *at = left;
            at = &left->right;
            left = left->right;
        } else {
            *at = right;
            at = &right->left;
            right = right->left;
        }
    }
    *at = left ? left : right;
    return whole;
}

static size_t name_room(const char *name)
{
    return (strlen(name) + 1 + 15) / 16 * 16; /* so that the value behind it is aligned */
}

static size_t size_of(const struct paths *s, const char *name)
{
    return sizeof(struct path) + name_room(name) + s->value_size;
}

static struct path *path_new(struct paths *s, const char *name)
{
    struct path *p = calloc(1, size_of(s, name));

    if (!p)
        abort();
    memcpy(p->name, name, strlen(name) + 1);
    p->value = p->name + name_room(name);
    p->chance = next_chance(s);
    return p;
}

/* ---- the set ---- */

void paths_init(struct paths *s, size_t value_size)
{
    *s = (struct paths){.value_size = value_size};
    random_bytes(&s->chance, sizeof s->chance);
    s->chance |= 1;
}

void paths_done(struct paths *s)
{
    struct path *p = s->root;

    while (p) { /* turned into a list on the way: no stack, no second pass */
        struct path *next = p->left;
        if (next) {
            p->left = next->right;
            next->right = p;
        } else {
            next = p->right;
            free(p);
        }
        p = next;
    }
    *s = (struct paths){.value_size = s->value_size, .chance = s->chance};
}

void *paths_find(const struct paths *s, const char *path)
{
    struct path *p = s->root;

    while (p) {
        int order = paths_compare(path, p->name);
        if (order == 0)
            return p->value;
        p = order < 0 ? p->left : p->right;
    }
    return NULL;
}

void *paths_put(struct paths *s, const char *path)
{
    void         *known = paths_find(s, path);
    struct path **at = &s->root, *p;

    if (known)
        return known;
    p = path_new(s, path);
    while (*at && (*at)->chance > p->chance)
        at = paths_compare(path, (*at)->name) < 0 ? &(*at)->left : &(*at)->right;
    split(*at, path, &p->left, &p->right);
    *at = p;
    s->n++;
    s->bytes += size_of(s, path);
    return p->value;
}

void paths_remove(struct paths *s, const char *path)
{
    struct path **at = &s->root, *p;
    int           order;

    while (*at && (order = paths_compare(path, (*at)->name)) != 0)
        at = order < 0 ? &(*at)->left : &(*at)->right;
    p = *at;
    if (!p)
        return;
    *at = join(p->left, p->right);
    s->n--;
    s->bytes -= size_of(s, p->name);
    free(p);
}

const char *paths_next(const struct paths *s, const char *path, enum paths_from from,
                       void **ret_value)
{
    struct path *p = s->root, *best = NULL;

    while (p) {
        bool behind = !path || (paths_compare(p->name, path) > 0 &&
                                (from == PATHS_AFTER || !paths_is_below(p->name, path)));
        if (behind)
            best = p;
        p = behind ? p->left : p->right;
    }
    if (best && ret_value)
        *ret_value = best->value;
    return best ? best->name : NULL;
}
