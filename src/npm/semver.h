/* semver - versions and npm's ranges, as the npm package `semver` understands them.
 *
 * Nothing is allocated: a parsed version borrows its prerelease from the text it was parsed from.
 * Texts over SEMVER_MAX bytes are no versions and no ranges. What semver_parse accepts holds only
 * digits, letters, dots, hyphens and one plus, so it may stand in a file name. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { SEMVER_MAX = 256 };

struct semver {
    uint64_t    n[3]; /* major, minor, patch */
    const char *pre;  /* "rc.1" of 1.0.0-rc.1; not NUL-ended */
    size_t      pre_size;
};

/* The whole text, without a leading "v" or blanks; build metadata is read and forgotten. */
int semver_parse(const char *text, struct semver *ret);
int semver_compare(const struct semver *a, const struct semver *b);

/* 1 when the range accepts the version, 0 when not, -1 when the text is no range. A prerelease is
 * accepted only beside a comparator that names a prerelease of the same major.minor.patch. */
int semver_range_test(const char *range, const struct semver *v);
