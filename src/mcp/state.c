/* The text is BASE64(payload) "." BASE64(mac). The payload is JSON: an expiry, a nonce, the
 * content. The MAC covers the payload and the subject. Used nonces are kept until they expire, in a
 * ring: when it is full of live ones, the oldest state can no longer be used, which a client sees
 * as expiry. */
#include "mcp/state.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/base64.h"
#include "base/fd.h"
#include "base/str.h"

enum { KEY_SIZE = 32, MAC_SIZE = 32, LIFE_S = 600, USED_MAX = 4096, STATE_MAX = 65536 };

struct states {
    unsigned char key[KEY_SIZE];
    char          used[USED_MAX][33];
    size_t        next;
};

static void random_bytes(unsigned char *ret, int size)
{
    if (RAND_bytes(ret, size) != 1)
        abort();
}

void states_random_id(char ret[33])
{
    static const char hex[] = "0123456789abcdef";
    unsigned char     bytes[16];

    random_bytes(bytes, sizeof bytes);
    for (int i = 0; i < 16; i++) {
        ret[2 * i] = hex[bytes[i] >> 4];
        ret[2 * i + 1] = hex[bytes[i] & 15];
    }
    ret[32] = '\0';
}

struct states *states_new(void)
{
    struct states *s = calloc(1, sizeof *s);

    if (!s)
        abort();
    random_bytes(s->key, KEY_SIZE);
    return s;
}

void states_free(struct states *s)
{
    free(s);
}

/* ---- the MAC ---- */

static void mac_of(const struct states *s, const char *subject, const unsigned char *payload,
                   size_t size, unsigned char ret[MAC_SIZE])
{
    size_t         subject_size = strlen(subject) + 1; /* the NUL separates the two */
    unsigned char *both = malloc(subject_size + size);
    unsigned       n = MAC_SIZE;

    if (!both)
        abort();
    memcpy(both, subject, subject_size);
    memcpy(both + subject_size, payload, size);
    if (!HMAC(EVP_sha256(), s->key, KEY_SIZE, both, subject_size + size, ret, &n))
        abort();
    free(both);
}

char *states_seal(struct states *s, const char *subject, const json_t *content)
{
    char             nonce[33];
    unsigned char    mac[MAC_SIZE];
    autojson json_t *payload = NULL;
    autofree char   *text = NULL, *left = NULL, *right = NULL;

    states_random_id(nonce);
    payload = json_pack("{s:I, s:s, s:O}", "e", (json_int_t)(time(NULL) + LIFE_S), "n", nonce, "c",
                        content);
    text = json_dumps(payload, JSON_COMPACT);
    if (!text || strlen(text) > STATE_MAX)
        return NULL;
    mac_of(s, subject, (const unsigned char *)text, strlen(text), mac);
    left = base64_encode(text, strlen(text));
    right = base64_encode(mac, MAC_SIZE);
    return str_format("%s.%s", left, right);
}

static bool was_used(struct states *s, const char *nonce)
{
    for (size_t i = 0; i < USED_MAX; i++)
        if (strcmp(s->used[i], nonce) == 0)
            return true;
    str_copy(s->used[s->next], sizeof s->used[0], nonce);
    s->next = (s->next + 1) % USED_MAX;
    return false;
}

static json_t *check_payload(struct states *s, const unsigned char *payload, size_t size,
                             struct err *e)
{
    autojson json_t *j = json_parse((const char *)payload, size, e);
    const char      *nonce = json_string_value(json_object_get(j, "n"));

    if (!nonce)
        return NULL;
    if (json_integer_value(json_object_get(j, "e")) < time(NULL)) {
        err_set(e, ERR_INVALID, "requestState has expired: start again");
        return NULL;
    }
    if (was_used(s, nonce)) {
        err_set(e, ERR_INVALID, "requestState was used already: start again");
        return NULL;
    }
    return json_incref(json_object_get(j, "c"));
}

json_t *states_open(struct states *s, const char *subject, const char *text, struct err *e)
{
    const char             *dot = strchr(text, '.');
    size_t                  size = 0, mac_size = 0;
    unsigned char           expected[MAC_SIZE];
    autofree unsigned char *payload = dot ? base64_decode(text, (size_t)(dot - text), &size) : NULL;
    autofree unsigned char *mac = dot ? base64_decode(dot + 1, strlen(dot + 1), &mac_size) : NULL;

    err_set(e, ERR_INVALID, "requestState is not one of ours");
    if (!payload || !mac || mac_size != MAC_SIZE)
        return NULL;
    mac_of(s, subject, payload, size, expected);
    if (CRYPTO_memcmp(mac, expected, MAC_SIZE) != 0)
        return NULL;
    return check_payload(s, payload, size, e);
}
