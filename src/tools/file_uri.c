#include "tools/file_uri.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/str.h"

/* Two paths, of the directory and below it, with every byte escaped. */
enum { URI_MAX = 3 * 2 * PATH_MAX + 256 };

static bool is_plain(unsigned char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           strchr("-._~/", c) != NULL;
}

static void add_path(struct buf *b, const char *path)
{
    for (; *path; path++)
        if (is_plain((unsigned char)*path))
            buf_add(b, path, 1);
        else
            buf_printf(b, "%%%02X", (unsigned char)*path);
}

static char *finish(struct buf *b)
{
    char *uri = str_dup(buf_text(b));

    buf_done(b);
    return uri;
}

char *file_uri_on_host(const char *dir, const char *path)
{
    struct buf b;

    buf_init(&b, URI_MAX);
    buf_printf(&b, "file://");
    add_path(&b, dir);
    buf_printf(&b, "/");
    add_path(&b, path);
    return finish(&b);
}

char *file_uri_in_box(const char *box_id, const char *path)
{
    struct buf b;

    buf_init(&b, URI_MAX);
    buf_printf(&b, "sandbox://%s/", box_id);
    add_path(&b, path);
    return finish(&b);
}

char *file_uri_of(const char *dir, const char *box_id, const char *path)
{
    autofree char *inside = NULL;

    if (dir)
        return file_uri_on_host(dir, path);
    inside = str_format("files/%s", path);
    return file_uri_in_box(box_id, inside);
}

/* NULL: a bad escape, or a NUL byte. */
static char *decode(const char *text)
{
    char *path = str_dup(text), *to = path;

    while (*text) {
        int high = *text == '%' ? str_hex_digit(text[1]) : 0;
        int low = *text == '%' && high >= 0 ? str_hex_digit(text[2]) : 0;

        if (high < 0 || low < 0 || (*text == '%' && high + low == 0)) {
            free(path);
            return NULL;
        }
        if (*text != '%') {
            *to++ = *text++;
            continue;
        }
        *(unsigned char *)to++ = (unsigned char)(high << 4 | low);
        text += 3;
    }
    *to = '\0';
    return path;
}

char *file_uri_below(const char *uri, const char *dir)
{
    autofree char *path = str_starts(uri, "file://") ? decode(uri + strlen("file://")) : NULL;
    size_t         n = strlen(dir);

    if (!path || strncmp(path, dir, n) != 0 || path[n] != '/' || !path[n + 1])
        return NULL;
    return str_dup(path + n + 1);
}
