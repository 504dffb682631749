/* Every example in docs/pipe.md is a frame that the codec accepts, of the type it stands under. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "pipe/frame.h"

static enum peer senders(const char *line)
{
    enum peer from = 0;

    if (strstr(line, "server"))
        from |= PEER_SERVER;
    if (strstr(line, "init"))
        from |= PEER_INIT;
    if (strstr(line, "jail"))
        from |= PEER_JAIL;
    return from;
}

static void check(const char *name, const char *from_line, const uint8_t *bytes, size_t size)
{
    struct frame f;
    struct err   e = {0};
    char         from[64] = "";
    int          n = 0;

    snprintf(from, sizeof from, "%.*s", (int)strcspn(from_line, "."), from_line);
    for (enum peer p = PEER_SERVER; p <= PEER_JAIL; p <<= 1) {
        long length = frame_parse(bytes, size, p, &f, &e);
        assert_true((senders(from) & p) ? length == (long)size : length < 0);
        if (length == (long)size) {
            assert_string_equal(frame_type_name(f.type), name);
            n++;
        }
    }
    assert_true(n > 0);
}

static void test_examples(void **state)
{
    FILE   *doc = fopen(PIPE_DOC, "r");
    char    line[1024], name[64] = "", from[1024] = "";
    uint8_t bytes[1024];
    size_t  size = 0, examples = 0, types = 0;
    int     in_code = 0;

    (void)state;
    assert_non_null(doc);
    while (fgets(line, sizeof line, doc)) {
        if (sscanf(line, "### %63s", name) == 1)
            continue;
        if (strncmp(line, "From: ", 6) == 0)
            snprintf(from, sizeof from, "%.1000s", line);
        if (strncmp(line, "```", 3) == 0) {
            in_code = !in_code;
            if (!in_code && ++examples)
                check(name, from, bytes, size);
            size = 0;
        } else if (in_code) {
            for (char *p = line; *p && *p != '\n'; p += 3)
                bytes[size++] = (uint8_t)strtoul(p, NULL, 16);
        }
    }
    fclose(doc);
    for (unsigned t = 0; t < 256; t++)
        types += frame_type_name(t) != NULL;
    assert_int_equal(examples, types); /* each message has one */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_examples)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
