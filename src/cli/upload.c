/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/upload.h"

#include <stdio.h>
#include <string.h>

#include "assets/assets.h"
#include "base/assert.h"
#include "base/mem.h"
#include "cli/print.h"
#include "cli/resource.h"
#include "config/config.h"
#include "config/confnode.h"
#include "config/files.h"
#include "deploy/deploy_env.h"
#include "v4/depot.h"

#define RULES_SIZE_MAX (1u << 20)

/* --- what cannot be uploaded ----------------------------------------------------------------- */

static int check_project(const struct cn_config *config, struct cn_err *err)
{
    if (config->server.modules && config->server.modules->count)
        return cn_err_set(err, CN_EUNSUPPORTED,
                          "%s: objects in C ([cairn.modules]) cannot be uploaded: a module is "
                          "machine code with all the rights of the server; put the project on the "
                          "server's disk and serve it from there",
                          config->name);
    for (size_t i = 0; i < config->exports.count; i++) {
        if (strcmp(config->exports.items[i].type, "durable-object") == 0)
            return cn_err_set(err, CN_EUNSUPPORTED,
                              "%s: `exports` of Durable Objects cannot be uploaded; write them as "
                              "`migrations`",
                              config->name);
    }
    if (!config->main && !config->assets.directory)
        return cn_err_set(err, CN_EINVALID, "%s: the project has neither `main` nor `assets`",
                          config->name);
    return 0;
}

static int load_assets(struct cn_upload *upload, struct cn_err *err)
{
    const struct cn_config *config = upload->project.config;
    char *folder = config->site.bucket ? NULL : cn_deploy_assets_folder(config);
    if (!folder)
        return 0; /* files of a site go to KV: upload_site.c */
    struct cn_assets_options options = {.directory = folder,
                                        .project = config->home,
                                        .has_worker = config->main != NULL,
                                        .pages = config->pages_build_output_dir != NULL,
                                        .copy_fd = -1};
    int rc = cn_assets_load(&options, &upload->assets, err);
    cn_free(folder);
    return rc;
}

int cn_upload_prepare(struct cn_upload *upload, const struct cn_upload_options *options,
                      struct cn_err *err)
{
    *upload = (struct cn_upload){.options = options};
    int rc = cn_bundler_init(&upload->bundler, err);
    if (rc == 0)
        rc = cn_project_open(&upload->project, options->path ? options->path : ".",
                             &options->project, err);
    if (rc < 0)
        return rc;
    struct cn_config *config = upload->project.config;
    if (options->remote.name) {
        cn_free(config->name_owned);
        config->name = config->name_owned = cn_strdup(options->remote.name);
    }
    struct cn_buf lines = {0};
    cn_project_tell(&upload->project, &lines);
    cn_project_log(&lines);
    cn_buf_fini(&lines);
    rc = check_project(upload->project.config, err); /* L4 */
    if (rc == 0)
        rc = cn_project_bundle_upload(&upload->project, &upload->bundler, err);
    if (rc == 0)
        rc = load_assets(upload, err);
    return rc;
}

void cn_upload_fini(struct cn_upload *upload)
{
    if (upload->project.config)
        cn_project_close(&upload->project);
    cn_bundler_fini(&upload->bundler);
    if (upload->assets)
        cn_assets_unref(upload->assets);
    cn_buf_fini(&upload->bindings);
    cn_buf_fini(&upload->shown);
    cn_free(upload->jwt);
    cn_free(upload->site_id);
    cn_free(upload->migration_tag);
}

/* --- bindings -------------------------------------------------------------------------------- */

static void put_text(struct cn_buf *json, const char *name, const char *text)
{
    cn_buf_printf(json, "%s\"%s\":", json->data[json->size - 1] == '{' ? "" : ",", name);
    cn_buf_append_json(json, text, strlen(text));
}

static void begin_binding(struct cn_upload *upload, const char *type)
{
    cn_buf_append_str(&upload->bindings, upload->bindings.size ? ",{" : "{");
    put_text(&upload->bindings, "type", type);
}

/* A line of what is shown: control characters are the table's to escape. */
static void show(struct cn_upload *upload, const char *name, const char *what, const char *detail)
{
    cn_buf_printf(&upload->shown, "%s%s%s%s%s", name, "\t", what, detail ? ": " : "",
                  detail ? detail : "");
    cn_buf_append_byte(&upload->shown, '\n');
}

/* What stands for the resource in the table, beside its type. */
static const char *detail_of(const struct cn_confnode *entry)
{
    static const char *const keys[] = {"database_name", "bucket_name", "queue", "class_name",
                                       "service",       "dataset",     "id",    "index_name",
                                       "namespace",     "namespace_id"};
    for (size_t i = 0; i < CN_ARRAY_COUNT(keys); i++) {
        const struct cn_confnode *node = cn_confnode_find(entry, keys[i]);
        if (node && node->kind == CN_CONF_STRING)
            return node->text;
    }
    return NULL;
}

/* KV, D1 and R2 can be bound without an id: it is then found or made by name, as wrangler does. */
static int provision(struct cn_upload *upload, const struct cn_depot_kind *kind,
                     const struct cn_confnode *entry, const char *binding, struct cn_err *err)
{
    static const struct {
        const char *type, *kind, *key, *member;
    } rows[] = {{"kv_namespace", "kv", "id", "namespace_id"},
                {"d1", "d1", "database_id", "id"},
                {"r2_bucket", "r2", "bucket_name", "bucket_name"}};
    for (size_t i = 0; i < CN_ARRAY_COUNT(rows); i++) {
        if (strcmp(rows[i].type, kind->type) != 0 || cn_confnode_find(entry, rows[i].key) ||
            !upload->remote)
            continue;
        const struct cn_confnode *named = cn_confnode_find(entry, "database_name");
        char *name = named && named->kind == CN_CONF_STRING
                         ? cn_strdup(named->text)
                         : cn_sprintf("%s-%s", upload->project.config->name, binding);
        for (char *c = name; !named && *c; c++)
            *c = *c == '_' ? '-' : (char)(*c >= 'A' && *c <= 'Z' ? *c | 32 : *c);
        char *id = cn_resource_provide(upload->remote, rows[i].kind, name, err);
        cn_free(name);
        if (!id)
            return err->code;
        put_text(&upload->bindings, rows[i].member, id);
        cn_free(id);
    }
    return 0;
}

static int put_entry(struct cn_upload *upload, const struct cn_depot_kind *kind,
                     const struct cn_confnode *entry, struct cn_err *err)
{
    const struct cn_confnode *name = NULL;
    if (entry->kind != CN_CONF_TABLE)
        return 0; /* the configuration was checked */
    begin_binding(upload, kind->type);
    for (size_t i = 0; i < CN_DEPOT_FIELD_MAX && kind->fields[i].from; i++) {
        const struct cn_confnode *value = cn_confnode_find(entry, kind->fields[i].to);
        if (!value || value->kind == CN_CONF_NULL)
            continue;
        if (strcmp(kind->fields[i].from, "name") == 0)
            name = value;
        cn_buf_printf(&upload->bindings, ",\"%s\":", kind->fields[i].from);
        cn_confnode_write_json(value, &upload->bindings);
    }
    const char *binding = name && name->kind == CN_CONF_STRING ? name->text : "";
    int rc = provision(upload, kind, entry, binding, err);
    cn_buf_append_byte(&upload->bindings, '}');
    show(upload, binding, kind->type, detail_of(entry));
    return rc;
}

static int put_kind(struct cn_upload *upload, const struct cn_depot_kind *kind, struct cn_err *err)
{
    const struct cn_confnode *list = cn_config_at(upload->project.config, kind->key);
    int rc = 0;
    if (list && list->kind == CN_CONF_TABLE)
        return put_entry(upload, kind, list, err);
    for (size_t i = 0; list && list->kind == CN_CONF_ARRAY && i < list->count && rc == 0; i++)
        rc = put_entry(upload, kind, list->items[i], err);
    return rc;
}

/* What stands in unsafe.bindings is an entry of an upload already. */
static void put_unsafe(struct cn_upload *upload)
{
    const struct cn_confnode *unsafe = cn_config_key(upload->project.config, "unsafe");
    const struct cn_confnode *list =
        unsafe && unsafe->kind == CN_CONF_TABLE ? cn_confnode_find(unsafe, "bindings") : NULL;
    for (size_t i = 0; list && list->kind == CN_CONF_ARRAY && i < list->count; i++) {
        cn_buf_append_str(&upload->bindings, upload->bindings.size ? "," : "");
        cn_confnode_write_json(list->items[i], &upload->bindings);
    }
}

static void put_vars(struct cn_upload *upload)
{
    const struct cn_config *config = upload->project.config;
    for (size_t i = 0; i < config->vars.count; i++) {
        const struct cn_config_var *var = &config->vars.items[i];
        if (var->kind == CN_VAR_SECRET)
            continue; /* L3 */
        bool is_text = var->kind == CN_VAR_TEXT;
        begin_binding(upload, is_text ? "plain_text" : "json");
        put_text(&upload->bindings, "name", var->name);
        cn_buf_append_str(&upload->bindings, is_text ? ",\"text\":" : ",\"json\":");
        if (is_text)
            cn_buf_append_json(&upload->bindings, var->text, var->length);
        else
            cn_buf_append(&upload->bindings, var->text, var->length);
        cn_buf_append_byte(&upload->bindings, '}');
        show(upload, var->name, "variable", NULL);
    }
}

static int make_bindings(struct cn_upload *upload, struct cn_err *err)
{
    const struct cn_config *config = upload->project.config;
    const struct cn_depot_kind *kind;
    int rc = 0;
    cn_buf_clear(&upload->bindings);
    cn_buf_clear(&upload->shown);
    for (size_t i = 0; rc == 0 && (kind = cn_depot_kind_at(i)); i++)
        rc = put_kind(upload, kind, err);
    put_unsafe(upload);
    put_vars(upload);
    if (config->assets.binding && config->main) {
        begin_binding(upload, "assets");
        put_text(&upload->bindings, "name", config->assets.binding);
        cn_buf_append_byte(&upload->bindings, '}');
        show(upload, config->assets.binding, "assets", NULL);
    }
    if (config->site.bucket) {
        begin_binding(upload, "kv_namespace");
        put_text(&upload->bindings, "name", "__STATIC_CONTENT");
        put_text(&upload->bindings, "namespace_id", upload->site_id ? upload->site_id : "");
        cn_buf_append_byte(&upload->bindings, '}');
        show(upload, "__STATIC_CONTENT", "files of the site", config->site.bucket);
    }
    return rc;
}

void cn_upload_print_bindings(const struct cn_upload *upload)
{
    const char *at = (const char *)upload->shown.data, *end = at + upload->shown.size;
    struct cn_table table;
    if (!upload->shown.size)
        return;
    printf("The worker has these bindings:\n");
    cn_table_init(&table, 2);
    cn_table_add(&table, "binding", 7);
    cn_table_add(&table, "resource", 8);
    while (at < end) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        const char *tab = memchr(at, '\t', (size_t)(stop - at));
        cn_table_add(&table, at, (size_t)(tab - at));
        cn_table_add(&table, tab + 1, (size_t)(stop - tab - 1));
        at = stop + 1;
    }
    cn_table_print(&table);
}

/* --- metadata -------------------------------------------------------------------------------- */

/* The steps behind the tag that the server is at. */
static int put_migrations(struct cn_upload *upload, struct cn_buf *json, struct cn_err *err)
{
    const struct cn_config *config = upload->project.config;
    const struct cn_confnode *list = cn_config_key(config, "migrations");
    size_t first = 0, count = config->migrations.count;
    const char *tag = upload->migration_tag;
    if (!count)
        return 0;
    while (tag && first < count && strcmp(config->migrations.items[first].tag, tag) != 0)
        first++;
    if (tag && first == count)
        return cn_err_set(err, CN_EINVALID,
                          "%s is at the migration \"%s\" on the server, which the configuration "
                          "does not have: put it back, for what follows it is what is applied",
                          config->name, tag);
    first += tag != NULL;
    if (first == count)
        return 0;
    cn_buf_append_str(json, ",\"migrations\":{");
    if (tag)
        put_text(json, "old_tag", tag);
    put_text(json, "new_tag", config->migrations.items[count - 1].tag);
    cn_buf_append_str(json, ",\"steps\":[");
    for (size_t i = first; i < count; i++) {
        cn_buf_append_str(json, i > first ? "," : "");
        cn_confnode_write_json(list->items[i], json);
    }
    cn_buf_append_str(json, "]}");
    return 0;
}

/* _headers and _redirects go as texts. */
static void put_rules(const struct cn_upload *upload, struct cn_buf *json)
{
    static const char *const names[] = {"_headers", "_redirects"};
    for (size_t i = 0; i < CN_ARRAY_COUNT(names); i++) {
        struct cn_buf text = {0};
        char *path = cn_sprintf("%s/%s", cn_assets_directory(upload->assets), names[i]);
        if (cn_files_read(path, RULES_SIZE_MAX, &text, NULL) == 0) {
            cn_buf_printf(json, "%s\"%s\":", json->data[json->size - 1] == '{' ? "" : ",",
                          names[i]);
            cn_buf_append_json(json, text.data ? (char *)text.data : "", text.size);
        }
        cn_buf_fini(&text);
        cn_free(path);
    }
}

static void put_assets(const struct cn_upload *upload, struct cn_buf *json)
{
    const struct cn_config_assets *assets = &upload->project.config->assets;
    if (!upload->assets)
        return;
    cn_buf_append_str(json, ",\"assets\":{");
    if (upload->jwt)
        put_text(json, "jwt", upload->jwt);
    cn_buf_append_str(json, upload->jwt ? ",\"config\":{" : "\"config\":{");
    put_rules(upload, json);
    if (assets->base_path)
        put_text(json, "base_path", assets->base_path);
    if (assets->html_handling)
        put_text(json, "html_handling", assets->html_handling);
    if (assets->not_found_handling)
        put_text(json, "not_found_handling", assets->not_found_handling);
    if (assets->run_worker_first) {
        cn_buf_printf(json,
                      "%s\"run_worker_first\":", json->data[json->size - 1] == '{' ? "" : ",");
        cn_confnode_write_json(assets->run_worker_first, json);
    }
    cn_buf_append_str(json, "}}");
}

static bool is_service_worker(const struct cn_bundle *bundle)
{
    const struct cn_confnode *said =
        bundle->manifest ? cn_confnode_find(bundle->manifest, "serviceWorker") : NULL;
    return said && said->kind == CN_CONF_BOOL && said->boolean;
}

static void put_members(const struct cn_upload *upload, struct cn_buf *json)
{
    static const char *const keys[] = {"limits", "observability", "tail_consumers"};
    const struct cn_config *config = upload->project.config;
    for (size_t i = 0; i < CN_ARRAY_COUNT(keys); i++) {
        const struct cn_confnode *node = cn_config_key(config, keys[i]);
        if (!node)
            continue;
        cn_buf_printf(json, ",\"%s\":", keys[i]);
        cn_confnode_write_json(node, json);
    }
    if (config->compatibility_date)
        put_text(json, "compatibility_date", config->compatibility_date);
    cn_buf_append_str(json, ",\"compatibility_flags\":[");
    for (size_t i = 0; i < config->compatibility_flags.count; i++) {
        const char *flag = config->compatibility_flags.items[i];
        cn_buf_append_str(json, i ? "," : "");
        cn_buf_append_json(json, flag, strlen(flag));
    }
    cn_buf_append_byte(json, ']');
}

static void put_annotations(const struct cn_upload *upload, struct cn_buf *json)
{
    const struct cn_remote_options *said = &upload->options->remote;
    if (!said->message && !said->tag)
        return;
    cn_buf_append_str(json, ",\"annotations\":{");
    if (said->message)
        put_text(json, "workers/message", said->message);
    if (said->tag)
        put_text(json, "workers/tag", said->tag);
    cn_buf_append_byte(json, '}');
}

static int make_metadata(struct cn_upload *upload, struct cn_buf *json, struct cn_err *err)
{
    bool worker = is_service_worker(&upload->project.bundle);
    cn_buf_append_str(json, "{\"bindings\":[");
    cn_buf_append(json, upload->bindings.data, upload->bindings.size);
    cn_buf_append_byte(json, ']');
    if (upload->project.config->main)
        put_text(json, worker ? "body_part" : "main_module", "index.js");
    put_members(upload, json);
    put_annotations(upload, json);
    put_assets(upload, json);
    if (upload->options->keep_vars)
        cn_buf_append_str(json, ",\"keep_bindings\":[\"plain_text\",\"json\"]");
    int rc = put_migrations(upload, json, err);
    cn_buf_append_byte(json, '}');
    return rc;
}

/* --- the request ----------------------------------------------------------------------------- */

static void put_part(struct cn_buf *body, const char *boundary, const char *name, const char *type,
                     const void *bytes, size_t size)
{
    bool is_file = strcmp(name, "metadata") != 0;
    cn_buf_printf(body, "--%s\r\nContent-Disposition: form-data; name=\"%s\"", boundary, name);
    if (is_file)
        cn_buf_printf(body, "; filename=\"%s\"", name);
    cn_buf_printf(body, "\r\nContent-Type: %s\r\n\r\n", type);
    cn_buf_append(body, bytes, size);
    cn_buf_append_str(body, "\r\n");
}

static int put_modules(const struct cn_upload *upload, const char *boundary, struct cn_buf *body,
                       struct cn_err *err)
{
    const struct cn_bundle *bundle = &upload->project.bundle;
    if (!upload->project.config->main)
        return 0;
    const struct cn_confnode *types = cn_confnode_find(bundle->manifest, "types");
    struct cn_buf map = {0};
    put_part(body, boundary, "index.js",
             is_service_worker(bundle) ? "application/javascript" : "application/javascript+module",
             bundle->source.data, bundle->source.size);
    int rc = cn_files_read(bundle->map_path, CN_BUNDLE_SIZE_MAX, &map, err);
    if (rc == 0)
        put_part(body, boundary, "index.js.map", "application/source-map", map.data, map.size);
    cn_buf_fini(&map);
    for (size_t i = 0; i < bundle->file_count; i++) {
        const struct cn_bundle_file *file = &bundle->files[i];
        const struct cn_confnode *type = types ? cn_confnode_find(types, file->name) : NULL;
        put_part(body, boundary, file->name,
                 type && type->kind == CN_CONF_STRING ? type->text : "application/octet-stream",
                 file->bytes, file->size);
    }
    return rc;
}

size_t cn_upload_size(const struct cn_upload *upload)
{
    const struct cn_bundle *bundle = &upload->project.bundle;
    size_t size = upload->project.config->main ? bundle->source.size : 0;
    for (size_t i = 0; i < bundle->file_count; i++)
        size += bundle->files[i].size;
    return size;
}

/* Where the worker is on the server. */
static int look_at_worker(struct cn_upload *upload, struct cn_err *err)
{
    const struct cn_json *result = NULL;
    char *target = cn_sprintf("workers/services/%s", upload->project.config->name);
    struct cn_err why = {0};
    int rc = cn_remote_ask(upload->remote, "GET", target, &result, &why);
    cn_free(target);
    if (rc == CN_ENOTFOUND)
        return 0;
    if (rc < 0) {
        *err = why;
        return rc;
    }
    upload->exists = true;
    const char *tag = cn_json_text(
        cn_json_find(cn_json_find(result, "default_environment"), "script"), "migration_tag");
    upload->migration_tag = tag ? cn_strdup(tag) : NULL;
    return 0;
}

/* The id of the version that was made: a deployment answers with its digits alone. */
static void take_id(struct cn_upload *upload, const struct cn_json *result)
{
    const char *id = cn_json_text(result, upload->options->only_version ? "id" : "deployment_id");
    if (id && strspn(id, "0123456789abcdef-") < strlen(id))
        id = NULL; /* it is shown, and typed again */
    if (id && strlen(id) == 32)
        snprintf(upload->version, sizeof(upload->version), "%.8s-%.4s-%.4s-%.4s-%.12s", id, id + 8,
                 id + 12, id + 16, id + 20);
    else
        snprintf(upload->version, sizeof(upload->version), "%s", id ? id : "");
}

static int send_version(struct cn_upload *upload, struct cn_err *err)
{
    const struct cn_json *result = NULL;
    struct cn_buf metadata = {0}, body = {0};
    char digits[33], type[100];
    cn_depot_digits(digits);
    snprintf(type, sizeof(type), "multipart/form-data; boundary=%s", digits);
    int rc = make_metadata(upload, &metadata, err);
    if (rc == 0) {
        put_part(&body, digits, "metadata", "application/json", metadata.data, metadata.size);
        rc = put_modules(upload, digits, &body, err);
    }
    if (rc == 0) {
        bool only = upload->options->only_version;
        char *target = cn_remote_script(upload->project.config->name, only ? "/versions" : "");
        cn_buf_printf(&body, "--%s--\r\n", digits);
        struct cn_remote_body whole = {type, &body, NULL};
        rc = cn_remote_post(upload->remote, only ? "POST" : "PUT", target, &whole, &result, err);
        cn_free(target);
    }
    if (rc == 0)
        take_id(upload, result);
    cn_buf_fini(&metadata);
    cn_buf_fini(&body);
    return rc;
}

int cn_upload_run(struct cn_upload *upload, struct cn_remote *remote, struct cn_err *err)
{
    upload->remote = remote;
    if (!remote)
        return make_bindings(upload, err);
    int rc = look_at_worker(upload, err);
    if (rc == 0 && upload->project.config->site.bucket)
        rc = cn_upload_site(upload, err);
    if (rc == 0)
        rc = make_bindings(upload, err);
    if (rc == 0 && upload->assets)
        rc = cn_upload_assets(upload, err);
    if (rc == 0)
        rc = send_version(upload, err);
    return rc;
}
