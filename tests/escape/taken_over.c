/* A jerboa-fetch that was taken over: for programs.test.mjs. The lines of a file `taken-over`
 * beside the program tell what to leave out and what to try:
 *
 *   leave ROLE WALL            of confine/confine.c
 *   try ROLE WAY WHERE WORD    once that role's walls stand; then it ends
 *
 * The word is said on stderr when the way was open, and only then; else the errno is. The file is
 * read at the first question of each process, which comes before it has given anything up. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "confine/leave_out.h"
#include "confine/ruleset.h"

enum { TEXT_MAX = 1 << 14, WORD_MAX = 256, FIELD_MAX = 1024 };

static char  *first_variable; /* of the environment as the program got it */
static size_t environment_size;

static void __attribute__((constructor)) remember_environment(void)
{
    char **v = environ;

    first_variable = *v;
    for (; v && *v; v++)
        environment_size = (size_t)(*v + strlen(*v) - first_variable);
}

static const char *orders(void)
{
    static char *text; /* begins and ends with a line end */
    char         self[PATH_MAX];
    ssize_t      n;

    if (text)
        return text;
    n = readlink("/proc/self/exe", self, sizeof self - 1);
    self[n < 0 ? 0 : n] = '\0';
    *(strrchr(self, '/') ? strrchr(self, '/') : self) = '\0';
    autofree char *path = str_format("%s/taken-over", self), *lines = NULL;
    if (file_read_text(AT_FDCWD, path, TEXT_MAX, &lines, NULL) < 0) {
        fprintf(stderr, "escape-fetch: no file 'taken-over' beside it\n");
        abort();
    }
    text = str_format("\n%s\n", lines);
    return text;
}

bool confine_leaves_out(const char *role, const char *wall)
{
    autofree char *line = str_format("\nleave %s %s\n", role, wall);

    return strstr(orders(), line) != NULL;
}

/* ---- ways: each returns 0, or -1 with errno ---- */

static int show(int fd)
{
    char    text[WORD_MAX];
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text);

    return n <= 0 ? -1 : (int)(write(2, text, (size_t)n) - n);
}

/* By the call that every role's filter has, or nothing would be shown of Landlock. */
static int open_any(const char *path, int flags)
{
    struct open_how how = {.flags = (uint64_t)flags, .mode = flags & O_CREAT ? 0600 : 0};
    int             fd = (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof how);

    return fd < 0 && errno == ENOSYS ? open(path, flags, 0600) : fd;
}

static int way_read(const char *where, const char *word)
{
    (void)word;
    return show(open_any(where, O_RDONLY));
}

static int way_write(const char *where, const char *word)
{
    int fd = open_any(where, O_WRONLY | O_CREAT);

    return fd < 0 ? -1 : (int)write(fd, word, strlen(word));
}

static int way_remove(const char *where, const char *word)
{
    (void)word;
    return unlinkat(AT_FDCWD, where, 0);
}

static int way_connect(const char *where, const char *word)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)atoi(where)),
                             .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int                fd = socket(AF_INET, SOCK_STREAM, 0);

    (void)word;
    if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof to) < 0)
        return -1;
    return show(fd);
}

/* A path, or an abstract name behind an @. */
static int way_unix(const char *where, const char *word)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    int                fd = socket(AF_UNIX, SOCK_STREAM, 0);
    size_t             n = strlen(where);

    (void)word;
    if (fd < 0 || n >= sizeof to.sun_path)
        return -1;
    memcpy(to.sun_path, where, n);
    if (*where == '@')
        *to.sun_path = '\0';
    if (connect(fd, (struct sockaddr *)&to,
                (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n + (*where != '@'))) < 0)
        return -1;
    return show(fd);
}

static int way_listen(const char *where, const char *word)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int                fd = socket(AF_INET, SOCK_STREAM, 0);

    (void)where, (void)word;
    return fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof at) < 0 ? -1 : listen(fd, 1);
}

static int way_execute(const char *where, const char *word)
{
    return execl(where, "sh", "-c", "echo $0 >&2", word, NULL);
}

static int way_trace(const char *where, const char *word)
{
    (void)word;
    return (int)ptrace(PTRACE_SEIZE, atoi(where), NULL, NULL);
}

static int way_signal(const char *where, const char *word)
{
    (void)word;
    return kill(atoi(where), SIGCONT);
}

/* By a pipe that belongs to the other process, which the kernel tells of bytes. Whether it was
 * told, only the host sees. */
static int way_signal_by_pipe(const char *where, const char *word)
{
    int fds[2];

    if (pipe2(fds, 0) < 0 || fcntl(fds[0], F_SETOWN, atoi(where)) < 0 ||
        fcntl(fds[0], F_SETSIG, SIGUSR1) < 0 || fcntl(fds[0], F_SETFL, O_ASYNC) < 0)
        return -1;
    if (write(fds[1], word, 1) == 1)
        errno = EINPROGRESS;
    return -1;
}

static int way_namespace(const char *where, const char *word)
{
    (void)where, (void)word;
    return unshare(CLONE_NEWUSER);
}

static int way_give_away(const char *where, const char *word)
{
    (void)word;
    return chown(where, 1, 1);
}

/* By the path, or by the file itself if it can be opened: Landlock has no say in either. */
static int way_change_mode(const char *where, const char *word)
{
    int fd;

    (void)word;
    if (fchmodat(AT_FDCWD, where, 0666, 0) == 0)
        return 0;
    fd = open_any(where, O_RDONLY);
    return fd < 0 ? -1 : fchmod(fd, 0666);
}

/* Its last byte is the fourth gigabyte's. */
static int way_lengthen(const char *where, const char *word)
{
    int fd = open_any(where, O_WRONLY | O_CREAT);

    signal(SIGXFSZ, SIG_IGN);
    return fd < 0 || lseek(fd, (4LL << 30) - 1, SEEK_SET) < 0 ? -1
           : write(fd, word, 1) == 1                          ? ftruncate(fd, 0)
                                                              : -1;
}

static int way_environment(const char *where, const char *word)
{
    (void)where;
    errno = ENOENT;
    return memmem(first_variable, environment_size, word, strlen(word)) ? 0 : -1;
}

/* No way out: which Landlock there is, as the word. */
static int way_version(const char *where, const char *word)
{
    (void)where, (void)word;
    return dprintf(2, "landlock %d\n", ruleset_version(NULL));
}

static const struct {
    const char *name;
    int (*go)(const char *where, const char *word);
} ways[] = {
    {"read", way_read},
    {"write", way_write},
    {"remove", way_remove},
    {"connect", way_connect},
    {"unix", way_unix},
    {"listen", way_listen},
    {"execute", way_execute},
    {"trace", way_trace},
    {"signal", way_signal},
    {"signal-by-pipe", way_signal_by_pipe},
    {"namespace", way_namespace},
    {"give-away", way_give_away},
    {"change-mode", way_change_mode},
    {"lengthen", way_lengthen},
    {"environment", way_environment},
    {"version", way_version},
};

/* What shows the secret by itself must not be helped by us. */
static bool shows(const char *way)
{
    static const char *const own[] = {"read", "connect", "unix", "execute", "version"};

    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
        if (strcmp(own[i], way) == 0)
            return true;
    return false;
}

static void __attribute__((noreturn)) go(const char *way, const char *where, const char *word)
{
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        if (strcmp(ways[i].name, way) != 0)
            continue;
        if (ways[i].go(where, word) < 0)
            dprintf(2, "taken over, in vain: %s: %s\n", way, strerror(errno));
        else if (!shows(way))
            dprintf(2, "%s\n", word);
        _exit(0);
    }
    dprintf(2, "escape-fetch: there is no way '%s'\n", way);
    _exit(1);
}

void confine_taken_over(const char *role)
{
    autofree char *begin = str_format("\ntry %s ", role);
    const char    *line = strstr(orders(), begin);
    char           way[FIELD_MAX], where[FIELD_MAX], word[FIELD_MAX];

    if (line && sscanf(line + strlen(begin), "%1023s %1023s %1023s", way, where, word) == 3)
        go(way, where, word);
}
