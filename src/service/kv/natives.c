/* SPDX-License-Identifier: Apache-2.0 */
/* service/kv/natives.c - KV namespaces as prelude/workers/service/kv.js sees them. */
#include "border/kv/natives.h"
#include "service/kv/kv.h"

#include "base/mem.h"
#include "bindings/service_call.h"

/* NULL: *exception is set. */
static struct cn_kv_call *call_for_key(JSContextRef ctx, enum cn_kv_op op, JSValueRef ns,
                                       JSValueRef key, JSValueRef *exception)
{
    struct cn_namespace *found = cn_jsservice_namespace(ctx, ns, "$kv/", exception);
    if (!found)
        return NULL;
    struct cn_buf text = {0};
    cn_js_append_utf8(ctx, key, &text);
    struct cn_kv_call *call = cn_kv_call_new(found, op, text.data, text.size);
    cn_buf_fini(&text);
    return call;
}

static JSValueRef text_value(JSContextRef ctx, struct cn_kv_call *call)
{
    return cn_js_text(ctx, (const char *)call->value, call->value_size);
}

static JSValueRef bytes_value(JSContextRef ctx, struct cn_kv_call *call)
{
    JSValueRef value = cn_js_arraybuffer_take(ctx, call->value, call->value_size);
    call->value = NULL;
    return value;
}

/* null, the value, or, if it has metadata, [value, metadata]: an array is no value. */
static JSValueRef make_answer(JSContextRef ctx, struct cn_kv_call *call, bool as_bytes)
{
    if (!call->found)
        return JSValueMakeNull(ctx);
    JSValueRef value = as_bytes ? bytes_value(ctx, call) : text_value(ctx, call);
    if (!call->metadata.data)
        return value;
    JSValueRef pair[2] = {value,
                          cn_js_text(ctx, (const char *)call->metadata.data, call->metadata.size)};
    return JSObjectMakeArray(ctx, 2, pair, NULL);
}

static JSValueRef convert_text(JSContextRef ctx, struct cn_service_call *base)
{
    struct cn_kv_call *call = (struct cn_kv_call *)base;
    cn_kv_answered(call);
    return make_answer(ctx, call, false);
}

static JSValueRef convert_bytes(JSContextRef ctx, struct cn_service_call *base)
{
    struct cn_kv_call *call = (struct cn_kv_call *)base;
    cn_kv_answered(call);
    return make_answer(ctx, call, true);
}

/* kvNamespaceGet(ns, key, asBytes, age, callback): null, the value (string or ArrayBuffer), or, if
 * it has metadata, [value, metadata as JSON]. If the cache has it, it is returned and `callback` is
 * not called; else undefined. `age` is that of cn_kv_cached(). */
static JSValueRef native_kv_namespace_get(CN_JS_NATIVE_ARGS)
{
    struct cn_kv_call *call = call_for_key(ctx, CN_KV_GET, cn_js_arg(0), cn_js_arg(1), exception);
    if (!call)
        return JSValueMakeUndefined(ctx);
    bool as_bytes = JSValueToBoolean(ctx, cn_js_arg(2));
    if (cn_kv_cached(call, cn_jsservice_lane(ctx), cn_js_to_int64(ctx, cn_js_arg(3)))) {
        JSValueRef answer = make_answer(ctx, call, as_bytes);
        cn_service_call_free(&call->base);
        return answer;
    }
    cn_jsservice_send(ctx, &call->base, cn_js_arg(4), as_bytes ? convert_bytes : convert_text);
    return JSValueMakeUndefined(ctx);
}

static JSValueRef convert_written(JSContextRef ctx, struct cn_service_call *base)
{
    cn_kv_answered((struct cn_kv_call *)base);
    return JSValueMakeUndefined(ctx);
}

/* kvNamespacePut(ns, key, body, expires, isTtl, metadata | undefined, callback) */
static JSValueRef native_kv_namespace_put(CN_JS_NATIVE_ARGS)
{
    struct cn_buf body = {0};
    if (!cn_jsservice_body(ctx, cn_js_arg(2), &body))
        return cn_js_throw(ctx, exception, CN_JS_TYPE_ERROR, "kvNamespacePut: no body");
    if (body.size > CN_KV_VALUE_MAX) { /* the prelude asks the value, which may lie */
        cn_buf_fini(&body);
        return cn_js_throw(ctx, exception, CN_JS_ERROR,
                           "KV PUT failed: 413 The value is larger than 25 MiB.");
    }
    struct cn_kv_call *call = call_for_key(ctx, CN_KV_PUT, cn_js_arg(0), cn_js_arg(1), exception);
    if (!call) {
        cn_buf_fini(&body);
        return JSValueMakeUndefined(ctx);
    }
    call->value_size = body.size;
    call->value = cn_buf_take(&body);
    call->base.call.size = call->value_size;
    call->expires_s = cn_js_to_int64(ctx, cn_js_arg(3));
    call->ttl = JSValueToBoolean(ctx, cn_js_arg(4));
    if (JSValueIsString(ctx, cn_js_arg(5)))
        cn_js_append_utf8(ctx, cn_js_arg(5), &call->metadata);
    cn_kv_writes(call);
    cn_jsservice_send(ctx, &call->base, cn_js_arg(6), convert_written);
    return JSValueMakeUndefined(ctx);
}

/* kvNamespaceDelete(ns, key, callback) */
static JSValueRef native_kv_namespace_delete(CN_JS_NATIVE_ARGS)
{
    struct cn_kv_call *call =
        call_for_key(ctx, CN_KV_DELETE, cn_js_arg(0), cn_js_arg(1), exception);
    if (!call)
        return JSValueMakeUndefined(ctx);
    cn_kv_writes(call);
    cn_jsservice_send(ctx, &call->base, cn_js_arg(2), convert_written);
    return JSValueMakeUndefined(ctx);
}

static JSValueRef convert_list(JSContextRef ctx, struct cn_service_call *base)
{
    struct cn_kv_call *call = (struct cn_kv_call *)base;
    JSValueRef parts[2] = {cn_js_text(ctx, (const char *)call->names.data, call->names.size),
                           JSValueMakeBoolean(ctx, call->more)};
    return JSObjectMakeArray(ctx, 2, parts, NULL);
}

/* kvNamespaceList(ns, shard, prefix, after | undefined, limit, callback): [JSON of the keys,
 * whether the shard has more] */
static JSValueRef native_kv_namespace_list(CN_JS_NATIVE_ARGS)
{
    struct cn_namespace *ns = cn_jsservice_namespace(ctx, cn_js_arg(0), "$kv/", exception);
    uint32_t shard = cn_js_to_uint32(ctx, cn_js_arg(1));
    if (!ns)
        return JSValueMakeUndefined(ctx);
    if (shard >= CN_KV_SHARDS)
        return cn_js_throw(ctx, exception, CN_JS_RANGE_ERROR, "There is no such shard.");
    struct cn_kv_call *call = cn_kv_list_new(ns, shard);
    cn_js_append_utf8(ctx, cn_js_arg(2), &call->key);
    if (JSValueIsString(ctx, cn_js_arg(3)))
        cn_js_append_utf8(ctx, cn_js_arg(3), &call->after);
    call->limit = cn_js_to_uint32(ctx, cn_js_arg(4));
    cn_jsservice_send(ctx, &call->base, cn_js_arg(5), convert_list);
    return JSValueMakeUndefined(ctx);
}
