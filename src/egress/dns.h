/* dns - messages of the domain name system, as far as a sandbox's lookups need them. What is parsed
 * here comes from hostile code, or from a name server that is not believed either. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "egress/ip.h"

enum {
    DNS_PORT = 53,
    DNS_HEADER = 12,
    DNS_NAME_MAX = 253,
    DNS_QUESTION_MAX = DNS_HEADER + DNS_NAME_MAX + 2 + 4, /* a header and one question */
    DNS_PLAIN_MAX = 512,    /* a datagram for who does not say that he takes more */
    DNS_MESSAGE_MAX = 4096, /* a datagram, and every query */
    DNS_ANSWER_MAX = 65535, /* by TCP */
    DNS_EDNS = 11,          /* bytes of the record by which one says what one takes */
    DNS_ADDRESSES_MAX = 16,
};

/* From DNS_META to DNS_ANY: no records, but questions about many, as zone transfers are. */
enum dns_type { DNS_A = 1, DNS_AAAA = 28, DNS_OPT = 41, DNS_META = 128, DNS_ANY = 255 };
enum dns_code { DNS_OK = 0, DNS_SERVER_FAILED = 2, DNS_NO_SUCH_NAME = 3, DNS_REFUSED = 5 };

struct dns_query {
    char     name[DNS_NAME_MAX + 1]; /* lower case, no dot at the end */
    uint16_t type;
    size_t   question_end; /* header and question: what an answer repeats */
    bool     has_edns;
    size_t   most; /* bytes of a datagram that who asks is ready for */
};

/* One plain question for a name of letters, digits, '-' and '_'; else -1. */
int dns_parse_query(const uint8_t *message, size_t size, struct dns_query *ret);

/* An answer to the query in `message`: a code, and perhaps an A record. Its size. */
size_t dns_answer(const uint8_t *message, const struct dns_query *q, enum dns_code code,
                  const struct ip *address, uint8_t ret[DNS_MESSAGE_MAX]);
/* For what could not even be parsed; 0: not worth an answer. */
size_t dns_answer_bad(const uint8_t *message, size_t size, uint8_t ret[DNS_MESSAGE_MAX]);

/* Says in a message of `size` bytes, which ends with its question, answers or authority, that we
 * take datagrams of `most`; its size then. There must be room for DNS_EDNS more. */
size_t dns_add_edns(uint8_t *message, size_t size, size_t most);

/* An answer as who asked can take it: with EDNS if he had it, and cut to its question, marked as
 * truncated, if it would be larger than `most`. Its size; room as above. */
size_t dns_fit(uint8_t *answer, size_t size, const struct dns_query *q, size_t most);

/* What others answered, without what nobody asked for: the additional records, which may be
 * addresses too, and EDNS. 0: it is malformed. */
size_t dns_drop_additional(uint8_t *answer, size_t size);

/* Of a whole header. */
enum dns_code dns_code(const uint8_t *answer);
/* A server has spoken: that there is no such name is an answer, that it cannot tell is none. */
bool dns_is_settled(enum dns_code code);
bool dns_is_truncated(const uint8_t *answer);

/* A query of our own; its size. The name is one that dns_parse_query could have given. */
size_t dns_ask(uint16_t id, const char *name, enum dns_type type, uint8_t ret[DNS_MESSAGE_MAX]);

/* Whether `answer` answers `query`: same id and question. */
bool dns_fits(const uint8_t *query, size_t query_size, const uint8_t *answer, size_t size);

struct dns_addresses {
    struct ip     list[DNS_ADDRESSES_MAX];
    size_t        n;
    enum dns_code code;
    uint32_t      ttl_s; /* the least */
};

/* The addresses of a type in an answer, whatever names they stand under: who answered says that
 * they belong to the question. -1: it is malformed. */
int dns_read_addresses(const uint8_t *answer, size_t size, enum dns_type type,
                       struct dns_addresses *ret);
