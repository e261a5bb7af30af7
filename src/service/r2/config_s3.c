/* SPDX-License-Identifier: Apache-2.0 */
/* service/r2/config_s3.c - the S3-compatible endpoint: a script of the server's own for the host
 * that [cairn.s3] names, with the buckets of all projects. */

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/map.h"
#include "base/mem.h"
#include "config/config.h"
#include "object/node.h"
#include "project/project.h"
#include "service/r2/config.h"
#include "worker/script.h"

#define CPU_MS 30000

/* Adds every bucket once: {"name":NAME,"type":"s3_bucket","part":"r2","ns":N}. */
static int add_buckets(const struct cn_config *config, struct cn_node *node, struct cn_map *seen,
                       struct cn_script *script, struct cn_buf *json, struct cn_err *err)
{
    const struct cn_r2_entries *entries = cn_r2_entries(config);
    for (size_t i = 0; i < entries->count; i++) {
        const char *name = entries->items[i].bucket_name;
        if (!name || cn_map_find(seen, name, strlen(name)))
            continue; /* one without a name of its own is only its worker's */
        cn_map_set(seen, name, strlen(name), seen);
        struct cn_namespace *ns;
        char *full = cn_sprintf("$r2/%s", name);
        int rc = cn_node_namespace(node, full, &ns, err);
        cn_free(full);
        if (rc < 0)
            return rc;
        cn_buf_append_str(json, seen->count > 1 ? ",{\"name\":" : "{\"name\":");
        cn_buf_append_json(json, name, strlen(name));
        cn_buf_printf(json, ",\"type\":\"s3_bucket\",\"part\":\"r2\",\"ns\":%u}", ns->id);
        cn_script_grant(script, ns->id);
    }
    return 0;
}

static void append_member(struct cn_buf *json, const char *name, const char *value)
{
    cn_buf_printf(json, "%s\"%s\":", json->size > 1 ? "," : "", name);
    cn_buf_append_json(json, value, strlen(value));
}

int cn_r2_s3_script(const struct cn_project *projects, size_t count, struct cn_node *node,
                    struct cn_script **out, struct cn_err *err)
{
    const char *host = count ? projects[0].config->server.s3.host : NULL;
    *out = NULL;
    if (!host || !node)
        return 0;
    const char *key = getenv("CAIRN_S3_ACCESS_KEY_ID");
    const char *secret = getenv("CAIRN_S3_SECRET_ACCESS_KEY");
    if (!key || !*key || !secret || !*secret)
        return cn_err_set(err, CN_EINVALID,
                          "[cairn.s3] needs the variables CAIRN_S3_ACCESS_KEY_ID and "
                          "CAIRN_S3_SECRET_ACCESS_KEY");
    struct cn_buf options = {0}, env = {0};
    struct cn_map seen;
    cn_map_init(&seen);
    cn_buf_append_str(&options, "{\"compatibilityDate\":\"2026-01-01\",\"bindings\":[");
    struct cn_script *script = cn_script_new();
    int rc = 0;
    for (size_t i = 0; i < count && rc == 0; i++)
        rc = add_buckets(projects[i].config, node, &seen, script, &options, err);
    cn_map_fini(&seen);
    if (rc < 0) {
        cn_script_unref(script);
        cn_buf_fini(&options);
        return rc;
    }
    cn_buf_append_str(&options, "]}");
    cn_buf_append_byte(&env, '{');
    append_member(&env, "$key", key);
    append_member(&env, "$secret", secret);
    append_member(&env, "$host", host);
    cn_buf_append_byte(&env, '}');
    cn_buf_text(&options);
    cn_buf_text(&env);
    script->name = cn_strdup("$s3");
    script->url = cn_strdup("s3.js");
    script->source = cn_strdup("(function(c){return{default:c.modules[\"cairn:s3\"].handler}})");
    script->has_source = true;
    script->options_json = (char *)cn_buf_take(&options);
    script->env_json = (char *)cn_buf_take(&env);
    script->cpu_limit_ms = CPU_MS;
    cn_script_add_route(script, host);
    char *virtual_hosts = cn_sprintf("*.%s", host);
    cn_script_add_route(script, virtual_hosts);
    cn_free(virtual_hosts);
    *out = script;
    return 0;
}
