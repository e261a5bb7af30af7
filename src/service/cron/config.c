/* SPDX-License-Identifier: Apache-2.0 */
/* service/cron/config.c - `triggers`: when a script's scheduled() handler is to run. */
#include "base/cron.h"
#include "base/mem.h"
#include "config/config.h"
#include "config/keys.h"
#include "config/service_config.h"
#include "service/cron/cron.h"
#include "worker/script.h"

struct triggers {
    struct cn_strings crons;
    const struct cn_confnode *events; /* of a service that is not there */
};

/* clang-format off */
SCHEMA(schema, struct triggers, STRINGS(triggers, crons),
       NODE(triggers, events, .flags = UNBUILT));
/* clang-format on */

static int check(const struct cn_schema_reader *reader, const struct cn_confnode *node,
                 const struct cn_config *config, const void *entries, struct cn_err *err)
{
    (void)config;
    const struct triggers *triggers = entries;
    for (size_t i = 0; i < triggers->crons.count; i++) {
        struct cn_cron cron;
        struct cn_err why;
        if (cn_cron_parse(triggers->crons.items[i], &cron, &why) < 0)
            return cn_schema_fail(reader, node, err, "\"triggers.crons[%zu]\": %s", i, why.text);
    }
    return 0;
}

static bool wants_node(const void *entries)
{
    return ((const struct triggers *)entries)->crons.count > 0;
}

static int bind_all(struct cn_bindings *list, const void *entries, struct cn_err *err)
{
    const struct cn_strings *crons = &((const struct triggers *)entries)->crons;
    struct cn_script *script = list->script;
    if (!crons->count)
        return 0;
    script->crons = cn_alloc_zero(crons->count * sizeof(*script->crons));
    for (size_t i = 0; i < crons->count; i++)
        script->crons[script->cron_count++] = cn_strdup(crons->items[i]);
    return cn_binding_namespace(list, "cron triggers were added", list->config->name,
                                &script->cron_ns, err);
}

const struct cn_service_config cn_cron_config = {
    .key = {.name = "triggers", .kind = CN_FIELD_TABLE, .sub = &schema},
    .check = check,
    .wants_node = wants_node,
    .bind = bind_all,
};
