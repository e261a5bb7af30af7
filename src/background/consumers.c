/* SPDX-License-Identifier: Apache-2.0 */
#include "background/consumers.h"

#include <string.h>

#include "base/diag.h"
#include "base/loop.h"
#include "base/mem.h"
#include "object/node.h"
#include "service/node_calls.h"
#include "service/queue/queue.h"
#include "worker/background.h"
#include "worker/script.h"

/* How long to wait after a request that failed, and how often a batch is tried to be settled. */
#define RETRY_MS 1000
#define SETTLE_TRIES 20
#define VERDICT_SIZE 5

struct cn_consumers {
    struct cn_list list;      /* of struct consumer */
    struct cn_list unsettled; /* of struct batch: N2, they are settled again when the timer fires */
    uv_timer_t timer;         /* asks again after a failure */
    bool stopped;
};

struct consumer {
    struct cn_list link;
    struct cn_background *background;
    struct cn_script_consumer settings; /* strings are borrowed from the deployment */
    char *script;                       /* owned */
    struct cn_object_key key;           /* of the queue */
    unsigned limit;
    unsigned running;      /* batches at the script */
    struct cn_list events; /* of struct batch: these */
    size_t turn;           /* with which of the other nodes to begin: N3 */
    bool receiving;        /* a request is at the queue */
    bool pauses;           /* N5: until the timer fires */
    bool current;          /* the deployment has it */
};

/* A batch between its receipt and its settlement. */
struct batch {
    struct cn_list link; /* in consumer.events, then in cn_consumers.unsettled, or alone */
    uint64_t disk;       /* of the node where it runs; 0: here */
    struct consumer *consumer;
    struct cn_namespace *ns;
    struct cn_queue_policy policy;
    uint64_t lease;
    size_t count;
    struct cn_queue_verdict *verdicts; /* owned; one for each message, which they name */
    bool release;                      /* it was not tried */
    unsigned tries;
};

static bool is_stopping(const struct consumer *consumer)
{
    struct cn_consumers *all = consumer->background->consumers;
    return all->stopped || *consumer->background->draining;
}

static void on_received(struct cn_service_call *base);
static void on_retry(uv_timer_t *timer);

static void ask_later(struct cn_consumers *all)
{
    if (!uv_is_active((uv_handle_t *)&all->timer))
        uv_timer_start(&all->timer, on_retry, RETRY_MS, 0);
}

/* N1 */
static bool is_here(const struct consumer *consumer)
{
    return cn_object_lane_serves(consumer->background->objects, &consumer->key);
}

static size_t list_others(const struct consumer *consumer, struct cn_other others[CN_OTHERS_MAX])
{
    return cn_node_calls_list(cn_node_data(consumer->background->node), others, CN_OTHERS_MAX);
}

static bool may_run_more(const struct consumer *consumer)
{
    struct cn_other others[CN_OTHERS_MAX];
    if (consumer->running < consumer->limit)
        return true;
    if (consumer->settings.max_concurrency || consumer->running >= CN_CONSUMER_CONCURRENCY_MAX)
        return false;
    return consumer->running < consumer->limit * (1 + list_others(consumer, others));
}

static void ask(struct consumer *consumer)
{
    if (consumer->receiving || !consumer->current || is_stopping(consumer) ||
        !may_run_more(consumer))
        return;
    if (!is_here(consumer) || consumer->pauses) {
        ask_later(consumer->background->consumers);
        return;
    }
    const struct cn_script_consumer *settings = &consumer->settings;
    struct cn_queue_call *call = cn_queue_call_new(settings->ns, CN_QUEUE_RECEIVE);
    call->count_max = settings->batch_count;
    call->timeout_ms = settings->timeout_ms;
    call->waits = true;
    call->lease_ms = CN_QUEUE_LEASE_MS;
    call->policy = (struct cn_queue_policy){settings->max_retries, settings->retry_delay_s,
                                            settings->dead_letters};
    call->base.call.envelope.data = consumer;
    consumer->receiving = true;
    cn_service_call_send(&call->base, consumer->background->objects, on_received);
}

/* --- settling -------------------------------------------------------------------------------- */

static void free_batch(struct batch *batch)
{
    cn_list_remove(&batch->link);
    cn_free(batch->verdicts);
    cn_free(batch);
}

static struct cn_queue_verdict *copy_verdicts(const struct batch *batch)
{
    return cn_memdup(batch->verdicts, batch->count * sizeof(*batch->verdicts));
}

static void on_settled(struct cn_service_call *base);

/* The queue is told, by the lease; or, if it does not know that, by the messages: N2. */
static void settle(struct batch *batch, enum cn_queue_op op)
{
    struct cn_queue_call *call = cn_queue_call_new(batch->ns, op);
    call->lease = batch->lease;
    call->policy = batch->policy;
    call->release = batch->release;
    if (!batch->release) {
        call->verdicts = copy_verdicts(batch);
        call->verdict_count = batch->count;
    }
    batch->tries++;
    call->base.call.envelope.data = batch;
    cn_service_call_send(&call->base, batch->consumer->background->objects, on_settled);
}

static void on_settled(struct cn_service_call *base)
{
    struct cn_queue_call *call = CN_CONTAINER_OF(base, struct cn_queue_call, base);
    struct batch *batch = base->call.envelope.data;
    struct cn_consumers *all = batch->consumer->background->consumers;
    const struct cn_envelope *envelope = &base->call.envelope;
    bool again = envelope->err.code && (envelope->faults & CN_FAULT_RETRYABLE) && !all->stopped &&
                 batch->tries < SETTLE_TRIES;
    bool unknown = !envelope->err.code && call->unknown && !batch->release;
    if (again) {
        cn_list_push_back(&all->unsettled, &batch->link);
        ask_later(all);
    } else if (envelope->err.code) { /* the lease ends by itself, and the messages come again */
        cn_warn("queue %s: a batch could not be settled: %s", base->call.ns->name,
                envelope->err.text);
        batch->consumer->pauses = true;
    }
    cn_service_call_free(base);
    if (unknown)
        settle(batch, CN_QUEUE_ACK);
    else if (!again)
        free_batch(batch);
}

static void on_retry(uv_timer_t *timer)
{
    struct cn_consumers *all = timer->data;
    CN_LIST_FOREACH(&all->list, node)
    {
        struct consumer *consumer = CN_CONTAINER_OF(node, struct consumer, link);
        consumer->pauses = false;
        ask(consumer);
    }
    CN_LIST_FOREACH(&all->unsettled, node)
    {
        cn_list_remove(node);
        settle(CN_CONTAINER_OF(node, struct batch, link), CN_QUEUE_SETTLE);
    }
}

/* Five bytes for each message: 0 (acknowledged) or 1 (again), and the delay in seconds as a signed
 * 32-bit number, -1 for the consumer's own. False: N4. */
static bool read_verdict(const uint8_t *bytes, struct cn_queue_verdict *verdict)
{
    int32_t delay;
    memcpy(&delay, bytes + 1, sizeof(delay));
    if (bytes[0] > 1 || delay < -1 || delay > CN_QUEUE_DELAY_MAX_S)
        return false;
    verdict->retry = bytes[0] == 1;
    verdict->delay_s = delay;
    return true;
}

/* False: N4. */
static bool read_verdicts(struct batch *batch, const struct cn_background_answer *answer)
{
    bool known = answer->result_size == VERDICT_SIZE * batch->count;
    for (size_t i = 0; i < batch->count && known; i++)
        known = read_verdict(answer->result + VERDICT_SIZE * i, &batch->verdicts[i]);
    return known;
}

/* N4: what a batch begins with, and what it goes back to. */
static void retry_all(struct batch *batch)
{
    for (size_t i = 0; i < batch->count; i++) {
        batch->verdicts[i].retry = true;
        batch->verdicts[i].delay_s = -1;
    }
}

/* How the script's handler ended. */
static void judge(struct batch *batch, const struct cn_background_answer *answer)
{
    const char *script = batch->consumer->script;
    if (answer->err.code) {
        cn_error("queue consumer %s: %s", script, answer->err.text);
        retry_all(batch);
    } else if (!read_verdicts(batch, answer)) {
        cn_error("queue consumer %s: its answer of %zu bytes for %zu messages is not understood; "
                 "they are delivered again",
                 script, answer->result_size, batch->count);
        retry_all(batch);
    }
}

static void on_done(void *data, const struct cn_background_answer *answer)
{
    struct batch *batch = data;
    struct consumer *consumer = batch->consumer;
    /* An event that the end of the server or of its instance cut off was not the script's fault. */
    batch->release = answer->err.code && !(answer->faults & CN_FAULT_REMOTE);
    if (!batch->release)
        judge(batch, answer);
    else if (batch->disk && !is_stopping(consumer))
        cn_info("queue %s: a batch at another node is delivered again: %s", batch->ns->name,
                answer->err.text);
    cn_list_remove(&batch->link);
    consumer->running--;
    settle(batch, CN_QUEUE_SETTLE);
    ask(consumer);
}

/* --- dispatch -------------------------------------------------------------------------------- */

/* What prelude/workers/service/queue.js and module/batch.c read: a 32-bit length, JSON of that
 * length, then all bodies. In the JSON one text with all ids, and four numbers for each message:
 * when it was sent, in ms after `since`, its attempts, type and size. An array for each message
 * would cost the consumer more than the message's way through the queue. */
static void pack(const struct cn_queue_call *call, const char *queue,
                 struct cn_background_event *event)
{
    struct cn_buf out = {0};
    const struct cn_queue_metrics *metrics = &call->metrics;
    int64_t since = call->count ? call->messages[0].sent_ms : 0;
    cn_buf_reserve(&out, 256 + call->count * 64 + call->bodies.size);
    cn_buf_append(&out, "\0\0\0\0", 4);
    cn_buf_append_str(&out, "{\"queue\":");
    cn_buf_append_json(&out, queue, strlen(queue));
    cn_buf_printf(&out, ",\"metrics\":[%llu,%llu,%lld],\"since\":%lld,\"ids\":\"",
                  (unsigned long long)metrics->count, (unsigned long long)metrics->bytes,
                  (long long)metrics->oldest_ms, (long long)since);
    for (size_t i = 0; i < call->count; i++)
        cn_buf_append(&out, call->messages[i].id, CN_QUEUE_ID_HEX);
    cn_buf_append_str(&out, "\",\"numbers\":[");
    for (size_t i = 0; i < call->count; i++) {
        const struct cn_queue_message *message = &call->messages[i];
        if (i)
            cn_buf_append_byte(&out, ',');
        cn_buf_append_int(&out, message->sent_ms - since);
        cn_buf_append_byte(&out, ',');
        cn_buf_append_uint(&out, message->attempts);
        cn_buf_append_byte(&out, ',');
        cn_buf_append_uint(&out, (uint64_t)message->type);
        cn_buf_append_byte(&out, ',');
        cn_buf_append_uint(&out, message->size);
    }
    cn_buf_append_str(&out, "]}");
    uint32_t size = (uint32_t)out.size - 4;
    memcpy(out.data, &size, sizeof(size));
    cn_buf_append(&out, call->bodies.data, call->bodies.size);
    event->size = out.size;
    event->bytes = cn_buf_take(&out);
}

static struct batch *new_batch(struct consumer *consumer, const struct cn_queue_call *call)
{
    struct batch *batch = CN_NEW(struct batch);
    *batch = (struct batch){.consumer = consumer,
                            .ns = call->base.call.ns,
                            .policy = call->policy,
                            .lease = call->lease,
                            .count = call->count};
    cn_list_init(&batch->link);
    batch->verdicts = cn_alloc_zero((call->count + 1) * sizeof(*batch->verdicts));
    for (size_t i = 0; i < call->count; i++) {
        batch->verdicts[i].row = call->messages[i].row;
        batch->verdicts[i].attempts = call->messages[i].attempts;
    }
    retry_all(batch);
    return batch;
}

static unsigned running_at(const struct consumer *consumer, uint64_t disk)
{
    unsigned count = 0;
    CN_LIST_FOREACH(&consumer->events, node)
    count += CN_CONTAINER_OF(node, struct batch, link)->disk == disk;
    return count;
}

static struct cn_place place_of(const struct batch *batch)
{
    const struct cn_object_lane *objects = batch->consumer->background->objects;
    return batch->disk ? cn_node_place_of(objects->desk, batch->disk, 0, 0) : (struct cn_place){0};
}

/* N3: the node's disk; 0: this one. */
static uint64_t choose(struct consumer *consumer)
{
    struct cn_other others[CN_OTHERS_MAX];
    unsigned least = running_at(consumer, 0);
    size_t count = least ? list_others(consumer, others) : 0;
    uint64_t disk = 0;
    for (size_t i = 0; i < count; i++) {
        const struct cn_other *other = &others[(consumer->turn + i) % count];
        unsigned running = running_at(consumer, other->disk);
        if (running < least) {
            least = running;
            disk = other->disk;
        }
    }
    consumer->turn += disk != 0;
    return disk;
}

static void dispatch_batch(struct consumer *consumer, const struct cn_queue_call *call)
{
    struct cn_background *background = consumer->background;
    struct batch *batch = new_batch(consumer, call);
    batch->disk = choose(consumer);
    struct cn_background_event event = {.script = consumer->script,
                                        .handler = "queue",
                                        .done = on_done,
                                        .data = batch,
                                        .at = place_of(batch)};
    pack(call, call->base.call.ns->name + strlen("$queue/"), &event);
    cn_list_push_back(&consumer->events, &batch->link);
    consumer->running++;
    background->send(background, &event);
}

static void on_received(struct cn_service_call *base)
{
    struct cn_queue_call *call = CN_CONTAINER_OF(base, struct cn_queue_call, base);
    struct consumer *consumer = base->call.envelope.data;
    struct cn_background *background = consumer->background;
    consumer->receiving = false;
    if (base->call.envelope.err.code) {
        if (!is_stopping(consumer)) {
            if (is_here(consumer)) /* or its other node asks it */
                cn_warn("queue %s: %s", base->call.ns->name, base->call.envelope.err.text);
            ask_later(background->consumers);
        }
    } else if (!consumer->current || is_stopping(consumer)) {
        struct batch *back = new_batch(consumer, call);
        back->release = true;
        settle(back, CN_QUEUE_SETTLE);
    } else {
        dispatch_batch(consumer, call);
        ask(consumer);
    }
    cn_service_call_free(base);
}

/* --- the lane -------------------------------------------------------------------------------- */

static struct consumer *find(struct cn_consumers *all, struct cn_namespace *ns)
{
    CN_LIST_FOREACH(&all->list, node)
    {
        struct consumer *consumer = CN_CONTAINER_OF(node, struct consumer, link);
        if (consumer->settings.ns == ns)
            return consumer;
    }
    return NULL;
}

static void update(struct cn_background *background, const struct cn_script *script,
                   const struct cn_script_consumer *settings)
{
    struct cn_consumers *all = background->consumers;
    struct consumer *consumer = find(all, settings->ns);
    if (!consumer) {
        consumer = CN_NEW(struct consumer);
        consumer->background = background;
        cn_list_init(&consumer->events);
        cn_list_push_back(&all->list, &consumer->link);
    }
    cn_free(consumer->script);
    consumer->script = cn_strdup(script->name);
    consumer->settings = *settings;
    consumer->current = true;
    cn_service_key(settings->ns, CN_QUEUE_OBJECT, &consumer->key);
    unsigned lanes = cn_node_lane_count(background->node), index = background->index;
    unsigned all_lanes = settings->max_concurrency;
    consumer->limit =
        all_lanes ? all_lanes / lanes + (index < all_lanes % lanes) : CN_CONSUMER_CONCURRENCY;
    ask(consumer);
}

void cn_consumers_update(struct cn_background *background)
{
    cn_loop_assert_owner(background->loop);
    if (!background->node)
        return;
    if (!background->consumers) {
        background->consumers = CN_NEW(struct cn_consumers);
        cn_list_init(&background->consumers->list);
        cn_list_init(&background->consumers->unsettled);
        uv_timer_init(background->loop, &background->consumers->timer);
        background->consumers->timer.data = background->consumers;
    }
    CN_LIST_FOREACH(&background->consumers->list, node)
    CN_CONTAINER_OF(node, struct consumer, link)->current = false;
    const struct cn_deployment *deployment = *background->deployment;
    for (size_t i = 0; i < deployment->script_count; i++) {
        const struct cn_script *script = deployment->scripts[i];
        for (size_t k = 0; k < script->consumer_count; k++) {
            if (!script->consumers[k].pulls)
                update(background, script, &script->consumers[k]);
        }
    }
}

void cn_consumers_stop(struct cn_background *background)
{
    cn_loop_assert_owner(background->loop);
    if (!background->consumers || background->consumers->stopped)
        return;
    background->consumers->stopped = true;
    uv_close((uv_handle_t *)&background->consumers->timer, NULL);
}

void cn_consumers_free(struct cn_background *background)
{
    cn_loop_assert_owner(background->loop);
    if (!background->consumers)
        return;
    CN_LIST_FOREACH(&background->consumers->unsettled, node)
    free_batch(CN_CONTAINER_OF(node, struct batch, link)); /* they come again */
    CN_LIST_FOREACH(&background->consumers->list, node)
    {
        struct consumer *consumer = CN_CONTAINER_OF(node, struct consumer, link);
        cn_free(consumer->script);
        cn_free(consumer);
    }
    cn_free(background->consumers);
}
