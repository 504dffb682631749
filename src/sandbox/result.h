/* result - what is told of a run that is over, as JSON: one form for every reader.
 *
 *   {"verdict": "oom", "source": "watch", "code": null, "signal": 9, "ended": "sandbox",
 *    "usage": {"wallMs": 41, "cpuMs": 33, "peakBytes": 1, "maxRssBytes": 1},
 *    "refused": [{"host": "10.0.0.1", "port": 80, "rule": "…", "allow": "…"}],
 *    "walls": {"missing": ["cgroup", "uid-range"]}}
 *
 * source: who found out, for a verdict about a limit (verdict_source). ended: what its end, the
 * timeout and a cancel took along: the processes of the run, or for want of a cgroup everything in
 * the sandbox but init. */
#pragma once

#include "base/json.h"
#include "sandbox/run.h"

json_t *result_missing_walls(const json_t *walls); /* their names; the caller releases */

/* walls: the list that the sandbox told (sandbox_ops), or NULL if it never came that far; then
 * `missing` is null. refused: as egress_take_refused has it, or NULL: nothing was. */
json_t *result_json(const struct run_result *r, const json_t *walls, const json_t *refused);
