/* network - what --network and --allow say: the policy of a sandbox, and what npm inside must know.
 */
#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "base/json.h"
#include "base/options.h"
#include "deps/npm_inside.h"
#include "egress/policy.h"

struct network {
    struct policy    *policy;
    bool              is_host;
    struct npm_inside npm;
};

/* `name` NULL: 'allow' if there are rules, else 'internet'. */
int network_init(struct network *n, const char *name, const struct option_list *rules,
                 struct err *e);
/* Another policy with the same registries, without rules of its own; the caller frees. */
struct policy *network_policy(const char *name, struct err *e);
void           network_done(struct network *n);

/* One line on stderr for each thing that was refused; for each connection when they are given. */
void network_tell(const json_t *refused, const json_t *connections);
