#include "init/channel.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "init/outbox.h"
#include "init/world.h"
#include "pipe/message.h"

enum channel_kind { CHANNEL_FREE, CHANNEL_PROCESS, CHANNEL_FILE };

struct output {
    int      fd;     /* -1: ended */
    uint32_t credit; /* bytes the server is ready to take */
};

struct channel {
    enum channel_kind kind;
    uint32_t          id;

    /* a process */
    pid_t         pid;     /* 0 once reaped */
    pid_t         program; /* who gets signals */
    int           exit_fd; /* of a leader, which pid is then: it tells the exit here */
    int           in_fd;
    struct buf    in;       /* what its stdin has not taken yet */
    uint64_t      in_taken; /* bytes of it that are in its pipe, or were read */
    bool          has_leader, in_ended;
    struct output outputs[2]; /* STREAM_OUT, STREAM_ERR */

    /* a file */
    int   file_fd;
    char *path, *temp_path;
};

static struct channel channels[CHANNELS_MAX];
static bool           lost_leader;

static struct channel *find(uint32_t id)
{
    for (size_t i = 0; i < CHANNELS_MAX; i++)
        if (channels[i].kind && channels[i].id == id)
            return &channels[i];
    return NULL;
}

bool channel_has(uint32_t channel)
{
    return find(channel) != NULL;
}

/* NULL: there are too many, and the server has been told so. */
static struct channel *open_channel(uint32_t id, enum channel_kind kind)
{
    struct err e = {0};

    for (size_t i = 0; i < CHANNELS_MAX; i++)
        if (!channels[i].kind) {
            channels[i] = (struct channel){.kind = kind,
                                           .id = id,
                                           .in_fd = -1,
                                           .file_fd = -1,
                                           .exit_fd = -1,
                                           .outputs = {{.fd = -1}, {.fd = -1}}};
            buf_init(&channels[i].in, WINDOW_TO_INIT);
            return &channels[i];
        }
    err_set(&e, ERR_LIMIT, "there are %d channels already", CHANNELS_MAX);
    outbox_send_error(id, &e);
    return NULL;
}

static void close_channel(struct channel *c)
{
    fd_close(&c->in_fd);
    fd_close(&c->file_fd);
    fd_close(&c->exit_fd);
    for (int i = 0; i < 2; i++)
        fd_close(&c->outputs[i].fd);
    buf_done(&c->in);
    free(c->path);
    free(c->temp_path);
    c->kind = CHANNEL_FREE;
}

/* ---- processes ---- */

static void process_step(struct channel *c)
{
    if (c->pid == 0 && c->outputs[0].fd < 0 && c->outputs[1].fd < 0)
        close_channel(c);
}

static int process_open(const struct frame *f, struct err *e)
{
    struct message_spawn m;
    struct launched      launched;
    struct channel      *c;
    struct err           failure = {0};

    TRY(message_unpack_spawn(f, &m, e));
    c = open_channel(f->channel, CHANNEL_PROCESS);
    if (!c) {
        message_spawn_done(&m);
        return 0;
    }
    outbox_flush(); /* it takes a while to start, and may be held up */
    if (world_launch(&m, &launched, &failure) < 0) {
        outbox_send_error(f->channel, &failure);
        close_channel(c);
    } else {
        c->pid = launched.pid;
        c->program = launched.program;
        c->in_fd = launched.in_fd;
        c->has_leader = launched.has_leader;
        if (c->has_leader)
            c->exit_fd = launched.exit_fd;
        c->outputs[0] = (struct output){launched.out_fd, WINDOW_FROM_INIT};
        c->outputs[1] = (struct output){launched.err_fd, WINDOW_FROM_INIT};
        outbox_send(FRAME_STARTED, f->channel, 0, NULL, 0);
    }
    message_spawn_done(&m);
    return 0;
}

/* Nobody reads its stdin any more: the server need not send. */
static void process_close_stdin(struct channel *c)
{
    int unread = 0;

    if (c->in_fd < 0)
        return;
    ioctl(c->in_fd, FIONREAD, &unread);
    c->in_taken -= (uint64_t)unread;
    fd_close(&c->in_fd);
    c->in.size = 0;
    if (!c->in_ended)
        outbox_send(FRAME_END, c->id, STREAM_IN, NULL, 0);
}

static void process_feed_stdin(struct channel *c)
{
    if (c->in_fd >= 0 && c->in.size > 0) {
        ssize_t n = write(c->in_fd, c->in.data, c->in.size);
        if (n < 0 && errno != EAGAIN && errno != EINTR) {
            process_close_stdin(c);
        } else if (n > 0) {
            buf_drop(&c->in, (size_t)n);
            c->in_taken += (uint64_t)n;
            outbox_send_credit(c->id, STREAM_IN, (uint32_t)n);
        }
    }
    if (c->in_ended && c->in.size == 0)
        fd_close(&c->in_fd);
}

static int process_data(struct channel *c, const struct frame *f, struct err *e)
{
    if (c->in_fd < 0)
        return 0; /* crossed our END */
    if (c->in_ended || buf_add(&c->in, f->payload, f->size) < 0)
        return err_set(e, ERR_INVALID, "data past the end or the window of channel %u", c->id);
    process_feed_stdin(c);
    return 0;
}

static void process_relay(struct channel *c, int which)
{
    struct output *o = &c->outputs[which];
    uint8_t        stream = (uint8_t)(STREAM_OUT + which);
    long           n = outbox_relay(o->fd, c->id, stream, o->credit);
    struct err     e = {0};

    if (n > 0) {
        o->credit -= (uint32_t)n;
    } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
        if (n < 0) { /* what it printed is not whole, and nobody may take it for that */
            err_sys(&e, "read what a program printed");
            outbox_send_error(0, &e);
        }
        fd_close(&o->fd);
        outbox_send(FRAME_END, c->id, stream, NULL, 0);
    }
}

static void process_exited(struct channel *c, int status, const struct rusage *usage)
{
    struct message_exited m = {
        .code = WIFEXITED(status) ? WEXITSTATUS(status) : -1,
        .signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0,
        .cpu_us = (uint64_t)(usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) * 1000000 +
                  (uint64_t)(usage->ru_utime.tv_usec + usage->ru_stime.tv_usec),
        .max_rss_bytes = (uint64_t)usage->ru_maxrss * 1024,
        .disk_full = world_disk_is_full(),
    };
    autobuf struct buf b;

    c->pid = 0;
    c->in_ended = true; /* the exit says it all: no END for its stdin */
    process_close_stdin(c);
    m.stdin_bytes = c->in_taken;
    buf_init(&b, 64);
    if (message_pack_exited(&b, &m) == 0)
        outbox_send(FRAME_EXITED, c->id, 0, b.data, b.size);
    process_step(c);
}

static void process_reaped(struct channel *c, int status, struct rusage *usage)
{
    if (c->has_leader && !world_read_exit(c->exit_fd, &status, usage))
        lost_leader = true;
    process_exited(c, status, usage);
}

void channel_reap(void)
{
    struct rusage usage;
    int           status;
    pid_t         pid;

    while ((pid = wait4(-1, &status, WNOHANG, &usage)) > 0 || (pid < 0 && errno == EINTR))
        for (size_t i = 0; i < CHANNELS_MAX; i++)
            if (channels[i].kind == CHANNEL_PROCESS && channels[i].pid == pid) {
                process_reaped(&channels[i], status, &usage);
                break;
            }
}

/* It dies of what world_end sent, so this does not wait long. */
bool channel_end_group(uint32_t channel)
{
    struct channel *c = find(channel);
    struct rusage   usage;
    int             status;
    bool            lost;

    if (c && c->kind == CHANNEL_PROCESS && c->pid > 0 && c->has_leader) {
        world_end(c->pid, c->exit_fd);
        if (wait4(c->pid, &status, 0, &usage) == c->pid)
            process_reaped(c, status, &usage);
    }
    lost = lost_leader;
    lost_leader = false;
    return !lost;
}

/* ---- files ---- */

static void file_fail(struct channel *c, const struct err *failure)
{
    outbox_send_error(c->id, failure);
    world_discard(c->temp_path);
    close_channel(c);
}

/* Up to and with the last slash: the temporary file lies beside its place, whatever long name that
 * has. */
static int directory_size(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? (int)(slash - path) + 1 : 0;
}

static int file_open(const struct frame *f, struct err *e)
{
    struct message_write_file m;
    struct channel           *c;
    struct err                failure = {0};

    TRY(message_unpack_write_file(f, &m, e));
    c = open_channel(f->channel, CHANNEL_FILE);
    if (!c)
        return 0;
    c->path = strdup(m.path);
    if (!c->path ||
        asprintf(&c->temp_path, "%.*s.jerboa-%u", directory_size(m.path), m.path, f->channel) < 0)
        abort();
    c->file_fd = world_create_file(c->temp_path, m.mode, &failure);
    if (c->file_fd < 0) { /* what has its temporary name is not ours to remove */
        outbox_send_error(c->id, &failure);
        close_channel(c);
    }
    return 0;
}

static int file_data(struct channel *c, const struct frame *f)
{
    struct err failure = {0};

    if (fd_write_all(c->file_fd, f->payload, f->size) < 0) {
        err_sys(&failure, "write %.120s", c->path);
        file_fail(c, &failure);
        return 0;
    }
    outbox_send_credit(c->id, STREAM_IN, (uint32_t)f->size);
    return 0;
}

static void file_end(struct channel *c)
{
    struct err failure = {0};

    if (world_publish(c->temp_path, c->path, &failure) < 0) {
        file_fail(c, &failure);
        return;
    }
    outbox_send(FRAME_DONE, c->id, 0, NULL, 0);
    close_channel(c);
}

/* ---- frames ---- */

static int handle_data(struct channel *c, const struct frame *f, struct err *e)
{
    if (f->stream != STREAM_IN)
        return err_set(e, ERR_INVALID, "data on a stream that only init writes");
    return c->kind == CHANNEL_PROCESS ? process_data(c, f, e) : file_data(c, f);
}

static int handle_end(struct channel *c, const struct frame *f, struct err *e)
{
    if (f->stream != STREAM_IN)
        return err_set(e, ERR_INVALID, "end of a stream that only init writes");
    if (c->kind == CHANNEL_PROCESS) {
        c->in_ended = true;
        process_feed_stdin(c);
    } else {
        file_end(c);
    }
    return 0;
}

static int handle_credit(struct channel *c, const struct frame *f, struct err *e)
{
    uint32_t bytes;

    TRY(message_unpack_u32(f, &bytes, e));
    if (c->kind != CHANNEL_PROCESS || f->stream == STREAM_IN)
        return err_set(e, ERR_INVALID, "credit for a stream that init does not write");
    struct output *o = &c->outputs[f->stream - STREAM_OUT];
    if (bytes > WINDOW_FROM_INIT - o->credit)
        return err_set(e, ERR_INVALID, "credit past the window of channel %u", c->id);
    o->credit += bytes;
    return 0;
}

static int handle_signal(struct channel *c, const struct frame *f, struct err *e)
{
    uint32_t number;

    TRY(message_unpack_u32(f, &number, e));
    if (number == 0 || number > 64)
        return err_set(e, ERR_INVALID, "there is no signal %u", number);
    if (c->kind == CHANNEL_PROCESS && c->pid > 0)
        kill(c->program, (int)number);
    return 0;
}

int channel_handle(const struct frame *f, struct err *e)
{
    struct channel *c;

    bool opens = f->type == FRAME_SPAWN || f->type == FRAME_WRITE_FILE;

    c = find(f->channel);
    if (opens && (c || f->channel == 0))
        return err_set(e, ERR_INVALID, "channel %u cannot be opened", f->channel);
    if (opens)
        return f->type == FRAME_SPAWN ? process_open(f, e) : file_open(f, e);
    if (!c)
        return 0;
    switch (f->type) {
    case FRAME_DATA:
        return handle_data(c, f, e);
    case FRAME_END:
        return handle_end(c, f, e);
    case FRAME_CREDIT:
        return handle_credit(c, f, e);
    case FRAME_SIGNAL:
        return handle_signal(c, f, e);
    default:
        return err_set(e, ERR_INVALID, "%s frame on channel %u", frame_type_name(f->type), c->id);
    }
}

/* ---- descriptors: three entries a process, in the order of the table. Nothing opens or closes a
 * channel between the two functions but the second one itself, at that channel's turn. ---- */

size_t channel_fill_polls(struct pollfd polls[CHANNEL_POLLS_MAX])
{
    size_t n = 0;

    for (size_t i = 0; i < CHANNELS_MAX; i++) {
        const struct channel *c = &channels[i];
        if (c->kind != CHANNEL_PROCESS)
            continue;
        polls[n++] = (struct pollfd){c->in_fd, c->in.size > 0 ? POLLOUT : 0, 0};
        for (int k = 0; k < 2; k++) /* without credit not even POLLHUP may wake us */
            polls[n++] =
                (struct pollfd){c->outputs[k].credit > 0 ? c->outputs[k].fd : -1, POLLIN, 0};
    }
    return n;
}

void channel_ready(const struct pollfd *polls)
{
    for (size_t i = 0; i < CHANNELS_MAX; i++) {
        struct channel *c = &channels[i];
        if (c->kind != CHANNEL_PROCESS)
            continue;
        if (polls[0].revents & POLLOUT)
            process_feed_stdin(c);
        else if (polls[0].revents)
            process_close_stdin(c);
        for (int k = 0; k < 2; k++)
            if (polls[1 + k].revents)
                process_relay(c, k);
        process_step(c);
        polls += 3;
    }
}
