/* SPDX-License-Identifier: Apache-2.0 */
/* service/queue/control.c - queues over HTTP: publish, pull, acknowledge, pause, purge. Requests
 * and answers have the shape of the hosted platform's API. */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "admin/handler.h"
#include "base/mem.h"
#include "object/node.h"
#include "service/queue/control.h"
#include "service/queue/queue.h"
#include "text/base64.h"
#include "worker/script.h"

#define RETENTION_MIN_S 60
#define RETENTION_MAX_S (14 * 86400)
#define VISIBILITY_DEFAULT_MS 30000
#define MAX_RETRIES_DEFAULT 3
#define VISIBILITY_MAX_MS (12 * 3600 * 1000)

/* The settings of the consumer that pulls, as a configuration has them. */
static void find_policy(struct cn_control_call *call, struct cn_queue_call *request)
{
    request->policy.max_retries = MAX_RETRIES_DEFAULT;
    struct cn_deployment *deployment = cn_control_deployment(call);
    for (size_t i = 0; deployment && i < deployment->script_count; i++) {
        const struct cn_script *script = deployment->scripts[i];
        for (size_t k = 0; k < script->consumer_count; k++) {
            const struct cn_script_consumer *consumer = &script->consumers[k];
            if (consumer->ns != request->base.call.ns)
                continue;
            request->policy = (struct cn_queue_policy){
                consumer->max_retries, consumer->retry_delay_s, consumer->dead_letters};
            if (!request->lease_ms)
                request->lease_ms = consumer->visibility_ms;
        }
    }
    if (deployment)
        cn_deployment_unref(deployment);
}

static int read_number(const struct cn_json *object, const char *name, int64_t min, int64_t max,
                       int64_t fallback, int64_t *value, struct cn_err *err)
{
    const struct cn_json *found = cn_json_find(object, name);
    *value = fallback;
    if (!found)
        return 0;
    if (found->kind != CN_JSON_INT || found->integer < min || found->integer > max)
        return cn_err_set(err, CN_EINVALID, "\"%s\" must be a number from %" PRId64 " to %" PRId64,
                          name, min, max);
    *value = found->integer;
    return 0;
}

/* The same, of one who is no worker: they come with the request. */
static int read_policy(struct cn_control_call *call, const struct cn_json *consumer,
                       struct cn_queue_call *request, struct cn_err *err)
{
    const char *dead = cn_json_text(consumer, "dead_letter_queue");
    int64_t retries = 0, visibility = 0;
    int rc = read_number(consumer, "max_retries", 0, 100, MAX_RETRIES_DEFAULT, &retries, err);
    if (rc == 0)
        rc = read_number(consumer, "retry_delay", 0, CN_QUEUE_DELAY_MAX_S, 0,
                         &request->policy.retry_delay_s, err);
    if (rc == 0)
        rc = read_number(consumer, "visibility_timeout_ms", 0, VISIBILITY_MAX_MS, 0, &visibility,
                         err);
    if (rc == 0 && dead)
        rc = cn_control_service(call, "queue", dead, &request->policy.dead_letters, err);
    if (rc < 0)
        return rc;
    request->policy.max_retries = (unsigned)retries;
    if (!request->lease_ms)
        request->lease_ms = (unsigned)visibility;
    return 0;
}

static int ask_queue(struct cn_control_call *call, struct cn_queue_call *request,
                     struct cn_err *err)
{
    const struct cn_json *consumer = cn_json_find(call->json, "consumer");
    int rc = consumer ? read_policy(call, consumer, request, err) : 0;
    if (rc < 0)
        return rc;
    if (!consumer)
        find_policy(call, request);
    if (!request->lease_ms)
        request->lease_ms = VISIBILITY_DEFAULT_MS;
    return cn_control_ask(call, &request->base, err);
}

static void append_metrics(struct cn_buf *out, const struct cn_queue_metrics *metrics)
{
    cn_buf_printf(out,
                  "\"backlog_count\":%" PRIu64 ",\"backlog_bytes\":%" PRIu64
                  ",\"oldest_message_timestamp_ms\":%" PRId64,
                  metrics->count, metrics->bytes, metrics->oldest_ms);
}

/* --- publish --------------------------------------------------------------------------------- */

static int read_delay(const struct cn_json *object, int64_t fallback, int64_t *delay_s,
                      struct cn_err *err)
{
    const struct cn_json *delay = cn_json_find(object, "delay_seconds");
    *delay_s = fallback;
    if (!delay)
        return 0;
    if (delay->kind != CN_JSON_INT || delay->integer < 0 || delay->integer > CN_QUEUE_DELAY_MAX_S)
        return cn_err_set(err, CN_EINVALID, "\"delay_seconds\" must be a number from 0 to %d",
                          CN_QUEUE_DELAY_MAX_S);
    *delay_s = delay->integer;
    return 0;
}

static int add_message(struct cn_queue_call *request, const struct cn_json *message,
                       int64_t delay_s, struct cn_err *err)
{
    const struct cn_json *body = cn_json_find(message, "body");
    const char *type = cn_json_text(message, "content_type");
    if (!body)
        return cn_err_set(err, CN_EINVALID, "a message must have a \"body\"");
    if (type && strcmp(type, "json") != 0 && strcmp(type, "text") != 0)
        return cn_err_set(err, CN_EINVALID, "\"content_type\" must be \"json\" or \"text\"");
    bool text = type ? strcmp(type, "text") == 0 : body->kind == CN_JSON_STRING;
    if (text && body->kind != CN_JSON_STRING)
        return cn_err_set(err, CN_EINVALID, "a \"body\" of type text must be a string");
    int rc = read_delay(message, delay_s, &delay_s, err);
    if (rc < 0)
        return rc;
    struct cn_buf bytes = {0};
    if (text)
        cn_buf_append(&bytes, body->text, body->size);
    else
        cn_json_write(&bytes, body);
    if (bytes.size > CN_QUEUE_MESSAGE_SIZE_MAX)
        rc = cn_err_set(err, CN_ELIMIT, "message length of %zu bytes exceeds limit of %d",
                        bytes.size, CN_QUEUE_MESSAGE_SIZE_MAX);
    else if (request->count >= CN_QUEUE_BATCH_COUNT_MAX)
        rc = cn_err_set(err, CN_ELIMIT, "more than %d messages", CN_QUEUE_BATCH_COUNT_MAX);
    else
        cn_queue_add(request, bytes.data ? bytes.data : (uint8_t *)"", bytes.size,
                     text ? CN_QUEUE_TEXT : CN_QUEUE_JSON, delay_s);
    cn_buf_fini(&bytes);
    return rc;
}

/* POST /api/queues/NAME/messages and .../messages/batch */
static int send_messages(struct cn_control_call *call, struct cn_err *err)
{
    struct cn_namespace *ns;
    int rc = cn_control_service(call, "queue", call->path[2], &ns, err);
    if (rc < 0)
        return rc;
    struct cn_queue_call *request = cn_queue_call_new(ns, CN_QUEUE_SEND);
    int64_t delay_s;
    rc = read_delay(call->json, 0, &delay_s, err);
    if (rc == 0 && call->path_count == 5) {
        const struct cn_json *list = cn_json_find(call->json, "messages");
        if (!list || list->kind != CN_JSON_ARRAY || !list->first)
            rc = cn_err_set(err, CN_EINVALID, "\"messages\" must be an array of messages");
        for (const struct cn_json *each = rc == 0 ? list->first : NULL; each && rc == 0;
             each = each->next)
            rc = add_message(request, each, delay_s, err);
    } else if (rc == 0) {
        rc = add_message(request, call->json, delay_s, err);
    }
    if (rc == 0 && request->bodies.size > CN_QUEUE_BATCH_SIZE_MAX)
        rc = cn_err_set(err, CN_ELIMIT, "batch size of %zu bytes exceeds limit of %d",
                        request->bodies.size, CN_QUEUE_BATCH_SIZE_MAX);
    if (rc == 0)
        rc = ask_queue(call, request, err);
    struct cn_buf result = {0};
    if (rc == 0) {
        cn_buf_append_str(&result, "{\"metadata\":{\"metrics\":{");
        append_metrics(&result, &request->metrics);
        cn_buf_append_str(&result, "}}}");
    }
    cn_service_call_free(&request->base);
    return rc < 0 ? rc : cn_control_result(call, &result);
}

/* --- pull ------------------------------------------------------------------------------------ */

static void append_messages(struct cn_buf *out, const struct cn_queue_call *request)
{
    static const char *const types[] = {"json", "text", "bytes", "v8"};
    for (size_t i = 0; i < request->count; i++) {
        const struct cn_queue_message *message = &request->messages[i];
        const uint8_t *body = request->bodies.data + message->offset;
        cn_buf_printf(out,
                      "%s{\"id\":\"%s\",\"timestamp_ms\":%" PRId64
                      ",\"attempts\":%u,\"lease_id\":\"%" PRIx64 "-%x\","
                      "\"metadata\":{\"CF-Content-Type\":\"%s\"},\"body\":",
                      i ? "," : "", message->id, message->sent_ms, message->attempts,
                      (uint64_t)message->row, message->attempts, types[message->type]);
        if (message->type == CN_QUEUE_TEXT) {
            cn_buf_append_json(out, (const char *)body, message->size);
        } else {
            cn_buf_append_byte(out, '"');
            cn_base64_encode(out, body, message->size);
            cn_buf_append_byte(out, '"');
        }
        cn_buf_append_byte(out, '}');
    }
}

/* POST /api/queues/NAME/messages/pull */
static int pull_messages(struct cn_control_call *call, struct cn_err *err)
{
    struct cn_namespace *ns;
    int64_t count = 0, visibility = 0;
    int rc = cn_control_service(call, "queue", call->path[2], &ns, err);
    if (rc == 0)
        rc = read_number(call->json, "batch_size", 1, CN_QUEUE_BATCH_COUNT_MAX, 5, &count, err);
    if (rc == 0)
        rc = read_number(call->json, "visibility_timeout_ms", 1, VISIBILITY_MAX_MS, 0, &visibility,
                         err);
    if (rc < 0)
        return rc;
    struct cn_queue_call *request = cn_queue_call_new(ns, CN_QUEUE_RECEIVE);
    request->lease_ms = (unsigned)visibility;
    const struct cn_json *consumer = cn_json_find(call->json, "consumer");
    if (!cn_json_find(call->json, "batch_size") && cn_json_find(consumer, "max_batch_size"))
        rc = read_number(consumer, "max_batch_size", 1, CN_QUEUE_BATCH_COUNT_MAX, 5, &count, err);
    request->count_max = (size_t)count;
    if (rc == 0)
        rc = ask_queue(call, request, err);
    struct cn_buf result = {0};
    if (rc == 0) {
        cn_buf_printf(&result, "{\"message_backlog_count\":%" PRIu64 ",\"messages\":[",
                      request->metrics.count);
        append_messages(&result, request);
        cn_buf_append_str(&result, "]}");
    }
    cn_service_call_free(&request->base);
    return rc < 0 ? rc : cn_control_result(call, &result);
}

static int add_leases(struct cn_queue_call *request, const struct cn_json *list, bool retry,
                      struct cn_err *err)
{
    if (list && list->kind != CN_JSON_ARRAY)
        return cn_err_set(err, CN_EINVALID, "\"acks\" and \"retries\" must be arrays");
    for (const struct cn_json *each = list ? list->first : NULL; each; each = each->next) {
        const char *lease = cn_json_text(each, "lease_id");
        char *end = NULL;
        struct cn_queue_verdict verdict = {.retry = retry, .delay_s = -1};
        if (lease)
            verdict.row = (int64_t)strtoull(lease, &end, 16);
        if (!lease || end == lease || *end != '-' || !isxdigit((unsigned char)end[1]))
            return cn_err_set(err, CN_EINVALID, "each entry must have a \"lease_id\"");
        verdict.attempts = (uint32_t)strtoul(end + 1, NULL, 16);
        int rc = read_delay(each, -1, &verdict.delay_s, err);
        if (rc < 0)
            return rc;
        request->verdicts = cn_realloc(request->verdicts,
                                       (request->verdict_count + 1) * sizeof(*request->verdicts));
        request->verdicts[request->verdict_count++] = verdict;
        if (request->verdict_count > CN_QUEUE_BATCH_COUNT_MAX)
            return cn_err_set(err, CN_ELIMIT, "more than %d leases", CN_QUEUE_BATCH_COUNT_MAX);
    }
    return 0;
}

/* What became of them; a lease that was not good any more is named. */
static void append_outcome(struct cn_buf *out, const struct cn_queue_call *request)
{
    size_t settled[2] = {0};
    bool warned = false;
    for (size_t i = 0; i < request->verdict_count; i++)
        settled[request->verdicts[i].retry] += request->verdicts[i].good;
    cn_buf_printf(out, "{\"ackCount\":%zu,\"retryCount\":%zu,\"settledCount\":%zu,\"warnings\":{",
                  settled[false], settled[true], request->settled);
    for (size_t i = 0; i < request->verdict_count; i++) {
        const struct cn_queue_verdict *verdict = &request->verdicts[i];
        if (verdict->good)
            continue;
        cn_buf_printf(out, "%s\"%" PRIx64 "-%x\":\"the lease has ended\"", warned ? "," : "",
                      (uint64_t)verdict->row, verdict->attempts);
        warned = true;
    }
    cn_buf_append_str(out, "}}");
}

/* POST /api/queues/NAME/messages/ack */
static int ack_messages(struct cn_control_call *call, struct cn_err *err)
{
    struct cn_namespace *ns;
    int rc = cn_control_service(call, "queue", call->path[2], &ns, err);
    if (rc < 0)
        return rc;
    struct cn_queue_call *request = cn_queue_call_new(ns, CN_QUEUE_ACK);
    const struct cn_json *acks = cn_json_find(call->json, "acks");
    const struct cn_json *retries = cn_json_find(call->json, "retries");
    rc = add_leases(request, acks, false, err);
    if (rc == 0)
        rc = add_leases(request, retries, true, err);
    if (rc == 0)
        rc = ask_queue(call, request, err);
    struct cn_buf result = {0};
    if (rc == 0)
        append_outcome(&result, request);
    cn_service_call_free(&request->base);
    return rc < 0 ? rc : cn_control_result(call, &result);
}

/* --- settings -------------------------------------------------------------------------------- */

static int answer_queue(struct cn_control_call *call, const char *name,
                        const struct cn_queue_metrics *metrics)
{
    struct cn_buf result = {0};
    cn_buf_append_str(&result, "{\"queue_name\":");
    cn_buf_append_json(&result, name, strlen(name));
    cn_buf_append_byte(&result, ',');
    append_metrics(&result, metrics);
    cn_buf_printf(&result,
                  ",\"leased_count\":%" PRIu64 ",\"dropped_count\":%" PRIu64
                  ",\"settings\":{\"delivery_paused\":%s,\"message_retention_period\":%" PRId64
                  "}}",
                  metrics->leased, metrics->dropped, metrics->paused ? "true" : "false",
                  metrics->retention_s);
    return cn_control_result(call, &result);
}

/* GET, PATCH, PUT /api/queues/NAME and POST /api/queues/NAME/purge. PUT makes it, if it is not
 * there. */
static int handle_queue(struct cn_control_call *call, struct cn_err *err)
{
    struct cn_namespace *ns;
    bool put = strcmp(call->method, "PUT") == 0;
    int rc = put ? cn_control_service_make(call, "queue", call->path[2], err) : 0;
    if (rc == 0)
        rc = cn_control_service(call, "queue", call->path[2], &ns, err);
    if (rc < 0)
        return rc;
    bool patch = put || strcmp(call->method, "PATCH") == 0;
    struct cn_queue_call *request =
        cn_queue_call_new(ns, patch                   ? CN_QUEUE_CONFIGURE
                              : call->path_count == 4 ? CN_QUEUE_PURGE
                                                      : CN_QUEUE_METRICS);
    const struct cn_json *settings = patch ? cn_json_find(call->json, "settings") : NULL;
    const struct cn_json *paused = cn_json_find(settings, "delivery_paused");
    const struct cn_json *delay = cn_json_find(settings, "delivery_delay");
    if (patch && !put && !settings)
        rc = cn_err_set(err, CN_EINVALID, "\"settings\" is missing");
    else if (delay && !(delay->kind == CN_JSON_INT && delay->integer == 0))
        rc = cn_err_set(err, CN_EINVALID,
                        "a queue has no \"delivery_delay\" of its own here: a producer has one in "
                        "its configuration, and a message when it is sent");
    else if (paused && paused->kind != CN_JSON_BOOL)
        rc = cn_err_set(err, CN_EINVALID, "\"delivery_paused\" must be true or false");
    else
        rc = read_number(settings, "message_retention_period", RETENTION_MIN_S, RETENTION_MAX_S, -1,
                         &request->retention_s, err);
    if (paused)
        request->paused = paused->boolean;
    if (rc == 0)
        rc = ask_queue(call, request, err);
    struct cn_queue_metrics metrics = request->metrics;
    cn_service_call_free(&request->base);
    return rc < 0 ? rc : answer_queue(call, call->path[2], &metrics);
}

static const struct cn_control_route routes[] = {
    {"GET", {"api", "queues"}, cn_queue_control_list, 0},
    {"GET", {"api", "queues", "*", "messages"}, cn_queue_control_peek, 0},
    {"POST", {"api", "queues", "*", "redrive"}, cn_queue_control_redrive, 0},
    {"GET", {"api", "queues", "*"}, handle_queue, 0},
    {"PATCH", {"api", "queues", "*"}, handle_queue, 0},
    {"PUT", {"api", "queues", "*"}, handle_queue, 0},
    {"POST", {"api", "queues", "*", "purge"}, handle_queue, 0},
    {"POST", {"api", "queues", "*", "messages"}, send_messages, 0},
    {"POST", {"api", "queues", "*", "messages", "batch"}, send_messages, 0},
    {"POST", {"api", "queues", "*", "messages", "pull"}, pull_messages, 0},
    {"POST", {"api", "queues", "*", "messages", "ack"}, ack_messages, 0},
    {0},
};
const struct cn_control_routes cn_queue_routes = {routes};
