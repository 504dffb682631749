/* layer - a set of npm packages, installed once: an entry of the store, layers/KEY.
 *
 *   node_modules/        mounted below /workspace/node_modules of sandboxes, never written again
 *   package.json         the set, as the installer read it
 *   bun.lock, or package-lock.json: the exact versions
 *   .jerboa-layer.json   what it is; its time of change is when the ranges were last resolved
 *   .jerboa-layer.boot   its name until all of it is on the disk
 *
 * Whoever fills an entry may have run code of packages in it: nothing there is followed, and only
 * .jerboa-layer.json, which layer_commit writes last, is believed. Syncing a disk takes as long as
 * everybody's writes do, so a layer is used before: it names the boot of this machine in which it
 * was made, and counts in no other unless layer_settle came to its end. KEY is the sha256 of what
 * the content depends on. Who uses a layer holds it: `jerboa gc` removes no layer that is held, and
 * a newer one of the same key does not disturb it. */
#pragma once

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "store/entry.h"

#define LAYER_META ".jerboa-layer.json"
#define LAYER_META_BOOT ".jerboa-layer.boot"

enum { LAYER_KEY_SIZE = 65, LAYER_DEPS_MAX = 64 };

struct layer_dep {
    const char *name, *range;
};

struct layer_set {
    const struct layer_dep *deps; /* in any order; each name once */
    size_t                  n;
    const char             *node_version; /* its major version counts: the ABI of addons */
    const char             *installer;    /* "bun", "npm": they lay node_modules out differently */
};

struct layer_hold {
    int  fd;            /* -1: none */
    char dir[PATH_MAX]; /* the entry; node_modules is below it */
};

/* ERR_INVALID: too many, a name twice, or no version of Node. */
int layer_key(const struct layer_set *set, char ret[LAYER_KEY_SIZE], struct err *e);

/* 1: it is there, sound, resolved within max_age_ms (0: any time), and held now. 0: not there. */
int  layer_find(const char *key, struct layer_hold *ret, int64_t max_age_ms, struct err *e);
void layer_release(struct layer_hold *h);

/* As entry_begin: 0: fill ret->dir_fd, then commit or abort. 1: it is there, no older than
 * max_age_ms: find it. 2: another process fills it: ask again later. Never waits. */
int  layer_begin(const char *key, int64_t max_age_ms, struct entry *ret, struct err *e);
int  layer_commit(struct entry *entry, const struct layer_set *set, struct err *e);
void layer_abort(struct entry *entry);

/* What was committed becomes what a power cut leaves. Blocks; nobody needs to wait for it but who
 * ends. If the disk does not take it, nobody finds it any more. */
void layer_settle(struct entry *entry);

/* The ranges were resolved again, and give what the layer has: it is as good as new. */
void layer_refresh(const struct layer_hold *h);
