/* words - what stands in braces in a tool's texts, said as this server has it: "{memory}". What an
 * agent reads before its first call must be true here, not by default. */
#pragma once

#include <stdint.h>

struct words {
    int64_t     memory_bytes, disk_bytes, cpus_milli, pids, timeout_ms, sandboxes;
    int64_t     age_ms, idle_ms; /* 0: no end */
    const char *image;           /* of who names none */
    const char *images;          /* a sentence on what others there are, or "" */
    const char *network;         /* the operator's policy */
};

char *words_fill(const struct words *w, const char *text); /* the caller frees */

enum { WORDS_SIZE_MAX = 32 };
void words_size(int64_t bytes, char ret[WORDS_SIZE_MAX]); /* "512 MiB" */
void words_time(int64_t ms, char ret[WORDS_SIZE_MAX]);    /* "30 s"; 0: "no limit" */
