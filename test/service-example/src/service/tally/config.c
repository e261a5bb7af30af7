/* SPDX-License-Identifier: Apache-2.0 */
/* service/tally/config.c - [[cairn.tallies]]: binding, name. */
#include "config/keys.h"
#include "config/service_config.h"
#include "service/tally/tally.h"

struct entry {
    const char *binding, *name;
};
struct entries {
    struct entry *items;
    size_t count;
};

SCHEMA(schema, struct entry, STRING(entry, binding, .flags = REQUIRED),
       STRING(entry, name, .flags = REQUIRED));

static int bind_all(struct cn_bindings *list, const void *entries, struct cn_err *err)
{
    const struct entries *all = entries;
    for (size_t i = 0; i < all->count; i++) {
        const struct entry *entry = &all->items[i];
        int rc = cn_binding_begin_service(list, entry->binding, "tally", entry->name, err);
        if (rc < 0)
            return rc;
        cn_binding_end(list);
    }
    return 0;
}

const struct cn_service_config cn_tally_config = {
    .key = {.name = "tallies", .kind = CN_FIELD_LIST, .sub = &schema},
    .in_cairn = true,
    .name = "binding",
    .wants_node = cn_service_config_any,
    .bind = bind_all,
};
