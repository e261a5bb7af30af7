/* SPDX-License-Identifier: Apache-2.0 */
#include "base/wire.h"

#include <string.h>

#include "base/assert.h"
#include "base/err.h"
#include "base/mem.h"

enum { IS_BYTES = 1, IS_MUST = 2, KEY_BITS = 2, VARINT_SIZE_MAX = 10 };

/* --- numbers --------------------------------------------------------------------------------- */

void cn_wire_put_varint(struct cn_buf *out, uint64_t value)
{
    uint8_t bytes[VARINT_SIZE_MAX];
    size_t size = 0;
    for (; value >= 0x80; value >>= 7)
        bytes[size++] = (uint8_t)(value | 0x80);
    bytes[size++] = (uint8_t)value;
    cn_buf_append(out, bytes, size);
}

/* W5: the last group of a number of several is not zero. */
bool cn_wire_get_varint(const uint8_t **at, const uint8_t *end, uint64_t *value)
{
    uint64_t result = 0;
    for (unsigned i = 0; i < VARINT_SIZE_MAX && *at + i < end; i++) {
        uint8_t byte = (*at)[i];
        if (i == VARINT_SIZE_MAX - 1 && byte > 1)
            return false;
        result |= (uint64_t)(byte & 0x7f) << (7 * i);
        if (byte & 0x80)
            continue;
        if (i && !byte)
            return false;
        *at += i + 1;
        *value = result;
        return true;
    }
    return false;
}

static uint64_t fold(int64_t value)
{
    return ((uint64_t)value << 1) ^ (uint64_t)(value >> 63);
}

static int64_t unfold(uint64_t value)
{
    return (int64_t)(value >> 1) ^ -(int64_t)(value & 1);
}

static uint64_t load(const uint8_t *at, size_t width)
{
    uint8_t u8;
    uint16_t u16;
    uint32_t u32;
    uint64_t u64;
    switch (width) {
    case 1:
        memcpy(&u8, at, 1);
        return u8;
    case 2:
        memcpy(&u16, at, 2);
        return u16;
    case 4:
        memcpy(&u32, at, 4);
        return u32;
    default:
        CN_ASSERT(width == 8);
        memcpy(&u64, at, 8);
        return u64;
    }
}

static void keep(uint8_t *at, size_t width, uint64_t value)
{
    uint8_t u8 = (uint8_t)value;
    uint16_t u16 = (uint16_t)value;
    uint32_t u32 = (uint32_t)value;
    if (width == 1)
        memcpy(at, &u8, 1);
    else if (width == 2)
        memcpy(at, &u16, 2);
    else if (width == 4)
        memcpy(at, &u32, 4);
    else
        memcpy(at, &value, 8);
}

static int64_t load_signed(const uint8_t *at, size_t width)
{
    uint64_t value = load(at, width);
    return width == 4 ? (int32_t)(uint32_t)value : (int64_t)value;
}

/* --- fields ---------------------------------------------------------------------------------- */

static void *pointer_at(const uint8_t *at)
{
    void *pointer;
    memcpy(&pointer, at, sizeof(pointer));
    return pointer;
}

static void set_pointer(uint8_t *at, void *pointer)
{
    memcpy(at, &pointer, sizeof(pointer));
}

static size_t size_at(const uint8_t *of, const struct cn_wire_field *field)
{
    size_t size;
    memcpy(&size, of + field->offset_size, sizeof(size));
    return size;
}

static void set_size(uint8_t *of, const struct cn_wire_field *field, size_t size)
{
    memcpy(of + field->offset_size, &size, sizeof(size));
}

static bool is_zero(const uint8_t *at, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (at[i])
            return false;
    return true;
}

static bool is_number(const struct cn_wire_field *field)
{
    return field->type <= CN_WIRE_TYPE_INT;
}

static void put_key(const struct cn_wire_field *field, struct cn_buf *out)
{
    unsigned bits = (is_number(field) ? 0 : IS_BYTES) | (field->must ? IS_MUST : 0);
    cn_wire_put_varint(out, (uint64_t)field->number << KEY_BITS | bits);
}

static void put_run(const struct cn_wire_field *field, const void *bytes, size_t size,
                    struct cn_buf *out)
{
    put_key(field, out);
    cn_wire_put_varint(out, size);
    cn_buf_append(out, bytes, size);
}

static void put_list(const struct cn_wire_field *field, const uint8_t *from, struct cn_buf *out)
{
    const uint8_t *items = pointer_at(from + field->offset);
    size_t count = size_at(from, field);
    struct cn_buf list = {0}, item = {0};
    if (!items)
        return;
    cn_wire_put_varint(&list, count);
    for (size_t i = 0; i < count; i++) {
        cn_buf_clear(&item);
        cn_wire_put(field->fields, items + i * field->width, &item);
        cn_wire_put_varint(&list, item.size);
        cn_buf_append(&list, item.data, item.size);
    }
    put_run(field, list.data, list.size, out);
    cn_buf_fini(&list);
    cn_buf_fini(&item);
}

static void put_nested(const struct cn_wire_field *field, const uint8_t *at, struct cn_buf *out)
{
    struct cn_buf nested = {0};
    bool written = true;
    if (field->type == CN_WIRE_TYPE_OWN)
        written = field->own->put(at, &nested);
    else
        cn_wire_put(field->fields, at, &nested);
    if (written && (nested.size || field->type == CN_WIRE_TYPE_OWN))
        put_run(field, nested.data, nested.size, out);
    cn_buf_fini(&nested);
}

static void put_field(const struct cn_wire_field *field, const uint8_t *from, struct cn_buf *out)
{
    const uint8_t *at = from + field->offset;
    const struct cn_buf *buf;
    const char *text;
    switch ((enum cn_wire_type)field->type) {
    case CN_WIRE_TYPE_BOOL:
    case CN_WIRE_TYPE_UINT:
    case CN_WIRE_TYPE_INT:
        if (is_zero(at, field->width))
            return;
        put_key(field, out);
        cn_wire_put_varint(out, field->type == CN_WIRE_TYPE_INT
                                    ? fold(load_signed(at, field->width))
                                    : load(at, field->width));
        return;
    case CN_WIRE_TYPE_TEXT:
        text = pointer_at(at);
        if (text)
            put_run(field, text, strlen(text), out);
        return;
    case CN_WIRE_TYPE_BYTES:
        if (pointer_at(at))
            put_run(field, pointer_at(at), size_at(from, field), out);
        return;
    case CN_WIRE_TYPE_BUF:
        buf = (const struct cn_buf *)(const void *)at;
        if (buf->data)
            put_run(field, buf->data, buf->size, out);
        return;
    case CN_WIRE_TYPE_FIXED:
        if (!is_zero(at, field->width))
            put_run(field, at, field->width, out);
        return;
    case CN_WIRE_TYPE_LIST:
        put_list(field, from, out);
        return;
    case CN_WIRE_TYPE_GROUP:
    case CN_WIRE_TYPE_OWN:
        put_nested(field, at, out);
        return;
    case CN_WIRE_NONE:
        break;
    }
    CN_UNREACHABLE();
}

void cn_wire_put(const struct cn_wire_field *fields, const void *from, struct cn_buf *out)
{
    for (; fields->type != CN_WIRE_NONE; fields++)
        put_field(fields, from, out);
}

/* --- clearing -------------------------------------------------------------------------------- */

static void clear_field(const struct cn_wire_field *field, uint8_t *of)
{
    uint8_t *at = of + field->offset;
    uint8_t *items;
    switch ((enum cn_wire_type)field->type) {
    case CN_WIRE_TYPE_BOOL:
    case CN_WIRE_TYPE_UINT:
    case CN_WIRE_TYPE_INT:
    case CN_WIRE_TYPE_FIXED:
        break;
    case CN_WIRE_TYPE_TEXT:
        cn_free(pointer_at(at));
        break;
    case CN_WIRE_TYPE_BYTES:
        cn_free(pointer_at(at));
        set_size(of, field, 0);
        break;
    case CN_WIRE_TYPE_BUF:
        cn_buf_fini((struct cn_buf *)(void *)at);
        break;
    case CN_WIRE_TYPE_GROUP:
        cn_wire_clear(field->fields, at);
        return; /* the rest of the struct is not ours */
    case CN_WIRE_TYPE_LIST:
        items = pointer_at(at);
        for (size_t i = 0; items && i < size_at(of, field); i++)
            cn_wire_clear(field->fields, items + i * field->width);
        cn_free(items);
        set_size(of, field, 0);
        set_pointer(at, NULL);
        return;
    case CN_WIRE_TYPE_OWN:
        if (field->own->clear)
            field->own->clear(at);
        break;
    case CN_WIRE_NONE:
        CN_UNREACHABLE();
    }
    memset(at, 0, field->width);
}

void cn_wire_clear(const struct cn_wire_field *fields, void *of)
{
    for (; fields->type != CN_WIRE_NONE; fields++)
        clear_field(fields, of);
}

/* --- reading --------------------------------------------------------------------------------- */

static int get_number(const struct cn_wire_field *field, uint8_t *at, uint64_t value)
{
    if (field->type == CN_WIRE_TYPE_INT) {
        int64_t number = unfold(value);
        if (!number || (field->width == 4 && number != (int32_t)number))
            return CN_EPROTOCOL;
        keep(at, field->width, (uint64_t)number);
        return 0;
    }
    if (!value || value > field->max || (field->width < 8 && value >> (8 * field->width)))
        return CN_EPROTOCOL;
    keep(at, field->width, value);
    return 0;
}

/* Bytes of a peer, with a NUL behind them. */
static uint8_t *copy_run(const uint8_t *bytes, size_t size)
{
    uint8_t *copy = cn_try_alloc(size + 1);
    if (!copy)
        return NULL;
    memcpy(copy, bytes, size);
    copy[size] = 0;
    return copy;
}

static int get_list(const struct cn_wire_field *field, uint8_t *to, const uint8_t *at, size_t size,
                    void *data)
{
    const uint8_t *end = at + size;
    uint64_t count, item_size;
    if (!cn_wire_get_varint(&at, end, &count) || count > field->max || count > (uint64_t)(end - at))
        return CN_EPROTOCOL;
    uint8_t *items = cn_try_alloc(count * field->width + 1);
    if (!items)
        return CN_ENOMEM;
    memset(items, 0, count * field->width);
    set_pointer(to + field->offset, items);
    set_size(to, field, count); /* W4 */
    for (uint64_t i = 0; i < count; i++) {
        if (!cn_wire_get_varint(&at, end, &item_size) || item_size > (uint64_t)(end - at))
            return CN_EPROTOCOL;
        int rc = cn_wire_get(field->fields, items + i * field->width, at, item_size, data);
        if (rc < 0)
            return rc;
        at += item_size;
    }
    return at == end ? 0 : CN_EPROTOCOL;
}

static int get_run(const struct cn_wire_field *field, uint8_t *to, const uint8_t *bytes,
                   size_t size, void *data)
{
    uint8_t *at = to + field->offset;
    struct cn_buf *buf = (struct cn_buf *)(void *)at;
    switch ((enum cn_wire_type)field->type) {
    case CN_WIRE_TYPE_TEXT:
    case CN_WIRE_TYPE_BYTES:
    case CN_WIRE_TYPE_BUF:
        if (size > field->max || (field->type == CN_WIRE_TYPE_TEXT && memchr(bytes, 0, size)))
            return CN_EPROTOCOL;
        uint8_t *copy = copy_run(bytes, size);
        if (!copy)
            return CN_ENOMEM;
        if (field->type == CN_WIRE_TYPE_BUF)
            *buf = (struct cn_buf){copy, size, size + 1};
        else
            set_pointer(at, copy);
        if (field->type == CN_WIRE_TYPE_BYTES)
            set_size(to, field, size);
        return 0;
    case CN_WIRE_TYPE_FIXED:
        if (size != field->width || is_zero(bytes, size))
            return CN_EPROTOCOL;
        memcpy(at, bytes, size);
        return 0;
    case CN_WIRE_TYPE_GROUP:
        return size ? cn_wire_get(field->fields, at, bytes, size, data) : CN_EPROTOCOL;
    case CN_WIRE_TYPE_LIST:
        return get_list(field, to, bytes, size, data);
    case CN_WIRE_TYPE_OWN:
        return field->own->get(at, bytes, size, data) ? 0 : CN_EPROTOCOL;
    default:
        return CN_EPROTOCOL;
    }
}

int cn_wire_get(const struct cn_wire_field *fields, void *to, const uint8_t *bytes, size_t size,
                void *data)
{
    const uint8_t *at = bytes,
                  *end = size ? bytes + size : bytes; /* of nothing, bytes may be NULL */
    uint64_t last = 0, key, value;
    cn_wire_clear(fields, to);
    while (at < end) {
        if (!cn_wire_get_varint(&at, end, &key) || !cn_wire_get_varint(&at, end, &value))
            return CN_EPROTOCOL;
        uint64_t number = key >> KEY_BITS;
        bool is_bytes = key & IS_BYTES;
        if (number <= last || (is_bytes && value > (uint64_t)(end - at)))
            return CN_EPROTOCOL;
        last = number;
        while (fields->type != CN_WIRE_NONE && fields->number < number)
            fields++;
        const uint8_t *run = at;
        if (is_bytes)
            at += value;
        if (fields->type == CN_WIRE_NONE || fields->number != number) {
            if (key & IS_MUST)
                return CN_EVERSION; /* W2 */
            continue;
        }
        if (is_bytes == is_number(fields))
            return CN_EPROTOCOL;
        int rc = is_bytes ? get_run(fields, to, run, value, data)
                          : get_number(fields, (uint8_t *)to + fields->offset, value);
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* --- heads ------------------------------------------------------------------------------------ */

enum { HEAD_SIZE_BYTES = 4 };

void cn_wire_put_head(const struct cn_wire_field *fields, const void *from, struct cn_buf *out)
{
    static const uint8_t room[HEAD_SIZE_BYTES];
    size_t at = out->size;
    cn_buf_append(out, room, HEAD_SIZE_BYTES);
    cn_wire_put(fields, from, out);
    for (unsigned i = 0; i < HEAD_SIZE_BYTES; i++)
        out->data[at + i] = (uint8_t)((out->size - at - HEAD_SIZE_BYTES) >> (8 * i));
}

int cn_wire_get_head(const struct cn_wire_field *fields, void *to, const uint8_t *bytes,
                     size_t size, const uint8_t **rest, size_t *rest_size)
{
    size_t head = 0;
    cn_wire_clear(fields, to);
    if (size < HEAD_SIZE_BYTES)
        return CN_EPROTOCOL;
    for (unsigned i = 0; i < HEAD_SIZE_BYTES; i++)
        head |= (size_t)bytes[i] << (8 * i);
    if (head > size - HEAD_SIZE_BYTES)
        return CN_EPROTOCOL;
    *rest = bytes + HEAD_SIZE_BYTES + head;
    *rest_size = size - HEAD_SIZE_BYTES - head;
    return cn_wire_get(fields, to, bytes + HEAD_SIZE_BYTES, head, NULL);
}
