/* SPDX-License-Identifier: Apache-2.0 */
/* import/v8value.c - V8's tags one by one.
 *
 * Objects are numbered by both sides in the order in which they begin, but for views: V8 numbers
 * the buffer before the view, Cairn the view before its buffer. `numbers` says which of ours each
 * of V8's is.
 *
 * Whether an array has named properties is known at its end only, and then it needs another form.
 * So such arrays are noted (`keyed`, where they begin) and the value is read a second time. */
#include "import/v8value.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "text/clone.h"
#include "text/utf16.h"

#define DEPTH_MAX 2000 /* rule 5 of the format */
#define NAMES_MAX 64   /* names that are referred to; further ones are written anew */
#define UNIT_COUNT_MAX (1u << 30)

/* A text as units of UTF-16, or of Latin-1. */
struct text {
    uint8_t *bytes; /* owned */
    size_t count;
    bool latin1;
};

struct reader {
    const uint8_t *begin, *at, *end;
    struct cn_buf *out;
    struct cn_err *err;
    uint64_t version;
    unsigned depth;
    uint32_t *numbers; /* owned: by V8's numbers */
    size_t number_count, number_room;
    uint32_t object_count; /* ours */
    struct text names[NAMES_MAX];
    size_t name_count;
    uint64_t name_total; /* all that were written out have a number */
    size_t *keyed;       /* owned: where arrays with named properties begin, in order */
    size_t keyed_count, keyed_known;
};

static int read_value(struct reader *reader);

static int damaged(struct reader *reader, const char *what)
{
    return cn_err_set(reader->err, CN_ECORRUPT, "byte %zu of the value: %s",
                      (size_t)(reader->at - reader->begin), what);
}

static int unsupported(struct reader *reader, const char *what)
{
    return cn_err_set(reader->err, CN_EUNSUPPORTED, "byte %zu of the value: %s has no form here",
                      (size_t)(reader->at - reader->begin), what);
}

/* --- bytes in -------------------------------------------------------------------------------- */

static int read_varint(struct reader *reader, uint64_t *value)
{
    uint64_t result = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        if (reader->at == reader->end)
            break;
        uint8_t byte = *reader->at++;
        result |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80)) {
            *value = result;
            return 0;
        }
    }
    return damaged(reader, "a number has no end");
}

/* A number of bytes that are there. */
static int read_size(struct reader *reader, uint64_t *size)
{
    int rc = read_varint(reader, size);
    if (rc == 0 && *size > (uint64_t)(reader->end - reader->at))
        rc = damaged(reader, "a length is beyond the end");
    return rc;
}

static int read_double(struct reader *reader, double *number)
{
    if (reader->end - reader->at < 8)
        return damaged(reader, "a number has no end");
    memcpy(number, reader->at, 8);
    reader->at += 8;
    return 0;
}

/* The next tag, behind padding; 0: none is left. */
static uint8_t peek_tag(struct reader *reader)
{
    while (reader->at < reader->end && *reader->at == 0)
        reader->at++;
    return reader->at < reader->end ? *reader->at : 0;
}

/* --- bytes out ------------------------------------------------------------------------------- */

static void put(struct reader *reader, uint8_t byte)
{
    cn_buf_append_byte(reader->out, byte);
}

static size_t encode_uint(uint64_t value, uint8_t bytes[10])
{
    size_t size = 0;
    for (; value >= 0x80; value >>= 7)
        bytes[size++] = (uint8_t)(value | 0x80);
    bytes[size++] = (uint8_t)value;
    return size;
}

static void put_uint(struct reader *reader, uint64_t value)
{
    uint8_t bytes[10];
    cn_buf_append(reader->out, bytes, encode_uint(value, bytes));
}

/* A number that belongs before what was written from `at` on. */
static void insert_uint(struct reader *reader, size_t at, uint64_t value)
{
    uint8_t bytes[10];
    size_t size = encode_uint(value, bytes), behind = reader->out->size - at;
    cn_buf_append(reader->out, bytes, size);
    memmove(reader->out->data + at + size, reader->out->data + at, behind);
    memcpy(reader->out->data + at, bytes, size);
}

static void put_double(struct reader *reader, double number)
{
    cn_buf_append(reader->out, &number, sizeof(number));
}

static void put_number(struct reader *reader, double number)
{
    if (number != floor(number) || number < INT32_MIN || number > INT32_MAX ||
        (number == 0 && signbit(number))) {
        put(reader, TAG_DOUBLE);
        put_double(reader, number);
        return;
    }
    int64_t value = (int64_t)number;
    if (value >= SMALL_INT_MIN && value <= SMALL_INT_MAX) {
        put(reader, (uint8_t)(TAG_SMALL_INT + value - SMALL_INT_MIN));
    } else {
        put(reader, TAG_INT);
        put_uint(reader, value < 0 ? (uint64_t)-value * 2 - 1 : (uint64_t)value * 2);
    }
}

/* --- objects --------------------------------------------------------------------------------- */

static void name_v8_object(struct reader *reader, uint32_t number)
{
    if (reader->number_count == reader->number_room) {
        reader->number_room = reader->number_room ? reader->number_room * 2 : 16;
        reader->numbers =
            cn_realloc(reader->numbers, reader->number_room * sizeof(*reader->numbers));
    }
    reader->numbers[reader->number_count++] = number;
}

/* The same object is the next of both. */
static void begin_object(struct reader *reader, uint8_t tag)
{
    name_v8_object(reader, reader->object_count++);
    put(reader, tag);
}

/* --- texts ----------------------------------------------------------------------------------- */

static void text_fini(struct text *text)
{
    cn_free(text->bytes);
    *text = (struct text){0};
}

/* Units that all fit a byte become Latin-1. */
static void narrow(struct text *text)
{
    for (size_t i = 0; i < text->count; i++) {
        if (text->bytes[2 * i + 1])
            return;
    }
    for (size_t i = 0; i < text->count; i++)
        text->bytes[i] = text->bytes[2 * i];
    text->latin1 = true;
}

static int read_utf8(struct reader *reader, size_t size, struct text *text)
{
    uint16_t *units = cn_try_alloc((size + 1) * sizeof(*units));
    if (!units)
        return cn_err_set(reader->err, CN_ENOMEM, "no memory for a text of the value");
    *text = (struct text){.bytes = (uint8_t *)units,
                          .count = cn_utf16_from_utf8((const char *)reader->at, size, units)};
    narrow(text);
    return 0;
}

/* Of a tag that was read. 1: it is no text. */
static int read_text_of(struct reader *reader, uint8_t tag, struct text *text)
{
    uint64_t size;
    if (tag != '"' && tag != 'c' && tag != 'S')
        return 1;
    int rc = read_size(reader, &size);
    if (rc == 0 && (size > UNIT_COUNT_MAX || (tag == 'c' && size % 2)))
        rc = damaged(reader, "the length of a text");
    if (rc < 0)
        return rc;
    if (tag == 'S') {
        rc = read_utf8(reader, (size_t)size, text);
    } else {
        *text = (struct text){.bytes = cn_try_alloc((size_t)size + 1),
                              .count = (size_t)(tag == 'c' ? size / 2 : size),
                              .latin1 = tag == '"'};
        if (!text->bytes)
            return cn_err_set(reader->err, CN_ENOMEM, "no memory for a text of the value");
        memcpy(text->bytes, reader->at, (size_t)size);
        if (tag == 'c')
            narrow(text);
    }
    reader->at += size;
    return rc;
}

static int read_text(struct reader *reader, struct text *text)
{
    uint8_t tag = peek_tag(reader);
    if (reader->at < reader->end)
        reader->at++;
    int rc = read_text_of(reader, tag, text);
    return rc == 1 ? damaged(reader, "a text is missing") : rc;
}

static size_t text_size(const struct text *text)
{
    return text->latin1 ? text->count : 2 * text->count;
}

static void put_text(struct reader *reader, const struct text *text)
{
    if (text->latin1 && text->count <= SHORT_STRING_MAX) {
        put(reader, (uint8_t)(TAG_SHORT_STRING + text->count));
    } else {
        put(reader, text->latin1 ? TAG_LATIN1 : TAG_UTF16);
        put_uint(reader, text->count);
    }
    cn_buf_append(reader->out, text->bytes, text_size(text));
}

static int copy_text(struct reader *reader)
{
    struct text text = {0};
    int rc = read_text(reader, &text);
    if (rc == 0)
        put_text(reader, &text);
    text_fini(&text);
    return rc;
}

/* --- properties ------------------------------------------------------------------------------ */

/* Takes the text over. */
static void put_name(struct reader *reader, struct text *name)
{
    for (size_t i = 0; i < reader->name_count; i++) {
        const struct text *known = &reader->names[i];
        if (known->latin1 == name->latin1 && known->count == name->count &&
            memcmp(known->bytes, name->bytes, text_size(name)) == 0) {
            put_uint(reader, (uint64_t)i << 2 | KEY_REFERENCE);
            text_fini(name);
            return;
        }
    }
    put_uint(reader, (uint64_t)name->count << 2 | (name->latin1 ? KEY_LATIN1 : KEY_UTF16));
    cn_buf_append(reader->out, name->bytes, text_size(name));
    if (reader->name_total++ == reader->name_count && reader->name_count < NAMES_MAX) {
        reader->names[reader->name_count++] = *name;
        *name = (struct text){0};
    }
    text_fini(name);
}

static void put_index(struct reader *reader, uint64_t index)
{
    char digits[24];
    int size = snprintf(digits, sizeof(digits), "%" PRIu64, index);
    struct text name = {.bytes = cn_memdup(digits, (size_t)size), .count = (size_t)size};
    name.latin1 = true;
    put_name(reader, &name);
}

static int read_name(struct reader *reader)
{
    struct text name = {0};
    uint64_t raw = 0;
    double number = 0;
    uint8_t tag = peek_tag(reader);
    if (tag)
        reader->at++;
    int rc = read_text_of(reader, tag, &name);
    if (rc == 0)
        put_name(reader, &name);
    if (rc <= 0) {
        text_fini(&name);
        return rc;
    }
    rc = tag == 'N'                 ? read_double(reader, &number)
         : tag == 'I' || tag == 'U' ? read_varint(reader, &raw)
                                    : damaged(reader, "a name is missing");
    if (rc < 0)
        return rc;
    if (tag != 'N')
        number = tag == 'U' ? (double)(uint32_t)raw : (raw & 1) ? -1 : (double)((uint32_t)raw >> 1);
    if (!(number >= 0 && number <= 9007199254740991.0) || number != floor(number))
        return unsupported(reader, "a name that is such a number");
    put_index(reader, (uint64_t)number);
    return 0;
}

/* Names and values up to `end`, which is consumed; *count of them. */
static int read_properties(struct reader *reader, uint8_t end, uint64_t *count)
{
    int rc = 0;
    for (*count = 0; rc == 0 && peek_tag(reader) != end; ++*count) {
        rc = read_name(reader);
        if (rc == 0)
            rc = read_value(reader);
    }
    if (rc == 0)
        reader->at++;
    return rc;
}

/* What V8 says at the end: how many there were. */
static int check_count(struct reader *reader, uint64_t count)
{
    uint64_t said;
    int rc = read_varint(reader, &said);
    return rc == 0 && said != count ? damaged(reader, "a count that is not right") : rc;
}

static int read_object(struct reader *reader)
{
    uint64_t count;
    begin_object(reader, TAG_OBJECT);
    int rc = read_properties(reader, '{', &count);
    if (rc < 0)
        return rc;
    put_uint(reader, KEY_END);
    return check_count(reader, count);
}

/* --- arrays ---------------------------------------------------------------------------------- */

static bool is_keyed(const struct reader *reader, size_t at)
{
    for (size_t i = 0; i < reader->keyed_known; i++) {
        if (reader->keyed[i] == at)
            return true;
    }
    return false;
}

static void note_keyed(struct reader *reader, size_t at)
{
    if (reader->keyed_known)
        return; /* the second time: all are known */
    if ((reader->keyed_count & (reader->keyed_count + 1)) == 0)
        reader->keyed =
            cn_realloc(reader->keyed, (2 * reader->keyed_count + 2) * sizeof(*reader->keyed));
    reader->keyed[reader->keyed_count++] = at;
}

static int read_items(struct reader *reader, uint64_t length, bool keyed)
{
    int rc = 0;
    for (uint64_t i = 0; i < length && rc == 0; i++) {
        bool hole = peek_tag(reader) == '-';
        if (hole)
            reader->at++;
        if (keyed && !hole)
            put_index(reader, i);
        else if (hole && !keyed)
            put(reader, TAG_HOLE);
        if (!hole)
            rc = read_value(reader);
    }
    return rc;
}

static int read_dense(struct reader *reader)
{
    uint64_t length, count, said;
    size_t at = (size_t)(reader->at - reader->begin);
    bool keyed = is_keyed(reader, at);
    int rc = read_size(reader, &length); /* each item is a byte at least */
    if (rc < 0)
        return rc;
    begin_object(reader, keyed || length == 0 ? TAG_ARRAY_WITH_KEYS : TAG_ARRAY);
    put_uint(reader, length);
    rc = read_items(reader, length, keyed);
    if (rc == 0)
        rc = read_properties(reader, '$', &count);
    if (rc < 0)
        return rc;
    if (keyed || length == 0)
        put_uint(reader, KEY_END);
    else if (count)
        note_keyed(reader, at); /* what was written is of no use */
    rc = check_count(reader, count);
    if (rc == 0)
        rc = read_varint(reader, &said);
    return rc == 0 && said != length ? damaged(reader, "a count that is not right") : rc;
}

static int read_sparse(struct reader *reader)
{
    uint64_t length, count, said;
    int rc = read_varint(reader, &length);
    if (rc == 0 && length > UINT32_MAX)
        rc = damaged(reader, "the length of an array");
    if (rc < 0)
        return rc;
    begin_object(reader, TAG_ARRAY_WITH_KEYS);
    put_uint(reader, length);
    rc = read_properties(reader, '@', &count);
    if (rc < 0)
        return rc;
    put_uint(reader, KEY_END);
    rc = check_count(reader, count);
    if (rc == 0)
        rc = read_varint(reader, &said);
    return rc == 0 && said != length ? damaged(reader, "a count that is not right") : rc;
}

/* --- maps, sets ------------------------------------------------------------------------------ */

/* Values up to `end`; `each` of them are an entry. */
static int read_collection(struct reader *reader, uint8_t tag, uint8_t end, unsigned each)
{
    uint64_t count = 0;
    int rc = 0;
    begin_object(reader, tag);
    size_t at = reader->out->size;
    for (; rc == 0 && peek_tag(reader) != end; count++)
        rc = read_value(reader);
    if (rc < 0)
        return rc;
    reader->at++;
    if (count % each)
        return damaged(reader, "a map has a key without a value");
    insert_uint(reader, at, count / each);
    return check_count(reader, count);
}

/* --- buffers and views ----------------------------------------------------------------------- */

/* V8's letters, and Cairn's numbers and bytes per element. */
static const struct {
    uint8_t letter, type, size;
} views[] = {{'?', 0, 1},  {'B', 1, 1},  {'b', 2, 1}, {'C', 3, 1}, {'W', 4, 2},
             {'w', 5, 2},  {'D', 6, 4},  {'d', 7, 4}, {'f', 8, 4}, {'F', 9, 8},
             {'Q', 10, 8}, {'q', 11, 8}, {'h', 12, 2}};

struct view {
    uint8_t type, size;
    uint64_t offset, length; /* in bytes */
    bool tracks;
};

/* Behind its tag. */
static int read_view(struct reader *reader, struct view *view)
{
    uint64_t flags = 0;
    size_t i = 0;
    uint8_t letter = reader->at < reader->end ? *reader->at++ : 0;
    while (i < sizeof(views) / sizeof(views[0]) && views[i].letter != letter)
        i++;
    if (i == sizeof(views) / sizeof(views[0]))
        return damaged(reader, "a view of an unknown type");
    *view = (struct view){.type = views[i].type, .size = views[i].size};
    int rc = read_varint(reader, &view->offset);
    if (rc == 0)
        rc = read_varint(reader, &view->length);
    if (rc == 0 && reader->version >= 14)
        rc = read_varint(reader, &flags);
    if (rc == 0 && (view->offset % view->size || view->length % view->size || flags > 3))
        rc = damaged(reader, "a view that does not fit its elements");
    view->tracks = flags & 1;
    return rc;
}

/* The bytes of a buffer. */
struct buffer {
    uint64_t size, size_max;
    const uint8_t *bytes;
    bool resizable;
};

static int read_buffer_bytes(struct reader *reader, uint8_t tag, struct buffer *buffer)
{
    *buffer = (struct buffer){.resizable = tag == '~'};
    int rc = read_varint(reader, &buffer->size);
    if (rc == 0 && buffer->resizable)
        rc = read_varint(reader, &buffer->size_max);
    if (rc == 0 && buffer->size > (uint64_t)(reader->end - reader->at))
        rc = damaged(reader, "a length is beyond the end");
    if (rc == 0 && buffer->resizable && buffer->size > buffer->size_max)
        rc = damaged(reader, "a buffer is larger than it may be");
    if (rc < 0)
        return rc;
    buffer->bytes = reader->at;
    reader->at += buffer->size;
    return 0;
}

static void put_buffer(struct reader *reader, const struct buffer *buffer)
{
    put(reader, buffer->resizable ? TAG_BUFFER_RESIZABLE : TAG_BUFFER);
    put_uint(reader, buffer->size);
    if (buffer->resizable)
        put_uint(reader, buffer->size_max);
    cn_buf_append(reader->out, buffer->bytes, (size_t)buffer->size);
}

static void put_view_bounds(struct reader *reader, const struct view *view)
{
    put_uint(reader, view->offset);
    if (!view->tracks)
        put_uint(reader, view->length / view->size);
}

/* A view that comes with its buffer: V8 has numbered the buffer, and the view is next. */
static int read_view_of(struct reader *reader, const struct buffer *buffer)
{
    struct view view;
    int rc = read_view(reader, &view);
    if (rc < 0)
        return rc;
    if (view.offset > buffer->size || view.length > buffer->size - view.offset)
        return damaged(reader, "a view is larger than its buffer");
    name_v8_object(reader, reader->object_count + 1); /* the buffer */
    name_v8_object(reader, reader->object_count);     /* the view */
    reader->object_count += 2;
    bool whole =
        view.offset == 0 && view.length == buffer->size && !buffer->resizable && !view.tracks;
    put(reader, whole ? TAG_VIEW_WHOLE : TAG_VIEW);
    put(reader, (uint8_t)(view.type | (view.tracks ? VIEW_TRACKS_LENGTH : 0)));
    if (whole) {
        put_uint(reader, buffer->size);
        cn_buf_append(reader->out, buffer->bytes, (size_t)buffer->size);
    } else {
        put_buffer(reader, buffer);
        put_view_bounds(reader, &view);
    }
    return 0;
}

static int read_buffer(struct reader *reader, uint8_t tag)
{
    struct buffer buffer;
    int rc = read_buffer_bytes(reader, tag, &buffer);
    if (rc < 0)
        return rc;
    if (peek_tag(reader) == 'V') {
        reader->at++;
        return read_view_of(reader, &buffer);
    }
    name_v8_object(reader, reader->object_count++);
    put_buffer(reader, &buffer);
    return 0;
}

static void put_reference(struct reader *reader, uint64_t id)
{
    put(reader, TAG_REFERENCE);
    put_uint(reader, reader->numbers[id]);
}

/* An object that was there, or a view of a buffer that was. */
static int read_known(struct reader *reader)
{
    struct view view;
    uint64_t id;
    int rc = read_varint(reader, &id);
    if (rc == 0 && id >= reader->number_count)
        rc = damaged(reader, "a reference to an object that is not there");
    if (rc < 0)
        return rc;
    if (peek_tag(reader) != 'V') {
        put_reference(reader, id);
        return 0;
    }
    reader->at++;
    rc = read_view(reader, &view);
    if (rc < 0)
        return rc;
    put(reader, TAG_VIEW);
    put(reader, (uint8_t)(view.type | (view.tracks ? VIEW_TRACKS_LENGTH : 0)));
    put_reference(reader, id);
    put_view_bounds(reader, &view);
    name_v8_object(reader, reader->object_count++);
    return 0;
}

/* --- the rest -------------------------------------------------------------------------------- */

static int read_bigint(struct reader *reader)
{
    uint64_t bits;
    int rc = read_varint(reader, &bits);
    uint64_t size = bits >> 1;
    if (rc == 0 && size > (uint64_t)(reader->end - reader->at))
        rc = damaged(reader, "a length is beyond the end");
    if (rc < 0)
        return rc;
    const uint8_t *digits = reader->at;
    reader->at += size;
    while (size > 0 && digits[size - 1] == 0)
        size--;
    put(reader, (bits & 1) && size ? TAG_BIGINT_NEGATIVE : TAG_BIGINT);
    put_uint(reader, size ? size : 1);
    cn_buf_append(reader->out, size ? digits : (const uint8_t *)"", size ? (size_t)size : 1);
    return 0;
}

static int read_regexp(struct reader *reader)
{
    /* In the order in which the flags of an expression are listed; bits of V8. */
    static const struct {
        char letter;
        unsigned bit;
    } all[] = {{'d', 128}, {'g', 1},  {'i', 2},   {'m', 4},
               {'s', 32},  {'u', 16}, {'v', 256}, {'y', 8}};
    uint64_t flags;
    begin_object(reader, TAG_REGEXP);
    int rc = copy_text(reader);
    if (rc == 0)
        rc = read_varint(reader, &flags);
    if (rc < 0)
        return rc;
    size_t at = reader->out->size;
    put(reader, TAG_SHORT_STRING);
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        if (flags & all[i].bit)
            put(reader, (uint8_t)all[i].letter);
        flags &= ~(uint64_t)all[i].bit;
    }
    if (flags)
        return unsupported(reader, "a regular expression with such flags");
    reader->out->data[at] += (uint8_t)(reader->out->size - at - 1);
    return 0;
}

/* Message, stack and cause, in V8's order; the cause goes behind them here. */
struct error_parts {
    struct text message, stack;
    struct cn_buf cause;
    bool has_message, has_stack, has_cause;
    uint8_t type;
};

static int read_error_part(struct reader *reader, uint8_t part, struct error_parts *parts)
{
    static const char prototypes[] = "-ERFSTU"; /* types 1 to 6 */
    const char *type = strchr(prototypes + 1, part);
    if (type) {
        parts->type = (uint8_t)(type - prototypes);
        return 0;
    }
    if (part == 'm' && !parts->has_message) {
        parts->has_message = true;
        return read_text(reader, &parts->message);
    }
    if (part == 's' && !parts->has_stack) {
        parts->has_stack = true;
        return read_text(reader, &parts->stack);
    }
    if (part != 'c' || parts->has_cause)
        return unsupported(reader, "a part of an error");
    struct cn_buf *out = reader->out;
    parts->has_cause = true;
    reader->out = &parts->cause;
    struct text name = {.bytes = cn_memdup("cause", 5), .count = 5, .latin1 = true};
    put_name(reader, &name);
    int rc = read_value(reader);
    reader->out = out;
    return rc;
}

static int read_error(struct reader *reader)
{
    struct error_parts parts = {.type = 0};
    uint64_t part = 0;
    begin_object(reader, TAG_ERROR);
    int rc = 0;
    while (rc == 0 && (rc = read_varint(reader, &part)) == 0 && part != '.')
        rc = part < 128 && part > 0 ? read_error_part(reader, (uint8_t)part, &parts)
                                    : damaged(reader, "a part of an error");
    if (rc == 0) {
        put(reader, parts.type);
        put(reader,
            (parts.has_message ? ERROR_HAS_MESSAGE : 0) | (parts.has_stack ? ERROR_HAS_STACK : 0));
        if (parts.has_message)
            put_text(reader, &parts.message);
        if (parts.has_stack)
            put_text(reader, &parts.stack);
        cn_buf_append(reader->out, parts.cause.data, parts.cause.size);
        put_uint(reader, KEY_END);
    }
    text_fini(&parts.message);
    text_fini(&parts.stack);
    cn_buf_fini(&parts.cause);
    return rc;
}

static int read_boxed(struct reader *reader, uint8_t tag)
{
    double number;
    int rc = 0;
    begin_object(reader, TAG_BOXED);
    switch (tag) {
    case 'y':
    case 'x':
        put(reader, tag == 'y' ? TAG_TRUE : TAG_FALSE);
        return 0;
    case 'n':
        rc = read_double(reader, &number);
        if (rc == 0)
            put_number(reader, number);
        return rc;
    case 'z':
        return read_bigint(reader);
    default:
        return copy_text(reader);
    }
}

static int read_date(struct reader *reader)
{
    double time;
    int rc = read_double(reader, &time);
    if (rc < 0)
        return rc;
    begin_object(reader, TAG_DATE);
    put_double(reader, time);
    return 0;
}

static int read_primitive(struct reader *reader, uint8_t tag)
{
    struct text text = {0};
    uint64_t raw;
    double number;
    int rc;
    switch (tag) {
    case '_':
        put(reader, TAG_UNDEFINED);
        return 0;
    case '0':
        put(reader, TAG_NULL);
        return 0;
    case 'T':
    case 'F':
        put(reader, tag == 'T' ? TAG_TRUE : TAG_FALSE);
        return 0;
    case 'I':
    case 'U':
        rc = read_varint(reader, &raw);
        if (rc == 0 && raw > UINT32_MAX)
            rc = damaged(reader, "an integer of more than 32 bits");
        if (rc == 0)
            put_number(reader, tag == 'U' ? (double)raw
                               : raw & 1  ? -(double)(raw >> 1) - 1
                                          : (double)(raw >> 1));
        return rc;
    case 'N':
        rc = read_double(reader, &number);
        if (rc == 0)
            put_number(reader, number);
        return rc;
    case 'Z':
        return read_bigint(reader);
    default:
        rc = read_text_of(reader, tag, &text);
        if (rc == 0)
            put_text(reader, &text);
        text_fini(&text);
        return rc;
    }
}

static int read_any_object(struct reader *reader, uint8_t tag)
{
    switch (tag) {
    case '^':
        return read_known(reader);
    case 'o':
        return read_object(reader);
    case 'A':
        return read_dense(reader);
    case 'a':
        return read_sparse(reader);
    case 'D':
        return read_date(reader);
    case 'y':
    case 'x':
    case 'n':
    case 'z':
    case 's':
        return read_boxed(reader, tag);
    case 'R':
        return read_regexp(reader);
    case ';':
        return read_collection(reader, TAG_MAP, ':', 2);
    case '\'':
        return read_collection(reader, TAG_SET, ',', 1);
    case 'B':
    case '~':
        return read_buffer(reader, tag);
    case 'r':
        return read_error(reader);
    case '\\':
        return unsupported(reader, "an object of the platform");
    default:
        return damaged(reader, "an unknown tag");
    }
}

static int read_value(struct reader *reader)
{
    uint8_t tag = peek_tag(reader);
    if (!tag)
        return damaged(reader, "it ends too early");
    reader->at++;
    int rc = read_primitive(reader, tag);
    if (rc != 1)
        return rc;
    if (reader->depth == DEPTH_MAX)
        return unsupported(reader, "nesting of more than 2000 levels");
    reader->depth++;
    rc = read_any_object(reader, tag);
    reader->depth--;
    return rc;
}

static int read_all(struct reader *reader)
{
    reader->at = reader->begin;
    if (reader->at == reader->end || *reader->at++ != 0xff)
        return damaged(reader, "these are not the bytes of a value");
    int rc = read_varint(reader, &reader->version);
    if (rc == 0 && (reader->version < 13 || reader->version > 15))
        rc = cn_err_set(reader->err, CN_EUNSUPPORTED,
                        "values of V8's format %" PRIu64 " are not known", reader->version);
    if (rc == 0) {
        put(reader, FORMAT_VERSION);
        rc = read_value(reader);
    }
    if (rc == 0 && peek_tag(reader))
        rc = damaged(reader, "something follows the value");
    return rc;
}

static void forget(struct reader *reader)
{
    for (size_t i = 0; i < reader->name_count; i++)
        text_fini(&reader->names[i]);
    reader->name_count = 0;
    reader->name_total = 0;
    reader->number_count = 0;
    reader->object_count = 0;
    reader->depth = 0;
}

int cn_v8value_convert(const void *bytes, size_t size, struct cn_buf *out, struct cn_err *err)
{
    size_t before = out->size;
    struct reader *reader = CN_NEW(struct reader);
    reader->begin = bytes;
    reader->end = reader->begin + size;
    reader->out = out;
    reader->err = err;
    int rc = read_all(reader);
    if (rc == 0 && reader->keyed_count) {
        out->size = before;
        forget(reader);
        reader->keyed_known = reader->keyed_count;
        rc = read_all(reader);
    }
    if (rc < 0)
        out->size = before;
    forget(reader);
    cn_free(reader->numbers);
    cn_free(reader->keyed);
    cn_free(reader);
    return rc;
}
