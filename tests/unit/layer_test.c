#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "store/layer.h"
#include "store/store.h"

static char home[64];

static const struct layer_dep two[] = {{"lodash", "^4.17.0"}, {"@scope/b", "latest"}};
static const struct layer_set set = {two, 2, "24.1.0", "bun"};

static void key_of(const struct layer_set *s, char ret[LAYER_KEY_SIZE])
{
    assert_int_equal(layer_key(s, ret, NULL), 0);
}

static void test_key(void **state)
{
    const struct layer_dep turned[] = {two[1], two[0]}, shifted[] = {{"lodash^4", ".17.0"}, two[1]},
                           twice[] = {two[0], two[0]};
    const struct layer_set others[] = {{shifted, 2, "24.1.0", "bun"},
                                       {two, 1, "24.1.0", "bun"},
                                       {two, 2, "22.1.0", "bun"},
                                       {two, 2, "24.1.0", "npm"}};
    struct err             e = {0};
    char                   key[LAYER_KEY_SIZE], other[LAYER_KEY_SIZE];

    (void)state;
    key_of(&set, key);
    assert_int_equal(strlen(key), 64);
    key_of(&(struct layer_set){turned, 2, "24.1.0", "bun"}, other);
    assert_string_equal(key, other);
    key_of(&(struct layer_set){two, 2, "24.9.3", "bun"}, other); /* the same ABI */
    assert_string_equal(key, other);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        key_of(&others[i], other);
        assert_string_not_equal(key, other);
    }
    assert_int_equal(layer_key(&(struct layer_set){twice, 2, "24.1.0", "bun"}, other, &e), -1);
    assert_string_equal(e.msg, "dependency lodash is named twice");
    assert_int_equal(layer_key(&(struct layer_set){two, 2, "x", "bun"}, other, &e), -1);
    assert_int_equal(layer_key(&(struct layer_set){two, 65, "24.1.0", "bun"}, other, &e), -1);
}

static struct entry place(const char *key, int64_t max_age_ms, const char *content)
{
    struct entry entry;

    assert_int_equal(layer_begin(key, max_age_ms, &entry, NULL), 0);
    assert_int_equal(mkdirat(entry.dir_fd, "node_modules", 0755), 0);
    assert_int_equal(file_write_text(entry.dir_fd, "node_modules/x", content, NULL), 0);
    assert_int_equal(layer_commit(&entry, &set, NULL), 0);
    return entry;
}

static void make(const char *key, int64_t max_age_ms, const char *content)
{
    struct entry entry = place(key, max_age_ms, content);

    layer_settle(&entry);
}

static void read_layer(const struct layer_hold *h, const char *content)
{
    autofree char *text = NULL;

    assert_int_equal(file_read_text(h->fd, "node_modules/x", 100, &text, NULL), 0);
    assert_string_equal(text, content);
}

static void test_find(void **state)
{
    struct layer_hold h = {.fd = -1};
    struct entry      entry;
    struct stat       st, named;
    char              key[LAYER_KEY_SIZE];
    autofree char    *meta = NULL;

    (void)state;
    key_of(&set, key);
    assert_int_equal(layer_find(key, &h, 0, NULL), 0);
    make(key, 0, "one");
    assert_int_equal(layer_find(key, &h, 0, NULL), 1);
    read_layer(&h, "one");
    assert_int_equal(fstat(h.fd, &st), 0);
    assert_int_equal(stat(h.dir, &named), 0);
    assert_int_equal(st.st_ino, named.st_ino);
    assert_int_equal(st.st_mode & 0777, 0755);
    assert_int_equal(file_read_text(h.fd, LAYER_META, 4096, &meta, NULL), 0);
    assert_non_null(strstr(meta, "\"@scope/b\": \"latest\""));
    assert_int_equal(layer_begin(key, 0, &entry, NULL), 1);
    layer_release(&h);
    assert_int_equal(h.fd, -1);
}

/* As a power cut leaves it when its description, but not its files, had reached the disk. */
static void change_boot(int dir_fd, const char *name)
{
    autofree char *meta = NULL;
    char          *boot;

    assert_int_equal(file_read_text(dir_fd, name, 4096, &meta, NULL), 0);
    boot = strstr(meta, "\"boot\": \"");
    assert_non_null(boot);
    boot[strlen("\"boot\": \"")] ^= 1;
    assert_int_equal(file_write_text(dir_fd, name, meta, NULL), 0);
}

/* Found at once and for good; until the disk has it, only before the machine starts again. */
static void test_settle(void **state)
{
    struct layer_hold h = {.fd = -1};
    autofd int        parent = store_ensure("layers", NULL);
    struct entry      entry, other;
    char              key[LAYER_KEY_SIZE];

    (void)state;
    key_of(&set, key);
    entry = place(key, 0, "one");
    assert_int_equal(layer_find(key, &h, 5000, NULL), 1);
    read_layer(&h, "one");
    layer_release(&h);
    assert_int_equal(entry_remove(parent, key), 0); /* it is being brought to the disk */
    assert_int_equal(layer_begin(key, 5000, &other, NULL), 1);
    change_boot(entry.dir_fd, LAYER_META_BOOT);
    assert_int_equal(layer_find(key, &h, 0, NULL), 0);
    fd_close(&entry.dir_fd);
    fd_close(&entry.parent_fd);

    entry = place(key, 0, "two");
    assert_int_equal(file_write_text(entry.dir_fd, LAYER_META_BOOT, "", NULL), 0);
    assert_int_equal(layer_find(key, &h, 0, NULL), 0);
    fd_close(&entry.dir_fd);
    fd_close(&entry.parent_fd);

    make(key, 0, "three");
    assert_int_equal(layer_find(key, &h, 0, NULL), 1);
    read_layer(&h, "three");
    change_boot(h.fd, LAYER_META);
    layer_release(&h);
    assert_int_equal(layer_find(key, &h, 0, NULL), 1);
    layer_release(&h);
}

static void age(const struct layer_hold *h, int seconds)
{
    struct timespec then[2] = {{.tv_sec = time(NULL) - seconds}, {.tv_sec = time(NULL) - seconds}};

    assert_int_equal(utimensat(h->fd, LAYER_META, then, 0), 0);
}

/* A layer whose ranges were resolved long ago is made anew; who holds the old one keeps it. */
static void test_outdated(void **state)
{
    struct layer_hold old = {.fd = -1}, new = {.fd = -1};
    autofd int        parent = store_ensure("layers", NULL);
    struct entry      entry;
    char              key[LAYER_KEY_SIZE];

    (void)state;
    key_of(&set, key);
    make(key, 0, "old");
    assert_int_equal(layer_find(key, &old, 5000, NULL), 1);
    age(&old, 10);
    assert_int_equal(layer_find(key, &new, 5000, NULL), 0);
    assert_int_equal(layer_find(key, &new, 20000, NULL), 1);
    layer_release(&new);
    layer_refresh(&old);
    assert_int_equal(layer_begin(key, 5000, &entry, NULL), 1);
    age(&old, 10);
    make(key, 5000, "new");
    entry_sweep(parent);
    read_layer(&old, "old");
    assert_int_equal(layer_find(key, &new, 5000, NULL), 1);
    read_layer(&new, "new");
    layer_release(&old);
    entry_sweep(parent);
    assert_int_equal(layer_find(key, &old, 0, NULL), 1);
    read_layer(&old, "new");
    assert_int_equal(system("test $(ls -A $JERBOA_HOME/layers | wc -l) = 1"), 0);
    layer_release(&old);
    layer_release(&new);
}

/* Neither in this process nor in another; and when that one was killed, it may go. */
static void test_held_is_not_removed(void **state)
{
    autofd int        parent = store_ensure("layers", NULL);
    struct layer_hold h = {.fd = -1};
    char              key[LAYER_KEY_SIZE], byte;
    int               ready[2];
    pid_t             other;

    (void)state;
    key_of(&set, key);
    make(key, 0, "one");
    assert_int_equal(pipe(ready), 0);
    other = fork();
    if (other == 0) {
        if (layer_find(key, &h, 0, NULL) == 1 && write(ready[1], "", 1) == 1)
            pause();
        _exit(1);
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_int_equal(entry_remove(parent, key), 0);
    assert_int_equal(layer_find(key, &h, 0, NULL), 1);
    assert_int_equal(kill(other, SIGKILL), 0);
    assert_int_equal(waitpid(other, NULL, 0), other);
    assert_int_equal(entry_remove(parent, key), 0);
    layer_release(&h);
    assert_int_equal(entry_remove(parent, key), 1);
    assert_int_equal(layer_find(key, &h, 0, NULL), 0);
    assert_int_equal(entry_remove(parent, key), 0);
    close(ready[0]);
    close(ready[1]);
}

static void test_busy(void **state)
{
    struct entry first, second;
    char         key[LAYER_KEY_SIZE];

    (void)state;
    key_of(&set, key);
    assert_int_equal(layer_begin(key, 0, &first, NULL), 0);
    assert_int_equal(layer_begin(key, 0, &second, NULL), 2);
    layer_abort(&first);
    assert_int_equal(layer_begin(key, 0, &second, NULL), 0);
    layer_abort(&second);
}

/* What package code may have left where we write, or look. */
static void test_hostile_content(void **state)
{
    struct entry entry;
    struct err   e = {0};
    char         key[LAYER_KEY_SIZE];

    (void)state;
    key_of(&set, key);
    assert_int_equal(layer_begin(key, 0, &entry, NULL), 0);
    assert_int_equal(symlinkat("/tmp", entry.dir_fd, "node_modules"), 0);
    assert_int_equal(layer_commit(&entry, &set, &e), -1);
    assert_string_equal(e.msg, "a new layer: it has no node_modules");

    assert_int_equal(layer_begin(key, 0, &entry, NULL), 0);
    assert_int_equal(mkdirat(entry.dir_fd, LAYER_META, 0755), 0);
    assert_int_equal(mkdirat(entry.dir_fd, "node_modules", 0755), 0);
    assert_int_equal(layer_commit(&entry, &set, &e), -1);

    assert_int_equal(layer_begin(key, 0, &entry, NULL), 0);
    assert_int_equal(mkdirat(entry.dir_fd, "node_modules", 0755), 0);
    assert_int_equal(symlinkat("node_modules/written", entry.dir_fd, LAYER_META), 0);
    assert_int_equal(layer_commit(&entry, &set, &e), 0);
    layer_settle(&entry);
    assert_int_equal(system("test ! -e $JERBOA_HOME/layers/*/node_modules/written"), 0);
}

static int set_up(void **state)
{
    (void)state;
    strcpy(home, "/tmp/jerboa-layer-XXXXXX");
    return mkdtemp(home) ? setenv("JERBOA_HOME", home, 1) : -1;
}

static int tear_down(void **state)
{
    char command[80];

    (void)state;
    snprintf(command, sizeof command, "rm -rf %s", home);
    return system(command);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_key),
        TEST(test_find),
        TEST(test_settle),
        TEST(test_outdated),
        TEST(test_held_is_not_removed),
        TEST(test_busy),
        TEST(test_hostile_content),
    };

    alarm(60);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
