#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/fd.h"
#include "base/str.h"
#include "mcp/state.h"

enum { WINDOW = 4096 };

/* The linker puts this in the place of the C library's. */
static time_t ahead_s;

int __real_clock_gettime(clockid_t clock, struct timespec *ret);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ret);

int __wrap_clock_gettime(clockid_t clock, struct timespec *ret)
{
    int r = __real_clock_gettime(clock, ret);

    ret->tv_sec += ahead_s;
    return r;
}

static int begin(void **state)
{
    ahead_s = 0;
    *state = states_new(WINDOW);
    return 0;
}

static int end(void **state)
{
    states_free(*state);
    return 0;
}

static char *seal(struct states *s, const char *subject, const char *content)
{
    autojson json_t *j = json_loads(content, JSON_DECODE_ANY, NULL);
    char            *text = states_seal(s, subject, j);

    assert_non_null(j);
    assert_non_null(text);
    return text;
}

static void must_open(struct states *s, const char *subject, const char *text, const char *content)
{
    struct err       e = {0};
    autojson json_t *opened = states_open(s, subject, text, &e);

    if (!opened)
        fail_msg("%s", e.msg);
    assert_int_equal(e.kind, ERR_NONE);
    autofree char *dumped = json_dumps(opened, JSON_COMPACT | JSON_ENCODE_ANY);
    assert_string_equal(dumped, content);
}

static void must_refuse(struct states *s, const char *subject, const char *text, const char *says)
{
    struct err e = {0};

    if (states_open(s, subject, text, &e))
        fail_msg("opens: %s", text);
    assert_int_equal(e.kind, ERR_INVALID);
    if (!strstr(e.msg, says))
        fail_msg("says: %s", e.msg);
}

static void opens_once(void **state)
{
    static const char *const contents[] = {"{}",
                                           "\"\"",
                                           "\"ä\\n\"",
                                           "[1,2.5,true,null]",
                                           "{\"a\":{\"b\":[\"c\"]}}",
                                           "9223372036854775807"};

    for (size_t i = 0; i < sizeof contents / sizeof *contents; i++) {
        autofree char *text = seal(*state, "alice tools/call", contents[i]);
        must_open(*state, "alice tools/call", text, contents[i]);
        must_refuse(*state, "alice tools/call", text, "used already");
    }
}

/* Each has its own bit, whatever the order. */
static void opens_in_any_order(void **state)
{
    char *texts[20];

    for (size_t i = 0; i < 20; i++)
        texts[i] = seal(*state, "a", "1");
    for (size_t i = 0; i < 20; i++)
        must_open(*state, "a", texts[i * 7 % 20], "1");
    for (size_t i = 0; i < 20; i++) {
        must_refuse(*state, "a", texts[i], "used already");
        free(texts[i]);
    }
}

static void is_of_one_subject(void **state)
{
    autofree char *text = seal(*state, "alice", "{}"), *empty = seal(*state, "", "{}");

    must_refuse(*state, "bob", text, "not one of ours");
    must_refuse(*state, "alic", text, "not one of ours");
    must_refuse(*state, "alicee", text, "not one of ours");
    must_refuse(*state, "", text, "not one of ours");
    must_refuse(*state, "alice", empty, "not one of ours");
    must_open(*state, "alice", text, "{}"); /* those attempts did not use it */
    must_open(*state, "", empty, "{}");
}

static void is_of_one_server(void **state)
{
    struct states *other = states_new(WINDOW);
    autofree char *text = seal(other, "a", "{}");

    must_refuse(*state, "a", text, "not one of ours");
    states_free(other);
}

static void notices_every_change(void **state)
{
    autofree char *text = seal(*state, "a", "{\"k\":\"some content\"}");
    size_t         size = strlen(text);

    for (size_t i = 0; i < size; i++) {
        autofree char *other = strdup(text), *cut = strndup(text, i);
        for (int k = 1; k < 256; k++) {
            other[i] = (char)(text[i] ^ k);
            must_refuse(*state, "a", other, "not one of ours");
        }
        must_refuse(*state, "a", cut, "not one of ours");
        autofree char *more = str_format("%sA%s", cut, text + i);
        must_refuse(*state, "a", more, "not one of ours");
    }
    must_refuse(*state, "a", ".", "not one of ours");
    must_refuse(*state, "a", "", "not one of ours");
    must_open(*state, "a", text, "{\"k\":\"some content\"}");
}

/* The payload of one with the MAC of another. */
static void halves_do_not_mix(void **state)
{
    autofree char *one = seal(*state, "a", "1"), *two = seal(*state, "a", "2");
    const char    *dot = strchr(one, '.');
    autofree char *mixed = str_format("%.*s%s", (int)(dot - one), one, strchr(two, '.'));

    must_refuse(*state, "a", mixed, "not one of ours");
}

static void expires(void **state)
{
    autofree char *old = seal(*state, "a", "1"), *older = seal(*state, "a", "2");

    ahead_s += 599;
    must_open(*state, "a", old, "1");
    ahead_s += 2;
    must_refuse(*state, "a", older, "expired");
    must_refuse(*state, "a", old, "expired");
    autofree char *young = seal(*state, "a", "3");
    must_open(*state, "a", young, "3");
}

/* Used ones are remembered for as many as the window holds; what fell out of it does not open. */
static void forgets_safely(void **state)
{
    autofree char   *used = seal(*state, "a", "1"), *unused = seal(*state, "a", "2");
    autofree char   *last = seal(*state, "a", "3");
    autojson json_t *nothing = json_null();

    must_open(*state, "a", used, "1");
    for (int i = 0; i < WINDOW - 1; i++)
        free(states_seal(*state, "", nothing));
    must_refuse(*state, "a", used, "expired"); /* its bit is another's now */
    must_refuse(*state, "a", unused, "expired");
    must_open(*state, "a", last, "3");
    must_refuse(*state, "a", last, "used already");
}

static void has_a_maximum(void **state)
{
    for (size_t size = 60000; size <= 70000; size += 10000) {
        autofree char   *text = calloc(1, size + 1);
        autojson json_t *content = json_string(memset(text, 'x', size));
        autofree char   *sealed = states_seal(*state, "a", content);
        assert_true(size < 65536 ? sealed != NULL : sealed == NULL);
    }
    assert_null(states_seal(*state, "a", NULL));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(opens_once),       TEST(opens_in_any_order),   TEST(is_of_one_subject),
        TEST(is_of_one_server), TEST(notices_every_change), TEST(halves_do_not_mix),
        TEST(expires),          TEST(forgets_safely),       TEST(has_a_maximum),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
