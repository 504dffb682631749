#include "jail/landlock.h"

#include <string.h>

#include "base/fd.h"
#include "confine/ruleset.h"

enum {
    TO_READ =
        LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR,
    TO_USE = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE, /* a device */
    TO_WRITE = TO_READ | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR |
               LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_DIR |
               LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_SOCK |
               LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_SYM |
               LANDLOCK_ACCESS_FS_REFER | RULESET_FS_TRUNCATE,
    ALL = TO_WRITE | LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_BLOCK,
};

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
    struct ruleset all = {.fs = ALL,
                          .scoped = RULESET_SCOPE_ABSTRACT_UNIX_SOCKET | RULESET_SCOPE_SIGNAL};
    autofd int     fd = ruleset_make(version, all, e);

    if (fd < 0)
        return -1;
    TRY(ruleset_allow_path(fd, version, "/", TO_READ, e));
    for (size_t i = 0; i < plan->n_entries; i++) {
        uint64_t access = access_to(&plan->entries[i]);
        if (access)
            TRY(ruleset_allow_path(fd, version, plan->entries[i].target, access, e));
    }
    return ruleset_enter(fd, e);
}
