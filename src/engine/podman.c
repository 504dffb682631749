#include "engine/podman.h"

#include <stdlib.h>
#include <unistd.h>

#include "engine/client.h"
#include "engine/docker.h"

/* The containers of an ordinary user stand in a user namespace in which he is root. */
static bool is_rootless(void)
{
    return geteuid() != 0;
}

static const struct engine_gap *gaps(void)
{
    static const struct engine_gap of_root[] = {
        {"user-namespace", "containers of root's podman have none"},
        {"uid-range", "containers have FILES_DIR's owner's uid or yours"},
        {"landlock", "containers have none"},
        {0},
    };
    static const struct engine_gap of_user[] = {
        {"cgroup", "for ordinary users podman limits nothing with cgroup v1"},
        {"uid-range", "root inside is who runs Jerboa"},
        {"landlock", "containers have none"},
        {0},
    };
    bool is_v2 = access("/sys/fs/cgroup/cgroup.controllers", F_OK) == 0;

    return !is_rootless() ? of_root : is_v2 ? &of_user[1] : of_user;
}

/* Where cgroups of both versions are mounted, crun refuses to work, and podman takes it before
 * runc. */
static const char *choose_runtime(void)
{
    return access("/sys/fs/cgroup/unified/cgroup.controllers", F_OK) == 0 ? "runc" : NULL;
}

/* A service takes neither a runtime, nor a volume without what the image has there, nor the table
 * of system calls by our descriptor. */
static bool is_led_away(void)
{
    const char *host = getenv("CONTAINER_HOST"), *connection = getenv("CONTAINER_CONNECTION");

    return (host && *host) || (connection && *connection);
}

int podman_check(bool is_remote, struct err *e)
{
    if (!is_remote && !is_led_away())
        return 0;
    return err_set(e, ERR_UNAVAILABLE,
                   "podman is asked on this machine alone: leave out --remote, and unset "
                   "CONTAINER_HOST and CONTAINER_CONNECTION, which lead it to a service");
}

/* What it would do unless told not to; the first only in a network of its own. */
static const char *const words[] = {
    "--sysctl=net.ipv4.ip_unprivileged_port_start=0", /* code, not root, could not have port 80 */
    "--http-proxy=false", /* code would see the proxies of who runs Jerboa, passwords and all */
    "--read-only-tmpfs=false", /* /run would be writable, without a size */
    NULL,
};

/* Without a network it makes no resolv.conf and takes no word for one: then queries go to
 * 127.0.0.1, and so to init, too. */
static json_t *plan(const struct engine_spec *spec, struct err *e)
{
    struct dialect d = {
        .words = spec->host_network ? &words[1] : words,
        .tmpfs = ",notmpcopyup", /* what the image has there */
        .runtime = choose_runtime(),
        .directory = "/proc", /* conmon, too, which leaves a file `oom` where it may write */
        .is_rootless = is_rootless(),
    };

    return podman_check(spec->remote, e) < 0 ? NULL : docker_plan(spec, &d, e);
}

const struct engine podman = {
    "podman", plan, docker_environment, client_start, client_sweep, DOCKER_END_MS, 28 << 20, gaps,
};
