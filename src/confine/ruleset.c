#include "confine/ruleset.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"

/* Before the second version no file could be moved between directories at all, which npm does. */
enum { VERSION_REFER = 2, VERSION_TRUNCATE = 3, VERSION_NET = 4, VERSION_SCOPE = 6 };

int ruleset_version(struct err *e)
{
    int version =
        (int)syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);

    if (version < 0)
        return err_sys(e, "Landlock");
    if (version < VERSION_REFER)
        return err_set(e, ERR_UNAVAILABLE, "Landlock of version %d is too old", version);
    return version;
}

static uint64_t known_fs(int version, uint64_t fs)
{
    return version < VERSION_TRUNCATE ? fs & ~(uint64_t)RULESET_FS_TRUNCATE : fs;
}

int ruleset_make(int version, struct ruleset handled, struct err *e)
{
    /* An older kernel wants what it does not know to be zero. */
    struct ruleset known = {.fs = known_fs(version, handled.fs),
                            .net = version < VERSION_NET ? 0 : handled.net,
                            .scoped = version < VERSION_SCOPE ? 0 : handled.scoped};
    int            fd = (int)syscall(SYS_landlock_create_ruleset, &known, sizeof known, 0);

    return fd < 0 ? err_sys(e, "make a ruleset") : fd;
}

int ruleset_allow(int ruleset_fd, int version, int place_fd, uint64_t fs, struct err *e)
{
    struct landlock_path_beneath_attr rule = {.allowed_access = known_fs(version, fs),
                                              .parent_fd = place_fd};

    if (syscall(SYS_landlock_add_rule, ruleset_fd, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) < 0)
        return err_sys(e, "rule of Landlock");
    return 0;
}

int ruleset_allow_path(int ruleset_fd, int version, const char *path, uint64_t fs, struct err *e)
{
    autofd int fd = open(path, O_PATH | O_CLOEXEC);

    if (fd < 0)
        return err_sys(e, "rule for %s", path);
    return ruleset_allow(ruleset_fd, version, fd, fs, e) < 0 ? err_wrap(e, "%s", path) : 0;
}

int ruleset_enter(int ruleset_fd, struct err *e)
{
    if (syscall(SYS_landlock_restrict_self, ruleset_fd, 0) < 0)
        return err_sys(e, "restrict");
    return 0;
}
