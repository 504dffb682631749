#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "npm/unpack.h"

struct member {
    const char *name;
    mode_t      type, perm;
    const char *content, *link; /* link: a symlink's target, or, of a file, a hard link's */
};

static char dir_path[] = "/tmp/jerboa-unpack-XXXXXX";

static void add_member(struct archive *a, const struct member *m)
{
    struct archive_entry *entry = archive_entry_new();
    size_t                size = m->content ? strlen(m->content) : 0;

    archive_entry_set_pathname(entry, m->name);
    archive_entry_set_filetype(entry, m->type);
    archive_entry_set_perm(entry, m->perm);
    archive_entry_set_size(entry, (int64_t)size);
    if (m->link && m->type == AE_IFLNK)
        archive_entry_set_symlink(entry, m->link);
    if (m->link && m->type == AE_IFREG)
        archive_entry_set_hardlink(entry, m->link);
    assert_int_equal(archive_write_header(a, entry), ARCHIVE_OK);
    if (size)
        assert_int_equal(archive_write_data(a, m->content, size), size);
    archive_entry_free(entry);
}

static int make_tgz(const struct member *members, size_t n)
{
    int             fd = memfd_create("tgz", MFD_CLOEXEC);
    struct archive *a = archive_write_new();

    archive_write_add_filter_gzip(a);
    archive_write_set_format_pax_restricted(a);
    assert_int_equal(archive_write_open_fd(a, fd), ARCHIVE_OK);
    for (size_t i = 0; i < n; i++)
        add_member(a, &members[i]);
    assert_int_equal(archive_write_close(a), ARCHIVE_OK);
    archive_write_free(a);
    lseek(fd, 0, SEEK_SET);
    return fd;
}

static int unpack(const struct member *members, size_t n, const struct tarball_limits *limits,
                  struct err *e)
{
    autofd int tgz = make_tgz(members, n);
    autofd int dir = open(dir_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    *e = (struct err){0};
    return unpack_tgz(tgz, dir, limits, e);
}

static void assert_file(const char *name, const char *content, mode_t perm)
{
    autofd int     dir = open(dir_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    autofree char *text = NULL;
    struct stat    st;

    assert_int_equal(file_read_text(dir, name, 4096, &text, NULL), 0);
    assert_string_equal(text, content);
    assert_int_equal(fstatat(dir, name, &st, 0), 0);
    assert_int_equal(st.st_mode & 07777, perm);
}

static void test_good(void **state)
{
    static const struct member members[] = {
        {"package/", AE_IFDIR, 0700},
        {"package/package.json", AE_IFREG, 0600, "{}"},
        {"package/bin/node", AE_IFREG, 04755, "#!"},
        {"package/a//b/./c", AE_IFREG, 0666, "deep"},
        {"package/empty", AE_IFREG, 0644, ""},
        {"package/a/b/..c", AE_IFREG, 0644, "dots"},
        {"package/dir/", AE_IFDIR, 0},
        {"other/twice", AE_IFREG, 0644, "first, and longer"},
        {"package/twice", AE_IFREG, 0644, "second"},
    };
    struct err e;

    (void)state;
    assert_int_equal(unpack(members, sizeof members / sizeof *members, &tarball_limits, &e), 0);
    assert_file("package.json", "{}", 0644);
    assert_file("bin/node", "#!", 0755);
    assert_file("a/b/c", "deep", 0644);
    assert_file("empty", "", 0644);
    assert_file("a/b/..c", "dots", 0644);
    assert_file("twice", "second", 0644);
}

static void test_refused(void **state)
{
    static const struct member members[] = {
        {"package/../../up", AE_IFREG, 0644, "x"},
        {"../up", AE_IFREG, 0644, "x"},
        {"package/..", AE_IFDIR, 0755},
        {"/tmp/jerboa-absolute", AE_IFREG, 0644, "x"},
        {"package/link", AE_IFLNK, 0777, NULL, "/etc/passwd"},
        {"package/hard", AE_IFREG, 0644, NULL, "package/package.json"},
        {"package/null", AE_IFCHR, 0666},
        {"package/disk", AE_IFBLK, 0666},
        {"package/fifo", AE_IFIFO, 0666},
        {"lonely", AE_IFREG, 0644, "x"},
        {"package/esc\033[2J", AE_IFLNK, 0777, NULL, "x"},
    };
    struct err e;

    (void)state;
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        if (unpack(&members[i], 1, &tarball_limits, &e) == 0)
            fail_msg("%s was unpacked", members[i].name);
        assert_int_equal(e.kind, ERR_INVALID);
        assert_null(strchr(e.msg, '\033'));
        if (!strchr(members[i].name, '\033'))
            assert_non_null(strstr(e.msg, members[i].name));
    }
    assert_int_equal(access("/tmp/up", F_OK), -1);
    assert_int_equal(access("/tmp/jerboa-absolute", F_OK), -1);
}

/* A symlink that stands there already, whoever made it, is not followed. */
static void test_no_symlink_followed(void **state)
{
    static const struct member members[] = {{"package/out/file", AE_IFREG, 0644, "x"},
                                            {"package/out", AE_IFREG, 0644, "x"},
                                            {"package/out/dir/", AE_IFDIR, 0755}};
    char                       link[64];
    struct err                 e;

    (void)state;
    snprintf(link, sizeof link, "%s/out", dir_path);
    assert_int_equal(symlink("/tmp", link), 0);
    for (size_t i = 0; i < sizeof members / sizeof *members; i++)
        assert_int_equal(unpack(&members[i], 1, &tarball_limits, &e), -1);
}

static void test_limits(void **state)
{
    static const struct member  members[] = {{"package/1", AE_IFREG, 0644, "12345"},
                                             {"package/2", AE_IFREG, 0644, "12345"}};
    const struct tarball_limits fits = {2, 10}, few = {1, 10}, small = {2, 9};
    struct err                  e;

    (void)state;
    assert_int_equal(unpack(members, 2, &fits, &e), 0);
    assert_int_equal(unpack(members, 2, &few, &e), -1);
    assert_int_equal(e.kind, ERR_LIMIT);
    assert_int_equal(unpack(members, 2, &small, &e), -1);
    assert_int_equal(e.kind, ERR_LIMIT);
}

static void test_too_deep(void **state)
{
    char          name[512] = "package";
    struct member member = {name, AE_IFREG, 0644, "x"};
    struct err    e;

    (void)state;
    for (int i = 0; i < 100; i++)
        strcat(name, "/d");
    assert_int_equal(unpack(&member, 1, &tarball_limits, &e), -1);
    assert_int_equal(e.kind, ERR_LIMIT);
}

static void test_damaged(void **state)
{
    static const struct member member = {"package/file", AE_IFREG, 0644, "some content"};
    autofd int                 tgz = make_tgz(&member, 1);
    autofd int                 dir = open(dir_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    off_t                      size = lseek(tgz, 0, SEEK_END);
    struct err                 e = {0};

    (void)state;
    for (off_t cut = size - 9; cut > 0; cut -= 16) { /* the last 8 bytes are gzip's own check */
        assert_int_equal(ftruncate(tgz, cut), 0);
        lseek(tgz, 0, SEEK_SET);
        assert_int_equal(unpack_tgz(tgz, dir, &tarball_limits, &e), -1);
        assert_int_equal(e.kind, ERR_INVALID);
    }
    assert_int_equal(ftruncate(tgz, 0), 0);
    assert_int_equal(write(tgz, "no archive at all", 17), 17);
    lseek(tgz, 0, SEEK_SET);
    assert_int_equal(unpack_tgz(tgz, dir, &tarball_limits, &e), -1);
}

static int set_up(void **state)
{
    (void)state;
    umask(022);
    strcpy(dir_path, "/tmp/jerboa-unpack-XXXXXX");
    return mkdtemp(dir_path) ? 0 : -1;
}

static int tear_down(void **state)
{
    char command[64];

    (void)state;
    snprintf(command, sizeof command, "rm -rf %s", dir_path);
    return system(command);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_good),   TEST(test_refused),  TEST(test_no_symlink_followed),
        TEST(test_limits), TEST(test_too_deep), TEST(test_damaged),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
