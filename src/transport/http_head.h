/* http_head - the head of an HTTP/1.x request, and the frames of its body. Pure: no sockets.
 *
 * Strict where two readers of the same bytes could disagree about where a request ends (that is
 * request smuggling): such a head is refused, never repaired. A lone LF ends a line, as RFC 9112
 * allows; a lone CR, a blank before a colon, a folded line, two lengths and a length beside chunks
 * do not pass. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HTTP_HEAD_MAX = 64 << 10, HTTP_FIELDS_MAX = 100 };

struct http_field {
    const char *name, *value; /* without the blanks around it */
};

struct http_head { /* all strings lie in the text that was parsed */
    const char       *method;
    const char       *authority;      /* of an absolute target, not ended by NUL */
    size_t            authority_size; /* 0: there is none */
    const char       *path;
    bool              is_1_0;
    bool              keeps_alive;
    bool              expects_continue;
    bool              is_chunked;
    uint64_t          length; /* of the body, unless it is chunked */
    struct http_field fields[HTTP_FIELDS_MAX];
    size_t            n;
};

/* Where the search for the end of a head is; all 0 at its beginning. */
struct http_scan {
    size_t line, at; /* the line's beginning; what was looked at */
};

/* The size of the head with its empty line, or 0: it is not all there. */
size_t http_head_size(struct http_scan *scan, const char *text, size_t size);
/* 0, or the status to refuse it with and *ret_why. Writes NULs into the text. */
int http_head_parse(char *text, size_t size, struct http_head *ret, const char **ret_why);

const char *http_head_find(const struct http_head *h, const char *name); /* the first; or NULL */

/* A chunked body that is put together in its place. */
struct http_chunks {
    enum { CHUNK_SIZE, CHUNK_DATA, CHUNK_DATA_END, CHUNK_TRAILER, CHUNK_OVER } state;
    uint64_t left;                      /* of the chunk */
    size_t   line;                      /* bytes of the size or trailer line so far */
    bool     has_digit, extends, is_cr; /* the line */
};

enum { HTTP_CHUNKS_BAD = -1, HTTP_CHUNKS_TOO_LARGE = -2 };

/* Takes the next bytes: moves their content to the end of the body (which lies before them or in
 * their place), returns how many were taken: all of them, unless the body ended within. */
int64_t http_chunks_take(struct http_chunks *c, const char *text, size_t size, char *body,
                         size_t *size_of_body, size_t max);
