#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <openssl/evp.h>

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known),
        cmocka_unit_test(test_as_openssl),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
