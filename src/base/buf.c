/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/hexdigit.h"
#include "base/mem.h"
#include "base/utf8.h"

void cn_buf_fini(struct cn_buf *buf)
{
    cn_free(buf->data);
    *buf = (struct cn_buf){0};
}

void cn_buf_reserve(struct cn_buf *buf, size_t extra)
{
    CN_ASSERT(extra < SIZE_MAX / 4 && buf->size < SIZE_MAX / 4);
    size_t needed = buf->size + extra;
    if (needed <= buf->capacity)
        return;
    size_t capacity = buf->capacity ? buf->capacity : 64;
    while (capacity < needed)
        capacity += capacity / 2 + 16;
    buf->data = cn_realloc(buf->data, capacity);
    buf->capacity = capacity;
}

void cn_buf_append(struct cn_buf *buf, const void *bytes, size_t size)
{
    if (!size)
        return;
    cn_buf_reserve(buf, size);
    memcpy(buf->data + buf->size, bytes, size);
    buf->size += size;
}

bool cn_buf_try_append(struct cn_buf *buf, const void *bytes, size_t size)
{
    if (size > buf->capacity - buf->size) {
        if (size > SIZE_MAX - buf->size)
            return false;
        uint8_t *grown = cn_try_realloc(buf->data, buf->size + size);
        if (!grown)
            return false;
        buf->data = grown;
        buf->capacity = buf->size + size;
    }
    cn_buf_append(buf, bytes, size);
    return true;
}

void cn_buf_append_str(struct cn_buf *buf, const char *text)
{
    cn_buf_append(buf, text, strlen(text));
}

void cn_buf_append_byte(struct cn_buf *buf, uint8_t byte)
{
    cn_buf_reserve(buf, 1);
    buf->data[buf->size++] = byte;
}

/* printf() takes ten times as long. */
void cn_buf_append_uint(struct cn_buf *buf, uint64_t value)
{
    char text[20], *at = text + sizeof(text);
    do {
        *--at = (char)('0' + value % 10);
        value /= 10;
    } while (value);
    cn_buf_append(buf, at, (size_t)(text + sizeof(text) - at));
}

void cn_buf_append_int(struct cn_buf *buf, int64_t value)
{
    if (value < 0)
        cn_buf_append_byte(buf, '-');
    cn_buf_append_uint(buf, value < 0 ? -(uint64_t)value : (uint64_t)value);
}

void cn_buf_printf(struct cn_buf *buf, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    CN_ASSERT(length >= 0);
    cn_buf_reserve(buf, (size_t)length + 1);
    va_start(args, format);
    vsnprintf((char *)buf->data + buf->size, (size_t)length + 1, format, args);
    va_end(args);
    buf->size += (size_t)length;
}

/* Stands for itself in a JSON string. */
static bool is_plain(uint8_t c)
{
    return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

void cn_buf_append_html(struct cn_buf *buf, const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        switch (text[i]) {
        case '<':
            cn_buf_append_str(buf, "&lt;");
            break;
        case '>':
            cn_buf_append_str(buf, "&gt;");
            break;
        case '&':
            cn_buf_append_str(buf, "&amp;");
            break;
        default:
            cn_buf_append_byte(buf, (uint8_t)text[i]);
        }
    }
}

void cn_buf_append_json(struct cn_buf *buf, const char *text, size_t length)
{
    cn_buf_append_byte(buf, '"');
    for (size_t i = 0; i < length;) {
        uint8_t c = (uint8_t)text[i];
        if (c == '"' || c == '\\') {
            cn_buf_append(buf, (char[]){'\\', (char)c}, 2);
            i++;
        } else if (c == '\n') {
            cn_buf_append(buf, "\\n", 2);
            i++;
        } else if (c < 0x20 || c == 0x7f) {
            cn_buf_append(buf, (char[]){'\\', 'u', '0', '0', cn_hexdigit(c >> 4), cn_hexdigit(c)},
                          6);
            i++;
        } else if (c < 0x80) {
            size_t end = i + 1;
            while (end < length && is_plain((uint8_t)text[end]))
                end++;
            cn_buf_append(buf, text + i, end - i);
            i = end;
        } else {
            size_t used = cn_utf8_sequence(text + i, length - i);
            if (used) {
                cn_buf_append(buf, text + i, used);
                i += used;
            } else {
                cn_buf_append(buf, "\xef\xbf\xbd", 3);
                i++;
            }
        }
    }
    cn_buf_append_byte(buf, '"');
}

char *cn_buf_text(struct cn_buf *buf)
{
    cn_buf_reserve(buf, 1);
    buf->data[buf->size] = 0;
    return (char *)buf->data;
}

void cn_buf_consume(struct cn_buf *buf, size_t size)
{
    CN_ASSERT(size <= buf->size);
    buf->size -= size;
    if (buf->size)
        memmove(buf->data, buf->data + size, buf->size);
}

uint8_t *cn_buf_take(struct cn_buf *buf)
{
    uint8_t *data = buf->data;
    *buf = (struct cn_buf){0};
    return data;
}
