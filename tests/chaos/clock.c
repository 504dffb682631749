/* clock - the clocks of one program, moved while it runs: preloaded into a server (LD_PRELOAD).
 *
 * Nobody else on the machine suffers, which a clock that is really set would not allow, and a time
 * namespace cannot move the clock that jumps. JERBOA_CHAOS_CLOCK names a file of two numbers of
 * nanoseconds, mapped here and changed by the test: what is added to the time of day, and to the
 * time since boot, which a suspended machine moves. The monotonic clock stays: Linux never moves
 * it. Programs that are linked statically (jail, init) do not come here. */
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { NS = 1000000000 };

struct moved {
    _Atomic int64_t day_ns, boot_ns;
};

static struct moved *moved;

__attribute__((constructor)) static void map_file(void)
{
    const char *path = getenv("JERBOA_CHAOS_CLOCK");
    int         fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void *at = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof(struct moved), PROT_READ, MAP_SHARED, fd, 0);

    moved = at == MAP_FAILED ? NULL : at;
    if (fd >= 0)
        close(fd);
}

static int64_t added_ns(clockid_t id)
{
    if (!moved)
        return 0;
    if (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)
        return moved->day_ns;
    return id == CLOCK_BOOTTIME ? moved->boot_ns : 0;
}

int clock_gettime(clockid_t id, struct timespec *ret)
{
    if (syscall(SYS_clock_gettime, id, ret) < 0)
        return -1;
    int64_t ns = ret->tv_nsec + added_ns(id) % NS;
    ret->tv_sec += added_ns(id) / NS + (ns < 0 ? -1 : ns / NS);
    ret->tv_nsec = ns < 0 ? ns + NS : ns % NS;
    return 0;
}

time_t time(time_t *ret)
{
    struct timespec now = {0};

    clock_gettime(CLOCK_REALTIME, &now);
    if (ret)
        *ret = now.tv_sec;
    return now.tv_sec;
}

int gettimeofday(struct timeval *restrict ret, void *restrict zone)
{
    struct timespec now = {0};

    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    *ret = (struct timeval){now.tv_sec, now.tv_nsec / 1000};
    return 0;
}
