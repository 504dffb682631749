#include "npm/types_gather.h"

#include <inttypes.h>
#include <string.h>

#include "base/fd.h"
#include "base/str.h"
#include "npm/types_entry.h"
#include "npm/types_refs.h"

enum { ROWS_MAX = 40, ROWS_BYTES = 8 << 10 };

struct gathering {
    const json_t        *package;
    struct declarations *d;
    struct declaration  *last; /* that was met */
    const char          *from; /* the path of the file that is read */
    size_t               max;
    struct buf          *text;
    json_t              *rows;             /* of what was left out */
    size_t               rows_bytes, more; /* what has no row any more */
};

static void meet(struct gathering *g, struct declaration *file)
{
    if (!file || file->is_listed)
        return;
    file->is_listed = true;
    file->next = NULL;
    if (g->last)
        g->last->next = file;
    g->last = file;
}

static void on_reference(void *owner, const char *path)
{
    struct gathering *g = owner;

    meet(g, *path == '#' ? types_import(g->package, g->d, path)
                         : declarations_find(g->d, g->from, path));
}

static void leave_out(struct gathering *g, const struct declaration *file, size_t shown)
{
    autofree char *row = shown ? str_format("%s (only the first %zu of %" PRId64 " bytes)",
                                            file->path, shown, file->size)
                               : str_format("%s (%" PRId64 " bytes)", file->path, file->size);

    if (json_array_size(g->rows) >= ROWS_MAX || g->rows_bytes + strlen(row) > ROWS_BYTES) {
        g->more++;
        return;
    }
    json_array_append_new(g->rows, json_text(row, strlen(row)));
    g->rows_bytes += strlen(row);
}

static void add(struct gathering *g, const struct declaration *file, size_t size)
{
    buf_printf(g->text, "%s// %s\n", g->text->size ? "\n" : "", file->path);
    buf_add(g->text, file->text, size);
}

/* To the end of the last line that has room; a line that has none is cut itself. */
static size_t cut(const struct declaration *file, size_t room)
{
    size_t      size = file->text_size < room ? file->text_size : room;
    const char *line = memrchr(file->text, '\n', size);

    return line ? (size_t)(line - file->text) + 1 : size;
}

static bool is_whole(const struct declaration *file)
{
    return file->text && (int64_t)file->text_size == file->size;
}

static void show(struct gathering *g, const struct declaration *file, bool is_entry)
{
    size_t used = g->text->size + strlen(file->path) + strlen("\n// \n");
    size_t room = g->max > used ? g->max - used : 0;

    if (is_whole(file) && used <= g->max && file->text_size <= room) {
        add(g, file, file->text_size);
    } else if (is_entry && file->text) {
        size_t size = cut(file, room);
        add(g, file, size);
        leave_out(g, file, size);
    } else {
        leave_out(g, file, 0);
    }
}

void types_gather(const json_t *package, struct declarations *d, struct declaration *entry,
                  size_t max, struct buf *ret_text, json_t *ret_left_out)
{
    struct gathering g = {
        .package = package, .d = d, .max = max, .text = ret_text, .rows = ret_left_out};

    meet(&g, entry);
    for (struct declaration *file = entry; file; file = file->next) {
        g.from = file->path;
        show(&g, file, file == entry);
        if (file->text)
            types_refs(file->text, file->text_size, on_reference, &g);
    }
    if (g.more > 0)
        json_array_append_new(ret_left_out, json_sprintf("and %zu more", g.more));
}
