/* SPDX-License-Identifier: Apache-2.0 */
#include "background/consumers.h"

#include <string.h>

#include "base/diag.h"
#include "base/loop.h"
#include "base/mem.h"
#include "object/node.h"
#include "service/queue/queue.h"
#include "worker/background.h"
#include "worker/script.h"

/* How long to wait after a request that failed. */
#define RETRY_MS 1000

struct cn_consumers {
    struct cn_list list; /* of struct consumer */
    uv_timer_t timer;    /* asks again after a failure */
    bool stopped;
};

struct consumer {
    struct cn_list link;
    struct cn_background *background;
    struct cn_script_consumer settings; /* strings are borrowed from the deployment */
    char *script;                       /* owned */
    unsigned limit;
    unsigned running; /* batches at the script */
    bool receiving;   /* a request is at the queue */
    bool current;     /* the deployment has it */
};

/* A batch between its receipt and its settlement. */
struct batch {
    struct consumer *consumer;
    struct cn_namespace *ns;
    struct cn_queue_policy policy;
    uint64_t lease;
    size_t count;
};

static bool is_stopping(const struct consumer *consumer)
{
    struct cn_consumers *all = consumer->background->consumers;
    return all->stopped || *consumer->background->draining;
}

static void on_received(struct cn_service_call *base);

static void ask(struct consumer *consumer)
{
    if (consumer->receiving || consumer->running >= consumer->limit || !consumer->current ||
        is_stopping(consumer))
        return;
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

static void on_retry(uv_timer_t *timer)
{
    struct cn_consumers *all = timer->data;
    CN_LIST_FOREACH(&all->list, node)
    ask(CN_CONTAINER_OF(node, struct consumer, link));
}

/* --- settling -------------------------------------------------------------------------------- */

static void on_settled(struct cn_service_call *call)
{
    if (call->call.envelope.err.code) /* the lease ends by itself, and the messages come again */
        cn_warn("queue %s: a batch could not be settled: %s", call->call.ns->name,
                call->call.envelope.err.text);
    cn_service_call_free(call);
}

static struct cn_queue_call *new_settlement(struct cn_namespace *ns, uint64_t lease,
                                            const struct cn_queue_policy *policy)
{
    struct cn_queue_call *call = cn_queue_call_new(ns, CN_QUEUE_SETTLE);
    call->lease = lease;
    call->policy = *policy;
    return call;
}

/* The answer of the prelude: nothing (all acknowledged), or five bytes per message: 1 if it is
 * retried, and the delay in seconds as a signed 32-bit number, -1 for the consumer's own. */
static void read_verdicts(struct cn_queue_call *call, const struct cn_background_answer *answer,
                          size_t count)
{
    bool failed = answer->err.code != 0;
    if (!failed && answer->result_size != 5 * count)
        return;
    call->verdicts = cn_alloc_zero(count * sizeof(*call->verdicts));
    call->verdict_count = count;
    for (size_t i = 0; i < count; i++) {
        struct cn_queue_verdict *verdict = &call->verdicts[i];
        verdict->retry = failed;
        verdict->delay_s = -1;
        if (failed)
            continue;
        int32_t delay;
        memcpy(&delay, answer->result + 5 * i + 1, sizeof(delay));
        verdict->retry = answer->result[5 * i] != 0;
        verdict->delay_s = delay;
    }
}

static void on_done(void *data, const struct cn_background_answer *answer)
{
    struct batch *batch = data;
    struct consumer *consumer = batch->consumer;
    struct cn_background *background = consumer->background;
    /* An event that the end of the server or of its instance cut off was not the script's fault. */
    bool interrupted = answer->err.code && !(answer->faults & CN_FAULT_REMOTE);
    struct cn_queue_call *call = new_settlement(batch->ns, batch->lease, &batch->policy);
    if (interrupted)
        call->release = true;
    else
        read_verdicts(call, answer, batch->count);
    if (answer->err.code && !interrupted)
        cn_error("queue consumer %s: %s", consumer->script, answer->err.text);
    consumer->running--;
    cn_service_call_send(&call->base, background->objects, on_settled);
    cn_free(batch);
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

static void dispatch_batch(struct consumer *consumer, const struct cn_queue_call *call)
{
    struct cn_background *background = consumer->background;
    struct batch *batch = CN_NEW(struct batch);
    *batch = (struct batch){consumer, call->base.call.ns, call->policy, call->lease, call->count};
    struct cn_background_event event = {
        .script = consumer->script, .handler = "queue", .done = on_done, .data = batch};
    pack(call, call->base.call.ns->name + strlen("$queue/"), &event);
    consumer->running++;
    background->send(background, &event);
}

static void on_received(struct cn_service_call *base)
{
    struct cn_queue_call *call = CN_CONTAINER_OF(base, struct cn_queue_call, base);
    struct consumer *consumer = base->call.envelope.data;
    struct cn_background *background = consumer->background;
    struct cn_consumers *all = background->consumers;
    consumer->receiving = false;
    if (base->call.envelope.err.code) {
        if (!is_stopping(consumer)) {
            /* Where the queue is not, nobody minds: its own node asks it. */
            if (cn_object_lane_serves(background->objects, &base->call.key))
                cn_warn("queue %s: %s", base->call.ns->name, base->call.envelope.err.text);
            uv_timer_start(&all->timer, on_retry, RETRY_MS, 0);
        }
    } else if (!consumer->current || is_stopping(consumer)) {
        struct cn_queue_call *back = new_settlement(base->call.ns, call->lease, &call->policy);
        back->release = true;
        cn_service_call_send(&back->base, background->objects, on_settled);
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
        cn_list_push_back(&all->list, &consumer->link);
    }
    cn_free(consumer->script);
    consumer->script = cn_strdup(script->name);
    consumer->settings = *settings;
    consumer->current = true;
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
    CN_LIST_FOREACH(&background->consumers->list, node)
    {
        struct consumer *consumer = CN_CONTAINER_OF(node, struct consumer, link);
        cn_free(consumer->script);
        cn_free(consumer);
    }
    cn_free(background->consumers);
}
