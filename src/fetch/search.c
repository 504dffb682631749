#include "fetch/search.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <strings.h>

#include "base/fd.h"
#include "base/json.h"
#include "base/str.h"
#include "base/utf8.h"
#include "fetch/download.h"
#include "fetch/line.h"
#include "npm/registry.h"
#include "npm/search_answer.h"
#include "npm/tarball.h"
#include "store/downloads.h"
#include "store/store.h"

enum { FOUND = 5, SNIPPET_CHARACTERS = 500 };

static int tell(json_t *answer_take, struct buf *ret, struct err *e)
{
    autojson json_t *answer = answer_take;
    autofree char   *text = json_dumps(answer, JSON_COMPACT);

    if (!text || buf_add(ret, text, strlen(text)) < 0)
        return err_set(e, ERR_LIMIT, "the registry's answer is too long");
    return 0;
}

/* ---- packages ---- */

/* Why: in brackets, or NULL. */
static json_t *no_search(const char *registry, const char *why)
{
    struct url url;
    char       shown[160] = "";

    if (url_parse(registry, &url, NULL) == 0)
        url_show(&url, shown, sizeof shown);
    return json_pack("{s:o}", "reason",
                     json_sprintf("the registry %s has no search %s", shown, why ? why : ""));
}

int search_ask(struct registry *r, const char *scope, const char *query, struct buf *ret,
               struct err *e)
{
    char             registry[NPM_CONFIG_URL_MAX];
    autojson json_t *answer = NULL;
    json_t          *list = NULL;
    int              got = registry_get(r, scope, query, registry, &answer, e);

    if (got < 0 && e->kind == ERR_NOT_FOUND)
        return tell(no_search(registry, strrchr(e->msg, '(')), ret, e); /* "… (HTTP status 404)" */
    TRY(got);
    list = search_answer_pick(answer, FOUND);
    if (!list)
        return tell(no_search(registry, "(it answers with something else)"), ret, e);
    return tell(json_pack("{s:o}", "packages", list), ret, e);
}

int search_fetch(const char *query, const char *scope, struct buf *ret, struct err *e)
{
    static const char *const nothing[] = {NULL};
    struct line             *l = line_open(NPM_CONFIG_USER, nothing, e);
    int                      done;

    if (!l)
        return -1;
    done = line_search(l, scope, query, ret, e);
    line_free(l);
    return done;
}

/* ---- README ---- */

static const char blanks[] = " \t\r\n";

/* NULL: it says nothing. */
static json_t *snippet(const char *text, size_t size)
{
    while (size > 0 && memchr(blanks, *text, sizeof blanks - 1))
        text++, size--;
    if (size == 0)
        return NULL;
    return json_text(text, utf8_first((const uint8_t *)text, size, SNIPPET_CHARACTERS));
}

struct readme {
    char   text[SEARCH_README_BYTES];
    size_t size;
    bool   is_markdown;
};

static bool is_readme(const char *path)
{
    return strncasecmp(path, "readme", 6) == 0 && (path[6] == '\0' || path[6] == '.') &&
           !strchr(path, '/');
}

static int take_readme(void *owner, struct tarball *t, const struct tarball_member *m,
                       struct err *e)
{
    struct readme *r = owner;
    ssize_t        n;

    if (m->is_dir || !is_readme(m->path) || r->is_markdown)
        return 0;
    r->is_markdown = strcasecmp(m->path, "readme.md") == 0;
    r->size = 0;
    while (r->size < sizeof r->text &&
           (n = tarball_read(t, r->text + r->size, sizeof r->text - r->size, e)) != 0) {
        TRY((int)n);
        r->size += (size_t)n;
    }
    return 0;
}

static int read_tarball(struct line *l, const char *name, const struct release *release,
                        struct readme *ret, struct err *e)
{
    char       path[PATH_MAX];
    autofd int fd = -1;

    TRY(download_keep(l, name, release, path, e));
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return err_sys(e, "read a tarball of the store");
    return tarball_each(fd, &tarball_limits, take_readme, ret, e);
}

static int find_readme(struct line *l, const char *name, json_t **ret, struct err *e)
{
    autobuf struct buf text;
    struct release     release;
    struct readme      readme = {0};

    buf_init(&text, SEARCH_README_BYTES);
    TRY(line_resolve_readme(l, name, &text, &release, e));
    if (text.size > 0) {
        *ret = snippet((const char *)text.data, text.size);
        return 0;
    }
    TRY(read_tarball(l, name, &release, &readme, e));
    *ret = snippet(readme.text, readme.size);
    return 0;
}

int search_readme(const char *name, struct buf *ret, struct err *e)
{
    static const char *const parts[] = {"downloads", NULL};
    struct line             *l = line_open(NPM_CONFIG_USER, parts, e);
    json_t                  *text = NULL;
    int                      done;

    if (!l)
        return -1;
    downloads_sweep();
    done = find_readme(l, name, &text, e);
    line_free(l);
    return done < 0 ? store_explain(e) : tell(json_pack("{s:o*}", "readme", text), ret, e);
}
