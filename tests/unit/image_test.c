#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "store/image.h"

static const struct {
    const char *name, *range;
    bool        any_version;
} known[] = {
    {"node:lts-slim", "24", true},
    {"lts", "24", true},
    {"node:lts", "24", true},
    {"node:lts-alpine", "24", true},
    {"node", "*", true},
    {"node:latest", "*", true},
    {"latest", "*", true},
    {"node:current", "*", true},
    {"current-bookworm-slim", "*", true},
    {"node:slim", "*", true},
    {"node:alpine3.22", "*", true},
    {"docker.io/library/node", "*", true},
    {"docker.io/library/node:lts-slim", "24", true},
    {"docker.io/node:24", "24", false},
    {"library/node:24", "24", false},
    {"node:24", "24", false},
    {"24", "24", false},
    {"node:22.3", "22.3", false},
    {"22.3.1", "22.3.1", false},
    {"node:22.3.1-alpine3.20", "22.3.1", false},
    {"node:20-bullseye-slim", "20", false},
    {"node:20-trixie", "20", false},
    {"node:jod", "22", false},
    {"node:krypton-slim", "24", false},
    {"iron-bookworm", "20", false},
    {"node:0.12", "0.12", false},
};

static const char *const unknown[] = {
    "",
    "node:",
    "node:24.",
    "node:24.1.2.3",
    "node:024",
    "node:v24",
    "node:24-",
    "node:24-windows",
    "node:24-slim-slim",
    "node:^24",
    "node:24 || 22",
    "node:../../etc",
    "node:24@sha256:00",
    "node:99999",
    "alpine",
    "slim",
    "python:3",
    "docker.io/library/24",
    "docker.io/library/python:3",
    "node:lts-slim ",
    "NODE:lts",
    "deno:latest",
};

static void test_known(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        struct image image;
        struct err   e = {0};
        if (image_parse(known[i].name, &image, &e) < 0)
            fail_msg("\"%s\": %s", known[i].name, e.msg);
        assert_string_equal(image.range, known[i].range);
        assert_int_equal(image.any_version, known[i].any_version);
    }
}

static void test_unknown(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
        struct image image;
        struct err   e = {0};
        if (image_parse(unknown[i], &image, &e) == 0)
            fail_msg("\"%s\" was accepted", unknown[i]);
        assert_int_equal(e.kind, ERR_INVALID);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_known),
                                       cmocka_unit_test(test_unknown)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
