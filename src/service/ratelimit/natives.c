/* SPDX-License-Identifier: Apache-2.0 */
/* service/ratelimit/natives.c - RateLimit.limit(): service/ratelimit/ratelimit.h. */
#include "border/ratelimit/natives.h"
#include "service/ratelimit/ratelimit.h"

#include "base/buf.h"
#include "bindings/service_call.h"
#include "js/native.h"

static JSValueRef convert(JSContextRef ctx, struct cn_service_call *base)
{
    return JSValueMakeBoolean(ctx, CN_CONTAINER_OF(base, struct cn_ratelimit_call, base)->success);
}

/* rateLimit(ns, key, limit, period, callback): callback(success) */
static JSValueRef native_rate_limit(CN_JS_NATIVE_ARGS)
{
    struct cn_buf key = {0};
    cn_js_append_utf8(ctx, cn_js_arg(1), &key);
    if (key.size > CN_RATELIMIT_KEY_SIZE_MAX) {
        cn_buf_fini(&key);
        return cn_js_throw(ctx, exception, CN_JS_TYPE_ERROR,
                           "limit(): the key is longer than %d bytes", CN_RATELIMIT_KEY_SIZE_MAX);
    }
    struct cn_namespace *ns = cn_jsservice_namespace(ctx, cn_js_arg(0), "$ratelimit/", exception);
    if (!ns) {
        cn_buf_fini(&key);
        return JSValueMakeUndefined(ctx);
    }
    struct cn_ratelimit_call *call = cn_ratelimit_call_new(
        ns, key.data ? key.data : (uint8_t *)"", key.size, cn_js_to_uint64(ctx, cn_js_arg(2)),
        cn_js_to_uint32(ctx, cn_js_arg(3)));
    cn_buf_fini(&key);
    cn_jsservice_send(ctx, &call->base, cn_js_arg(4), convert);
    return JSValueMakeUndefined(ctx);
}
