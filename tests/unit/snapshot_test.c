#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/fd.h"
#include "box/snapshot.h"

#define FILE_ROW(name, bytes, time)                                                                \
    {                                                                                              \
        .kind = ROW_FILE, .size = bytes, .mtime_ns = time, .path = name                            \
    }
#define DIR_ROW(name)                                                                              \
    {                                                                                              \
        .kind = ROW_DIR, .path = name                                                              \
    }

struct rows {
    const struct listing_row *list;
    size_t                    n;
    bool                      cut;
};
#define ROWS(is_cut, ...)                                                                          \
    (struct rows)                                                                                  \
    {                                                                                              \
        (const struct listing_row[]){__VA_ARGS__},                                                 \
            sizeof((const struct listing_row[]){__VA_ARGS__}) / sizeof(struct listing_row), is_cut \
    }

/* "path change" a line. */
static void assert_changes(struct rows before, struct rows after, const char *expected)
{
    struct snapshot                  a = {0}, b = {0};
    autofree struct snapshot_change *list = NULL;
    autobuf struct buf               text;
    size_t                           n;

    buf_init(&text, 4096);
    snapshot_fill(&a, "files/", before.list, before.n, before.cut);
    snapshot_fill(&b, "files/", after.list, after.n, after.cut);
    list = snapshot_compare(&a, &b, &n);
    for (size_t i = 0; i < n; i++)
        buf_printf(&text, "%s %s\n", list[i].file->path, files_change_name(list[i].change));
    assert_string_equal(buf_text(&text), expected);
    snapshot_done(&a);
    snapshot_done(&b);
}

static void created_updated_deleted(void **state)
{
    (void)state;
    assert_changes(ROWS(false, DIR_ROW("files/sub"), FILE_ROW("files/same", 1, 1),
                        FILE_ROW("files/longer", 1, 1), FILE_ROW("files/gone", 1, 1),
                        FILE_ROW("files/sub/newer", 1, 1)),
                   ROWS(false, DIR_ROW("files/sub"), DIR_ROW("files/other"),
                        FILE_ROW("files/longer", 2, 1), FILE_ROW("files/sub/newer", 1, 2),
                        FILE_ROW("files/other/made", 0, 9), FILE_ROW("files/same", 1, 1)),
                   "gone deleted\nlonger updated\nother/made created\nsub/newer updated\n");
}

static void only_one_of_them_has_files(void **state)
{
    const struct rows none = ROWS(false, DIR_ROW("files/x"));
    const struct rows two = ROWS(false, FILE_ROW("files/b", 1, 1), FILE_ROW("files/a\nb", 1, 1));

    (void)state;
    assert_changes(none, none, "");
    assert_changes(two, two, "");
    assert_changes(none, two, "a\nb created\nb created\n");
    assert_changes(two, none, "a\nb deleted\nb deleted\n");
}

/* A file takes the place of a directory, and the other way round. */
static void kinds_change(void **state)
{
    (void)state;
    assert_changes(ROWS(false, DIR_ROW("files/x"), FILE_ROW("files/x/y", 1, 1)),
                   ROWS(false, FILE_ROW("files/x", 1, 1)), "x created\nx/y deleted\n");
}

static void what_was_left_out_is_not_told_as_gone(void **state)
{
    const struct rows whole = ROWS(false, FILE_ROW("files/a", 1, 1), FILE_ROW("files/b", 1, 1));
    const struct rows part = ROWS(true, FILE_ROW("files/b", 2, 1), FILE_ROW("files/c", 1, 1));

    (void)state;
    assert_changes(whole, part, "b updated\n");
    assert_changes(part, whole, "b updated\n");
}

static void what_is_elsewhere_does_not_count(void **state)
{
    (void)state;
    assert_changes(ROWS(false, FILE_ROW("index.js", 1, 1)),
                   ROWS(false, FILE_ROW("index.js", 2, 2), FILE_ROW("filesx", 1, 1)), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(created_updated_deleted),
        cmocka_unit_test(only_one_of_them_has_files),
        cmocka_unit_test(kinds_change),
        cmocka_unit_test(what_was_left_out_is_not_told_as_gone),
        cmocka_unit_test(what_is_elsewhere_does_not_count),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
