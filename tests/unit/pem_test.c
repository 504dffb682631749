#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/pem.h"

#define CERT(label, body) "-----BEGIN " label "-----\n" body "\n-----END " label "-----"

static const struct {
    const char *text, *found[3];
} cases[] = {
    {"", {NULL}},
    {"no dashes", {NULL}},
    {CERT("CERTIFICATE", "aGk="), {CERT("CERTIFICATE", "aGk=")}},
    {"# a note\r\n" CERT("X509 CERTIFICATE", "YQ==") "\n" CERT("TRUSTED CERTIFICATE",
                                                               "Yg==") "rest",
     {CERT("X509 CERTIFICATE", "YQ=="), CERT("TRUSTED CERTIFICATE", "Yg==")}},
    {CERT("PRIVATE KEY", "c2VjcmV0"), {NULL}},
    {CERT("CERTIFICATE", "YQ==") "\n" CERT("EC PRIVATE KEY", "c2VjcmV0") "\n" CERT("CERTIFICATE",
                                                                                   "Yg=="),
     {CERT("CERTIFICATE", "YQ=="), CERT("CERTIFICATE", "Yg==")}},
    {CERT("CERTIFICATE REQUEST", "YQ=="), {NULL}},
    /* cut, nested, wrongly ended: what is inside must not come along */
    {"-----BEGIN CERTIFICATE-----\nYQ==", {NULL}},
    {"-----BEGIN CERTIFICATE", {NULL}},
    {"-----BEGIN CERTIFICATE-----\n" CERT("PRIVATE KEY", "c2VjcmV0") "\n-----END CERTIFICATE-----",
     {NULL}},
    {"-----BEGIN CERTIFICATE-----\n" CERT("CERTIFICATE", "YQ=="), {CERT("CERTIFICATE", "YQ==")}},
    {"-----BEGIN CERTIFICATE-----\nYQ==\n-----END X509 CERTIFICATE-----", {NULL}},
    {"-----BEGIN AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA CERTIFICATE-----\n-----END", {NULL}},
};

static void certificates_alone_are_found(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *at = cases[i].text;
        size_t      size = 0, n = 0;

        for (; (at = pem_next_certificate(at, &size)); at += size, n++) {
            if (!cases[i].found[n] || strlen(cases[i].found[n]) != size)
                fail_msg("case %zu, find %zu: %.*s", i, n, (int)size, at);
            assert_memory_equal(at, cases[i].found[n], size);
        }
        assert_null(cases[i].found[n]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(certificates_alone_are_found)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
