#include "init/counters.h"

#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"

enum { TEXT_MAX = 4096 };

#define AT(member) offsetof(struct message_group_ended, member)

/* Both versions of cgroups; of each number the first file that is there. A word: the line that
 * begins with it. */
static const struct {
    size_t      at;
    const char *path, *word;
} rows[] = {
    {AT(oom_kills), "/sys/fs/cgroup/memory.events", "oom_kill "},
    {AT(oom_kills), "/sys/fs/cgroup/memory/memory.oom_control", "oom_kill "},
    {AT(forks_refused), "/sys/fs/cgroup/pids.events", "max "},
    {AT(forks_refused), "/sys/fs/cgroup/pids/pids.events", "max "},
    {AT(peak_bytes), "/sys/fs/cgroup/memory.peak", ""},
    {AT(peak_bytes), "/sys/fs/cgroup/memory/memory.max_usage_in_bytes", ""},
};

static uint64_t find_number(const char *text, const char *word)
{
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, word, strlen(word)) == 0)
            return strtoull(line + strlen(word), NULL, 10);
    }
    return 0;
}

static uint64_t read_number(const char *path, const char *word)
{
    autofd int fd = open(path, O_RDONLY | O_CLOEXEC);
    char       text[TEXT_MAX + 1];
    ssize_t    n = fd < 0 ? -1 : read(fd, text, TEXT_MAX);

    if (n <= 0)
        return 0;
    text[n] = '\0';
    return find_number(text, word);
}

/* One without a limit was not made for this sandbox: what is counted there are others, too. "max"
 * is no number, and cgroup v1 says it with a huge one. */
static bool is_own(void)
{
    uint64_t v2 = read_number("/sys/fs/cgroup/memory.max", ""),
             v1 = read_number("/sys/fs/cgroup/memory/memory.limit_in_bytes", "");

    return v2 > 0 || (v1 > 0 && v1 < 1ULL << 60);
}

struct message_group_ended counters_read(void)
{
    struct message_group_ended c = {0};

    if (!is_own())
        return c;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint64_t *number = (uint64_t *)((char *)&c + rows[i].at);
        if (*number == 0)
            *number = read_number(rows[i].path, rows[i].word);
    }
    return c;
}
