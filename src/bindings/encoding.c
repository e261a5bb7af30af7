/* SPDX-License-Identifier: Apache-2.0 */
/* bindings/encoding.c - text to bytes and back, base64. */
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "js/native.h"

/* utf8Encode(string) -> Uint8Array */
static JSValueRef native_utf8_encode(CN_JS_NATIVE_ARGS)
{
    struct cn_buf out = {0};
    cn_js_append_utf8(ctx, cn_js_arg(0), &out);
    size_t size = out.size;
    if (out.capacity > size + size / 4 + 64)
        out.data = cn_realloc(out.data, size ? size : 1);
    return cn_js_uint8array_take(ctx, out.data ? out.data : cn_alloc(1), size);
}

/* utf8Decode(bytes) -> string; mistakes become U+FFFD; a byte order mark is kept. */
static JSValueRef native_utf8_decode(CN_JS_NATIVE_ARGS)
{
    uint8_t *bytes;
    size_t size;
    if (!cn_js_bytes(ctx, cn_js_arg(0), &bytes, &size))
        return cn_js_throw(ctx, exception, CN_JS_TYPE_ERROR, "utf8Decode: not a buffer");
    return cn_js_text(ctx, (const char *)bytes, size);
}

/* utf8Valid(bytes) -> boolean */
static JSValueRef native_utf8_valid(CN_JS_NATIVE_ARGS)
{
    uint8_t *bytes;
    size_t size;
    if (!cn_js_bytes(ctx, cn_js_arg(0), &bytes, &size))
        return cn_js_throw(ctx, exception, CN_JS_TYPE_ERROR, "utf8Valid: not a buffer");
    return JSValueMakeBoolean(ctx, cn_utf8_valid((const char *)bytes, size));
}

/* latin1Decode(bytes) -> string, a character per byte */
static JSValueRef native_latin1_decode(CN_JS_NATIVE_ARGS)
{
    uint8_t *bytes;
    size_t size;
    if (!cn_js_bytes(ctx, cn_js_arg(0), &bytes, &size))
        return cn_js_throw(ctx, exception, CN_JS_TYPE_ERROR, "latin1Decode: not a buffer");
    return cn_js_latin1(ctx, bytes, size);
}

const struct cn_js_native cn_native_encoding[] = {
    {"utf8Encode", native_utf8_encode},
    {"utf8Decode", native_utf8_decode},
    {"utf8Valid", native_utf8_valid},
    {"latin1Decode", native_latin1_decode},
    {0},
};
