/* line - npm's registries, asked by a process of its own: what npm/registry.h does, for a process
 * that has no network. Blocks.
 *
 * The process is forked when the line is opened, before a token is read; it reads npm's
 * configuration, and then both give up what they do not need (fetch/roles.h). */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "npm/npm_config.h"
#include "npm/packument.h"

struct line;

/* From here on this process writes nothing but these parts of the store, has no network, and no
 * environment but what names the store. Once a program. NULL: error. */
struct line *line_open(enum npm_config_reach reach, const char *const *parts, struct err *e);
void         line_free(struct line *l);
const char  *line_note(const struct line *l); /* npm_config_note's */

struct line_want {
    const char *range; /* or a tag, when use_tags is set */
    const char *node;  /* the version that the release's engines.node must accept, or NULL */
    bool        use_tags;
};

int line_resolve(struct line *l, const char *package, const struct line_want *want,
                 struct release *ret, struct err *e);

/* The beginning of its README, of the registry's document, or "" and the latest release. */
int line_resolve_readme(struct line *l, const char *package, struct buf *ret_text,
                        struct release *ret, struct err *e);

/* What search_ask (fetch/search.h) says. */
int line_search(struct line *l, const char *scope, const char *query, struct buf *ret,
                struct err *e);

/* As registry_download; progress is shown on stderr under this name. */
int line_download(struct line *l, const char *name, const struct release *release, int file_fd,
                  struct err *e);
