/* SPDX-License-Identifier: Apache-2.0 */
/* service/analytics/config.c - `analytics_engine_datasets`, and the bindings to them. */
#include "analytics/points.h"
#include "base/err.h"
#include "config/keys.h"
#include "config/service_config.h"
#include "object/node.h"
#include "service/analytics/analytics.h"
#include "service/service.h"

struct entry {
    const char *binding;
    const char *dataset; /* NULL: the binding's name */
};
struct entries {
    struct entry *items;
    size_t count;
};

/* clang-format off */
SCHEMA(schema, struct entry,
    STRING(entry, binding, .flags = REQUIRED),
    STRING(entry, dataset),
    SUB_HOSTED("remote"));
/* clang-format on */

static int bind_all(struct cn_bindings *list, const void *entries, struct cn_err *err)
{
    const struct entries *all = entries;
    for (size_t i = 0; i < all->count; i++) {
        const char *binding = all->items[i].binding, *name = all->items[i].dataset;
        uint32_t number;
        if (!list->node)
            return cn_binding_refuse_new(binding, err);
        struct cn_services *services = cn_node_data(list->node);
        int rc = cn_points_dataset(services->points, name ? name : binding, &number, err);
        if (rc < 0)
            return cn_err_context(err, "analytics_engine_datasets: %s", binding);
        cn_binding_begin(list, binding, "analytics_engine");
        cn_binding_member(list, "title", name ? name : binding);
        cn_binding_number(list, "dataset", number);
        cn_binding_end(list);
    }
    return 0;
}

const struct cn_service_config cn_analytics_config = {
    .key = {.name = "analytics_engine_datasets",
            .kind = CN_FIELD_LIST,
            .sub = &schema,
            .flags = OWN},
    .name = "binding",
    .wants_node = cn_service_config_any,
    .bind = bind_all,
};
