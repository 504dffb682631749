/* sudo COMMAND…: for tests of commands that people are told to paste, on a machine without it.
 * Set-uid root, in a folder that only the test's own user may enter; it asks nothing. */
#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    if (argc < 2 || setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0)
        return 1;
    execvp(argv[1], argv + 1);
    perror(argv[1]);
    return 127;
}
