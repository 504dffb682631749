#include "box/snapshot.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"

static int by_path(const void *a, const void *b)
{
    return strcmp(((const struct snapshot_file *)a)->path, ((const struct snapshot_file *)b)->path);
}

void snapshot_fill(struct snapshot *s, const char *prefix, const struct listing_row *rows, size_t n,
                   bool cut)
{
    s->files = calloc(n + 1, sizeof *s->files);
    if (!s->files)
        abort();
    s->cut = cut;
    for (size_t i = 0; i < n; i++)
        if (rows[i].kind != ROW_DIR && str_starts(rows[i].path, prefix))
            s->files[s->n++] = (struct snapshot_file){str_dup(rows[i].path + strlen(prefix)),
                                                      (int64_t)rows[i].size, rows[i].mtime_ns};
    qsort(s->files, s->n, sizeof *s->files, by_path);
}

void snapshot_done(struct snapshot *s)
{
    for (size_t i = 0; i < s->n; i++)
        free(s->files[i].path);
    free(s->files);
    *s = (struct snapshot){0};
}

static bool is_same(const struct snapshot_file *a, const struct snapshot_file *b)
{
    return a->size == b->size && a->mtime_ns == b->mtime_ns;
}

/* Both are sorted: one walk. */
struct snapshot_change *snapshot_compare(const struct snapshot *before,
                                         const struct snapshot *after, size_t *ret_n)
{
    struct snapshot_change *list = calloc(before->n + after->n + 1, sizeof *list);
    bool                    whole = !before->cut && !after->cut;
    size_t                  i = 0, k = 0, n = 0;

    if (!list)
        abort();
    while (i < before->n || k < after->n) {
        const struct snapshot_file *a = i < before->n ? &before->files[i] : NULL;
        const struct snapshot_file *b = k < after->n ? &after->files[k] : NULL;
        int                         order = !a ? 1 : !b ? -1 : strcmp(a->path, b->path);

        if (order == 0 && !is_same(a, b))
            list[n++] = (struct snapshot_change){b, FILES_UPDATED};
        else if (order < 0 && whole)
            list[n++] = (struct snapshot_change){a, FILES_DELETED};
        else if (order > 0 && whole)
            list[n++] = (struct snapshot_change){b, FILES_CREATED};
        i += order <= 0;
        k += order >= 0;
    }
    *ret_n = n;
    return list;
}
