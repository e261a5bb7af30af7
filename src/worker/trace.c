/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/trace.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <uv.h>

#include "base/assert.h"
#include "base/clock.h"
#include "base/diag.h"
#include "base/loop.h"
#include "base/mem.h"
#include "object/node.h"
#include "object/object.h"
#include "worker/dispatch.h"
#include "worker/instance.h"
#include "worker/lane.h"
#include "worker/taps.h"

const char *const cn_trace_kind_names[] = {"fetch",     "rpc",   "alarm", "websocket",
                                           "scheduled", "queue", "tail",  "other"};

/* --- a trace --------------------------------------------------------------------------------- */

struct cn_trace *cn_trace_find(const struct cn_lane *lane, uint64_t handle)
{
    return handle ? cn_handles_find(&lane->traces, (double)handle) : NULL;
}

/* By the number of the request, so that all it causes is exported, or nothing of it. */
static bool is_sampled(const struct cn_instance *instance, const struct cn_origin *origin)
{
    double rate = instance->script->trace_rate;
    if (!instance->lane->options.exporter || rate <= 0 || origin->unsampled)
        return false;
    return rate >= 1 || (double)(origin->request >> 11) * 0x1p-53 < rate;
}

bool cn_trace_is_watched(const struct cn_instance *instance)
{
    struct cn_taps *taps = instance->lane->options.taps;
    return instance->watched || (taps && atomic_load_explicit(&taps->count, memory_order_relaxed));
}

bool cn_trace_is_whole(const struct cn_trace *trace)
{
    return trace->tapped || trace->script->tail_count;
}

uint64_t cn_trace_begin(struct cn_instance *instance, enum cn_trace_kind kind,
                        const char *entrypoint, const struct cn_object *object,
                        const struct cn_origin *origin)
{
    cn_loop_assert_owner(&instance->lane->loop);
    struct cn_lane *lane = instance->lane;
    bool tapped = cn_taps_want(lane->options.taps, instance->script->name);
    if (!instance->watched && !tapped)
        return 0;
    bool sampled = is_sampled(instance, origin);
    if (!sampled && !tapped && !instance->script->tail_count)
        return 0;
    struct cn_trace *trace = CN_NEW(struct cn_trace);
    trace->handle = cn_handles_add(&lane->traces, trace);
    if (!trace->handle) {
        cn_free(trace);
        return 0;
    }
    cn_list_init(&trace->link);
    trace->kind = kind;
    trace->sampled = sampled;
    trace->tapped = tapped;
    trace->script = cn_script_ref(instance->script);
    trace->entrypoint = entrypoint ? cn_strdup(entrypoint) : NULL;
    if (object) {
        cn_id_to_hex(object->key.id, trace->object);
        trace->object_name = object->name ? cn_strndup(object->name, object->name_size) : NULL;
    }
    trace->origin = *origin;
    if (!trace->origin.trace[0] && !trace->origin.trace[1]) {
        trace->origin.trace[0] = cn_rand_next(&lane->rand) | 1;
        trace->origin.trace[1] = cn_rand_next(&lane->rand);
    }
    trace->span = cn_rand_next(&lane->rand) | 1;
    trace->started_ms = cn_clock_wall_ms(cn_clock_system());
    trace->started_ns = uv_hrtime();
    return trace->handle;
}

static void trace_free(struct cn_trace *trace)
{
    cn_script_unref(trace->script);
    cn_free(trace->entrypoint);
    cn_free(trace->object_name);
    cn_buf_fini(&trace->subject);
    cn_buf_fini(&trace->event);
    cn_buf_fini(&trace->logs);
    cn_buf_fini(&trace->exceptions);
    cn_buf_fini(&trace->channels);
    cn_buf_fini(&trace->spans);
    cn_free(trace);
}

void cn_trace_end(struct cn_lane *lane, uint64_t handle, const char *outcome)
{
    cn_loop_assert_owner(&lane->loop);
    struct cn_trace *trace = cn_trace_find(lane, handle);
    if (!trace || trace->ended_ns)
        return;
    if (!trace->outcome)
        trace->outcome = outcome ? outcome : "ok";
    trace->ended_ns = uv_hrtime();
    /* The turn that ends it is not over: what it costs and says still belongs to it. */
    cn_list_push_back(&lane->traces_ended, &trace->link);
    if (!lane->vm->entered && !lane->traced_functions)
        cn_trace_flush(lane);
}

void cn_trace_add(struct cn_trace *trace, struct cn_buf *array, const char *json, size_t size)
{
    size_t held = trace->logs.size + trace->exceptions.size + trace->channels.size;
    if (held + trace->spans.size + size > CN_TRACE_BYTES_MAX) {
        trace->truncated = true;
        return;
    }
    if (array->size)
        cn_buf_append_byte(array, ',');
    cn_buf_append(array, json, size);
}

static void append_array(struct cn_buf *out, const char *name, const struct cn_buf *elements)
{
    cn_buf_printf(out, ",\"%s\":[", name);
    if (elements->size)
        cn_buf_append(out, elements->data, elements->size);
    cn_buf_append_byte(out, ']');
}

void cn_trace_append_head(const struct cn_trace *trace, struct cn_buf *out)
{
    cn_buf_append_str(out, "{\"scriptName\":");
    cn_buf_append_json(out, trace->script->name, strlen(trace->script->name));
    if (trace->entrypoint) {
        cn_buf_append_str(out, ",\"entrypoint\":");
        cn_buf_append_json(out, trace->entrypoint, strlen(trace->entrypoint));
    }
    if (trace->object[0])
        cn_buf_printf(out, ",\"durableObjectId\":\"%s\"", trace->object);
    if (trace->script->version)
        cn_buf_printf(out, ",\"scriptVersion\":{\"id\":\"%s\"}", trace->script->version);
    cn_buf_printf(out, ",\"eventTimestamp\":%" PRId64, trace->started_ms);
}

void cn_trace_append_json(const struct cn_trace *trace, struct cn_buf *out)
{
    cn_trace_append_head(trace, out);
    cn_buf_printf(out, ",\"kind\":\"%s\",\"event\":{", cn_trace_kind_names[trace->kind]);
    if (trace->event.size)
        cn_buf_append(out, trace->event.data, trace->event.size);
    if (trace->status)
        cn_buf_printf(out, "%s\"response\":{\"status\":%d}", trace->event.size ? "," : "",
                      trace->status);
    cn_buf_append_byte(out, '}');
    cn_trace_append_rest(trace, out);
}

void cn_trace_append_rest(const struct cn_trace *trace, struct cn_buf *out)
{
    append_array(out, "logs", &trace->logs);
    append_array(out, "exceptions", &trace->exceptions);
    append_array(out, "diagnosticsChannelEvents", &trace->channels);
    cn_buf_printf(out,
                  ",\"outcome\":\"%s\",\"executionModel\":\"%s\",\"truncated\":%s,\"cpuTime\":%.0f,"
                  "\"wallTime\":%.0f}",
                  trace->outcome, trace->object[0] ? "durableObject" : "stateless",
                  trace->truncated ? "true" : "false",
                  (double)cn_clock_ticks_ns(trace->ticks) / 1e6,
                  (double)(trace->ended_ns - trace->started_ns) / 1e6);
}

static bool parse_hex(const char *text, size_t size, uint64_t *out)
{
    *out = 0;
    for (size_t i = 0; i < size; i++) {
        char c = text[i];
        if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f')))
            return false;
        *out = *out << 4 | (uint64_t)(c <= '9' ? c - '0' : c - 'a' + 10);
    }
    return true;
}

bool cn_trace_parse_parent(const char *text, size_t size, struct cn_origin *origin)
{
    uint64_t version, high, low, span, flags;
    if (size < 55 || text[2] != '-' || text[35] != '-' || text[52] != '-' ||
        (size > 55 && text[55] != '-') || !parse_hex(text, 2, &version) ||
        !parse_hex(text + 3, 16, &high) || !parse_hex(text + 19, 16, &low) ||
        !parse_hex(text + 36, 16, &span) || !parse_hex(text + 53, 2, &flags) || version == 255 ||
        (version == 0 && size != 55) || !(high | low) || !span)
        return false;
    origin->trace[0] = high;
    origin->trace[1] = low;
    origin->span = span;
    origin->unsampled = !(flags & 1);
    return true;
}

/* --- consumers ------------------------------------------------------------------------------- */

static void send_batch(struct cn_lane *lane, struct cn_trace_consumer *consumer);

static struct cn_trace_consumer *find_consumer(struct cn_lane *lane, const char *script)
{
    CN_LIST_FOREACH(&lane->trace_consumers, node)
    {
        struct cn_trace_consumer *each = CN_CONTAINER_OF(node, struct cn_trace_consumer, link);
        if (strcmp(each->script, script) == 0)
            return each;
    }
    struct cn_trace_consumer *consumer = CN_NEW(struct cn_trace_consumer);
    consumer->script = cn_strdup(script);
    cn_list_push_back(&lane->trace_consumers, &consumer->link);
    return consumer;
}

static void on_done(struct cn_dispatch *dispatch)
{
    struct cn_trace_consumer *consumer = dispatch->envelope.data;
    struct cn_lane *lane = dispatch->envelope.from.desk->data;
    consumer->under_way--;
    if (dispatch->envelope.err.code && !consumer->failed)
        cn_warn("worker %s: its tail() handler failed: %s", consumer->script,
                dispatch->envelope.err.text);
    consumer->failed = dispatch->envelope.err.code != 0;
    if (dispatch->envelope.err.code)
        cn_counter_add(&lane->metrics.tail_failures, 1);
    cn_dispatch_free(dispatch);
    if (consumer->item_count && !lane->stopping)
        send_batch(lane, consumer);
}

static void send_batch(struct cn_lane *lane, struct cn_trace_consumer *consumer)
{
    struct cn_dispatch *dispatch = cn_dispatch_new(lane, lane);
    dispatch->script = cn_strdup(consumer->script);
    dispatch->handler = "tail";
    cn_buf_append_byte(&consumer->items, ']');
    dispatch->size = consumer->items.size;
    dispatch->bytes = cn_buf_take(&consumer->items);
    dispatch->on_done = on_done;
    dispatch->envelope.data = consumer;
    cn_counter_add(&lane->metrics.tail_events, consumer->item_count);
    consumer->item_count = 0;
    consumer->under_way++;
    cn_dispatch_send(dispatch, NULL);
}

static void give(struct cn_lane *lane, const struct cn_trace *trace, const char *script)
{
    struct cn_trace_consumer *consumer = find_consumer(lane, script);
    if (consumer->items.size > CN_TRACE_PENDING_MAX ||
        consumer->item_count >= CN_TRACE_BATCH_COUNT_MAX) {
        cn_counter_add(&lane->metrics.tail_dropped, 1); /* T1 */
        return;
    }
    cn_buf_append_byte(&consumer->items, consumer->item_count++ ? ',' : '[');
    cn_trace_append_json(trace, &consumer->items);
    if (consumer->under_way < CN_TRACE_BATCHES)
        send_batch(lane, consumer);
}

void cn_trace_flush(struct cn_lane *lane)
{
    cn_loop_assert_owner(&lane->loop);
    struct cn_list *node;
    while ((node = cn_list_take_front(&lane->traces_ended))) {
        struct cn_trace *trace = CN_CONTAINER_OF(node, struct cn_trace, link);
        cn_handles_remove(&lane->traces, trace->handle);
        for (size_t i = 0; i < trace->script->tail_count && !lane->stopping; i++)
            give(lane, trace, trace->script->tails[i]);
        if (trace->tapped)
            cn_taps_give(lane->options.taps, trace);
        if (trace->sampled)
            lane->options.exporter->ended(lane->options.exporter->data, trace);
        trace_free(trace);
    }
}

/* --- the lane -------------------------------------------------------------------------------- */

struct cn_origin cn_lane_origin(const struct cn_lane *lane)
{
    struct cn_js_cause cause = cn_js_cause(lane->vm);
    struct cn_origin origin = {
        .request = cause.request, .depth = cause.depth + 1, .unsampled = cause.unsampled};
    const struct cn_trace *trace = cn_trace_find(lane, cause.trace);
    if (trace) {
        origin.trace[0] = trace->origin.trace[0];
        origin.trace[1] = trace->origin.trace[1];
        origin.span = trace->span;
    }
    return origin;
}

static void on_turn_cost(void *data, uint64_t handle, uint64_t ticks)
{
    struct cn_trace *trace = cn_trace_find(data, handle);
    if (trace)
        trace->ticks += ticks;
}

void cn_trace_lane_init(struct cn_lane *lane)
{
    cn_list_init(&lane->traces_ended);
    cn_list_init(&lane->trace_consumers);
    lane->vm->on_turn_cost = on_turn_cost;
}

void cn_trace_lane_fini(struct cn_lane *lane)
{
    uint32_t cursor = 0;
    struct cn_trace *trace;
    while ((trace = cn_handles_next(&lane->traces, &cursor)))
        trace_free(trace);
    cn_handles_fini(&lane->traces);
    struct cn_list *node;
    while ((node = cn_list_take_front(&lane->trace_consumers))) {
        struct cn_trace_consumer *consumer = CN_CONTAINER_OF(node, struct cn_trace_consumer, link);
        cn_buf_fini(&consumer->items);
        cn_free(consumer->script);
        cn_free(consumer);
    }
}
