#include "egress/dns.h"

#include <ctype.h>
#include <string.h>

enum {
    HEADER = DNS_HEADER,
    LABEL_MAX = 63,
    CLASS_IN = 1,
    POINTER = 0xc0,
    RECORD = 10,    /* of a record, behind its name: type, class, TTL, length */
    TRUNCATED = 2,  /* in the third byte */
    TTL_S = 60,     /* of made-up addresses, which never change */
    HOPS_MAX = 128, /* labels and pointers of a name that is skipped */
};

static uint16_t get16(const uint8_t *p)
{
    return (uint16_t)(p[0] << 8 | p[1]);
}

static void put16(uint8_t *p, unsigned v)
{
    p[0] = (uint8_t)(v >> 8);
    p[1] = (uint8_t)v;
}

static bool is_letter(uint8_t c)
{
    return isalnum(c) || c == '-' || c == '_'; /* ASCII: we never set a locale */
}

/* ---- queries ---- */

/* Reads an uncompressed name; -1, or where it ends. */
static long read_name(const uint8_t *message, size_t size, size_t at, char ret[DNS_NAME_MAX + 1])
{
    size_t used = 0;

    while (at < size && message[at] != 0) {
        size_t length = message[at++];
        if (length > LABEL_MAX || at + length > size || used + length + 1 > DNS_NAME_MAX + 1)
            return -1;
        for (size_t i = 0; i < length; i++) {
            if (!is_letter(message[at + i]))
                return -1;
            ret[used++] = (char)tolower(message[at + i]);
        }
        ret[used++] = '.';
        at += length;
    }
    if (at >= size || used == 0)
        return -1;
    ret[used - 1] = '\0';
    return (long)at + 1;
}

/* Past a name that nobody reads; 0: malformed. */
static size_t skip_name(const uint8_t *message, size_t size, size_t at)
{
    for (int hops = 0; hops < HOPS_MAX && at < size; hops++) {
        uint8_t length = message[at];
        if (length == 0)
            return at + 1;
        if ((length & POINTER) == POINTER)
            return at + 2;
        if (length > LABEL_MAX)
            return 0;
        at += 1 + (size_t)length;
    }
    return 0;
}

/* Past a record's name and all of it, whose fixed part is then at *ret_fixed; 0: malformed. */
static size_t skip_record(const uint8_t *message, size_t size, size_t at, size_t *ret_fixed)
{
    at = skip_name(message, size, at);
    if (at == 0 || at + RECORD > size || at + RECORD + get16(message + at + 8) > size)
        return 0;
    *ret_fixed = at;
    return at + RECORD + get16(message + at + 8);
}

/* The one question of a query, or of the answer that repeats it. */
static int read_question(const uint8_t *message, size_t size, struct dns_query *ret)
{
    long end;

    if (size < HEADER || get16(message + 4) != 1)
        return -1;
    end = read_name(message, size, HEADER, ret->name);
    if (end < 0 || (size_t)end + 4 > size || get16(message + end + 2) != CLASS_IN)
        return -1;
    ret->type = get16(message + end);
    ret->question_end = (size_t)end + 4;
    return 0;
}

/* What cannot be read says nothing. */
static void read_edns(const uint8_t *message, size_t size, struct dns_query *ret)
{
    size_t at = ret->question_end, fixed;

    ret->has_edns = false;
    ret->most = DNS_PLAIN_MAX;
    if (get16(message + 6) != 0 || get16(message + 8) != 0)
        return;
    for (unsigned i = get16(message + 10); i > 0; i--) {
        at = skip_record(message, size, at, &fixed);
        if (at == 0)
            return;
        if (get16(message + fixed) != DNS_OPT)
            continue;
        ret->has_edns = true;
        if (get16(message + fixed + 2) > ret->most)
            ret->most = get16(message + fixed + 2);
        if (ret->most > DNS_MESSAGE_MAX)
            ret->most = DNS_MESSAGE_MAX;
        return;
    }
}

int dns_parse_query(const uint8_t *message, size_t size, struct dns_query *ret)
{
    if (size < HEADER || (message[2] & 0xf8) != 0 || read_question(message, size, ret) < 0)
        return -1; /* an answer, another opcode, or not one question */
    read_edns(message, size, ret);
    return 0;
}

/* ---- answers ---- */

static void write_header(const uint8_t *query, enum dns_code code, unsigned answers, uint8_t *ret)
{
    memset(ret, 0, HEADER);
    memcpy(ret, query, 2);                     /* id */
    ret[2] = (uint8_t)(0x80 | (query[2] & 1)); /* an answer; recursion as desired */
    ret[3] = (uint8_t)(0x80 | code);           /* recursion available */
    put16(ret + 6, answers);
}

size_t dns_answer(const uint8_t *message, const struct dns_query *q, enum dns_code code,
                  const struct ip *address, uint8_t ret[DNS_MESSAGE_MAX])
{
    static const uint8_t record[] = {POINTER, HEADER, 0, DNS_A, 0, CLASS_IN, 0, 0, 0, TTL_S, 0, 4};
    size_t               size = q->question_end;

    memcpy(ret, message, size);
    write_header(message, code, address ? 1 : 0, ret);
    put16(ret + 4, 1);
    if (!address)
        return size;
    memcpy(ret + size, record, sizeof record);
    memcpy(ret + size + sizeof record, address->bytes + 12, 4);
    return size + sizeof record + 4;
}

size_t dns_answer_bad(const uint8_t *message, size_t size, uint8_t ret[DNS_MESSAGE_MAX])
{
    if (size < HEADER || (message[2] & 0x80))
        return 0;
    write_header(message, DNS_REFUSED, 0, ret);
    return HEADER;
}

size_t dns_add_edns(uint8_t *message, size_t size, size_t most)
{
    static const uint8_t record[DNS_EDNS] = {0, 0, DNS_OPT}; /* the root; no flags, no options */

    memcpy(message + size, record, sizeof record);
    put16(message + size + 3, (unsigned)most);
    put16(message + 10, 1);
    return size + sizeof record;
}

size_t dns_fit(uint8_t *answer, size_t size, const struct dns_query *q, size_t most)
{
    size_t edns = q->has_edns ? DNS_EDNS : 0;

    if (size + edns > most) {
        answer[2] |= TRUNCATED;
        memset(answer + 6, 0, HEADER - 6);
        size = q->question_end;
    }
    return q->has_edns ? dns_add_edns(answer, size, DNS_MESSAGE_MAX) : size;
}

size_t dns_drop_additional(uint8_t *answer, size_t size)
{
    struct dns_query q;
    size_t           at, fixed;

    if (read_question(answer, size, &q) < 0)
        return 0;
    at = q.question_end;
    for (unsigned i = get16(answer + 6) + get16(answer + 8); i > 0; i--) {
        at = skip_record(answer, size, at, &fixed);
        if (at == 0)
            return 0;
    }
    put16(answer + 10, 0);
    return at;
}

enum dns_code dns_code(const uint8_t *answer)
{
    return (enum dns_code)(answer[3] & 0x0f);
}

bool dns_is_settled(enum dns_code code)
{
    return code == DNS_OK || code == DNS_NO_SUCH_NAME;
}

bool dns_is_truncated(const uint8_t *answer)
{
    return answer[2] & TRUNCATED;
}

/* ---- our own ---- */

size_t dns_ask(uint16_t id, const char *name, enum dns_type type, uint8_t ret[DNS_MESSAGE_MAX])
{
    size_t at = HEADER;

    memset(ret, 0, HEADER);
    put16(ret, id);
    ret[2] = 1; /* recursion desired */
    put16(ret + 4, 1);
    while (*name) {
        size_t length = strcspn(name, ".");
        ret[at++] = (uint8_t)length;
        memcpy(ret + at, name, length);
        at += length;
        name += length + (name[length] == '.');
    }
    ret[at++] = 0;
    put16(ret + at, type);
    put16(ret + at + 2, CLASS_IN);
    return at + 4;
}

bool dns_fits(const uint8_t *query, size_t query_size, const uint8_t *answer, size_t size)
{
    struct dns_query asked, answered;

    return size >= HEADER && (answer[2] & 0x80) && memcmp(query, answer, 2) == 0 &&
           read_question(query, query_size, &asked) == 0 &&
           read_question(answer, size, &answered) == 0 && asked.type == answered.type &&
           strcmp(asked.name, answered.name) == 0;
}

static void add_record(struct dns_addresses *ret, const uint8_t *record, enum dns_type type)
{
    uint32_t ttl = (uint32_t)get16(record + 4) << 16 | get16(record + 6);
    size_t   length = get16(record + 8);

    if (get16(record) != type || get16(record + 2) != CLASS_IN || ret->n == DNS_ADDRESSES_MAX ||
        length != (type == DNS_A ? 4u : 16u))
        return;
    if (ret->n == 0 || ttl < ret->ttl_s)
        ret->ttl_s = ttl;
    if (type == DNS_A)
        ret->list[ret->n++] = ip_from_v4(record + 10);
    else
        memcpy(ret->list[ret->n++].bytes, record + 10, 16);
}

int dns_read_addresses(const uint8_t *answer, size_t size, enum dns_type type,
                       struct dns_addresses *ret)
{
    size_t at = HEADER, fixed;

    *ret = (struct dns_addresses){0};
    if (size < HEADER)
        return -1;
    ret->code = dns_code(answer);
    for (unsigned i = get16(answer + 4); i > 0; i--) {
        at = skip_name(answer, size, at);
        if (at == 0 || at + 4 > size)
            return -1;
        at += 4;
    }
    for (unsigned i = get16(answer + 6); i > 0; i--) {
        at = skip_record(answer, size, at, &fixed);
        if (at == 0)
            return dns_is_truncated(answer) ? 0 : -1; /* truncated: what came is good */
        add_record(ret, answer + fixed, type);
    }
    return 0;
}
