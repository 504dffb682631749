#include "base/cgroup_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"

int cgroup_file_put(int dir, const char *name, const char *text, struct err *e)
{
    autofd int fd = openat(dir, name, O_WRONLY | O_CLOEXEC);

    if (fd < 0 || write(fd, text, strlen(text)) < 0)
        return err_sys(e, "cgroup file %s", name);
    return 0;
}

int cgroup_file_get(int dir, const char *name, const char *word, uint64_t *ret)
{
    autofree char *text = NULL;
    const char    *p;

    if (file_read_text(dir, name, 1 << 16, &text, NULL) < 0)
        return -1;
    for (p = text; word && (p = strstr(p, word)); p++)
        if ((p == text || p[-1] == '\n') && p[strlen(word)] == ' ')
            break;
    if (!p)
        return -1;
    *ret = strtoull(word ? p + strlen(word) : p, NULL, 10);
    return 0;
}

int cgroup_file_no_controller(struct err *e, const char *controller, const char *where)
{
    err_set(e, ERR_UNAVAILABLE, "%.120s has the cgroup controller '%s'", where, controller);
    if (e)
        e->sys = ENODEV;
    return -1;
}

bool cgroup_file_has_word(const char *text, const char *word, const char *between)
{
    size_t n = strlen(word);

    for (const char *p = text; (p = strstr(p, word)); p += n)
        if ((p == text || strchr(between, p[-1])) && (p[n] == '\0' || strchr(between, p[n])))
            return true;
    return false;
}

/* ---- where cgroups are ---- */

/* One line: `ID parent device root mountpoint options … - type source superoptions`. */
static bool parse_mount(char *line, const char *type, struct cgroup_mount *ret)
{
    char *rest = strstr(line, " - "), *fields[5], *save = NULL;
    int   n = 0;

    if (!rest)
        return false;
    *rest = '\0';
    rest += 3;
    size_t type_size = strcspn(rest, " ");
    char  *options = strrchr(rest, ' ');
    if (strlen(type) != type_size || strncmp(rest, type, type_size) != 0 || !options)
        return false;
    for (char *f = strtok_r(line, " ", &save); f && n < 5; f = strtok_r(NULL, " ", &save))
        fields[n++] = f;
    if (n < 5)
        return false;
    *ret = (struct cgroup_mount){strdup(fields[3]), strdup(fields[4]), strdup(options + 1)};
    if (!ret->root || !ret->point || !ret->options)
        abort();
    return true;
}

bool cgroup_file_mount(const char *mountinfo, const char *type, int n, struct cgroup_mount *ret)
{
    autofree char *copy = strdup(mountinfo);
    char          *save = NULL;

    if (!copy)
        abort();
    for (char *line = strtok_r(copy, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        if (!parse_mount(line, type, ret))
            continue;
        if (n-- == 0)
            return true;
        cgroup_mount_done(ret);
    }
    return false;
}

void cgroup_mount_done(struct cgroup_mount *m)
{
    free(m->root);
    free(m->point);
    free(m->options);
}

/* Lines `ID:controllers:path`. */
char *cgroup_file_own(const char *cgroups, const char *controller)
{
    autofree char *copy = strdup(cgroups);
    char          *save = NULL;

    if (!copy)
        abort();
    for (char *line = strtok_r(copy, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        char *names = strchr(line, ':'), *path = names ? strchr(names + 1, ':') : NULL;
        if (!path)
            continue;
        *path++ = '\0';
        if (*controller ? cgroup_file_has_word(names + 1, controller, ",") : !names[1])
            return strdup(path);
    }
    return NULL;
}

int cgroup_file_locate(const struct cgroup_mount *m, const char *own, char *ret, size_t size)
{
    /* In a container the mount shows a subtree: its root is a prefix of our path. */
    size_t n = strcmp(m->root, "/") == 0 ? 0 : strlen(m->root);

    if (strncmp(own, m->root, n) == 0 && (own[n] == '/' || own[n] == '\0'))
        own += n;
    int length = snprintf(ret, size, "%s%s", m->point, strcmp(own, "/") == 0 ? "" : own);
    return length < 0 || (size_t)length >= size ? -1 : 0;
}
