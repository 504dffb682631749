/* runtime - a Node to run scripts with: one of the store, else fetched, else this machine's.
 *
 * What stands in the store was complete when it was put there (store/entry.h); whether it still is,
 * its seal tells (store/seal.h). The network is left to the program jerboa-fetch. */
#pragma once

#include <limits.h>
#include <stdbool.h>

#include "base/err.h"

#if defined(__x86_64__)
#define RUNTIME_ARCH "x64"
#elif defined(__aarch64__)
#define RUNTIME_ARCH "arm64"
#else
#error "there is no Node build for this machine in the registry"
#endif

#define RUNTIME_DEFAULT "node:lts-slim" /* the image of who names none */

enum { RUNTIME_VERSION_MAX = 64 };

/* How jerboa-fetch ends when the registry cannot be reached. */
enum { RUNTIME_FETCH_UNAVAILABLE = 3 };

struct runtime {
    char dir[PATH_MAX]; /* has bin/node */
    char version[RUNTIME_VERSION_MAX];
    bool is_host;                 /* this machine's own: dir is its prefix, such as /usr */
    char note[ERR_MSG_MAX + 200]; /* one sentence that the user must read, or "" */
};

/* The entry's name in the store: node-24.1.0-x64. */
int runtime_name(const char *version, char ret[NAME_MAX + 1], struct err *e);

/* The newest runtime of the store that suits the image, by its name alone; ERR_NOT_FOUND: none yet.
 */
int runtime_newest(const char *image, struct runtime *ret, struct err *e);

/* The same, if its seal holds; ERR_NOT_FOUND also when it is damaged. No network. */
int runtime_find(const char *image, struct runtime *ret, struct err *e);

/* Finds it or fetches it: blocks, and jerboa-fetch shows its progress on stderr. When the registry
 * cannot be reached, this machine's own Node if it suits (then ret->note says so). */
int runtime_ensure(const char *image, struct runtime *ret, struct err *e);

/* What runtime_ensure does once it has asked jerboa-fetch, for who asks it on a loop: how it ended
 * and the line it printed become a runtime, or an error. */
int runtime_take_answer(const char *image, int status, const char *line, struct runtime *ret,
                        struct err *e);

/* Keeps `jerboa gc` from removing it while the descriptor that is returned is open, and notes that
 * it was used now. ERR_NOT_FOUND: it went meanwhile. This machine's own needs no keeping. */
int runtime_hold(const struct runtime *runtime, struct err *e);

/* Ensures it and holds it: for who starts sandboxes with it. */
int runtime_ensure_held(const char *image, struct runtime *ret, int *ret_fd, struct err *e);

/* Compares all of it with what was fetched; what is damaged is fetched again. */
int runtime_verify(const char *image, struct runtime *ret, struct err *e);
