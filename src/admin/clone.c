/* SPDX-License-Identifier: Apache-2.0 */
#include "admin/clone.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "admin/handler.h"
#include "base/assert.h"
#include "base/buf.h"
#include "base/mem.h"
#include "text/base64.h"
#include "text/clone.h"
#include "text/utf16.h"

#define DEPTH_MAX 64

/* Where a property name was first written. */
struct name {
    const uint8_t *bytes;
    size_t count;
    bool wide;
};

struct reader {
    const uint8_t *at, *end;
    struct cn_buf *out;
    struct name *names; /* owned */
    size_t name_count, name_room;
    int depth;
};

static bool read_uint(struct reader *reader, uint64_t *value)
{
    *value = 0;
    for (unsigned shift = 0; shift < 56 && reader->at < reader->end; shift += 7) {
        uint8_t byte = *reader->at++;
        *value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return true;
    }
    return false;
}

/* `count` bytes that are there, or NULL. */
static const uint8_t *take(struct reader *reader, uint64_t count)
{
    if (count > (uint64_t)(reader->end - reader->at))
        return NULL;
    const uint8_t *bytes = reader->at;
    reader->at += count;
    return bytes;
}

static void append_latin1(struct cn_buf *out, const uint8_t *bytes, size_t count)
{
    uint8_t *text = cn_alloc(count * 2 + 1);
    cn_buf_append_json(out, (char *)text, cn_utf16_latin1_to_utf8(bytes, count, text));
    cn_free(text);
}

static void append_utf16(struct cn_buf *out, const uint8_t *bytes, size_t count)
{
    uint16_t *units = cn_alloc(count * 2 + 1);
    uint8_t *text = cn_alloc(count * 3 + 1);
    memcpy(units, bytes, count * 2);
    cn_buf_append_json(out, (char *)text, cn_utf16_to_utf8(units, count, text));
    cn_free(units);
    cn_free(text);
}

static void append_number(struct cn_buf *out, double number)
{
    if (isfinite(number))
        cn_buf_printf(out, "%.17g", number);
    else
        cn_buf_printf(out, "{\"$number\":\"%s\"}",
                      isnan(number)  ? "NaN"
                      : number > 0.0 ? "Infinity"
                                     : "-Infinity");
}

static bool read_number(struct reader *reader)
{
    const uint8_t *bytes = take(reader, 8);
    double number;
    if (!bytes)
        return false;
    memcpy(&number, bytes, 8);
    append_number(reader->out, number);
    return true;
}

static bool read_text(struct reader *reader, bool wide)
{
    uint64_t count;
    if (!read_uint(reader, &count) || count > SIZE_MAX / 2)
        return false;
    const uint8_t *bytes = take(reader, wide ? 2 * count : count);
    if (!bytes)
        return false;
    if (wide)
        append_utf16(reader->out, bytes, (size_t)count);
    else
        append_latin1(reader->out, bytes, (size_t)count);
    return true;
}

static bool read_bigint(struct reader *reader, bool negative)
{
    uint64_t count;
    const uint8_t *bytes = read_uint(reader, &count) ? take(reader, count) : NULL;
    if (!bytes)
        return false;
    cn_buf_printf(reader->out, "{\"$bigint\":\"%s0x", negative ? "-" : "");
    while (count > 1 && bytes[count - 1] == 0)
        count--;
    if (count == 0)
        cn_buf_append_byte(reader->out, '0');
    for (size_t i = (size_t)count; i > 0; i--)
        cn_buf_printf(reader->out, i == count ? "%x" : "%02x", bytes[i - 1]);
    cn_buf_append_str(reader->out, "\"}");
    return true;
}

/* `count` bytes; of a buffer that can grow its largest size stands before them. */
static bool read_buffer(struct reader *reader, bool resizable)
{
    uint64_t count, maximum;
    if (!read_uint(reader, &count) || (resizable && !read_uint(reader, &maximum)))
        return false;
    const uint8_t *bytes = take(reader, count);
    if (!bytes)
        return false;
    cn_buf_append_str(reader->out, "{\"$bytes\":\"");
    cn_base64_encode(reader->out, bytes, (size_t)count);
    cn_buf_append_str(reader->out, "\"}");
    return true;
}

static bool read_value(struct reader *reader);

/* A property's name. 1: written; 0: the list ends; -1: malformed. */
static int read_name(struct reader *reader, bool first)
{
    uint64_t head;
    if (!read_uint(reader, &head))
        return -1;
    if (head == 0)
        return 0;
    uint64_t n = head >> 2;
    struct name name;
    switch (head & 3) {
    case KEY_LATIN1:
    case KEY_UTF16:
        name = (struct name){.count = (size_t)n, .wide = (head & 3) == KEY_UTF16};
        name.bytes = n > SIZE_MAX / 2 ? NULL : take(reader, name.wide ? 2 * n : n);
        if (!name.bytes)
            return -1;
        CN_GROW(reader->names, reader->name_count, reader->name_room);
        reader->names[reader->name_count++] = name;
        break;
    case KEY_REFERENCE:
        if (n >= reader->name_count)
            return -1;
        name = reader->names[n];
        break;
    default:
        return -1;
    }
    if (!first)
        cn_buf_append_byte(reader->out, ',');
    if (name.wide)
        append_utf16(reader->out, name.bytes, name.count);
    else
        append_latin1(reader->out, name.bytes, name.count);
    cn_buf_append_byte(reader->out, ':');
    return 1;
}

/* Names and values up to the 0; without the closing brace. */
static bool read_members(struct reader *reader, bool first)
{
    int rc;
    while ((rc = read_name(reader, first)) == 1) {
        first = false;
        if (!read_value(reader))
            return false;
    }
    return rc == 0;
}

static bool read_object(struct reader *reader)
{
    cn_buf_append_byte(reader->out, '{');
    if (!read_members(reader, true))
        return false;
    cn_buf_append_byte(reader->out, '}');
    return true;
}

static bool read_values(struct reader *reader, uint64_t count)
{
    cn_buf_append_byte(reader->out, '[');
    for (uint64_t i = 0; i < count; i++) {
        if (i > 0)
            cn_buf_append_byte(reader->out, ',');
        if (!read_value(reader))
            return false;
    }
    cn_buf_append_byte(reader->out, ']');
    return true;
}

static bool read_array(struct reader *reader)
{
    uint64_t count;
    return read_uint(reader, &count) && read_values(reader, count);
}

/* With holes or named properties: shown by its names. */
static bool read_sparse(struct reader *reader)
{
    uint64_t length;
    if (!read_uint(reader, &length))
        return false;
    cn_buf_printf(reader->out, "{\"$array\":{\"length\":%" PRIu64, length);
    if (!read_members(reader, false))
        return false;
    cn_buf_append_str(reader->out, "}}");
    return true;
}

static bool read_map(struct reader *reader)
{
    uint64_t count;
    if (!read_uint(reader, &count))
        return false;
    cn_buf_append_str(reader->out, "{\"$map\":[");
    for (uint64_t i = 0; i < count; i++) {
        if (i > 0)
            cn_buf_append_byte(reader->out, ',');
        if (!read_values(reader, 2))
            return false;
    }
    cn_buf_append_str(reader->out, "]}");
    return true;
}

static bool read_wrapped(struct reader *reader, const char *name, bool (*inner)(struct reader *))
{
    cn_buf_printf(reader->out, "{\"%s\":", name);
    if (!inner(reader))
        return false;
    cn_buf_append_byte(reader->out, '}');
    return true;
}

static bool read_two(struct reader *reader)
{
    return read_values(reader, 2);
}

static bool read_three(struct reader *reader)
{
    return read_values(reader, 3);
}

static bool read_view(struct reader *reader)
{
    uint64_t number;
    const uint8_t *type = take(reader, 1);
    if (!type)
        return false;
    cn_buf_append_str(reader->out, "{\"$view\":");
    if (!read_value(reader) || !read_uint(reader, &number))
        return false;
    cn_buf_printf(reader->out, ",\"offset\":%" PRIu64, number);
    if (!(*type & VIEW_TRACKS_LENGTH)) {
        if (!read_uint(reader, &number))
            return false;
        cn_buf_printf(reader->out, ",\"length\":%" PRIu64, number);
    }
    cn_buf_append_byte(reader->out, '}');
    return true;
}

static bool read_error(struct reader *reader)
{
    static const char *const types[] = {"Error",       "EvalError", "RangeError", "ReferenceError",
                                        "SyntaxError", "TypeError", "URIError",   "AggregateError"};
    const uint8_t *head = take(reader, 2);
    if (!head || head[0] >= CN_ARRAY_COUNT(types))
        return false;
    cn_buf_printf(reader->out, "{\"$error\":{\"type\":\"%s\"", types[head[0]]);
    if (head[1] & 1) {
        cn_buf_append_str(reader->out, ",\"message\":");
        if (!read_value(reader))
            return false;
    }
    if (head[1] & 2) {
        cn_buf_append_str(reader->out, ",\"stack\":");
        if (!read_value(reader))
            return false;
    }
    if (!read_members(reader, false))
        return false;
    cn_buf_append_str(reader->out, "}}");
    return true;
}

static bool read_small_int(struct reader *reader)
{
    uint64_t zigzag;
    if (!read_uint(reader, &zigzag))
        return false;
    cn_buf_printf(reader->out, "%" PRId64, (int64_t)(zigzag >> 1) ^ -(int64_t)(zigzag & 1));
    return true;
}

static bool read_ref(struct reader *reader)
{
    uint64_t number;
    if (!read_uint(reader, &number))
        return false;
    cn_buf_printf(reader->out, "{\"$ref\":%" PRIu64 "}", number);
    return true;
}

static bool read_tagged(struct reader *reader, uint8_t tag)
{
    switch (tag) {
    case TAG_UNDEFINED:
        return cn_buf_append_str(reader->out, "{\"$undefined\":true}"), true;
    case TAG_NULL:
        return cn_buf_append_str(reader->out, "null"), true;
    case TAG_FALSE:
    case TAG_TRUE:
        return cn_buf_append_str(reader->out, tag == TAG_FALSE ? "false" : "true"), true;
    case TAG_INT:
        return read_small_int(reader);
    case TAG_DOUBLE:
        return read_number(reader);
    case TAG_BIGINT:
    case TAG_BIGINT_NEGATIVE:
        return read_bigint(reader, tag == TAG_BIGINT_NEGATIVE);
    case TAG_LATIN1:
    case TAG_UTF16:
        return read_text(reader, tag == TAG_UTF16);
    case TAG_REFERENCE:
        return read_ref(reader);
    case TAG_HOLE:
        return cn_buf_append_str(reader->out, "null"), true;
    case TAG_OBJECT:
        return read_object(reader);
    case TAG_ARRAY:
        return read_array(reader);
    case TAG_ARRAY_WITH_KEYS:
        return read_sparse(reader);
    case TAG_DATE:
        return read_wrapped(reader, "$date", read_number);
    case TAG_REGEXP:
        return read_wrapped(reader, "$regexp", read_two);
    case TAG_MAP:
        return read_map(reader);
    case TAG_SET:
        return read_wrapped(reader, "$set", read_array);
    case TAG_BOXED:
        return read_wrapped(reader, "$boxed", read_value);
    case TAG_BUFFER:
        return read_buffer(reader, false);
    case TAG_BUFFER_RESIZABLE:
        return read_buffer(reader, true);
    case TAG_VIEW:
        return read_view(reader);
    case TAG_VIEW_WHOLE:
        return take(reader, 1) && read_buffer(reader, false);
    case TAG_ERROR:
        return read_error(reader);
    case TAG_DOM_EXCEPTION:
        return read_wrapped(reader, "$domexception", read_three);
    default:
        return false;
    }
}

static bool read_value(struct reader *reader)
{
    const uint8_t *tag = take(reader, 1);
    if (!tag || ++reader->depth > DEPTH_MAX)
        return false;
    bool well;
    if (*tag >= TAG_SMALL_INT) {
        cn_buf_printf(reader->out, "%d", *tag - TAG_SMALL_INT + SMALL_INT_MIN);
        well = true;
    } else if (*tag >= TAG_SHORT_STRING && *tag <= TAG_SHORT_STRING + SHORT_STRING_MAX) {
        const uint8_t *bytes = take(reader, (size_t)(*tag - TAG_SHORT_STRING));
        well = bytes != NULL;
        if (well)
            append_latin1(reader->out, bytes, (size_t)(*tag - TAG_SHORT_STRING));
    } else {
        well = read_tagged(reader, *tag);
    }
    reader->depth--;
    return well;
}

void cn_clone_append_json(struct cn_buf *out, const void *bytes, size_t size)
{
    struct reader reader = {.at = bytes, .end = (const uint8_t *)bytes + size, .out = out};
    size_t start = out->size;
    const uint8_t *version = take(&reader, 1);
    bool well =
        version && *version == FORMAT_VERSION && read_value(&reader) && reader.at == reader.end;
    cn_free(reader.names);
    if (well)
        return;
    out->size = start;
    cn_buf_append_str(out, "{\"$raw\":\"");
    cn_base64_encode(out, bytes, size);
    cn_buf_append_str(out, "\"}");
}
