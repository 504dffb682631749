#include "cli/network.h"

#include <stdio.h>

#include "base/json.h"
#include "npm/npm_config.h"

static struct policy *make_policy(const struct npm_config *config, const char *name,
                                  const char *const *rules, struct err *e)
{
    const char *registries[POLICY_REGISTRIES_MAX + 1] = {0};

    npm_config_registries(config, registries, POLICY_REGISTRIES_MAX);
    return policy_new(name, rules, registries, e);
}

int network_init(struct network *n, const char *name, const struct option_list *rules,
                 struct err *e)
{
    const char        *list[OPTION_LIST_MAX + 1] = {0};
    struct npm_config *config = npm_config_load(NPM_CONFIG_USER, e);
    int                r = -1;

    if (!config)
        return -1;
    if (!name)
        name = rules->n > 0 ? "allow" : "internet";
    for (size_t i = 0; i < rules->n; i++)
        list[i] = rules->items[i];
    n->policy = make_policy(config, name, list, e);
    if (n->policy) {
        n->is_host = policy_kind(n->policy) == POLICY_HOST;
        r = npm_inside_init(&n->npm, config, n->policy, e);
    }
    npm_config_free(config);
    return r;
}

struct policy *network_policy(const char *name, struct err *e)
{
    const char        *none[] = {NULL};
    struct npm_config *config = npm_config_load(NPM_CONFIG_USER, e);
    struct policy     *policy;

    if (!config)
        return NULL;
    policy = make_policy(config, name, none, e);
    npm_config_free(config);
    return policy;
}

void network_done(struct network *n)
{
    policy_free(n->policy);
    npm_inside_done(&n->npm);
}

static const char *text_of(const json_t *row, const char *name)
{
    return json_string_value(json_object_get(row, name));
}

static void tell_refused(const json_t *row)
{
    const json_t *port = json_object_get(row, "port");

    fprintf(stderr, "jerboa: network: %s", text_of(row, "host"));
    if (json_is_integer(port))
        fprintf(stderr, ", port %lld", (long long)json_integer_value(port));
    fprintf(stderr, ": %s (%s)\n", text_of(row, "rule"), text_of(row, "allow"));
}

static long long number_of(const json_t *row, const char *name)
{
    return (long long)json_integer_value(json_object_get(row, name));
}

static void tell_connection(const json_t *row)
{
    if (!text_of(row, "address")) { /* the one that stands for the rest */
        fprintf(stderr, "connections: %s\n", text_of(row, "host"));
        return;
    }
    fprintf(stderr, "connection %s:%lld (%s), sent %lld bytes, received %lld, %lld ms\n",
            text_of(row, "host"), number_of(row, "port"), text_of(row, "address"),
            number_of(row, "sentBytes"), number_of(row, "receivedBytes"), number_of(row, "ms"));
}

void network_tell(const json_t *refused, const json_t *connections)
{
    size_t  i;
    json_t *row;

    json_array_foreach ((json_t *)refused, i, row) {
        tell_refused(row);
    }
    json_array_foreach ((json_t *)connections, i, row) {
        tell_connection(row);
    }
}
