/* pressure - how much memory is left: on the machine, and in each cgroup around this process that
 * has a limit. What the kernel can take back (the page cache) counts as left.
 *
 * A look costs some small files, so one is believed for a moment; what was promised to somebody
 * meanwhile, and is not in use yet, counts as used. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct pressure;

/* `proc`: where /proc is; `floor_bytes`: how much must stay, -1: a sixteenth of what there is, at
 * most 256 MiB; 0: nobody looks. */
struct pressure *pressure_new(const char *proc, int64_t floor_bytes);
void             pressure_free(struct pressure *p);

int64_t pressure_left(struct pressure *p, int64_t now_ms); /* bytes; INT64_MAX: it is not known */
int64_t pressure_floor(const struct pressure *p);
void    pressure_promise(struct pressure *p, int64_t bytes);

bool pressure_is_out(struct pressure *p, int64_t now_ms); /* below the floor: nothing more starts */
/* Below twice the floor, and until there is half of it more than that: what nobody asked for goes.
 */
bool pressure_is_short(struct pressure *p, int64_t now_ms);
