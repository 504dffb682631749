/* fuzz-init - jerboa-init's own code, fed with what a server might send.
 *
 * The server is the trusted side; but frames that cross each other make states that nobody draws,
 * and init must survive them. world.c stands in for everything around init. Its stdout is a file in
 * memory, read back after every turn: whatever init sends must be frames that init may send.
 *
 * channel.c is included, not linked: its table has no function that empties it (init ends with
 * it), and its bounds are asserted here. */
#include "init/channel.c"

#include <assert.h>
#include <fcntl.h>
#include <sys/mman.h>

#include "init/inbox.h"
#include "world.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void redirect_stdout(void)
{
    int fd = memfd_create("outbox", MFD_CLOEXEC);

    assert(fd >= 0 && dup2(fd, 1) == 1);
    close(fd);
    signal(SIGPIPE, SIG_IGN);
}

static void check_output(void)
{
    off_t          size = lseek(1, 0, SEEK_CUR);
    size_t         left = (size_t)size;
    struct frame   f;
    const uint8_t *bytes, *at;
    long           n;

    if (size == 0)
        return;
    at = bytes = mmap(NULL, left, PROT_READ, MAP_SHARED, 1, 0);
    assert(bytes != MAP_FAILED);
    for (; left > 0; at += n, left -= (size_t)n) {
        n = frame_parse(at, left, PEER_INIT, &f, NULL);
        assert(n > 0);
    }
    munmap((void *)bytes, (size_t)size);
    assert(ftruncate(1, 0) == 0 && lseek(1, 0, SEEK_SET) == 0);
}

static void check_bounds(void)
{
    for (size_t i = 0; i < CHANNELS_MAX; i++) {
        const struct channel *c = &channels[i];

        if (!c->kind)
            continue;
        assert(c->id != 0 && c->in.size <= WINDOW_TO_INIT);
        for (int k = 0; k < 2; k++)
            assert(c->outputs[k].credit <= WINDOW_FROM_INIT);
        assert(c->kind == CHANNEL_PROCESS ? c->file_fd < 0 : c->file_fd >= 0 && c->pid == 0);
    }
}

/* One round of main.c's loop, without waiting. */
static void turn(void)
{
    struct pollfd polls[CHANNEL_POLLS_MAX];
    size_t        n = channel_fill_polls(polls);

    assert(n <= CHANNEL_POLLS_MAX);
    poll(polls, n, 0);
    channel_ready(polls);
    world_turn();
    channel_reap();
    check_bounds();
    check_output();
}

/* Pieces of several sizes, so that frames are cut anywhere. */
static void feed(struct inbox *inbox, const uint8_t *data, size_t size)
{
    static const size_t pieces[] = {20, 64, 5, 512, 4096, 13};
    struct err          e = {0};
    int                 ends[2], r = 1;

    assert(pipe2(ends, O_CLOEXEC) == 0);
    for (size_t i = 0; r == 1 && size > 0; i++) {
        size_t piece = pieces[i % (sizeof pieces / sizeof pieces[0])];

        if (piece > size)
            piece = size;
        assert(fd_write_all(ends[1], data, piece) == 0);
        r = inbox_read(inbox, ends[0], &e);
        assert(r != 0 && (r < 0) == (e.kind != ERR_NONE));
        turn();
        data += piece;
        size -= piece;
    }
    close(ends[1]);
    if (r == 1)
        assert(inbox_read(inbox, ends[0], &e) == 0);
    close(ends[0]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static bool  ready;
    struct inbox inbox;

    if (!ready)
        redirect_stdout();
    ready = true;
    inbox_init(&inbox);
    inbox_send_hello();
    feed(&inbox, data, size);
    turn();
    inbox_done(&inbox);
    for (size_t i = 0; i < CHANNELS_MAX; i++)
        if (channels[i].kind)
            close_channel(&channels[i]);
    world_reset();
    return 0;
}
