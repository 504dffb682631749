/* fuzz-settings - texts of files that this machine's owner, or a program that we started, wrote.
 *
 * An input is the name of a reader (the table below), a newline, the text. Asserted: what is taken
 * keeps its bounds and lies within the text, and what is refused has one sentence. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/pem.h"
#include "base/str.h"
#include "deps/scripts.h"
#include "egress/resolver.h"
#include "transport/token.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void tokens(char *text)
{
    struct err        e = {0};
    struct tokens    *t = tokens_parse(text, &e);
    struct principal *nobody = t ? tokens_find(t, "short") : NULL; /* no token is so short */

    assert(!nobody && (t || (e.kind != ERR_NONE && e.msg[0])));
    tokens_free(t);
}

static void certificates(char *text)
{
    const char *at = text, *end = text + strlen(text);
    size_t      size;

    while ((at = pem_next_certificate(at, &size))) {
        assert(size > 0 && size <= (size_t)(end - at));
        assert(str_starts(at, "-----BEGIN ") && memcmp(at + size - 5, "-----", 5) == 0);
        assert(!memmem(at, size, "PRIVATE KEY-----", 16)); /* what this reader is for */
        at += size;
    }
}

/* ---- the resolver's two files ---- */

static void on_found(void *owner, const struct dns_addresses *found)
{
    assert(found->n <= DNS_ADDRESSES_MAX);
    *(bool *)owner = true;
}

/* `a.test` is asked for: of the hosts file it is told at once. Where it has to ask on it is
 * cancelled: the servers that are named here are somebody's. */
static void resolve(const struct resolver_files *files)
{
    struct event_base *base = event_base_new();
    struct resolver   *r = resolver_new(base, files);
    bool               found = false;
    struct resolving  *q = resolver_find(r, "a.test", on_found, &found);

    event_base_loop(base, EVLOOP_NONBLOCK);
    if (!found)
        resolver_cancel(q);
    resolver_free(r);
    assert(event_base_get_num_events(base, EVENT_BASE_COUNT_ADDED) == 0);
    event_base_free(base);
}

static void with_file(const char *text, bool is_hosts)
{
    autofd int            fd = memfd_create("settings", MFD_CLOEXEC);
    char                  path[40];
    struct resolver_files files = {"/dev/null", "/dev/null"};

    assert(fd >= 0 && fd_write_all(fd, text, strlen(text)) == 0);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    *(is_hosts ? &files.hosts : &files.resolv_conf) = path;
    resolve(&files);
}

static void hosts(char *text)
{
    with_file(text, true);
}

static void resolv_conf(char *text)
{
    with_file(text, false);
}

/* What npm and install scripts printed. */
static void install_output(char *text)
{
    struct err e = {0};

    assert(scripts_reason(text, &e) == -1 && e.kind != ERR_NONE && e.msg[0]);
}

static const struct {
    const char *name;
    void (*read)(char *text);
} readers[] = {
    {"tokens", tokens},           {"certificates", certificates},     {"hosts", hosts},
    {"resolv.conf", resolv_conf}, {"install-output", install_output},
};

/* The name servers of the text are not asked, whoever they are. */
int __wrap_connect(int fd, const struct sockaddr *to, socklen_t size);
int __wrap_connect(int fd, const struct sockaddr *to, socklen_t size)
{
    int ends[2];

    (void)to;
    (void)size;
    assert(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) == 0);
    assert(dup2(ends[0], fd) == fd);
    close(ends[0]);
    close(ends[1]);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    autofree char *input = str_ndup(size ? (const char *)data : "", size);
    char          *text = input, *name = strsep(&text, "\n");

    for (size_t i = 0; text && i < sizeof readers / sizeof readers[0]; i++)
        if (strcmp(readers[i].name, name) == 0)
            readers[i].read(text);
    return 0;
}
