#include "store/image.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"

static const struct tag {
    const char *name, *range;
    bool        any_version;
} tags[] = {
    {"lts", "24", true}, /* by hand: no tag of the registry tells which line is LTS */
    {"latest", "*", true}, {"current", "*", true}, {"krypton", "24"}, {"jod", "22"},
    {"iron", "20"},        {"hydrogen", "18"},     {"gallium", "16"},
};

static const char *const systems[] = {"alpine", "trixie", "bookworm", "bullseye", "buster"};

/* "slim", "bookworm", "bookworm-slim", "alpine3.22". */
static bool is_variant(const char *s)
{
    for (size_t i = 0; i < sizeof systems / sizeof *systems; i++)
        if (str_starts(s, systems[i])) {
            s += strlen(systems[i]);
            s += strspn(s, "0123456789.");
            return !*s || strcmp(s, "-slim") == 0;
        }
    return strcmp(s, "slim") == 0;
}

/* "24", "24.1", "24.1.0": a range as it stands. */
static bool is_version(const char *s, size_t size)
{
    size_t numbers = 0, i = 0;

    while (i < size && numbers < 3) {
        size_t digits = 0;
        while (i + digits < size && isdigit((unsigned char)s[i + digits]))
            digits++;
        if (digits == 0 || digits > 4 || (digits > 1 && s[i] == '0'))
            return false;
        i += digits;
        numbers++;
        if (i < size && (s[i++] != '.' || i == size))
            return false;
    }
    return numbers > 0 && i == size;
}

static bool parse_tag(const char *s, size_t size, struct image *ret)
{
    for (size_t i = 0; i < sizeof tags / sizeof *tags; i++)
        if (size == strlen(tags[i].name) && memcmp(s, tags[i].name, size) == 0) {
            snprintf(ret->range, sizeof ret->range, "%s", tags[i].range);
            ret->any_version = tags[i].any_version;
            return true;
        }
    if (!is_version(s, size))
        return false;
    snprintf(ret->range, sizeof ret->range, "%.*s", (int)size, s);
    ret->any_version = false;
    return true;
}

static const char *without(const char *s, const char *prefix)
{
    return str_starts(s, prefix) ? s + strlen(prefix) : s;
}

int image_parse(const char *name, struct image *ret, struct err *e)
{
    const char  *repository = without(without(name, "docker.io/"), "library/");
    const char  *tag = without(repository, "node:");
    size_t       size = strcspn(tag, "-");
    struct image image;

    /* "node" and "node:slim" mean the latest; a bare "alpine" is another image altogether. */
    if (strcmp(repository, "node") == 0 || (tag != repository && is_variant(tag)))
        return image_parse("latest", ret, e);
    if ((repository != name && tag == repository) || !parse_tag(tag, size, &image) ||
        (tag[size] && !is_variant(tag + size + 1)))
        return err_set(
            e, ERR_INVALID,
            "image \"%.80s\" is not known: use node:lts-slim, node:current, or a version "
            "such as node:24, node:24.1 or node:24.1.0, with or without -slim",
            name);
    *ret = image;
    return 0;
}
