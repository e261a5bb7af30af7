/* SPDX-License-Identifier: Apache-2.0 */
/* js/value.c - conversions.
 *
 * The engine converts long strings one character at a time (1.8 ns each,
 * measured). It can also hand out UTF-16, made with vector instructions; from
 * that, plain ASCII narrows eight units at a time. So strings beyond
 * SHORT_STRING units go that way. */
#include "js/value.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/mem.h"
#include "base/utf8.h"

#define SHORT_STRING 48

/* Writes the UTF-8 of `count` UTF-16 units to `out`, which has room for 3 bytes each. */
static size_t utf16_to_utf8(const uint16_t *units, size_t count, uint8_t *out)
{
    uint8_t *at = out;
    size_t i = 0;
    while (i < count) {
        while (count - i >= 8) {
            uint64_t low, high;
            memcpy(&low, units + i, 8);
            memcpy(&high, units + i + 4, 8);
            if ((low | high) & 0xff80ff80ff80ff80u)
                break;
            for (int k = 0; k < 8; k++)
                at[k] = (uint8_t)units[i + (size_t)k];
            at += 8;
            i += 8;
        }
        if (i == count)
            break;
        uint32_t c = units[i++];
        if (c < 0x80) {
            *at++ = (uint8_t)c;
            continue;
        }
        if (c < 0x800) {
            *at++ = (uint8_t)(0xc0 | c >> 6);
            *at++ = (uint8_t)(0x80 | (c & 63));
            continue;
        }
        if (c >= 0xd800 && c < 0xe000) {
            if (c < 0xdc00 && i < count && units[i] >= 0xdc00 && units[i] < 0xe000) {
                c = 0x10000 + ((c - 0xd800) << 10) + (units[i++] - 0xdc00u);
                *at++ = (uint8_t)(0xf0 | c >> 18);
                *at++ = (uint8_t)(0x80 | (c >> 12 & 63));
                *at++ = (uint8_t)(0x80 | (c >> 6 & 63));
                *at++ = (uint8_t)(0x80 | (c & 63));
                continue;
            }
            c = 0xfffd;
        }
        *at++ = (uint8_t)(0xe0 | c >> 12);
        *at++ = (uint8_t)(0x80 | (c >> 6 & 63));
        *at++ = (uint8_t)(0x80 | (c & 63));
    }
    return (size_t)(at - out);
}

static void append_string(JSStringRef string, struct cn_buf *out)
{
    size_t length = JSStringGetLength(string);
    cn_buf_reserve(out, length * 3 + 1);
    uint8_t *at = out->data + out->size;
    if (length <= SHORT_STRING) {
        /* A lone surrogate makes the engine give up: then the long way. */
        size_t size = JSStringGetUTF8CString(string, (char *)at, length * 3 + 1);
        if (size > length || length == 0) {
            out->size += size ? size - 1 : 0;
            return;
        }
    }
    out->size += utf16_to_utf8((const uint16_t *)JSStringGetCharactersPtr(string), length, at);
}

void cn_js_append_utf8(JSContextRef ctx, JSValueRef value, struct cn_buf *out)
{
    JSStringRef string = JSValueToStringCopy(ctx, value, NULL);
    if (!string)
        return;
    append_string(string, out);
    JSStringRelease(string);
}

void cn_js_append_latin1(JSContextRef ctx, JSValueRef value, struct cn_buf *out)
{
    JSStringRef string = JSValueToStringCopy(ctx, value, NULL);
    if (!string)
        return;
    size_t length = JSStringGetLength(string);
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
    return JSValueToNumber(ctx, value, NULL);
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
    return make_string(ctx, JSStringCreateWithCharacters((const JSChar *)units, count));
}

/* UTF-8 with mistakes, or with NUL characters, which the engine's own converter stops at. */
static JSValueRef text_slowly(JSContextRef ctx, const char *text, size_t length)
{
    uint16_t *units = cn_alloc((length + 1) * sizeof(*units));
    size_t count = 0;
    for (size_t i = 0; i < length;) {
        size_t used = cn_utf8_sequence(text + i, length - i);
        const uint8_t *p = (const uint8_t *)text + i;
        if (used == 1) {
            units[count++] = p[0];
        } else if (used == 2) {
            units[count++] = (uint16_t)((p[0] & 31) << 6 | (p[1] & 63));
        } else if (used == 3) {
            units[count++] = (uint16_t)((p[0] & 15) << 12 | (p[1] & 63) << 6 | (p[2] & 63));
        } else if (used == 4) {
            uint32_t c = ((uint32_t)(p[0] & 7) << 18 | (uint32_t)(p[1] & 63) << 12 |
                          (uint32_t)(p[2] & 63) << 6 | (p[3] & 63)) -
                         0x10000;
            units[count++] = (uint16_t)(0xd800 + (c >> 10));
            units[count++] = (uint16_t)(0xdc00 + (c & 1023));
        } else {
            /* One replacement for a maximal part of a broken sequence, as the Encoding standard
             * has it: the lead byte and the tails that could have continued it. */
            units[count++] = 0xfffd;
            used = 1;
            size_t want = p[0] >= 0xf0 && p[0] <= 0xf4 ? 3 : p[0] >= 0xe0 ? 2 : p[0] >= 0xc2;
            if (p[0] > 0xf4)
                want = 0;
            if (want && i + 1 < length) {
                uint8_t low = p[0] == 0xe0 ? 0xa0 : p[0] == 0xf0 ? 0x90 : 0x80;
                uint8_t high = p[0] == 0xed ? 0x9f : p[0] == 0xf4 ? 0x8f : 0xbf;
                if (p[1] >= low && p[1] <= high) {
                    used = 2;
                    while (used <= want && i + used < length && (p[used] & 0xc0) == 0x80)
                        used++;
                    if (used > want)
                        used = want; /* cannot happen for a broken sequence */
                }
            }
        }
        i += used;
    }
    JSValueRef value = cn_js_utf16(ctx, units, count);
    cn_free(units);
    return value;
}

JSValueRef cn_js_text(JSContextRef ctx, const char *text, size_t length)
{
    if (memchr(text, 0, length) || !cn_utf8_valid(text, length))
        return text_slowly(ctx, text, length);
    /* The engine wants a NUL at the end. */
    char small[512];
    char *copy = length < sizeof(small) ? small : cn_alloc(length + 1);
    memcpy(copy, text, length);
    copy[length] = 0;
    JSValueRef value = make_string(ctx, JSStringCreateWithUTF8CString(copy));
    if (copy != small)
        cn_free(copy);
    return value;
}

JSValueRef cn_js_text_z(JSContextRef ctx, const char *text)
{
    return make_string(ctx, JSStringCreateWithUTF8CString(text));
}

JSValueRef cn_js_latin1(JSContextRef ctx, const uint8_t *bytes, size_t length)
{
    bool ascii = true;
    for (size_t i = 0; i < length; i++)
        ascii &= bytes[i] < 0x80;
    if (ascii)
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
    free(bytes);
}

JSValueRef cn_js_uint8array_take(JSContextRef ctx, void *bytes, size_t size)
{
    return JSObjectMakeTypedArrayWithBytesNoCopy(ctx, kJSTypedArrayTypeUint8Array, bytes, size,
                                                 release_bytes, NULL, NULL);
}

JSValueRef cn_js_arraybuffer_take(JSContextRef ctx, void *bytes, size_t size)
{
    return JSObjectMakeArrayBufferWithBytesNoCopy(ctx, bytes, size, release_bytes, NULL, NULL);
}

JSValueRef cn_js_uint8array(JSContextRef ctx, const void *bytes, size_t size)
{
    return cn_js_uint8array_take(ctx, cn_memdup(bytes, size), size);
}

JSValueRef cn_js_get(JSContextRef ctx, JSObjectRef object, const char *name)
{
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
    JSValueRef constructor =
        cn_js_get(ctx, JSContextGetGlobalObject(ctx), names[kind]);
    if (JSValueIsObject(ctx, constructor)) {
        JSValueRef exception = NULL;
        JSObjectRef error = JSObjectCallAsConstructor(ctx, (JSObjectRef)constructor, 1, &message,
                                                      &exception);
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
