/* SPDX-License-Identifier: Apache-2.0 */
/* service/ratelimit/config.c - `ratelimits`, which have stood in `unsafe` once, and the bindings to
 * them. */
#include "service/ratelimit/config.h"

#include <string.h>

#include "config/config.h"
#include "config/confnode.h"
#include "config/keys.h"
#include "config/service_config.h"
#include "service/ratelimit/ratelimit.h"

struct simple {
    int64_t limit, period;
};

/* clang-format off */
SCHEMA(simple, struct simple,
    INT(simple, limit, 1, INT64_MAX, .flags = REQUIRED),
    INT(simple, period, 10, 60, .flags = REQUIRED));
SCHEMA(schema, struct cn_config_ratelimit,
    STRING(cn_config_ratelimit, name, .flags = REQUIRED),
    STRING(cn_config_ratelimit, namespace_id, .flags = REQUIRED),
    TABLE(cn_config_ratelimit, simple, simple, .flags = REQUIRED));
SCHEMA(unsafe, struct cn_config_ratelimit,
    STRING(cn_config_ratelimit, name, .flags = REQUIRED),
    STRING(cn_config_ratelimit, namespace_id, .flags = REQUIRED),
    TABLE(cn_config_ratelimit, simple, simple, .flags = REQUIRED),
    {.name = "type", .kind = CN_FIELD_NODE, .flags = QUIET});
/* clang-format on */

static int check(const struct cn_schema_reader *reader, const struct cn_confnode *node,
                 const struct cn_config *config, const void *entries, struct cn_err *err)
{
    const struct cn_ratelimit_entries *all = entries;
    for (size_t i = 0; i < all->count; i++) {
        const struct cn_config_ratelimit *limit = &all->items[i];
        bool listed = node->kind == CN_CONF_ARRAY && i < node->count; /* not from "unsafe" */
        const struct cn_confnode *place = listed ? node->items[i] : config->unsafe_node;
        const char *key = listed ? "ratelimits" : "unsafe.bindings", *id = limit->namespace_id;
        if (limit->simple.period != 10 && limit->simple.period != 60)
            return cn_schema_fail(reader, place, err,
                                  "\"%s: simple.period\" of %s must be 10 or 60", key, limit->name);
        if (!*id || id[strspn(id, "0123456789")])
            return cn_schema_fail(reader, place, err,
                                  "\"%s: namespace_id\" of %s must be a whole number in quotes",
                                  key, limit->name);
    }
    return 0;
}

static int bind_all(struct cn_bindings *list, const void *entries, struct cn_err *err)
{
    const struct cn_ratelimit_entries *all = entries;
    for (size_t i = 0; i < all->count; i++) {
        const struct cn_config_ratelimit *limit = &all->items[i];
        int rc = cn_binding_begin_service(list, limit->name, "ratelimit", limit->namespace_id, err);
        if (rc < 0)
            return rc;
        cn_binding_number(list, "limit", limit->simple.limit);
        cn_binding_number(list, "period", limit->simple.period);
        cn_binding_end(list);
    }
    return 0;
}

const struct cn_service_config cn_ratelimit_config = {
    .key = {.name = "ratelimits", .kind = CN_FIELD_LIST, .sub = &schema, .flags = OWN},
    .name = "name",
    .unsafe_type = "ratelimit",
    .unsafe = &unsafe,
    .check = check,
    .wants_node = cn_service_config_any,
    .bind = bind_all,
};
