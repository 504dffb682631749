/* fuzz-semver - versions and ranges, as they stand in the registry's documents and in package.json.
 *
 * An input is a range, a newline, a version. Asserted: answers are of the three kinds, a version is
 * equal to itself, and a version taken as a range accepts that version. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "npm/semver.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int truth)
{
    if (!truth)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char         *range = calloc(1, size + 1), *version;
    struct semver v, again;

    require(range != NULL);
    memcpy(range, data, size);
    version = strchr(range, '\n');
    if (version)
        *version++ = '\0';
    else
        version = range + strlen(range);

    if (semver_parse(version, &v) == 0) {
        int r = semver_range_test(range, &v);

        require(r >= -1 && r <= 1);
        require(semver_parse(version, &again) == 0 && semver_compare(&v, &again) == 0);
        require(semver_range_test(version, &v) == 1);
        require(strspn(version, "0123456789.-+abcdefghijklmnopqrstuvwxyz"
                                "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == strlen(version));
    }
    semver_range_test(range, &(struct semver){.n = {1, 2, 3}});
    free(range);
    return 0;
}
