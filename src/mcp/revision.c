#include "mcp/revision.h"

#include <stddef.h>
#include <string.h>

#include "mcp/rpc.h"

const struct mcp_revision mcp_revisions[] = {
    {"2026-07-28", .stateless = true, .has_structured = true, .has_audio = true, .has_icons = true,
     .not_found = RPC_INVALID_PARAMS},
    {"2025-11-25", .has_structured = true, .has_audio = true, .has_priming = true,
     .has_icons = true, .not_found = RPC_RESOURCE_NOT_FOUND},
    {"2025-06-18", .has_structured = true, .has_audio = true, .not_found = RPC_RESOURCE_NOT_FOUND},
    {"2025-03-26", .has_batches = true, .has_audio = true, .not_found = RPC_RESOURCE_NOT_FOUND},
    {"2024-11-05", .has_batches = true, .not_found = RPC_RESOURCE_NOT_FOUND},
    {0},
};

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
