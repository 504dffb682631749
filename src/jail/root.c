#include "jail/root.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/pem.h"
#include "jail/leave_out.h"
#include "jail/userns.h"

enum { CERTIFICATES_MAX = 1 << 20 }; /* all that is laid by hand lies in the root's 4 MiB */

/* ---- sources ---- */

static int set_attributes(int fd, uint64_t set, int userns_fd, struct err *e)
{
    /* Private: what the host mounts below a source later must not appear inside. */
    struct mount_attr attr = {
        .attr_set = set, .propagation = MS_PRIVATE, .userns_fd = (uint64_t)userns_fd};

    if (userns_fd >= 0)
        attr.attr_set |= MOUNT_ATTR_IDMAP;
    else
        attr.userns_fd = 0;
    if (mount_setattr(fd, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr, sizeof attr) < 0)
        return err_sys(e, "set attributes of the mount");
    return 0;
}

/* Whoever owns the directory outside is root inside. Some file systems cannot do that (overlayfs,
 * network ones): a read-only view then shows what everybody may read, a writable one is refused. */
static int map_owner(int fd, const struct plan_entry *entry, uid_t base, uint64_t set,
                     struct err *e)
{
    struct stat st;
    autofd int  userns = -1;

    if (fstat(fd, &st) < 0)
        return err_sys(e, "stat");
    userns = userns_for_mount(st.st_uid, st.st_gid, base, e);
    if (userns < 0)
        return -1;
    if (set_attributes(fd, set, userns, e) == 0)
        return 0;
    if (entry->writable)
        return err_set(e, ERR_UNAVAILABLE,
                       "its file system does not support idmapped mounts: take a directory on "
                       "ext4, xfs, btrfs or tmpfs");
    return set_attributes(fd, set, -1, e);
}

/* The user's own directories: their real path was taken when they were checked, and must still be
 * one; whoever swaps a part of it for a link in between gets nothing. */
static int open_plain(const char *path)
{
    struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_NO_SYMLINKS};

    return (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof how);
}

static int open_file(const char *path, struct err *e)
{
    struct stat st;
    autofd int  fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

    if (fd < 0 || fstat(fd, &st) < 0)
        return err_sys(e, "open");
    if (!S_ISREG(st.st_mode))
        return err_set(e, ERR_INVALID, "it is not a file");
    if (st.st_size > CERTIFICATES_MAX)
        return err_set(e, ERR_LIMIT, "it is larger than %d KiB", CERTIFICATES_MAX >> 10);
    return take_fd(&fd);
}

static int clone_source(int path_fd, const struct plan_entry *entry, const struct idrange *ids,
                        struct err *e)
{
    uint64_t set = MOUNT_ATTR_NOSUID;
    bool     mapped = entry->as_owner && ids->count > 1;
    /* One mount, one map. Where nothing is mapped, the kernel wants all or nothing: a mount of the
     * host must not show what another one covers. */
    unsigned   recursive = mapped ? 0 : AT_RECURSIVE;
    autofd int fd =
        open_tree(path_fd, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH | recursive);

    if (fd < 0)
        return err_sys(e, "open_tree");
    if (!entry->writable && !jail_leaves_out("writable", entry->target))
        set |= MOUNT_ATTR_RDONLY;
    if (entry->kind != PLAN_DEVICE && !jail_leaves_out("devices", entry->target))
        set |= MOUNT_ATTR_NODEV;
    TRY(mapped ? map_owner(fd, entry, ids->uid, set, e) : set_attributes(fd, set, -1, e));
    return take_fd(&fd);
}

static int open_mount(const struct plan_entry *entry, const struct idrange *ids, struct err *e)
{
    autofd int path =
        entry->as_owner ? open_plain(entry->source) : open(entry->source, O_PATH | O_CLOEXEC);

    return path < 0 ? err_sys(e, "open") : clone_source(path, entry, ids, e);
}

int root_open_layer(const char *path, const struct idrange *ids, struct err *e)
{
    const struct plan_entry entry = {.kind = PLAN_BIND, .target = "layer", .as_owner = true};
    autofd int              dir = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int                     fd = dir < 0 ? err_sys(e, "open") : clone_source(dir, &entry, ids, e);

    return fd < 0 ? err_wrap(e, "%.120s", path) : fd;
}

static bool has_source_outside(enum plan_kind kind)
{
    return kind == PLAN_BIND || kind == PLAN_DEVICE || kind == PLAN_CERTIFICATES;
}

int root_open_sources(struct plan *plan, const struct idrange *ids, struct err *e)
{
    for (size_t i = 0; i < plan->n_entries; i++) {
        struct plan_entry *entry = &plan->entries[i];
        if (!has_source_outside(entry->kind))
            continue;
        entry->source_fd = entry->kind == PLAN_CERTIFICATES ? open_file(entry->source, e)
                                                            : open_mount(entry, ids, e);
        if (entry->source_fd < 0)
            return err_wrap(e, "%s", entry->source);
    }
    return 0;
}

void root_close_sources(struct plan *plan)
{
    for (size_t i = 0; i < plan->n_entries; i++)
        fd_close(&plan->entries[i].source_fd);
}

/* ---- inside: entries. The working directory is the new root, so a target without its slash is a
 * path in it; nobody but us has written there yet. ---- */

static const char *relative(const char *target)
{
    return target + 1;
}

static int make_parents(const char *path)
{
    char        part[PATH_MAX];
    const char *last = strrchr(path, '/');

    snprintf(part, sizeof part, "%.*s", last ? (int)(last - path) : 0, path);
    if (!last || access(part, F_OK) == 0)
        return 0;
    for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
        snprintf(part, sizeof part, "%.*s", (int)(slash - path), path);
        if (mkdir(part, 0755) < 0 && errno != EEXIST)
            return -1;
    }
    return 0;
}

static int make_directory(const char *path, mode_t mode)
{
    if (make_parents(path) < 0 || (mkdir(path, 0755) < 0 && errno != EEXIST))
        return -1;
    return chmod(path, mode); /* mkdir's is subject to the umask */
}

static int make_mount_point(const char *path, int source_fd)
{
    struct stat st;
    autofd int  fd = -1;

    if (fstat(source_fd, &st) < 0)
        return -1;
    if (S_ISDIR(st.st_mode))
        return make_parents(path) < 0 || (mkdir(path, 0755) < 0 && errno != EEXIST) ? -1 : 0;
    if (make_parents(path) < 0)
        return -1;
    fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    return fd < 0 ? -1 : 0;
}

static int attach(int mount_fd, const char *path)
{
    return move_mount(mount_fd, "", AT_FDCWD, path, MOVE_MOUNT_F_EMPTY_PATH);
}

static int lay_source(struct plan_entry *entry)
{
    const char *path = relative(entry->target);

    return make_mount_point(path, entry->source_fd) < 0 ? -1 : attach(entry->source_fd, path);
}

static int lay_tmpfs(struct plan_entry *entry)
{
    char      options[96];
    long long bytes = jail_leaves_out("limit", "bytes") ? 0 : entry->bytes; /* 0: without limit */
    long long inodes = jail_leaves_out("limit", "inodes") ? 0 : entry->inodes;

    snprintf(options, sizeof options, "mode=0755,size=%lld,nr_inodes=%lld", bytes, inodes);
    if (make_directory(relative(entry->target), 0755) < 0)
        return -1;
    return mount("tmpfs", relative(entry->target), "tmpfs", MS_NOSUID | MS_NODEV, options);
}

static int lay_proc(struct plan_entry *entry)
{
    /* Whom it may not trace a process does not see at all: init. */
    const char *options = jail_leaves_out("hidepid", entry->target) ? NULL : "hidepid=2";

    if (make_directory(relative(entry->target), 0755) < 0)
        return -1;
    return mount("proc", relative(entry->target), "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC,
                 options);
}

static int lay_dir(struct plan_entry *entry)
{
    return make_directory(relative(entry->target), (mode_t)entry->mode);
}

static int lay_file(struct plan_entry *entry)
{
    if (make_parents(relative(entry->target)) < 0)
        return -1;
    return file_write_text(AT_FDCWD, relative(entry->target), entry->text, NULL);
}

/* Only these: the user may keep the key in the same file. One write: there are some hundred. */
static int copy_certificates(int fd, const char *text)
{
    autobuf struct buf b;
    size_t             size;

    buf_init(&b, 2UL * CERTIFICATES_MAX); /* the line breaks that may be missing */
    for (; (text = pem_next_certificate(text, &size)); text += size)
        if (buf_add(&b, text, size) < 0 || buf_add(&b, "\n", 1) < 0)
            return -1;
    return fd_write_all(fd, b.data, b.size);
}

static int lay_certificates(struct plan_entry *entry)
{
    const char    *path = relative(entry->target);
    autofree char *text = NULL;
    autofd int     fd = -1;

    errno = EFBIG; /* if it has grown since it was opened */
    if (fd_read_text(entry->source_fd, CERTIFICATES_MAX, &text, NULL, NULL) < 0 ||
        make_parents(path) < 0)
        return -1;
    fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    return fd < 0 ? -1 : copy_certificates(fd, text);
}

static int lay_link(struct plan_entry *entry)
{
    if (make_parents(relative(entry->target)) < 0)
        return -1;
    return symlink(entry->text, relative(entry->target));
}

static int lay_inner(struct plan_entry *entry)
{
    if (make_directory(relative(entry->target), 0755) < 0)
        return -1;
    return mount(relative(entry->source), relative(entry->target), NULL, MS_BIND, NULL);
}

static int lay_readonly(struct plan_entry *entry)
{
    autofd int fd = open_tree(AT_FDCWD, relative(entry->target),
                              OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);

    if (fd < 0)
        return errno == ENOENT ? 0 : -1;
    if (set_attributes(fd, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, -1, NULL) < 0)
        return -1;
    return attach(fd, relative(entry->target));
}

static int mount_mask(const char *path)
{
    return mount("tmpfs", path, "tmpfs", MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC,
                 "size=0,nr_inodes=1,mode=0000");
}

static int lay_mask(struct plan_entry *entry)
{
    struct stat st;
    const char *path = relative(entry->target);

    if (stat(path, &st) < 0)
        return errno == ENOENT ? 0 : -1;
    if (S_ISDIR(st.st_mode))
        return mount_mask(path);
    return mount("dev/null", path, NULL, MS_BIND, NULL);
}

/* The descriptor is the only way left to what is covered; step_hand_out gives it to the jail. */
static int lay_aside(struct plan_entry *entry)
{
    const char *path = relative(entry->target);

    entry->source_fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return entry->source_fd < 0 ? -1 : mount_mask(path);
}

static int (*const lay[])(struct plan_entry *entry) = {
    [PLAN_BIND] = lay_source,       [PLAN_DEVICE] = lay_source,
    [PLAN_TMPFS] = lay_tmpfs,       [PLAN_PROC] = lay_proc,
    [PLAN_DIR] = lay_dir,           [PLAN_FILE] = lay_file,
    [PLAN_LINK] = lay_link,         [PLAN_INNER] = lay_inner,
    [PLAN_ASIDE] = lay_aside,       [PLAN_MASK] = lay_mask,
    [PLAN_READONLY] = lay_readonly, [PLAN_CERTIFICATES] = lay_certificates,
};

/* A place that exists on every Linux, to stand the new root on until it is entered. */
static const char stand[] = "/tmp";

int root_build(struct plan *plan, struct err *e)
{
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return err_sys(e, "make mounts private");
    if (mount("tmpfs", stand, "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755,size=4m,nr_inodes=4096") <
        0)
        return err_sys(e, "mount a fresh root");
    if (chdir(stand) < 0)
        return err_sys(e, "chdir %s", stand);
    umask(022);
    for (size_t i = 0; i < plan->n_entries; i++) {
        struct plan_entry *entry = &plan->entries[i];
        const char        *kind = plan_kind_name(entry->kind);
        if (!jail_leaves_out(kind, entry->target) && lay[entry->kind](entry) < 0)
            return err_sys(e, "%s %s", kind, entry->target);
    }
    return 0;
}

int root_enter(struct err *e)
{
    struct mount_attr sealed = {.attr_set = MOUNT_ATTR_RDONLY};

    if (syscall(SYS_pivot_root, ".", ".") < 0)
        return err_sys(e, "pivot_root");
    /* The old root, stacked on top of the new one. */
    if (!jail_leaves_out("old", "root") && umount2(".", MNT_DETACH) < 0)
        return err_sys(e, "take the host's mounts away");
    if (chdir("/") < 0 || mount_setattr(AT_FDCWD, "/", 0, &sealed, sizeof sealed) < 0)
        return err_sys(e, "seal the root");
    return 0;
}
