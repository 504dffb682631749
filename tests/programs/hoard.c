/* hoard HOW MIB - takes memory in ways that are hard to see, then waits: `leaderless` in a thread
 * whose process has lost its first one, `memfd` and `shm` without mapping it, `sem` as semaphores,
 * `shared` and `zero` as pages that are shared and no longer mapped, `tables` as page tables of
 * nothing. Or takes it once, so that it shows twice: `vfork` stays for a while between vfork and
 * exec. Prints what became of it. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <unistd.h>

static size_t mib;

static void *fill(void *unused)
{
    (void)unused;
    usleep(100000); /* until the first thread is gone */
    for (size_t i = 0; i < mib; i++) {
        void *p = malloc(1 << 20);
        if (p)
            memset(p, 1, 1 << 20);
    }
    puts("filled");
    fflush(stdout);
    pause();
    return NULL;
}

static void leaderless(void)
{
    pthread_t t;

    pthread_create(&t, NULL, fill, NULL);
    syscall(SYS_exit, 0);
}

static void memfd(void)
{
    static char piece[1 << 20];
    int         fd = memfd_create("x", 0);

    for (size_t i = 0; fd >= 0 && i < mib; i++)
        if (write(fd, piece, sizeof piece) < 0)
            break;
    puts(fd < 0 ? strerror(errno) : "filled");
}

static void shm(void)
{
    int id = shmget(IPC_PRIVATE, mib << 20, 0600);

    if (id >= 0) {
        void *p = shmat(id, NULL, 0);
        memset(p, 1, mib << 20);
        shmdt(p);
    }
    puts(id < 0 ? strerror(errno) : "filled");
}

static void sem(void)
{
    for (size_t taken = 0; taken < mib << 20; taken += 32000 * 64)
        if (semget(IPC_PRIVATE, 32000, 0600) < 0) {
            puts(strerror(errno));
            return;
        }
    puts("filled");
}

static void shared(int flags, int fd)
{
    void *p = mmap(NULL, mib << 20, PROT_READ | PROT_WRITE, flags, fd, 0);

    if (p == MAP_FAILED) {
        puts(strerror(errno));
        return;
    }
    for (size_t i = 0; i < mib; i++) {
        memset((char *)p + (i << 20), 1, 1 << 20);
        madvise((char *)p + (i << 20), 1 << 20, MADV_DONTNEED);
    }
    puts("filled");
}

static void zero(void)
{
    int fd = open("/dev/zero", O_RDWR);

    if (fd < 0)
        puts(strerror(errno));
    else
        shared(MAP_SHARED, fd);
}

/* A page of a table for each byte that is read, and the one page of zeros for all of them. */
static void tables(void)
{
    const size_t gib = 1UL << 30, step = 2UL << 20;

    for (size_t i = 0; i < mib / 2; i++) {
        volatile char *p = mmap(NULL, gib, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (p == MAP_FAILED)
            break;
        madvise((void *)p, gib, MADV_NOHUGEPAGE);
        for (size_t at = 0; at < gib; at += step)
            (void)p[at];
    }
    usleep(500000);
    puts("filled");
}

static void stay_in_vfork(void)
{
    void *p = malloc(mib << 20);

    if (p)
        memset(p, 1, mib << 20);
    if (vfork() == 0) {
        usleep(500000);
        _exit(0);
    }
    puts("lived");
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    mib = (size_t)atoi(argv[2]);
    if (strcmp(argv[1], "leaderless") == 0)
        leaderless();
    else if (strcmp(argv[1], "memfd") == 0)
        memfd();
    else if (strcmp(argv[1], "vfork") == 0)
        stay_in_vfork();
    else if (strcmp(argv[1], "sem") == 0)
        sem();
    else if (strcmp(argv[1], "shared") == 0)
        shared(MAP_SHARED | MAP_ANONYMOUS, -1);
    else if (strcmp(argv[1], "zero") == 0)
        zero();
    else if (strcmp(argv[1], "tables") == 0)
        tables();
    else
        shm();
    fflush(stdout);
    return 0;
}
