/* SPDX-License-Identifier: Apache-2.0 */
/* service/ai/config.c - `ai`: a binding to a server of models, which [cairn.ai] names. The way
 * there is told to the prelude alone; without one the binding says so. */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "config/config.h"
#include "config/confnode.h"
#include "config/keys.h"
#include "config/service_config.h"
#include "service/def.h"

struct ai {
    const char *binding; /* NULL: not bound */
};

/* clang-format off */
SCHEMA(schema, struct ai,
    STRING(ai, binding, .flags = REQUIRED),
    SUB_HOSTED("staging"), SUB_HOSTED("remote"));
/* clang-format on */

/* The value of one of the project's variables, or NULL. */
static const char *find_var(const struct cn_config *config, const char *name)
{
    for (size_t i = 0; name && i < config->vars.count; i++)
        if (strcmp(config->vars.items[i].name, name) == 0 &&
            config->vars.items[i].kind != CN_VAR_JSON)
            return config->vars.items[i].text;
    return NULL;
}

static int bind_server(struct cn_bindings *list, struct cn_err *err)
{
    const struct cn_config *config = list->config;
    size_t size = strlen(config->server.ai.url);
    while (size && config->server.ai.url[size - 1] == '/')
        size--;
    char *url = cn_strndup(config->server.ai.url, size);
    cn_binding_member(list, "url", url);
    cn_free(url);
    const char *key = cn_config_process_variable(config, "CAIRN_AI_KEY");
    if (!key && config->server.ai.key) {
        key = find_var(config, config->server.ai.key);
        if (!key)
            return cn_err_set(err, CN_ENOTFOUND,
                              "[cairn.ai]: the project has no variable or secret named %s",
                              config->server.ai.key);
    }
    if (key)
        cn_binding_member(list, "key", key);
    if (config->server.ai.models) {
        cn_buf_append_str(list->json, ",\"models\":");
        cn_confnode_write_json(config->server.ai.models, list->json);
    }
    return 0;
}

static int bind_all(struct cn_bindings *list, const void *entries, struct cn_err *err)
{
    const struct ai *ai = entries;
    if (!ai->binding)
        return 0;
    cn_binding_begin(list, ai->binding, "ai");
    int rc = list->config->server.ai.url ? bind_server(list, err) : 0;
    cn_binding_end(list);
    return rc;
}

static const struct cn_service_config config = {
    .key = {.name = "ai", .kind = CN_FIELD_TABLE, .sub = &schema, .flags = OWN},
    .name = "binding",
    .bind = bind_all,
};

const struct cn_service_def cn_service_ai = {
    .name = "ai",
    .title = "Workers AI",
    .about = "a server of models that `[cairn.ai]` names",
    .page = "reference/ai.md",
    .config = &config,
};
