/* fd - file descriptors: every one is born close-on-exec, -1 is none, locals close themselves. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/types.h>

#include "base/err.h"

/* Closes and forgets; keeps errno. */
void fd_close(int *fd);
void fd_reset(int *fd); /* the same for a TCP connection, whose peer sees a reset */
int  take_fd(int *fd);  /* hands the descriptor over: *fd is -1 afterwards */

static inline void autofree_done(void *p)
{
    free(*(void **)p);
}

#define autofd __attribute__((cleanup(fd_close)))
#define autofree __attribute__((cleanup(autofree_done)))

/* Whole transfers on blocking descriptors; a short one is an error. */
int fd_write_all(int fd, const void *data, size_t size);
int fd_set_nonblock(int fd, bool on);

/* Small files: kernel interfaces, configuration, plans. Reads at most max bytes, ends them with
 * NUL (not counted); more than that is ERR_LIMIT. The caller frees *ret_text. */
int fd_read_text(int fd, size_t max, char **ret_text, size_t *ret_size, struct err *e);
int file_read_text(int dir_fd, const char *path, size_t max, char **ret_text, struct err *e);
int file_write_text(int dir_fd, const char *path, const char *text, struct err *e);
/* By the open file, not by its path: a walled-in process has no call for that. -1: errno. */
int file_make_executable(int dir_fd, const char *path);
