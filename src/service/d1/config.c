/* SPDX-License-Identifier: Apache-2.0 */
/* service/d1/config.c - `d1_databases`, and the bindings to them. */
#include "service/d1/config.h"

#include "base/mem.h"
#include "config/keys.h"
#include "config/service_config.h"
#include "service/d1/d1.h"

/* clang-format off */
SCHEMA(schema, struct cn_config_d1,
    STRING(cn_config_d1, binding, .flags = REQUIRED),
    STRING(cn_config_d1, database_name),
    STRING(cn_config_d1, database_id),
    STRING(cn_config_d1, migrations_table),
    STRING(cn_config_d1, migrations_dir),
    STRING(cn_config_d1, migrations_pattern),
    SUB_HOSTED("jurisdiction"), SUB_HOSTED("preview_database_id"), SUB_HOSTED("database_internal_env"), SUB_HOSTED("remote"));
/* clang-format on */

const struct cn_d1_entries *cn_d1_entries(const struct cn_config *config)
{
    return cn_config_entries(config, &cn_service_d1);
}

char *cn_config_d1_id(const struct cn_config *config, const struct cn_config_d1 *d1)
{
    if (d1->database_id)
        return cn_strdup(d1->database_id);
    return d1->database_name ? cn_strdup(d1->database_name)
                             : cn_sprintf("%s/%s", config->name, d1->binding);
}

static int bind_all(struct cn_bindings *list, const void *entries, struct cn_err *err)
{
    const struct cn_d1_entries *all = entries;
    for (size_t i = 0; i < all->count; i++) {
        const struct cn_config_d1 *d1 = &all->items[i];
        char *id = cn_config_d1_id(list->config, d1);
        int rc = cn_binding_begin_service(list, d1->binding, "d1", id, err);
        cn_free(id);
        if (rc < 0)
            return rc;
        if (d1->database_name)
            cn_binding_member(list, "title", d1->database_name);
        cn_binding_end(list);
    }
    return 0;
}

static void each_local(const struct cn_config *config, cn_service_local each, void *data)
{
    const struct cn_d1_entries *all = cn_d1_entries(config);
    for (size_t i = 0; i < all->count; i++) {
        const struct cn_config_d1 *item = &all->items[i];
        char *id = cn_config_d1_id(config, item);
        each(data, item->database_id ? item->database_id : item->binding, id);
        cn_free(id);
    }
}

const struct cn_service_config cn_d1_config = {
    .key = {.name = "d1_databases", .kind = CN_FIELD_LIST, .sub = &schema, .flags = OWN},
    .name = "binding",
    .wants_node = cn_service_config_any,
    .bind = bind_all,
    .local = each_local,
};
