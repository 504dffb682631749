/* fuzz-plan - what the jail does with the bytes of a PLAN frame before it acts on any of them. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "jail/plan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int truth)
{
    if (!truth)
        abort();
}

static void check(const struct plan *plan)
{
    require(plan->n_entries >= 1 && plan->n_entries <= PLAN_ENTRIES_MAX);
    require(plan->memory_bytes > 0 && plan->init_memory_bytes > 0 && plan->pids > 0);
    for (size_t i = 0; i < plan->n_entries; i++) {
        const struct plan_entry *entry = &plan->entries[i];

        require(plan_kind_name(entry->kind) != NULL);
        require(entry->target[0] == '/' && entry->target[1] && !strstr(entry->target, ".."));
        require(!entry->source || entry->source[0] == '/');
        require(entry->source_fd == -1);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct plan      plan;
    struct err       e = {0};
    autojson json_t *document = json_parse((const char *)data, size, &e);

    if (document && plan_decode(document, &plan, &e) == 0)
        check(&plan);
    else
        require(e.kind == ERR_INVALID && e.msg[0]);
    return 0;
}
