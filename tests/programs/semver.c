/* semver - answers lines "=RANGE<tab>VERSION" with what npm/semver.h says: 1 accepted, 0 not, -1 no
 * range, "none": no version; and lines "<tab>VERSION<tab>VERSION" with their order. For a test that
 * asks npm's own package the same. */
#include <stdio.h>
#include <string.h>

#include "npm/semver.h"

static void answer(const char *range, const char *version)
{
    struct semver v;

    if (semver_parse(version, &v) < 0)
        puts("none");
    else
        printf("%d\n", semver_range_test(range, &v));
}

static void answer_order(char *pair)
{
    char         *other = strchr(pair, '\t');
    struct semver a, b;
    int           order;

    if (other)
        *other++ = '\0';
    if (!other || semver_parse(pair, &a) < 0 || semver_parse(other, &b) < 0) {
        puts("none");
        return;
    }
    order = semver_compare(&a, &b);
    printf("%d\n", (order > 0) - (order < 0));
}

int main(void)
{
    char line[4096];

    while (fgets(line, sizeof line, stdin)) {
        char *tab = strchr(line, '\t');
        line[strcspn(line, "\n")] = '\0';
        if (!tab)
            return 2;
        *tab = '\0';
        if (tab == line)
            answer_order(tab + 1);
        else
            answer(line + 1, tab + 1); /* behind a mark: a range may be empty */
    }
    return 0;
}
