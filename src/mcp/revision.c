#include "mcp/revision.h"

#include <stddef.h>
#include <string.h>

#include "mcp/rpc.h"

/* What came with a revision and stayed. */
/* clang-format off */
#define SINCE_2025_03 .has_http = true, .has_audio = true, .has_annotations = true, \
                      .has_completions = true, .has_progress_text = true
#define SINCE_2025_06 SINCE_2025_03, .has_structured = true, .has_links = true, .has_titles = true
#define SINCE_2025_11 SINCE_2025_06, .has_icons = true

const struct mcp_revision mcp_revisions[] = {
    {"2026-07-28", SINCE_2025_11, .stateless = true, .not_found = RPC_INVALID_PARAMS},
    {"2025-11-25", SINCE_2025_11, .has_priming = true, .not_found = RPC_RESOURCE_NOT_FOUND},
    {"2025-06-18", SINCE_2025_06, .not_found = RPC_RESOURCE_NOT_FOUND},
    {"2025-03-26", SINCE_2025_03, .has_batches = true, .not_found = RPC_RESOURCE_NOT_FOUND},
    {"2024-11-05", .has_batches = true, .not_found = RPC_RESOURCE_NOT_FOUND},
    {0},
};
/* clang-format on */

const struct mcp_revision *mcp_revision_find(const char *date)
{
    for (const struct mcp_revision *r = mcp_revisions; r->date; r++)
        if (strcmp(r->date, date) == 0)
            return r;
    return NULL;
}

const struct mcp_revision *mcp_revision_modern(void)
{
    return &mcp_revisions[0];
}

const struct mcp_revision *mcp_revision_newest_legacy(void)
{
    return &mcp_revisions[1];
}

enum mcp_era mcp_revision_era(const struct mcp_revision *r)
{
    return r->stateless ? MCP_MODERN : MCP_LEGACY;
}
