/* A twin between a directory of the test's and an inside that is a table: what send_tree, listing
 * and download would ask a sandbox, they ask it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "base/tree.h"
#include "sandbox/download.h"
#include "sandbox/listing.h"
#include "sandbox/paths.h"
#include "sandbox/send_tree.h"
#include "sandbox/twin.h"

enum { LIST_BYTES = 1 << 24 };

struct thing { /* inside */
    int64_t       size, mtime_ns;
    enum row_kind kind;
};

static struct world {
    struct event_base *base;
    char               dir[64];
    int                dir_fd;
    struct files      *files;
    struct twin       *twin;
    struct paths       inside; /* struct thing */
    const char        *lost;   /* this one never arrives */
    bool               sending_fails;
    bool               is_ending;
    bool               is_slow;
    int64_t            clock_ns;    /* inside */
    size_t             sent, turns; /* paths of the last sending; of the loop, in the last call */
    bool               done;
    struct err         err;

    /* what is asked */
    void (*on_sent)(void *owner, const struct err *e);
    void (*on_rows)(void *owner, const struct err *e, const struct listing_row *rows, size_t n,
                    bool cut);
    void (*on_file)(void *owner, const struct err *e, const uint8_t *bytes, size_t size,
                    uint64_t whole);
    bool (*on_piece)(void *owner, const uint8_t *bytes, size_t size);
    void         *owner;
    struct thing *wanted;
} w;

/* ---- the sandbox ---- */

struct event_base *__wrap_sandbox_base(struct sandbox *s);
bool               __wrap_sandbox_is_well(const struct sandbox *s);
struct sending    *__wrap_send_tree_start(struct sandbox *s, const struct send_tree            *tree,
                                          void (*done)(void *owner, const struct err *e), void *owner);
void               __wrap_send_tree_cancel(struct sending *s);
struct listing *
__wrap_listing_start(struct sandbox *s, const char *dir, const struct listing_bounds *bounds,
                     void (*done)(void *owner, const struct err *e, const struct listing_row *rows,
                                  size_t n, bool cut),
                     void *owner);
struct download *
__wrap_download_start_pieces(struct sandbox *s, const char *path, size_t max,
                             bool (*piece)(void *owner, const uint8_t *bytes, size_t size),
                             void (*done)(void *owner, const struct err *e, const uint8_t *bytes,
                                          size_t size, uint64_t whole),
                             void *owner);

/* From the loop; of a slow one in another turn, which costs a millisecond. */
static void soon(void (*what)(evutil_socket_t fd, short why, void *arg))
{
    assert_int_equal(event_base_once(w.base, -1, EV_TIMEOUT, what, NULL,
                                     &(struct timeval){.tv_usec = w.is_slow}),
                     0);
}

struct event_base *__wrap_sandbox_base(struct sandbox *s)
{
    (void)s;
    return w.base;
}

bool __wrap_sandbox_is_well(const struct sandbox *s)
{
    (void)s;
    return !w.is_ending;
}

static void write_inside(const char *path, int64_t size)
{
    struct thing *thing = paths_put(&w.inside, path);

    *thing = (struct thing){size, ++w.clock_ns, ROW_FILE};
}

static void tell_sent(evutil_socket_t fd, short why, void *arg)
{
    struct err e = {0};

    (void)fd, (void)why, (void)arg;
    if (w.sending_fails)
        err_set(&e, ERR_UNAVAILABLE, "no");
    w.on_sent(w.owner, &e);
}

struct sending *__wrap_send_tree_start(struct sandbox *s, const struct send_tree            *tree,
                                       void (*done)(void *owner, const struct err *e), void *owner)
{
    autofree char *list = NULL;
    size_t         size = 0;
    struct stat    st;

    (void)s;
    w.on_sent = done, w.owner = owner, w.sent = 0;
    assert_return_code(fd_read_text(tree->list_fd, LIST_BYTES, &list, &size, NULL), 0);
    for (size_t at = 0; at < size && !w.sending_fails; at += strlen(list + at) + 1, w.sent++)
        if (fstatat(w.dir_fd, list + at, &st, AT_SYMLINK_NOFOLLOW) < 0)
            paths_remove(&w.inside, list + at);
        else if (!w.lost || strcmp(w.lost, list + at) != 0)
            write_inside(list + at, st.st_size);
    soon(tell_sent);
    return (struct sending *)&w;
}

void __wrap_send_tree_cancel(struct sending *s)
{
    assert_ptr_equal(s, &w);
    w.sending_fails = true;
}

static void tell_rows(evutil_socket_t fd, short why, void *arg)
{
    struct listing_row *rows = calloc(w.inside.n + 1, sizeof *rows);
    size_t              n = 0;
    void               *value = NULL;

    (void)fd, (void)why, (void)arg;
    for (const char *path = NULL; (path = paths_next(&w.inside, path, PATHS_AFTER, &value));) {
        const struct thing *thing = value;
        rows[n++] = (struct listing_row){thing->kind, (uint64_t)thing->size, thing->mtime_ns,
                                         str_format("files/%s", path)};
    }
    w.on_rows(w.owner, &(struct err){0}, rows, n, false);
    for (size_t i = 0; i < n; i++)
        free((char *)rows[i].path);
    free(rows);
}

struct listing *
__wrap_listing_start(struct sandbox *s, const char *dir, const struct listing_bounds *bounds,
                     void (*done)(void *owner, const struct err *e, const struct listing_row *rows,
                                  size_t n, bool cut),
                     void *owner)
{
    (void)s, (void)bounds;
    assert_string_equal(dir, "files");
    w.on_rows = done, w.owner = owner;
    soon(tell_rows);
    return NULL;
}

static void tell_file(evutil_socket_t fd, short why, void *arg)
{
    size_t   size = (size_t)w.wanted->size;
    uint8_t *bytes = calloc(1, size + 1);

    (void)fd, (void)why, (void)arg;
    w.on_piece(w.owner, bytes, size);
    w.on_file(w.owner, &(struct err){0}, NULL, size, size);
    free(bytes);
}

struct download *
__wrap_download_start_pieces(struct sandbox *s, const char *path, size_t max,
                             bool (*piece)(void *owner, const uint8_t *bytes, size_t size),
                             void (*done)(void *owner, const struct err *e, const uint8_t *bytes,
                                          size_t size, uint64_t whole),
                             void *owner)
{
    (void)s, (void)max;
    w.on_piece = piece, w.on_file = done, w.owner = owner;
    w.wanted = paths_find(&w.inside, path + strlen("files/"));
    assert_non_null(w.wanted);
    soon(tell_file);
    return NULL;
}

/* ---- the world ---- */

static int make_world(void **state)
{
    (void)state;
    w = (struct world){
        .base = event_base_new(), .dir = "/dev/shm/jerboa-twin-XXXXXX", .clock_ns = 1};
    assert_non_null(mkdtemp(w.dir));
    w.dir_fd = open(w.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    w.files = files_open(w.base, w.dir, NULL, NULL, NULL, NULL);
    assert_non_null(w.files);
    paths_init(&w.inside, sizeof(struct thing));
    w.twin = twin_new((struct sandbox *)&w, 1 << 20);
    return 0;
}

static int remove_world(void **state)
{
    (void)state;
    twin_free(w.twin);
    files_close(w.files);
    paths_done(&w.inside);
    event_base_free(w.base);
    tree_remove(w.dir_fd);
    fd_close(&w.dir_fd);
    return rmdir(w.dir);
}

static void on_done(void *owner, const struct err *e)
{
    (void)owner;
    w.err = *e;
    w.done = true;
}

static void wait_for_it(void)
{
    for (w.turns = 0; !w.done; w.turns++)
        event_base_loop(w.base, EVLOOP_ONCE);
    w.done = false;
}

static void send_in(void)
{
    twin_send(w.twin, w.files, w.dir, on_done, NULL);
    wait_for_it();
}

static void fetch(void)
{
    twin_fetch(w.twin, w.files, w.dir, 0, on_done, NULL);
    wait_for_it();
}

static void write_here(const char *path, const char *text)
{
    assert_return_code(file_write_text(w.dir_fd, path, text, NULL), 0);
}

static bool is_here(const char *path)
{
    return faccessat(w.dir_fd, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* ---- tests ---- */

static void both_sides_get_what_changed(void **state)
{
    (void)state;
    write_here("mine", "text");
    send_in();
    assert_int_equal(w.err.kind, ERR_NONE);
    assert_non_null(paths_find(&w.inside, "mine"));
    write_inside("a/theirs", 3);
    fetch();
    assert_int_equal(w.err.kind, ERR_NONE);
    assert_true(is_here("a/theirs"));
    paths_remove(&w.inside, "a/theirs");
    paths_remove(&w.inside, "mine");
    fetch();
    assert_false(is_here("mine"));
    assert_false(is_here("a"));
    send_in();
    assert_int_equal(w.inside.n, 0);
}

static void what_never_arrived_is_not_deleted(void **state)
{
    (void)state;
    write_here("mine", "text");
    w.lost = "mine";
    send_in();
    assert_int_equal(w.err.kind, ERR_NONE);
    fetch();
    assert_true(is_here("mine"));
    send_in();
    fetch();
    assert_true(is_here("mine"));
}

static void what_arrived_once_and_not_as_it_is_now_is_not_deleted(void **state)
{
    (void)state;
    write_here("mine", "text");
    send_in();
    write_here("mine", "a longer text");
    w.lost = "mine";
    paths_remove(&w.inside, "mine"); /* pack says that there is none that may be read */
    send_in();
    fetch();
    assert_true(is_here("mine"));
}

static void what_was_deleted_does_not_come_back_after_a_sending_that_failed(void **state)
{
    (void)state;
    write_here("kept", "k");
    write_here("dead", "d");
    send_in();
    assert_return_code(unlinkat(w.dir_fd, "dead", 0), errno);
    w.sending_fails = true;
    send_in();
    assert_int_equal(w.err.kind, ERR_UNAVAILABLE);
    w.sending_fails = false;
    send_in();
    assert_int_equal(w.err.kind, ERR_NONE);
    assert_int_equal(w.sent, 2); /* all of it, and what is gone */
    assert_null(paths_find(&w.inside, "dead"));
    fetch();
    assert_true(is_here("kept"));
    assert_false(is_here("dead"));
}

/* Enough of them for more than a list may have. */
static void paths_that_do_not_fit_are_an_error_and_are_not_deleted(void **state)
{
    enum { LONG = 250, LEVELS = 12, FILES = 3000 };
    char       name[LONG + 1], file[LONG + 16];
    autofd int fd = fcntl(w.dir_fd, F_DUPFD_CLOEXEC, 3);

    (void)state;
    files_close(w.files);
    memset(name, 'n', LONG);
    name[LONG] = '\0';
    for (int i = 0; i < LEVELS; i++) {
        assert_return_code(mkdirat(fd, name, 0755), errno);
        autofd int inner = tree_open_dir(fd, name);
        fd_close(&fd);
        fd = take_fd(&inner);
    }
    for (int i = 0; i < FILES; i++) {
        snprintf(file, sizeof file, "%d%s", i, name + 10);
        assert_return_code(file_write_text(fd, file, "", NULL), 0);
    }
    w.files = files_open(w.base, w.dir, NULL, NULL, NULL, NULL);
    send_in();
    assert_int_equal(w.err.kind, ERR_LIMIT);
    fetch();
    for (int i = 0; i < FILES; i++) {
        snprintf(file, sizeof file, "%d%s", i, name + 10);
        assert_return_code(faccessat(fd, file, F_OK, 0), errno);
    }
}

static void what_lies_too_deep_is_told_and_not_deleted(void **state)
{
    char dir[2 * 64], file[2 * 64 + 2];

    (void)state;
    for (size_t i = 0; i < 64; i++) {
        memcpy(dir + 2 * i, "d", 2);
        assert_return_code(mkdirat(w.dir_fd, dir, 0755), errno);
        dir[2 * i + 1] = i < 63 ? '/' : '\0';
    }
    snprintf(file, sizeof file, "%s/f", dir);
    write_here(file, "deep");
    w.lost = file; /* a listing ends above it */
    send_in();
    assert_int_equal(w.err.kind, ERR_NONE);
    *(struct thing *)paths_put(&w.inside, dir) = (struct thing){.kind = ROW_DIR};
    write_inside("other", 1);
    fetch();
    assert_int_equal(w.err.kind, ERR_LIMIT);
    assert_non_null(strstr(w.err.msg, "it lies too deep"));
    assert_true(is_here("other"));
    assert_true(is_here(file));
}

static void write_many_inside(size_t n)
{
    char path[32];

    for (size_t i = 0; i < n; i++) {
        snprintf(path, sizeof path, "d%zu/f%zu", i % 100, i);
        write_inside(path, 0);
    }
}

static void what_comes_back_can_be_sent_again(void **state)
{
    (void)state;
    write_here("mine", "text");
    send_in();
    write_many_inside(TWIN_FILES_MAX + 5);
    fetch();
    assert_int_equal(w.err.kind, ERR_LIMIT);
    assert_non_null(strstr(w.err.msg, "there are 10000 files, and may not be more (and 5 more)"));
    send_in();
    assert_int_equal(w.err.kind, ERR_NONE);
    write_inside("mine", 10); /* one that is here may still change */
    fetch();
    assert_non_null(strstr(w.err.msg, "(and 5 more)"));
    send_in();
    assert_int_equal(w.err.kind, ERR_NONE);
}

static void bytes_are_counted_with_those_that_are_here(void **state)
{
    (void)state;
    write_inside("first", 700 << 10);
    fetch();
    assert_int_equal(w.err.kind, ERR_NONE);
    send_in();
    write_inside("second", 700 << 10);
    fetch();
    assert_int_equal(w.err.kind, ERR_LIMIT);
    assert_false(is_here("second"));
    write_inside("first", 900 << 10); /* in the place of what it was */
    paths_remove(&w.inside, "second");
    fetch();
    assert_int_equal(w.err.kind, ERR_NONE);
    send_in();
    assert_int_equal(w.err.kind, ERR_NONE);
}

static void others_have_their_turn_while_many_are_removed_or_refused(void **state)
{
    (void)state;
    write_many_inside(TWIN_FILES_MAX);
    fetch();
    paths_done(&w.inside);
    paths_init(&w.inside, sizeof(struct thing));
    fetch();
    assert_false(is_here("d1"));
    assert_true(w.turns > 2);
    write_many_inside(TWIN_FILES_MAX);
    assert_return_code(symlinkat("nowhere", w.dir_fd, "d1"), errno);
    for (int i = 0; i < 100; i++) {
        char name[16];
        snprintf(name, sizeof name, "d%d", i);
        if (i != 1)
            write_here(name, "in the way");
    }
    fetch();
    assert_non_null(strstr(w.err.msg, "(and 9999 more)"));
    assert_true(w.turns > 2);
}

static void a_sandbox_that_ends_is_not_asked_for_the_rest(void **state)
{
    (void)state;
    write_inside("a", 1);
    w.is_ending = true;
    fetch();
    assert_int_equal(w.err.kind, ERR_UNAVAILABLE);
    assert_false(is_here("a"));
}

static void what_is_cancelled_tells_its_end_and_is_done_the_next_time(void **state)
{
    (void)state;
    w.is_slow = true;
    write_here("mine", "text");
    twin_send(w.twin, w.files, w.dir, on_done, NULL);
    while (!w.on_sent)
        event_base_loop(w.base, EVLOOP_ONCE);
    twin_cancel(w.twin);
    wait_for_it();
    assert_int_not_equal(w.err.kind, ERR_NONE);
    w.sending_fails = false;
    send_in();
    assert_int_equal(w.err.kind, ERR_NONE);
    assert_int_equal(w.sent, 1);

    write_many_inside(100);
    twin_fetch(w.twin, w.files, w.dir, 0, on_done, NULL);
    while (!w.on_file)
        event_base_loop(w.base, EVLOOP_ONCE);
    twin_cancel(w.twin);
    wait_for_it();
    assert_int_equal(w.err.kind, ERR_CANCELLED);
    assert_false(is_here("d99/f99"));
    twin_cancel(w.twin); /* nothing is under way */
    fetch();
    assert_int_equal(w.err.kind, ERR_NONE);
    assert_true(is_here("d99/f99"));
    assert_true(is_here("mine"));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_world, remove_world)
    const struct CMUnitTest tests[] = {
        TEST(both_sides_get_what_changed),
        TEST(what_never_arrived_is_not_deleted),
        TEST(what_arrived_once_and_not_as_it_is_now_is_not_deleted),
        TEST(what_was_deleted_does_not_come_back_after_a_sending_that_failed),
        TEST(paths_that_do_not_fit_are_an_error_and_are_not_deleted),
        TEST(what_lies_too_deep_is_told_and_not_deleted),
        TEST(what_comes_back_can_be_sent_again),
        TEST(bytes_are_counted_with_those_that_are_here),
        TEST(others_have_their_turn_while_many_are_removed_or_refused),
        TEST(a_sandbox_that_ends_is_not_asked_for_the_rest),
        TEST(what_is_cancelled_tells_its_end_and_is_done_the_next_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
