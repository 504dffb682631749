/* fuzz-packument - a registry's document and its answer to a search, both hostile.
 *
 * An input is a range, a newline, JSON. Asserted: what is picked can be used as it is (a version
 * that may stand in a file name, an address on our registry), and what is found has its bounds. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/str.h"
#include "npm/document.h"
#include "npm/package_name.h"
#include "npm/packument.h"
#include "npm/search_answer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char registry[] = "https://registry.test/npm/";

static void require(int truth)
{
    if (!truth)
        abort();
}

static void pick(const json_t *document, const struct release_want *want)
{
    struct release release = {0};
    struct semver  v;
    struct err     e = {0};

    if (packument_pick(document, registry, want, &release, &e) < 0) {
        require(e.kind != ERR_NONE && e.msg[0]);
        return;
    }
    require(semver_parse(release.version, &v) == 0);
    require(str_starts(release.url, "https://registry.test/"));
    for (const char *c = release.url; *c; c++)
        require(*c > ' ' && *c < 0x7f);
}

static void search(const json_t *document)
{
    autojson json_t *list = search_answer_pick(document, 5);

    require(json_array_size(list) <= 5);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *name = json_object_get(json_array_get(list, i), "name");
        const json_t *description = json_object_get(json_array_get(list, i), "description");
        require(package_name_is_one(json_string_value(name), json_string_length(name)));
        require(json_is_string(description) &&
                json_string_length(description) <= 4 * SEARCH_ANSWER_DESCRIPTION);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t   *line = size ? memchr(data, '\n', size) : NULL;
    size_t           head = line ? (size_t)(line - data) : 0;
    autofree char   *range = str_ndup((const char *)data, head);
    autofree char   *text = line ? malloc(size) : NULL;
    autojson json_t *document = NULL;

    if (!text)
        return 0;
    memcpy(text, line + 1, size - head - 1);
    document = document_parse(text, size - head - 1, NULL);
    if (!document)
        return 0;
    pick(document, &(struct release_want){.range = range, .use_tags = true});
    pick(document, &(struct release_want){.range = range, .node = &(struct semver){.n = {24}}});
    search(document);
    return 0;
}
