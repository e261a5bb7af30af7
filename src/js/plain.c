/* SPDX-License-Identifier: Apache-2.0 */
#include "js/plain.h"

#include <math.h>
#include <string.h>

#include "js/value.h"
#include "text/clone.h"

static void put_byte(struct cn_buf *out, unsigned byte)
{
    uint8_t value = (uint8_t)byte;
    cn_buf_append(out, &value, 1);
}

static void put_uint(struct cn_buf *out, uint32_t value)
{
    for (; value > 127; value >>= 7)
        put_byte(out, (value & 127) | 128);
    put_byte(out, value);
}

static void put_number(struct cn_buf *out, double number)
{
    bool is_int = number >= INT32_MIN && number <= INT32_MAX && number == (double)(int32_t)number &&
                  !(number == 0 && signbit(number));
    if (!is_int) {
        put_byte(out, TAG_DOUBLE);
        cn_buf_append(out, &number, sizeof(number));
        return;
    }
    int32_t value = (int32_t)number;
    if (value >= SMALL_INT_MIN && value <= SMALL_INT_MAX) {
        put_byte(out, (unsigned)(TAG_SMALL_INT + value - SMALL_INT_MIN));
        return;
    }
    put_byte(out, TAG_INT);
    put_uint(out, ((uint32_t)value << 1) ^ (value < 0 ? UINT32_MAX : 0));
}

static bool put_text(JSContextRef ctx, JSValueRef value, struct cn_buf *out)
{
    const uint8_t *text;
    size_t length;
    JSStringRef string = cn_js_ascii(ctx, value, &text, &length);
    if (!string)
        return false;
    bool fits = length <= CN_JS_PLAIN_TEXT_MAX;
    if (fits && length <= SHORT_STRING_MAX) {
        put_byte(out, TAG_SHORT_STRING | (unsigned)length);
    } else if (fits) {
        put_byte(out, TAG_LATIN1);
        put_uint(out, (uint32_t)length);
    }
    if (fits)
        cn_buf_append(out, text, length);
    JSStringRelease(string);
    return fits;
}

static bool put_value(JSContextRef ctx, JSValueRef value, struct cn_buf *out)
{
    switch (JSValueGetType(ctx, value)) {
    case kJSTypeUndefined:
        put_byte(out, TAG_UNDEFINED);
        return true;
    case kJSTypeNull:
        put_byte(out, TAG_NULL);
        return true;
    case kJSTypeBoolean:
        put_byte(out, JSValueToBoolean(ctx, value) ? TAG_TRUE : TAG_FALSE);
        return true;
    case kJSTypeNumber:
        put_number(out, JSValueToNumber(ctx, value, NULL));
        return true;
    case kJSTypeString:
        return put_text(ctx, value, out);
    default:
        return false;
    }
}

bool cn_js_plain_write(JSContextRef ctx, size_t count, const JSValueRef values[],
                       struct cn_buf *out)
{
    put_byte(out, FORMAT_VERSION);
    put_byte(out, TAG_ARRAY);
    put_uint(out, (uint32_t)count);
    for (size_t i = 0; i < count; i++) {
        if (!put_value(ctx, values[i], out))
            return false;
    }
    return true;
}

/* --- reading --------------------------------------------------------------------------------- */

/* A number of at most 32 bits that ends where the bytes do, or before `*at`'s end. */
static bool get_uint(const uint8_t **at, const uint8_t *end, uint32_t *value)
{
    *value = 0;
    for (unsigned shift = 0; shift < 35 && *at < end; shift += 7) {
        uint8_t byte = *(*at)++;
        if (shift == 28 && byte > 0x0f)
            return false;
        *value |= (uint32_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return true;
    }
    return false;
}

static JSValueRef get_int(JSContextRef ctx, const uint8_t *at, const uint8_t *end)
{
    uint32_t coded;
    if (!get_uint(&at, end, &coded) || at != end)
        return NULL;
    int64_t half = coded >> 1;
    return JSValueMakeNumber(ctx, (double)(coded & 1 ? -half - 1 : half));
}

static JSValueRef get_double(JSContextRef ctx, const uint8_t *at, const uint8_t *end)
{
    double number;
    if (end - at != sizeof(number))
        return NULL;
    memcpy(&number, at, sizeof(number));
    return JSValueMakeNumber(ctx, number);
}

static JSValueRef get_latin1(JSContextRef ctx, const uint8_t *at, const uint8_t *end)
{
    uint32_t length;
    if (!get_uint(&at, end, &length) || (size_t)(end - at) != length ||
        length > CN_JS_PLAIN_TEXT_MAX)
        return NULL;
    return cn_js_latin1(ctx, at, length);
}

JSValueRef cn_js_plain_read(JSContextRef ctx, const uint8_t *bytes, size_t size)
{
    if (size < 2 || bytes[0] != FORMAT_VERSION)
        return NULL;
    const uint8_t tag = bytes[1], *at = bytes + 2, *end = bytes + size;
    if (tag >= TAG_SMALL_INT)
        return at == end ? JSValueMakeNumber(ctx, tag - TAG_SMALL_INT + SMALL_INT_MIN) : NULL;
    if ((tag & ~SHORT_STRING_MAX) == TAG_SHORT_STRING)
        return end - at == (tag & SHORT_STRING_MAX) ? cn_js_latin1(ctx, at, (size_t)(end - at))
                                                    : NULL;
    switch (tag) {
    case TAG_INT:
        return get_int(ctx, at, end);
    case TAG_DOUBLE:
        return get_double(ctx, at, end);
    case TAG_LATIN1:
        return get_latin1(ctx, at, end);
    case TAG_UNDEFINED:
        return at == end ? JSValueMakeUndefined(ctx) : NULL;
    case TAG_NULL:
        return at == end ? JSValueMakeNull(ctx) : NULL;
    case TAG_FALSE:
    case TAG_TRUE:
        return at == end ? JSValueMakeBoolean(ctx, tag == TAG_TRUE) : NULL;
    default:
        return NULL;
    }
}
