#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "base/sha256.h"

static void hash_of(const void *data, size_t size, char ret[65])
{
    struct sha256 h;

    sha256_init(&h);
    sha256_add(&h, data, size);
    sha256_hex(&h, ret);
}

static void test_known(void **state)
{
    char hex[65];

    (void)state;
    hash_of("", 0, hex);
    assert_string_equal(hex, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    hash_of("abc", 3, hex);
    assert_string_equal(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

/* Every length around the ends of blocks, in pieces of every size. */
static void test_as_openssl(void **state)
{
    uint8_t       data[300], digest[32];
    char          ours[65], theirs[65];
    struct sha256 h;

    (void)state;
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)(i * 7 + 1);
    for (size_t n = 0; n <= sizeof data; n++) {
        assert_true(EVP_Digest(data, n, digest, NULL, EVP_sha256(), NULL));
        for (int i = 0; i < 32; i++)
            snprintf(theirs + 2 * i, 3, "%02x", digest[i]);
        hash_of(data, n, ours);
        assert_string_equal(ours, theirs);
        sha256_init(&h);
        for (size_t at = 0, piece = n % 70 + 1; at < n; at += piece)
            sha256_add(&h, data + at, n - at < piece ? n - at : piece);
        sha256_hex(&h, ours);
        assert_string_equal(ours, theirs);
    }
}

static void test_mac_as_openssl(void **state)
{
    uint8_t           key[64], data[200], ours[SHA256_SIZE], theirs[SHA256_SIZE];
    struct sha256_mac m;

    (void)state;
    for (size_t i = 0; i < sizeof key; i++)
        key[i] = (uint8_t)(200 - i);
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)(i * 3);
    for (size_t n = 0; n <= sizeof data; n++) {
        size_t key_size = n % (sizeof key + 1);
        assert_non_null(HMAC(EVP_sha256(), key, (int)key_size, data, n, theirs, NULL));
        sha256_mac_begin(&m, key, key_size);
        sha256_mac_add(&m, data, n / 3);
        sha256_mac_add(&m, data + n / 3, n - n / 3);
        sha256_mac_end(&m, ours);
        assert_memory_equal(ours, theirs, sizeof ours);
        assert_true(sha256_is_equal(ours, theirs));
        theirs[n % SHA256_SIZE] ^= 1;
        assert_false(sha256_is_equal(ours, theirs));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known),
        cmocka_unit_test(test_as_openssl),
        cmocka_unit_test(test_mac_as_openssl),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
