/* SPDX-License-Identifier: Apache-2.0 */
/* service/queue/natives.c - Queue.send(), sendBatch() and metrics(): service/queue/queue.h.
 *
 * The prelude has checked the arguments; sizes are checked here, where they are known. */
#include "border/queue/natives.h"
#include "service/queue/queue.h"

#include "base/mem.h"
#include "bindings/service_call.h"
#include "js/native.h"

static JSValueRef convert_metrics(JSContextRef ctx, struct cn_service_call *base)
{
    const struct cn_queue_metrics *metrics =
        &CN_CONTAINER_OF(base, struct cn_queue_call, base)->metrics;
    JSValueRef values[] = {JSValueMakeNumber(ctx, (double)metrics->count),
                           JSValueMakeNumber(ctx, (double)metrics->bytes),
                           JSValueMakeNumber(ctx, (double)metrics->oldest_ms)};
    return JSObjectMakeArray(ctx, 3, values, NULL);
}

/* queueSend(ns, bodies, types, delays, callback): callback([count, bytes, oldest]); throws if it is
 * too large. */
static JSValueRef native_queue_send(CN_JS_NATIVE_ARGS)
{
    struct cn_namespace *ns = cn_jsservice_namespace(ctx, cn_js_arg(0), "$queue/", exception);
    JSValueRef bodies = cn_js_arg(1), types = cn_js_arg(2), delays = cn_js_arg(3);
    uint32_t count = cn_js_length(ctx, bodies, CN_QUEUE_BATCH_COUNT_MAX + 1);
    if (!ns)
        return JSValueMakeUndefined(ctx);
    if (count > CN_QUEUE_BATCH_COUNT_MAX)
        return cn_js_throw(ctx, exception, CN_JS_RANGE_ERROR, "There are more than %d messages.",
                           CN_QUEUE_BATCH_COUNT_MAX);
    struct cn_queue_call *call = cn_queue_call_new(ns, CN_QUEUE_SEND);
    call->messages = cn_alloc_zero((count + 1) * sizeof(*call->messages));
    for (unsigned i = 0; i < count; i++) {
        struct cn_queue_message *message = &call->messages[call->count++];
        message->offset = call->bodies.size;
        cn_jsservice_body(ctx, cn_js_at(ctx, bodies, i), &call->bodies);
        message->size = call->bodies.size - message->offset;
        uint32_t type = cn_js_to_uint32(ctx, cn_js_at(ctx, types, i));
        message->type = type < CN_QUEUE_TYPES ? (enum cn_queue_type)type : (enum cn_queue_type)0;
        message->delay_s = cn_js_to_int64(ctx, cn_js_at(ctx, delays, i));
        if (message->size > CN_QUEUE_MESSAGE_SIZE_MAX) {
            cn_js_throw(ctx, exception, CN_JS_ERROR,
                        "message length of %zu bytes exceeds limit of %d", message->size,
                        CN_QUEUE_MESSAGE_SIZE_MAX);
            break;
        }
    }
    if (!*exception && call->bodies.size > CN_QUEUE_BATCH_SIZE_MAX)
        cn_js_throw(ctx, exception, CN_JS_ERROR, "batch size of %zu bytes exceeds limit of %d",
                    call->bodies.size, CN_QUEUE_BATCH_SIZE_MAX);
    if (*exception)
        cn_service_call_free(&call->base);
    else
        cn_jsservice_send(ctx, &call->base, cn_js_arg(4), convert_metrics);
    return JSValueMakeUndefined(ctx);
}

/* queueMetrics(ns, callback): callback([count, bytes, oldest]) */
static JSValueRef native_queue_metrics(CN_JS_NATIVE_ARGS)
{
    struct cn_namespace *ns = cn_jsservice_namespace(ctx, cn_js_arg(0), "$queue/", exception);
    if (!ns)
        return JSValueMakeUndefined(ctx);
    struct cn_queue_call *call = cn_queue_call_new(ns, CN_QUEUE_METRICS);
    cn_jsservice_send(ctx, &call->base, cn_js_arg(1), convert_metrics);
    return JSValueMakeUndefined(ctx);
}
