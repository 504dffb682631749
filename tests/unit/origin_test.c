#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "transport/address.h"
#include "transport/origin.h"

static const char *const hosts[] = {"mcp.example.com", NULL};

static const struct origin_rules local = {.local_only = true, .hosts = hosts};
static const struct origin_rules open = {0};
static const struct origin_rules named = {.hosts = hosts};

static const struct {
    const char *host;
    bool        allowed;
} host_rows[] = {
    {"localhost", true},
    {"localhost:8080", true},
    {"LocalHost:1", true},
    {"127.0.0.1", true},
    {"127.0.0.1:65535", true},
    {"[::1]", true},
    {"[::1]:8080", true},
    {"mcp.example.com", true},
    {"MCP.example.com:443", true},
    {NULL, false},
    {"", false},
    {":80", false},
    {"evil.example.com", false},
    {"example.com", false},
    {"localhost.evil.com", false},
    {"localhost.", false},
    {"evil.com:localhost", false},
    {"localhost:80@evil.com", false},
    {"localhost:80a", false},
    {"127.0.0.2", true},
    {"127.evil.com", false},
    {"128.0.0.1", false},
    {"::1", false},
    {"[::1", false},
    {"[::1]x", false},
    {"[", false},
    {" localhost", false},
    {"0.0.0.0", false},
};

static void hosts_of_a_local_server(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof host_rows / sizeof *host_rows; i++)
        if (origin_allows_host(&local, host_rows[i].host) != host_rows[i].allowed)
            fail_msg("Host: %s", host_rows[i].host ? host_rows[i].host : "(none)");
}

/* Elsewhere tokens decide, and any name may lead to us. */
static void hosts_of_an_open_server(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof host_rows / sizeof *host_rows; i++) {
        assert_true(origin_allows_host(&open, host_rows[i].host));
        /* unless names are given: then they count */
        assert_int_equal(origin_allows_host(&named, host_rows[i].host),
                         origin_allows_host(&local, host_rows[i].host));
    }
}

static void origins(void **state)
{
    static const struct {
        const char *origin;
        bool        allowed;
    } rows[] = {
        {NULL, true},
        {"http://localhost", true},
        {"http://localhost:6274", true},
        {"https://127.0.0.1:1", true},
        {"HTTP://[::1]:1", true},
        {"https://mcp.example.com", true},
        {"", false},
        {"null", false},
        {"localhost", false},
        {"http://", false},
        {"http://evil.example.com", false},
        {"http://localhost.evil.com", false},
        {"http://localhost@evil.com", false},
        {"http://localhost/evil", false},
        {"file://localhost", false},
        {"chrome-extension://localhost", false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (origin_allows(&local, rows[i].origin) != rows[i].allowed ||
            origin_allows(&named, rows[i].origin) != rows[i].allowed)
            fail_msg("Origin: %s", rows[i].origin ? rows[i].origin : "(none)");
}

static void addresses(void **state)
{
    static const struct {
        const char *text, *url; /* url NULL: refused */
        bool        is_local;
    } rows[] = {
        {"8080", "http://127.0.0.1:8080/mcp", true},
        {"0", "http://127.0.0.1:0/mcp", true},
        {"localhost:80", "http://127.0.0.1:80/mcp", true},
        {"127.9.9.9:80", "http://127.9.9.9:80/mcp", true},
        {"[::1]:80", "http://[::1]:80/mcp", true},
        {"[::ffff:127.0.0.1]:80", "http://[::ffff:127.0.0.1]:80/mcp", true},
        {"0.0.0.0:80", "http://0.0.0.0:80/mcp", false},
        {"[::]:80", "http://[::]:80/mcp", false},
        {"10.0.0.1:80", "http://10.0.0.1:80/mcp", false},
        {"unix:/run/j.sock", "unix:/run/j.sock", true},
        {"", NULL},
        {"unix:", NULL},
        {":80", NULL},
        {"::1:80", NULL},
        {"[::1:80", NULL},
        {"[]:80", NULL},
        {"localhost", NULL},
        {"127.0.0.1:", NULL},
        {"127.0.0.1:65536", NULL},
        {"127.0.0.1:-1", NULL},
        {"example.com:80", NULL},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct address a;
        struct err     e = {0};
        int            r = address_parse(rows[i].text, &a, &e);

        if (!rows[i].url) {
            assert_int_equal(r, -1);
            assert_true(e.msg[0]);
            continue;
        }
        assert_int_equal(r, 0);
        char *url = address_url(&a);
        assert_string_equal(url, rows[i].url);
        assert_int_equal(a.is_local, rows[i].is_local);
        free(url);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hosts_of_a_local_server),
        cmocka_unit_test(hosts_of_an_open_server),
        cmocka_unit_test(origins),
        cmocka_unit_test(addresses),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
