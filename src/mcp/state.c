/* The text is BASE64(payload) "." BASE64(mac). The payload is JSON: an expiry, a number, the
 * content. The MAC covers the payload and the subject. Numbers count up; which of the newest
 * `window` were used is kept in a bitmap, and older ones are refused as if they had expired. So no
 * state works twice, however many others come between. */
#include "mcp/state.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/base64.h"
#include "base/fd.h"
#include "base/random.h"
#include "base/sha256.h"
#include "base/str.h"

enum { KEY_SIZE = 32, MAC_SIZE = SHA256_SIZE, LIFE_S = 600, STATE_MAX = 65536 };

struct states {
    unsigned char key[KEY_SIZE];
    int64_t       last; /* number of the newest state */
    int64_t       window;
    unsigned char used[]; /* a bit each of the window */
};

/* The clock of the machine, asleep or not: setting the time of day neither ends nor prolongs. */
static int64_t now_s(void)
{
    struct timespec now;

    if (clock_gettime(CLOCK_BOOTTIME, &now) < 0)
        abort();
    return now.tv_sec;
}

struct states *states_new(int64_t window)
{
    struct states *s = calloc(1, sizeof *s + (size_t)window / 8);

    if (!s)
        abort();
    random_bytes(s->key, KEY_SIZE);
    s->window = window;
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
    struct sha256_mac m;

    sha256_mac_begin(&m, s->key, KEY_SIZE);
    sha256_mac_add(&m, subject, strlen(subject) + 1); /* the NUL separates the two */
    sha256_mac_add(&m, payload, size);
    sha256_mac_end(&m, ret);
}

char *states_seal(struct states *s, const char *subject, const json_t *content)
{
    unsigned char    mac[MAC_SIZE];
    autojson json_t *payload = json_pack("{s:I, s:I, s:O}", "e", (json_int_t)now_s() + LIFE_S, "n",
                                         (json_int_t)s->last + 1, "c", content);
    autofree char   *text = json_dumps(payload, JSON_COMPACT), *left = NULL, *right = NULL;

    if (!text || strlen(text) > STATE_MAX)
        return NULL;
    s->last++;
    s->used[s->last % s->window / 8] &= (unsigned char)~(1 << s->last % 8);
    mac_of(s, subject, (const unsigned char *)text, strlen(text), mac);
    left = base64_encode(text, strlen(text));
    right = base64_encode(mac, MAC_SIZE);
    return str_format("%s.%s", left, right);
}

static bool was_used(struct states *s, int64_t number)
{
    unsigned char *byte = &s->used[number % s->window / 8], bit = (unsigned char)(1 << number % 8);

    if (*byte & bit)
        return true;
    *byte |= bit;
    return false;
}

static json_t *check_payload(struct states *s, const unsigned char *payload, size_t size,
                             struct err *e)
{
    autojson json_t *j = json_parse((const char *)payload, size, e);
    int64_t          number = json_integer_value(json_object_get(j, "n"));

    if (!j)
        return NULL;
    if (json_integer_value(json_object_get(j, "e")) < now_s() || number <= s->last - s->window) {
        err_set(e, ERR_INVALID, "requestState has expired: start again");
        return NULL;
    }
    if (was_used(s, number)) {
        err_set(e, ERR_INVALID, "requestState was used already: start again");
        return NULL;
    }
    return json_incref(json_object_get(j, "c"));
}

static json_t *refuse(struct err *e)
{
    err_set(e, ERR_INVALID, "requestState is not one of ours");
    return NULL;
}

json_t *states_open(struct states *s, const char *subject, const char *text, struct err *e)
{
    const char             *dot = strchr(text, '.');
    size_t                  size = 0, mac_size = 0;
    unsigned char           expected[MAC_SIZE];
    autofree unsigned char *payload = dot ? base64_decode(text, (size_t)(dot - text), &size) : NULL;
    autofree unsigned char *mac = dot ? base64_decode(dot + 1, strlen(dot + 1), &mac_size) : NULL;

    if (!payload || !mac || mac_size != MAC_SIZE)
        return refuse(e);
    mac_of(s, subject, payload, size, expected);
    if (!sha256_is_equal(mac, expected))
        return refuse(e);
    return check_payload(s, payload, size, e);
}
