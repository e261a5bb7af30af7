/* SPDX-License-Identifier: Apache-2.0 */
/* cli/upload_send.c - what goes to the server beside the version: files of assets before it,
 * routes, schedules and consumers after it. */
#include <stdio.h>
#include <string.h>

#include "assets/assets.h"
#include "base/assert.h"
#include "base/mem.h"
#include "cli/print.h"
#include "cli/resource.h"
#include "cli/upload.h"
#include "config/config.h"
#include "config/confnode.h"
#include "config/files.h"
#include "text/base64.h"
#include "v4/depot.h"

#define REQUEST_MAX ((size_t)32 << 20) /* bytes of one request with files of assets */

/* --- assets ---------------------------------------------------------------------------------- */

struct file {
    const struct cn_asset *asset;
    char hash[33];
};

static int read_asset(const struct cn_upload *upload, const struct cn_asset *asset,
                      struct cn_buf *bytes, struct cn_err *err)
{
    char *path = cn_sprintf("%s%s", cn_assets_directory(upload->assets), asset->path);
    cn_buf_clear(bytes);
    int rc = cn_files_read(path, CN_ASSET_SIZE_MAX, bytes, err);
    cn_free(path);
    return rc;
}

static int hash_files(const struct cn_upload *upload, struct file *files, struct cn_err *err)
{
    struct cn_buf bytes = {0};
    size_t cursor = 0, count = 0;
    const struct cn_asset *asset;
    int rc = 0;
    while (rc == 0 && (asset = cn_assets_next(upload->assets, &cursor))) {
        rc = read_asset(upload, asset, &bytes, err);
        if (rc == 0)
            cn_depot_hash(bytes.data ? bytes.data : (const uint8_t *)"", bytes.size,
                          files[count].hash);
        files[count++].asset = asset;
    }
    cn_buf_fini(&bytes);
    return rc;
}

static void write_manifest(const struct file *files, size_t count, struct cn_buf *json)
{
    cn_buf_append_str(json, "{\"manifest\":{");
    for (size_t i = 0; i < count; i++) {
        cn_buf_append_str(json, i ? "," : "");
        cn_buf_append_json(json, files[i].asset->path, strlen(files[i].asset->path));
        cn_buf_printf(json, ":{\"hash\":\"%s\",\"size\":%llu}", files[i].hash,
                      (unsigned long long)files[i].asset->size);
    }
    cn_buf_append_str(json, "}}");
}

static int flush(struct cn_upload *upload, struct cn_buf *body, const char *boundary,
                 struct cn_err *err)
{
    const struct cn_json *result = NULL;
    char *type = cn_sprintf("multipart/form-data; boundary=%s", boundary);
    if (!body->size) {
        cn_free(type);
        return 0;
    }
    cn_buf_printf(body, "--%s--\r\n", boundary);
    struct cn_remote_body whole = {type, body, upload->jwt};
    int rc = cn_remote_post(upload->remote, "POST", "workers/assets/upload?base64=true", &whole,
                            &result, err);
    const char *jwt = cn_json_text(result, "jwt");
    if (rc == 0 && jwt) {
        char *copy = cn_strdup(jwt);
        cn_free(upload->jwt);
        upload->jwt = copy;
    }
    cn_buf_clear(body);
    cn_free(type);
    return rc;
}

static int add_file(struct cn_upload *upload, const struct file *file, const char *boundary,
                    struct cn_buf *body, struct cn_err *err)
{
    struct cn_buf bytes = {0};
    char now[33];
    int rc = read_asset(upload, file->asset, &bytes, err);
    if (rc == 0)
        cn_depot_hash(bytes.data ? bytes.data : (const uint8_t *)"", bytes.size, now);
    if (rc == 0 && strcmp(now, file->hash) != 0)
        rc = cn_err_set(err, CN_EINVALID, "%s changed while it was uploaded", file->asset->path);
    if (rc == 0) {
        cn_buf_printf(body,
                      "--%s\r\nContent-Disposition: form-data; name=\"%s\"; filename=\"%s\"\r\n"
                      "Content-Type: application/octet-stream\r\n\r\n",
                      boundary, file->hash, file->hash);
        cn_base64_encode(body, bytes.data, bytes.size);
        cn_buf_append_str(body, "\r\n");
        upload->new_assets++;
    }
    cn_buf_fini(&bytes);
    return rc;
}

static const struct file *find_file(const struct file *files, size_t count, const char *hash)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(files[i].hash, hash) == 0)
            return &files[i];
    }
    return NULL;
}

/* The server names what it does not have, in buckets; how many of them are in a request is ours. */
static int send_missing(struct cn_upload *upload, const struct file *files, size_t count,
                        const struct cn_depot_texts *missing, struct cn_err *err)
{
    struct cn_buf body = {0};
    char boundary[33];
    int rc = 0;
    cn_depot_digits(boundary);
    for (size_t i = 0; i < missing->count && rc == 0; i++) {
        const struct file *file = find_file(files, count, missing->items[i]);
        if (!file)
            continue;
        if (body.size && body.size + file->asset->size * 4 / 3 > REQUEST_MAX)
            rc = flush(upload, &body, boundary, err);
        if (rc == 0)
            rc = add_file(upload, file, boundary, &body, err);
    }
    if (rc == 0)
        rc = flush(upload, &body, boundary, err);
    cn_buf_fini(&body);
    return rc;
}

static int begin_session(struct cn_upload *upload, struct cn_buf *manifest,
                         struct cn_depot_texts *missing, struct cn_err *err)
{
    const struct cn_json *result = NULL;
    char *target = cn_remote_script(upload->project.config->name, "/assets-upload-session");
    int rc = cn_remote_send(upload->remote, "POST", target, manifest, &result, err);
    cn_free(target);
    const char *jwt = cn_json_text(result, "jwt");
    if (rc == 0 && !jwt)
        rc = cn_err_set(err, CN_EPROTOCOL, "the server takes no assets");
    if (rc < 0)
        return rc;
    upload->jwt = cn_strdup(jwt);
    const struct cn_json *buckets = cn_json_find(result, "buckets");
    for (const struct cn_json *bucket = buckets ? buckets->first : NULL; bucket;
         bucket = bucket->next) {
        for (const struct cn_json *hash = bucket->first; hash; hash = hash->next)
            if (hash->kind == CN_JSON_STRING)
                cn_depot_texts_add(missing, hash->text);
    }
    return 0;
}

int cn_upload_assets(struct cn_upload *upload, struct cn_err *err)
{
    size_t count = cn_assets_count(upload->assets);
    struct file *files = cn_alloc_zero((count + 1) * sizeof(*files));
    struct cn_depot_texts missing = {0};
    struct cn_buf manifest = {0};
    int rc = hash_files(upload, files, err);
    if (rc == 0) {
        write_manifest(files, count, &manifest);
        rc = begin_session(upload, &manifest, &missing, err);
    }
    if (rc == 0)
        rc = send_missing(upload, files, count, &missing, err);
    cn_depot_texts_clear(&missing);
    cn_buf_fini(&manifest);
    cn_free(files);
    return rc;
}

/* --- triggers -------------------------------------------------------------------------------- */

static int send_to_script(struct cn_upload *upload, const char *method, const char *rest,
                          struct cn_buf *body, struct cn_err *err)
{
    const struct cn_json *result = NULL;
    char *target = cn_remote_script(upload->project.config->name, rest);
    int rc = cn_remote_send(upload->remote, method, target, body, &result, err);
    cn_free(target);
    return rc;
}

static void put_item(struct cn_buf *list, const char *member, const char *text)
{
    cn_buf_append_str(list, list->data[list->size - 1] == '[' ? "{" : ",{");
    cn_buf_printf(list, "\"%s\":", member);
    cn_buf_append_json(list, text, strlen(text));
    cn_buf_append_byte(list, '}');
}

/* NAME.HOST, unless the configuration has routes or does not want it. */
static int send_subdomain(struct cn_upload *upload, struct cn_err *err)
{
    const struct cn_config *config = upload->project.config;
    const struct cn_confnode *said = cn_config_key(config, "workers_dev");
    bool on = said && said->kind == CN_CONF_BOOL ? said->boolean : config->routes.count == 0;
    const struct cn_json *result = NULL;
    struct cn_buf body = {0};
    cn_buf_printf(&body, "{\"enabled\":%s}", on ? "true" : "false");
    int rc = send_to_script(upload, "POST", "/subdomain", &body, err);
    cn_buf_fini(&body);
    if (rc < 0 || !on)
        return rc;
    rc = cn_remote_ask(upload->remote, "GET", "workers/subdomain", &result, err);
    const char *domain = cn_json_text(result, "subdomain");
    if (rc == 0) {
        printf("  %s.", config->name);
        cn_print_shown(domain ? domain : "localhost");
        printf("\n");
    }
    return rc;
}

static int send_routes(struct cn_upload *upload, struct cn_err *err)
{
    const struct cn_config *config = upload->project.config;
    struct cn_buf routes = {0}, domains = {0};
    size_t route_count = 0, domain_count = 0;
    int rc = 0;
    cn_buf_append_byte(&routes, '[');
    cn_buf_append_str(&domains, "{\"override_existing_origin\":true,\"origins\":[");
    for (size_t i = 0; i < config->routes.count; i++) {
        const struct cn_config_route *route = &config->routes.items[i];
        if (route->custom_domain)
            put_item(&domains, "hostname", route->pattern);
        else
            put_item(&routes, "pattern", route->pattern);
        domain_count += route->custom_domain;
        route_count += !route->custom_domain;
    }
    cn_buf_append_byte(&routes, ']');
    cn_buf_append_str(&domains, "]}");
    if (route_count)
        rc = send_to_script(upload, "PUT", "/routes", &routes, err);
    if (rc == 0 && domain_count)
        rc = send_to_script(upload, "PUT", "/domains/records", &domains, err);
    for (size_t i = 0; i < config->routes.count && rc == 0; i++)
        printf("  %s\n", config->routes.items[i].pattern);
    cn_buf_fini(&routes);
    cn_buf_fini(&domains);
    return rc;
}

static int send_crons(struct cn_upload *upload, struct cn_err *err)
{
    const struct cn_confnode *triggers = cn_config_key(upload->project.config, "triggers");
    const struct cn_confnode *crons =
        triggers && triggers->kind == CN_CONF_TABLE ? cn_confnode_find(triggers, "crons") : NULL;
    struct cn_buf body = {0};
    if (!crons || crons->kind != CN_CONF_ARRAY)
        return 0; /* what the server has stays */
    cn_buf_append_byte(&body, '[');
    for (size_t i = 0; i < crons->count; i++)
        put_item(&body, "cron", crons->items[i]->text);
    cn_buf_append_byte(&body, ']');
    int rc = send_to_script(upload, "PUT", "/schedules", &body, err);
    for (size_t i = 0; i < crons->count && rc == 0; i++)
        printf("  schedule: %s\n", crons->items[i]->text);
    cn_buf_fini(&body);
    return rc;
}

static void put_setting(struct cn_buf *json, const struct cn_confnode *consumer, const char *key,
                        const char *name, int64_t factor)
{
    const struct cn_confnode *node = cn_confnode_find(consumer, key);
    if (node && node->kind == CN_CONF_INTEGER)
        cn_buf_printf(json, "%s\"%s\":%lld", json->data[json->size - 1] == '{' ? "" : ",", name,
                      (long long)(node->integer * factor));
}

static int send_consumer(struct cn_upload *upload, const struct cn_confnode *consumer,
                         struct cn_err *err)
{
    const char *worker = upload->project.config->name;
    const struct cn_confnode *queue = cn_confnode_find(consumer, "queue");
    const struct cn_confnode *type = cn_confnode_find(consumer, "type");
    const struct cn_confnode *dead = cn_confnode_find(consumer, "dead_letter_queue");
    const struct cn_json *result = NULL;
    char *id = cn_resource_provide(upload->remote, "queue", queue->text, err);
    if (!id)
        return err->code;
    struct cn_buf body = {0};
    cn_buf_printf(&body, "{\"type\":\"%s\",\"script_name\":",
                  type && type->kind == CN_CONF_STRING ? type->text : "worker");
    cn_buf_append_json(&body, worker, strlen(worker));
    if (dead && dead->kind == CN_CONF_STRING) {
        cn_buf_append_str(&body, ",\"dead_letter_queue\":");
        cn_buf_append_json(&body, dead->text, dead->length);
    }
    cn_buf_append_str(&body, ",\"settings\":{");
    put_setting(&body, consumer, "max_batch_size", "batch_size", 1);
    put_setting(&body, consumer, "max_batch_timeout", "max_wait_time_ms", 1000);
    put_setting(&body, consumer, "max_retries", "max_retries", 1);
    put_setting(&body, consumer, "max_concurrency", "max_concurrency", 1);
    put_setting(&body, consumer, "retry_delay", "retry_delay", 1);
    cn_buf_append_str(&body, "}}");
    char *target = cn_sprintf("queues/%s/consumers", id);
    int rc = cn_remote_send(upload->remote, "POST", target, &body, &result, err);
    if (rc == 0)
        printf("  consumer of %s\n", queue->text);
    cn_free(target);
    cn_free(id);
    cn_buf_fini(&body);
    return rc;
}

static int send_consumers(struct cn_upload *upload, struct cn_err *err)
{
    const struct cn_confnode *queues = cn_config_key(upload->project.config, "queues");
    const struct cn_confnode *list =
        queues && queues->kind == CN_CONF_TABLE ? cn_confnode_find(queues, "consumers") : NULL;
    int rc = 0;
    for (size_t i = 0; list && list->kind == CN_CONF_ARRAY && i < list->count && rc == 0; i++)
        rc = send_consumer(upload, list->items[i], err);
    return rc;
}

int cn_upload_triggers(struct cn_upload *upload, struct cn_err *err)
{
    int rc = send_subdomain(upload, err);
    if (rc == 0)
        rc = send_routes(upload, err);
    if (rc == 0)
        rc = send_crons(upload, err);
    if (rc == 0)
        rc = send_consumers(upload, err);
    return rc;
}
