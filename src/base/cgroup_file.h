/* cgroup_file - the small files of a cgroup, and the texts that say where cgroups are. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* Never makes a file: one that the kernel does not offer is an error. */
int cgroup_file_put(int dir, const char *name, const char *text, struct err *e);

/* The number behind `word ` at the start of a line, or the file's only number when word is NULL.
 * -1: no such file, or no such word. */
int cgroup_file_get(int dir, const char *name, const char *word, uint64_t *ret);

/* The machine lacks a controller, as far as `where` goes: ENODEV. */
int cgroup_file_no_controller(struct err *e, const char *controller, const char *where);

/* Whether a text of words, separated by any of `between`, has this one. */
bool cgroup_file_has_word(const char *text, const char *word, const char *between);

/* A mount of /proc/self/mountinfo of this type ("cgroup", "cgroup2"), the n-th; false: no more. The
 * caller frees the strings. */
struct cgroup_mount {
    char *root, *point, *options;
};
bool cgroup_file_mount(const char *mountinfo, const char *type, int n, struct cgroup_mount *ret);
void cgroup_mount_done(struct cgroup_mount *m);

/* This process's path in the hierarchy of a controller ("" is v2's), from the text of
 * /proc/self/cgroup; NULL: in none. The caller frees it. */
char *cgroup_file_own(const char *cgroups, const char *controller);

/* Where that path is to be seen through that mount. -1: too long. */
int cgroup_file_locate(const struct cgroup_mount *m, const char *own, char *ret, size_t size);
