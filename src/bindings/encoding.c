/* SPDX-License-Identifier: Apache-2.0 */
/* bindings/encoding.c - text to bytes and back, base64. */
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "border/encoding.h"
#include "js/native.h"
#include "text/base64.h"
#include "text/decoder.h"

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
    if (size > CN_JS_STRING_MAX)
        return cn_js_throw(ctx, exception, CN_JS_RANGE_ERROR, CN_JS_STRING_TOO_LONG);
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
    if (size > CN_JS_STRING_MAX)
        return cn_js_throw(ctx, exception, CN_JS_RANGE_ERROR, CN_JS_STRING_TOO_LONG);
    return cn_js_latin1(ctx, bytes, size);
}

/* utf8DecodeStrict(bytes) -> string, or null if they are not valid */
static JSValueRef native_utf8_decode_strict(CN_JS_NATIVE_ARGS)
{
    uint8_t *bytes;
    size_t size;
    if (!cn_js_bytes(ctx, cn_js_arg(0), &bytes, &size))
        return cn_js_throw(ctx, exception, CN_JS_TYPE_ERROR, "utf8DecodeStrict: not a buffer");
    if (!cn_utf8_valid((const char *)bytes, size))
        return JSValueMakeNull(ctx);
    if (size > CN_JS_STRING_MAX)
        return cn_js_throw(ctx, exception, CN_JS_RANGE_ERROR, CN_JS_STRING_TOO_LONG);
    return cn_js_text(ctx, (const char *)bytes, size);
}

/* utf8EncodeInto(string, bytes, counts): writes as many whole characters as fit; counts[0] is
 * how many UTF-16 units they were, counts[1] how many bytes. */
static JSValueRef native_utf8_encode_into(CN_JS_NATIVE_ARGS)
{
    uint8_t *bytes, *counts;
    size_t size, counts_size;
    JSStringRef string = JSValueToStringCopy(ctx, cn_js_arg(0), exception);
    if (!string)
        return JSValueMakeUndefined(ctx);
    if (!cn_js_bytes(ctx, cn_js_arg(1), &bytes, &size) ||
        !cn_js_bytes(ctx, cn_js_arg(2), &counts, &counts_size) || counts_size != 8) {
        JSStringRelease(string);
        return cn_js_throw(ctx, exception, CN_JS_TYPE_ERROR, "utf8EncodeInto: not a buffer");
    }
    const JSChar *units = JSStringGetCharactersPtr(string);
    size_t length = JSStringGetLength(string);
    size_t read = 0, written = 0;
    while (read < length) {
        uint32_t c = units[read];
        size_t used = 1;
        if (c >= 0xd800 && c <= 0xdfff) {
            if (c < 0xdc00 && read + 1 < length && (units[read + 1] & 0xfc00) == 0xdc00) {
                c = 0x10000 + ((c & 1023) << 10 | (units[read + 1] & 1023));
                used = 2;
            } else {
                c = 0xfffd;
            }
        }
        size_t need = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
        if (size - written < need)
            break;
        uint8_t *at = bytes + written;
        if (need == 1) {
            at[0] = (uint8_t)c;
        } else {
            for (size_t i = need - 1; i > 0; i--, c >>= 6)
                at[i] = (uint8_t)(0x80 | (c & 63));
            at[0] = (uint8_t)(0xf00 >> need | c); /* 110..., 1110..., 11110... */
        }
        written += need;
        read += used;
    }
    JSStringRelease(string);
    uint32_t result[2] = {(uint32_t)read, (uint32_t)written};
    memcpy(counts, result, sizeof(result));
    return JSValueMakeUndefined(ctx);
}

/* latin1Slice(bytes, start, end) -> string, a character per byte */
static JSValueRef native_latin1_slice(CN_JS_NATIVE_ARGS)
{
    uint8_t *bytes;
    size_t size;
    if (!cn_js_bytes(ctx, cn_js_arg(0), &bytes, &size))
        return cn_js_throw(ctx, exception, CN_JS_TYPE_ERROR, "latin1Slice: not a buffer");
    double start = cn_js_to_number(ctx, cn_js_arg(1)), end = cn_js_to_number(ctx, cn_js_arg(2));
    if (!(start >= 0 && start <= end && end <= (double)size))
        return cn_js_throw(ctx, exception, CN_JS_RANGE_ERROR, "latin1Slice: out of bounds");
    if (end - start > CN_JS_STRING_MAX)
        return cn_js_throw(ctx, exception, CN_JS_RANGE_ERROR, CN_JS_STRING_TOO_LONG);
    return cn_js_latin1(ctx, bytes + (size_t)start, (size_t)(end - start));
}

/* latin1Write(string, bytes, start) -> boolean: writes a byte per character if every character
 * is one and they fit */
static JSValueRef native_latin1_write(CN_JS_NATIVE_ARGS)
{
    JSStringRef string = JSValueToStringCopy(ctx, cn_js_arg(0), exception);
    if (!string)
        return JSValueMakeUndefined(ctx);
    uint8_t *bytes;
    size_t size;
    double start = cn_js_to_number(ctx, cn_js_arg(2));
    size_t length = JSStringGetLength(string);
    bool done = false;
    if (cn_js_bytes(ctx, cn_js_arg(1), &bytes, &size) && start >= 0 &&
        start + (double)length <= (double)size) {
        const JSChar *units = JSStringGetCharactersPtr(string);
        unsigned all = 0;
        for (size_t i = 0; i < length; i++)
            all |= units[i];
        done = all <= 0xff;
        for (size_t i = 0; done && i < length; i++)
            bytes[(size_t)start + i] = (uint8_t)units[i];
    }
    JSStringRelease(string);
    return JSValueMakeBoolean(ctx, done);
}

/* encodingId(name) -> number of an encoding other than UTF-8, for textDecode() */
static JSValueRef native_encoding_id(CN_JS_NATIVE_ARGS)
{
    char *name = cn_js_to_text(ctx, cn_js_arg(0), NULL);
    int id = cn_encoding_find(name);
    cn_free(name);
    return JSValueMakeNumber(ctx, id);
}

/* textDecode(id, state, bytes, flush, fatal) -> string, or null for a mistake; `state` is a
 * Uint8Array of 16 bytes, zero at the start of a stream */
static JSValueRef native_text_decode(CN_JS_NATIVE_ARGS)
{
    uint8_t *state_bytes, *bytes;
    size_t state_size, size;
    struct cn_decoder_state state;
    _Static_assert(sizeof(state) <= 16, "textDecode() keeps the state in 16 bytes");
    if (!cn_js_bytes(ctx, cn_js_arg(1), &state_bytes, &state_size) || state_size != 16 ||
        !cn_js_bytes(ctx, cn_js_arg(2), &bytes, &size))
        return cn_js_throw(ctx, exception, CN_JS_TYPE_ERROR, "textDecode: not a buffer");
    uint32_t encoding = cn_js_to_uint32(ctx, cn_js_arg(0));
    if (encoding >= cn_encoding_count())
        return cn_js_throw(ctx, exception, CN_JS_TYPE_ERROR, "textDecode: no such encoding");
    if (size > CN_JS_STRING_MAX)
        return cn_js_throw(ctx, exception, CN_JS_RANGE_ERROR, CN_JS_STRING_TOO_LONG);
    memcpy(&state, state_bytes, sizeof(state));
    uint16_t *units = cn_try_alloc(cn_decode_bound(size) * sizeof(*units));
    if (!units)
        return cn_js_throw(ctx, exception, CN_JS_RANGE_ERROR, "Out of memory.");
    int64_t count =
        cn_text_decode((int)encoding, &state, bytes, size, JSValueToBoolean(ctx, cn_js_arg(3)),
                       JSValueToBoolean(ctx, cn_js_arg(4)), units);
    memcpy(state_bytes, &state, sizeof(state));
    JSValueRef result = count >= 0 ? cn_js_utf16(ctx, units, (size_t)count) : JSValueMakeNull(ctx);
    cn_free(units);
    if (count == CN_EUNSUPPORTED)
        return cn_js_throw(ctx, exception, CN_JS_ERROR,
                           "The ICU library of this system lacks this encoding.");
    return result;
}

/* base64Encode(string) -> string, or null if a character is above U+00FF */
static JSValueRef native_base64_encode(CN_JS_NATIVE_ARGS)
{
    JSStringRef string = JSValueToStringCopy(ctx, cn_js_arg(0), exception);
    if (!string)
        return JSValueMakeUndefined(ctx);
    const JSChar *units = JSStringGetCharactersPtr(string);
    size_t length = JSStringGetLength(string);
    uint8_t *out = cn_alloc(cn_base64_size(length) + 1);
    bool bytes = cn_base64_encode_units(units, length, out);
    JSStringRelease(string);
    JSValueRef result =
        bytes ? cn_js_latin1(ctx, out, cn_base64_size(length)) : JSValueMakeNull(ctx);
    cn_free(out);
    return result;
}

/* base64Decode(string) -> string of bytes, or null */
static JSValueRef native_base64_decode(CN_JS_NATIVE_ARGS)
{
    JSStringRef string = JSValueToStringCopy(ctx, cn_js_arg(0), exception);
    if (!string)
        return JSValueMakeUndefined(ctx);
    const JSChar *units = JSStringGetCharactersPtr(string);
    size_t length = JSStringGetLength(string);
    uint8_t *out = cn_alloc(length / 4 * 3 + 4);
    size_t size;
    bool valid = cn_base64_decode_units(units, length, out, &size);
    JSStringRelease(string);
    JSValueRef result = valid ? cn_js_latin1(ctx, out, size) : JSValueMakeNull(ctx);
    cn_free(out);
    return result;
}
