/* SPDX-License-Identifier: Apache-2.0 */
#include "config/service_config.h"

#include <inttypes.h>
#include <string.h>

#include "base/assert.h"
#include "base/buf.h"
#include "base/diag.h"
#include "base/err.h"
#include "base/mem.h"
#include "object/node.h"
#include "object/shard_list.h"
#include "store/catalog.h"
#include "store/store.h"
#include "worker/script.h"

bool cn_service_config_any(const void *entries)
{
    return ((const struct cn_schema_list *)entries)->count > 0;
}

void cn_binding_begin(struct cn_bindings *list, const char *name, const char *type)
{
    struct cn_buf *json = list->json;
    if (json->data[json->size - 1] != '[')
        cn_buf_append_byte(json, ',');
    cn_buf_append_str(json, "{\"name\":");
    cn_buf_append_json(json, name, strlen(name));
    cn_buf_printf(json, ",\"type\":\"%s\"", type);
    if (list->service)
        cn_buf_printf(json, ",\"part\":\"%s\"", list->service);
}

int cn_binding_refuse_new(const char *name, struct cn_err *err)
{
    return cn_err_set(err, CN_EUNSUPPORTED,
                      "the binding %s was added; restart the server to use it", name);
}

static char *full_name(const struct cn_bindings *list, const char *id)
{
    CN_ASSERT(list->service);
    return cn_sprintf("$%s/%s", list->service, id);
}

int cn_binding_namespace(struct cn_bindings *list, const char *what, const char *id,
                         struct cn_namespace **ns, struct cn_err *err)
{
    if (!list->node)
        return cn_err_set(err, CN_EUNSUPPORTED, "%s; restart the server to use it", what);
    char *name = full_name(list, id);
    int rc = cn_node_namespace(list->node, name, ns, err);
    cn_free(name);
    return rc;
}

int cn_binding_begin_service(struct cn_bindings *list, const char *name, const char *type,
                             const char *id, struct cn_err *err)
{
    if (!list->node)
        return cn_binding_refuse_new(name, err);
    struct cn_namespace *ns;
    uint32_t known;
    char *full = full_name(list, id);
    int rc = cn_shards_namespace_find(cn_node_shards(list->node), full, &known, err);
    bool is_new = rc == 0;
    if (rc >= 0)
        rc = cn_node_namespace(list->node, full, &ns, err);
    cn_free(full);
    if (rc < 0)
        return rc;
    if (is_new && !cn_shards_numbered(cn_node_shards(list->node))) /* other nodes may have had it */
        cn_info("%s: %s \"%s\" is new here", name, list->service, id);
    cn_binding_begin(list, name, type);
    cn_binding_number(list, "ns", ns->id);
    cn_script_grant(list->script, ns->id);
    return 0;
}

void cn_binding_member(struct cn_bindings *list, const char *key, const char *value)
{
    cn_buf_printf(list->json, ",\"%s\":", key);
    cn_buf_append_json(list->json, value, strlen(value));
}

void cn_binding_number(struct cn_bindings *list, const char *key, int64_t value)
{
    cn_buf_printf(list->json, ",\"%s\":%" PRId64, key, value);
}

void cn_binding_end(struct cn_bindings *list)
{
    cn_buf_append_byte(list->json, '}');
}
