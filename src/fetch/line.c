/* Theory of operation. Two processes of one program and a pair of sockets that keep the borders of
 * messages. The keeper sends a question, a struct, with the descriptor of a file when it asks for a
 * tarball; the line answers with a struct and then as many bytes of text as that says. One question
 * at a time; the first answer comes unasked and says whether the line stands. When the keeper
 * closes its end, or dies, the line ends.
 *
 * What the line says is what a registry says, whose voice it is: a wrong version, a wrong hash. It
 * must not be able to do more than that, so everything in an answer is checked (fetch/told.h). */
#include "fetch/line.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "fetch/forked.h"
#include "fetch/progress.h"
#include "fetch/roles.h"
#include "fetch/search.h"
#include "fetch/told.h"
#include "npm/registry.h"

enum {
    WORD_MAX = 512,
    RANGE_MAX = 4096,
    TEXT_MAX = 8 << 20,
    PIECE = 32 << 10,
    NAMED_MAX = 8,
};

enum asked { ASKED_RESOLVE, ASKED_README, ASKED_SEARCH, ASKED_DOWNLOAD };

struct question {
    enum asked     asked;
    char           word[WORD_MAX];              /* a package, a scope, what to call a download */
    char           range[RANGE_MAX];            /* or a query */
    char           node[PACKUMENT_VERSION_MAX]; /* or "" */
    bool           use_tags;
    struct release release;
};

struct answer {
    struct err     err; /* of kind ERR_NONE: none */
    struct release release;
    size_t         text_size;
};

struct line {
    int   fd;
    pid_t pid;
    char  note[PATH_MAX];
};

/* ---- messages ---- */

static int send_all(int fd, const void *data, size_t size, int file_fd)
{
    union {
        struct cmsghdr header;
        char           bytes[CMSG_SPACE(sizeof(int))];
    } control = {.header = {.cmsg_len = CMSG_LEN(sizeof(int)),
                            .cmsg_level = SOL_SOCKET,
                            .cmsg_type = SCM_RIGHTS}};
    struct iovec  part = {.iov_base = (void *)data, .iov_len = size};
    struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1};
    ssize_t       n;

    if (file_fd >= 0) {
        memcpy(CMSG_DATA(&control.header), &file_fd, sizeof file_fd);
        m.msg_control = control.bytes;
        m.msg_controllen = sizeof control.bytes;
    }
    do
        n = sendmsg(fd, &m, MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    return n == (ssize_t)size ? 0 : -1;
}

/* How many bytes came; 0 at the end. A descriptor is taken where it is wanted, else it is lost. */
static ssize_t receive(int fd, void *data, size_t size, int *ret_file_fd)
{
    union {
        struct cmsghdr header;
        char           bytes[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct iovec    part = {.iov_base = data, .iov_len = size};
    struct msghdr   m = {.msg_iov = &part, .msg_iovlen = 1};
    struct cmsghdr *header;
    ssize_t         n;

    if (ret_file_fd) {
        m.msg_control = control.bytes;
        m.msg_controllen = sizeof control.bytes;
    }
    do
        n = recvmsg(fd, &m, MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    header = n > 0 ? CMSG_FIRSTHDR(&m) : NULL;
    if (ret_file_fd && header && header->cmsg_type == SCM_RIGHTS &&
        header->cmsg_len == CMSG_LEN(sizeof(int)))
        memcpy(ret_file_fd, CMSG_DATA(header), sizeof *ret_file_fd);
    return m.msg_flags & MSG_TRUNC ? -1 : n;
}

/* ---- the line's side ---- */

/* Only what a registry named in answers of this line is fetched: whoever takes the keeper over by
 * an archive cannot have any address asked, with what he knows in it. */
struct exchange {
    struct registry *registry;
    int              fd;
    struct release   named[NAMED_MAX]; /* the latest ones */
    size_t           n;
};

static bool was_named(const struct exchange *x, const struct release *release)
{
    for (size_t i = 0; i < x->n && i < NAMED_MAX; i++)
        if (memcmp(&x->named[i], release, sizeof *release) == 0)
            return true;
    return false;
}

static int resolve(struct registry *r, const struct question *q, struct answer *a, struct buf *text,
                   struct err *e)
{
    struct semver       node;
    struct release_want want = {.range = q->range, .use_tags = q->use_tags};

    (void)text;
    if (*q->node && semver_parse(q->node, &node) < 0)
        return err_set(e, ERR_INTERNAL, "%.60s is no version", q->node);
    if (*q->node)
        want.node = &node;
    return registry_resolve(r, q->word, &want, &a->release, e);
}

static int resolve_readme(struct registry *r, const struct question *q, struct answer *a,
                          struct buf *text, struct err *e)
{
    autofree char *readme = NULL;
    const char    *from;

    TRY(registry_resolve_readme(r, q->word, &readme, &a->release, e));
    if (!readme)
        return 0;
    from = readme + strspn(readme, " \t\r\n");
    return buf_add(text, from, strnlen(from, SEARCH_README_BYTES));
}

static int search(struct registry *r, const struct question *q, struct answer *a, struct buf *text,
                  struct err *e)
{
    (void)a;
    return search_ask(r, q->word, q->range, text, e);
}

static int download(struct exchange *x, const struct question *q, int file_fd, struct err *e)
{
    struct progress progress;
    int             got;

    if (file_fd < 0 || !was_named(x, &q->release))
        return err_set(e, ERR_INTERNAL, "no registry named this download");
    progress_start(&progress, q->word, q->release.version);
    got = registry_download(x->registry, &q->release, file_fd, progress_update, &progress, e);
    progress_end(&progress);
    return got;
}

static int (*const questions[])(struct registry *r, const struct question *q, struct answer *a,
                                struct buf *text, struct err *e) = {
    [ASKED_RESOLVE] = resolve, [ASKED_README] = resolve_readme, [ASKED_SEARCH] = search};

static int tell(int fd, struct answer *a, const struct buf *text)
{
    a->text_size = text->size;
    TRY(send_all(fd, a, sizeof *a, -1));
    for (size_t at = 0, n; at < text->size; at += n) {
        n = text->size - at < PIECE ? text->size - at : PIECE;
        TRY(send_all(fd, text->data + at, n, -1));
    }
    return 0;
}

static bool is_question(const struct question *q)
{
    return q->asked <= ASKED_DOWNLOAD && memchr(q->word, '\0', sizeof q->word) &&
           memchr(q->range, '\0', sizeof q->range) && memchr(q->node, '\0', sizeof q->node);
}

static int answer_one(struct exchange *x, const struct question *q, int file_fd, struct answer *a,
                      struct buf *text, struct err *e)
{
    if (q->asked == ASKED_DOWNLOAD)
        return download(x, q, file_fd, e);
    TRY(questions[q->asked](x->registry, q, a, text, e));
    x->named[x->n++ % NAMED_MAX] = a->release;
    return 0;
}

/* One question; -1: nobody asks any more. */
static int serve_one(struct exchange *x)
{
    struct question    q;
    struct answer      a = {0};
    struct err         e = {0};
    autofd int         file = -1;
    autobuf struct buf text;

    buf_init(&text, TEXT_MAX);
    if (receive(x->fd, &q, sizeof q, &file) != sizeof q || !is_question(&q))
        return -1;
    if (answer_one(x, &q, file, &a, &text, &e) < 0) /* else it is of an attempt that was mended */
        a.err = e;
    return tell(x->fd, &a, &text);
}

/* The note of the configuration is the text of the first answer. */
static void __attribute__((noreturn)) be_line(int fd, enum npm_config_reach reach)
{
    struct answer      a = {0};
    struct exchange    x = {.registry = registry_open(reach, &a.err), .fd = fd};
    autobuf struct buf note;

    buf_init(&note, PATH_MAX);
    if (x.registry && roles_become_line(registry_cafile(x.registry), &a.err) == 0)
        buf_add(&note, registry_note(x.registry), strlen(registry_note(x.registry)));
    if (tell(fd, &a, &note) == 0 && a.err.kind == ERR_NONE)
        while (serve_one(&x) == 0)
            ;
    _exit(0);
}

/* ---- the keeper's side ---- */

/* It has ended, or says what cannot be: it is not asked again. */
static int lost(struct line *l, struct err *e)
{
    struct err why = {0};
    pid_t      pid = l->pid;

    fd_close(&l->fd);
    l->pid = -1;
    if (pid > 0 && forked_reap(pid, "line", &why) < 0) {
        if (e)
            *e = why;
        return -1;
    }
    return err_set(e, ERR_INTERNAL, "the line of jerboa-fetch gave no answer");
}

static int hear(struct line *l, struct answer *ret, struct buf *ret_text, struct err *e)
{
    char    piece[PIECE];
    ssize_t n;

    if (l->fd < 0 || receive(l->fd, ret, sizeof *ret, NULL) != sizeof *ret)
        return lost(l, e);
    for (size_t left = ret->text_size; left > 0; left -= (size_t)n) {
        n = receive(l->fd, piece, sizeof piece, NULL);
        if (n <= 0 || (size_t)n > left || !ret_text)
            return lost(l, e);
        if (buf_add(ret_text, piece, (size_t)n) < 0) {
            lost(l, NULL); /* the rest would be taken for the next answer */
            return err_set(e, ERR_LIMIT, "the registry's answer is too long");
        }
    }
    return told_check(&ret->err, e);
}

static int ask(struct line *l, const struct question *q, int file_fd, struct answer *ret,
               struct buf *ret_text, struct err *e)
{
    if (l->fd < 0 || send_all(l->fd, q, sizeof *q, file_fd) < 0)
        return lost(l, e);
    return hear(l, ret, ret_text, e);
}

/* A word that is too long is one that no registry has. */
static struct question question_of(enum asked asked, const char *word, const char *range)
{
    struct question q = {.asked = asked};

    snprintf(q.word, sizeof q.word, "%s", word);
    snprintf(q.range, sizeof q.range, "%s", range);
    return q;
}

static int take_release(const struct answer *a, struct release *ret, struct err *e)
{
    TRY(told_release(&a->release, e));
    *ret = a->release;
    return 0;
}

int line_resolve(struct line *l, const char *package, const struct line_want *want,
                 struct release *ret, struct err *e)
{
    struct question q = question_of(ASKED_RESOLVE, package, want->range);
    struct answer   a;

    q.use_tags = want->use_tags;
    snprintf(q.node, sizeof q.node, "%s", want->node ? want->node : "");
    TRY(ask(l, &q, -1, &a, NULL, e));
    return take_release(&a, ret, e);
}

int line_resolve_readme(struct line *l, const char *package, struct buf *ret_text,
                        struct release *ret, struct err *e)
{
    struct question q = question_of(ASKED_README, package, "");
    struct answer   a;

    TRY(ask(l, &q, -1, &a, ret_text, e));
    return ret_text->size > 0 ? 0 : take_release(&a, ret, e);
}

int line_search(struct line *l, const char *scope, const char *query, struct buf *ret,
                struct err *e)
{
    struct question q = question_of(ASKED_SEARCH, scope, query);
    struct answer   a;

    return ask(l, &q, -1, &a, ret, e);
}

int line_download(struct line *l, const char *name, const struct release *release, int file_fd,
                  struct err *e)
{
    struct question q = question_of(ASKED_DOWNLOAD, name, "");
    struct answer   a;

    q.release = *release;
    return ask(l, &q, file_fd, &a, NULL, e);
}

static struct line *line_new(int fd, pid_t pid)
{
    struct line *l = calloc(1, sizeof *l);

    if (!l)
        abort();
    l->fd = fd;
    l->pid = pid;
    return l;
}

static int begin(struct line *l, const char *const *parts, struct err *e)
{
    struct answer      a;
    autobuf struct buf note;

    buf_init(&note, PATH_MAX);
    TRY(roles_become_keeper(parts, e));
    TRY(hear(l, &a, &note, e));
    told_show(buf_text(&note), sizeof l->note, l->note);
    return 0;
}

struct line *line_open(enum npm_config_reach reach, const char *const *parts, struct err *e)
{
    int          fds[2];
    struct line *l;
    pid_t        pid;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0) {
        err_sys(e, "socketpair");
        return NULL;
    }
    pid = forked_start("line", e);
    if (pid == 0) {
        fd_close(&fds[0]);
        be_line(fds[1], reach);
    }
    fd_close(&fds[1]);
    l = line_new(fds[0], pid);
    if (pid > 0 && begin(l, parts, e) == 0)
        return l;
    line_free(l);
    return NULL;
}

void line_free(struct line *l)
{
    if (!l)
        return;
    fd_close(&l->fd);
    if (l->pid > 0)
        forked_reap(l->pid, "line", NULL);
    free(l);
}

const char *line_note(const struct line *l)
{
    return l->note;
}
