#include "transport/token.h"

#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/sha.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/str.h"

enum { TOKENS_MAX = 10000, TOKENS_FILE_MAX = 4 << 20, NAME_MAX_LENGTH = 64 };

struct token {
    unsigned char digest[SHA256_DIGEST_LENGTH];
    char          name[NAME_MAX_LENGTH + 1];
};

struct tokens {
    struct token *rows;
    size_t        n;
};

static const char blanks[] = " \t\r";

static void digest_of(const char *token, unsigned char ret[SHA256_DIGEST_LENGTH])
{
    SHA256((const unsigned char *)token, strlen(token), ret);
}

const char *tokens_find(const struct tokens *t, const char *token)
{
    unsigned char digest[SHA256_DIGEST_LENGTH];
    const char   *name = NULL;

    digest_of(token, digest);
    for (size_t i = 0; i < t->n; i++) /* to the end: the time must not tell where it matched */
        if (CRYPTO_memcmp(digest, t->rows[i].digest, sizeof digest) == 0)
            name = t->rows[i].name;
    return name;
}

static int add(struct tokens *t, const char *name, const char *token, unsigned line, struct err *e)
{
    struct token *row;

    if (t->n == TOKENS_MAX)
        return err_set(e, ERR_LIMIT, "more than %d tokens", TOKENS_MAX);
    if (tokens_find(t, token))
        return err_set(e, ERR_INVALID, "line %u: the token of %.64s is there already", line, name);
    t->rows = realloc(t->rows, (t->n + 1) * sizeof *t->rows);
    if (!t->rows)
        abort();
    row = &t->rows[t->n++];
    digest_of(token, row->digest);
    if (str_copy(row->name, sizeof row->name, name) < 0)
        return err_set(e, ERR_INVALID, "line %u: a name has at most %d bytes", line,
                       NAME_MAX_LENGTH);
    return 0;
}

static int parse_line(struct tokens *t, char *text, unsigned line, struct err *e)
{
    char *rest = text, *name = strtok_r(text, blanks, &rest), *token, *more;

    if (!name || *name == '#')
        return 0;
    token = strtok_r(NULL, blanks, &rest);
    more = strtok_r(NULL, blanks, &rest);
    if (!token || (more && *more != '#'))
        return err_set(e, ERR_INVALID, "line %u is not NAME TOKEN", line);
    return add(t, name, token, line, e);
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
    if (r == 0 && t->n == 0)
        r = err_set(e, ERR_INVALID, "there is no token in it");
    OPENSSL_cleanse(text, size);
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
    size_t      size;
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0)
        err_sys(e, "open");
    else if (!S_ISREG(st.st_mode))
        err_set(e, ERR_INVALID, "it is no regular file");
    else if (st.st_mode & (S_IRWXG | S_IRWXO))
        err_set(e, ERR_INVALID, "others may read it: chmod 600 it");
    else
        fd_read_text(fd, TOKENS_FILE_MAX, &text, &size, e);
    return text;
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
