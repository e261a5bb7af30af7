/* SPDX-License-Identifier: Apache-2.0 */
/* js/value.c - conversions.
 *
 * The engine's own UTF-8 conversions go character by character: 1.7 ns each on
 * the way out, 2 ns on the way in (measured on 1 MB of ASCII). ASCII text goes
 * as it is, both ways, by way of engine/string8.h. The engine also takes and gives
 * UTF-16 at memcpy speed, and text/utf16.h converts that at 0.1 ns: so goes all
 * else beyond SHORT_STRING characters. */
#include "js/value.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "js/engine/alloc.h"
#include "js/engine/string8.h"
#include "text/utf16.h"

#define SHORT_STRING 128

static bool is_ascii(const void *text, size_t length)
{
    return cn_utf16_ascii_prefix(text, length) == length;
}

/* V3. Not by the engine's own conversion: it stops before a high surrogate at the end, and returns
 * then what it returns for a text that it has converted as a whole. */
void cn_js_append_string(JSStringRef string, struct cn_buf *out)
{
    size_t length = JSStringGetLength(string);
    const uint8_t *narrow = cn_js_string8_peek(string);
    if (narrow) {
        size_t ascii = cn_utf16_ascii_prefix((const char *)narrow, length);
        cn_buf_append(out, narrow, ascii);
        if (ascii == length)
            return;
        size_t rest = length - ascii;
        cn_buf_reserve(out, rest * 2);
        out->size += cn_utf16_latin1_to_utf8(narrow + ascii, rest, out->data + out->size);
        return;
    }
    /* Piece by piece, so that room is made for three bytes each only where they may be needed. */
    const uint16_t *units = (const uint16_t *)JSStringGetCharactersPtr(string);
    cn_buf_reserve(out, length + 1);
    while (length) {
        size_t piece = length < 4096 ? length : 4096;
        if (piece < length && units[piece - 1] >= 0xd800 && units[piece - 1] < 0xdc00)
            piece--; /* not between two surrogates */
        cn_buf_reserve(out, piece * 3);
        out->size += cn_utf16_to_utf8(units, piece, out->data + out->size);
        units += piece;
        length -= piece;
    }
}

void cn_js_append_utf8(JSContextRef ctx, JSValueRef value, struct cn_buf *out)
{
    if (!JSValueIsObject(ctx, value))
        cn_js_append_any(ctx, value, out);
}

void cn_js_append_any(JSContextRef ctx, JSValueRef value, struct cn_buf *out)
{
    JSStringRef string = JSValueToStringCopy(ctx, value, NULL);
    if (!string)
        return;
    cn_js_append_string(string, out);
    JSStringRelease(string);
}

JSStringRef cn_js_ascii(JSContextRef ctx, JSValueRef value, const uint8_t **text, size_t *length)
{
    JSStringRef string = JSValueIsString(ctx, value) ? JSValueToStringCopy(ctx, value, NULL) : NULL;
    if (!string)
        return NULL;
    *length = JSStringGetLength(string);
    *text = cn_js_string8_peek(string);
    if (*text && is_ascii(*text, *length))
        return string;
    JSStringRelease(string);
    return NULL;
}

void cn_js_append_latin1(JSContextRef ctx, JSValueRef value, struct cn_buf *out)
{
    JSStringRef string = JSValueIsObject(ctx, value) ? NULL : JSValueToStringCopy(ctx, value, NULL);
    if (!string)
        return;
    size_t length = JSStringGetLength(string);
    const uint8_t *narrow = cn_js_string8_peek(string);
    if (narrow) {
        cn_buf_append(out, narrow, length);
        JSStringRelease(string);
        return;
    }
    const JSChar *units = JSStringGetCharactersPtr(string);
    cn_buf_reserve(out, length + 1);
    uint8_t *at = out->data + out->size;
    for (size_t i = 0; i < length; i++)
        at[i] = units[i] < 256 ? (uint8_t)units[i] : '?';
    out->size += length;
    JSStringRelease(string);
}

char *cn_js_to_text(JSContextRef ctx, JSValueRef value, size_t *length)
{
    struct cn_buf buf = {0};
    cn_js_append_utf8(ctx, value, &buf);
    if (length)
        *length = buf.size;
    cn_buf_text(&buf);
    return (char *)cn_buf_take(&buf);
}

double cn_js_to_number(JSContextRef ctx, JSValueRef value)
{
    return JSValueIsObject(ctx, value) ? NAN : JSValueToNumber(ctx, value, NULL);
}

#define EXACT_MAX 9007199254740992.0 /* 2^53 */

static double clamped(JSContextRef ctx, JSValueRef value, double min, double max)
{
    double number = cn_js_to_number(ctx, value);
    if (isnan(number))
        return min > 0 ? min : 0;
    return number < min ? min : number > max ? max : number;
}

uint32_t cn_js_to_uint32(JSContextRef ctx, JSValueRef value)
{
    return (uint32_t)clamped(ctx, value, 0, UINT32_MAX);
}

int32_t cn_js_to_int32(JSContextRef ctx, JSValueRef value)
{
    return (int32_t)clamped(ctx, value, INT32_MIN, INT32_MAX);
}

uint64_t cn_js_to_uint64(JSContextRef ctx, JSValueRef value)
{
    return (uint64_t)clamped(ctx, value, 0, EXACT_MAX);
}

int64_t cn_js_to_int64(JSContextRef ctx, JSValueRef value)
{
    return (int64_t)clamped(ctx, value, -EXACT_MAX, EXACT_MAX);
}

bool cn_js_bytes(JSContextRef ctx, JSValueRef value, uint8_t **bytes, size_t *size)
{
    JSTypedArrayType type = JSValueGetTypedArrayType(ctx, value, NULL);
    if (type == kJSTypedArrayTypeNone)
        return false;
    JSObjectRef object = (JSObjectRef)value;
    if (type == kJSTypedArrayTypeArrayBuffer) {
        *bytes = JSObjectGetArrayBufferBytesPtr(ctx, object, NULL);
        *size = *bytes ? JSObjectGetArrayBufferByteLength(ctx, object, NULL) : 0;
    } else {
        /* The pointer is that of the buffer, whatever part of it the view shows. */
        *bytes = JSObjectGetTypedArrayBytesPtr(ctx, object, NULL);
        *size = *bytes ? JSObjectGetTypedArrayByteLength(ctx, object, NULL) : 0;
        if (*bytes)
            *bytes += JSObjectGetTypedArrayByteOffset(ctx, object, NULL);
    }
    static uint8_t nothing;
    if (!*bytes)
        *bytes = &nothing; /* memcpy() and its like want an address even for no bytes */
    return true;
}

static JSValueRef make_string(JSContextRef ctx, JSStringRef string)
{
    JSValueRef value = JSValueMakeString(ctx, string);
    JSStringRelease(string);
    return value;
}

JSValueRef cn_js_utf16(JSContextRef ctx, const uint16_t *units, size_t count)
{
    if (count > CN_JS_STRING_MAX)
        return JSValueMakeUndefined(ctx);
    return make_string(ctx, JSStringCreateWithCharacters((const JSChar *)units, count));
}

JSStringRef cn_js_string(const char *text, size_t length)
{
    JSStringRef narrow =
        is_ascii(text, length) ? cn_js_string8_new((const uint8_t *)text, length) : NULL;
    if (narrow)
        return narrow;
    if (length <= SHORT_STRING && !memchr(text, 0, length) && cn_utf8_valid(text, length)) {
        char copy[SHORT_STRING + 1]; /* the engine wants a NUL at the end, and none before */
        memcpy(copy, text, length);
        copy[length] = 0;
        return JSStringCreateWithUTF8CString(copy);
    }
    uint16_t small[1024];
    uint16_t *units = length <= CN_ARRAY_COUNT(small) ? small : cn_alloc(length * sizeof(*units));
    JSStringRef string = JSStringCreateWithCharacters((const JSChar *)units,
                                                      cn_utf16_from_utf8(text, length, units));
    if (units != small)
        cn_free(units);
    return string;
}

JSValueRef cn_js_text(JSContextRef ctx, const char *text, size_t length)
{
    if (length > CN_JS_STRING_MAX)
        return JSValueMakeUndefined(ctx);
    return make_string(ctx, cn_js_string(text, length));
}

JSValueRef cn_js_text_z(JSContextRef ctx, const char *text)
{
    return cn_js_text(ctx, text, strlen(text)); /* V1: the engine's own conversion gives up */
}

JSValueRef cn_js_latin1(JSContextRef ctx, const uint8_t *bytes, size_t length)
{
    if (length > CN_JS_STRING_MAX)
        return JSValueMakeUndefined(ctx);
    JSStringRef narrow = cn_js_string8_new(bytes, length);
    if (narrow)
        return make_string(ctx, narrow);
    if (is_ascii(bytes, length))
        return cn_js_text(ctx, (const char *)bytes, length);
    uint16_t *units = cn_alloc((length + 1) * sizeof(*units));
    for (size_t i = 0; i < length; i++)
        units[i] = bytes[i];
    JSValueRef value = cn_js_utf16(ctx, units, length);
    cn_free(units);
    return value;
}

static void release_bytes(void *bytes, void *context)
{
    (void)context;
    cn_js_alloc_returned(bytes); /* before the address is another's */
    cn_free_large(bytes);
}

JSValueRef cn_js_uint8array_take(JSContextRef ctx, void *bytes, size_t size)
{
    cn_js_alloc_lent(bytes, size);
    return JSObjectMakeTypedArrayWithBytesNoCopy(ctx, kJSTypedArrayTypeUint8Array, bytes, size,
                                                 release_bytes, NULL, NULL);
}

JSValueRef cn_js_uint8array_take_buf(JSContextRef ctx, struct cn_buf *buf)
{
    size_t size = buf->size;
    uint8_t *bytes = cn_buf_take(buf);
    return cn_js_uint8array_take(ctx, bytes ? bytes : cn_alloc(1), size);
}

JSValueRef cn_js_arraybuffer_take(JSContextRef ctx, void *bytes, size_t size)
{
    cn_js_alloc_lent(bytes, size);
    return JSObjectMakeArrayBufferWithBytesNoCopy(ctx, bytes, size, release_bytes, NULL, NULL);
}

JSValueRef cn_js_uint8array(JSContextRef ctx, const void *bytes, size_t size)
{
    return cn_js_uint8array_take(ctx, cn_memdup(bytes, size), size);
}

JSObjectRef cn_js_object(JSContextRef ctx, JSValueRef value)
{
    return value && JSValueIsObject(ctx, value) ? (JSObjectRef)value : NULL;
}

JSValueRef cn_js_at(JSContextRef ctx, JSValueRef array, unsigned index)
{
    JSObjectRef object = cn_js_object(ctx, array);
    JSValueRef exception = NULL;
    JSValueRef value = object ? JSObjectGetPropertyAtIndex(ctx, object, index, &exception) : NULL;
    return exception || !value ? JSValueMakeUndefined(ctx) : value;
}

uint32_t cn_js_length(JSContextRef ctx, JSValueRef array, uint32_t max)
{
    uint32_t length = cn_js_to_uint32(ctx, cn_js_get(ctx, array, "length"));
    return length < max ? length : max;
}

JSValueRef cn_js_invoke(JSContextRef ctx, JSValueRef function, size_t argc, const JSValueRef argv[],
                        JSValueRef *exception)
{
    JSObjectRef object = cn_js_object(ctx, function);
    return object ? JSObjectCallAsFunction(ctx, object, NULL, argc, argv, exception) : NULL;
}

JSValueRef cn_js_get(JSContextRef ctx, JSValueRef value_of, const char *name)
{
    JSObjectRef object = cn_js_object(ctx, value_of);
    if (!object)
        return JSValueMakeUndefined(ctx);
    JSStringRef name_ref = JSStringCreateWithUTF8CString(name);
    JSValueRef exception = NULL;
    JSValueRef value = JSObjectGetProperty(ctx, object, name_ref, &exception);
    JSStringRelease(name_ref);
    return exception || !value ? JSValueMakeUndefined(ctx) : value;
}

void cn_js_set(JSContextRef ctx, JSObjectRef object, const char *name, JSValueRef value)
{
    JSStringRef name_ref = JSStringCreateWithUTF8CString(name);
    JSObjectSetProperty(ctx, object, name_ref, value, kJSPropertyAttributeNone, NULL);
    JSStringRelease(name_ref);
}

static JSValueRef error_from(JSContextRef ctx, enum cn_js_error_kind kind, const char *text)
{
    static const char *const names[] = {"Error", "TypeError", "RangeError", "SyntaxError"};
    JSValueRef message = cn_js_text_z(ctx, text);
    JSValueRef constructor = cn_js_get(ctx, JSContextGetGlobalObject(ctx), names[kind]);
    if (JSValueIsObject(ctx, constructor)) {
        JSValueRef exception = NULL;
        JSObjectRef error =
            JSObjectCallAsConstructor(ctx, (JSObjectRef)constructor, 1, &message, &exception);
        if (error && !exception)
            return error;
    }
    return JSObjectMakeError(ctx, 1, &message, NULL);
}

JSValueRef cn_js_error(JSContextRef ctx, enum cn_js_error_kind kind, const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    return error_from(ctx, kind, text);
}

JSValueRef cn_js_throw(JSContextRef ctx, JSValueRef *exception, enum cn_js_error_kind kind,
                       const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    *exception = error_from(ctx, kind, text);
    return JSValueMakeUndefined(ctx);
}
