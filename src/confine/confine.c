#include "confine/confine.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "confine/leave_out.h"
#include "confine/ruleset.h"

/* A sanitizer reads /proc, traces itself and maps terabytes: such builds have only what it can live
 * with. They are for finding bugs. */
#if defined(__SANITIZE_ADDRESS__)
#define IS_SANITIZED true
#else
#define IS_SANITIZED false
#endif

#define ADDRESS_SPACE_BYTES (4LL << 30)

enum {
    FILE_RIGHTS = LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_WRITE_FILE |
                  LANDLOCK_ACCESS_FS_READ_FILE | RULESET_FS_TRUNCATE,
    TO_READ = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR,
    /* A directory has to be opened before anything can be made in it. */
    TO_FILL = LANDLOCK_ACCESS_FS_READ_DIR | LANDLOCK_ACCESS_FS_WRITE_FILE | RULESET_FS_TRUNCATE |
              LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG,
    TO_WRITE = TO_READ | TO_FILL | LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE |
               LANDLOCK_ACCESS_FS_MAKE_SYM | LANDLOCK_ACCESS_FS_REFER,
    ALL = TO_WRITE | LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_MAKE_CHAR |
          LANDLOCK_ACCESS_FS_MAKE_BLOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO |
          LANDLOCK_ACCESS_FS_MAKE_SOCK,
};

static const uint64_t rights[] = {
    [CONFINE_READ] = TO_READ, [CONFINE_WRITE] = TO_WRITE, [CONFINE_FILL] = TO_FILL};

/* ---- the walls ---- */

/* Root may keep what opens the store when another user owns it: JERBOA_HOME, HOME under sudo. */
static int drop_capabilities(const struct confine *c, struct err *e)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct   now[2] = {0}, kept[2] = {0};
    const uint32_t files = c->of_others ? 1U << CAP_DAC_OVERRIDE | 1U << CAP_FOWNER : 0;

    if (syscall(SYS_capget, &header, now) < 0)
        return err_sys(e, "capget");
    kept[0].effective = now[0].effective & files;
    kept[0].permitted = now[0].permitted & files;
    return syscall(SYS_capset, &header, kept) < 0 ? err_sys(e, "capset") : 0;
}

static int forbid_new(const struct confine *c, struct err *e)
{
    (void)c;
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ? err_sys(e, "no_new_privs") : 0;
}

static int hide(const struct confine *c, struct err *e)
{
    return c->is_hidden && prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 ? err_sys(e, "not dumpable") : 0;
}

static int limit(__rlimit_resource_t which, int64_t most, struct err *e)
{
    struct rlimit now;

    if (getrlimit(which, &now) < 0)
        return err_sys(e, "getrlimit %d", (int)which);
    if (now.rlim_max > (rlim_t)most)
        now.rlim_max = (rlim_t)most;
    now.rlim_cur = now.rlim_max;
    return setrlimit(which, &now) < 0 ? err_sys(e, "setrlimit %d", (int)which) : 0;
}

static int limit_resources(const struct confine *c, struct err *e)
{
    TRY(limit(RLIMIT_CORE, 0, e));
    TRY(limit(RLIMIT_FSIZE, c->file_bytes, e));
    return IS_SANITIZED ? 0 : limit(RLIMIT_AS, ADDRESS_SPACE_BYTES, e);
}

static int allow_place(int ruleset_fd, int version, const struct confine_place *p, struct err *e)
{
    autofd int  own = p->path ? open(p->path, O_PATH | O_CLOEXEC) : -1;
    int         fd = p->path ? own : p->fd;
    uint64_t    access = rights[p->access];
    struct stat st;

    if (p->path && own < 0)
        return 0;
    if (fstat(fd, &st) < 0)
        return err_sys(e, "%s", p->path ? p->path : "a directory of the store");
    return ruleset_allow(ruleset_fd, version, fd,
                         S_ISDIR(st.st_mode) ? access : access & FILE_RIGHTS, e);
}

static int lock_files(const struct confine *c, struct err *e)
{
    const struct ruleset all = {.fs = ALL,
                                .net = RULESET_NET_BIND_TCP |
                                       (c->connects ? 0 : RULESET_NET_CONNECT_TCP),
                                .scoped = RULESET_SCOPE_ABSTRACT_UNIX_SOCKET |
                                          (c->ends_children ? 0 : RULESET_SCOPE_SIGNAL)};
    int                  version = ruleset_version(NULL);
    autofd int           fd = -1;

    if (version < 0) /* the one wall that may be missing: see the head */
        return 0;
    fd = ruleset_make(version, all, e);
    if (fd < 0)
        return -1;
    for (size_t i = 0; i < c->n_places; i++)
        TRY(allow_place(fd, version, &c->places[i], e));
    return ruleset_enter(fd, e);
}

static int filter_calls(const struct confine *c, struct err *e)
{
    return calls_allow(c->calls, c->n_calls, e);
}

static const struct {
    const char *name;
    int (*build)(const struct confine *c, struct err *e);
    bool not_sanitized;
} walls[] = {
    {"capabilities", drop_capabilities, false}, /* first: the others need none */
    {"no new privileges", forbid_new, false},   /* before the two that ask for it */
    {"hidden", hide, true},
    {"resources", limit_resources, false},
    {"landlock", lock_files, true},
    {"filter", filter_calls, true}, /* last: it forbids the calls of the others */
};

int confine_enter(const struct confine *c, struct err *e)
{
    for (size_t i = 0; i < sizeof walls / sizeof walls[0]; i++) {
        if ((IS_SANITIZED && walls[i].not_sanitized) || confine_leaves_out(c->role, walls[i].name))
            continue;
        if (walls[i].build(c, e) < 0)
            return err_wrap(e, "the wall '%s' around the %s", walls[i].name, c->role);
    }
    confine_taken_over(c->role);
    return 0;
}

/* ---- the environment ---- */

static bool is_kept(const char *variable, const char *const *keep)
{
    for (; *keep; keep++) {
        size_t n = strlen(*keep);
        if (strncmp(variable, *keep, n) == 0 && variable[n] == '=')
            return true;
    }
    return false;
}

void confine_forget_environment(const char *role, const char *const *keep)
{
    char **to = environ;

    if (confine_leaves_out(role, "environment"))
        return;
    for (char **v = environ; *v; v++)
        if (is_kept(*v, keep))
            *to++ = *v;
        else
            explicit_bzero(*v, strlen(*v));
    *to = NULL;
}
