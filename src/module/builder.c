/* SPDX-License-Identifier: Apache-2.0 */
/* module/builder.c - structured values as calls build them: bytes are written at once.
 *
 * An array says how many elements it has before they come, so room for that number is left, of
 * COUNT_SIZE bytes whatever it is, and filled in at its end. Names are written anew each time. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "module/value.h"
#include "text/clone.h"
#include "text/utf16.h"

#define COUNT_SIZE 4
#define COUNT_MAX ((1u << (7 * COUNT_SIZE)) - 1)

enum frame_kind { FRAME_ARRAY, FRAME_OBJECT, FRAME_MAP };

struct cn_builder_frame {
    enum frame_kind kind;
    bool named;     /* of an object: the name of the next value is there */
    uint32_t count; /* of values, and of a map's keys */
    size_t at;      /* where the count goes */
};

void cn_builder_init(cairn_builder *builder, size_t limit)
{
    *builder = (cairn_builder){.limit = limit};
}

void cn_builder_clear(cairn_builder *builder)
{
    cn_buf_clear(&builder->bytes);
    builder->depth = 0;
    builder->mistake = NULL;
    cn_lent_list_fini(&builder->given);
}

void cn_builder_fini(cairn_builder *builder)
{
    cn_buf_fini(&builder->bytes);
    cn_free(builder->frames);
    builder->frames = NULL;
    builder->room = 0;
    cn_builder_clear(builder);
}

bool cn_builder_is_empty(const cairn_builder *builder)
{
    return !builder->bytes.size && !builder->mistake;
}

static void mistake(cairn_builder *builder, const char *text)
{
    if (!builder->mistake)
        builder->mistake = text;
}

void cn_build_mistake(cairn_builder *builder, const char *text)
{
    mistake(builder, text);
}

static void byte(cairn_builder *builder, unsigned value)
{
    cn_buf_append_byte(&builder->bytes, (uint8_t)value);
}

static void varint(cairn_builder *builder, uint64_t value)
{
    for (; value > 0x7f; value >>= 7)
        byte(builder, (value & 0x7f) | 0x80);
    byte(builder, (unsigned)value);
}

static void raw_double(cairn_builder *builder, double value)
{
    cn_buf_append(&builder->bytes, &value, sizeof(value));
}

/* Whether a value of about `size` bytes may come now; counts it. */
static bool admit(cairn_builder *builder, size_t size)
{
    if (builder->mistake)
        return false;
    if (size > builder->limit || builder->bytes.size > builder->limit - size) {
        mistake(builder, "the value is too large");
        return false;
    }
    if (!builder->depth) {
        if (builder->bytes.size) {
            mistake(builder, "a second value was built where one goes");
            return false;
        }
        byte(builder, FORMAT_VERSION);
        return true;
    }
    struct cn_builder_frame *frame = &builder->frames[builder->depth - 1];
    if (frame->kind == FRAME_OBJECT && !frame->named) {
        mistake(builder, "a value of an object has no name");
        return false;
    }
    frame->named = false;
    if (frame->count == COUNT_MAX) {
        mistake(builder, "the value is too large");
        return false;
    }
    frame->count++;
    return true;
}

static void plain(cairn_builder *builder, unsigned tag)
{
    if (admit(builder, 1))
        byte(builder, tag);
}

void cn_build_undefined(cairn_builder *builder)
{
    plain(builder, TAG_UNDEFINED);
}

void cn_build_null(cairn_builder *builder)
{
    plain(builder, TAG_NULL);
}

void cn_build_bool(cairn_builder *builder, int value)
{
    plain(builder, value ? TAG_TRUE : TAG_FALSE);
}

void cn_build_int(cairn_builder *builder, int64_t value)
{
    if (value > 9007199254740991 || value < -9007199254740991) {
        mistake(builder, "an integer beyond 2^53 - 1 is no number of JavaScript");
        return;
    }
    if (!admit(builder, 9))
        return;
    if (value >= SMALL_INT_MIN && value <= SMALL_INT_MAX) {
        byte(builder, (unsigned)(TAG_SMALL_INT + value - SMALL_INT_MIN));
    } else if (value >= INT32_MIN && value <= INT32_MAX) {
        byte(builder, TAG_INT);
        varint(builder, (uint32_t)value << 1 ^ (value < 0 ? UINT32_MAX : 0));
    } else {
        byte(builder, TAG_DOUBLE);
        raw_double(builder, (double)value);
    }
}

void cn_build_number(cairn_builder *builder, double value)
{
    if (value == trunc(value) && fabs(value) <= INT32_MAX && !(value == 0 && signbit(value))) {
        cn_build_int(builder, (int64_t)value);
    } else if (admit(builder, 9)) {
        byte(builder, TAG_DOUBLE);
        raw_double(builder, value);
    }
}

static void magnitude(cairn_builder *builder, bool negative, const uint8_t *bytes, size_t size)
{
    while (size && !bytes[size - 1])
        size--;
    if (!admit(builder, size + 10))
        return;
    byte(builder, negative && size ? TAG_BIGINT_NEGATIVE : TAG_BIGINT);
    varint(builder, size);
    cn_buf_append(&builder->bytes, bytes, size);
}

void cn_build_bigint(cairn_builder *builder, int64_t value)
{
    uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    uint8_t bytes[8];
    for (size_t i = 0; i < sizeof(bytes); i++, rest >>= 8)
        bytes[i] = (uint8_t)rest;
    magnitude(builder, value < 0, bytes, sizeof(bytes));
}

/* UTF-8 as UTF-16; `shift` and `mark` are for the names of properties. */
static void wide(cairn_builder *builder, const char *text, size_t size, unsigned shift,
                 unsigned mark)
{
    uint16_t *units = cn_alloc(2 * size + 1);
    size_t count = cn_utf16_from_utf8(text, size, units);
    varint(builder, (uint64_t)count << shift | mark);
    cn_buf_append(&builder->bytes, units, 2 * count);
    cn_free(units);
}

static void text_value(cairn_builder *builder, const char *text, size_t size)
{
    if (cn_utf16_ascii_prefix(text, size) != size) {
        byte(builder, TAG_UTF16);
        wide(builder, text, size, 0, 0);
        return;
    }
    if (size <= SHORT_STRING_MAX) {
        byte(builder, TAG_SHORT_STRING + (unsigned)size);
    } else {
        byte(builder, TAG_LATIN1);
        varint(builder, size);
    }
    cn_buf_append(&builder->bytes, text, size);
}

void cn_build_text(cairn_builder *builder, const char *text, size_t size)
{
    if (admit(builder, size))
        text_value(builder, text, size);
}

void cn_build_bytes(cairn_builder *builder, const void *bytes, size_t size)
{
    if (!admit(builder, size))
        return;
    byte(builder, TAG_VIEW_WHOLE);
    byte(builder, VIEW_UINT8);
    varint(builder, size);
    cn_buf_append(&builder->bytes, bytes, size);
}

void cn_build_date(cairn_builder *builder, double time)
{
    if (admit(builder, 9)) {
        byte(builder, TAG_DATE);
        raw_double(builder, time);
    }
}

static void open_frame(cairn_builder *builder, enum frame_kind kind, unsigned tag)
{
    if (builder->depth == CN_VALUE_DEPTH_MAX) {
        mistake(builder, "the value is nested too deeply");
        return;
    }
    if (!admit(builder, 8))
        return;
    byte(builder, tag);
    CN_GROW(builder->frames, builder->depth, builder->room);
    builder->frames[builder->depth++] =
        (struct cn_builder_frame){.kind = kind, .at = builder->bytes.size};
    if (kind != FRAME_OBJECT)
        cn_buf_append(&builder->bytes, "\0\0\0\0", COUNT_SIZE);
}

void cn_build_array(cairn_builder *builder)
{
    open_frame(builder, FRAME_ARRAY, TAG_ARRAY);
}

void cn_build_object(cairn_builder *builder)
{
    open_frame(builder, FRAME_OBJECT, TAG_OBJECT);
}

void cn_build_map(cairn_builder *builder)
{
    open_frame(builder, FRAME_MAP, TAG_MAP);
}

static void property_name(cairn_builder *builder, const char *name, size_t size)
{
    if (cn_utf16_ascii_prefix(name, size) == size) {
        varint(builder, (uint64_t)size << 2 | KEY_LATIN1);
        cn_buf_append(&builder->bytes, name, size);
    } else {
        wide(builder, name, size, 2, KEY_UTF16);
    }
}

static void name_of_size(cairn_builder *builder, const char *name, size_t size)
{
    struct cn_builder_frame *frame = builder->depth ? &builder->frames[builder->depth - 1] : NULL;
    if (builder->mistake)
        return;
    if (!frame || frame->kind != FRAME_OBJECT || frame->named) {
        mistake(builder, "a name was built where none goes");
        return;
    }
    if (size > builder->limit || builder->bytes.size > builder->limit - size) {
        mistake(builder, "the value is too large");
        return;
    }
    frame->named = true;
    property_name(builder, name, size);
}

void cn_build_name(cairn_builder *builder, const char *name)
{
    name_of_size(builder, name, strlen(name));
}

static void fill_in(cairn_builder *builder, size_t at, uint32_t count)
{
    for (unsigned i = 0; i < COUNT_SIZE; i++, count >>= 7)
        builder->bytes.data[at + i] = (uint8_t)((count & 0x7f) | (i + 1 < COUNT_SIZE ? 0x80 : 0));
}

void cn_build_end(cairn_builder *builder)
{
    if (builder->mistake)
        return;
    if (!builder->depth) {
        mistake(builder, "an end was built where nothing is open");
        return;
    }
    struct cn_builder_frame *frame = &builder->frames[--builder->depth];
    if (frame->named)
        mistake(builder, "a name in an object has no value");
    else if (frame->kind == FRAME_MAP && frame->count % 2)
        mistake(builder, "a key of a map has no value");
    else if (frame->kind == FRAME_OBJECT)
        byte(builder, KEY_END);
    else
        fill_in(builder, frame->at, frame->kind == FRAME_MAP ? frame->count / 2 : frame->count);
}

static void copy_pairs(cairn_builder *builder, const cairn_value *value, bool named)
{
    for (size_t i = 0; i < cn_value_count(value) && !builder->mistake; i++) {
        size_t size;
        const char *name = named ? cn_value_text(cn_value_key(value, i), &size) : NULL;
        if (name)
            name_of_size(builder, name, size);
        else
            cn_build_value(builder, cn_value_key(value, i));
        cn_build_value(builder, cn_value_at(value, i));
    }
    cn_build_end(builder);
}

void cn_build_value(cairn_builder *builder, const cairn_value *value)
{
    size_t size;
    double number;
    int64_t integer;
    switch (cn_value_kind(value)) {
    case CAIRN_UNDEFINED:
        cn_build_undefined(builder);
        return;
    case CAIRN_NULL:
        cn_build_null(builder);
        return;
    case CAIRN_BOOL:
        cn_build_bool(builder, cn_value_bool(value));
        return;
    case CAIRN_NUMBER:
        (void)cn_value_number(value, &number);
        cn_build_number(builder, number);
        return;
    case CAIRN_DATE:
        (void)cn_value_number(value, &number);
        cn_build_date(builder, number);
        return;
    case CAIRN_BIGINT:
        if (cn_value_int(value, &integer) == 0)
            cn_build_bigint(builder, integer);
        else
            mistake(builder, "a BigInt of more than 64 bits cannot be copied");
        return;
    case CAIRN_TEXT: {
        const char *text = cn_value_text(value, &size);
        cn_build_text(builder, text, size);
        return;
    }
    case CAIRN_BYTES: {
        const void *bytes = cn_value_bytes(value, &size);
        cn_build_bytes(builder, bytes, size);
        return;
    }
    case CAIRN_ARRAY:
        cn_build_array(builder);
        for (size_t i = 0; i < cn_value_count(value) && !builder->mistake; i++)
            cn_build_value(builder, cn_value_at(value, i));
        cn_build_end(builder);
        return;
    case CAIRN_OBJECT:
        cn_build_object(builder);
        copy_pairs(builder, value, true);
        return;
    case CAIRN_MAP:
        cn_build_map(builder);
        copy_pairs(builder, value, false);
        return;
    default:
        mistake(builder, "a value of this kind cannot be copied");
    }
}

/* The tag in front of the value that is built next. */
static bool host(cairn_builder *builder, unsigned tag)
{
    if (builder->depth == CN_VALUE_DEPTH_MAX)
        mistake(builder, "the value is nested too deeply");
    if (!admit(builder, 200))
        return false;
    byte(builder, tag);
    return true;
}

static void field(cairn_builder *builder, const char *name, const char *text)
{
    property_name(builder, name, strlen(name));
    text_value(builder, text, strlen(text));
}

static void number_field(cairn_builder *builder, const char *name, double number)
{
    property_name(builder, name, strlen(name));
    byte(builder, TAG_DOUBLE);
    raw_double(builder, number);
}

void cn_build_reference(cairn_builder *builder, unsigned tag, const char *address, double number)
{
    if (!host(builder, tag))
        return;
    byte(builder, TAG_OBJECT);
    field(builder, "address", address);
    number_field(builder, "number", number);
    varint(builder, KEY_END);
    builder->given.wanted = true;
    cn_lent_list_add(&builder->given, cn_strdup(address), number);
}

void cn_build_object_stub(cairn_builder *builder, uint32_t ns, const char *hex, const char *name)
{
    if (!host(builder, TAG_HOST_OBJECT))
        return;
    byte(builder, TAG_OBJECT);
    number_field(builder, "ns", ns);
    field(builder, "hex", hex);
    if (name)
        field(builder, "name", name);
    varint(builder, KEY_END);
}

void cn_build_error(cairn_builder *builder, const char *type, const char *message, const char *id)
{
    static const char *const types[] = {"Error",       "EvalError", "RangeError", "ReferenceError",
                                        "SyntaxError", "TypeError", "URIError"};
    size_t which = 0, size = strlen(message);
    for (size_t i = 0; type && i < CN_ARRAY_COUNT(types); i++) {
        if (strcmp(types[i], type) == 0)
            which = i;
    }
    if (!admit(builder, size + 200))
        return;
    byte(builder, TAG_ERROR);
    byte(builder, (unsigned)which);
    byte(builder, ERROR_HAS_MESSAGE);
    text_value(builder, message, size);
    if (type && strcmp(types[which], type) != 0 && strlen(type) < 100) {
        property_name(builder, "name", 4);
        text_value(builder, type, strlen(type));
    }
    if (id) {
        property_name(builder, "durableObjectId", strlen("durableObjectId"));
        text_value(builder, id, strlen(id));
    }
    byte(builder, KEY_END);
}

int cn_builder_finish(cairn_builder *builder, struct cn_err *err)
{
    if (cn_builder_is_empty(builder))
        cn_build_undefined(builder);
    if (builder->depth)
        mistake(builder, "an array, object or map was not ended");
    if (builder->bytes.size > builder->limit)
        mistake(builder, "the value is too large");
    if (builder->mistake) {
        const char *text = builder->mistake;
        cn_builder_clear(builder);
        return cn_err_set(err, CN_EINVALID, "a value was not built right: %s", text);
    }
    return 0;
}

uint8_t *cn_builder_take(cairn_builder *builder, size_t *size, struct cn_err *err)
{
    if (cn_builder_finish(builder, err) < 0)
        return NULL;
    *size = builder->bytes.size;
    uint8_t *bytes = cn_buf_take(&builder->bytes);
    cn_builder_clear(builder);
    return bytes;
}

bool cn_builder_is_array(const uint8_t *bytes, size_t size)
{
    return size > 1 && bytes[1] == TAG_ARRAY;
}
