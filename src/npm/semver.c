/* A range is read and tested in one pass: `||` separates sets, a set is comparators that must all
 * hold, and each of npm's shorthands becomes at most two comparators with a full version:
 *
 *   ^1.2 -> >=1.2.0 <2.0.0-0     ~1.2 -> >=1.2.0 <1.3.0-0     1.2 -> >=1.2.0 <1.3.0-0
 *   >1.2 -> >=1.3.0              1.2 - 2 -> >=1.2.0 <3.0.0-0
 *
 * The "-0" keeps the prereleases of the first version that is too new outside. */
#include "npm/semver.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

static const uint64_t number_max = (1ull << 53) - 1; /* JavaScript's largest exact integer */

enum op { OP_EQ, OP_LT, OP_LE, OP_GT, OP_GE, OP_CARET, OP_TILDE };

/* A version of which only the first `known` numbers are given, the others are x or missing. */
struct partial {
    struct semver v;
    int           known;
    bool          has_marks;   /* more in front than one "v": not of a full version */
    bool          is_disorder; /* a number behind an x */
};

struct set {
    const struct semver *v;
    bool                 holds;     /* every comparator so far */
    bool                 names_pre; /* one of them has a prerelease of v's own numbers */
};

static bool is_identifier(char c)
{
    return isalnum((unsigned char)c) || c == '-';
}

static void skip_blanks(const char **p)
{
    while (isspace((unsigned char)**p))
        (*p)++;
}

static int parse_number(const char **p, uint64_t *ret)
{
    const char *start = *p;
    uint64_t    n = 0;

    while (isdigit((unsigned char)**p) && n <= number_max)
        n = n * 10 + (uint64_t)(*(*p)++ - '0');
    if (*p == start || n > number_max || (*start == '0' && *p - start > 1))
        return -1;
    *ret = n;
    return 0;
}

/* "rc.1": no empty part; in a prerelease no number with a leading zero. */
static int parse_identifiers(const char **p, bool zeros_allowed)
{
    for (;; (*p)++) {
        const char *start = *p;
        bool        number = true;
        for (; is_identifier(**p); (*p)++)
            number = number && isdigit((unsigned char)**p);
        if (*p == start || (number && !zeros_allowed && *start == '0' && *p - start > 1))
            return -1;
        if (**p != '.')
            return 0;
    }
}

static int parse_tail(const char **p, struct semver *ret)
{
    ret->pre = NULL;
    ret->pre_size = 0;
    if (**p == '-') {
        const char *start = ++*p;
        if (parse_identifiers(p, false) < 0)
            return -1;
        ret->pre = start;
        ret->pre_size = (size_t)(*p - start);
    }
    if (**p != '+')
        return 0;
    ++*p;
    return parse_identifiers(p, true);
}

int semver_parse(const char *text, struct semver *ret)
{
    struct semver v;
    const char   *p = text;

    if (strnlen(text, SEMVER_MAX + 1) > SEMVER_MAX)
        return -1;
    for (int i = 0; i < 3; i++) {
        if (i > 0 && *p++ != '.')
            return -1;
        if (parse_number(&p, &v.n[i]) < 0)
            return -1;
    }
    if (parse_tail(&p, &v) < 0 || *p != '\0')
        return -1;
    *ret = v;
    return 0;
}

static int compare_numbers(const struct semver *a, const struct semver *b)
{
    for (int i = 0; i < 3; i++)
        if (a->n[i] != b->n[i])
            return a->n[i] < b->n[i] ? -1 : 1;
    return 0;
}

static int compare_size(size_t a, size_t b)
{
    return a == b ? 0 : a < b ? -1 : 1;
}

/* One dot-separated part: numbers by value and below words, words by their bytes. */
static int compare_identifier(const char *a, size_t a_size, const char *b, size_t b_size)
{
    bool   a_number = strspn(a, "0123456789") >= a_size;
    bool   b_number = strspn(b, "0123456789") >= b_size;
    size_t common = a_size < b_size ? a_size : b_size;
    int    c;

    if (a_number != b_number)
        return a_number ? -1 : 1;
    if (a_number && a_size != b_size) /* no leading zeros, so the longer one is larger */
        return compare_size(a_size, b_size);
    c = memcmp(a, b, common);
    return c ? c : compare_size(a_size, b_size);
}

static size_t identifier_size(const char *p, const char *end)
{
    const char *dot = memchr(p, '.', (size_t)(end - p));

    return (size_t)((dot ? dot : end) - p);
}

static int compare_pre(const struct semver *a, const struct semver *b)
{
    const char *p = a->pre, *p_end = p + a->pre_size;
    const char *q = b->pre, *q_end = q + b->pre_size;

    for (;;) {
        size_t n = identifier_size(p, p_end), m = identifier_size(q, q_end);
        int    c = compare_identifier(p, n, q, m);
        p += n;
        q += m;
        if (c || p == p_end || q == q_end)
            return c ? c : compare_size((size_t)(p_end - p), (size_t)(q_end - q));
        p++;
        q++;
    }
}

int semver_compare(const struct semver *a, const struct semver *b)
{
    int c = compare_numbers(a, b);

    if (c)
        return c;
    if (!a->pre_size || !b->pre_size) /* a release is above its prereleases */
        return compare_size(!a->pre_size, !b->pre_size);
    return compare_pre(a, b);
}

static int parse_x(const char **p, struct partial *ret, int index)
{
    if (**p && strchr("xX*", **p)) {
        if (ret->known > index)
            ret->known = index;
        (*p)++;
        return 0;
    }
    return parse_number(p, &ret->v.n[index]);
}

/* "1", "1.2", "1.x", "v1.2.3-rc.1", up to a blank or `end`. */
static int parse_partial(const char **p, const char *end, struct partial *ret)
{
    struct partial part = {.known = 3};
    const char    *start = *p;
    int            i = 0;

    while (**p == 'v' || **p == '=')
        (*p)++;
    part.has_marks = *p - start > 1 || *start == '=';
    do {
        if (parse_x(p, &part, i) < 0)
            return -1;
        part.is_disorder = part.is_disorder || (part.known < i && isdigit((unsigned char)(*p)[-1]));
        i++;
    } while (i < 3 && **p == '.' && (*p)++);
    if (i < part.known)
        part.known = i;
    if (i == 3 && parse_tail(p, &part.v) < 0)
        return -1;
    if (*p != end && !isspace((unsigned char)**p))
        return -1;
    for (i = part.known; i < 3; i++) { /* what stands behind an x does not count */
        part.v.n[i] = 0;
        part.v.pre_size = 0;
    }
    *ret = part;
    return 0;
}

static enum op parse_op(const char **p)
{
    static const struct {
        const char *text;
        enum op     op;
    } ops[] = {{"<=", OP_LE}, {">=", OP_GE},    {"<", OP_LT},    {">", OP_GT},
               {"=", OP_EQ},  {"~>", OP_TILDE}, {"~", OP_TILDE}, {"^", OP_CARET}};

    for (size_t i = 0; i < sizeof(ops) / sizeof(*ops); i++)
        if (strncmp(*p, ops[i].text, strlen(ops[i].text)) == 0) {
            *p += strlen(ops[i].text);
            skip_blanks(p);
            return ops[i].op;
        }
    return OP_EQ;
}

static void set_require(struct set *s, enum op op, const struct semver *bound)
{
    int c = semver_compare(s->v, bound);

    s->holds =
        s->holds && ((op == OP_EQ && c == 0) || (op == OP_LT && c < 0) || (op == OP_LE && c <= 0) ||
                     (op == OP_GT && c > 0) || (op == OP_GE && c >= 0));
    if (bound->pre_size > 0 && compare_numbers(s->v, bound) == 0)
        s->names_pre = true;
}

/* The first version behind all that share the numbers up to `index`: 1.2.3 at 1 gives 1.3.0-0. */
static struct semver version_behind(const struct semver *v, int index)
{
    struct semver next = {.pre = "0", .pre_size = 1};

    for (int i = 0; i <= index; i++)
        next.n[i] = v->n[i];
    next.n[index]++;
    return next;
}

static void set_require_below(struct set *s, const struct semver *v, int index)
{
    struct semver bound = version_behind(v, index);

    set_require(s, OP_LT, &bound);
}

/* A caret lets everything change to the right of the first number that is not zero. */
static int caret_index(const struct partial *p)
{
    int i = 0;

    while (i < p->known - 1 && p->v.n[i] == 0)
        i++;
    return i;
}

static void set_require_partial(struct set *s, enum op op, struct partial *p)
{
    switch (op) {
    case OP_LT:
        p->v.pre = "0";
        p->v.pre_size = 1;
        set_require(s, OP_LT, &p->v);
        break;
    case OP_LE:
        set_require_below(s, &p->v, p->known - 1);
        break;
    case OP_GT:
        p->v = version_behind(&p->v, p->known - 1);
        p->v.pre_size = 0;
        set_require(s, OP_GE, &p->v);
        break;
    case OP_GE:
        set_require(s, OP_GE, &p->v);
        break;
    default:
        set_require(s, OP_GE, &p->v);
        set_require_below(s, &p->v, p->known - 1);
    }
}

static void set_require_comparator(struct set *s, enum op op, struct partial *p)
{
    if (p->known == 0) {
        s->holds = s->holds && op != OP_LT && op != OP_GT; /* nothing is above or below all */
    } else if (op == OP_CARET) {
        set_require(s, OP_GE, &p->v);
        set_require_below(s, &p->v, caret_index(p));
    } else if (op == OP_TILDE) {
        set_require(s, OP_GE, &p->v);
        set_require_below(s, &p->v, p->known > 1 ? 1 : 0);
    } else if (p->known < 3) {
        set_require_partial(s, op, p);
    } else {
        set_require(s, op, &p->v);
    }
}

/* npm's package takes "==1.2" and not "==1.2.3"; so do we. */
static bool has_full_marks(const struct partial *p)
{
    return p->known == 3 && p->has_marks;
}

/* "1.2 - 2.3"; false when the set is not of this form. */
static bool set_read_hyphen(struct set *s, const char *p, const char *end)
{
    struct partial from, to;

    if (parse_partial(&p, end, &from) < 0)
        return false;
    skip_blanks(&p);
    if (p >= end || *p++ != '-' || !isspace((unsigned char)*p))
        return false;
    skip_blanks(&p);
    if (p >= end || parse_partial(&p, end, &to) < 0 || p != end)
        return false;
    if (has_full_marks(&from) || has_full_marks(&to))
        return false;
    set_require_comparator(s, OP_GE, &from);
    set_require_comparator(s, OP_LE, &to);
    return true;
}

static int set_read(struct set *s, const char *p, const char *end)
{
    skip_blanks(&p);
    while (end > p && isspace((unsigned char)end[-1]))
        end--;
    if (set_read_hyphen(s, p, end))
        return 0;
    while (p < end) {
        struct partial part;
        enum op        op = parse_op(&p);
        if (p >= end || parse_partial(&p, end, &part) < 0)
            return -1;
        if (op != OP_CARET && op != OP_TILDE && (has_full_marks(&part) || part.is_disorder))
            return -1;
        set_require_comparator(s, op, &part);
        skip_blanks(&p);
    }
    return 0;
}

int semver_range_test(const char *range, const struct semver *v)
{
    const char *p = range;
    bool        accepted = false;

    if (strnlen(range, SEMVER_MAX + 1) > SEMVER_MAX)
        return -1;
    for (;;) {
        const char *bar = strstr(p, "||");
        struct set  set = {.v = v, .holds = true};
        if (set_read(&set, p, bar ? bar : p + strlen(p)) < 0)
            return -1;
        accepted = accepted || (set.holds && (!v->pre_size || set.names_pre));
        if (!bar)
            return accepted;
        p = bar + 2;
    }
}
