#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include <fcntl.h>

#include "base/fd.h"
#include "npm/npm_config.h"

static char home[] = "/tmp/jerboa-npm-config-XXXXXX";

static void write_npmrc(const char *text)
{
    autofd int dir = open(home, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    assert_int_equal(file_write_text(dir, ".npmrc", text, NULL), 0);
}

static void test_find(void **state)
{
    static const struct {
        const char *text, *value;
    } rows[] = {
        {"registry=https://a.test/", "https://a.test/"},
        {"  registry  =  https://a.test/  \r\nx=1\r\n", "https://a.test/"},
        {"registry = \"https://a.test/\"", "https://a.test/"},
        {"registry = 'https://a.test/'", "https://a.test/"},
        {"registry=https://a.test/ ; mine", "https://a.test/"},
        {"registry=https://a.test/ # mine", "https://a.test/"},
        {"registry=https://a.test/\nregistry=https://b.test/\n", "https://b.test/"},
        {"#registry=https://a.test/", ""},
        {";registry=https://a.test/", ""},
        {"@scope:registry=https://a.test/", ""},
        {"my-registry=https://a.test/", ""},
        {"registry", ""},
        {"registry=", ""},
        {"=", ""},
        {"", ""},
        {"\n\n=\nregistry", ""},
    };
    char value[64];

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(npm_config_find(rows[i].text, "registry", value, sizeof value, NULL), 0);
        assert_string_equal(value, rows[i].value);
    }
}

static void test_too_long(void **state)
{
    char       value[4];
    struct err e = {0};

    (void)state;
    assert_int_equal(npm_config_find("a=123", "a", value, sizeof value, &e), 0);
    assert_int_equal(npm_config_find("a=1234", "a", value, sizeof value, &e), -1);
    assert_int_equal(e.kind, ERR_LIMIT);
}

static void test_environment_wins(void **state)
{
    struct npm_config config;

    (void)state;
    write_npmrc("registry=https://file.test/npm\ncafile=/file.pem\n");
    assert_int_equal(npm_config_load(&config, NULL), 0);
    assert_string_equal(config.registry, "https://file.test/npm/");
    assert_string_equal(config.cafile, "/file.pem");
    setenv("NPM_CONFIG_REGISTRY", "http://upper.test", 1);
    assert_int_equal(npm_config_load(&config, NULL), 0);
    assert_string_equal(config.registry, "http://upper.test/");
    setenv("npm_config_registry", "http://lower.test/", 1);
    setenv("npm_config_cafile", "/env.pem", 1);
    assert_int_equal(npm_config_load(&config, NULL), 0);
    assert_string_equal(config.registry, "http://lower.test/");
    assert_string_equal(config.cafile, "/env.pem");
}

static void test_no_url(void **state)
{
    static const char *const texts[] = {"ftp://a.test/",    "a.test",       "https://",
                                        "https:///x",       "https://a b/", "https://a.test/?x",
                                        "https://a.test/#", "file:///etc",  "https://a\x01.test"};
    struct npm_config        config;
    struct err               e = {0};

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        setenv("npm_config_registry", texts[i], 1);
        if (npm_config_load(&config, &e) == 0)
            fail_msg("%s was accepted", texts[i]);
        assert_int_equal(e.kind, ERR_INVALID);
    }
}

static int set_up(void **state)
{
    (void)state;
    unsetenv("npm_config_registry");
    unsetenv("NPM_CONFIG_REGISTRY");
    unsetenv("npm_config_cafile");
    return setenv("HOME", home, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_find),
        cmocka_unit_test(test_too_long),
        cmocka_unit_test_setup(test_environment_wins, set_up),
        cmocka_unit_test_setup(test_no_url, set_up),
    };
    int  failed;
    char npmrc[64];

    if (!mkdtemp(home))
        return 1;
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    snprintf(npmrc, sizeof npmrc, "%s/.npmrc", home);
    unlink(npmrc);
    rmdir(home);
    return failed;
}
