/* SPDX-License-Identifier: Apache-2.0 */
#include "deploy/deploy_env.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "assets/assets.h"
#include "base/assert.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/map.h"
#include "base/mem.h"
#include "config/compat.h"
#include "config/config.h"
#include "config/confnode.h"
#include "config/service_config.h"
#include "object/node.h"
#include "project/project.h"
#include "service/cache/cache.h"
#include "service/def.h"
#include "worker/script.h"

#define SUBREQUESTS_MAX 10000 /* of an invocation, unless the configuration says otherwise */

/* ---- env ---------------------------------------------------------------------------- */

static void append_version_metadata(struct cn_buf *json, const struct cn_project *project)
{
    const struct cn_bundle *bundle = &project->bundle;
    uint64_t high = cn_hash_bytes(1, bundle->source.data, bundle->source.size);
    uint64_t low = cn_hash_bytes(2, bundle->source.data, bundle->source.size);
    char time_text[40];
    struct tm tm;
    time_t now = time(NULL);
    strftime(time_text, sizeof(time_text), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &tm));
    if (project->version) {
        cn_buf_printf(json, "{\"id\":\"%s\",\"tag\":\"\",\"timestamp\":\"%s\"}", project->version,
                      time_text);
        return;
    }
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
        append_version_metadata(&json, project);
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
    if (config->server.worker) {
        cn_buf_append_str(&json, ",\"worker\":");
        cn_buf_append_json(&json, config->server.worker, strlen(config->server.worker));
    }
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

/* ---- services: other workers -------------------------------------------------------- */

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

static bool is_here(const struct cn_project *projects, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(projects[i].config->name, name) == 0)
            return true;
    return false;
}

/* `hosted`: it came by upload, where the platform refuses it too. */
static int missing_service(struct cn_config *config, size_t index, const char *name, bool hosted,
                           struct cn_err *err)
{
    char *place = cn_deploy_entry_place(config, "services", index);
    const char *binding = config->services.items[index].binding;
    int rc = 0;
    if (!hosted)
        cn_config_warn(config,
                       "%s: services: no project of this server is named \"%s\": calls of the "
                       "binding %s fail (serve both: cairn dev . ../%s, or wherever it is)",
                       place, name, binding, name);
    else
        rc = cn_err_set(err, CN_ENOTFOUND,
                        "%s: services: no project of this server is named \"%s\" (binding %s); "
                        "deploy it first",
                        place, name, binding);
    cn_free(place);
    return rc;
}

int cn_deploy_check_services(const struct cn_project *projects, size_t count, size_t index,
                             struct cn_err *err)
{
    struct cn_config *config = projects[index].config;
    int rc = 0;
    for (size_t k = 0; k < config->services.count && rc == 0; k++) {
        char *name = cn_deploy_service_name(&config->services.items[k]);
        if (!is_here(projects, count, name))
            rc = missing_service(config, k, name, projects[index].version != NULL, err);
        cn_free(name);
    }
    return rc;
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
    script->has_source = config->main || config->server.worker;
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
    char *base = assets->base_path ? cn_asset_base(assets->base_path) : NULL;
    if (assets->base_path && !base)
        return cn_err_set(err, CN_EINVALID,
                          "\"assets.base_path\" must be a path, as \"/docs/\", not \"%.80s\"",
                          assets->base_path);
    options.base = base;
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
    cn_free(base);
    return rc;
}

/* ---- bindings ----------------------------------------------------------------------- */

static void bind_objects(struct cn_bindings *list)
{
    const struct cn_config *config = list->config;
    for (size_t i = 0; i < config->durable_objects.bindings.count; i++) {
        cn_binding_begin(list, config->durable_objects.bindings.items[i].name,
                         "durable_object_namespace");
        cn_buf_printf(list->json, ",\"ns\":%u}", list->script->namespaces[i]->id);
    }
}

static void bind_workers(struct cn_bindings *list)
{
    const struct cn_config *config = list->config;
    for (size_t i = 0; i < config->services.count; i++) {
        const struct cn_config_service *service = &config->services.items[i];
        cn_binding_begin(list, service->binding, "service");
        char *worker = cn_deploy_service_name(service);
        cn_binding_member(list, "worker", worker);
        cn_free(worker);
        if (service->entrypoint && strcmp(service->entrypoint, "default") != 0)
            cn_binding_member(list, "entrypoint", service->entrypoint);
        if (service->props) {
            cn_buf_append_str(list->json, ",\"props\":");
            cn_confnode_write_json(service->props, list->json);
        }
        cn_binding_end(list);
    }
}

static void bind_assets(struct cn_bindings *list)
{
    const struct cn_config *config = list->config;
    if (config->assets.binding && config->main) {
        cn_binding_begin(list, config->assets.binding, "assets");
        cn_binding_end(list);
    }
}

static void bind_site(struct cn_bindings *list)
{
    const struct cn_config *config = list->config;
    if (config->site.bucket) {
        cn_binding_begin(list, "__STATIC_CONTENT", "site");
        cn_binding_end(list);
    }
}

/* What --allow-missing lets a project begin without: its use throws. */
static void bind_missing(struct cn_bindings *list)
{
    const struct cn_config *config = list->config;
    for (size_t i = 0; i < config->missing.count; i++) {
        const struct cn_config_missing *missing = &config->missing.items[i];
        if (!missing->binding)
            continue;
        cn_binding_begin(list, missing->binding, "missing");
        cn_binding_member(list, "key", missing->key);
        cn_binding_end(list);
    }
}

bool cn_deploy_wants_node(const struct cn_config *config)
{
    for (size_t i = 0; cn_service_table[i]; i++) {
        const struct cn_service_config *service = cn_service_table[i]->config;
        if (service && service->wants_node && service->wants_node(config->entries[i]))
            return true;
    }
    return config->durable_objects.bindings.count || config->migrations.count ||
           config->exports.count;
}

static int bind_services(struct cn_bindings *list, struct cn_err *err)
{
    for (size_t i = 0; cn_service_table[i]; i++) {
        const struct cn_service_config *service = cn_service_table[i]->config;
        list->service = cn_service_table[i]->name;
        int rc = service && service->bind ? service->bind(list, list->config->entries[i], err) : 0;
        if (rc < 0)
            return rc;
    }
    list->service = NULL;
    return 0;
}

/* All bindings, each as an object of the list. */
static int bind_all(struct cn_bindings *list, struct cn_err *err)
{
    bind_objects(list);
    bind_workers(list);
    int rc = bind_services(list, err);
    if (rc < 0)
        return rc;
    bind_assets(list);
    bind_site(list);
    bind_missing(list);
    return 0;
}

char *cn_deploy_options(const struct cn_config *config, struct cn_script *script, bool development,
                        struct cn_node *node, struct cn_err *err)
{
    struct cn_buf json = {0};
    struct cn_bindings list = {config, script, node, .json = &json};
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
    cn_buf_printf(&json, ",\"bundled\":%s", config->no_bundle ? "false" : "true");
    cn_binding_member(&list, "worker", script->name);
    if (development)
        cn_buf_append_str(&json, ",\"development\":true");
    cn_buf_append_str(&json, ",\"classes\":{");
    for (size_t i = 0; i < script->class_count; i++) {
        if (i)
            cn_buf_append_byte(&json, ',');
        cn_buf_append_json(&json, script->classes[i].name, strlen(script->classes[i].name));
        cn_buf_printf(&json, ":%u", script->classes[i].ns->id);
    }
    cn_buf_append_str(&json, "},\"bindings\":[");
    if (bind_all(&list, err) < 0) {
        cn_buf_fini(&json);
        return NULL;
    }
    cn_buf_append_byte(&json, ']');
    if (config->server.limits.object_block_ms)
        cn_buf_printf(&json, ",\"objectBlockMs\":%" PRId64, config->server.limits.object_block_ms);
    cn_buf_printf(&json, ",\"subrequests\":%" PRId64,
                  config->limits.subrequests ? config->limits.subrequests : SUBREQUESTS_MAX);
    cn_buf_printf(&json, ",\"deleteAllDeletesAlarm\":%s}",
                  cn_compat_is_on("delete_all_deletes_alarm", date,
                                  config->compatibility_flags.items,
                                  config->compatibility_flags.count)
                      ? "true"
                      : "false");
    cn_buf_text(&json);
    return (char *)cn_buf_take(&json);
}
