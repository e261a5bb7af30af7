/* SPDX-License-Identifier: Apache-2.0 */
/* service/r2/config.c - `r2_buckets`, and the bindings to them. */
#include "service/r2/config.h"

#include "base/mem.h"
#include "config/keys.h"
#include "config/service_config.h"
#include "object/node.h"
#include "service/r2/r2.h"

/* clang-format off */
SCHEMA(schema, struct cn_config_r2,
    STRING(cn_config_r2, binding, .flags = REQUIRED),
    STRING(cn_config_r2, bucket_name),
    STRING(cn_config_r2, jurisdiction),
    SUB_HOSTED("local_dev"), SUB_HOSTED("preview_bucket_name"), SUB_HOSTED("remote"));
/* clang-format on */

const struct cn_r2_entries *cn_r2_entries(const struct cn_config *config)
{
    return cn_config_entries(config, &cn_service_r2);
}

/* What a bucket is called on this node. Owned. */
static char *name_of(const struct cn_config *config, const struct cn_config_r2 *bucket)
{
    return bucket->bucket_name ? cn_strdup(bucket->bucket_name)
                               : cn_sprintf("%s/%s", config->name, bucket->binding);
}

static void each_local(const struct cn_config *config, cn_service_local each, void *data)
{
    const struct cn_r2_entries *all = cn_r2_entries(config);
    for (size_t i = 0; i < all->count; i++) {
        const struct cn_config_r2 *item = &all->items[i];
        char *id = name_of(config, item);
        each(data, item->bucket_name ? item->bucket_name : item->binding, id);
        cn_free(id);
    }
}

static int bind_all(struct cn_bindings *list, const void *entries, struct cn_err *err)
{
    const struct cn_r2_entries *all = entries;
    for (size_t i = 0; i < all->count; i++) {
        const struct cn_config_r2 *bucket = &all->items[i];
        char *name = name_of(list->config, bucket);
        int rc = cn_binding_begin_service(list, bucket->binding, "r2_bucket", name, err);
        cn_free(name);
        if (rc < 0)
            return rc;
        cn_binding_end(list);
    }
    return 0;
}

const struct cn_service_config cn_r2_config = {
    .key = {.name = "r2_buckets", .kind = CN_FIELD_LIST, .sub = &schema, .flags = OWN},
    .name = "binding",
    .wants_node = cn_service_config_any,
    .bind = bind_all,
    .own_script = cn_r2_s3_script,
    .local = each_local,
};
