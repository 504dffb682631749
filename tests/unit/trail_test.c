#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "trail/trail.h"

static char dir[64], path[160];
static char noted[512];

static void on_note(const char *sentence)
{
    snprintf(noted, sizeof noted, "%s", sentence);
}

static int set_up(void **state)
{
    (void)state;
    snprintf(dir, sizeof dir, "/tmp/trail-test-XXXXXX");
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/log", dir);
    *noted = '\0';
    return 0;
}

static int tear_down(void **state)
{
    static const char *const names[] = {"log", "log.1", "link", "files/log", "files"};

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        autofree char *name = str_format("%s/%s", dir, names[i]);
        remove(name);
    }
    return rmdir(dir);
}

static struct trail *open_trail(bool strict)
{
    struct trail_spec spec = {.path = path, .strict = strict, .note = on_note};
    struct err        e = {0};
    struct trail     *t = trail_open(&spec, &e);

    assert_string_equal(e.msg, "");
    return t;
}

static int write_why(struct trail *t, const char *why)
{
    struct err e = {0};

    return trail_write(t, TRAIL_SANDBOX_STOPPED, json_pack("{s:s}", "why", why), &e);
}

static char *read_file(const char *file)
{
    char      *text = NULL;
    struct err e = {0};

    file_read_text(AT_FDCWD, file, 4 << 20, &text, &e);
    assert_string_equal(e.msg, "");
    return text;
}

/* The n-th line of the file, from 0 on, as JSON; NULL: it is none. */
static json_t *line_at(const char *file, size_t n)
{
    autofree char *text = read_file(file);
    char          *at = text;

    while (n-- > 0) {
        at = strchr(at, '\n');
        assert_non_null(at++);
    }
    return json_parse(at, strcspn(at, "\n"), NULL);
}

static size_t count_lines(const char *file)
{
    autofree char *text = read_file(file);
    size_t         n = 0;

    for (const char *at = text; (at = strchr(at, '\n')); at++)
        n++;
    return n;
}

static const char *word(const json_t *line, const char *name)
{
    return json_string_value(json_object_get(line, name));
}

static json_int_t number(const json_t *line, const char *name)
{
    return json_integer_value(json_object_get(line, name));
}

/* Files grow to this size and no further. */
static void set_room(rlim_t bytes)
{
    struct rlimit limit;

    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur = bytes;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/* ---- lines ---- */

static void a_line_has_all_members_in_their_order(void **state)
{
    static const char *const names[] = {"time",  "server",  "line", "event",
                                        "owner", "sandbox", "why",  "ms"};
    struct trail            *t = open_trail(false);
    struct stat              st;
    const char              *key;
    json_t                  *value;
    size_t                   i = 0;

    (void)state;
    assert_int_equal(write_why(t, "idle"), 0);
    autojson json_t *line = line_at(path, 0);
    json_object_foreach (line, key, value) {
        assert_true(i < sizeof names / sizeof names[0]);
        assert_string_equal(key, names[i++]);
    }
    assert_int_equal(i, sizeof names / sizeof names[0]);
    assert_string_equal(word(line, "event"), "sandbox_stopped");
    assert_string_equal(word(line, "why"), "idle");
    assert_true(json_is_null(json_object_get(line, "ms")));
    assert_int_equal(number(line, "line"), 1);
    assert_int_equal(strlen(word(line, "time")), strlen("2026-01-02T03:04:05.678Z"));
    assert_int_equal(strlen(word(line, "server")), 8);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    trail_close(t);
}

static const char *const explained[] = {
#define NAME(name, what) name,
    TRAIL_MEMBERS(NAME)
#undef NAME
};
enum { EXPLAINED = sizeof explained / sizeof explained[0], OF_ALL = 4 };

/* Whether one of the events has it. */
static bool is_used(const char *name)
{
    for (int event = 0; event < TRAIL_EVENT_COUNT; event++) {
        autofree char *words = str_dup(events_members((enum trail_event)event));
        char          *rest = words, *word_of_it;
        while ((word_of_it = strsep(&rest, " ")))
            if (strcmp(word_of_it, name) == 0)
                return true;
    }
    return false;
}

static bool is_explained(const char *name)
{
    for (size_t i = 0; i < EXPLAINED; i++)
        if (strcmp(explained[i], name) == 0)
            return true;
    return false;
}

static void every_event_has_members_that_are_explained(void **state)
{
    (void)state;
    for (int event = 0; event < TRAIL_EVENT_COUNT; event++) {
        autofree char *words = str_dup(events_members((enum trail_event)event));
        char          *rest = words, *name;
        while ((name = strsep(&rest, " ")))
            assert_true(is_explained(name));
    }
    for (size_t i = OF_ALL; i < EXPLAINED; i++)
        assert_true(is_used(explained[i]));
}

static void hostile_words_are_one_escaped_line(void **state)
{
    struct trail *t = open_trail(false);
    const char    words[] = "a\nb\"c\\d\r\x1b[31m \xe2\x80\xa8 \xc3\xa9 {\"event\":\"call\"}";

    (void)state;
    assert_int_equal(write_why(t, words), 0);
    assert_int_equal(count_lines(path), 1);
    autofree char *text = read_file(path);
    for (const char *p = text; *p; p++)
        assert_true(*p == '\n' ? !p[1] : *p >= ' ' && (unsigned char)*p < 0x7f);
    autojson json_t *line = line_at(path, 0);
    assert_string_equal(word(line, "why"), words);
    trail_close(t);
}

static void long_words_and_lists_are_cut(void **state)
{
    struct trail  *t = open_trail(false);
    char           long_word[4096];
    json_t        *list = json_array();
    const json_t  *rows;
    autofree char *text = NULL;

    (void)state;
    for (size_t i = 0; i + 2 < sizeof long_word; i += 2)
        memcpy(long_word + i, "\xc3\xa9", 2);
    long_word[sizeof long_word - 2] = '\0';
    memmove(long_word + 1, long_word, sizeof long_word - 2); /* characters lie across the cut */
    long_word[0] = 'x';
    long_word[sizeof long_word - 1] = '\0';
    for (int i = 0; i < 500; i++)
        json_array_append_new(list, json_pack("{s:s, s:s}", "name", long_word, "version", "1"));
    assert_int_equal(trail_write(t, TRAIL_CALL, json_pack("{s:o}", "dependencies", list), NULL), 0);
    autojson json_t *line = line_at(path, 0);
    rows = json_object_get(line, "dependencies");
    assert_int_equal(json_array_size(rows), 101);
    assert_string_equal(json_string_value(json_array_get(rows, 100)), "…");
    assert_int_equal(strlen(word(json_array_get(rows, 0), "name")), 255 + strlen("…"));
    text = read_file(path);
    assert_true(strlen(text) < 1 << 20);
    trail_close(t);
}

static void of_rights_the_beginning_is_told(void **state)
{
    struct trail_subject s = {0};

    (void)state;
    trail_set_owner(&s, "session:0123456789abcdef0123456789abcdef");
    assert_string_equal(s.owner, "session:0123456789ab");
    trail_set_sandbox(&s, "js-sbx-01234567-89ab-4cde-8f01-23456789abcd");
    assert_string_equal(s.sandbox, "js-sbx-01234567-89ab");
    trail_set_sandbox(&s,
                      "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9x"
                      "\xc3\xa9\xc3\xa9");
    assert_int_equal(strlen(s.sandbox), 19);
    trail_set_owner(&s, "token:alice");
    assert_string_equal(s.owner, "token:alice");
    trail_set_owner(&s, "");
    assert_string_equal(s.owner, "anyone");
}

/* ---- files ---- */

static void what_cannot_be_a_log_is_refused(void **state)
{
    struct err        e = {0};
    struct trail_spec spec = {.path = dir};
    char              files[80], link[80];

    (void)state;
    assert_null(trail_open(&spec, &e));
    assert_non_null(strstr(e.msg, dir));
    spec.path = "/no-such-directory/log";
    assert_null(trail_open(&spec, &e));
    assert_non_null(strstr(e.msg, "/no-such-directory/log: No such file"));
    assert_int_equal(mkfifo(path, 0600), 0);
    spec.path = path;
    assert_null(trail_open(&spec, &e));
    assert_non_null(strstr(e.msg, "is not a regular file"));
    unlink(path);

    snprintf(files, sizeof files, "%s/files", dir);
    snprintf(path, sizeof path, "%s/log", files);
    snprintf(link, sizeof link, "%s/link", dir);
    mkdir(files, 0700);
    spec.outside_dir = files;
    assert_null(trail_open(&spec, &e));
    assert_non_null(strstr(e.msg, "where scripts can change it"));
    assert_int_equal(access(path, F_OK), -1); /* nothing was made there */
    assert_int_equal(symlink(path, link), 0); /* neither by way of a link */
    spec.path = link;
    assert_null(trail_open(&spec, &e));
    assert_non_null(strstr(e.msg, "where scripts can change it"));
    snprintf(path, sizeof path, "%s/log", dir);
    spec.path = path;
    struct trail *t = trail_open(&spec, &e);
    assert_non_null(t); /* beside is fine */
    trail_close(t);
}

static void a_file_that_was_moved_away_is_made_anew(void **state)
{
    struct trail *t = open_trail(false);
    char          old[200];

    (void)state;
    snprintf(old, sizeof old, "%s.1", path);
    write_why(t, "before");
    assert_int_equal(rename(path, old), 0);
    write_why(t, "after");
    autojson json_t *line = line_at(path, 0);
    assert_string_equal(word(line, "why"), "after");
    assert_int_equal(number(line, "line"), 2);
    assert_int_equal(count_lines(old), 1);
    assert_int_equal(unlink(path), 0);
    write_why(t, "again");
    assert_int_equal(count_lines(path), 1);
    trail_close(t);
}

static void several_append_to_one_file(void **state)
{
    enum { WRITERS = 4, LINES = 500 };
    pid_t            pids[WRITERS];
    struct trail    *trails[WRITERS];
    int              status;
    autojson json_t *seen = json_object();

    (void)state;
    for (int i = 0; i < WRITERS; i++)
        trails[i] = open_trail(false);
    for (int i = 0; i < WRITERS; i++) {
        pids[i] = fork();
        assert_true(pids[i] >= 0);
        if (pids[i] == 0) {
            char text[200];
            memset(text, 'a' + i, sizeof text);
            text[sizeof text - 1] = '\0';
            for (int n = 0; n < LINES; n++)
                write_why(trails[i], text);
            _exit(0);
        }
    }
    for (int i = 0; i < WRITERS; i++)
        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
    for (int i = 0; i < WRITERS; i++)
        trail_close(trails[i]);
    assert_int_equal(count_lines(path), WRITERS * LINES);
    autofree char *text = read_file(path);
    for (char *at = text; *at; at += strcspn(at, "\n") + 1) {
        autojson json_t *line = json_parse(at, strcspn(at, "\n"), NULL);
        assert_non_null(line); /* none is torn */
        json_int_t n = number(json_object_get(seen, word(line, "server")), "n");
        assert_int_equal(number(line, "line"), n + 1);
        json_object_set_new(seen, word(line, "server"), json_pack("{s:I}", "n", n + 1));
    }
    assert_int_equal(json_object_size(seen), WRITERS);
}

/* ---- what is lost ---- */

static void lines_that_find_no_room_are_counted(void **state)
{
    struct trail *t = open_trail(true);
    struct stat   st;

    (void)state;
    assert_int_equal(write_why(t, "first"), 0);
    assert_int_equal(stat(path, &st), 0);
    set_room((rlim_t)st.st_size + 10); /* the next one is cut, those behind it do not begin */
    for (int i = 0; i < 3; i++) {
        int r = write_why(t, "lost");
        assert_int_equal(r, -1);
        assert_false(trail_allows(t, r));
        assert_false(trail_is_well(t));
    }
    assert_non_null(strstr(noted, "lines are lost, and calls are refused"));
    set_room(RLIM_INFINITY);
    assert_int_equal(write_why(t, "second"), 0);
    assert_true(trail_is_well(t));
    assert_non_null(strstr(noted, "3 lines were lost"));

    assert_int_equal(count_lines(path), 4);
    assert_null(line_at(path, 1)); /* half a line, on its own */
    autojson json_t *lost = line_at(path, 2), *second = line_at(path, 3);
    assert_string_equal(word(lost, "event"), "lines_lost");
    assert_int_equal(number(lost, "lost"), 3);
    assert_non_null(strstr(word(lost, "why"), "File too large"));
    assert_int_equal(number(lost, "line"), 5); /* 2, 3 and 4 are missing */
    assert_string_equal(word(second, "why"), "second");
    assert_int_equal(number(second, "line"), 6);
    trail_close(t);
}

/* Whoever left it so, and also when that was before we came. */
static void half_a_line_of_others_is_not_joined(void **state)
{
    FILE         *f = fopen(path, "w");
    struct trail *t;

    (void)state;
    assert_non_null(f);
    fputs("{\"half\":", f);
    fclose(f);
    t = open_trail(false);
    assert_int_equal(write_why(t, "first"), 0);
    assert_int_equal(write_why(t, "second"), 0);
    trail_close(t);
    assert_int_equal(count_lines(path), 3);
    autojson json_t *first = line_at(path, 1);
    assert_string_equal(word(first, "why"), "first");
}

static void who_is_not_strict_goes_on(void **state)
{
    struct trail *t = open_trail(false);
    int           r;

    (void)state;
    set_room(0);
    r = write_why(t, "lost");
    set_room(RLIM_INFINITY);
    assert_int_equal(r, -1);
    assert_true(trail_allows(t, r));
    assert_true(trail_is_well(t));
    trail_close(t);
}

static void nobody_needs_a_trail(void **state)
{
    (void)state;
    assert_int_equal(write_why(NULL, "x"), 0);
    assert_true(trail_is_well(NULL));
    assert_true(trail_allows(NULL, 0));
    trail_close(NULL);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_line_has_all_members_in_their_order),
        CASE(every_event_has_members_that_are_explained),
        CASE(hostile_words_are_one_escaped_line),
        CASE(long_words_and_lists_are_cut),
        CASE(of_rights_the_beginning_is_told),
        CASE(what_cannot_be_a_log_is_refused),
        CASE(a_file_that_was_moved_away_is_made_anew),
        CASE(several_append_to_one_file),
        CASE(lines_that_find_no_room_are_counted),
        CASE(half_a_line_of_others_is_not_joined),
        CASE(who_is_not_strict_goes_on),
        CASE(nobody_needs_a_trail),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
