/* jerboa-layer - makes one dependency layer: a program of its own, because installers take seconds
 * and `jerboa serve` has one thread. deps/layers.c starts it.
 *
 * stdin: what is wanted (struct make_request) as JSON. stderr: progress, one line each. stdout: one
 * JSON object, {"wasThere", "note", "output"}, or {"kind", "error", "note", "output"}; exit 0
 * and 1. When both are closed the layer can be used; what is left to do is to bring it to the disk.
 * With `pack DIR` it sends a layer, or another directory, that is there (pack.h). It may be killed
 * at any point: sandboxes end with it, and the next one takes the entry over. */
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/fields.h"
#include "base/str.h"
#include "base/version.h"
#include "deps/make.h"
#include "deps/pack.h"

enum { REQUEST_MAX = 1 << 18 };

#define AT(member) offsetof(struct make_request, member)
static const struct field fields[] = {
    {"version", FIELD_STRING, AT(version), false, 1, 64},
    {"dependencies", FIELD_OBJECT, AT(dependencies), true},
    {"key", FIELD_STRING, AT(key), true, 64, 64},
    {"installer", FIELD_STRING, AT(installer), true, 1, 40},
    {"identity", FIELD_STRING, AT(identity), true, 1, 512},
    {"engine", FIELD_STRING, AT(engine), false, 1, 40},
    {"nodeVersion", FIELD_STRING, AT(node_version), true, 1, 64},
    {"runtimeDir", FIELD_BYTES, AT(runtime_dir), true, 1, PATH_MAX},
    {"maxAgeMs", FIELD_INT, AT(max_age_ms), false, 0, INT64_MAX},
    {"strict", FIELD_BOOL, AT(strict), false},
    {"remote", FIELD_BOOL, AT(remote), false},
    {0},
};
#undef AT

static json_t *read_request(struct make_request *ret, struct err *e)
{
    autofree char   *text = NULL;
    autojson json_t *request = NULL;
    size_t           size = 0;

    if (fd_read_text(0, REQUEST_MAX, &text, &size, e) < 0)
        return NULL;
    request = json_parse(text, size, e);
    if (!request ||
        version_check("jerboa-layer", json_string_value(json_object_get(request, "version")), e) <
            0 ||
        fields_decode(fields, request, "request", ret, e) < 0)
        return NULL;
    return json_incref(request);
}

static json_t *answer_of(const struct make_result *r, const struct err *e)
{
    json_t *answer = json_pack("{s:b, s:o, s:o}", "wasThere", r->was_there, "note",
                               json_text(r->note, strlen(r->note)), "output",
                               json_text((const char *)r->output.data, r->output.size));

    if (answer && e->kind) {
        json_object_set_new(answer, "kind", json_integer(e->kind));
        json_object_set_new(answer, "error", json_text(e->msg, strlen(e->msg)));
    }
    if (!answer)
        abort();
    return answer;
}

/* `pack DIR`, `pack-some DIR`: see pack.h. */
static int pack(const char *verb, const char *dir)
{
    struct err e = {0};
    int        r = strcmp(verb, "pack") == 0 ? pack_tree(dir, STDOUT_FILENO, &e)
                                             : pack_some(dir, STDIN_FILENO, STDOUT_FILENO, &e);

    if (r == 0)
        return 0;
    fprintf(stderr, "jerboa-layer: %s\n", e.msg);
    return 1;
}

int main(int argc, char **argv)
{
    struct make_request request = {0};
    struct make_result  result = {.layer.dir_fd = -1};
    struct err          e = {0};
    autojson json_t    *document = NULL, *answer = NULL;

    prctl(PR_SET_PDEATHSIG, SIGKILL); /* nobody would use it; the next one takes over */
    umask(022);                       /* sandboxes read the store as another user */
    signal(SIGPIPE, SIG_IGN);
    if (argc == 3 && (strcmp(argv[1], "pack") == 0 || strcmp(argv[1], "pack-some") == 0))
        return pack(argv[1], argv[2]);
    document = read_request(&request, &e);
    if (document && make_layer(&request, &result, &e) == 0)
        e = (struct err){0}; /* of an installer that failed before another did it */
    answer = answer_of(&result, &e);
    if (json_dumpf(answer, stdout, JSON_COMPACT) < 0 || fclose(stdout) != 0)
        return 1;
    close(STDERR_FILENO);
    make_settle(&result);
    make_result_done(&result);
    return e.kind ? 1 : 0;
}
