/* seal - what an entry of the store looked like when it was put there: a file in it, SEAL_NAME.
 *
 * Its front lists a few commands that everything stands on, with size and time of change; comparing
 * those takes a handful of system calls and is done whenever the entry is used. It finds what was
 * cut, emptied, replaced or removed, files that somebody wrote to, and commands that not everybody
 * may execute. It does not find bits that changed on the disk by themselves: for that the rest of
 * the file lists everything with its sha256, which `jerboa pull --verify` compares
 * (fetch/manifest.h).
 *
 *   jerboa-seal 1
 *   116281416 1763206543123456789 bin/node     size and nanoseconds, one line a file
 *                                              (an empty line: the end of the front)
 *   f 755 SHA256 bin/node                      f file, d directory, l symbolic link (its target)
 *
 * The owner of the store is trusted: who can write both the files and the seal can forge it. */
#pragma once

#include "base/buf.h"
#include "base/err.h"

#define SEAL_NAME ".seal"

/* 0 when the front holds; else ERR_INVALID names the first file that is not as it was. */
int seal_check(int dir_fd, struct err *e);
int seal_check_entry(int dir_fd, const void *arg, struct err *e); /* the same, as an entry_check */

/* The front of these commands (list ended by NULL), the empty line included. */
int seal_front(int dir_fd, const char *const *files, struct buf *ret, struct err *e);
