#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "sandbox/files.h"
#include "sandbox/paths.h"

static const char *where; /* of the filesystem that the tests are run on */

struct world {
    struct event_base  *base;
    char                dir[64];
    int                 dir_fd;
    struct files       *files;
    struct files_mark  *mark;
    struct files_limits limits;

    char  *rows; /* of the last end: "created a\n" … */
    size_t n_rows;
    bool   cut, done;
    size_t over, changes, notes;
    char   note[256], change[256];

    const char *back_at; /* at this change "a" is moved back to "m" */
};

/* ---- ops ---- */

static void on_changed(void *owner, const char *path, enum files_change change)
{
    struct world *w = owner;

    w->changes++;
    snprintf(w->change, sizeof w->change, "%s %s", files_change_name(change), path);
    if (w->back_at && strcmp(w->change, w->back_at) == 0) {
        assert_int_equal(renameat(w->dir_fd, "a", w->dir_fd, "m"), 0);
        w->back_at = NULL;
    }
}

static void on_note(void *owner, const char *sentence)
{
    struct world *w = owner;

    w->notes++;
    snprintf(w->note, sizeof w->note, "%s", sentence);
}

static void on_over(void *owner)
{
    ((struct world *)owner)->over++;
}

static void on_done(void *owner, const struct files_row *rows, size_t n, bool cut)
{
    struct world *w = owner;

    free(w->rows);
    w->rows = str_dup("");
    for (size_t i = 0; i < n && i < 200; i++) {
        char *longer =
            str_format("%s%s %s\n", w->rows, files_change_name(rows[i].change), rows[i].path);
        free(w->rows);
        w->rows = longer;
        if (i > 0)
            assert_true(paths_compare(rows[i - 1].path, rows[i].path) < 0);
    }
    w->n_rows = n;
    w->cut = cut;
    w->done = true;
}

static const struct files_ops      ops = {on_changed, on_note};
static const struct files_mark_ops mark_ops = {on_over, on_done};

/* ---- the world ---- */

static void open_files(struct world *w)
{
    struct err e = {0};

    w->files = files_open(w->base, w->dir, &w->limits, &ops, w, &e);
    if (!w->files)
        fail_msg("%s", e.msg);
}

static int set_up(void **state)
{
    struct world *w = calloc(1, sizeof *w);

    w->base = event_base_new();
    w->limits = files_limits;
    snprintf(w->dir, sizeof w->dir, "%s/files-test-XXXXXX", where);
    assert_non_null(mkdtemp(w->dir));
    w->dir_fd = open(w->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    struct world  *w = *state;
    autofree char *remove = str_format("rm -rf %s %s.out", w->dir, w->dir);

    if (w->mark)
        files_mark_free(w->mark);
    files_close(w->files);
    event_base_free(w->base);
    close(w->dir_fd);
    free(w->rows);
    free(w);
    return system(remove);
}

static void begin_quota(struct world *w, int64_t quota)
{
    if (w->mark)
        files_mark_free(w->mark);
    w->mark = files_mark(w->files, quota, &mark_ops, w);
}

static void begin(struct world *w)
{
    begin_quota(w, 0);
}

static void end(struct world *w)
{
    int64_t began = clock_ms();

    w->done = false;
    files_mark_end(w->mark);
    assert_false(w->done); /* only from the loop */
    while (!w->done) {
        event_base_loop(w->base, EVLOOP_ONCE);
        assert_true(clock_ms() - began < 20000);
    }
}

static void expect(struct world *w, const char *rows)
{
    end(w);
    assert_string_equal(w->rows, rows);
    assert_false(w->cut);
}

/* Runs the loop until the counter moves, or twenty seconds. */
static void wait_for(struct world *w, const size_t *counter)
{
    size_t  before = *counter;
    int64_t began = clock_ms();

    while (*counter == before && clock_ms() - began < 20000)
        event_base_loop(w->base, EVLOOP_ONCE);
}

/* Until the next change has another time: times of files have the grain of the kernel's clock. */
static void tick(void)
{
    static const struct timespec grain = {.tv_nsec = 20000000};

    nanosleep(&grain, NULL);
}

/* ---- changes ---- */

static void put(struct world *w, const char *path, const char *text)
{
    autofd int fd = openat(w->dir_fd, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

    assert_true(fd >= 0);
    assert_int_equal(fd_write_all(fd, text, strlen(text)), 0);
}

static void put_size(struct world *w, const char *path, size_t size)
{
    autofree char *bytes = calloc(1, size + 1);

    memset(bytes, 'x', size);
    put(w, path, bytes);
}

static void make_dir(struct world *w, const char *path)
{
    assert_int_equal(mkdirat(w->dir_fd, path, 0755), 0);
}

static void move(struct world *w, const char *from, const char *to)
{
    assert_int_equal(renameat(w->dir_fd, from, w->dir_fd, to), 0);
}

static void drop(struct world *w, const char *path)
{
    assert_int_equal(unlinkat(w->dir_fd, path, 0), 0);
}

static void drop_dir(struct world *w, const char *path)
{
    assert_int_equal(unlinkat(w->dir_fd, path, AT_REMOVEDIR), 0);
}

static void many(struct world *w, const char *dir, int from, int to)
{
    char name[64];

    for (int i = from; i < to; i++) {
        snprintf(name, sizeof name, "%s/%05d", dir, i);
        put(w, name, "x");
    }
}

static int run(const char *dir, const char *what)
{
    char line[512];

    snprintf(line, sizeof line, "cd %s && { %s; }", dir, what);
    return system(line);
}

/* ---- rows ---- */

static void tells_what_changed(void **state)
{
    struct world *w = *state;

    put(w, "kept", "1");
    put(w, "updated", "1");
    put(w, "deleted", "1");
    open_files(w);
    begin(w);
    put(w, "created", "1");
    put(w, "updated", "22");
    drop(w, "deleted");
    expect(w, "created created\ndeleted deleted\nupdated updated\n");
    begin(w);
    expect(w, "");
    assert_int_equal(w->notes, 0);
}

static void what_came_and_went_is_nothing(void **state)
{
    struct world *w = *state;

    put(w, "there", "1");
    open_files(w);
    begin(w);
    put(w, "brief", "1");
    drop(w, "brief");
    make_dir(w, "d");
    put(w, "d/brief", "1");
    drop(w, "d/brief");
    drop_dir(w, "d");
    drop(w, "there");
    put(w, "there", "2");
    expect(w, "updated there\n");
}

static void writing_the_same_is_an_update_reading_is_not(void **state)
{
    struct world   *w = *state;
    struct timespec times[2] = {{1, 0}, {1, 0}};

    put(w, "same", "1");
    put(w, "read", "1");
    put(w, "mode", "1");
    put(w, "time", "1");
    put(w, "opened", "1");
    open_files(w);
    assert_int_equal(utimensat(w->dir_fd, "same", times, 0), 0);
    begin(w);
    int fd = openat(w->dir_fd, "same", O_WRONLY | O_CLOEXEC);
    assert_int_equal(write(fd, "1", 1), 1);
    assert_int_equal(futimens(fd, times), 0); /* as if nothing had happened */
    close(fd);
    close(openat(w->dir_fd, "read", O_RDONLY | O_CLOEXEC));
    close(openat(w->dir_fd, "opened", O_WRONLY | O_CLOEXEC));
    assert_int_equal(fchmodat(w->dir_fd, "mode", 0600, 0), 0);
    assert_int_equal(utimensat(w->dir_fd, "time", times, 0), 0);
    expect(w, "updated same\nupdated time\n");
}

static void writes_through_a_mapping_are_seen(void **state)
{
    struct world *w = *state;

    put_size(w, "mapped", 8192);
    open_files(w);
    begin(w);
    tick();
    int   fd = openat(w->dir_fd, "mapped", O_RDWR | O_CLOEXEC);
    char *p = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_ptr_not_equal(p, MAP_FAILED);
    close(fd);
    p[5000] = 'y';
    munmap(p, 8192);
    expect(w, "updated mapped\n");
}

static void renames_are_one_gone_and_one_new(void **state)
{
    struct world *w = *state;

    put(w, "a", "1");
    put(w, "target", "1");
    put(w, "new", "2");
    open_files(w);
    begin(w);
    move(w, "a", "b");
    move(w, "new", "target"); /* how editors save */
    expect(w, "deleted a\ncreated b\ndeleted new\nupdated target\n");
}

static void directories_move_with_all_that_is_in_them(void **state)
{
    struct world *w = *state;

    make_dir(w, "m");
    make_dir(w, "m/sub");
    put(w, "m/1", "1");
    put(w, "m/sub/2", "2");
    open_files(w);
    begin(w);
    move(w, "m", "a"); /* to a name before it */
    put(w, "a/sub/3", "3");
    expect(w, "created a/1\ncreated a/sub/2\ncreated a/sub/3\ndeleted m/1\ndeleted m/sub/2\n");
    begin(w); /* and is still followed */
    put(w, "a/sub/3", "33");
    expect(w, "updated a/sub/3\n");
    begin(w);
    move(w, "a", "z"); /* and to one behind */
    put(w, "z/4", "4");
    expect(w, "deleted a/1\ndeleted a/sub/2\ndeleted a/sub/3\n"
              "created z/1\ncreated z/4\ncreated z/sub/2\ncreated z/sub/3\n");
    begin(w);
    put(w, "z/sub/3", "333");
    expect(w, "updated z/sub/3\n");
}

/* The new name may be looked through before or after the old one is found gone. */
static void a_moved_directory_is_followed_whatever_comes_first(void **state)
{
    struct world *w = *state;

    make_dir(w, "m");
    open_files(w);
    for (int i = 0; i < 4; i++) {
        begin(w);
        for (int k = 0; k < i; k++)
            put(w, k ? "01" : "00", "1"); /* takes a turn */
        move(w, "m", "a");
        end(w);
        begin(w);
        put(w, "a/new", "1");
        expect(w, "created a/new\n");
        drop(w, "a/new");
        move(w, "a", "m");
    }
}

/* There and back: the watch was taken for the other name, and the old one is looked at only when
 * the directory is there again. The names between the two are what is looked at meanwhile. */
static void a_directory_that_moves_to_and_fro_is_followed(void **state)
{
    struct world *w = *state;

    make_dir(w, "m");
    make_dir(w, "m/x");
    put(w, "m/f", "1");
    open_files(w);
    for (int i = 0; i < 4; i++) {
        char name[16], row[32];

        begin(w);
        for (int k = 0; k < 20 + i; k++) {
            snprintf(name, sizeof name, "b%02d", k);
            put(w, name, "1");
        }
        w->back_at = "created a/f";
        move(w, "m", "a");
        end(w);
        assert_null(w->back_at);
        begin(w);
        snprintf(name, sizeof name, "m/%02d", i);
        put(w, name, "1");
        snprintf(row, sizeof row, "created %s\n", name);
        expect(w, row);
        begin(w);
        snprintf(name, sizeof name, "m/x/%02d", i);
        put(w, name, "1");
        snprintf(row, sizeof row, "created %s\n", name);
        expect(w, row);
    }
}

static void a_directory_may_become_a_file_and_back(void **state)
{
    struct world *w = *state;

    make_dir(w, "x");
    put(w, "x/1", "1");
    open_files(w);
    begin(w);
    drop(w, "x/1");
    drop_dir(w, "x");
    put(w, "x", "now a file");
    expect(w, "created x\ndeleted x/1\n");
    begin(w);
    drop(w, "x");
    make_dir(w, "x");
    put(w, "x/1", "1");
    expect(w, "deleted x\ncreated x/1\n");
    begin(w); /* another directory of the same name */
    drop(w, "x/1");
    drop_dir(w, "x");
    make_dir(w, "x");
    put(w, "x/2", "1");
    expect(w, "deleted x/1\ncreated x/2\n");
    begin(w);
    put(w, "x/2", "22");
    expect(w, "updated x/2\n");
}

static void exchanged_directories(void **state)
{
    struct world *w = *state;

    make_dir(w, "a");
    make_dir(w, "b");
    put(w, "a/1", "1");
    put(w, "b/2", "2");
    open_files(w);
    begin(w);
    assert_int_equal(renameat2(w->dir_fd, "a", w->dir_fd, "b", RENAME_EXCHANGE), 0);
    expect(w, "deleted a/1\ncreated a/2\ncreated b/1\ndeleted b/2\n");
    begin(w);
    put(w, "a/3", "3");
    put(w, "b/4", "4");
    expect(w, "created a/3\ncreated b/4\n");
}

static void new_directories_are_followed_at_once(void **state)
{
    struct world *w = *state;

    open_files(w);
    begin(w);
    make_dir(w, "a");
    make_dir(w, "a/b");
    make_dir(w, "a/b/c");
    put(w, "a/b/c/d", "1");
    expect(w, "created a/b/c/d\n");
    begin(w);
    put(w, "a/b/c/d", "22");
    put(w, "a/b/e", "1");
    expect(w, "updated a/b/c/d\ncreated a/b/e\n");
}

static void names_are_bytes(void **state)
{
    struct world            *w = *state;
    static const char *const names[] = {
        "\x01",     " ",       "-n", "a\nb", "new\\line", "sp ace", "\xc3\xa4\xe2\x82\xac",
        "\xff\xfe", "\xff\xff"};
    char rows[512] = "";

    open_files(w);
    make_dir(w, "\xc3 d\n");
    begin(w);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char nested[32];
        put(w, names[i], "1");
        snprintf(nested, sizeof nested, "\xc3 d\n/%s", names[i]);
        put(w, nested, "1");
    }
    end(w);
    assert_int_equal(w->n_rows, 2 * (sizeof names / sizeof names[0]));
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct files_entry entry;
        snprintf(rows, sizeof rows, "created %s\n", names[i]);
        assert_non_null(strstr(w->rows, rows));
        assert_true(files_find(w->files, names[i], &entry));
    }
}

static void runs_at_once_each_see_theirs(void **state)
{
    struct world *w = *state, other = {.base = w->base};

    open_files(w);
    begin(w);
    put(w, "first", "1");
    other.mark = files_mark(w->files, 0, &mark_ops, &other);
    put(w, "second", "1");
    expect(w, "created first\ncreated second\n");
    put(w, "third", "1");
    drop(w, "first");
    expect(&other, "deleted first\ncreated second\ncreated third\n");
    files_mark_free(other.mark);
    free(other.rows);
}

static void what_was_before_is_not_told(void **state)
{
    struct world *w = *state;

    put(w, "old", "1");
    put(w, "gone", "1");
    open_files(w);
    event_base_loop(w->base, EVLOOP_NONBLOCK);
    make_dir(w, "d");
    many(w, "d", 0, 100);
    put(w, "old", "2");
    drop(w, "gone");
    begin(w);
    expect(w, "");
}

/* ---- kinds ---- */

static struct files_row rows_seen[16];

static void keep_rows(void *owner, const struct files_row *rows, size_t n, bool cut)
{
    memcpy(rows_seen, rows, (n < 16 ? n : 16) * sizeof *rows);
    on_done(owner, rows, n, cut);
}

static const struct files_mark_ops keep_ops = {on_over, keep_rows};

static void rows_have_size_kind_and_type(void **state)
{
    static const struct {
        const char     *path;
        enum files_kind kind;
        int64_t         size;
        const char     *type;
    } want[] = {{"dir/data.json", FILES_REGULAR, 2, "application/json"},
                {"fake.png", FILES_REGULAR, 5, "text/plain"},
                {"fifo", FILES_OTHER, 0, "application/octet-stream"},
                {"gone.txt", FILES_REGULAR, 0, "text/plain"},
                {"link.png", FILES_LINK, 11, "inode/symlink"},
                {"picture", FILES_REGULAR, 9, "image/png"}};
    struct world *w = *state;

    put(w, "gone.txt", "1234");
    open_files(w);
    w->mark = files_mark(w->files, 0, &keep_ops, w);
    make_dir(w, "dir");
    put(w, "dir/data.json", "{}");
    put(w, "fake.png", "hello");
    put(w, "picture", "\x89PNG\r\n\x1a\n.");
    drop(w, "gone.txt");
    assert_int_equal(mkfifoat(w->dir_fd, "fifo", 0644), 0);
    assert_int_equal(symlinkat("/etc/passwd", w->dir_fd, "link.png"), 0);
    end(w);
    assert_int_equal(w->n_rows, 6);
    for (size_t i = 0; i < 6; i++) {
        assert_string_equal(rows_seen[i].path, want[i].path);
        assert_int_equal(rows_seen[i].kind, want[i].kind);
        assert_int_equal(rows_seen[i].size, want[i].size);
        assert_string_equal(rows_seen[i].mime_type, want[i].type);
    }
}

static void links_are_never_followed(void **state)
{
    struct world  *w = *state;
    autofree char *out = str_format("%s.out", w->dir);

    assert_int_equal(mkdir(out, 0755), 0);
    assert_int_equal(run(out, "echo secret > secret; mkdir sub"), 0);
    make_dir(w, "d");
    put(w, "d/secret", "mine");
    assert_int_equal(symlinkat(out, w->dir_fd, "before"), 0);
    open_files(w);
    begin(w);
    assert_int_equal(symlinkat(out, w->dir_fd, "link"), 0);
    assert_int_equal(run(out, "echo more > more; echo secrets > secret"), 0);
    drop(w, "d/secret");
    drop_dir(w, "d");
    assert_int_equal(symlinkat(out, w->dir_fd, "d"), 0); /* d/secret could be read through it */
    expect(w, "created d\ndeleted d/secret\ncreated link\n");
    assert_true(files_mark_growth(w->mark) < 65536);
}

/* ---- reading ---- */

static void reads_regular_files(void **state)
{
    struct world      *w = *state;
    autobuf struct buf b;
    uint64_t           whole = 0;
    struct err         e = {0};

    make_dir(w, "d");
    put(w, "d/a", "hello");
    assert_int_equal(symlinkat("d/a", w->dir_fd, "inside"), 0);
    put(w, "empty", "");
    open_files(w);
    buf_init(&b, 100);
    assert_int_equal(files_read(w->files, "d/a", 100, &b, &whole, &e), 0);
    assert_int_equal(b.size, 5);
    assert_memory_equal(b.data, "hello", 5);
    assert_int_equal(whole, 5);
    assert_int_equal(files_read(w->files, "d/../d/a", 2, &b, &whole, &e), 0);
    assert_memory_equal(b.data, "hellohe", 7);
    assert_int_equal(b.size, 7);
    assert_int_equal(whole, 5);
    assert_int_equal(files_read(w->files, "inside", 100, &b, &whole, &e), 0);
    assert_int_equal(b.size, 12);
    assert_int_equal(files_read(w->files, "empty", 100, &b, &whole, &e), 0);
    assert_int_equal(b.size, 12);
    assert_int_equal(whole, 0);
}

static void reads_nothing_else(void **state)
{
    static const struct {
        const char   *path;
        enum err_kind kind;
        const char   *says;
    } cases[] = {
        {"none", ERR_NOT_FOUND, "no file \"none\""},
        {"a/b", ERR_NOT_FOUND, "no file"},
        {"", ERR_INVALID, "not a regular file"},
        {"d", ERR_INVALID, "not a regular file"},
        {"fifo", ERR_INVALID, "not a regular file"},
        {"fifo-link", ERR_INVALID, "not a regular file"},
        {"/etc/passwd", ERR_INVALID, "leads out"},
        {"../secret", ERR_INVALID, "leads out"},
        {"d/../../secret", ERR_INVALID, "leads out"},
        {"absolute", ERR_INVALID, "leads out"},
        {"up", ERR_INVALID, "leads out"},
        {"out/passwd", ERR_INVALID, "leads out"},
        {"loop", ERR_INVALID, "leads nowhere"},
        {"magic", ERR_INVALID, "leads out"},
    };
    struct world      *w = *state;
    autobuf struct buf b;
    uint64_t           whole;

    put(w, "a", "1");
    make_dir(w, "d");
    assert_int_equal(mkfifoat(w->dir_fd, "fifo", 0644), 0);
    assert_int_equal(symlinkat("fifo", w->dir_fd, "fifo-link"), 0);
    assert_int_equal(symlinkat("/etc/passwd", w->dir_fd, "absolute"), 0);
    assert_int_equal(symlinkat("../../../../../../etc/passwd", w->dir_fd, "up"), 0);
    assert_int_equal(symlinkat("/etc", w->dir_fd, "out"), 0);
    assert_int_equal(symlinkat("loop", w->dir_fd, "loop"), 0);
    assert_int_equal(symlinkat("/proc/self/exe", w->dir_fd, "magic"), 0);
    open_files(w);
    buf_init(&b, 100);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct err e = {0};
        assert_int_equal(files_read(w->files, cases[i].path, 100, &b, &whole, &e), -1);
        if (e.kind != cases[i].kind || !strstr(e.msg, cases[i].says))
            fail_msg("%s: %d %s", cases[i].path, e.kind, e.msg);
    }
    assert_int_equal(b.size, 0);
}

static bool list_some(void *owner, const struct files_entry *entry)
{
    struct world *w = owner;
    char *longer = str_format("%s%s %d\n", w->rows ? w->rows : "", entry->path, (int)entry->size);

    free(w->rows);
    w->rows = longer;
    return ++w->n_rows % 2 != 0;
}

static void lists_in_pages(void **state)
{
    struct world *w = *state;

    make_dir(w, "a");
    put(w, "a/1", "1");
    put(w, "a/2", "22");
    put(w, "a-b", "");
    put(w, "c", "333");
    open_files(w);
    files_list(w->files, NULL, list_some, w);
    assert_string_equal(w->rows, "a/1 1\na/2 2\n");
    files_list(w->files, "a/2", list_some, w);
    assert_string_equal(w->rows, "a/1 1\na/2 2\na-b 0\nc 3\n");
    files_list(w->files, "c", list_some, w);
    assert_int_equal(w->n_rows, 4);
}

/* ---- without a run ---- */

static void changes_are_told_without_a_run(void **state)
{
    struct world      *w = *state;
    struct files_entry entry;

    put(w, "a", "1");
    open_files(w);
    assert_int_equal(w->changes, 0);
    put(w, "b", "1");
    wait_for(w, &w->changes);
    assert_string_equal(w->change, "created b");
    assert_true(files_find(w->files, "b", &entry));
    put(w, "a", "22");
    wait_for(w, &w->changes);
    assert_string_equal(w->change, "updated a");
    drop(w, "a");
    wait_for(w, &w->changes);
    assert_string_equal(w->change, "deleted a");
    assert_false(files_find(w->files, "a", &entry));
    assert_int_equal(w->changes, 3);
}

static void ten_thousand_writes_are_few_news(void **state)
{
    struct world *w = *state;

    put(w, "a", "");
    put(w, "b", "");
    open_files(w);
    int a = openat(w->dir_fd, "a", O_WRONLY | O_CLOEXEC);
    int b = openat(w->dir_fd, "b", O_WRONLY | O_CLOEXEC);
    for (int i = 0; i < 5000; i++) { /* in turns, or the kernel makes one of them */
        assert_int_equal(write(a, "x", 1), 1);
        assert_int_equal(write(b, "x", 1), 1);
    }
    close(a);
    close(b);
    wait_for(w, &w->changes);
    event_base_loop(w->base, EVLOOP_NONBLOCK);
    assert_in_range(w->changes, 2, 20);
}

/* ---- quota ---- */

static void growth_is_counted(void **state)
{
    struct world *w = *state;

    put_size(w, "old", 100000);
    open_files(w);
    begin(w);
    put_size(w, "new", 50000);
    end(w);
    assert_in_range(files_mark_growth(w->mark), 50000, 60000);
    begin(w);
    drop(w, "old");
    end(w);
    assert_in_range(-files_mark_growth(w->mark), 100000, 110000);
}

static void over_quota_is_told_once_while_it_runs(void **state)
{
    struct world *w = *state;

    put_size(w, "there", 300000);
    open_files(w);
    begin_quota(w, 100000);
    put_size(w, "1", 40000);
    put_size(w, "there", 300000);
    end(w);
    assert_int_equal(w->over, 0);
    begin_quota(w, 100000);
    int fd = openat(w->dir_fd, "2", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    assert_int_equal(ftruncate(fd, 200000), 0); /* still open: no close to wait for */
    wait_for(w, &w->over);
    assert_int_equal(w->over, 1);
    put_size(w, "3", 200000);
    end(w);
    close(fd);
    assert_int_equal(w->over, 1);
}

static void space_taken_beyond_the_end_counts(void **state)
{
    struct world *w = *state;

    open_files(w);
    begin_quota(w, 100000);
    int fd = openat(w->dir_fd, "a", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    assert_int_equal(fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, 1 << 20), 0);
    wait_for(w, &w->over);
    assert_int_equal(w->over, 1);
    close(fd);
}

static void empty_files_count_as_well(void **state)
{
    struct world *w = *state;

    open_files(w);
    make_dir(w, "d");
    begin_quota(w, 100000);
    many(w, "d", 0, 300);
    wait_for(w, &w->over);
    assert_int_equal(w->over, 1);
}

static void others_deletions_do_not_hide_growth_of_later(void **state)
{
    struct world *w = *state;

    put_size(w, "big", 500000);
    open_files(w);
    drop(w, "big"); /* before the run: gives it no room */
    begin_quota(w, 100000);
    put_size(w, "new", 200000);
    end(w);
    assert_int_equal(w->over, 1);
}

/* ---- too much ---- */

static int queue_max(void)
{
    autofree char *text = NULL;

    assert_int_equal(
        file_read_text(AT_FDCWD, "/proc/sys/fs/inotify/max_queued_events", 100, &text, NULL), 0);
    return atoi(text);
}

/* More events than the kernel has room for, while nobody reads. */
static void overflow(struct world *w)
{
    int a = openat(w->dir_fd, "noise-a", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    int b = openat(w->dir_fd, "noise-b", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

    for (int i = 0, n = queue_max(); i < n; i++)
        if (write(a, "x", 1) != 1 || write(b, "x", 1) != 1)
            abort();
    close(a);
    close(b);
}

static void lost_events_are_made_up_by_a_walk(void **state)
{
    struct world *w = *state;

    make_dir(w, "d");
    make_dir(w, "d/gone");
    put(w, "d/gone/1", "1");
    put(w, "d/updated", "1");
    put(w, "d/kept", "1");
    make_dir(w, "from");
    put(w, "from/moved", "1");
    open_files(w);
    begin(w);
    overflow(w);
    make_dir(w, "new");
    make_dir(w, "new/deep");
    put(w, "new/deep/1", "1");
    put(w, "d/updated", "22");
    drop(w, "d/gone/1");
    drop_dir(w, "d/gone");
    move(w, "from", "to");
    expect(w, "deleted d/gone/1\nupdated d/updated\ndeleted from/moved\ncreated new/deep/1\n"
              "created noise-a\ncreated noise-b\ncreated to/moved\n");
    assert_int_equal(w->notes, 1);
    assert_non_null(strstr(w->note, "looked at anew"));
    begin(w); /* all of it is watched again */
    put(w, "new/deep/2", "1");
    put(w, "to/moved", "22");
    expect(w, "created new/deep/2\nupdated to/moved\n");
    assert_int_equal(w->notes, 1);
}

static void lost_events_before_a_run_are_not_its_own(void **state)
{
    struct world *w = *state;

    open_files(w);
    overflow(w);
    put(w, "before", "1");
    tick();
    begin(w);
    put(w, "after", "1");
    expect(w, "created after\n");
}

static void more_directories_than_watches(void **state)
{
    struct world *w = *state;

    w->limits.watched = 3; /* the root, d0, d0/d */
    for (int i = 0; i < 5; i++) {
        char name[32];
        snprintf(name, sizeof name, "d%d", i);
        make_dir(w, name);
        snprintf(name, sizeof name, "d%d/d", i);
        make_dir(w, name);
        snprintf(name, sizeof name, "d%d/d/old", i);
        put(w, name, "1");
    }
    open_files(w);
    assert_int_equal(w->notes, 1);
    assert_non_null(strstr(w->note, "max_user_watches"));
    for (int i = 0; i < 3; i++) {
        tick();
        begin(w);
        put(w, "d4/d/new", "1");
        put(w, "d4/d/old", "changed");
        drop(w, "d3/d/old");
        make_dir(w, "d2/e");
        move(w, "d1/d", "d2/e/d"); /* the files in it keep their times */
        expect(w, "deleted d1/d/old\ncreated d2/e/d/old\ndeleted d3/d/old\n"
                  "created d4/d/new\nupdated d4/d/old\n");
        drop(w, "d4/d/new"); /* back, between runs */
        put(w, "d3/d/old", "1");
        move(w, "d2/e/d", "d1/d");
        drop_dir(w, "d2/e");
        begin(w); /* what is gone is told late: nobody knows when it went */
        end(w);
        tick();
        begin(w);
        expect(w, "");
    }
    assert_int_equal(w->notes, 1);
    begin_quota(w, 100000);
    put_size(w, "d4/d/large", 200000);
    wait_for(w, &w->over);
    assert_int_equal(w->over, 1);
}

static void watches_come_back_when_there_are_fewer_directories(void **state)
{
    struct world *w = *state;

    w->limits.watched = 2; /* the root and one */
    make_dir(w, "a");
    make_dir(w, "b");
    open_files(w);
    assert_int_equal(w->notes, 1);
    drop_dir(w, "a");
    begin(w);
    end(w);
    put(w, "b/told", "1"); /* without a run: by an event */
    wait_for(w, &w->changes);
    assert_string_equal(w->change, "created b/told");
    assert_int_equal(w->notes, 1);
}

static bool no_inotify;
int         __real_inotify_init1(int flags);
int         __wrap_inotify_init1(int flags);

int __wrap_inotify_init1(int flags)
{
    if (!no_inotify)
        return __real_inotify_init1(flags);
    errno = EMFILE;
    return -1;
}

static void without_inotify_runs_walk(void **state)
{
    struct world *w = *state;

    put(w, "old", "1");
    put(w, "gone", "1");
    no_inotify = true;
    open_files(w);
    no_inotify = false;
    assert_non_null(strstr(w->note, "max_user_instances"));
    put(w, "before", "1");
    tick();
    begin_quota(w, 100000);
    make_dir(w, "d");
    put(w, "d/new", "1");
    put(w, "old", "22");
    drop(w, "gone");
    expect(w, "created d/new\ndeleted gone\nupdated old\n");
    begin_quota(w, 100000);
    put_size(w, "d/large", 200000);
    wait_for(w, &w->over);
    assert_int_equal(w->over, 1);
}

/* A directory that takes long to look through does not hide what else happens. */
static void a_huge_directory_does_not_delay_a_quota(void **state)
{
    struct world *w = *state;

    make_dir(w, "huge");
    many(w, "huge", 0, 20000);
    open_files(w);
    begin_quota(w, 100000000);
    move(w, "huge", "moved");
    wait_for(w, &w->changes); /* it has begun */
    assert_true(w->changes < 20000);
    assert_int_equal(w->over, 0);
    int fd = openat(w->dir_fd, "z", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    assert_int_equal(ftruncate(fd, 200000000), 0);
    close(fd);
    wait_for(w, &w->over);
    assert_int_equal(w->over, 1);
    assert_true(w->changes < 40000); /* while it was looked through */
    end(w);
    assert_true(w->cut); /* 40,001 rows */
    assert_int_equal(w->n_rows, files_limits.rows);
}

static void more_rows_than_may_be(void **state)
{
    struct world *w = *state;

    w->limits.rows = 10;
    make_dir(w, "d");
    open_files(w);
    begin(w);
    many(w, "d", 0, 11);
    end(w);
    assert_int_equal(w->n_rows, 10);
    assert_true(w->cut);
    begin(w);
    many(w, "d", 0, 10);
    end(w);
    assert_int_equal(w->n_rows, 10);
    assert_false(w->cut);
}

static void more_entries_than_are_remembered(void **state)
{
    struct world *w = *state;

    w->limits.known = 100;
    make_dir(w, "d");
    open_files(w);
    begin(w);
    many(w, "d", 0, 200);
    end(w);
    assert_int_equal(w->n_rows, 98); /* the root and d are two */
    assert_true(w->cut);
    assert_int_equal(w->notes, 1);
    begin_quota(w, 1 << 30); /* what is not remembered cannot be counted */
    many(w, "d", 200, 210);
    end(w);
    assert_int_equal(w->over, 1);
    assert_int_equal(w->notes, 1);
}

/* Deeper than a path can be written. */
static void a_path_that_is_too_long_is_not_overlooked(void **state)
{
    struct world *w = *state;
    char          name[201];
    int           fd = dup(w->dir_fd);

    memset(name, 'n', 200);
    name[200] = '\0';
    open_files(w);
    begin_quota(w, 1 << 30);
    for (int i = 0; i < 25; i++) {
        assert_int_equal(mkdirat(fd, name, 0755), 0);
        int next = openat(fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        close(fd);
        fd = next;
    }
    close(fd);
    end(w);
    assert_true(w->cut);
    assert_int_equal(w->over, 1);
}

/* As an ordinary user, from whom a sandbox that runs as the same can hide a directory. */
static void an_unreadable_directory_does_not_hide_growth(void **state)
{
    struct world *w = *state;
    bool          root = geteuid() == 0;

    if (root) {
        assert_int_equal(fchown(w->dir_fd, 65534, 65534), 0);
        assert_int_equal(seteuid(65534), 0);
        assert_int_equal(prctl(PR_SET_DUMPABLE, 1), 0); /* or /proc/self/fd is root's */
    }
    make_dir(w, "old");
    assert_int_equal(fchmodat(w->dir_fd, "old", 0, 0), 0);
    tick();
    open_files(w);
    begin_quota(w, 1 << 30);
    put(w, "new", "1");
    overflow(w); /* all is looked at: what nobody could read before is no reason */
    end(w);
    size_t over_by_old = w->over;
    bool   cut_by_old = w->cut;
    begin_quota(w, 1 << 30);
    make_dir(w, "d");
    put(w, "d/f", "1");
    int fd = openat(w->dir_fd, "d/f", O_WRONLY | O_CLOEXEC);
    assert_int_equal(fchmodat(w->dir_fd, "d", 0, 0), 0);
    assert_int_equal(write(fd, "more", 4), 4);
    close(fd);
    end(w);
    if (root)
        assert_int_equal(seteuid(0), 0);
    assert_int_equal(over_by_old, 0);
    assert_false(cut_by_old);
    assert_true(w->cut);
    assert_int_equal(w->over, 1);
}

static void many_directories_come_and_go(void **state)
{
    struct world *w = *state;
    char          name[32];

    open_files(w);
    for (int i = 0; i < 3; i++) {
        begin(w);
        for (int k = 0; k < 900; k++) {
            snprintf(name, sizeof name, k % 3 == 0 ? "%d" : k % 3 == 1 ? "%d/a" : "%d/a/b", k / 3);
            make_dir(w, name);
            if (k % 3 == 2) {
                strcat(name, "/f");
                put(w, name, "1");
            }
        }
        end(w);
        assert_int_equal(w->n_rows, 300);
        begin(w);
        assert_int_equal(run(w->dir, "rm -rf -- *"), 0);
        end(w);
        assert_int_equal(w->n_rows, 300);
        assert_false(w->cut);
        begin(w);
        expect(w, "");
    }
}

/* A process that changes what it can while we look; at the end, what is known is what is there. */
static void the_end_is_right_after_a_storm(void **state)
{
    static const char storm[] =
        "cd %s && for n in 1 2 3 4; do ("
        "  for i in $(seq 20); do mkdir -p d$n/x; echo $i > d$n/x/$i; mv d$n e$n; mkdir d$n;"
        "    ln -s /etc d$n/x; rm -rf d$n; mv e$n d$n; echo > f$n; rm f$n; mkfifo f$n; rm f$n;"
        "  done ) & done; wait";
    struct world *w = *state;
    char          line[1024];
    int           status;

    open_files(w);
    begin(w);
    snprintf(line, sizeof line, storm, w->dir);
    pid_t pid = fork();
    if (pid == 0) {
        execl("/bin/sh", "sh", "-c", line, (char *)NULL);
        _exit(127);
    }
    assert_true(pid > 0);
    while (waitpid(pid, &status, WNOHANG) == 0)
        event_base_loop(w->base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
    assert_int_equal(status, 0);
    end(w);
    assert_int_equal(w->n_rows, 4 * 20);
    assert_false(w->cut);
    for (int n = 1; n <= 4; n++)
        for (int i = 1; i <= 20; i++) {
            struct files_entry entry;
            char               name[32];
            snprintf(name, sizeof name, "d%d/x/%d", n, i);
            if (!files_find(w->files, name, &entry))
                fail_msg("%s is not known", name);
        }
}

/* ---- marks ---- */

static void free_in_done(void *owner, const struct files_row *rows, size_t n, bool cut)
{
    struct world *w = owner;

    on_done(w, rows, n, cut);
    files_mark_free(w->mark);
    w->mark = NULL;
}

static void free_in_over(void *owner)
{
    struct world *w = owner;

    w->over++;
    files_mark_free(w->mark);
    w->mark = NULL;
}

static const struct files_mark_ops freeing_ops = {free_in_over, free_in_done};

static void a_mark_may_be_freed_in_its_ops(void **state)
{
    struct world *w = *state;

    open_files(w);
    w->mark = files_mark(w->files, 0, &freeing_ops, w);
    put(w, "a", "1");
    expect(w, "created a\n");
    assert_null(w->mark);
    w->mark = files_mark(w->files, 1000, &freeing_ops, w);
    put_size(w, "b", 100000);
    wait_for(w, &w->over);
    assert_int_equal(w->over, 1);
    assert_null(w->mark);
    w->mark = files_mark(w->files, 0, &mark_ops, w);
    files_mark_end(w->mark); /* and while it ends */
}

static void what_happens_after_the_end_is_not_told(void **state)
{
    struct world *w = *state;

    open_files(w);
    begin(w);
    put(w, "a", "1");
    expect(w, "created a\n");
    put_size(w, "b", 100000);
    wait_for(w, &w->changes);
    assert_true(files_mark_growth(w->mark) < 50000);
}

static void no_directory_is_an_error(void **state)
{
    struct world *w = *state;
    struct err    e = {0};

    put(w, "file", "1");
    autofree char *none = str_format("%s/none", w->dir), *file = str_format("%s/file", w->dir);
    assert_null(files_open(w->base, none, NULL, NULL, NULL, &e));
    assert_int_equal(e.sys, ENOENT);
    assert_non_null(strstr(e.msg, none));
    assert_null(files_open(w->base, file, NULL, NULL, NULL, &e));
    assert_int_equal(e.sys, ENOTDIR);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    static const char *const places[] = {"/var/tmp", "/dev/shm"}; /* a disk, and a tmpfs */
    const struct CMUnitTest  tests[] = {
         TEST(tells_what_changed),
         TEST(what_came_and_went_is_nothing),
         TEST(writing_the_same_is_an_update_reading_is_not),
         TEST(writes_through_a_mapping_are_seen),
         TEST(renames_are_one_gone_and_one_new),
         TEST(directories_move_with_all_that_is_in_them),
         TEST(a_moved_directory_is_followed_whatever_comes_first),
         TEST(a_directory_that_moves_to_and_fro_is_followed),
         TEST(a_directory_may_become_a_file_and_back),
         TEST(exchanged_directories),
         TEST(new_directories_are_followed_at_once),
         TEST(names_are_bytes),
         TEST(runs_at_once_each_see_theirs),
         TEST(what_was_before_is_not_told),
         TEST(rows_have_size_kind_and_type),
         TEST(links_are_never_followed),
         TEST(reads_regular_files),
         TEST(reads_nothing_else),
         TEST(lists_in_pages),
         TEST(changes_are_told_without_a_run),
         TEST(ten_thousand_writes_are_few_news),
         TEST(growth_is_counted),
         TEST(over_quota_is_told_once_while_it_runs),
         TEST(space_taken_beyond_the_end_counts),
         TEST(empty_files_count_as_well),
         TEST(others_deletions_do_not_hide_growth_of_later),
         TEST(lost_events_are_made_up_by_a_walk),
         TEST(lost_events_before_a_run_are_not_its_own),
         TEST(more_directories_than_watches),
         TEST(watches_come_back_when_there_are_fewer_directories),
         TEST(without_inotify_runs_walk),
         TEST(a_huge_directory_does_not_delay_a_quota),
         TEST(more_rows_than_may_be),
         TEST(more_entries_than_are_remembered),
         TEST(a_path_that_is_too_long_is_not_overlooked),
         TEST(an_unreadable_directory_does_not_hide_growth),
         TEST(many_directories_come_and_go),
         TEST(the_end_is_right_after_a_storm),
         TEST(a_mark_may_be_freed_in_its_ops),
         TEST(what_happens_after_the_end_is_not_told),
         TEST(no_directory_is_an_error),
    };
    int failed = 0;

    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        where = places[i];
        failed += cmocka_run_group_tests_name(where, tests, NULL, NULL);
    }
    return failed;
}
