/* hoard HOW MIB - takes memory in ways that are hard to see, then waits: `leaderless` in a thread
 * whose process has lost its first one, `memfd` and `shm` without mapping it. Or takes it once, so
 * that it shows twice: `vfork` stays for a while between vfork and exec. Prints what became of it.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
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
    else
        shm();
    fflush(stdout);
    return 0;
}
