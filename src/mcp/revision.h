/* revision - the revisions of the protocol that we speak, and the booleans in which they differ. */
#pragma once

#include <stdbool.h>

/* Legacy revisions have sessions, the modern one has none. */
enum mcp_era { MCP_LEGACY = 1, MCP_MODERN = 2, MCP_BOTH = 3 };

struct mcp_revision {
    const char *date;
    bool        stateless;         /* no initialize, no session: every request tells all (modern) */
    bool        has_http;          /* Streamable HTTP; before it, HTTP was another transport */
    bool        has_batches;       /* arrays of messages */
    bool        has_audio;         /* blocks of content */
    bool        has_annotations;   /* of tools */
    bool        has_completions;   /* as a capability */
    bool        has_progress_text; /* beside the numbers */
    bool        has_structured;    /* structuredContent, outputSchema */
    bool        has_links;         /* blocks that name a resource */
    bool        has_titles;
    bool        has_priming; /* SSE streams begin with an empty event that carries an id */
    bool        has_icons;
    int         not_found; /* code for a resource that is not there */
};

/* Newest first; the last row has no date. */
extern const struct mcp_revision mcp_revisions[];

const struct mcp_revision *mcp_revision_find(const char *date); /* NULL: unknown */
const struct mcp_revision *mcp_revision_modern(void);
const struct mcp_revision *mcp_revision_newest_legacy(void);
enum mcp_era               mcp_revision_era(const struct mcp_revision *r);
