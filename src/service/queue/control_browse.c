/* SPDX-License-Identifier: Apache-2.0 */
/* service/queue/control_browse.c - queues for people: which there are, what waits in them, and dead
 * letters on their way back. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "admin/clone.h"
#include "admin/handler.h"
#include "base/mem.h"
#include "object/node.h"
#include "service/queue/control.h"
#include "service/queue/queue.h"
#include "store/catalog.h"
#include "store/store.h"
#include "text/base64.h"
#include "worker/script.h"

#define PEEK_MAX 100
#define PEEK_SIZE_MAX ((size_t)4 << 20)
#define REDRIVE_MAX 1000000
/* How long messages under way to another queue are out; then they are back. */
#define REDRIVE_LEASE_MS 60000

static const char *queue_name(const struct cn_namespace *ns)
{
    return ns->name + strlen("$queue/");
}

/* --- list ------------------------------------------------------------------------------------ */

static void append_name(struct cn_buf *out, const struct cn_namespace *ns)
{
    if (ns)
        cn_buf_append_json(out, queue_name(ns), strlen(queue_name(ns)));
    else
        cn_buf_append_str(out, "null");
}

/* ,"consumers":[...],"deadLetterQueue":NAME|null,"deadLettersOf":[NAME,...] of what is served. */
static void append_consumers(struct cn_control_call *call, struct cn_buf *out, uint32_t id)
{
    struct cn_deployment *deployment = cn_control_deployment(call);
    const struct cn_namespace *dead_letters = NULL;
    struct cn_buf sources = {0};
    bool first = true;
    cn_buf_append_str(out, ",\"consumers\":[");
    for (size_t i = 0; deployment && i < deployment->script_count; i++) {
        const struct cn_script *script = deployment->scripts[i];
        for (size_t k = 0; k < script->consumer_count; k++) {
            const struct cn_script_consumer *consumer = &script->consumers[k];
            if (consumer->dead_letters && consumer->dead_letters->id == id) {
                cn_buf_append_str(&sources, sources.size ? "," : "");
                append_name(&sources, consumer->ns);
            }
            if (consumer->ns->id != id)
                continue;
            dead_letters = consumer->dead_letters;
            cn_buf_append_str(out, first ? "{\"worker\":" : ",{\"worker\":");
            cn_buf_append_json(out, script->name, strlen(script->name));
            cn_buf_printf(out,
                          ",\"type\":\"%s\",\"maxBatchSize\":%u,\"maxBatchTimeoutMs\":%u,"
                          "\"maxRetries\":%u,\"deadLetterQueue\":",
                          consumer->pulls ? "http_pull" : "worker", consumer->batch_count,
                          consumer->timeout_ms, consumer->max_retries);
            append_name(out, consumer->dead_letters);
            cn_buf_append_byte(out, '}');
            first = false;
        }
    }
    cn_buf_append_str(out, "],\"deadLetterQueue\":");
    append_name(out, dead_letters);
    cn_buf_append_str(out, ",\"deadLettersOf\":[");
    cn_buf_append(out, sources.data, sources.size);
    cn_buf_append_byte(out, ']');
    cn_buf_fini(&sources);
    if (deployment)
        cn_deployment_unref(deployment);
}

static int append_queue(struct cn_control_call *call, uint32_t id, const char *name, void *data,
                        struct cn_err *err)
{
    struct cn_buf *out = &call->scratch;
    struct cn_namespace *ns;
    bool *first = data;
    int rc = cn_control_service(call, "queue", name, &ns, err);
    if (rc < 0)
        return rc;
    struct cn_queue_call *request = cn_queue_call_new(ns, CN_QUEUE_METRICS);
    rc = cn_control_ask(call, &request->base, err);
    struct cn_queue_metrics metrics = request->metrics;
    cn_service_call_free(&request->base);
    if (rc < 0)
        return rc;
    cn_buf_append_str(out, *first ? "{\"name\":" : ",{\"name\":");
    *first = false;
    cn_buf_append_json(out, name, strlen(name));
    cn_buf_printf(out, ",\"backlog\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"oldest\":", metrics.count,
                  metrics.bytes);
    if (metrics.oldest_ms)
        cn_buf_printf(out, "%" PRId64, metrics.oldest_ms);
    else
        cn_buf_append_str(out, "null");
    cn_buf_printf(out,
                  ",\"leased\":%" PRIu64 ",\"dropped\":%" PRIu64
                  ",\"paused\":%s,\"retentionSeconds\":%" PRId64,
                  metrics.leased, metrics.dropped, metrics.paused ? "true" : "false",
                  metrics.retention_s);
    append_consumers(call, out, id);
    cn_control_append_bindings(call, out, id, NULL);
    cn_buf_append_byte(out, '}');
    return 0;
}

/* GET /api/queues */
int cn_queue_control_list(struct cn_control_call *call, struct cn_err *err)
{
    bool first = true;
    cn_buf_append_str(&call->scratch, "{\"queues\":[");
    int rc = cn_control_each_service(call, "queue", append_queue, &first, err);
    if (rc < 0)
        return rc;
    cn_buf_append_str(&call->scratch, "]}");
    return cn_control_answer(call, &call->scratch);
}

/* --- peek ------------------------------------------------------------------------------------ */

struct peeking {
    struct cn_namespace *ns;
    struct cn_buf *out;
    struct cn_queue_peek peek;
    bool first;
};

/* The body as JSON: its value; bytes as {"$bytes":"base64"}, as in an object's storage. */
static void append_body(struct cn_buf *out, enum cn_queue_type type, const void *body, size_t size)
{
    switch (type) {
    case CN_QUEUE_JSON:
        cn_buf_append(out, body, size);
        break;
    case CN_QUEUE_TEXT:
        cn_buf_append_json(out, body, size);
        break;
    case CN_QUEUE_BYTES:
        cn_buf_append_str(out, "{\"$bytes\":\"");
        cn_base64_encode(out, body, size);
        cn_buf_append_str(out, "\"}");
        break;
    case CN_QUEUE_V8:
        cn_clone_append_json(out, body, size);
        break;
    }
}

static void append_message(void *data, const struct cn_queue_message *message, const void *body,
                           int64_t due_ms)
{
    static const char *const types[] = {"json", "text", "bytes", "v8"};
    struct peeking *peeking = data;
    cn_buf_printf(peeking->out,
                  "%s{\"id\":\"%s\",\"timestamp\":%" PRId64
                  ",\"attempts\":%u,\"contentType\":\"%s\",\"bytes\":%zu,\"due\":",
                  peeking->first ? "" : ",", message->id, message->sent_ms, message->attempts,
                  types[message->type], message->size);
    peeking->first = false;
    if (due_ms)
        cn_buf_printf(peeking->out, "%" PRId64, due_ms);
    else
        cn_buf_append_str(peeking->out, "null");
    cn_buf_append_str(peeking->out, ",\"body\":");
    append_body(peeking->out, message->type, body, message->size);
    cn_buf_append_byte(peeking->out, '}');
}

static int peek_database(struct cn_object *object, struct cn_database *db, void *data,
                         struct cn_err *err)
{
    (void)object;
    struct peeking *peeking = data;
    return cn_queue_peek(peeking->ns, db, &peeking->peek, err);
}

/* GET /api/queues/NAME/messages: what waits, without taking it */
int cn_queue_control_peek(struct cn_control_call *call, struct cn_err *err)
{
    struct peeking peeking = {.out = &call->scratch, .first = true};
    struct cn_buf cursor = {0};
    int64_t limit = 0;
    int rc = cn_control_service(call, "queue", call->path[2], &peeking.ns, err);
    if (rc == 0)
        rc = cn_control_param_number(call, "limit", PEEK_MAX, 10, &limit, err);
    if (rc == 0)
        rc = cn_control_read_cursor(call, "rd", &cursor, err);
    if (rc > 0 && cursor.size != sizeof(peeking.peek.after))
        rc = cn_err_set(err, CN_EINVALID, "the cursor is not one of this list");
    if (rc > 0)
        memcpy(&peeking.peek.after, cursor.data, cursor.size);
    cn_buf_fini(&cursor);
    if (rc < 0)
        return rc;
    struct cn_queue_peek *peek = &peeking.peek;
    *peek = (struct cn_queue_peek){.after = peek->after,
                                   .delayed = rc == 'd',
                                   .limit = limit ? (size_t)limit : 1,
                                   .size_max = PEEK_SIZE_MAX,
                                   .data = &peeking,
                                   .each = append_message};
    struct cn_queue_call *about = cn_queue_call_new(peeking.ns, CN_QUEUE_METRICS);
    struct cn_object_key key = about->base.call.key;
    rc = cn_control_ask(call, &about->base, err); /* and so it exists */
    cn_service_call_free(&about->base);
    cn_buf_append_str(peeking.out, "{\"messages\":[");
    if (rc == 0)
        rc = cn_control_with_database(call, &key, peek_database, &peeking, err);
    if (rc < 0)
        return rc;
    cn_buf_append_str(peeking.out, "],\"cursor\":");
    if (peek->more)
        cn_control_append_cursor(peeking.out, peek->delayed ? 'd' : 'r', &peek->after,
                                 sizeof(peek->after));
    else
        cn_buf_append_str(peeking.out, "null");
    cn_buf_printf(peeking.out, ",\"complete\":%s}", peek->more ? "false" : "true");
    return cn_control_answer(call, peeking.out);
}

/* --- dead letters ---------------------------------------------------------------------------- */

/* The one queue of what is served whose dead letters come here. */
static int find_source(struct cn_control_call *call, const struct cn_namespace *dead,
                       struct cn_namespace **source, struct cn_err *err)
{
    struct cn_deployment *deployment = cn_control_deployment(call);
    size_t count = 0;
    for (size_t i = 0; deployment && i < deployment->script_count; i++) {
        const struct cn_script *script = deployment->scripts[i];
        for (size_t k = 0; k < script->consumer_count; k++) {
            const struct cn_script_consumer *consumer = &script->consumers[k];
            if (consumer->dead_letters != dead || (count && *source == consumer->ns))
                continue;
            *source = consumer->ns;
            count++;
        }
    }
    if (deployment)
        cn_deployment_unref(deployment);
    if (count == 1)
        return 0;
    return cn_err_set(err, CN_EINVALID, "where to? %s: say it with \"to\" (--to QUEUE)",
                      count ? "The dead letters of several queues come here"
                            : "No consumer that is served has this as its dead letter queue");
}

/* Takes up to `count` messages, sends them on, and only when they are durable there lets them go
 * here: a crash in between delivers them twice, none is lost. Returns how many. */
static int64_t move_batch(struct cn_control_call *call, struct cn_namespace *from,
                          struct cn_namespace *to, size_t count, struct cn_err *err)
{
    struct cn_queue_call *taken = cn_queue_call_new(from, CN_QUEUE_RECEIVE);
    taken->count_max = count;
    taken->lease_ms = REDRIVE_LEASE_MS;
    taken->paused_too = true;
    taken->policy.max_retries = UINT32_MAX; /* never dropped because this was interrupted */
    int rc = cn_control_ask(call, &taken->base, err);
    if (rc < 0 || taken->count == 0) {
        cn_service_call_free(&taken->base);
        return rc;
    }
    struct cn_queue_call *sent = cn_queue_call_new(to, CN_QUEUE_SEND);
    for (size_t i = 0; i < taken->count; i++) {
        const struct cn_queue_message *message = &taken->messages[i];
        cn_queue_add(sent, taken->bodies.data + message->offset, message->size, message->type, 0);
    }
    rc = cn_control_ask(call, &sent->base, err);
    struct cn_queue_call *settled = cn_queue_call_new(from, CN_QUEUE_SETTLE);
    struct cn_err ignored;
    settled->lease = taken->lease;
    settled->release = rc < 0;
    settled->verdicts = cn_alloc_zero(taken->count * sizeof(*settled->verdicts)); /* acknowledged */
    settled->verdict_count = taken->count;
    settled->policy = taken->policy;
    int settle_rc = cn_control_ask(call, &settled->base, rc < 0 ? &ignored : err);
    int64_t moved = rc < 0 ? rc : settle_rc < 0 ? settle_rc : (int64_t)taken->count;
    cn_service_call_free(&taken->base);
    cn_service_call_free(&sent->base);
    cn_service_call_free(&settled->base);
    return moved;
}

/* POST /api/queues/NAME/redrive {"to": NAME, "limit": N} */
int cn_queue_control_redrive(struct cn_control_call *call, struct cn_err *err)
{
    struct cn_namespace *from, *to = NULL;
    const struct cn_json *limit = cn_json_find(call->json, "limit");
    const struct cn_json *target = cn_json_find(call->json, "to");
    if (target && target->kind != CN_JSON_STRING)
        return cn_err_set(err, CN_EINVALID, "\"to\" must be the name of a queue");
    if (limit && (limit->kind != CN_JSON_INT || limit->integer < 1 || limit->integer > REDRIVE_MAX))
        return cn_err_set(err, CN_EINVALID, "\"limit\" must be a number from 1 to %d", REDRIVE_MAX);
    int rc = cn_control_service(call, "queue", call->path[2], &from, err);
    if (rc == 0)
        rc = target ? cn_control_service(call, "queue", target->text, &to, err)
                    : find_source(call, from, &to, err);
    if (rc == 0 && to == from)
        rc = cn_err_set(err, CN_EINVALID, "the messages are there already");
    if (rc < 0)
        return rc;
    /* No more than there are now: what fails again and comes back waits for the next time. */
    struct cn_queue_call *about = cn_queue_call_new(from, CN_QUEUE_METRICS);
    rc = cn_control_ask(call, &about->base, err);
    int64_t left = (int64_t)about->metrics.count, moved = 0, count = 1;
    cn_service_call_free(&about->base);
    if (limit && limit->integer < left)
        left = limit->integer;
    while (rc == 0 && count > 0 && moved < left && !(call->cancelled && call->cancelled(call))) {
        int64_t most = left - moved;
        count = move_batch(
            call, from, to,
            most < CN_QUEUE_BATCH_COUNT_MAX ? (size_t)most : CN_QUEUE_BATCH_COUNT_MAX, err);
        if (count < 0 && moved == 0)
            rc = (int)count;
        moved += count > 0 ? count : 0;
    }
    if (rc < 0)
        return rc;
    cn_buf_printf(&call->scratch, "{\"moved\":%" PRId64 ",\"to\":", moved);
    append_name(&call->scratch, to);
    cn_buf_append_byte(&call->scratch, '}');
    return cn_control_answer(call, &call->scratch);
}
