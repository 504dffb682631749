/* terminal COMMAND…: runs it in a session and at a terminal of its own, as a shell in a window
 * does. What it prints comes out here. When our input ends, the terminal is closed, and the kernel
 * hangs the session up. Ends as the command does; a signal is 128 and its number. */
#include <poll.h>
#include <pty.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

/* False: nothing comes any more. */
static bool pass(int from, int to)
{
    char    bytes[4096];
    ssize_t n = read(from, bytes, sizeof bytes);

    return n > 0 && write(to, bytes, (size_t)n) == n;
}

int main(int argc, char **argv)
{
    int   master, status;
    pid_t pid = argc < 2 ? -1 : forkpty(&master, NULL, NULL, NULL);

    if (pid == 0) {
        execv(argv[1], argv + 1);
        perror(argv[1]);
        _exit(127);
    }
    if (pid < 0)
        return 125;
    for (;;) {
        struct pollfd fds[] = {{STDIN_FILENO, POLLIN, 0}, {master, POLLIN, 0}};
        if (poll(fds, 2, -1) < 0 || (fds[0].revents && !pass(STDIN_FILENO, master)) ||
            (fds[1].revents && !pass(master, STDOUT_FILENO)))
            break;
    }
    close(master);
    if (waitpid(pid, &status, 0) < 0)
        return 125;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
