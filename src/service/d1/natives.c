/* SPDX-License-Identifier: Apache-2.0 */
/* service/d1/natives.c - D1 databases as prelude/workers/service/d1.js sees them. */
#include "border/d1/natives.h"
#include "service/d1/d1.h"

#include "base/assert.h"
#include "base/mem.h"
#include "bindings/service_call.h"

/* False if the value is of no type that can be bound. */
static bool add_value(JSContextRef ctx, struct cn_d1_call *call, JSValueRef value,
                      struct cn_buf *scratch)
{
    uint8_t *bytes;
    size_t size;
    switch (JSValueGetType(ctx, value)) {
    case kJSTypeNull:
        cn_d1_call_value(call, CN_SQL_NULL);
        return true;
    case kJSTypeNumber:
        cn_d1_call_number(call, cn_js_to_number(ctx, value));
        return true;
    case kJSTypeString:
        cn_buf_clear(scratch);
        cn_js_append_utf8(ctx, value, scratch);
        cn_d1_call_bytes(call, CN_SQL_TEXT, scratch->data, scratch->size);
        return true;
    default:
        if (!cn_js_bytes(ctx, value, &bytes, &size))
            return false;
        cn_d1_call_bytes(call, CN_SQL_BLOB, bytes, size);
        return true;
    }
}

#define QUERY_WORDS_MAX (1u << 22)

/* Reads [sql, count, value..., sql, count, ...]; null for an SQL is that of the query before. */
static bool add_queries(JSContextRef ctx, struct cn_d1_call *call, JSValueRef list)
{
    struct cn_buf scratch = {0};
    unsigned at = 0, length = cn_js_length(ctx, list, QUERY_WORDS_MAX);
    bool ok = true;
    while (at < length && ok) {
        JSValueRef sql = cn_js_at(ctx, list, at);
        if (at && JSValueIsNull(ctx, sql)) {
            cn_d1_call_again(call);
        } else {
            cn_buf_clear(&scratch);
            cn_js_append_utf8(ctx, sql, &scratch);
            cn_d1_call_query(call, (char *)scratch.data, scratch.size);
        }
        unsigned count = cn_js_to_uint32(ctx, cn_js_at(ctx, list, at + 1));
        at += 2;
        if (count > length - at)
            ok = false;
        for (unsigned i = 0; i < count && ok; i++)
            ok = add_value(ctx, call, cn_js_at(ctx, list, at++), &scratch);
    }
    cn_buf_fini(&scratch);
    return ok;
}

static JSValueRef make_numbers(JSContextRef ctx, const double *numbers, size_t count)
{
    JSValueRef *values = cn_alloc((count + 1) * sizeof(JSValueRef));
    for (size_t i = 0; i < count; i++)
        values[i] = JSValueMakeNumber(ctx, numbers[i]);
    JSValueRef array = JSObjectMakeArray(ctx, count, values, NULL);
    cn_free(values); /* numbers are no objects: nothing else kept them */
    return array;
}

static JSValueRef make_answer(JSContextRef ctx, const struct cn_d1_call *call, const char *bookmark)
{
    const char *json = (const char *)call->json.data;
    JSValueRef values[3] = {
        call->json.size ? cn_js_text(ctx, json, call->json.size) : JSValueMakeNull(ctx),
        make_numbers(ctx, (const double *)(const void *)call->metas.data,
                     call->metas.size / sizeof(double)),
        bookmark ? cn_js_text_z(ctx, bookmark) : JSValueMakeNull(ctx),
    };
    return JSObjectMakeArray(ctx, 3, values, NULL);
}

static JSValueRef convert(JSContextRef ctx, struct cn_service_call *base)
{
    return make_answer(ctx, (struct cn_d1_call *)base, NULL);
}

/* With the bookmark of this moment, when the answer is durable. */
static JSValueRef convert_session(JSContextRef ctx, struct cn_service_call *base)
{
    char bookmark[CN_BOOKMARK_SIZE];
    cn_d1_bookmark((struct cn_d1_call *)base, bookmark);
    return make_answer(ctx, (struct cn_d1_call *)base, bookmark);
}

/* d1Query(ns, queries, format, inSession, callback): [JSON of service/d1/d1.h or null, numbers of
 * each meta one after another, bookmark or null: not in a session]. `queries` is [sql, count,
 * value..., sql | null: the same, count, ...]. */
static JSValueRef native_d1_query(CN_JS_NATIVE_ARGS)
{
    struct cn_namespace *ns = cn_jsservice_namespace(ctx, cn_js_arg(0), "$d1/", exception);
    uint32_t format = cn_js_to_uint32(ctx, cn_js_arg(2));
    if (!ns)
        return JSValueMakeUndefined(ctx);
    if (format >= CN_D1_FORMATS)
        return cn_js_throw(ctx, exception, CN_JS_TYPE_ERROR, "d1Query: bad arguments");
    struct cn_d1_call *call = cn_d1_call_new(ns, (enum cn_d1_format)format);
    if (!add_queries(ctx, call, cn_js_arg(1))) {
        cn_service_call_free(&call->base);
        return cn_js_throw(ctx, exception, CN_JS_TYPE_ERROR, "d1Query: bad arguments");
    }
    call->base.call.size = call->bytes.size;
    call->in_session = JSValueToBoolean(ctx, cn_js_arg(3));
    cn_jsservice_send(ctx, &call->base, cn_js_arg(4), call->in_session ? convert_session : convert);
    return JSValueMakeUndefined(ctx);
}
