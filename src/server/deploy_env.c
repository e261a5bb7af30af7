/* SPDX-License-Identifier: Apache-2.0 */
#include "server/deploy_env.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "analytics/points.h"
#include "assets/assets.h"
#include "base/assert.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/diag.h"
#include "base/err.h"
#include "base/map.h"
#include "base/mem.h"
#include "object/node.h"
#include "server/compat.h"
#include "server/config.h"
#include "server/confnode.h"
#include "server/project.h"
#include "service/cache/cache.h"
#include "service/service.h"
#include "store/catalog.h"
#include "store/store.h"
#include "worker/script.h"

#define SUBREQUESTS_MAX 10000 /* of an invocation, unless the configuration says otherwise */

/* ---- env ---------------------------------------------------------------------------- */

static void append_version_metadata(struct cn_buf *json, const struct cn_bundle *bundle)
{
    uint64_t high = cn_hash_bytes(1, bundle->source.data, bundle->source.size);
    uint64_t low = cn_hash_bytes(2, bundle->source.data, bundle->source.size);
    char time_text[40];
    struct tm tm;
    time_t now = time(NULL);
    strftime(time_text, sizeof(time_text), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &tm));
    cn_buf_printf(
        json, "{\"id\":\"%08x-%04x-4%03x-8%03x-%012llx\",\"tag\":\"\",\"timestamp\":\"%s\"}",
        (unsigned)(high >> 32), (unsigned)(high >> 16 & 0xffff), (unsigned)(high & 0xfff),
        (unsigned)(low >> 48 & 0xfff), (unsigned long long)(low & 0xffffffffffff), time_text);
}

char *cn_deploy_env(const struct cn_project *project)
{
    const struct cn_config *config = project->config;
    struct cn_buf json = {0};
    cn_buf_append_byte(&json, '{');
    for (size_t i = 0; i < config->vars.count; i++) {
        const struct cn_config_var *var = &config->vars.items[i];
        if (i)
            cn_buf_append_byte(&json, ',');
        cn_buf_append_json(&json, var->name, strlen(var->name));
        cn_buf_append_byte(&json, ':');
        if (var->kind == CN_VAR_JSON)
            cn_buf_append(&json, var->text, var->length);
        else
            cn_buf_append_json(&json, var->text, var->length);
    }
    if (config->version_metadata.binding) {
        if (config->vars.count)
            cn_buf_append_byte(&json, ',');
        cn_buf_append_json(&json, config->version_metadata.binding,
                           strlen(config->version_metadata.binding));
        cn_buf_append_byte(&json, ':');
        append_version_metadata(&json, &project->bundle);
    }
    cn_buf_append_byte(&json, '}');
    cn_buf_text(&json);
    return (char *)cn_buf_take(&json);
}

static void append_strings(struct cn_buf *json, const struct cn_strings *strings, bool *first)
{
    for (size_t i = 0; i < strings->count; i++) {
        cn_buf_append_str(json, *first ? "" : ",");
        cn_buf_append_json(json, strings->items[i], strlen(strings->items[i]));
        *first = false;
    }
}

char *cn_deploy_about(const struct cn_project *project)
{
    const struct cn_config *config = project->config;
    const struct cn_confnode *manifest = project->bundle.manifest;
    const struct cn_confnode *exports = manifest ? cn_confnode_find(manifest, "exports") : NULL;
    struct cn_buf json = {0};
    bool first = true;
    cn_buf_append_str(&json, "{\"main\":");
    if (config->main)
        cn_buf_append_json(&json, config->main, strlen(config->main));
    else
        cn_buf_append_str(&json, "null");
    cn_buf_append_str(&json, ",\"routes\":[");
    for (size_t i = 0; i < config->routes.count; i++) {
        const char *pattern = config->routes.items[i].pattern;
        cn_buf_append_str(&json, first ? "" : ",");
        cn_buf_append_json(&json, pattern, strlen(pattern));
        first = false;
    }
    append_strings(&json, &config->server.hosts, &first);
    cn_buf_append_str(&json, "],\"exports\":");
    if (exports && exports->kind == CN_CONF_ARRAY)
        cn_confnode_write_json(exports, &json);
    else
        cn_buf_append_str(&json, "null");
    cn_buf_printf(&json, ",\"deployedAt\":%" PRId64 "}", cn_clock_wall_ms(cn_clock_system()));
    cn_buf_text(&json);
    return (char *)cn_buf_take(&json);
}

/* ---- services ----------------------------------------------------------------------- */

char *cn_deploy_service_name(const struct cn_config_service *service)
{
    return service->environment ? cn_sprintf("%s-%s", service->service, service->environment)
                                : cn_strdup(service->service);
}

char *cn_deploy_entry_place(const struct cn_config *config, const char *key, size_t index)
{
    const struct cn_confnode *table = config->root, *list = NULL;
    const struct cn_confnode *environments = config->env ? cn_confnode_find(table, "env") : NULL;
    if (environments && environments->kind == CN_CONF_TABLE) {
        const struct cn_confnode *own = cn_confnode_find(environments, config->env);
        if (own && own->kind == CN_CONF_TABLE)
            list = cn_confnode_find(own, key);
    }
    if (!list)
        list = cn_confnode_find(table, key);
    if (!list || list->kind != CN_CONF_ARRAY || index >= list->count)
        return cn_strdup(config->path);
    return cn_sprintf("%s:%d:%d", config->path, list->items[index]->line,
                      list->items[index]->column);
}

int cn_deploy_check_services(const struct cn_project *projects, size_t count, struct cn_err *err)
{
    for (size_t i = 0; i < count; i++) {
        const struct cn_config *config = projects[i].config;
        for (size_t k = 0; k < config->services.count; k++) {
            const struct cn_config_service *service = &config->services.items[k];
            char *name = cn_deploy_service_name(service);
            bool found = false;
            for (size_t j = 0; j < count && !found; j++)
                found = strcmp(projects[j].config->name, name) == 0;
            char *place = found ? NULL : cn_deploy_entry_place(config, "services", k);
            if (!found)
                cn_err_set(err, CN_ENOTFOUND,
                           "%s: services: no project of this server is named \"%s\" (binding "
                           "%s); name its folder on the command line too",
                           place, name, service->binding);
            cn_free(name);
            cn_free(place);
            if (!found)
                return err->code;
        }
    }
    return 0;
}

/* ---- queue consumers ---------------------------------------------------------------- */

static int queue_namespace(struct cn_node *node, const char *queue, struct cn_namespace **ns,
                           struct cn_err *err)
{
    char *name = cn_sprintf("$queue/%s", queue);
    int rc = cn_node_namespace(node, name, ns, err);
    cn_free(name);
    return rc;
}

int cn_deploy_consumers(struct cn_script *script, const struct cn_config *config,
                        struct cn_node *node, struct cn_err *err)
{
    size_t count = config->queues.consumers.count;
    if (!count)
        return 0;
    if (!node)
        return cn_err_set(err, CN_EUNSUPPORTED,
                          "a queue consumer was added; restart the server to use it");
    script->consumers = cn_alloc_zero(count * sizeof(*script->consumers));
    for (size_t i = 0; i < count; i++) {
        const struct cn_config_consumer *from = &config->queues.consumers.items[i];
        struct cn_script_consumer to = {
            .batch_count = from->max_batch_size_set ? (unsigned)from->max_batch_size : 10,
            .timeout_ms =
                from->max_batch_timeout_set ? (unsigned)from->max_batch_timeout * 1000 : 5000,
            .max_retries = from->max_retries_set ? (unsigned)from->max_retries : 3,
            .max_concurrency = from->max_concurrency_set ? (unsigned)from->max_concurrency : 0,
            .retry_delay_s = from->retry_delay,
            .pulls = from->type && strcmp(from->type, "http_pull") == 0,
            .visibility_ms = (unsigned)from->visibility_timeout_ms,
        };
        int rc = queue_namespace(node, from->queue, &to.ns, err);
        if (rc == 0 && from->dead_letter_queue)
            rc = queue_namespace(node, from->dead_letter_queue, &to.dead_letters, err);
        if (rc < 0)
            return rc;
        script->consumers[script->consumer_count++] = to;
    }
    return 0;
}

/* ---- cron triggers ------------------------------------------------------------------ */

int cn_deploy_crons(struct cn_script *script, const struct cn_config *config, struct cn_node *node,
                    struct cn_err *err)
{
    const struct cn_strings *crons = &config->triggers.crons;
    if (!crons->count)
        return 0;
    if (!node)
        return cn_err_set(err, CN_EUNSUPPORTED,
                          "cron triggers were added; restart the server to use them");
    script->crons = cn_alloc_zero(crons->count * sizeof(*script->crons));
    for (size_t i = 0; i < crons->count; i++)
        script->crons[script->cron_count++] = cn_strdup(crons->items[i]);
    char *name = cn_sprintf("$cron/%s", config->name);
    int rc = cn_node_namespace(node, name, &script->cron_ns, err);
    cn_free(name);
    return rc;
}

static bool has_crons(const struct cn_config *config)
{
    return config->triggers.crons.count > 0;
}

/* ---- assets ------------------------------------------------------------------------- */

char *cn_deploy_assets_folder(const struct cn_config *config)
{
    const char *folder = config->assets.directory;
    if (!folder)
        return NULL;
    return *folder == '/' ? cn_strdup(folder) : cn_sprintf("%s/%s", config->dir, folder);
}

int cn_deploy_assets(struct cn_script *script, const struct cn_config *config, struct cn_err *err)
{
    const struct cn_config_assets *assets = &config->assets;
    script->has_source = config->main != NULL;
    if (!assets->directory)
        return 0;
    static const char *const html[] = {"auto-trailing-slash", "force-trailing-slash",
                                       "drop-trailing-slash", "none"};
    static const char *const missing[] = {"none", "404-page", "single-page-application"};
    struct cn_assets_options options = {
        .has_worker = script->has_source,
        .pages = config->pages_build_output_dir != NULL,
        .navigation =
            cn_compat_is_on("assets_navigation_prefers_asset_serving", config->compatibility_date,
                            config->compatibility_flags.items, config->compatibility_flags.count),
    };
    for (unsigned i = 0; assets->html_handling && i < CN_ARRAY_COUNT(html); i++) {
        if (strcmp(assets->html_handling, html[i]) == 0)
            options.html = (enum cn_asset_html)i;
    }
    for (unsigned i = 0; assets->not_found_handling && i < CN_ARRAY_COUNT(missing); i++) {
        if (strcmp(assets->not_found_handling, missing[i]) == 0)
            options.missing = (enum cn_asset_missing)i;
    }
    const struct cn_confnode *first = assets->run_worker_first;
    const char **rules = NULL;
    if (first && first->kind == CN_CONF_BOOL) {
        options.worker_first = first->boolean;
    } else if (first) {
        rules = cn_alloc((first->count + 1) * sizeof(*rules));
        for (size_t i = 0; i < first->count; i++)
            rules[i] = first->items[i]->text;
        options.first = rules;
        options.first_count = first->count;
    }
    char *folder = cn_deploy_assets_folder(config);
    options.directory = folder;
    options.project = config->home;
    options.copy_fd = cn_cache_file();
    int rc = cn_assets_load(&options, &script->assets, err);
    cn_free(folder);
    cn_free(rules);
    return rc;
}

/* ---- bindings ----------------------------------------------------------------------- */

/* Begins {"name":NAME,"type":TYPE in the list of bindings; the caller ends it with '}'. */
static void begin_binding(struct cn_buf *json, const char *name, const char *type)
{
    if (json->data[json->size - 1] != '[')
        cn_buf_append_byte(json, ',');
    cn_buf_append_str(json, "{\"name\":");
    cn_buf_append_json(json, name, strlen(name));
    cn_buf_printf(json, ",\"type\":\"%s\"", type);
}

struct binding_list {
    struct cn_buf *json;
    struct cn_script *script;
    struct cn_node *node; /* NULL: none */
};

static int bind_objects(struct binding_list *list, const struct cn_config *config,
                        struct cn_err *err)
{
    (void)err;
    for (size_t i = 0; i < config->durable_objects.bindings.count; i++) {
        begin_binding(list->json, config->durable_objects.bindings.items[i].name,
                      "durable_object_namespace");
        cn_buf_printf(list->json, ",\"ns\":%u}", list->script->namespaces[i]->id);
    }
    return 0;
}

static void append_member(struct cn_buf *json, const char *key, const char *value)
{
    cn_buf_printf(json, ",\"%s\":", key);
    cn_buf_append_json(json, value, strlen(value));
}

static int bind_workers(struct binding_list *list, const struct cn_config *config,
                        struct cn_err *err)
{
    (void)err;
    for (size_t i = 0; i < config->services.count; i++) {
        const struct cn_config_service *service = &config->services.items[i];
        begin_binding(list->json, service->binding, "service");
        char *worker = cn_deploy_service_name(service);
        append_member(list->json, "worker", worker);
        cn_free(worker);
        if (service->entrypoint && strcmp(service->entrypoint, "default") != 0)
            append_member(list->json, "entrypoint", service->entrypoint);
        if (service->props) {
            cn_buf_append_str(list->json, ",\"props\":");
            cn_confnode_write_json(service->props, list->json);
        }
        cn_buf_append_byte(list->json, '}');
    }
    return 0;
}

static bool has_objects(const struct cn_config *config)
{
    return config->durable_objects.bindings.count || config->migrations.count ||
           config->exports.count;
}

/* The server has begun without a data directory. */
static int refuse_new(const char *binding, struct cn_err *err)
{
    return cn_err_set(err, CN_EUNSUPPORTED,
                      "the binding %s was added; restart the server to use it", binding);
}

/* Writes a binding to the namespace "$service/id" (service/service.h), which is made if it does not
 * exist; what else the prelude should know follows, and then '}'. */
static int begin_service(struct binding_list *list, const char *binding, const char *type,
                         const char *service, const char *id, struct cn_err *err)
{
    if (!list->node)
        return refuse_new(binding, err);
    struct cn_namespace *ns;
    uint32_t known;
    char *name = cn_sprintf("$%s/%s", service, id);
    struct cn_catalog *catalog = cn_store_catalog(cn_node_store(list->node));
    int rc = cn_catalog_namespace_find(catalog, name, strlen(name), &known, err);
    bool is_new = rc == 0;
    if (rc >= 0)
        rc = cn_node_namespace(list->node, name, &ns, err);
    cn_free(name);
    if (rc < 0)
        return rc;
    if (is_new)
        cn_info("%s: %s \"%s\" is new here", binding, service, id);
    begin_binding(list->json, binding, type);
    cn_buf_printf(list->json, ",\"ns\":%u", ns->id);
    cn_script_grant(list->script, ns->id);
    return 0;
}

static bool has_d1(const struct cn_config *config)
{
    return config->d1_databases.count > 0;
}

static int bind_d1(struct binding_list *list, const struct cn_config *config, struct cn_err *err)
{
    for (size_t i = 0; i < config->d1_databases.count; i++) {
        const struct cn_config_d1 *d1 = &config->d1_databases.items[i];
        char *id = cn_config_d1_id(config, d1);
        int rc = begin_service(list, d1->binding, "d1", "d1", id, err);
        cn_free(id);
        if (rc < 0)
            return rc;
        if (d1->database_name)
            append_member(list->json, "title", d1->database_name);
        cn_buf_append_byte(list->json, '}');
    }
    return 0;
}

static bool has_kv(const struct cn_config *config)
{
    return config->kv_namespaces.count > 0;
}

static int bind_kv(struct binding_list *list, const struct cn_config *config, struct cn_err *err)
{
    for (size_t i = 0; i < config->kv_namespaces.count; i++) {
        const struct cn_config_kv *kv = &config->kv_namespaces.items[i];
        char *id = cn_config_kv_id(config, kv);
        int rc = begin_service(list, kv->binding, "kv_namespace", "kv", id, err);
        cn_free(id);
        if (rc < 0)
            return rc;
        cn_buf_append_byte(list->json, '}');
    }
    return 0;
}

static bool has_queues(const struct cn_config *config)
{
    return config->queues.producers.count || config->queues.consumers.count;
}

static int bind_queues(struct binding_list *list, const struct cn_config *config,
                       struct cn_err *err)
{
    for (size_t i = 0; i < config->queues.producers.count; i++) {
        const struct cn_config_producer *producer = &config->queues.producers.items[i];
        int rc = begin_service(list, producer->binding, "queue", "queue", producer->queue, err);
        if (rc < 0)
            return rc;
        cn_buf_printf(list->json, ",\"delay\":%lld}", (long long)producer->delivery_delay);
    }
    return 0;
}

static bool has_r2(const struct cn_config *config)
{
    return config->r2_buckets.count > 0;
}

static int bind_r2(struct binding_list *list, const struct cn_config *config, struct cn_err *err)
{
    for (size_t i = 0; i < config->r2_buckets.count; i++) {
        const struct cn_config_r2 *bucket = &config->r2_buckets.items[i];
        char *name = bucket->bucket_name ? cn_strdup(bucket->bucket_name)
                                         : cn_sprintf("%s/%s", config->name, bucket->binding);
        int rc = begin_service(list, bucket->binding, "r2_bucket", "r2", name, err);
        cn_free(name);
        if (rc < 0)
            return rc;
        cn_buf_append_byte(list->json, '}');
    }
    return 0;
}

static bool has_ratelimits(const struct cn_config *config)
{
    return config->ratelimits.count > 0;
}

static int bind_ratelimits(struct binding_list *list, const struct cn_config *config,
                           struct cn_err *err)
{
    for (size_t i = 0; i < config->ratelimits.count; i++) {
        const struct cn_config_ratelimit *limit = &config->ratelimits.items[i];
        int rc =
            begin_service(list, limit->name, "ratelimit", "ratelimit", limit->namespace_id, err);
        if (rc < 0)
            return rc;
        cn_buf_printf(list->json, ",\"limit\":%lld,\"period\":%lld}",
                      (long long)limit->simple.limit, (long long)limit->simple.period);
    }
    return 0;
}

static bool has_datasets(const struct cn_config *config)
{
    return config->analytics_engine_datasets.count > 0;
}

static int bind_datasets(struct binding_list *list, const struct cn_config *config,
                         struct cn_err *err)
{
    for (size_t i = 0; i < config->analytics_engine_datasets.count; i++) {
        const struct cn_config_dataset *entry = &config->analytics_engine_datasets.items[i];
        uint32_t number;
        if (!list->node)
            return refuse_new(entry->binding, err);
        struct cn_services *services = cn_node_data(list->node);
        int rc = cn_points_dataset(services->points,
                                   entry->dataset ? entry->dataset : entry->binding, &number, err);
        if (rc < 0)
            return cn_err_context(err, "analytics_engine_datasets: %s", entry->binding);
        begin_binding(list->json, entry->binding, "analytics_engine");
        append_member(list->json, "title", entry->dataset ? entry->dataset : entry->binding);
        cn_buf_printf(list->json, ",\"dataset\":%u}", number);
    }
    return 0;
}

static int bind_assets(struct binding_list *list, const struct cn_config *config,
                       struct cn_err *err)
{
    (void)err;
    if (config->assets.binding && config->main) {
        begin_binding(list->json, config->assets.binding, "assets");
        cn_buf_append_byte(list->json, '}');
    }
    return 0;
}

/* The value of one of the project's variables, or NULL. */
static const char *find_var(const struct cn_config *config, const char *name)
{
    for (size_t i = 0; name && i < config->vars.count; i++)
        if (strcmp(config->vars.items[i].name, name) == 0 &&
            config->vars.items[i].kind != CN_VAR_JSON)
            return config->vars.items[i].text;
    return NULL;
}

/* The way to another server is told to the prelude alone; without one the binding says so. */
static int bind_ai(struct binding_list *list, const struct cn_config *config, struct cn_err *err)
{
    if (!config->ai.binding)
        return 0;
    begin_binding(list->json, config->ai.binding, "ai");
    if (config->server.ai.url) {
        size_t size = strlen(config->server.ai.url);
        while (size && config->server.ai.url[size - 1] == '/')
            size--;
        char *url = cn_strndup(config->server.ai.url, size);
        append_member(list->json, "url", url);
        cn_free(url);
        const char *key = getenv("CAIRN_AI_KEY");
        if (!key && config->server.ai.key) {
            key = find_var(config, config->server.ai.key);
            if (!key)
                return cn_err_set(err, CN_ENOTFOUND,
                                  "[cairn.ai]: the project has no variable or secret named %s",
                                  config->server.ai.key);
        }
        if (key)
            append_member(list->json, "key", key);
        if (config->server.ai.models) {
            cn_buf_append_str(list->json, ",\"models\":");
            cn_confnode_write_json(config->server.ai.models, list->json);
        }
    }
    cn_buf_append_byte(list->json, '}');
    return 0;
}

/* By variables, as wrangler has them, or by the configuration. */
static const char *find_database(const struct cn_config_hyperdrive *hyperdrive)
{
    static const char *const prefixes[] = {"CAIRN_HYPERDRIVE_",
                                           "CLOUDFLARE_HYPERDRIVE_LOCAL_CONNECTION_STRING_",
                                           "WRANGLER_HYPERDRIVE_LOCAL_CONNECTION_STRING_"};
    const char *text = NULL;
    for (size_t i = 0; i < CN_ARRAY_COUNT(prefixes) && !text; i++) {
        char *name = cn_sprintf("%s%s", prefixes[i], hyperdrive->binding);
        text = getenv(name);
        cn_free(name);
    }
    return text ? text : hyperdrive->local_connection_string;
}

static int bind_hyperdrive(struct binding_list *list, const struct cn_config *config,
                           struct cn_err *err)
{
    for (size_t i = 0; i < config->hyperdrive.count; i++) {
        const struct cn_config_hyperdrive *hyperdrive = &config->hyperdrive.items[i];
        const char *text = find_database(hyperdrive);
        if (text && strncmp(text, "postgres://", 11) != 0 &&
            strncmp(text, "postgresql://", 13) != 0 && strncmp(text, "mysql://", 8) != 0)
            return cn_err_set(err, CN_EINVALID,
                              "hyperdrive: the connection string of %s must begin with "
                              "postgres://, postgresql:// or mysql://",
                              hyperdrive->binding);
        begin_binding(list->json, hyperdrive->binding, "hyperdrive");
        if (text)
            append_member(list->json, "url", text);
        cn_buf_append_byte(list->json, '}');
    }
    return 0;
}

static int bind_site(struct binding_list *list, const struct cn_config *config, struct cn_err *err)
{
    (void)err;
    if (config->site.bucket) {
        begin_binding(list->json, "__STATIC_CONTENT", "site");
        cn_buf_append_byte(list->json, '}');
    }
    return 0;
}

/* What --allow-missing lets a project begin without: its use throws. */
static int bind_missing(struct binding_list *list, const struct cn_config *config,
                        struct cn_err *err)
{
    (void)err;
    for (size_t i = 0; i < config->missing.count; i++) {
        const struct cn_config_missing *missing = &config->missing.items[i];
        if (!missing->binding)
            continue;
        begin_binding(list->json, missing->binding, "missing");
        append_member(list->json, "key", missing->key);
        cn_buf_append_byte(list->json, '}');
    }
    return 0;
}

/* clang-format off */
/* A line per kind of binding: whether a project needs the node (its data directory) for it, and
 * what writes its bindings, which makeBinding() of the prelude turns into objects. */
static const struct {
    bool (*wants_node)(const struct cn_config *config); /* NULL: never */
    int (*bind)(struct binding_list *list, const struct cn_config *config, struct cn_err *err); /* NULL: none */
} binders[] = {
    {has_objects, bind_objects},
    {NULL, bind_workers},
    {has_d1, bind_d1},
    {has_kv, bind_kv},
    {has_queues, bind_queues},
    {has_r2, bind_r2},
    {has_ratelimits, bind_ratelimits},
    {has_datasets, bind_datasets},
    {has_crons, NULL},
    {NULL, bind_assets},
    {NULL, bind_site},
    {NULL, bind_ai},
    {NULL, bind_hyperdrive},
    {NULL, bind_missing},
};
/* clang-format on */

bool cn_deploy_wants_node(const struct cn_config *config)
{
    for (size_t i = 0; i < CN_ARRAY_COUNT(binders); i++) {
        if (binders[i].wants_node && binders[i].wants_node(config))
            return true;
    }
    return false;
}

char *cn_deploy_options(const struct cn_config *config, struct cn_script *script,
                        struct cn_node *node, struct cn_err *err)
{
    struct cn_buf json = {0};
    struct binding_list list = {&json, script, node};
    cn_buf_append_str(&json, "{\"compatibilityDate\":");
    const char *date = config->compatibility_date ? config->compatibility_date : "";
    cn_buf_append_json(&json, date, strlen(date));
    cn_buf_append_str(&json, ",\"compatibilityFlags\":{");
    const struct cn_compat_flag *flag;
    for (size_t i = 0; (flag = cn_compat_at(i)); i++) {
        bool on =
            cn_compat_is_on(flag->enable, config->compatibility_date,
                            config->compatibility_flags.items, config->compatibility_flags.count);
        cn_buf_printf(&json, "%s\"%s\":%s", i ? "," : "", flag->enable, on ? "true" : "false");
    }
    cn_buf_append_byte(&json, '}');
    append_member(&json, "worker", script->name);
    cn_buf_append_str(&json, ",\"classes\":{");
    for (size_t i = 0; i < script->class_count; i++) {
        if (i)
            cn_buf_append_byte(&json, ',');
        cn_buf_append_json(&json, script->classes[i].name, strlen(script->classes[i].name));
        cn_buf_printf(&json, ":%u", script->classes[i].ns->id);
    }
    cn_buf_append_str(&json, "},\"bindings\":[");
    for (size_t i = 0; i < CN_ARRAY_COUNT(binders); i++) {
        if (binders[i].bind && binders[i].bind(&list, config, err) < 0) {
            cn_buf_fini(&json);
            return NULL;
        }
    }
    cn_buf_append_byte(&json, ']');
    if (config->server.limits.object_block_ms)
        cn_buf_printf(&json, ",\"objectBlockMs\":%" PRId64, config->server.limits.object_block_ms);
    cn_buf_printf(&json, ",\"subrequests\":%" PRId64,
                  config->limits.subrequests ? config->limits.subrequests : SUBREQUESTS_MAX);
    if (config->tail_consumers.count)
        cn_buf_append_str(&json, ",\"tailed\":true");
    cn_buf_printf(&json, ",\"deleteAllDeletesAlarm\":%s}",
                  cn_compat_is_on("delete_all_deletes_alarm", date,
                                  config->compatibility_flags.items,
                                  config->compatibility_flags.count)
                      ? "true"
                      : "false");
    cn_buf_text(&json);
    return (char *)cn_buf_take(&json);
}
