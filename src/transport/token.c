#include "transport/token.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/sha256.h"
#include "base/str.h"

enum { TOKENS_MAX = 10000, TOKENS_FILE_MAX = 4 << 20, TOKEN_MIN = 16 };

struct token {
    unsigned char     digest[SHA256_SIZE];
    const char       *name; /* in the text, while that is parsed */
    unsigned          line;
    struct principal *principal;
};

struct tokens {
    struct token     *rows;
    size_t            n;
    struct principal *principals;
};

static const char blanks[] = " \t\r";

static void digest_of(const char *token, unsigned char ret[SHA256_SIZE])
{
    struct sha256 h;

    sha256_init(&h);
    sha256_add(&h, token, strlen(token));
    sha256_end(&h, ret);
}

struct principal *tokens_find(const struct tokens *t, const char *token)
{
    unsigned char     digest[SHA256_SIZE];
    struct principal *found = NULL;

    digest_of(token, digest);
    for (size_t i = 0; i < t->n; i++) /* to the end: the time must not tell where it matched */
        if (sha256_is_equal(digest, t->rows[i].digest))
            found = t->rows[i].principal;
    return found;
}

/* ---- parsing ---- */

static int add(struct tokens *t, const char *name, const char *token, unsigned line, struct err *e)
{
    struct token *row;

    if (t->n == TOKENS_MAX)
        return err_set(e, ERR_LIMIT, "more than %d tokens", TOKENS_MAX);
    if (strlen(name) > PRINCIPAL_NAME_MAX)
        return err_set(e, ERR_INVALID, "line %u: a name has at most %d bytes", line,
                       PRINCIPAL_NAME_MAX);
    if (strlen(token) < TOKEN_MIN)
        return err_set(e, ERR_INVALID,
                       "line %u: a token has at least %d bytes: make one with `openssl rand -hex "
                       "32`",
                       line, TOKEN_MIN);
    if ((t->n & (t->n - 1)) == 0) /* 0, and the powers of two: then it is full */
        t->rows = realloc(t->rows, (t->n ? 2 * t->n : 1) * sizeof *t->rows);
    if (!t->rows)
        abort();
    row = &t->rows[t->n++];
    *row = (struct token){.name = name, .line = line};
    digest_of(token, row->digest);
    return 0;
}

static int parse_line(struct tokens *t, char *text, unsigned line, struct err *e)
{
    char *rest = text, *name = strtok_r(text, blanks, &rest), *token, *more;

    if (!name || *name == '#')
        return 0;
    token = strtok_r(NULL, blanks, &rest);
    more = strtok_r(NULL, blanks, &rest);
    if (token && *token == '#')
        return err_set(e, ERR_INVALID, "line %u: a token does not begin with #", line);
    if (!token || (more && *more != '#'))
        return err_set(e, ERR_INVALID, "line %u is not NAME TOKEN", line);
    return add(t, name, token, line, e);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct token *)a)->name, ((const struct token *)b)->name);
}

static int by_digest(const void *a, const void *b)
{
    const struct token *x = a, *y = b;
    int                 order = memcmp(x->digest, y->digest, sizeof x->digest);

    return order ? order : (x->line > y->line) - (x->line < y->line);
}

/* One principal for each name. */
static void name_principals(struct tokens *t)
{
    struct principal *last = NULL;

    t->principals = calloc(t->n, sizeof *t->principals);
    if (!t->principals)
        abort();
    qsort(t->rows, t->n, sizeof *t->rows, by_name);
    for (size_t i = 0; i < t->n; i++) {
        struct token *row = &t->rows[i];
        if (!last || strcmp(last->name, row->name) != 0) {
            last = last ? last + 1 : t->principals;
            str_copy(last->name, sizeof last->name, row->name);
        }
        row->principal = last;
    }
}

static int check_unique(struct tokens *t, struct err *e)
{
    qsort(t->rows, t->n, sizeof *t->rows, by_digest);
    for (size_t i = 1; i < t->n; i++)
        if (memcmp(t->rows[i - 1].digest, t->rows[i].digest, SHA256_SIZE) == 0)
            return err_set(e, ERR_INVALID, "line %u: the token of %.64s is there already",
                           t->rows[i].line, t->rows[i].principal->name);
    return 0;
}

static int finish(struct tokens *t, struct err *e)
{
    if (t->n == 0)
        return err_set(e, ERR_INVALID, "there is no token in it");
    name_principals(t);
    return check_unique(t, e);
}

struct tokens *tokens_parse(char *text, struct err *e)
{
    struct tokens *t = calloc(1, sizeof *t);
    size_t         size = strlen(text);
    char          *rest = text, *row;
    unsigned       line = 0;
    int            r = 0;

    if (!t)
        abort();
    while (r == 0 && (row = strsep(&rest, "\n")))
        r = parse_line(t, row, ++line, e);
    if (r == 0)
        r = finish(t, e);
    explicit_bzero(text, size);
    if (r == 0)
        return t;
    tokens_free(t);
    return NULL;
}

/* NULL on error. The caller frees. */
static char *read_private(const char *path, struct err *e)
{
    autofd int  fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a FIFO must not hang us */
    char       *text = NULL;
    size_t      size = 0;
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0)
        err_sys(e, "open");
    else if (!S_ISREG(st.st_mode))
        err_set(e, ERR_INVALID, "it is no regular file");
    else if (st.st_mode & (S_IRWXG | S_IRWXO))
        err_set(e, ERR_INVALID, "others may read it: chmod 600 it");
    else if (fd_read_text(fd, TOKENS_FILE_MAX, &text, &size, e) == 0 && strlen(text) == size)
        return text;
    else if (text) /* the lines behind it would be lost in silence */
        err_set(e, ERR_INVALID, "there is a NUL byte in it");
    if (text)
        explicit_bzero(text, size);
    free(text);
    return NULL;
}

struct tokens *tokens_load(const char *path, struct err *e)
{
    autofree char *text = read_private(path, e);
    struct tokens *t = text ? tokens_parse(text, e) : NULL;

    if (!t)
        err_wrap(e, "tokens file %.100s", path);
    return t;
}

void tokens_free(struct tokens *t)
{
    if (!t)
        return;
    free(t->rows);
    free(t->principals);
    free(t);
}

const char *token_of_header(const char *authorization)
{
    static const char scheme[] = "Bearer ";

    if (!authorization || strncasecmp(authorization, scheme, strlen(scheme)) != 0)
        return NULL;
    authorization += strlen(scheme);
    authorization += strspn(authorization, " ");
    return *authorization ? authorization : NULL;
}
