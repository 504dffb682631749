#include "engine/engine.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "engine/docker.h"
#include "engine/native.h"
#include "engine/podman.h"

/* Of a directory, which one it is; what is in it may change, and that is shown. Of a file also that
 * nobody wrote to it. */
static void add_identity(struct sha256 *hash, const char *path)
{
    struct stat st;
    uint64_t    words[5] = {0};

    if (stat(path, &st) == 0) {
        words[0] = st.st_dev;
        words[1] = st.st_ino;
        if (S_ISREG(st.st_mode)) {
            words[2] = (uint64_t)st.st_size;
            words[3] = (uint64_t)st.st_mtim.tv_sec;
            words[4] = (uint64_t)st.st_mtim.tv_nsec;
        }
    }
    sha256_add(hash, words, sizeof words);
}

void engine_fingerprint(const json_t *plan, char ret[SHA256_HEX_SIZE])
{
    autofree char *text = json_dumps(plan, JSON_COMPACT);
    struct sha256  hash;
    size_t         i;
    json_t        *entry;

    if (!text)
        abort();
    sha256_init(&hash);
    sha256_add(&hash, text, strlen(text));
    json_array_foreach (json_object_get(plan, "entries"), i, entry) {
        const char *source = json_string_value(json_object_get(entry, "source"));
        if (source)
            add_identity(&hash, source);
    }
    sha256_hex(&hash, ret);
}

static const struct engine *const engines[] = {&native, &docker, &podman};

const struct engine *engine_find(const char *name)
{
    for (size_t i = 0; i < sizeof engines / sizeof engines[0]; i++)
        if (strcmp(engines[i]->name, name) == 0)
            return engines[i];
    return NULL;
}

json_t *engine_walls(const struct engine *engine)
{
    json_t *list = engine->gaps ? json_array() : NULL;

    for (const struct engine_gap *g = list ? engine->gaps() : NULL; g && g->name; g++)
        if (json_array_append_new(list, json_pack("{s:s, s:s, s:b, s:b, s:s}", "name", g->name,
                                                  "what", "", "keeps", 0, "on", 0, "why", g->why)) <
            0)
            abort();
    return list;
}

const json_t *engine_entry(const json_t *plan, const char *kind)
{
    size_t  i;
    json_t *entry;

    json_array_foreach (json_object_get(plan, "entries"), i, entry)
        if (strcmp(json_string_value(json_object_get(entry, "kind")), kind) == 0)
            return entry;
    return NULL;
}

int64_t engine_inodes(int64_t disk_bytes)
{
    enum { BYTES_PER_INODE = 4096, LEAST = 1024 };
    int64_t inodes = disk_bytes / BYTES_PER_INODE;

    return inodes < LEAST ? LEAST : inodes;
}

int engine_open_pipe(int *ret_read, int *ret_write, int bytes, struct err *e)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_sys(e, "pipe");
    if (bytes)
        fcntl(ends[0], F_SETPIPE_SZ, bytes); /* smaller is only slower */
    *ret_read = ends[0];
    *ret_write = ends[1];
    return 0;
}
