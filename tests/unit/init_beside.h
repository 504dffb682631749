/* init_beside.h: a plan names jerboa-init, which the build puts beside jerboa but not beside its
 * test. Tests that do this do not run at once. */
#pragma once

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"

static char init_path[4096];

static int put_init_beside_us(void **state)
{
    ssize_t n = readlink("/proc/self/exe", init_path, sizeof init_path - 20);
    int     fd;

    (void)state;
    if (n < 0)
        return -1;
    init_path[n] = '\0';
    strcpy(strrchr(init_path, '/'), "/jerboa-init");
    fd = open(init_path, O_CREAT | O_WRONLY | O_CLOEXEC, 0755);
    fd_close(&fd);
    return 0;
}

static int remove_init(void **state)
{
    (void)state;
    return unlink(init_path);
}
