#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "base/utf8.h"
#include "sandbox/keep.h"

static size_t open_files(void)
{
    DIR   *dir = opendir("/proc/self/fd");
    size_t n = 0;

    assert_non_null(dir);
    while (readdir(dir))
        n++;
    closedir(dir);
    return n;
}

static bool add(struct keep *k, const char *text)
{
    return keep_add(k, (const uint8_t *)text, strlen(text));
}

/* Frees what the answer holds after a look at it. */
static void expect(const struct keep *k, const char *uri, const char *text, uint64_t left_out,
                   size_t mended)
{
    struct keep_text t = keep_text(k, uri);

    assert_string_equal(t.text, text);
    assert_int_equal(t.size, strlen(text));
    assert_int_equal(t.left_out, left_out);
    assert_int_equal(t.mended, mended);
    free(t.text);
}

static void expect_whole(const struct keep *k, const uint8_t *bytes, size_t size)
{
    static const size_t pieces[] = {1, 7, 64, 100000};

    for (size_t i = 0; i < sizeof pieces / sizeof pieces[0]; i++) {
        autobuf struct buf b;
        size_t             before;

        buf_init(&b, size + 1);
        do {
            before = b.size;
            assert_int_equal(keep_read(k, b.size, pieces[i], &b, NULL), 0);
            assert_true(b.size - before <= pieces[i]);
        } while (b.size > before);
        assert_int_equal(b.size, size);
        if (size > 0)
            assert_memory_equal(b.data, bytes, size);
    }
}

static void little_is_all_there_and_makes_no_file(void **state)
{
    struct keep *k = keep_new(10, 100, "/tmp");
    size_t       before = open_files();

    (void)state;
    expect(k, "uri", "", 0, 0);
    expect_whole(k, NULL, 0);
    assert_true(add(k, "1234"));
    expect(k, "uri", "1234", 0, 0);
    assert_true(add(k, "56789"));
    assert_true(add(k, "0"));
    expect(k, "uri", "1234567890", 0, 0);
    expect_whole(k, (const uint8_t *)"1234567890", 10);
    assert_int_equal(open_files(), before);
    assert_true(add(k, "1")); /* one more than is shown */
    assert_int_equal(open_files(), before + 1);
    expect(k, "uri", "12345\n[… 1 bytes left out; the whole output: uri …]\n78901", 1, 0);
    expect(k, NULL, "12345\n[… 1 bytes left out …]\n78901", 1, 0);
    expect_whole(k, (const uint8_t *)"12345678901", 11);
    keep_free(k);
    assert_int_equal(open_files(), before);
}

/* Against the plain bytes, however they come and wherever the file is. */
static void all_of_it_comes_back(void **state)
{
    enum { SIZE = 20000 };
    static const size_t      pieces[] = {1, 3, 9, 10, 11, 64, 4096, SIZE};
    static const char *const places[] = {"/tmp", "/nowhere", NULL};
    uint8_t                  bytes[SIZE];

    (void)state;
    for (size_t i = 0; i < SIZE; i++)
        bytes[i] = (uint8_t)('a' + i * 7 % 26);
    for (size_t p = 0; p < 8; p++)
        for (size_t d = 0; d < 3; d++) {
            struct keep   *k = keep_new(21, SIZE, places[d]);
            autofree char *text = str_format("%.10s\n[… 19,979 bytes left out …]\n%.11s",
                                             (char *)bytes, (char *)bytes + SIZE - 11);
            for (size_t at = 0; at < SIZE; at += pieces[p]) {
                size_t n = pieces[p] < SIZE - at ? pieces[p] : SIZE - at;
                assert_true(keep_add(k, bytes + at, n));
            }
            assert_int_equal(keep_size(k), SIZE);
            assert_true(keep_is_whole(k));
            expect(k, NULL, text, SIZE - 21, 0);
            expect_whole(k, bytes, SIZE);
            keep_free(k);
        }
}

static void more_than_may_be_kept_is_told(void **state)
{
    struct keep *k = keep_new(4, 10, "/tmp");

    (void)state;
    assert_true(add(k, "0123456789"));
    assert_true(add(k, ""));
    assert_false(add(k, "x"));
    assert_int_equal(keep_size(k), 10);
    keep_free(k);
    k = keep_new(4, 10, "/tmp");
    assert_false(add(k, "0123456789abc")); /* the part that fits is there */
    assert_false(add(k, "x"));
    expect(k, NULL, "01\n[… 6 bytes left out …]\n89", 6, 0);
    expect_whole(k, (const uint8_t *)"0123456789", 10);
    keep_free(k);
}

static void characters_are_not_cut(void **state)
{
    static const char euro[] = "\xe2\x82\xac";

    (void)state;
    for (size_t shown = 6; shown < 30; shown++) {
        struct keep     *k = keep_new(shown, 1000, "/tmp");
        struct keep_text t;
        for (size_t i = 0; i < 20; i++)
            assert_true(add(k, euro));
        t = keep_text(k, NULL);
        assert_int_equal(t.mended, 0);
        assert_true(utf8_is_valid((uint8_t *)t.text, t.size));
        assert_true(t.left_out >= 60 - shown && t.left_out <= 60 - shown + 4);
        assert_int_equal(t.left_out % 3, 0);
        assert_null(strstr(t.text, "\xef\xbf\xbd"));
        free(t.text);
        keep_free(k);
    }
}

static void a_character_may_lie_across_the_halves(void **state)
{
    struct keep *k = keep_new(8, 100, "/tmp");

    (void)state;
    assert_true(add(k, "123\xe2\x82\xac"));
    expect(k, NULL, "123\xe2\x82\xac", 0, 0);
    keep_free(k);
}

static void bytes_that_are_no_text_are_replaced_and_kept(void **state)
{
    static const uint8_t bytes[] = {'a', 0xff, 0, 0xc3, 'b', 0xe2, 0x82};
    struct keep         *k = keep_new(100, 1000, "/tmp");
    struct keep_text     t;

    (void)state;
    assert_true(keep_add(k, bytes, sizeof bytes));
    t = keep_text(k, NULL);
    assert_int_equal(t.mended, 4);
    assert_int_equal(t.left_out, 0);
    assert_int_equal(t.size, 1 + 3 + 1 + 3 + 1 + 6);
    assert_memory_equal(t.text,
                        "a\xef\xbf\xbd\0\xef\xbf\xbd"
                        "b\xef\xbf\xbd\xef\xbf\xbd",
                        t.size);
    free(t.text);
    expect_whole(k, bytes, sizeof bytes);
    keep_free(k);
}

static void garbage_of_any_size_has_room(void **state)
{
    struct keep *k = keep_new(1000, 100000, "/tmp");
    uint8_t      bytes[5000];

    (void)state;
    memset(bytes, 0xff, sizeof bytes);
    for (size_t i = 0; i < 10; i++) {
        struct keep_text t;
        assert_true(keep_add(k, bytes, i * 500));
        t = keep_text(k, "sandbox://a/rather/long/uri/for/this");
        assert_true(t.size <= 3000 + 256);
        free(t.text);
    }
    keep_free(k);
}

/* A disk without space: the answer is there, the middle is not. */
static void a_full_disk_loses_the_middle_only(void **state)
{
    struct rlimit      before, none = {50, 50};
    struct keep       *k = keep_new(20, 100000, "/tmp");
    struct err         e = {0};
    autobuf struct buf b;
    size_t             fds = open_files();

    (void)state;
    buf_init(&b, 1000);
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    none.rlim_max = before.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
    for (size_t i = 0; i < 10; i++)
        assert_true(add(k, "0123456789"));
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_true(add(k, "abcdefghij"));
    assert_false(keep_is_whole(k));
    assert_int_equal(keep_size(k), 110);
    assert_int_equal(open_files(), fds);
    assert_int_equal(keep_read(k, 0, 100, &b, &e), -1);
    assert_int_equal(e.kind, ERR_UNAVAILABLE);
    expect(k, "uri", "0123456789\n[… 90 bytes left out …]\nabcdefghij", 90, 0);
    keep_free(k);
}

static void no_name_is_left_on_the_disk(void **state)
{
    char           dir[] = "/tmp/keep-test-XXXXXX";
    struct dirent *d;

    (void)state;
    assert_non_null(mkdtemp(dir));
    struct keep *k = keep_new(2, 100, dir);
    assert_true(add(k, "12345"));
    DIR *open_dir = opendir(dir);
    while ((d = readdir(open_dir)))
        assert_int_equal(d->d_name[0], '.');
    closedir(open_dir);
    keep_free(k);
    assert_int_equal(rmdir(dir), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(little_is_all_there_and_makes_no_file),
        cmocka_unit_test(all_of_it_comes_back),
        cmocka_unit_test(more_than_may_be_kept_is_told),
        cmocka_unit_test(characters_are_not_cut),
        cmocka_unit_test(a_character_may_lie_across_the_halves),
        cmocka_unit_test(bytes_that_are_no_text_are_replaced_and_kept),
        cmocka_unit_test(garbage_of_any_size_has_room),
        cmocka_unit_test(a_full_disk_loses_the_middle_only),
        cmocka_unit_test(no_name_is_left_on_the_disk),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
