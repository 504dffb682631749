/* fuzz-seals - the seal of an entry of the store, as an accident or a stranger may have left it.
 *
 * An input is the text of a seal. The entry below it is made once: a command, a directory with a
 * file, a link. In the text %FRONT% and %BODY% stand for what the true seal of that entry has, so
 * that inputs get past sizes, times and digests that no fuzzer guesses. Asserted: what is refused
 * has one sentence; the whole seal holds only where the front does; and nothing but the true body
 * passes for it. */
#include <assert.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/str.h"
#include "fetch/manifest.h"
#include "store/seal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { SEAL_MAX = 1 << 20 };

static char  entry[] = "/tmp/fuzz-seals.XXXXXX";
static int   entry_fd = -1;
static char *front, *body; /* of the true seal */

static void remove_entry(void)
{
    static const char *const names[] = {"bin/node", "lib/a", "lib/l", SEAL_NAME};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        unlinkat(entry_fd, names[i], 0);
    unlinkat(entry_fd, "bin", AT_REMOVEDIR);
    unlinkat(entry_fd, "lib", AT_REMOVEDIR);
    rmdir(entry);
    free(front);
    free(body);
}

static void write_file(const char *name, const char *text, size_t size, mode_t mode)
{
    autofd int fd = openat(entry_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);

    assert(fd >= 0 && fchmod(fd, mode) == 0 && fd_write_all(fd, text, size) == 0);
}

static void make_entry(void)
{
    static const char *const commands[] = {"bin/node", NULL};
    autofree char           *seal = NULL;
    const char              *end;
    struct err               e = {0};

    assert(mkdtemp(entry));
    entry_fd = open(entry, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    atexit(remove_entry);
    assert(mkdirat(entry_fd, "bin", 0755) == 0 && mkdirat(entry_fd, "lib", 0755) == 0);
    write_file("bin/node", "#!", 2, 0755);
    write_file("lib/a", "some text", 9, 0644);
    assert(symlinkat("a", entry_fd, "lib/l") == 0);
    assert(manifest_seal(entry_fd, commands, &e) == 0 && manifest_verify(entry_fd, &e) == 0);
    assert(file_read_text(entry_fd, SEAL_NAME, SEAL_MAX, &seal, &e) == 0);
    end = strstr(seal, "\n\n");
    front = str_ndup(seal, (size_t)(end + 2 - seal));
    body = str_dup(end + 2);
}

static void add_filled(struct buf *b, const char *text, size_t size)
{
    static const char front_word[] = "%FRONT%", body_word[] = "%BODY%";

    for (size_t i = 0; i < size;) {
        const char *value = NULL;
        size_t      n = 1;

        if (size - i >= strlen(front_word) && memcmp(text + i, front_word, strlen(front_word)) == 0)
            value = front, n = strlen(front_word);
        else if (size - i >= strlen(body_word) &&
                 memcmp(text + i, body_word, strlen(body_word)) == 0)
            value = body, n = strlen(body_word);
        buf_add(b, value ? value : text + i, value ? strlen(value) : 1);
        i += n;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    autobuf struct buf text;
    struct err         e = {0}, whole = {0};

    if (entry_fd < 0)
        make_entry();
    buf_init(&text, SEAL_MAX);
    add_filled(&text, (const char *)data, size);
    write_file(SEAL_NAME, text.size ? (const char *)text.data : "", text.size, 0644);
    if (seal_check(entry_fd, &e) < 0)
        assert(e.kind == ERR_INVALID && e.msg[0]);
    if (manifest_verify(entry_fd, &whole) < 0)
        assert(whole.kind != ERR_NONE && whole.msg[0]);
    else
        assert(e.kind == ERR_NONE && memmem(text.data, text.size, body, strlen(body)));
    return 0;
}
