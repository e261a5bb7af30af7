/* SPDX-License-Identifier: Apache-2.0 */
/* v4/v4_services.c - buckets and objects of R2, queues and their consumers. A bucket and a
 * queue are known by their names; a queue has an id besides, under which wrangler asks for it. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/assert.h"
#include "base/diag.h"
#include "base/mem.h"
#include "text/percent.h"
#include "v4/v4.h"

static bool name_is_good(const char *name)
{
    size_t size = name ? strlen(name) : 0;
    return size > 0 && size < 64 && strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-_") == size;
}

/* --- R2
 * --------------------------------------------------------------------------------------------- */

static void append_bucket(struct cn_buf *json, const char *name, int64_t created_ms)
{
    cn_buf_append_byte(json, '{');
    cn_v4_put_text(json, "name", name);
    cn_buf_append_str(json, ",\"location\":\"here\",\"storage_class\":\"Standard\","
                            "\"creation_date\":");
    cn_depot_append_time(json, created_ms);
    cn_buf_append_byte(json, '}');
}

static int create_bucket(struct cn_control_call *call, struct cn_err *err)
{
    const char *name = cn_json_text(call->json, "name");
    struct cn_buf target = {0}, out = {0}, json = {0};
    static const struct cn_buf none = {0};
    if (!name_is_good(name))
        return cn_v4_fail(call, err, CN_EINVALID, 10005, "the name of a bucket is not valid");
    cn_buf_append_str(&target, "/api/r2");
    cn_v4_segment(&target, name, strlen(name));
    int rc = cn_v4_create(call, "r2", name, name, 10004, err);
    if (rc == 0) {
        int status = cn_v4_forward(call, "PUT", cn_buf_text(&target), &none, &out);
        rc = cn_v4_forwarded(call, status, &out, 10004, err);
    }
    cn_buf_fini(&target);
    cn_buf_fini(&out);
    if (rc < 0)
        return rc;
    append_bucket(&json, name, cn_v4_now());
    return cn_control_result(call, &json);
}

int cn_v4_r2_buckets(struct cn_control_call *call, struct cn_err *err)
{
    if (strcmp(call->method, "POST") == 0)
        return create_bucket(call, err);
    struct cn_depot_state *state = cn_depot_take(cn_v4_of(call)->depot);
    struct cn_buf json = {0};
    size_t count = 0;
    cn_buf_append_str(&json, "{\"buckets\":[");
    for (size_t i = 0; i < state->resource_count; i++) {
        const struct cn_depot_resource *resource = &state->resources[i];
        if (strcmp(resource->kind, "r2") != 0)
            continue;
        cn_buf_append_str(&json, count++ ? "," : "");
        append_bucket(&json, resource->name, resource->created_ms);
    }
    cn_buf_append_str(&json, "]}");
    cn_depot_state_unref(state);
    return cn_control_result(call, &json);
}

/* One that is empty, as on the platform. */
static int delete_bucket(struct cn_control_call *call, struct cn_err *err)
{
    struct cn_buf target = {0}, out = {0};
    static const struct cn_buf none = {0};
    cn_buf_append_str(&target, "/api/r2");
    cn_v4_segment(&target, call->path[6], strlen(call->path[6]));
    cn_buf_append_str(&target, "/objects?limit=1");
    int status = cn_v4_forward(call, "GET", cn_buf_text(&target), &none, &out);
    int rc = status == 404 ? 0 : cn_v4_forwarded(call, status, &out, 10013, err);
    struct cn_json *list =
        rc == 0 && status != 404 ? cn_json_parse((const char *)out.data, out.size, NULL) : NULL;
    const struct cn_json *objects = cn_json_find(list, "objects");
    if (rc == 0 && objects && objects->first)
        rc = cn_v4_fail(call, err, CN_EEXISTS, 10008, "the bucket %.60s is not empty",
                        call->path[6]);
    cn_json_free(list);
    cn_buf_fini(&target);
    cn_buf_fini(&out);
    if (rc == 0)
        rc = cn_v4_forget(call, "r2", call->path[6], err);
    if (rc < 0)
        return rc;
    cn_info("the bucket %s was deleted by %s", call->path[6], call->who.name);
    return cn_v4_answer_null(call);
}

int cn_v4_r2_bucket(struct cn_control_call *call, struct cn_err *err)
{
    struct cn_depot_state *state = cn_depot_take(cn_v4_of(call)->depot);
    const struct cn_depot_resource *resource = cn_depot_resource(state, "r2", call->path[6], NULL);
    struct cn_buf json = {0};
    if (resource)
        append_bucket(&json, resource->name, resource->created_ms);
    cn_depot_state_unref(state);
    if (!json.size)
        return cn_v4_fail(call, err, CN_ENOTFOUND, 10006, "there is no bucket %.60s",
                          call->path[6]);
    if (strcmp(call->method, "GET") == 0)
        return cn_control_result(call, &json);
    cn_buf_fini(&json);
    return delete_bucket(call, err);
}

static bool parse_date(const char *text, int64_t *time_ms)
{
    struct tm tm = {0};
    const char *end = strptime(text, "%a, %d %b %Y %H:%M:%S GMT", &tm);
    *time_ms = (int64_t)timegm(&tm) * 1000;
    return end && !*end && *time_ms >= 0;
}

/* What the sender says of the object, by the names that the control API has for it. */
static int add_metadata(struct cn_control_call *call, struct cn_buf *target, struct cn_err *err)
{
    static const struct {
        const char *field, *name;
    } pairs[] = {{"cache-control", "cacheControl"},
                 {"content-disposition", "contentDisposition"},
                 {"content-encoding", "contentEncoding"},
                 {"content-language", "contentLanguage"},
                 {"cf-r2-storage-class", "storageClass"}};
    char before = '?';
    for (size_t i = 0; i < CN_ARRAY_COUNT(pairs); i++) {
        const char *value = cn_control_sent(call, pairs[i].field);
        if (!value)
            continue;
        cn_buf_printf(target, "%c%s=", before, pairs[i].name);
        cn_percent_encode(target, value, strlen(value), "-_");
        before = '&';
    }
    const char *expires = cn_control_sent(call, "expires");
    int64_t expires_ms = 0;
    if (expires && !parse_date(expires, &expires_ms))
        return cn_v4_fail(call, err, CN_EINVALID, 10021, "\"expires\" is no date of HTTP");
    if (expires)
        cn_buf_printf(target, "%ccacheExpiry=%" PRId64, before, expires_ms);
    return 0;
}

int cn_v4_r2_object(struct cn_control_call *call, struct cn_err *err)
{
    struct cn_buf target = {0}, out = {0};
    bool gets = strcmp(call->method, "GET") == 0;
    cn_buf_append_str(&target, "/api/r2");
    cn_v4_segment(&target, call->path[6], strlen(call->path[6]));
    cn_buf_append_str(&target, "/objects");
    cn_v4_segment(&target, call->rest.data, call->rest.size);
    int rc = strcmp(call->method, "PUT") == 0 ? add_metadata(call, &target, err) : 0;
    if (rc == 0) {
        int status = gets ? cn_v4_forward_out(call, call->method, cn_buf_text(&target), &out)
                          : cn_v4_forward(call, call->method, cn_buf_text(&target), NULL, &out);
        rc = cn_v4_forwarded(call, status, &out, 10007, err);
    }
    cn_buf_fini(&target);
    cn_buf_fini(&out);
    return rc < 0 || gets ? rc : cn_v4_answer_null(call);
}

/* --- queues
 * ----------------------------------------------------------------------------------------- */

/* The consumer of the queue among these, as the configuration has it; the caller frees it. */
static struct cn_json *find_among(const struct cn_depot_texts *texts, const char *queue,
                                  size_t *index)
{
    for (size_t i = 0; i < texts->count; i++) {
        struct cn_json *json = cn_json_parse(texts->items[i], strlen(texts->items[i]), NULL);
        const char *name = cn_json_text(json, "queue");
        if (name && strcmp(name, queue) == 0) {
            *index = i;
            return json;
        }
        cn_json_free(json);
    }
    return NULL;
}

/* The consumer of the queue; *script gets its worker, or NULL if it pulls. The caller frees it;
 * NULL: it has none. */
static struct cn_json *find_consumer(const struct cn_depot_state *state, const char *queue,
                                     const struct cn_depot_script **script, size_t *index)
{
    for (size_t i = 0; i < state->script_count; i++) {
        struct cn_json *json = find_among(&state->scripts[i].consumers, queue, index);
        *script = &state->scripts[i];
        if (json)
            return json;
    }
    *script = NULL;
    return find_among(&state->pullers, queue, index);
}

struct cn_json *cn_v4_puller(const struct cn_depot_state *state, const char *queue)
{
    size_t index;
    return find_among(&state->pullers, queue, &index);
}

static void put_setting(struct cn_buf *json, const struct cn_json *from, const char *key,
                        const char *name, int64_t factor)
{
    const struct cn_json *value = cn_json_find(from, key);
    if (value && value->kind == CN_JSON_INT)
        cn_buf_printf(json, "%s\"%s\":%" PRId64, json->data[json->size - 1] == '{' ? "" : ",", name,
                      value->integer * factor);
}

/* The only consumer of a queue has its id. */
static void append_consumer(struct cn_buf *json, const char *queue_id, const char *queue,
                            const struct cn_depot_script *script, const struct cn_json *consumer)
{
    const char *type = cn_json_text(consumer, "type");
    const char *dead = cn_json_text(consumer, "dead_letter_queue");
    cn_buf_append_byte(json, '{');
    cn_v4_put_text(json, "consumer_id", queue_id);
    cn_v4_put_text(json, "queue_name", queue);
    cn_v4_put_text(json, "type", type ? type : "worker");
    if (script) {
        cn_v4_put_text(json, "script", script->name);
        cn_v4_put_text(json, "script_name", script->name);
        cn_v4_put_text(json, "service", script->name);
        cn_v4_put_text(json, "environment", "production");
    }
    if (dead)
        cn_v4_put_text(json, "dead_letter_queue", dead);
    cn_buf_append_str(json, ",\"settings\":{");
    put_setting(json, consumer, "max_batch_size", "batch_size", 1);
    put_setting(json, consumer, "max_retries", "max_retries", 1);
    put_setting(json, consumer, "max_batch_timeout", "max_wait_time_ms", 1000);
    put_setting(json, consumer, "max_concurrency", "max_concurrency", 1);
    put_setting(json, consumer, "retry_delay", "retry_delay", 1);
    put_setting(json, consumer, "visibility_timeout_ms", "visibility_timeout_ms", 1);
    cn_buf_append_str(json, "}}");
}

/* The version of each script that serves, NULL if it has none that can be read. */
static struct cn_json **read_versions(struct cn_v4 *v4, const struct cn_depot_state *state)
{
    struct cn_json **files = cn_alloc((state->script_count + 1) * sizeof(*files));
    for (size_t i = 0; i < state->script_count; i++) {
        struct cn_err err = {0};
        const struct cn_depot_script *script = &state->scripts[i];
        files[i] = script->serving.count
                       ? cn_depot_read_version(v4->depot, cn_depot_serving(script), &err)
                       : NULL;
    }
    return files;
}

static void free_versions(struct cn_json **files, const struct cn_depot_state *state)
{
    for (size_t i = 0; i < state->script_count; i++)
        cn_json_free(files[i]);
    cn_free(files);
}

static bool produces(const struct cn_json *file, const char *queue)
{
    const struct cn_json *list = cn_json_find(file, "bindings");
    for (const struct cn_json *item = list ? list->first : NULL; item; item = item->next) {
        const char *type = cn_json_text(item, "type"), *name = cn_json_text(item, "queue_name");
        if (type && name && strcmp(type, "queue") == 0 && strcmp(name, queue) == 0)
            return true;
    }
    return false;
}

/* ,"producers":[...],"producers_total_count":N: workers that are bound to it. */
static void append_producers(struct cn_buf *json, const struct cn_depot_state *state,
                             struct cn_json **files, const char *queue)
{
    size_t count = 0;
    cn_buf_append_str(json, ",\"producers\":[");
    for (size_t i = 0; i < state->script_count; i++) {
        if (!produces(files[i], queue))
            continue;
        cn_buf_append_str(json, count++ ? ",{" : "{");
        cn_v4_put_text(json, "type", "worker");
        cn_v4_put_text(json, "script", state->scripts[i].name);
        cn_v4_put_text(json, "service", state->scripts[i].name);
        cn_v4_put_text(json, "environment", "production");
        cn_buf_append_byte(json, '}');
    }
    cn_buf_printf(json, "],\"producers_total_count\":%zu", count);
}

/* `settings`: NULL: they are not asked for. */
static void append_queue(struct cn_buf *json, const struct cn_depot_state *state,
                         struct cn_json **files, const struct cn_depot_resource *queue,
                         const struct cn_json *settings)
{
    const struct cn_depot_script *script = NULL;
    size_t index;
    struct cn_json *consumer = find_consumer(state, queue->name, &script, &index);
    cn_buf_append_byte(json, '{');
    cn_v4_put_text(json, "queue_id", queue->id);
    cn_v4_put_text(json, "queue_name", queue->name);
    cn_buf_append_str(json, ",\"created_on\":");
    cn_depot_append_time(json, queue->created_ms);
    cn_buf_append_str(json, ",\"modified_on\":");
    cn_depot_append_time(json, queue->created_ms);
    append_producers(json, state, files, queue->name);
    cn_buf_append_str(json, ",\"settings\":");
    if (settings)
        cn_json_write(json, settings);
    else
        cn_buf_append_str(json, "{}");
    cn_buf_printf(json, ",\"consumers_total_count\":%d,\"consumers\":[", consumer != NULL);
    if (consumer)
        append_consumer(json, queue->id, queue->name, script, consumer);
    cn_buf_append_str(json, "]}");
    cn_json_free(consumer);
}

/* Asks the control API for the queue: its answer, which the caller frees, or an error. */
static int ask_queue(struct cn_control_call *call, const char *method, const char *name,
                     const struct cn_json *settings, struct cn_json **answer, struct cn_err *err)
{
    struct cn_buf target = {0}, body = {0}, out = {0};
    cn_buf_append_str(&target, "/api/queues");
    cn_v4_segment(&target, name, strlen(name));
    if (settings) {
        cn_buf_append_str(&body, "{\"settings\":");
        cn_json_write(&body, settings);
        cn_buf_append_byte(&body, '}');
    }
    int status = cn_v4_forward(call, method, cn_buf_text(&target), &body, &out);
    int rc = cn_v4_forwarded(call, status, &out, 11003, err);
    if (rc == 0)
        *answer = cn_json_parse((const char *)out.data, out.size, NULL);
    cn_buf_fini(&target);
    cn_buf_fini(&body);
    cn_buf_fini(&out);
    return rc;
}

/* Answers with the queue as it is now. */
static int show_queue(struct cn_control_call *call, const char *id, struct cn_err *err)
{
    struct cn_v4 *v4 = cn_v4_of(call);
    struct cn_depot_state *state = cn_depot_take(v4->depot);
    const struct cn_depot_resource *queue = cn_depot_resource(state, "queue", id, NULL);
    struct cn_buf json = {0};
    if (queue) {
        struct cn_json *answer = NULL;
        struct cn_err unknown = {0}; /* one that nobody has used yet has the usual settings */
        (void)ask_queue(call, "GET", queue->name, NULL, &answer, &unknown);
        call->platform_code = 0;
        struct cn_json **files = read_versions(v4, state);
        append_queue(&json, state, files, queue,
                     cn_json_find(cn_json_find(answer, "result"), "settings"));
        free_versions(files, state);
        cn_json_free(answer);
    }
    cn_depot_state_unref(state);
    return json.size ? cn_control_result(call, &json)
                     : cn_v4_fail(call, err, CN_ENOTFOUND, 11000, "there is no such queue");
}

static bool is_taken(struct cn_control_call *call, const char *name)
{
    struct cn_depot_state *state = cn_depot_take(cn_v4_of(call)->depot);
    bool taken = cn_depot_resource(state, "queue", NULL, name) != NULL;
    cn_depot_state_unref(state);
    return taken;
}

static int create_queue(struct cn_control_call *call, struct cn_err *err)
{
    const char *name = cn_json_text(call->json, "queue_name");
    struct cn_json *answer = NULL;
    char id[33];
    if (!name_is_good(name))
        return cn_v4_fail(call, err, CN_EINVALID, 11003, "the name of a queue is not valid");
    /* With its settings first: what cannot be set is refused, and nothing is made. */
    int rc = is_taken(call, name)
                 ? 0
                 : ask_queue(call, "PUT", name, cn_json_find(call->json, "settings"), &answer, err);
    cn_json_free(answer);
    cn_depot_digits(id);
    if (rc == 0)
        rc = cn_v4_create(call, "queue", name, id, 11009, err);
    return rc < 0 ? rc : show_queue(call, id, err);
}

/* ?name=A&name=B asks for these. */
static bool is_asked(const struct cn_control_call *call, const char *name)
{
    bool any = false;
    for (size_t i = 0; i < call->param_count; i++) {
        if (strcmp(call->params[i].name, "name") != 0)
            continue;
        any = true;
        if (strcmp(call->params[i].value, name) == 0)
            return true;
    }
    return !any;
}

int cn_v4_queues(struct cn_control_call *call, struct cn_err *err)
{
    if (strcmp(call->method, "POST") == 0)
        return create_queue(call, err);
    struct cn_depot_state *state = cn_depot_take(cn_v4_of(call)->depot);
    struct cn_json **files = read_versions(cn_v4_of(call), state);
    struct cn_buf items = {0};
    size_t count = 0;
    for (size_t i = 0; i < state->resource_count && cn_v4_is_first_page(call); i++) {
        const struct cn_depot_resource *resource = &state->resources[i];
        if (strcmp(resource->kind, "queue") != 0 || !is_asked(call, resource->name))
            continue;
        cn_buf_append_str(&items, count++ ? "," : "");
        append_queue(&items, state, files, resource, NULL);
    }
    free_versions(files, state);
    cn_depot_state_unref(state);
    return cn_v4_list(call, &items, count);
}

/* "settings": delivery_paused, message_retention_period. The queue is made if nobody has used it.
 */
static int change_queue(struct cn_control_call *call, const char *name, struct cn_err *err)
{
    const struct cn_json *settings = cn_json_find(call->json, "settings");
    const char *asked = cn_json_text(call->json, "queue_name");
    struct cn_json *answer = NULL;
    if (asked && strcmp(asked, name) != 0)
        return cn_v4_fail(call, err, CN_EINVALID, 11003, "queues are not renamed here");
    int rc = settings ? ask_queue(call, "PUT", name, settings, &answer, err) : 0;
    cn_json_free(answer);
    return rc < 0 ? rc : show_queue(call, call->path[5], err);
}

static void drop_consumer(struct cn_depot_state *state, const char *queue)
{
    const struct cn_depot_script *script = NULL;
    size_t index;
    struct cn_json *json = find_consumer(state, queue, &script, &index);
    if (!json)
        return;
    struct cn_depot_texts *texts =
        script ? &cn_depot_find(state, script->name)->consumers : &state->pullers;
    cn_free(texts->items[index]);
    texts->items[index] = texts->items[--texts->count];
    cn_json_free(json);
}

/* With whoever pulls from it; a worker that consumes it keeps its name in its configuration. */
static int delete_queue(struct cn_control_call *call, struct cn_err *err)
{
    struct cn_v4 *v4 = cn_v4_of(call);
    struct cn_depot_state *state = cn_v4_change(call, err);
    if (!state)
        return err->code;
    const struct cn_depot_resource *queue = cn_depot_resource(state, "queue", call->path[5], NULL);
    if (!queue) {
        cn_depot_change_drop(v4->depot, state);
        return cn_v4_fail(call, err, CN_ENOTFOUND, 11000, "there is no such queue");
    }
    struct cn_json *puller = cn_v4_puller(state, queue->name);
    if (puller)
        drop_consumer(state, queue->name);
    cn_json_free(puller);
    char *what = cn_sprintf("queue %s", queue->name);
    cn_v4_note(call, state, "delete", "", what);
    cn_free(what);
    cn_depot_remove_resource(state, "queue", call->path[5]);
    return cn_v4_keep(call, state, err);
}

int cn_v4_queue(struct cn_control_call *call, struct cn_err *err)
{
    if (strcmp(call->method, "GET") == 0)
        return show_queue(call, call->path[5], err);
    if (strcmp(call->method, "DELETE") == 0) {
        int rc = delete_queue(call, err);
        return rc < 0 ? rc : cn_v4_answer_null(call);
    }
    struct cn_depot_state *state = cn_depot_take(cn_v4_of(call)->depot);
    const struct cn_depot_resource *queue = cn_depot_resource(state, "queue", call->path[5], NULL);
    char *name = queue ? cn_strdup(queue->name) : NULL;
    cn_depot_state_unref(state);
    int rc = name ? change_queue(call, name, err)
                  : cn_v4_fail(call, err, CN_ENOTFOUND, 11000, "there is no such queue");
    cn_free(name);
    return rc;
}

/* Whether the body asks for a consumer that fetches messages over HTTP. */
static bool is_puller(const struct cn_control_call *call)
{
    const char *type = cn_json_text(call->json, "type");
    return type && strcmp(type, "http_pull") == 0;
}

/* Those of a worker are checked with its configuration. */
static int check_puller(struct cn_control_call *call, const char *queue,
                        const struct cn_json *settings, const char *dead, struct cn_err *err)
{
    static const struct {
        const char *name;
        int64_t min, max;
    } bounds[] = {{"batch_size", 1, 100},
                  {"max_retries", 0, 100},
                  {"visibility_timeout_ms", 1, 43200000},
                  {"retry_delay", 0, 86400}};
    for (size_t i = 0; i < CN_ARRAY_COUNT(bounds); i++) {
        const struct cn_json *value = cn_json_find(settings, bounds[i].name);
        if (value && value->kind != CN_JSON_NULL &&
            (value->kind != CN_JSON_INT || value->integer < bounds[i].min ||
             value->integer > bounds[i].max))
            return cn_v4_fail(call, err, CN_EINVALID, 11001,
                              "\"%s\" must be a number from %" PRId64 " to %" PRId64,
                              bounds[i].name, bounds[i].min, bounds[i].max);
    }
    if (dead && *dead && (!name_is_good(dead) || strcmp(dead, queue) == 0))
        return cn_v4_fail(call, err, CN_EINVALID, 11001,
                          "\"dead_letter_queue\" must be the name of another queue");
    return 0;
}

/* The entry of queues.consumers that the body asks for. */
static int read_consumer(struct cn_control_call *call, const char *queue, struct cn_buf *json,
                         struct cn_err *err)
{
    const struct cn_json *settings = cn_json_find(call->json, "settings");
    const char *dead = cn_json_text(call->json, "dead_letter_queue");
    const struct cn_json *wait = cn_json_find(settings, "max_wait_time_ms");
    int rc = is_puller(call) ? check_puller(call, queue, settings, dead, err) : 0;
    if (rc < 0)
        return rc;
    cn_buf_append_byte(json, '{');
    cn_v4_put_text(json, "queue", queue);
    if (is_puller(call))
        cn_v4_put_text(json, "type", "http_pull");
    if (dead && *dead)
        cn_v4_put_text(json, "dead_letter_queue", dead);
    put_setting(json, settings, "visibility_timeout_ms", "visibility_timeout_ms", 1);
    put_setting(json, settings, "batch_size", "max_batch_size", 1);
    put_setting(json, settings, "max_retries", "max_retries", 1);
    put_setting(json, settings, "max_concurrency", "max_concurrency", 1);
    put_setting(json, settings, "retry_delay", "retry_delay", 1);
    if (wait && wait->kind == CN_JSON_INT)
        cn_buf_printf(json, ",\"max_batch_timeout\":%" PRId64, wait->integer / 1000);
    cn_buf_append_byte(json, '}');
    cn_buf_text(json);
    return 0;
}

/* The worker that the body names, or whoever pulls, gets the queue, alone. *deploys: whether that
 * changes what a worker does. */
static int change_consumer(struct cn_control_call *call, struct cn_depot_state *state,
                           bool *deploys, struct cn_err *err)
{
    const struct cn_depot_resource *queue = cn_depot_resource(state, "queue", call->path[5], NULL);
    const char *name = cn_json_text(call->json, "script_name");
    if (!queue)
        return cn_v4_fail(call, err, CN_ENOTFOUND, 11000, "there is no such queue");
    struct cn_depot_script *script = name ? cn_depot_find(state, name) : NULL;
    const struct cn_depot_script *has = NULL;
    size_t index;
    struct cn_json *old = find_consumer(state, queue->name, &has, &index);
    cn_json_free(old);
    *deploys = old ? has != NULL : !is_puller(call);
    if (strcmp(call->method, "DELETE") == 0) {
        drop_consumer(state, queue->name);
        return old ? 0 : cn_v4_fail(call, err, CN_ENOTFOUND, 11001, "the queue has no consumer");
    }
    const char *type = cn_json_text(call->json, "type");
    if (type && strcmp(type, "worker") != 0 && !is_puller(call))
        return cn_v4_fail(call, err, CN_EINVALID, 11001,
                          "a consumer is of the type \"worker\" or \"http_pull\"");
    if (!script && !is_puller(call))
        return cn_v4_fail(call, err, CN_ENOTFOUND, 11001, "\"script_name\" names no worker here");
    if (old && has != (is_puller(call) ? NULL : script))
        return cn_v4_fail(call, err, CN_EEXISTS, 11004, "the queue has a consumer: %s",
                          has ? has->name : "it is pulled from over HTTP");
    struct cn_buf json = {0};
    int rc = read_consumer(call, queue->name, &json, err);
    if (rc == 0) {
        drop_consumer(state, queue->name);
        cn_depot_texts_add(is_puller(call) ? &state->pullers : &script->consumers,
                           cn_buf_text(&json));
    }
    cn_buf_fini(&json);
    return rc;
}

static int list_consumers(struct cn_control_call *call, struct cn_err *err)
{
    struct cn_depot_state *state = cn_depot_take(cn_v4_of(call)->depot);
    const struct cn_depot_resource *queue = cn_depot_resource(state, "queue", call->path[5], NULL);
    const struct cn_depot_script *script = NULL;
    size_t index;
    struct cn_json *consumer = queue ? find_consumer(state, queue->name, &script, &index) : NULL;
    struct cn_buf items = {0};
    if (consumer)
        append_consumer(&items, queue->id, queue->name, script, consumer);
    size_t count = consumer != NULL;
    bool known = queue != NULL;
    cn_json_free(consumer);
    cn_depot_state_unref(state);
    return known ? cn_v4_list(call, &items, count)
                 : cn_v4_fail(call, err, CN_ENOTFOUND, 11000, "there is no such queue");
}

int cn_v4_consumers(struct cn_control_call *call, struct cn_err *err)
{
    struct cn_v4 *v4 = cn_v4_of(call);
    if (strcmp(call->method, "GET") == 0)
        return list_consumers(call, err);
    const char *worker = cn_json_text(call->json, "script_name");
    bool deploys = true;
    struct cn_depot_state *state = cn_v4_change(call, err);
    if (!state)
        return err->code;
    int rc = change_consumer(call, state, &deploys, err);
    if (rc < 0) {
        cn_depot_change_drop(v4->depot, state);
        return rc;
    }
    cn_v4_note(call, state, "consumer", worker ? worker : "", call->path[5]);
    rc = deploys ? cn_v4_deploy(call, state, err) : cn_v4_keep(call, state, err);
    if (rc < 0)
        return rc;
    cn_info("the consumer of the queue %s was changed by %s", call->path[5], call->who.name);
    if (strcmp(call->method, "DELETE") == 0)
        return cn_v4_answer_null(call);
    struct cn_buf json = {0};
    cn_buf_append_byte(&json, '{');
    cn_v4_put_text(&json, "consumer_id", call->path[5]);
    cn_buf_append_byte(&json, '}');
    return cn_control_result(call, &json);
}
