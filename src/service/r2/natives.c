/* SPDX-License-Identifier: Apache-2.0 */
/* service/r2/natives.c - the index of a bucket (service/r2/r2.h) for prelude/workers/service/r2.js.
 */
#include "service/r2/natives.h"

#include <string.h>

#include "base/mem.h"
#include "bindings/service_call.h"
#include "border/r2/natives.h"
#include "js/native.h"

static char *text_or_null(JSContextRef ctx, JSValueRef value)
{
    return JSValueIsString(ctx, value) ? cn_js_to_text(ctx, value, NULL) : NULL;
}

/* NULL: *exception is set. */
static struct cn_r2_call *new_call(JSContextRef ctx, JSValueRef ns, enum cn_r2_op op,
                                   JSValueRef key, JSValueRef *exception)
{
    struct cn_namespace *found = cn_jsservice_namespace(ctx, ns, "$r2/", exception);
    struct cn_r2_call *call = found ? cn_r2_call_new(found, op) : NULL;
    if (call && key)
        cn_js_append_utf8(ctx, key, &call->key);
    return call;
}

static JSValueRef json_of(JSContextRef ctx, const struct cn_r2_call *call)
{
    return call->json.size ? cn_js_text(ctx, (const char *)call->json.data, call->json.size)
                           : JSValueMakeNull(ctx);
}

/* [match | null, noneMatch | null, after | null, before | null, seconds] */
static void read_condition(JSContextRef ctx, JSValueRef value, struct cn_r2_condition *only_if)
{
    if (!JSValueIsObject(ctx, value))
        return;
    JSValueRef parts[5];
    for (unsigned i = 0; i < 5; i++)
        parts[i] = cn_js_at(ctx, value, i);
    only_if->match = text_or_null(ctx, parts[0]);
    only_if->none_match = text_or_null(ctx, parts[1]);
    if (JSValueIsNumber(ctx, parts[2]))
        only_if->after_ms = cn_js_to_int64(ctx, parts[2]);
    if (JSValueIsNumber(ctx, parts[3]))
        only_if->before_ms = cn_js_to_int64(ctx, parts[3]);
    only_if->seconds = JSValueToBoolean(ctx, parts[4]);
}

/* A body that r2Finish() has made: a blob with its size, or bytes. */
static bool read_body(JSContextRef ctx, JSValueRef blob, JSValueRef size, JSValueRef bytes,
                      struct cn_r2_body *body)
{
    struct cn_blob_id id;
    uint8_t *data;
    size_t data_size;
    if (cn_r2_blob_arg(ctx, blob, &id)) {
        body->segments = CN_NEW(struct cn_r2_segment);
        body->count = 1;
        body->size = cn_js_to_uint64(ctx, size);
        *body->segments = (struct cn_r2_segment){id, body->size};
        return true;
    }
    if (!cn_js_bytes(ctx, bytes, &data, &data_size))
        return false;
    body->bytes = data_size ? cn_memdup(data, data_size) : cn_alloc(1);
    body->size = data_size;
    return true;
}

/* --- objects --------------------------------------------------------------------------------- */

/* null, or [json, failed, bytes | body | undefined, problem] */
static JSValueRef convert_get(JSContextRef ctx, struct cn_service_call *base)
{
    struct cn_r2_call *call = CN_CONTAINER_OF(base, struct cn_r2_call, base);
    if (!call->found)
        return JSValueMakeNull(ctx);
    JSValueRef values[4] = {json_of(ctx, call), JSValueMakeBoolean(ctx, call->failed),
                            JSValueMakeUndefined(ctx), JSValueMakeNumber(ctx, call->problem)};
    if (call->body.segments) {
        values[2] = cn_r2_reader_make(ctx, &call->body);
    } else if (call->body.bytes) {
        values[2] = cn_js_uint8array_take(ctx, call->body.bytes, (size_t)call->body.size);
        call->body.bytes = NULL;
    }
    return JSObjectMakeArray(ctx, 4, values, NULL);
}

/* r2Get(ns, withBody, key, onlyIf, ssec, callback); here and below ssec is the MD5 of the
 * customer's key, or undefined */
static JSValueRef native_r2_get(CN_JS_NATIVE_ARGS)
{
    struct cn_r2_call *call =
        new_call(ctx, cn_js_arg(0), JSValueToBoolean(ctx, cn_js_arg(1)) ? CN_R2_GET : CN_R2_HEAD,
                 cn_js_arg(2), exception);
    if (!call)
        return JSValueMakeUndefined(ctx);
    read_condition(ctx, cn_js_arg(3), &call->only_if);
    call->ssec = text_or_null(ctx, cn_js_arg(4));
    cn_jsservice_send(ctx, &call->base, cn_js_arg(5), convert_get);
    return JSValueMakeUndefined(ctx);
}

/* null: a condition did not hold; or the object's description */
static JSValueRef convert_put(JSContextRef ctx, struct cn_service_call *base)
{
    struct cn_r2_call *call = CN_CONTAINER_OF(base, struct cn_r2_call, base);
    return call->failed ? JSValueMakeNull(ctx) : json_of(ctx, call);
}

/* r2Put(ns, key, [blob, size, md5, sha, bytes], checksums, http, custom, class, ssec, onlyIf,
 * callback) */
static JSValueRef native_r2_put(CN_JS_NATIVE_ARGS)
{
    struct cn_r2_call *call = new_call(ctx, cn_js_arg(0), CN_R2_PUT, cn_js_arg(1), exception);
    if (!call)
        return JSValueMakeUndefined(ctx);
    JSValueRef made = cn_js_arg(2);
    JSValueRef parts[5];
    for (unsigned i = 0; i < 5; i++)
        parts[i] = cn_js_at(ctx, made, i);
    if (!read_body(ctx, parts[0], parts[1], parts[4], &call->body)) {
        cn_service_call_free(&call->base);
        return cn_js_throw(ctx, exception, CN_JS_TYPE_ERROR, "r2Put: there is no body");
    }
    call->etag = text_or_null(ctx, parts[2]);
    call->checksums = text_or_null(ctx, cn_js_arg(3));
    call->http = text_or_null(ctx, cn_js_arg(4));
    call->custom = text_or_null(ctx, cn_js_arg(5));
    call->storage_class = text_or_null(ctx, cn_js_arg(6));
    call->ssec = text_or_null(ctx, cn_js_arg(7));
    read_condition(ctx, cn_js_arg(8), &call->only_if);
    cn_jsservice_send(ctx, &call->base, cn_js_arg(9), convert_put);
    return JSValueMakeUndefined(ctx);
}

/* r2Delete(ns, keys, callback): each key is followed by U+0000 */
static JSValueRef native_r2_delete(CN_JS_NATIVE_ARGS)
{
    struct cn_r2_call *call = new_call(ctx, cn_js_arg(0), CN_R2_DELETE, cn_js_arg(1), exception);
    if (!call)
        return JSValueMakeUndefined(ctx);
    cn_jsservice_send(ctx, &call->base, cn_js_arg(2), NULL);
    return JSValueMakeUndefined(ctx);
}

/* [json, truncated, last, lastIsPrefix] */
static JSValueRef convert_list(JSContextRef ctx, struct cn_service_call *base)
{
    struct cn_r2_call *call = CN_CONTAINER_OF(base, struct cn_r2_call, base);
    JSValueRef values[] = {json_of(ctx, call), JSValueMakeBoolean(ctx, call->truncated),
                           cn_js_text(ctx, cn_buf_text(&call->last), call->last.size),
                           JSValueMakeBoolean(ctx, call->last_prefix)};
    return JSObjectMakeArray(ctx, 4, values, NULL);
}

/* r2List(ns, prefix, delimiter, after | null, afterIsPrefix, limit, http, custom, callback) */
static JSValueRef native_r2_list(CN_JS_NATIVE_ARGS)
{
    struct cn_r2_call *call = new_call(ctx, cn_js_arg(0), CN_R2_LIST, NULL, exception);
    if (!call)
        return JSValueMakeUndefined(ctx);
    cn_js_append_utf8(ctx, cn_js_arg(1), &call->prefix);
    cn_js_append_utf8(ctx, cn_js_arg(2), &call->delimiter);
    if (JSValueIsString(ctx, cn_js_arg(3))) {
        cn_js_append_utf8(ctx, cn_js_arg(3), &call->after);
        cn_buf_text(&call->after);
    }
    cn_buf_text(&call->prefix);
    call->after_prefix = JSValueToBoolean(ctx, cn_js_arg(4));
    call->limit = cn_js_to_uint32(ctx, cn_js_arg(5));
    call->include_http = JSValueToBoolean(ctx, cn_js_arg(6));
    call->include_custom = JSValueToBoolean(ctx, cn_js_arg(7));
    cn_jsservice_send(ctx, &call->base, cn_js_arg(8), convert_list);
    return JSValueMakeUndefined(ctx);
}

/* r2Note(ns, blob, announce, callback): the blob is on its way, or its put has failed */
static JSValueRef native_r2_note(CN_JS_NATIVE_ARGS)
{
    struct cn_r2_call *call = new_call(
        ctx, cn_js_arg(0), JSValueToBoolean(ctx, cn_js_arg(2)) ? CN_R2_ANNOUNCE : CN_R2_FORGET,
        NULL, exception);
    if (!call)
        return JSValueMakeUndefined(ctx);
    if (!read_body(ctx, cn_js_arg(1), JSValueMakeNumber(ctx, 0), JSValueMakeUndefined(ctx),
                   &call->body)) {
        cn_service_call_free(&call->base);
        return cn_js_throw(ctx, exception, CN_JS_TYPE_ERROR, "r2Note: there is no blob");
    }
    cn_jsservice_send(ctx, &call->base, cn_js_arg(3), NULL);
    return JSValueMakeUndefined(ctx);
}

/* --- multipart uploads ----------------------------------------------------------------------- */

/* [problem, json | null] */
static JSValueRef convert_upload(JSContextRef ctx, struct cn_service_call *base)
{
    struct cn_r2_call *call = CN_CONTAINER_OF(base, struct cn_r2_call, base);
    JSValueRef values[] = {JSValueMakeNumber(ctx, call->problem), json_of(ctx, call)};
    return JSObjectMakeArray(ctx, 2, values, NULL);
}

/* r2UploadCreate(ns, key, http, custom, class, ssec, callback) */
static JSValueRef native_r2_upload_create(CN_JS_NATIVE_ARGS)
{
    struct cn_r2_call *call =
        new_call(ctx, cn_js_arg(0), CN_R2_UPLOAD_CREATE, cn_js_arg(1), exception);
    if (!call)
        return JSValueMakeUndefined(ctx);
    call->http = text_or_null(ctx, cn_js_arg(2));
    call->custom = text_or_null(ctx, cn_js_arg(3));
    call->storage_class = text_or_null(ctx, cn_js_arg(4));
    call->ssec = text_or_null(ctx, cn_js_arg(5));
    cn_jsservice_send(ctx, &call->base, cn_js_arg(6), convert_upload);
    return JSValueMakeUndefined(ctx);
}

/* r2UploadPart(ns, key, upload, number, blob, size, etag, ssec, callback) */
static JSValueRef native_r2_upload_part(CN_JS_NATIVE_ARGS)
{
    struct cn_r2_call *call =
        new_call(ctx, cn_js_arg(0), CN_R2_UPLOAD_PART, cn_js_arg(1), exception);
    if (!call)
        return JSValueMakeUndefined(ctx);
    call->upload = text_or_null(ctx, cn_js_arg(2));
    call->part = cn_js_to_uint32(ctx, cn_js_arg(3));
    call->etag = text_or_null(ctx, cn_js_arg(6));
    call->ssec = text_or_null(ctx, cn_js_arg(7));
    if (!call->upload ||
        !read_body(ctx, cn_js_arg(4), cn_js_arg(5), JSValueMakeUndefined(ctx), &call->body)) {
        cn_service_call_free(&call->base);
        return cn_js_throw(ctx, exception, CN_JS_TYPE_ERROR, "r2UploadPart: bad arguments");
    }
    cn_jsservice_send(ctx, &call->base, cn_js_arg(8), convert_upload);
    return JSValueMakeUndefined(ctx);
}

/* r2UploadEnd(ns, key, upload, parts | null, etag, checksums, callback): null aborts */
static JSValueRef native_r2_upload_end(CN_JS_NATIVE_ARGS)
{
    bool completes = JSValueIsString(ctx, cn_js_arg(3));
    struct cn_r2_call *call =
        new_call(ctx, cn_js_arg(0), completes ? CN_R2_UPLOAD_COMPLETE : CN_R2_UPLOAD_ABORT,
                 cn_js_arg(1), exception);
    if (!call)
        return JSValueMakeUndefined(ctx);
    call->upload = text_or_null(ctx, cn_js_arg(2));
    call->parts = text_or_null(ctx, cn_js_arg(3));
    call->etag = text_or_null(ctx, cn_js_arg(4));
    call->checksums = text_or_null(ctx, cn_js_arg(5));
    cn_jsservice_send(ctx, &call->base, cn_js_arg(6), convert_upload);
    return JSValueMakeUndefined(ctx);
}

/* r2Uploads(ns, key | null, upload | null, callback): those of the bucket, or parts of one */
static JSValueRef native_r2_uploads(CN_JS_NATIVE_ARGS)
{
    bool parts = JSValueIsString(ctx, cn_js_arg(2));
    struct cn_r2_call *call = new_call(
        ctx, cn_js_arg(0), parts ? CN_R2_UPLOAD_PARTS : CN_R2_UPLOAD_LIST, NULL, exception);
    if (!call)
        return JSValueMakeUndefined(ctx);
    if (parts)
        cn_js_append_utf8(ctx, cn_js_arg(1), &call->key);
    call->upload = text_or_null(ctx, cn_js_arg(2));
    cn_jsservice_send(ctx, &call->base, cn_js_arg(3), convert_upload);
    return JSValueMakeUndefined(ctx);
}
