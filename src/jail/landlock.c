#include "jail/landlock.h"

#include <fcntl.h>
#include <linux/landlock.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"

/* In order of appearance: versions are upwards compatible. Before the second one no file could be
 * moved between directories at all, which npm does. */
enum { VERSION_REFER = 2, VERSION_TRUNCATE = 3, VERSION_SCOPE = 6 };

/* Newer than some headers that we are built with. */
enum { ACCESS_TRUNCATE = 1 << 14, SCOPE_ABSTRACT_UNIX_SOCKET = 1 << 0, SCOPE_SIGNAL = 1 << 1 };

struct ruleset { /* of the newest version; an older kernel wants what it does not know to be zero */
    uint64_t access_fs, access_net, scoped;
};

enum {
    TO_READ =
        LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR,
    TO_USE = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE, /* a device */
    TO_WRITE = TO_READ | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR |
               LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_DIR |
               LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_SOCK |
               LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_SYM |
               LANDLOCK_ACCESS_FS_REFER | ACCESS_TRUNCATE,
    ALL = TO_WRITE | LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_BLOCK,
};

int landlock_version(struct err *e)
{
    int version =
        (int)syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);

    if (version < 0)
        return err_sys(e, "Landlock");
    if (version < VERSION_REFER)
        return err_set(e, ERR_UNAVAILABLE, "Landlock of version %d is too old", version);
    return version;
}

static int allow(int ruleset_fd, const char *path, uint64_t access, struct err *e)
{
    autofd int                        fd = open(path, O_PATH | O_CLOEXEC);
    struct landlock_path_beneath_attr rule = {.allowed_access = access, .parent_fd = fd};

    if (fd < 0 ||
        syscall(SYS_landlock_add_rule, ruleset_fd, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) < 0)
        return err_sys(e, "rule for %s", path);
    return 0;
}

static uint64_t access_to(const struct plan_entry *entry)
{
    if (entry->kind == PLAN_INNER || (entry->kind == PLAN_BIND && entry->writable))
        return TO_WRITE;
    /* Who could write to zero could map it shared: memory that nobody sees (privilege.h). */
    if (strcmp(entry->target, "/dev/zero") == 0)
        return 0;
    return entry->kind == PLAN_DEVICE ? TO_USE : 0;
}

int landlock_restrict(int version, const struct plan *plan, struct err *e)
{
    uint64_t       known = version < VERSION_TRUNCATE ? ~(uint64_t)ACCESS_TRUNCATE : ~(uint64_t)0;
    struct ruleset all = {.access_fs = ALL & known};
    autofd int     fd = -1;

    if (version >= VERSION_SCOPE)
        all.scoped = SCOPE_ABSTRACT_UNIX_SOCKET | SCOPE_SIGNAL;
    fd = (int)syscall(SYS_landlock_create_ruleset, &all, sizeof all, 0);
    if (fd < 0)
        return err_sys(e, "make a ruleset");
    TRY(allow(fd, "/", TO_READ, e));
    for (size_t i = 0; i < plan->n_entries; i++) {
        uint64_t access = access_to(&plan->entries[i]) & known;
        if (access)
            TRY(allow(fd, plan->entries[i].target, access, e));
    }
    if (syscall(SYS_landlock_restrict_self, fd, 0) < 0)
        return err_sys(e, "restrict");
    return 0;
}
