/* SPDX-License-Identifier: Apache-2.0 */
/* v4/depot_config.c - from what was uploaded to the configuration that the rest of the server
 * reads: the text of a wrangler.json. So a worker that was deployed by upload is checked, bound
 * and migrated by the same code as one whose project lies on the server. */
#include <openssl/crypto.h>
#include <string.h>

#include "base/assert.h"
#include "base/mem.h"
#include "v4/depot.h"

#define FIELD_MAX CN_DEPOT_FIELD_MAX

static const struct cn_depot_kind kinds[] = {
    {"durable_object_namespace",
     "durable_objects.bindings",
     {{"name", "name"},
      {"class_name", "class_name"},
      {"script_name", "script_name"},
      {"environment", "environment"}}},
    {"kv_namespace", "kv_namespaces", {{"name", "binding"}, {"namespace_id", "id"}}},
    {"r2_bucket",
     "r2_buckets",
     {{"name", "binding"}, {"bucket_name", "bucket_name"}, {"jurisdiction", "jurisdiction"}}},
    {"d1", "d1_databases", {{"name", "binding"}, {"id", "database_id"}}},
    {"queue",
     "queues.producers",
     {{"name", "binding"}, {"queue_name", "queue"}, {"delivery_delay", "delivery_delay"}}},
    {"service",
     "services",
     {{"name", "binding"},
      {"service", "service"},
      {"entrypoint", "entrypoint"},
      {"props", "props"}}},
    {"analytics_engine",
     "analytics_engine_datasets",
     {{"name", "binding"}, {"dataset", "dataset"}}},
    {"ratelimit",
     "ratelimits",
     {{"name", "name"}, {"namespace_id", "namespace_id"}, {"simple", "simple"}}},
    {"send_email",
     "send_email",
     {{"name", "name"},
      {"destination_address", "destination_address"},
      {"allowed_destination_addresses", "allowed_destination_addresses"},
      {"allowed_sender_addresses", "allowed_sender_addresses"}}},
    {"hyperdrive", "hyperdrive", {{"name", "binding"}, {"id", "id"}}},
    {"dispatch_namespace",
     "dispatch_namespaces",
     {{"name", "binding"}, {"namespace", "namespace"}, {"outbound", "outbound"}}},
    {"workflow",
     "workflows",
     {{"name", "binding"},
      {"workflow_name", "name"},
      {"class_name", "class_name"},
      {"script_name", "script_name"}}},
    {"vectorize", "vectorize", {{"name", "binding"}, {"index_name", "index_name"}}},
    {"worker_loader", "worker_loaders", {{"name", "binding"}}},
    {"version_metadata", "version_metadata!", {{"name", "binding"}}},
    {"ai", "ai!", {{"name", "binding"}}},
    {"browser", "browser!", {{"name", "binding"}}},
    {"images", "images!", {{"name", "binding"}}},
};

const struct cn_depot_kind *cn_depot_kind_at(size_t index)
{
    return index < CN_ARRAY_COUNT(kinds) ? &kinds[index] : NULL;
}

/* The value of each kind's key while it is gathered. */
struct writer {
    struct cn_depot *depot;
    const struct cn_depot_script *script;
    struct cn_buf lists[CN_ARRAY_COUNT(kinds)];
    struct cn_buf vars;
    const char *assets; /* name of the binding to the assets, borrowed; NULL: none */
};

static void put_key(struct cn_buf *json, const char *key)
{
    cn_buf_append_byte(json, json->size && json->data[json->size - 1] != '{' ? ',' : ' ');
    cn_buf_append_json(json, key, strlen(key));
    cn_buf_append_byte(json, ':');
}

static void put_text(struct cn_buf *json, const char *key, const char *text)
{
    put_key(json, key);
    cn_buf_append_json(json, text, strlen(text));
}

static void put_entry(struct cn_buf *list, const struct cn_depot_kind *kind,
                      const struct cn_json *binding)
{
    cn_buf_append_str(list, list->size ? ",{" : "{");
    for (size_t i = 0; i < FIELD_MAX && kind->fields[i].from; i++) {
        const struct cn_json *value = cn_json_find(binding, kind->fields[i].from);
        if (!value || value->kind == CN_JSON_NULL)
            continue;
        put_key(list, kind->fields[i].to);
        cn_json_write(list, value);
    }
    cn_buf_append_byte(list, '}');
}

static int put_secret(struct writer *writer, const char *name, const struct cn_json *binding,
                      struct cn_err *err)
{
    const char *sealed = cn_json_text(binding, "sealed");
    struct cn_buf text = {0};
    if (!sealed ||
        !cn_depot_unseal(writer->depot, writer->script->name, name, sealed, strlen(sealed), &text))
        return cn_err_set(err, CN_ECORRUPT,
                          "the secret %s of %s cannot be decrypted with deployed/key; put the key "
                          "back, or set all its secrets anew at once (secret bulk)",
                          name, writer->script->name);
    put_key(&writer->vars, name);
    cn_buf_append_json(&writer->vars, text.data ? (const char *)text.data : "", text.size);
    OPENSSL_cleanse(text.data, text.size);
    cn_buf_fini(&text);
    return 0;
}

static int put_binding(struct writer *writer, const struct cn_json *binding, struct cn_err *err)
{
    const char *type = cn_json_text(binding, "type"), *name = cn_json_text(binding, "name");
    if (!type || !name)
        return cn_err_set(err, CN_EINVALID, "a binding has no name or no type");
    const struct cn_json *text = cn_json_find(binding, "text");
    if (strcmp(type, "plain_text") == 0 && text && text->kind == CN_JSON_STRING) {
        put_key(&writer->vars, name);
        cn_json_write(&writer->vars, text);
        return 0;
    }
    const struct cn_json *json = cn_json_find(binding, "json");
    if (strcmp(type, "json") == 0 && json) {
        put_key(&writer->vars, name);
        cn_json_write(&writer->vars, json);
        return 0;
    }
    if (strcmp(type, "secret_text") == 0)
        return put_secret(writer, name, binding, err);
    if (strcmp(type, "assets") == 0) {
        writer->assets = name;
        return 0;
    }
    for (size_t i = 0; i < CN_ARRAY_COUNT(kinds); i++) {
        if (strcmp(kinds[i].type, type) == 0) {
            put_entry(&writer->lists[i], &kinds[i], binding);
            return 0;
        }
    }
    return cn_err_set(err, CN_EUNSUPPORTED, "the binding %s has the type %s, which cairn has not",
                      name, type);
}

static void put_kinds(struct writer *writer, struct cn_buf *json)
{
    for (size_t i = 0; i < CN_ARRAY_COUNT(kinds); i++) {
        const char *key = kinds[i].key, *dot = strchr(key, '.');
        const char *list = (const char *)writer->lists[i].data;
        int size = (int)writer->lists[i].size;
        if (!size || strcmp(key, "queues.producers") == 0)
            continue;
        if (dot)
            cn_buf_printf(json, ",\"%.*s\":{\"%s\":[%.*s]}", (int)(dot - key), key, dot + 1, size,
                          list);
        else if (key[strlen(key) - 1] == '!')
            cn_buf_printf(json, ",\"%.*s\":%.*s", (int)strlen(key) - 1, key, size, list);
        else
            cn_buf_printf(json, ",\"%s\":[%.*s]", key, size, list);
    }
}

/* Items that are JSON already. */
static void put_items(struct cn_buf *json, const struct cn_depot_texts *texts)
{
    for (size_t i = 0; i < texts->count; i++)
        cn_buf_printf(json, "%s%s", i ? "," : "", texts->items[i]);
}

static void put_queues(struct writer *writer, struct cn_buf *json)
{
    cn_buf_append_str(json, ",\"queues\":{\"producers\":[");
    for (size_t i = 0; i < CN_ARRAY_COUNT(kinds); i++) {
        if (strcmp(kinds[i].key, "queues.producers") == 0)
            cn_buf_append(json, writer->lists[i].data, writer->lists[i].size);
    }
    cn_buf_append_str(json, "],\"consumers\":[");
    put_items(json, &writer->script->consumers);
    cn_buf_append_str(json, "]}");
}

static void put_rules(struct cn_buf *json, const struct cn_json *modules)
{
    bool first = true;
    cn_buf_append_str(json, ",\"rules\":[");
    for (const struct cn_json *module = modules ? modules->first : NULL; module;
         module = module->next) {
        const char *type = cn_json_text(module, "type"), *name = cn_json_text(module, "name");
        if (!type || !name || strcmp(type, "ESModule") == 0 || strcmp(type, "SourceMap") == 0)
            continue;
        cn_buf_printf(json, "%s{\"type\":\"%s\",\"fallthrough\":true,\"globs\":[", first ? "" : ",",
                      type);
        char *glob = cn_sprintf("**/%s", name);
        cn_buf_append_json(json, glob, strlen(glob));
        cn_free(glob);
        cn_buf_append_str(json, "]}");
        first = false;
    }
    cn_buf_append_byte(json, ']');
}

static void put_assets(struct writer *writer, struct cn_buf *json, const struct cn_json *assets)
{
    static const char *const keys[] = {"html_handling", "not_found_handling", "run_worker_first",
                                       "base_path"};
    const struct cn_json *config = cn_json_find(assets, "config");
    cn_buf_append_str(json, ",\"assets\":{\"directory\":\"assets\"");
    if (writer->assets)
        put_text(json, "binding", writer->assets);
    for (size_t i = 0; i < CN_ARRAY_COUNT(keys); i++) {
        const struct cn_json *value = cn_json_find(config, keys[i]);
        if (value && value->kind != CN_JSON_NULL) {
            put_key(json, keys[i]);
            cn_json_write(json, value);
        }
    }
    cn_buf_append_byte(json, '}');
}

static void put_strings(struct cn_buf *json, const struct cn_depot_texts *texts)
{
    for (size_t i = 0; i < texts->count; i++) {
        if (i)
            cn_buf_append_byte(json, ',');
        cn_buf_append_json(json, texts->items[i], strlen(texts->items[i]));
    }
}

/* Where requests come from, and when it runs by itself. */
static void put_triggers(struct writer *writer, struct cn_buf *json)
{
    const struct cn_depot_script *script = writer->script;
    const char *domain = cn_depot_domain(writer->depot);
    cn_buf_append_str(json, ",\"routes\":[");
    put_strings(json, &script->routes);
    for (size_t i = 0; i < script->domains.count; i++) {
        cn_buf_append_str(json, i || script->routes.count ? ",{" : "{");
        put_text(json, "pattern", script->domains.items[i]);
        cn_buf_append_str(json, ",\"custom_domain\":true}");
    }
    cn_buf_append_str(json, "],\"triggers\":{\"crons\":[");
    put_strings(json, &script->crons);
    cn_buf_append_str(json, "]},\"migrations\":[");
    put_items(json, &script->migrations);
    cn_buf_append_byte(json, ']');
    if (!script->subdomain)
        return;
    cn_buf_printf(json, ",\"cairn\":{\"hosts\":[\"%s.localhost\"", script->name);
    if (domain)
        cn_buf_printf(json, ",\"%s.%s\"", script->name, domain);
    cn_buf_append_str(json, "]}");
}

/* Members that mean the same in both. */
static void put_same(struct cn_buf *json, const struct cn_json *version)
{
    static const char *const keys[] = {"compatibility_date", "compatibility_flags", "limits",
                                       "observability", "tail_consumers"};
    for (size_t i = 0; i < CN_ARRAY_COUNT(keys); i++) {
        const struct cn_json *value = cn_json_find(version, keys[i]);
        if (!value || value->kind == CN_JSON_NULL)
            continue;
        put_key(json, keys[i]);
        cn_json_write(json, value);
    }
}

static int write_config(struct writer *writer, const struct cn_json *version, struct cn_buf *json,
                        struct cn_err *err)
{
    const struct cn_json *bindings = cn_json_find(version, "bindings");
    for (const struct cn_json *item = bindings ? bindings->first : NULL; item; item = item->next) {
        int rc = put_binding(writer, item, err);
        if (rc < 0)
            return rc;
    }
    const char *entry = cn_json_text(version, "main");
    cn_buf_append_byte(json, '{');
    put_text(json, "name", writer->script->name);
    if (entry) {
        char *path = cn_sprintf("src/%s", entry);
        put_text(json, "main", path);
        cn_free(path);
        put_rules(json, cn_json_find(version, "modules"));
    }
    put_same(json, version);
    cn_buf_append_str(json, ",\"vars\":{");
    cn_buf_append(json, writer->vars.data, writer->vars.size);
    cn_buf_append_byte(json, '}');
    put_kinds(writer, json);
    put_queues(writer, json);
    const struct cn_json *assets = cn_json_find(version, "assets");
    if (assets && assets->kind == CN_JSON_OBJECT)
        put_assets(writer, json, assets);
    put_triggers(writer, json);
    cn_buf_append_byte(json, '}');
    return 0;
}

void cn_depot_bare_config(struct cn_depot *depot, const struct cn_depot_script *script,
                          struct cn_buf *json)
{
    struct writer writer = {.depot = depot, .script = script};
    cn_buf_append_byte(json, '{');
    put_text(json, "name", script->name);
    put_text(json, "main", "none");
    put_triggers(&writer, json);
    cn_buf_append_byte(json, '}');
}

int cn_depot_config(struct cn_depot *depot, const struct cn_depot_script *script,
                    const char *version, struct cn_buf *json, struct cn_err *err)
{
    struct cn_json *file = cn_depot_read_version(depot, version, err);
    if (!file)
        return err ? err->code : CN_ECORRUPT;
    struct writer writer = {.depot = depot, .script = script};
    int rc = write_config(&writer, file, json, err);
    for (size_t i = 0; i < CN_ARRAY_COUNT(kinds); i++)
        cn_buf_fini(&writer.lists[i]);
    OPENSSL_cleanse(writer.vars.data, writer.vars.size);
    cn_buf_fini(&writer.vars);
    cn_json_free(file);
    return rc;
}
