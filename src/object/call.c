/* SPDX-License-Identifier: Apache-2.0 */
#include "object/call.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/assert.h"
#include "base/mem.h"
#include "object/internal.h"
#include "object/node.h"

/* Back on the caller's lane. */
static void deliver_reply(struct cn_mail *mail, void *data)
{
    (void)data;
    struct cn_call *call = CN_CONTAINER_OF(mail, struct cn_call, mail);
    call->on_reply(call);
}

static void go_back(struct cn_call *call)
{
    if (call->caller == call->owner) {
        /* C2: by way of the ready list, not from inside whatever runs now. */
        call->state = CN_CALL_ANSWERED;
        cn_list_push_back(&call->caller->ready, &call->link);
        cn_object_lane_kick(call->caller);
        return;
    }
    call->mail.deliver = deliver_reply;
    if (!cn_mailbox_send(call->caller->mailbox, &call->mail)) {
        /* The caller's lane has ended: nobody is left to be told. */
        if (call->drop)
            call->drop(call);
        cn_free(call->name);
        cn_free(call);
    }
}

/* The output gate has opened, or will not. */
static void on_send(struct cn_output *output, const struct cn_err *err)
{
    struct cn_call *call = CN_CONTAINER_OF(output, struct cn_call, output);
    if (err && !call->err.code) {
        call->err = *err;
        call->faults = CN_FAULT_RESET;
    }
    go_back(call);
}

static void count(const struct cn_object *object, const struct cn_call *call)
{
    struct cn_object_metrics *metrics = cn_object_metrics(object);
    cn_counter_add(&metrics->calls, 1);
    if (call->kind == CN_CALL_OTHER)
        cn_counter_add(&metrics->ops[call->op < CN_OBJECT_OPS ? call->op : CN_OBJECT_OPS - 1], 1);
    if (call->err.code)
        cn_counter_add(&metrics->failures, 1);
    cn_histogram_note(&metrics->latency, cn_histogram_us, (uv_hrtime() - call->arrived_ns) / 1000);
}

static void leave_object(struct cn_call *call)
{
    struct cn_object *object = call->object;
    CN_ASSERT(object && object->running_count > 0);
    if (call->kind != CN_CALL_ACCESS)
        count(object, call);
    cn_list_remove(&call->link);
    object->running_count--;
    object->event_ms = uv_now(object->lane->loop);
    call->taken_back = NULL;
    call->object = NULL;
    cn_object_output(object, &call->output, on_send);
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
    vsnprintf(call->err.text, sizeof(call->err.text), format, args);
    va_end(args);
    call->err.code = code;
    call->faults = faults;
    leave_object(call);
}

void cn_call_finish(struct cn_call *call, unsigned faults, int code, const char *text)
{
    if (call->taken_back)
        call->taken_back(call);
    call->taken_back = NULL;
    cn_err_set(&call->err, code, "%s", text);
    call->faults = faults;
    call->object = NULL;
    go_back(call);
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

/* On the owner's lane. */
static void arrive(struct cn_call *call)
{
    struct cn_object_lane *lane = call->owner;
    struct cn_object *object = cn_map_find(&lane->objects, &call->key, sizeof(call->key));
    if (lane->stopping) {
        cn_call_finish(call, CN_FAULT_RETRYABLE, CN_ECLOSED, "the server is stopping");
        return;
    }
    if (!object && !cn_node_admits(lane->node, call->ns, &call->key)) {
        cn_counter_add(&call->ns->metrics[lane->index].overloaded, 1);
        cn_call_finish(call, CN_FAULT_OVERLOADED, CN_EOVERLOADED,
                       "Too many new Durable Objects of this class within a minute.");
        return;
    }
    if (!object)
        object = cn_object_new(lane, call->ns, &call->key);
    const char *full = inbox_full(object, call);
    if (full) {
        cn_counter_add(&call->ns->metrics[lane->index].overloaded, 1);
        cn_call_finish(call, CN_FAULT_OVERLOADED, CN_EOVERLOADED, full);
    } else {
        cn_object_receive(object, call);
    }
}

static void deliver_call(struct cn_mail *mail, void *data)
{
    (void)data;
    struct cn_call *call = CN_CONTAINER_OF(mail, struct cn_call, mail);
    struct cn_object_lane *lane = call->owner;
    arrive(call);
    /* JavaScript steps when its turn ends; a class in C may have left an answer that is held, with
     * nobody told to wake the lane for it. */
    if (!cn_list_empty(&lane->held) && !atomic_load(&lane->wanted_lsn))
        cn_object_lane_kick(lane);
}

void cn_call_step(struct cn_call *call)
{
    if (call->state == CN_CALL_ANSWERED)
        call->on_reply(call);
    else
        arrive(call);
}

void cn_call_send(struct cn_call *call)
{
    CN_ASSERT(call->caller && call->on_reply && call->ns);
    call->owner = cn_node_owner(call->ns->node, &call->key);
    call->state = CN_CALL_SENT;
    call->err.code = 0;
    call->faults = 0;
    call->trace = 0;
    cn_list_init(&call->link);
    if (call->owner == call->caller) {
        cn_list_push_back(&call->caller->ready, &call->link);
        cn_object_lane_kick(call->caller);
        return;
    }
    call->mail.deliver = deliver_call;
    if (!cn_mailbox_send(call->owner->mailbox, &call->mail)) {
        cn_err_set(&call->err, CN_ECLOSED, "the server is stopping");
        call->faults = CN_FAULT_RETRYABLE;
        call->state = CN_CALL_ANSWERED;
        cn_list_push_back(&call->caller->ready, &call->link);
        cn_object_lane_kick(call->caller);
    }
}
