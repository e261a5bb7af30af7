/* SPDX-License-Identifier: Apache-2.0 */
#include "object/call.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/assert.h"
#include "base/mem.h"
#include "object/internal.h"
#include "object/node.h"
#include "object/socket.h"

static void count(const struct cn_object *object, const struct cn_call *call)
{
    struct cn_object_metrics *metrics = cn_object_metrics(object);
    cn_counter_add(&metrics->calls, 1);
    if (call->kind == CN_CALL_OTHER)
        cn_counter_add(&metrics->ops[call->op < CN_OBJECT_OPS ? call->op : CN_OBJECT_OPS - 1], 1);
    if (call->envelope.err.code)
        cn_counter_add(&metrics->failures, 1);
    cn_histogram_note(&metrics->latency, cn_histogram_us, (uv_hrtime() - call->arrived_ns) / 1000);
}

static void leave_object(struct cn_call *call)
{
    struct cn_object *object = call->object;
    CN_ASSERT(object && object->running_count > 0);
    if (call->kind != CN_CALL_ACCESS)
        count(object, call);
    if (call->kind == CN_CALL_SOCKET)
        cn_object_socket_told(call->payload);
    cn_list_remove(&call->envelope.link);
    object->running_count--;
    object->event_ms = uv_now(object->lane->loop);
    call->taken_back = NULL;
    call->object = NULL;
    cn_envelope_answer(&call->envelope, object); /* C3 */
    cn_object_rest(object);
}

void cn_call_reply(struct cn_call *call, void *result)
{
    call->result = result;
    leave_object(call);
}

void cn_call_fail(struct cn_call *call, unsigned faults, int code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(call->envelope.err.text, sizeof(call->envelope.err.text), format, args);
    va_end(args);
    call->envelope.err.code = code;
    call->envelope.faults = faults;
    leave_object(call);
}

void cn_call_turn_away(struct cn_call *call, unsigned faults, int code, const char *text)
{
    if (call->taken_back)
        call->taken_back(call);
    call->taken_back = NULL;
    call->object = NULL;
    cn_envelope_refuse(&call->envelope, faults, code, text);
}

/* Why the inbox takes no more, or NULL. A single call always fits. */
static const char *inbox_full(const struct cn_object *object, const struct cn_call *call)
{
    if (object->inbox_count >= CN_OBJECT_INBOX_MAX)
        return "Durable Object is overloaded. Too many requests queued.";
    if (object->inbox_count && object->inbox_bytes + call->size > CN_OBJECT_INBOX_BYTES_MAX)
        return "Durable Object is overloaded. Too much data queued.";
    return NULL;
}

/* P7: another node has its shard, or may have. */
static void carry(struct cn_object_lane *lane, struct cn_call *call)
{
    if (call->kind == CN_CALL_SOCKET) { /* nothing is lost: it is tried again, or the socket ends */
        cn_call_turn_away(call, CN_FAULT_OVERLOADED, CN_EOVERLOADED, CN_SHARD_AWAY);
    } else if (call->kind == CN_CALL_ALARM || !lane->desk->carrier) {
        cn_call_turn_away(call, CN_FAULT_RETRYABLE, CN_ECLOSED, CN_SHARD_AWAY);
    } else {
        cn_lane_shard_of(lane, &call->key)->away++;
        call->envelope.to = cn_node_place_of(lane->desk, 0, 0, 0);
        cn_envelope_carry(&call->envelope);
    }
}

void cn_call_back(struct cn_call *call)
{
    struct cn_desk *desk = call->envelope.to.desk;
    struct cn_lane_shard *own = cn_lane_shard_of(desk->objects, &call->key);
    cn_envelope_back(&call->envelope);
    CN_ASSERT(own->away > 0);
    own->away--;
    call->envelope.to = cn_desk_place(desk);
}

/* On the owner's lane. `here`: its shard is. */
static void take_in(struct cn_object_lane *lane, struct cn_call *call, bool here)
{
    struct cn_object *object = cn_map_find(&lane->objects, &call->key, sizeof(call->key));
    const struct cn_lane_shard *own = cn_lane_shard_of(lane, &call->key);
    if (lane->stopping) {
        cn_call_turn_away(call, CN_FAULT_RETRYABLE, CN_ECLOSED, "the server is stopping");
        return;
    }
    CN_ASSERT(!here || own->serves);
    if (!here && !cn_lane_shard_takes(own)) {
        carry(lane, call);
        return;
    }
    if (call->kind == CN_CALL_ADOPT) {
        cn_object_socket_arrive(lane, call);
        return;
    }
    if (!object && !cn_node_admits(lane->node, call->ns, &call->key, own->store)) {
        cn_counter_add(&call->ns->metrics[lane->index].overloaded, 1);
        cn_call_turn_away(call, CN_FAULT_OVERLOADED, CN_EOVERLOADED,
                          "Too many new Durable Objects of this class within a minute.");
        return;
    }
    if (!object)
        object = cn_object_new(lane, call->ns, &call->key);
    const char *full = inbox_full(object, call);
    if (full) {
        cn_counter_add(&call->ns->metrics[lane->index].overloaded, 1);
        cn_call_turn_away(call, CN_FAULT_OVERLOADED, CN_EOVERLOADED, full);
    } else {
        cn_object_receive(object, call);
    }
}

static void take(struct cn_call *call, bool here)
{
    struct cn_object_lane *lane = call->envelope.to.desk->objects;
    take_in(lane, call, here);
    /* JavaScript steps when its turn ends, and so does a step; but a class in C may have left an
     * answer that is held, with nobody told to wake the lane for it. */
    if (!cn_list_empty(&lane->held) && !lane->wanted)
        cn_object_lane_kick(lane);
}

static void arrive(struct cn_envelope *envelope)
{
    take(cn_call_of(envelope), false);
}

void cn_call_take_in(struct cn_call *call)
{
    take(call, true);
}

void cn_call_send(struct cn_call *call, struct cn_object *gate)
{
    CN_ASSERT(call->ns);
    call->envelope.arrive = arrive;
    call->envelope.to = cn_node_place(call->ns->node, &call->key);
    call->trace = 0;
    cn_envelope_send(&call->envelope, gate);
}
