#include "npm/integrity.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"

/* 64 bytes are 86 digits and two of padding. */
enum { DIGITS = 86, BASE64 = 88 };

static const char blanks[] = " \t\r\n";

static int decode(const char *text, size_t size, struct integrity *ret, struct err *e)
{
    static const char alphabet[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    uint8_t bytes[BASE64 / 4 * 3];

    /* Checked here: OpenSSL's decoder forgives blanks and padding. */
    if (size != BASE64 || strspn(text, alphabet) != DIGITS || memcmp(text + DIGITS, "==", 2) != 0 ||
        EVP_DecodeBlock(bytes, (const uint8_t *)text, BASE64) < 0)
        return err_set(e, ERR_INVALID, "the registry's sha512 is not base64 of 64 bytes");
    memcpy(ret->sha512, bytes, sizeof ret->sha512);
    return 0;
}

int integrity_parse(const char *text, struct integrity *ret, struct err *e)
{
    for (const char *p = text + strspn(text, blanks); *p; p += strspn(p, blanks)) {
        size_t size = strcspn(p, blanks);
        if (str_starts(p, "sha512-"))
            return decode(p + 7, size - 7, ret, e);
        p += size;
    }
    return err_set(e, ERR_INVALID, "the registry gives no sha512 for it");
}

void integrity_begin(struct integrity_sum *s)
{
    if (!s->ctx)
        s->ctx = EVP_MD_CTX_new();
    if (!s->ctx || !EVP_DigestInit_ex(s->ctx, EVP_sha512(), NULL))
        abort();
}

void integrity_add(struct integrity_sum *s, const void *data, size_t size)
{
    if (!EVP_DigestUpdate(s->ctx, data, size))
        abort();
}

int integrity_end(struct integrity_sum *s, const struct integrity *promised, struct err *e)
{
    uint8_t sum[EVP_MAX_MD_SIZE];

    if (!EVP_DigestFinal_ex(s->ctx, sum, NULL))
        abort();
    EVP_MD_CTX_free(s->ctx);
    s->ctx = NULL;
    if (memcmp(sum, promised->sha512, sizeof promised->sha512) != 0)
        return err_set(e, ERR_INVALID, "its sha512 is not the one that the registry promises");
    return 0;
}

bool integrity_is_whole(const struct integrity_sum *s, const struct integrity *promised)
{
    struct integrity_sum copy = {EVP_MD_CTX_new()};

    if (!copy.ctx || !EVP_MD_CTX_copy_ex(copy.ctx, s->ctx))
        abort();
    return integrity_end(&copy, promised, NULL) == 0;
}
