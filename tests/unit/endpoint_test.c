#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/sha256.h"
#include "base/str.h"
#include "base/tree.h"
#include "engine/endpoint.h"

static char home[] = "/tmp/jerboa-endpoint-XXXXXX";

static void urls(void **state)
{
    (void)state;
    assert_true(endpoint_url_is_remote("tcp://127.0.0.1:2375"));
    assert_true(endpoint_url_is_remote("ssh://me@there"));
    assert_true(endpoint_url_is_remote("https://there"));
    assert_false(endpoint_url_is_remote("unix:///var/run/docker.sock"));
    assert_false(endpoint_url_is_remote("fd://"));
    assert_false(endpoint_url_is_remote(""));
    assert_true(endpoint_url_is_remote("there:2375"));
    assert_true(endpoint_url_is_remote("npipe:////./pipe/docker"));
}

static void a_daemon_has_a_name_of_its_own(void **state)
{
    (void)state;
    setenv("DOCKER_HOST", "tcp://a:1", 1);
    struct endpoint_name a = endpoint_name("docker"), of_podman = endpoint_name("podman");
    assert_string_equal(a.text, endpoint_name("docker").text);
    assert_memory_equal(a.text, "docker-", strlen("docker-"));
    assert_null(strchr(a.text, '/'));
    assert_memory_equal(of_podman.text, "podman-", strlen("podman-"));
    setenv("DOCKER_HOST", "tcp://b:1", 1);
    assert_string_not_equal(a.text, endpoint_name("docker").text);
    assert_string_equal(of_podman.text, endpoint_name("podman").text);
    unsetenv("DOCKER_HOST");
}

static void write_file(const char *name, const char *text)
{
    autofree char *path = str_format("%s/.docker/%s", home, name);
    struct err     e = {0};

    for (char *slash = path + strlen(home) + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        mkdir(path, 0755);
        *slash = '/';
    }
    assert_return_code(file_write_text(AT_FDCWD, path, text, &e), e.sys);
}

static void write_context(const char *name, const char *text)
{
    char           hex[SHA256_HEX_SIZE];
    struct sha256  hash;
    autofree char *file = NULL;

    sha256_init(&hash);
    sha256_add(&hash, name, strlen(name));
    sha256_hex(&hash, hex);
    file = str_format("contexts/meta/%s/meta.json", hex);
    write_file(file, text);
}

/* What is missing or makes no sense is what the client would have by itself: this machine. */
static void contexts(void **state)
{
    (void)state;
    assert_false(endpoint_is_remote("docker"));
    write_file("config.json", "{");
    assert_false(endpoint_is_remote("docker"));
    write_file("config.json", "{\"currentContext\": \"far\"}");
    assert_false(endpoint_is_remote("docker"));
    write_context("far", "{\"Endpoints\": {\"docker\": 1}}");
    assert_false(endpoint_is_remote("docker"));
    write_context("far",
                  "{\"Name\": \"far\", \"Endpoints\": {\"docker\": {\"Host\": \"ssh://there\"}}}");
    assert_true(endpoint_is_remote("docker"));
    assert_false(endpoint_is_remote("podman"));
    write_context("near", "{\"Endpoints\": {\"docker\": {\"Host\": \"unix:///x\"}}}");
    setenv("DOCKER_CONTEXT", "near", 1);
    assert_false(endpoint_is_remote("docker"));
    setenv("DOCKER_CONTEXT", "default", 1);
    assert_false(endpoint_is_remote("docker"));
    setenv("DOCKER_HOST", "tcp://there", 1);
    assert_true(endpoint_is_remote("docker"));
    setenv("CONTAINER_HOST", "ssh://there", 1);
    assert_true(endpoint_is_remote("podman"));
}

static int make_home(void **state)
{
    (void)state;
    unsetenv("DOCKER_HOST");
    unsetenv("DOCKER_CONTEXT");
    unsetenv("DOCKER_CONFIG");
    unsetenv("CONTAINER_HOST");
    return mkdtemp(home) && setenv("HOME", home, 1) == 0 ? 0 : -1;
}

static int remove_home(void **state)
{
    autofd int fd = open(home, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    (void)state;
    tree_remove(fd);
    return rmdir(home);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(urls),
                                       cmocka_unit_test(a_daemon_has_a_name_of_its_own),
                                       cmocka_unit_test(contexts)};

    return cmocka_run_group_tests(tests, make_home, remove_home);
}
