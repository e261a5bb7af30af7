/* SPDX-License-Identifier: Apache-2.0 */
/* service/kv/config.c - `kv_namespaces`, and the bindings to them. */
#include "service/kv/config.h"

#include "base/mem.h"
#include "config/keys.h"
#include "config/service_config.h"
#include "service/kv/kv.h"

/* clang-format off */
SCHEMA(schema, struct cn_config_kv,
    STRING(cn_config_kv, binding, .flags = REQUIRED),
    STRING(cn_config_kv, id),
    SUB_HOSTED("preview_id"), SUB_HOSTED("remote"));
/* clang-format on */

const struct cn_kv_entries *cn_kv_entries(const struct cn_config *config)
{
    return cn_config_entries(config, &cn_service_kv);
}

char *cn_config_kv_id(const struct cn_config *config, const struct cn_config_kv *kv)
{
    return kv->id ? cn_strdup(kv->id) : cn_sprintf("%s/%s", config->name, kv->binding);
}

static int bind_all(struct cn_bindings *list, const void *entries, struct cn_err *err)
{
    const struct cn_kv_entries *all = entries;
    for (size_t i = 0; i < all->count; i++) {
        char *id = cn_config_kv_id(list->config, &all->items[i]);
        int rc = cn_binding_begin_service(list, all->items[i].binding, "kv_namespace", id, err);
        cn_free(id);
        if (rc < 0)
            return rc;
        cn_binding_end(list);
    }
    return 0;
}

static void each_local(const struct cn_config *config, cn_service_local each, void *data)
{
    const struct cn_kv_entries *all = cn_kv_entries(config);
    for (size_t i = 0; i < all->count; i++) {
        const struct cn_config_kv *item = &all->items[i];
        char *id = cn_config_kv_id(config, item);
        each(data, item->id ? item->id : item->binding, id);
        cn_free(id);
    }
}

const struct cn_service_config cn_kv_config = {
    .key = {.name = "kv_namespaces", .kind = CN_FIELD_LIST, .sub = &schema, .flags = OWN},
    .name = "binding",
    .wants_node = cn_service_config_any,
    .bind = bind_all,
    .local = each_local,
};
