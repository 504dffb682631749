#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <fcntl.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "npm/npm_config.h"

static char home[64]; /* has project/, the working directory */
static int  dir = -1;

static void write_file(const char *name, const char *text)
{
    assert_int_equal(file_write_text(dir, name, text, NULL), 0);
}

static struct npm_config *load(enum npm_config_reach reach)
{
    struct err         e = {0};
    struct npm_config *c = npm_config_load(reach, &e);

    if (!c)
        fail_msg("%s", e.msg);
    return c;
}

/* Expects the value of a key in the configuration of a project. */
static void expect_setting(const char *key, const char *value)
{
    struct npm_config *c = load(NPM_CONFIG_PROJECT);
    const char        *found = npm_config_get(c, key);

    if (!value)
        assert_null(found);
    else if (!found)
        fail_msg("%s is not set", key);
    else
        assert_string_equal(found, value);
    npm_config_free(c);
}

/* Expects the registry of a package, or the beginning of the error. */
static void expect_registry(enum npm_config_reach reach, const char *package, const char *registry)
{
    struct npm_config *c = load(reach);
    char               found[NPM_CONFIG_URL_MAX];
    struct err         e = {0};

    if (npm_config_registry(c, package, found, &e) < 0)
        snprintf(found, sizeof found, "%.*s", (int)strlen(registry), e.msg);
    assert_string_equal(found, registry);
    npm_config_free(c);
}

/* Expects the header for an address, NULL for none, or the beginning of the error. */
static void expect_header(const char *address, const char *header)
{
    struct npm_config *c = load(NPM_CONFIG_PROJECT);
    struct url         url;
    struct err         e = {0};
    char              *found = NULL;

    assert_int_equal(url_parse(address, &url, NULL), 0);
    if (npm_config_authorization(c, &url, &found, &e) < 0)
        assert_memory_equal(e.msg, header, strlen(header));
    else if (!header || !found)
        assert_true(!header && !found);
    else
        assert_string_equal(found, header);
    free(found);
    npm_config_free(c);
}

static void test_layers(void **state)
{
    (void)state;
    write_file("global", "registry=https://global.test/\ncafile=/global.pem\n");
    expect_registry(NPM_CONFIG_PROJECT, "x", "https://global.test/");
    write_file(".npmrc", "registry=https://user.test/npm\n");
    expect_registry(NPM_CONFIG_PROJECT, "x", "https://user.test/npm/");
    expect_setting("cafile", "/global.pem");
    write_file("project/.npmrc", "registry=https://project.test/\n");
    expect_registry(NPM_CONFIG_PROJECT, "x", "https://project.test/");
    expect_registry(NPM_CONFIG_USER, "x", "https://user.test/npm/");
    setenv("NPM_CONFIG_REGISTRY", "http://env.test", 1);
    expect_registry(NPM_CONFIG_PROJECT, "x", "http://env.test/");
    expect_registry(NPM_CONFIG_USER, "x", "http://env.test/");
    unsetenv("NPM_CONFIG_REGISTRY");
    setenv("npm_config_userconfig", "/nowhere", 1);
    expect_registry(NPM_CONFIG_USER, "x", "https://global.test/");
}

/* Of the user's own layers; what is no scope or no URL does not count. */
static void test_list_of_scopes(void **state)
{
    struct npm_scope scopes[8];

    (void)state;
    write_file("global", "@a:registry=https://global.test/\n@b:registry=https://b.test/\n");
    write_file(".npmrc", "@a:registry=https://jo:pw@user.test/\n@c:registry=no url\n"
                         "@D e:registry=https://d.test/\n@:registry=https://e.test/\n");
    write_file("project/.npmrc",
               "@b:registry=https://project.test/\n@f:registry=https://f.test/\n");
    struct npm_config *c = load(NPM_CONFIG_USER);
    size_t             n = npm_config_scopes(c, scopes, 8);
    assert_int_equal(n, 2);
    assert_string_equal(scopes[0].name, "@a");
    assert_string_equal(scopes[0].registry, "https://jo:pw@user.test/");
    assert_string_equal(scopes[1].name, "@b");
    assert_string_equal(scopes[1].registry, "https://b.test/");
    assert_int_equal(npm_config_scopes(c, scopes, 1), 1);
    npm_config_free(c);
}

static void test_files_named_by_others(void **state)
{
    char path[128];

    (void)state;
    snprintf(path, sizeof path, "globalconfig=%s/other\n", home);
    write_file(".npmrc", path);
    write_file("other", "registry=https://other.test/\n");
    unsetenv("npm_config_globalconfig");
    expect_registry(NPM_CONFIG_USER, "x", "https://other.test/");
    assert_int_equal(mkdirat(dir, "etc", 0755), 0);
    write_file("etc/npmrc", "registry=https://prefix.test/\n");
    write_file(".npmrc", "prefix=~/\n");
    expect_registry(NPM_CONFIG_USER, "x", "https://prefix.test/");
}

static void test_scopes(void **state)
{
    (void)state;
    write_file(".npmrc", "registry=https://user.test/\n@a:registry=https://a.test/x\n");
    expect_registry(NPM_CONFIG_USER, "@a/b", "https://a.test/x/");
    expect_registry(NPM_CONFIG_USER, "@b/b", "https://user.test/");
    expect_registry(NPM_CONFIG_USER, "a", "https://user.test/");
}

static void test_no_url(void **state)
{
    static const char *const texts[] = {"ftp://a.test/",    "a.test",       "https://",
                                        "https:///x",       "https://a b/", "https://a.test/?x",
                                        "https://a.test/#", "file:///etc",  "https://a\x01.test",
                                        "https://a\\b/"};

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        setenv("npm_config_registry", texts[i], 1);
        expect_registry(NPM_CONFIG_USER, "x",
                        "the configured npm registry (registry) is no http or https URL");
    }
}

static void test_credentials(void **state)
{
    (void)state;
    write_file(".npmrc", "//a.test/:_authToken=one\n"
                         "//a.test/b/:_authToken=two\n"
                         "//a.test/c:_auth=dTpw\n"
                         "//a.test:8080/:_authToken=port\n"
                         "//user.test/:username=me\n//user.test/:_password=c2VjcmV0\n"
                         "//half.test/:username=me\n"
                         "//bad.test/:username=me\n//bad.test/:_password=!\n"
                         "//inject.test/:_authToken=\"x\\r\\nEvil: yes\"\n"
                         "//unset.test/:_authToken=${JERBOA_TEST_UNSET}\n");
    expect_header("https://a.test/x", "Bearer one");
    expect_header("https://A.test:443/", "Bearer one");
    expect_header("http://a.test/x", "Bearer one");
    expect_header("https://a.test/b/x/y", "Bearer two");
    expect_header("https://a.test/bb/x", "Bearer one");
    expect_header("https://a.test/c/x", "Basic dTpw");
    expect_header("https://a.test:8080/", "Bearer port");
    expect_header("https://a.test:8081/", NULL);
    expect_header("https://b.a.test/", NULL);
    expect_header("https://a.test.evil.test/", NULL);
    expect_header("https://a.test@evil.test/", NULL);
    expect_header("https://user.test/", "Basic bWU6c2VjcmV0");
    expect_header("https://half.test/", NULL);
    expect_header("https://unset.test/", NULL);
    expect_header("https://a.test/b/%2e%2e/x", NULL);
    expect_header("https://bad.test/", "the _password configured for //bad.test/ is not base64");
    expect_header("https://inject.test/", "the credentials configured for //inject.test/ hold");
}

static void test_variables(void **state)
{
    (void)state;
    setenv("JERBOA_TEST_HOST", "v.test", 1);
    setenv("JERBOA_TEST_TOKEN", "secret", 1);
    write_file(".npmrc", "registry=https://${JERBOA_TEST_HOST}/\n"
                         "//${JERBOA_TEST_HOST}/:_authToken=${JERBOA_TEST_TOKEN}\n");
    expect_registry(NPM_CONFIG_USER, "x", "https://v.test/");
    expect_header("https://v.test/", "Bearer secret");
}

/* What a file from a checkout may not do; see the head of npm_config.h. */
static void test_project_is_not_trusted(void **state)
{
    struct npm_config *c;

    (void)state;
    setenv("JERBOA_TEST_TOKEN", "secret", 1);
    write_file(".npmrc", "registry=https://user.test/npm/\n//user.test/npm/:_authToken=mine\n");
    write_file("project/.npmrc",
               "cafile=/evil.pem\nstrict-ssl=false\nhttps-proxy=http://evil.test/\n"
               "proxy=http://evil.test/\nca=x\nuserconfig=/evil\nprefix=/evil\n"
               "@plain:registry=http://user.test/npm/\n"
               "@local:registry=http://127.0.0.1:4873/\n"
               "@leak:registry=https://evil.test/${JERBOA_TEST_TOKEN}/\n"
               "//evil.test/:_authToken=${JERBOA_TEST_TOKEN}\n"
               "//own.test/:_authToken=own\n");
    expect_setting("cafile", NULL);
    expect_setting("strict-ssl", NULL);
    expect_setting("https-proxy", NULL);
    expect_setting("proxy", NULL);
    expect_setting("ca", NULL);
    expect_registry(NPM_CONFIG_PROJECT, "@plain/x", "@plain:registry in ");
    expect_registry(NPM_CONFIG_PROJECT, "@local/x", "http://127.0.0.1:4873/");
    expect_registry(NPM_CONFIG_PROJECT, "@leak/x", "@leak:registry in ");
    expect_registry(NPM_CONFIG_USER, "@leak/x", "https://user.test/npm/");
    expect_header("https://evil.test/", "//evil.test/:_authToken in ");
    expect_header("https://own.test/", "Bearer own");
    expect_header("https://user.test/npm/x", "Bearer mine");
    c = load(NPM_CONFIG_PROJECT);
    assert_non_null(strstr(npm_config_note(c), "/project/.npmrc do not count"));
    npm_config_free(c);
    c = load(NPM_CONFIG_USER);
    assert_string_equal(npm_config_note(c), "");
    npm_config_free(c);

    write_file("project/.npmrc", "//user.test/npm/:_authToken=${JERBOA_TEST_TOKEN}\n"
                                 "//user.test/other/:_authToken=${JERBOA_TEST_TOKEN}\n");
    expect_header("https://user.test/npm/x", "Bearer secret");
    expect_header("https://user.test/other/x", "//user.test/other/:_authToken in ");
}

static void test_project_is_found(void **state)
{
    (void)state;
    write_file("project/.npmrc", "registry=https://project.test/\n");
    assert_int_equal(mkdirat(dir, "project/packages", 0755), 0);
    assert_int_equal(mkdirat(dir, "project/packages/a", 0755), 0);
    write_file("project/packages/a/.npmrc", "registry=https://a.test/\n");
    assert_int_equal(chdir("packages/a"), 0);
    expect_setting("registry", "https://a.test/"); /* nothing else marks a project */
    write_file("project/package.json", "{}");
    expect_setting("registry", "https://project.test/");
    write_file("project/packages/a/package.json", "{}");
    expect_setting("registry", "https://a.test/");
    write_file("project/package.json", "{\"workspaces\":[\"./packages/*\"]}");
    expect_setting("registry", "https://project.test/");
    write_file("project/package.json", "{\"workspaces\":{\"packages\":[\"packages/a/\"]}}");
    expect_setting("registry", "https://project.test/");
    write_file("project/package.json", "{\"workspaces\":[\"packages/*\",\"!packages/a\"]}");
    expect_setting("registry", "https://a.test/");
    write_file("project/package.json", "{\"workspaces\":[\"pack*\"]}");
    expect_setting("registry", "https://a.test/");
    write_file("project/package.json", "not JSON");
    expect_setting("registry", "https://a.test/");
}

static void test_trust(void **state)
{
    struct npm_config *c;
    struct npm_trust   trust;

    (void)state;
    write_file("here.pem", "x");
    write_file("global", "ca=global\nstrict-ssl=false\n");
    write_file(".npmrc", "cafile=~/here.pem\n");
    c = load(NPM_CONFIG_USER);
    trust = npm_config_trust(c);
    assert_true(trust.any);
    assert_null(trust.ca);
    assert_non_null(strstr(trust.cafile, "/here.pem"));
    npm_config_free(c);

    write_file(".npmrc", "cafile=~/gone.pem\nstrict-ssl=true\n");
    c = load(NPM_CONFIG_USER);
    trust = npm_config_trust(c);
    assert_false(trust.any);
    assert_null(trust.cafile);
    assert_string_equal(trust.ca, "global");
    npm_config_free(c);

    write_file(".npmrc", "cafile=~/here.pem\nca[]=\"a\\nb\"\nca[]=c\n");
    c = load(NPM_CONFIG_USER);
    trust = npm_config_trust(c);
    assert_null(trust.cafile);
    assert_string_equal(trust.ca, "a\nb\n\nc");
    npm_config_free(c);
}

static void expect_proxy(const char *address, const char *proxy)
{
    struct npm_config *c = load(NPM_CONFIG_USER);
    struct url         url;
    const char        *found;

    assert_int_equal(url_parse(address, &url, NULL), 0);
    found = npm_config_proxy(c, &url);
    if (proxy && found)
        assert_string_equal(found, proxy);
    else
        assert_true(!proxy && !found);
    npm_config_free(c);
}

static void test_proxy(void **state)
{
    static const char *const unset[] = {"https_proxy", "http_proxy", "HTTPS_PROXY", "HTTP_PROXY",
                                        "proxy"};

    (void)state;
    for (size_t i = 0; i < 5; i++)
        unsetenv(unset[i]);
    expect_proxy("https://a.test/", NULL);
    setenv("http_proxy", "http://plain.test/", 1);
    expect_proxy("https://a.test/", NULL);
    expect_proxy("http://a.test/", "http://plain.test/");
    setenv("HTTPS_PROXY", "http://tls.test/", 1);
    expect_proxy("https://a.test/", "http://tls.test/");
    write_file(".npmrc", "proxy=http://p.test/\n");
    expect_proxy("https://a.test/", "http://p.test/");
    write_file(".npmrc", "proxy=http://p.test/\nhttps-proxy=http://hp.test/\n");
    expect_proxy("http://a.test/", "http://hp.test/");
    write_file(".npmrc", "proxy=false\nhttps-proxy=null\n");
    expect_proxy("https://a.test/", "http://tls.test/");
    unsetenv("http_proxy");
    unsetenv("HTTPS_PROXY");
}

static void test_too_much(void **state)
{
    autofree char *text = calloc(1, 5000 * 4 + 1);
    struct err     e = {0};

    (void)state;
    assert_non_null(text);
    for (int i = 0; i < 5000; i++)
        memcpy(text + 4L * i, "a=b\n", 4);
    write_file(".npmrc", text);
    assert_null(npm_config_load(NPM_CONFIG_USER, &e));
    assert_int_equal(e.kind, ERR_LIMIT);
}

static int set_up(void **state)
{
    char path[128];

    (void)state;
    for (char **v = environ; *v;) {
        char name[128];
        snprintf(name, sizeof name, "%.*s", (int)strcspn(*v, "="), *v);
        if (strncasecmp(name, "npm_config_", 11) == 0 || strcmp(name, "PREFIX") == 0) {
            unsetenv(name);
            v = environ;
        } else
            v++;
    }
    unsetenv("CURL_CA_BUNDLE");
    unsetenv("SSL_CERT_FILE");
    strcpy(home, "/tmp/jerboa-npm-config-XXXXXX");
    if (!mkdtemp(home))
        return -1;
    dir = open(home, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    snprintf(path, sizeof path, "%s/global", home);
    setenv("npm_config_globalconfig", path, 1);
    setenv("HOME", home, 1);
    return mkdirat(dir, "project", 0755) < 0 || fchdir(dir) < 0 || chdir("project") < 0 ? -1 : 0;
}

static int tear_down(void **state)
{
    char command[80];

    (void)state;
    fd_close(&dir);
    snprintf(command, sizeof command, "rm -rf %s", home);
    return chdir("/") < 0 ? -1 : system(command);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_layers),
        TEST(test_list_of_scopes),
        TEST(test_files_named_by_others),
        TEST(test_scopes),
        TEST(test_no_url),
        TEST(test_credentials),
        TEST(test_variables),
        TEST(test_project_is_not_trusted),
        TEST(test_project_is_found),
        TEST(test_trust),
        TEST(test_proxy),
        TEST(test_too_much),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
