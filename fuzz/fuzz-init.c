/* fuzz-init - jerboa-init's own code, fed with what a server might send.
 *
 * The server is the trusted side; but frames that cross each other make states that nobody draws,
 * and init must survive them. world.c stands in for everything around init. Its stdout is a file in
 * memory, read back after every turn: whatever init sends must be frames that init may send.
 *
 * channel.c, egress.c and their like are included, not linked: their tables have no function that
 * empties them (init ends with them), and their bounds are asserted here.
 *
 * Built with ALONE it is the init of a container (init/alone.h): programs have leaders, and what a
 * jail is asked elsewhere, it is asked. Each end of a group must be answered, at once and once. */
#include "init/channel.c"
#include "init/dial.c"
#include "init/egress.c"
#include "init/reader.c"
#include "init/scan.c"

#include <assert.h>
#include <fcntl.h>
#include <sys/mman.h>

#include "init/group.h"
#include "init/inbox.h"
#include "init/outbox.h"
#include "world.h"

#ifdef ALONE
#define SENDER (PEER_INIT | PEER_JAIL)
#else
#define SENDER PEER_INIT
#endif

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void redirect_stdout(void)
{
    int fd = memfd_create("outbox", MFD_CLOEXEC);

    assert(fd >= 0 && dup2(fd, 1) == 1);
    close(fd);
    signal(SIGPIPE, SIG_IGN);
}

/* ---- ends of groups ---- */

static size_t n_asked, n_answered; /* in one turn */

void __real_group_handle(const struct frame *f);
void __wrap_group_handle(const struct frame *f);

void __wrap_group_handle(const struct frame *f)
{
    n_asked += f->type == FRAME_GROUP_END || f->type == FRAME_GROUP_DROP;
    __real_group_handle(f);
}

/* What was counted since the last one: the world counts each time that it is asked. */
static void check_answer(const struct frame *f)
{
    struct message_group_ended m;

    assert(message_unpack_group_ended(f, &m, NULL) == 0);
    assert(m.oom_kills == 1 && m.forks_refused == 2 && m.peak_bytes > 0);
    n_answered++;
}

static void check_answers(void)
{
    assert(n_asked == n_answered);
    n_asked = n_answered = 0;
}

/* ---- what it sends, and what it holds ---- */

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
        n = frame_parse(at, left, SENDER, &f, NULL);
        assert(n > 0 && f.type != FRAME_WALLS && f.type != FRAME_ATTACHED);
        if (f.type == FRAME_GROUP_ENDED)
            check_answer(&f);
    }
    munmap((void *)bytes, (size_t)size);
    assert(ftruncate(1, 0) == 0 && lseek(1, 0, SEEK_SET) == 0);
}

static void check_connection(const struct connection *c)
{
    assert(c->fd >= 0 && c->in.size + c->owed <= WINDOW_CONNECTION &&
           c->owed < CONNECTION_CREDIT_STEP);
    assert(c->credit <= WINDOW_CONNECTION && !(c->in_shut && c->out_ended));
    assert(!c->in_shut || (c->in_ended && c->in.size == 0));
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
        assert(c->has_leader == (c->exit_fd >= 0));
    }
    for (size_t i = 0; i < EGRESS_CONNECTIONS_MAX; i++)
        if (connections[i].id) {
            assert(i < n_places && connections[i].id & CHANNEL_OF_INIT);
            check_connection(&connections[i]);
        }
    for (size_t i = 0; i < DIALS_MAX; i++)
        if (dials[i].connection.id) {
            assert(i < n_dials && !(dials[i].connection.id & CHANNEL_OF_INIT));
            check_connection(&dials[i].connection);
        }
    for (size_t i = 0; i < READERS_MAX; i++)
        assert(!readings[i].id || (readings[i].fd >= 0 && readings[i].credit <= WINDOW_FROM_INIT));
    for (size_t i = 0; i < SCANS_MAX; i++)
        assert(!scans[i].id || scans[i].queue.size <= SCAN_QUEUE_MAX);
}

/* One round of main.c's loop, without waiting. */
static void turn(void)
{
    struct pollfd polls[CHANNEL_POLLS_MAX + EGRESS_POLLS_MAX + DIALS_MAX];
    size_t        first = channel_fill_polls(polls), n = egress_fill_polls(polls + first);
    size_t        n_dialled = dial_fill_polls(polls + first + n);

    assert(first <= CHANNEL_POLLS_MAX && n <= EGRESS_POLLS_MAX && n_dialled <= DIALS_MAX);
    poll(polls, first + n + n_dialled, 0);
    channel_ready(polls);
    egress_ready(polls + first);
    dial_ready(polls + first + n);
    reader_step();
    scan_step();
    world_turn();
    channel_reap();
    check_bounds();
    outbox_flush();
    check_output();
    check_answers();
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

/* The next input finds no connection, no query, and the first number free. */
static void empty_egress(void)
{
    uint8_t byte;
    int     fd;

    for (size_t i = 0; i < EGRESS_CONNECTIONS_MAX; i++)
        if (connections[i].id)
            connection_close(&connections[i]);
    forget_places();
    while ((fd = accept4(doors.connections[0], NULL, NULL, SOCK_CLOEXEC)) >= 0)
        close(fd);
    while (recv(doors.lookups[0], &byte, 1, 0) >= 0)
        ;
    memset(lookups, 0, sizeof lookups);
    n_lookups = last_number = 0;
}

static void empty_tables(void)
{
    for (size_t i = 0; i < CHANNELS_MAX; i++)
        if (channels[i].kind)
            close_channel(&channels[i]);
    for (size_t i = 0; i < DIALS_MAX; i++)
        if (dials[i].connection.id)
            connection_close(&dials[i].connection);
    forget_dials();
    for (size_t i = 0; i < READERS_MAX; i++)
        if (readings[i].id)
            close_reading(&readings[i]);
    for (size_t i = 0; i < SCANS_MAX; i++)
        if (scans[i].id)
            close_scan(&scans[i]);
    lost_leader = false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static bool  ready;
    struct inbox inbox;

    if (!ready) {
        redirect_stdout();
        if (egress_open(NULL) < 0)
            abort();
        if (SENDER & PEER_JAIL) {
            group_enable();
            world_give_leaders();
        }
    }
    ready = true;
    inbox_init(&inbox);
    inbox_send_hello();
    feed(&inbox, data, size);
    turn();
    inbox_done(&inbox);
    empty_tables();
    world_reset();
    empty_egress();
    return 0;
}
