#include "jail/plan.h"

#include <arpa/inet.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/fields.h"

enum { PATH_BYTES = 4095, TEXT_BYTES = 1 << 18 };

/* A plan as JSON has it: its lists still lists. */
struct raw_plan {
    struct plan   plan;
    const json_t *entries, *host_loopback;
};

#define AT(member) offsetof(struct raw_plan, plan.member)
static const struct field plan_fields[] = {
    {"version", FIELD_STRING, AT(version), false, 1, 64},
    {"init", FIELD_BYTES, AT(init), true, 2, PATH_BYTES},
    {"hostNetwork", FIELD_BOOL, AT(host_network), false, 0, 0},
    {"egress", FIELD_BOOL, AT(egress), false, 0, 0},
    {"hostLoopback", FIELD_LIST, offsetof(struct raw_plan, host_loopback), false, 0,
     REDIRECT_PLACES_MAX},
    {"strict", FIELD_BOOL, AT(strict), false, 0, 0},
    {"memoryBytes", FIELD_INT, AT(memory_bytes), true, 1, INT64_MAX},
    {"initMemoryBytes", FIELD_INT, AT(init_memory_bytes), true, 1, INT64_MAX},
    {"cpusMilli", FIELD_INT, AT(cpus_milli), true, 10, 1024000},
    {"pids", FIELD_INT, AT(pids), true, 1, 1 << 22},
    {"fds", FIELD_INT, AT(fds), true, 16, 1 << 20},
    {"entries", FIELD_LIST, offsetof(struct raw_plan, entries), true, 1, PLAN_ENTRIES_MAX},
    {0},
};
#undef AT

/* An entry as JSON has it: its kind still a word. */
struct raw_entry {
    const char       *kind;
    struct plan_entry entry;
};

#define AT(member) offsetof(struct raw_entry, entry.member)
static const struct field entry_fields[] = {
    {"kind", FIELD_STRING, offsetof(struct raw_entry, kind), true, 1, 40},
    {"target", FIELD_BYTES, AT(target), true, 2, PATH_BYTES},
    {"source", FIELD_BYTES, AT(source), false, 1, PATH_BYTES},
    {"text", FIELD_BYTES, AT(text), false, 0, TEXT_BYTES},
    {"writable", FIELD_BOOL, AT(writable), false, 0, 0},
    {"asOwner", FIELD_BOOL, AT(as_owner), false, 0, 0},
    {"bytes", FIELD_INT, AT(bytes), false, 0, INT64_MAX},
    {"inodes", FIELD_INT, AT(inodes), false, 0, INT64_MAX},
    {"mode", FIELD_INT, AT(mode), false, 0, 01777},
    {0},
};
#undef AT

struct raw_place {
    const char *address;
    int64_t     port;
};

static const struct field place_fields[] = {
    {"address", FIELD_STRING, offsetof(struct raw_place, address), true, 1, INET6_ADDRSTRLEN},
    {"port", FIELD_INT, offsetof(struct raw_place, port), true, 1, UINT16_MAX},
    {0},
};

enum need { NEEDS_SOURCE = 1, NEEDS_TEXT = 2, NEEDS_BYTES = 4 };

static const struct {
    const char *name;
    unsigned    needs;
} kinds[] = {
    [PLAN_BIND] = {"bind", NEEDS_SOURCE},
    [PLAN_DEVICE] = {"device", NEEDS_SOURCE},
    [PLAN_TMPFS] = {"tmpfs", NEEDS_BYTES},
    [PLAN_PROC] = {"proc", 0},
    [PLAN_DIR] = {"dir", 0},
    [PLAN_FILE] = {"file", NEEDS_TEXT},
    [PLAN_CERTIFICATES] = {"certificates", NEEDS_SOURCE},
    [PLAN_LINK] = {"link", NEEDS_TEXT},
    [PLAN_INNER] = {"inner", NEEDS_SOURCE},
    [PLAN_ASIDE] = {"aside", 0},
    [PLAN_READONLY] = {"readonly", 0},
    [PLAN_MASK] = {"mask", 0},
};

const char *plan_kind_name(enum plan_kind kind)
{
    return kinds[kind].name;
}

static int find_kind(const char *name, const char *path, enum plan_kind *ret, struct err *e)
{
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (strcmp(kinds[i].name, name) == 0) {
            *ret = (enum plan_kind)i;
            return 0;
        }
    return err_set(e, ERR_INVALID, "%s.kind '%.40s' is unknown", path, name);
}

static int check_entry(const struct plan_entry *entry, const char *path, struct err *e)
{
    unsigned has = (entry->source ? NEEDS_SOURCE : 0) | (entry->text ? NEEDS_TEXT : 0) |
                   (entry->bytes > 0 ? NEEDS_BYTES : 0);

    if (has != kinds[entry->kind].needs)
        return err_set(e, ERR_INVALID, "%s lacks or has too much for kind '%s'", path,
                       kinds[entry->kind].name);
    if (entry->target[0] != '/' || strstr(entry->target, ".."))
        return err_set(e, ERR_INVALID, "%s.target must be absolute and plain", path);
    if (entry->source && entry->source[0] != '/')
        return err_set(e, ERR_INVALID, "%s.source must be absolute", path);
    return 0;
}

static int decode_entry(const json_t *object, size_t index, struct plan_entry *ret, struct err *e)
{
    struct raw_entry raw = {.entry = {.mode = 0755, .source_fd = -1}};
    char             path[40];

    snprintf(path, sizeof path, "plan.entries[%zu]", index);
    TRY(fields_decode(entry_fields, object, path, &raw, e));
    TRY(find_kind(raw.kind, path, &raw.entry.kind, e));
    TRY(check_entry(&raw.entry, path, e));
    *ret = raw.entry;
    return 0;
}

/* Loopback only: everything else leaves anyway. */
static int decode_place(const json_t *object, size_t index, struct redirect_place *ret,
                        struct err *e)
{
    struct raw_place      raw;
    struct redirect_place place = {0};
    char                  path[40];

    snprintf(path, sizeof path, "plan.hostLoopback[%zu]", index);
    TRY(fields_decode(place_fields, object, path, &raw, e));
    place.port = (uint16_t)raw.port;
    if (inet_pton(AF_INET, raw.address, place.address) == 1 && place.address[0] == 127)
        place.family = AF_INET;
    else if (inet_pton(AF_INET6, raw.address, place.address) == 1 &&
             memcmp(place.address, &in6addr_loopback, sizeof place.address) == 0)
        place.family = AF_INET6;
    else
        return err_set(e, ERR_INVALID, "%s.address is not on the loopback", path);
    *ret = place;
    return 0;
}

int plan_decode(const json_t *document, struct plan *ret, struct err *e)
{
    struct raw_plan raw = {0};
    size_t          i;
    json_t         *object;

    TRY(fields_decode(plan_fields, document, "plan", &raw, e));
    if (raw.plan.egress && raw.plan.host_network)
        return err_set(e, ERR_INVALID, "plan.egress and plan.hostNetwork exclude each other");
    json_array_foreach ((json_t *)raw.host_loopback, i, object)
        TRY(decode_place(object, i, &raw.plan.host_loopback[raw.plan.n_host_loopback++], e));
    json_array_foreach ((json_t *)raw.entries, i, object)
        TRY(decode_entry(object, i, &raw.plan.entries[raw.plan.n_entries++], e));
    *ret = raw.plan;
    return 0;
}
