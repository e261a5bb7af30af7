/* SPDX-License-Identifier: Apache-2.0 */
#include "bundler/convert.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "text/utf16.h"

void cn_convert_append(JSContextRef ctx, JSValueRef value, struct cn_buf *out)
{
    JSStringRef string = JSValueToStringCopy(ctx, value, NULL);
    if (!string)
        return;
    size_t count = JSStringGetLength(string);
    cn_buf_reserve(out, count * 3);
    out->size += cn_utf16_to_utf8(JSStringGetCharactersPtr(string), count, out->data + out->size);
    JSStringRelease(string);
}

char *cn_convert_to_text(JSContextRef ctx, JSValueRef value)
{
    struct cn_buf text = {0};
    cn_convert_append(ctx, value, &text);
    (void)cn_buf_text(&text);
    return (char *)cn_buf_take(&text);
}

bool cn_convert_bytes(JSContextRef ctx, JSValueRef value, uint8_t **bytes, size_t *size)
{
    JSTypedArrayType type = JSValueGetTypedArrayType(ctx, value, NULL);
    if (type == kJSTypedArrayTypeNone || type == kJSTypedArrayTypeArrayBuffer)
        return false;
    JSObjectRef array = JSValueToObject(ctx, value, NULL);
    uint8_t *start = JSObjectGetTypedArrayBytesPtr(ctx, array, NULL);
    *bytes = start + JSObjectGetTypedArrayByteOffset(ctx, array, NULL);
    *size = JSObjectGetTypedArrayByteLength(ctx, array, NULL);
    return true;
}

JSStringRef cn_convert_string(const char *text, size_t size)
{
    uint16_t *units = cn_alloc((size + 1) * sizeof(uint16_t));
    JSStringRef string = JSStringCreateWithCharacters(units, cn_utf16_from_utf8(text, size, units));
    cn_free(units);
    return string;
}

JSValueRef cn_convert_text(JSContextRef ctx, const char *text)
{
    JSStringRef string = cn_convert_string(text, strlen(text));
    JSValueRef value = JSValueMakeString(ctx, string);
    JSStringRelease(string);
    return value;
}

static void release(void *bytes, void *data)
{
    (void)data;
    cn_free(bytes);
}

JSValueRef cn_convert_take(JSContextRef ctx, struct cn_buf *buf)
{
    size_t size = buf->size;
    cn_buf_reserve(buf, 1); /* an address even of nothing */
    return JSObjectMakeTypedArrayWithBytesNoCopy(ctx, kJSTypedArrayTypeUint8Array, cn_buf_take(buf),
                                                 size, release, NULL, NULL);
}

JSValueRef cn_convert_get(JSContextRef ctx, JSValueRef object, const char *name)
{
    if (!JSValueIsObject(ctx, object))
        return JSValueMakeUndefined(ctx);
    JSStringRef key = JSStringCreateWithUTF8CString(name);
    JSValueRef value = JSObjectGetProperty(ctx, JSValueToObject(ctx, object, NULL), key, NULL);
    JSStringRelease(key);
    return value ? value : JSValueMakeUndefined(ctx);
}

void cn_convert_set(JSContextRef ctx, JSObjectRef object, const char *name, JSValueRef value)
{
    JSStringRef key = JSStringCreateWithUTF8CString(name);
    JSObjectSetProperty(ctx, object, key, value, kJSPropertyAttributeNone, NULL);
    JSStringRelease(key);
}

JSObjectRef cn_convert_throw(JSContextRef ctx, JSValueRef *exception, const char *format, ...)
{
    char text[CN_ERR_TEXT_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    JSValueRef message = cn_convert_text(ctx, text);
    JSObjectRef error = JSObjectMakeError(ctx, 1, &message, NULL);
    *exception = error;
    return error;
}
