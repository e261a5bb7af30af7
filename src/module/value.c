/* SPDX-License-Identifier: Apache-2.0 */
#include "module/value.h"

#include <math.h>
#include <string.h>

#include "base/assert.h"
#include "base/mem.h"
#include "text/clone.h"
#include "text/utf16.h"

#define BLOCK_SIZE 2000 /* of an arena: small values fit into the first one */

/* `items` are elements; of what has pairs, keys and values in turn. */
struct cairn_value {
    uint8_t kind;    /* enum cairn_kind */
    bool negative;   /* of a BigInt */
    bool open;       /* its end has not been read: V2 */
    uint32_t count;  /* of elements or pairs */
    uint32_t weight; /* of values that are reached from here, itself too: V2 */
    union {
        double number; /* CAIRN_BOOL too */
        struct {
            const void *bytes; /* of a text: with a NUL behind it */
            size_t size;
        };
        const cairn_value **items;
        struct cn_value_remote *remote;
    };
};

struct cn_value_block {
    struct cn_value_block *next;
    size_t used, room;
    uint64_t data[];
};

static void *allocate(struct cn_document *document, size_t size)
{
    struct cn_value_block *block = document->blocks;
    size = (size + 7) & ~(size_t)7;
    if (!block || block->room - block->used < size) {
        size_t room = size > BLOCK_SIZE ? size : BLOCK_SIZE;
        block = cn_alloc(sizeof(*block) + room);
        block->used = 0;
        block->room = room;
        block->next = document->blocks;
        document->blocks = block;
    }
    void *memory = (char *)block->data + block->used;
    block->used += size;
    return memory;
}

void cn_document_fini(struct cn_document *document)
{
    while (document->blocks) {
        struct cn_value_block *block = document->blocks;
        document->blocks = block->next;
        cn_free(block);
    }
    document->root = NULL;
    document->remotes = NULL;
}

/* --- reading --------------------------------------------------------------------------------- */

struct pointers {
    cairn_value **items; /* owned */
    size_t count, room;
};

struct reader {
    struct cn_document *document;
    const uint8_t *at, *end;
    struct pointers objects; /* by number; NULL: not to be referred to yet */
    struct pointers names;   /* by number */
    struct pointers stack;   /* what was read of containers that are open */
    size_t nodes;
    unsigned depth;
    const char *fault; /* static: what is wrong; NULL: nothing so far */
};

static void push(struct pointers *list, cairn_value *value)
{
    CN_GROW(list->items, list->count, list->room);
    list->items[list->count++] = value;
}

static cairn_value *refuse(struct reader *reader, const char *fault)
{
    if (!reader->fault)
        reader->fault = fault;
    return NULL;
}

static const char too_early[] = "it ends too early";

static bool read_uint(struct reader *reader, uint64_t *value)
{
    *value = 0;
    for (unsigned shift = 0; shift < 56; shift += 7) {
        if (reader->at == reader->end)
            return refuse(reader, too_early);
        uint8_t byte = *reader->at++;
        *value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return *value >> 53 ? (bool)refuse(reader, "a number is too large") : true;
    }
    return refuse(reader, "a number is too large");
}

/* `count` things of `size` bytes that are there, or NULL. */
static const uint8_t *take(struct reader *reader, uint64_t count, unsigned size)
{
    if (count > (uint64_t)(reader->end - reader->at) / size) {
        refuse(reader, too_early);
        return NULL;
    }
    const uint8_t *bytes = reader->at;
    reader->at += count * size;
    return bytes;
}

static cairn_value *node(struct reader *reader, enum cairn_kind kind)
{
    if (reader->nodes == CN_VALUE_COUNT_MAX)
        return refuse(reader, "it has more than 1048576 values");
    reader->nodes++;
    cairn_value *value = allocate(reader->document, sizeof(*value));
    *value = (cairn_value){.kind = (uint8_t)kind, .weight = 1};
    return value;
}

static cairn_value *number_node(struct reader *reader, enum cairn_kind kind, double number)
{
    cairn_value *value = node(reader, kind);
    if (value)
        value->number = number;
    return value;
}

static cairn_value *latin1(struct reader *reader, uint64_t count)
{
    const uint8_t *bytes = take(reader, count, 1);
    cairn_value *value = bytes ? node(reader, CAIRN_TEXT) : NULL;
    if (!value)
        return NULL;
    size_t ascii = cn_utf16_ascii_prefix((const char *)bytes, count), wide = 0;
    for (size_t i = ascii; i < count; i++)
        wide += bytes[i] >> 7;
    char *text = allocate(reader->document, count + wide + 1);
    value->size = cn_utf16_latin1_to_utf8(bytes, count, (uint8_t *)text);
    text[value->size] = '\0';
    value->bytes = text;
    return value;
}

static cairn_value *utf16(struct reader *reader, uint64_t count)
{
    const uint8_t *bytes = take(reader, count, 2);
    cairn_value *value = bytes ? node(reader, CAIRN_TEXT) : NULL;
    if (!value)
        return NULL;
    uint16_t *units = cn_alloc(2 * count + 1);
    memcpy(units, bytes, 2 * count);
    uint8_t *text = allocate(reader->document, 3 * count + 1);
    value->size = cn_utf16_to_utf8(units, count, text);
    text[value->size] = '\0';
    value->bytes = text;
    cn_free(units);
    return value;
}

static cairn_value *read_double(struct reader *reader, enum cairn_kind kind)
{
    const uint8_t *bytes = take(reader, 8, 1);
    double number;
    if (!bytes)
        return NULL;
    memcpy(&number, bytes, sizeof(number));
    return number_node(reader, kind, number);
}

static cairn_value *bytes_node(struct reader *reader, enum cairn_kind kind)
{
    uint64_t count;
    const uint8_t *bytes = read_uint(reader, &count) ? take(reader, count, 1) : NULL;
    cairn_value *value = bytes ? node(reader, kind) : NULL;
    if (value) {
        value->bytes = bytes;
        value->size = count;
    }
    return value;
}

/* A text that the reader itself knows. */
static cairn_value *own_text(struct reader *reader, const char *text)
{
    cairn_value *value = node(reader, CAIRN_TEXT);
    if (value) {
        value->bytes = text;
        value->size = strlen(text);
    }
    return value;
}

static cairn_value *read_value(struct reader *reader);

static cairn_value *read_text(struct reader *reader)
{
    cairn_value *value = read_value(reader);
    return value && value->kind != CAIRN_TEXT ? refuse(reader, "a string is missing") : value;
}

/* 1: a name; 0: the end of them; negative: refused. */
static int read_name(struct reader *reader, cairn_value **name)
{
    uint64_t head;
    if (!read_uint(reader, &head))
        return -1;
    if (head == KEY_END)
        return 0;
    uint64_t count = head >> 2;
    switch (head & 3) {
    case KEY_LATIN1:
        *name = latin1(reader, count);
        break;
    case KEY_UTF16:
        *name = utf16(reader, count);
        break;
    case KEY_REFERENCE:
        *name = count < reader->names.count
                    ? reader->names.items[count]
                    : refuse(reader, "a property name is referred to before it is given");
        return *name ? 1 : -1;
    default:
        refuse(reader, "a property name is expected");
        return -1;
    }
    if (!*name)
        return -1;
    push(&reader->names, *name);
    return 1;
}

/* The container has all that was pushed since `from`: V1, V2. `each` is 2 for pairs. */
static cairn_value *finish(struct reader *reader, cairn_value *value, size_t from, unsigned each)
{
    size_t count = reader->stack.count - from;
    uint64_t weight = 1;
    value->items = allocate(reader->document, count * sizeof(cairn_value *));
    for (size_t i = 0; i < count; i++) {
        value->items[i] = reader->stack.items[from + i];
        weight += value->items[i]->weight;
    }
    reader->stack.count = from;
    if (weight > CN_VALUE_COUNT_MAX)
        return refuse(reader, "it has more than 1048576 values");
    value->weight = (uint32_t)weight;
    value->count = (uint32_t)(count / each);
    value->open = false;
    return value;
}

static cairn_value *container(struct reader *reader, enum cairn_kind kind)
{
    cairn_value *value = node(reader, kind);
    if (value) {
        value->open = true;
        push(&reader->objects, value);
    }
    return value;
}

static bool read_and_push(struct reader *reader)
{
    cairn_value *value = read_value(reader);
    if (value)
        push(&reader->stack, value);
    return value;
}

static cairn_value *read_list(struct reader *reader, enum cairn_kind kind, unsigned each)
{
    uint64_t count;
    size_t from = reader->stack.count;
    cairn_value *value = container(reader, kind);
    if (!value || !read_uint(reader, &count))
        return NULL;
    if (count > (uint64_t)(reader->end - reader->at) / each)
        return refuse(reader, too_early);
    for (uint64_t i = 0; i < count * each; i++) {
        bool hole = kind == CAIRN_ARRAY && reader->at < reader->end && *reader->at == TAG_HOLE;
        if (hole) {
            reader->at++;
            cairn_value *nothing = node(reader, CAIRN_UNDEFINED);
            if (!nothing)
                return NULL;
            push(&reader->stack, nothing);
        } else if (!read_and_push(reader)) {
            return NULL;
        }
    }
    return finish(reader, value, from, each);
}

/* Names and values up to the end, pushed. */
static bool read_pairs(struct reader *reader)
{
    cairn_value *name;
    int rc;
    while ((rc = read_name(reader, &name)) == 1) {
        push(&reader->stack, name);
        if (!read_and_push(reader))
            return false;
    }
    return rc == 0;
}

static cairn_value *read_object(struct reader *reader)
{
    size_t from = reader->stack.count;
    cairn_value *value = container(reader, CAIRN_OBJECT);
    return value && read_pairs(reader) ? finish(reader, value, from, 2) : NULL;
}

static bool push_pair(struct reader *reader, const char *name, cairn_value *value)
{
    cairn_value *key = value ? own_text(reader, name) : NULL;
    if (!key)
        return false;
    push(&reader->stack, key);
    push(&reader->stack, value);
    return true;
}

/* What is named by texts in a fixed order. */
static cairn_value *read_texts(struct reader *reader, enum cairn_kind kind,
                               const char *const names[], unsigned count)
{
    size_t from = reader->stack.count;
    cairn_value *value = container(reader, kind);
    if (!value)
        return NULL;
    for (unsigned i = 0; i < count; i++) {
        if (!push_pair(reader, names[i], read_text(reader)))
            return NULL;
    }
    return finish(reader, value, from, 2);
}

static cairn_value *read_error(struct reader *reader)
{
    static const char *const types[] = {"Error",       "EvalError", "RangeError", "ReferenceError",
                                        "SyntaxError", "TypeError", "URIError",   "AggregateError"};
    size_t from = reader->stack.count;
    cairn_value *value = container(reader, CAIRN_FAULT);
    const uint8_t *head = value ? take(reader, 2, 1) : NULL;
    if (!head)
        return NULL;
    if (head[0] >= CN_ARRAY_COUNT(types) || head[1] > 3)
        return refuse(reader, "an error of an unknown type");
    /* A name of its own comes behind the type's: the last one of a name counts. */
    if (!push_pair(reader, "name", own_text(reader, types[head[0]])))
        return NULL;
    if ((head[1] & ERROR_HAS_MESSAGE) && !push_pair(reader, "message", read_text(reader)))
        return NULL;
    if ((head[1] & ERROR_HAS_STACK) && !push_pair(reader, "stack", read_text(reader)))
        return NULL;
    return read_pairs(reader) ? finish(reader, value, from, 2) : NULL;
}

/* Bytes that are one object (a buffer) or two (a view of all of it). */
static cairn_value *read_buffer(struct reader *reader, unsigned objects)
{
    cairn_value *value = bytes_node(reader, CAIRN_BYTES);
    for (unsigned i = 0; value && i < objects; i++)
        push(&reader->objects, value);
    return value;
}

static cairn_value *read_resizable(struct reader *reader)
{
    uint64_t count, most;
    if (!read_uint(reader, &count) || !read_uint(reader, &most))
        return NULL;
    const uint8_t *bytes = take(reader, count, 1);
    cairn_value *value = bytes ? node(reader, CAIRN_BYTES) : NULL;
    if (!value)
        return NULL;
    value->bytes = bytes;
    value->size = count;
    push(&reader->objects, value);
    return value;
}

static unsigned element_size(unsigned view)
{
    static const uint8_t sizes[] = {1, 1, 1, 1, 2, 2, 4, 4, 4, 8, 8, 8, 2};
    return view < CN_ARRAY_COUNT(sizes) ? sizes[view] : 0;
}

static cairn_value *read_view(struct reader *reader)
{
    uint64_t offset, length;
    size_t number = reader->objects.count;
    push(&reader->objects, NULL);
    const uint8_t *type = take(reader, 1, 1);
    if (!type)
        return NULL;
    unsigned size = element_size(*type & ~VIEW_TRACKS_LENGTH & 0xff);
    if (!size)
        return refuse(reader, "a view of an unknown type");
    cairn_value *buffer = read_value(reader);
    if (!buffer || !read_uint(reader, &offset))
        return NULL;
    if (buffer->kind != CAIRN_BYTES || offset > buffer->size)
        return refuse(reader, "a view out of its buffer");
    if (*type & VIEW_TRACKS_LENGTH)
        length = (buffer->size - offset) / size;
    else if (!read_uint(reader, &length))
        return NULL;
    if (length > (buffer->size - offset) / size)
        return refuse(reader, "a view out of its buffer");
    cairn_value *value = node(reader, CAIRN_BYTES);
    if (!value)
        return NULL;
    value->bytes = (const uint8_t *)buffer->bytes + offset;
    value->size = length * size;
    reader->objects.items[number] = value;
    return value;
}

/* An array with holes: V1 for its length. */
static cairn_value *read_sparse(struct reader *reader)
{
    uint64_t length;
    cairn_value *name;
    size_t from = reader->stack.count;
    cairn_value *value = container(reader, CAIRN_ARRAY);
    if (!value || !read_uint(reader, &length))
        return NULL;
    if (length > CN_VALUE_COUNT_MAX - reader->nodes)
        return refuse(reader, "it has more than 1048576 values");
    for (uint64_t i = 0; i < length; i++) {
        cairn_value *nothing = node(reader, CAIRN_UNDEFINED);
        if (!nothing)
            return NULL;
        push(&reader->stack, nothing);
    }
    int rc;
    while ((rc = read_name(reader, &name)) == 1) {
        cairn_value *item = read_value(reader);
        const char *text = name->bytes;
        uint64_t index = 0;
        if (!item)
            return NULL;
        for (; *text >= '0' && *text <= '9' && index < length; text++)
            index = index * 10 + (uint64_t)(*text - '0');
        if (name->size && !*text && index < length) /* other properties are not an array's */
            reader->stack.items[from + index] = item;
    }
    return rc == 0 ? finish(reader, value, from, 1) : NULL;
}

static struct cn_value_remote *remote_new(struct reader *reader)
{
    struct cn_value_remote *remote = allocate(reader->document, sizeof(*remote));
    *remote = (struct cn_value_remote){.next = reader->document->remotes};
    reader->document->remotes = remote;
    return remote;
}

/* { address, number, lent }; NULL: it is none. */
static struct cn_value_remote *read_remote(struct reader *reader, const cairn_value *inner)
{
    const char *address = cn_value_text(cn_value_get(inner, "address"), NULL);
    double number;
    if (!address || cn_value_number(cn_value_get(inner, "number"), &number) < 0)
        return NULL;
    struct cn_value_remote *remote = remote_new(reader);
    remote->address = address;
    remote->number = number;
    remote->lent = cn_value_bool(cn_value_get(inner, "lent"));
    return remote;
}

/* { ns, hex, name } */
static struct cn_value_remote *read_stub(struct reader *reader, const cairn_value *inner)
{
    const char *hex = cn_value_text(cn_value_get(inner, "hex"), NULL);
    int64_t ns;
    if (!hex || cn_value_int(cn_value_get(inner, "ns"), &ns) < 0 || ns < 0 || ns > UINT32_MAX)
        return NULL;
    struct cn_value_remote *remote = remote_new(reader);
    remote->hex = hex;
    remote->ns = (uint32_t)ns;
    remote->name = cn_value_text(cn_value_get(inner, "name"), NULL);
    return remote;
}

/* The node of what follows a tag: V3. */
static cairn_value *host_node(struct reader *reader, uint8_t tag, const cairn_value *inner)
{
    enum cairn_kind kind = CAIRN_OTHER;
    struct cn_value_remote *remote = NULL;
    if (tag == TAG_HOST_FUNCTION || tag == TAG_HOST_STREAM || tag == TAG_HOST_SINK)
        remote = read_remote(reader, inner);
    else if (tag == TAG_HOST_SIGNAL)
        remote = read_remote(reader, cn_value_get(inner, "reference"));
    else if (tag == TAG_HOST_OBJECT)
        remote = read_stub(reader, inner);
    if (remote && tag == TAG_HOST_FUNCTION)
        kind = CAIRN_FUNCTION;
    else if (remote && tag == TAG_HOST_STREAM)
        kind = CAIRN_STREAM;
    else if (remote && tag == TAG_HOST_OBJECT)
        kind = CAIRN_STUB;
    cairn_value *value = node(reader, kind);
    if (value)
        value->remote = remote;
    return value;
}

/* What is not a value of its own, but has one behind it. */
static cairn_value *read_host(struct reader *reader, uint8_t tag)
{
    if (tag == TAG_HOST_TRANSFER)
        return refuse(reader, "it refers to something outside");
    size_t number = reader->objects.count;
    push(&reader->objects, NULL);
    cairn_value *inner = read_value(reader);
    if (!inner)
        return NULL;
    /* A result with a disposer: the value, and a function that goes with the others. */
    cairn_value *value = tag == TAG_HOST_DISPOSABLE && cn_value_count(inner) == 2
                             ? (cairn_value *)cn_value_at(inner, 0)
                             : host_node(reader, tag, inner);
    if (!value)
        return NULL;
    if (value->weight < inner->weight)
        value->weight = inner->weight;
    reader->objects.items[number] = value;
    return value;
}

static cairn_value *read_boxed(struct reader *reader)
{
    size_t number = reader->objects.count;
    push(&reader->objects, NULL);
    cairn_value *value = read_value(reader);
    if (!value)
        return NULL;
    if (value->kind < CAIRN_BOOL || value->kind > CAIRN_TEXT)
        return refuse(reader, "a primitive is missing");
    return reader->objects.items[number] = value;
}

static cairn_value *read_structure(struct reader *reader, uint8_t tag)
{
    static const char *const regexp[] = {"source", "flags"};
    static const char *const exception[] = {"name", "message", "stack"};
    cairn_value *value;
    switch (tag) {
    case TAG_OBJECT:
        return read_object(reader);
    case TAG_ARRAY:
        return read_list(reader, CAIRN_ARRAY, 1);
    case TAG_ARRAY_WITH_KEYS:
        return read_sparse(reader);
    case TAG_DATE:
        value = read_double(reader, CAIRN_DATE);
        if (value)
            push(&reader->objects, value);
        return value;
    case TAG_REGEXP:
        return read_texts(reader, CAIRN_REGEXP, regexp, 2);
    case TAG_MAP:
        return read_list(reader, CAIRN_MAP, 2);
    case TAG_SET:
        return read_list(reader, CAIRN_SET, 1);
    case TAG_BOXED:
        return read_boxed(reader);
    case TAG_BUFFER:
        return read_buffer(reader, 1);
    case TAG_BUFFER_RESIZABLE:
        return read_resizable(reader);
    case TAG_VIEW:
        return read_view(reader);
    case TAG_VIEW_WHOLE: {
        const uint8_t *type = take(reader, 1, 1);
        return !type                 ? NULL
               : element_size(*type) ? read_buffer(reader, 2)
                                     : refuse(reader, "a view of an unknown type");
    }
    case TAG_ERROR:
        return read_error(reader);
    case TAG_DOM_EXCEPTION:
        return read_texts(reader, CAIRN_FAULT, exception, 3);
    default:
        return tag >= TAG_HOST_FIRST && tag <= TAG_HOST_LAST ? read_host(reader, tag)
                                                             : refuse(reader, "a tag is not known");
    }
}

static cairn_value *read_reference(struct reader *reader)
{
    uint64_t number;
    if (!read_uint(reader, &number))
        return NULL;
    if (number >= reader->objects.count || !reader->objects.items[number])
        return refuse(reader, "an object is referred to before it is given");
    cairn_value *value = reader->objects.items[number];
    return value->open ? refuse(reader, "it contains itself") : value; /* V2 */
}

static cairn_value *read_value(struct reader *reader)
{
    const uint8_t *byte = take(reader, 1, 1);
    uint64_t number;
    if (!byte)
        return NULL;
    uint8_t tag = *byte;
    if (tag >= TAG_SMALL_INT)
        return number_node(reader, CAIRN_NUMBER, (int)tag - TAG_SMALL_INT + SMALL_INT_MIN);
    if (tag >= TAG_SHORT_STRING && tag <= TAG_SHORT_STRING + SHORT_STRING_MAX)
        return latin1(reader, tag - TAG_SHORT_STRING);
    switch (tag) {
    case TAG_UNDEFINED:
        return node(reader, CAIRN_UNDEFINED);
    case TAG_NULL:
        return node(reader, CAIRN_NULL);
    case TAG_FALSE:
    case TAG_TRUE:
        return number_node(reader, CAIRN_BOOL, tag == TAG_TRUE);
    case TAG_INT:
        if (!read_uint(reader, &number))
            return NULL;
        if (number > UINT32_MAX)
            return refuse(reader, "an integer is too large");
        return number_node(reader, CAIRN_NUMBER,
                           (int32_t)((uint32_t)number >> 1 ^ -((uint32_t)number & 1)));
    case TAG_DOUBLE:
        return read_double(reader, CAIRN_NUMBER);
    case TAG_BIGINT:
    case TAG_BIGINT_NEGATIVE: {
        cairn_value *value = bytes_node(reader, CAIRN_BIGINT);
        if (value)
            value->negative = tag == TAG_BIGINT_NEGATIVE;
        return value;
    }
    case TAG_LATIN1:
        return read_uint(reader, &number) ? latin1(reader, number) : NULL;
    case TAG_UTF16:
        return read_uint(reader, &number) ? utf16(reader, number) : NULL;
    case TAG_REFERENCE:
        return read_reference(reader);
    case TAG_EXTERNAL:
        return refuse(reader, "it refers to something outside");
    }
    if (++reader->depth > CN_VALUE_DEPTH_MAX)
        return refuse(reader, "it is nested too deeply");
    cairn_value *value = read_structure(reader, tag);
    reader->depth--;
    return value;
}

int cn_document_read(struct cn_document *document, const uint8_t *bytes, size_t size,
                     struct cn_err *err)
{
    struct reader reader = {.document = document, .at = bytes, .end = bytes + size};
    if (size == 0)
        refuse(&reader, too_early);
    else if (*reader.at++ != FORMAT_VERSION)
        refuse(&reader, "its version is not known");
    if (!reader.fault)
        document->root = read_value(&reader);
    if (!reader.fault && reader.at != reader.end)
        refuse(&reader, "something follows its end");
    cn_free(reader.objects.items);
    cn_free(reader.names.items);
    cn_free(reader.stack.items);
    if (!reader.fault)
        return 0;
    cn_document_fini(document);
    return cn_err_set(err, CN_EINVALID, "the value cannot be read in C: %s", reader.fault);
}

/* --- looking --------------------------------------------------------------------------------- */

enum cairn_kind cn_value_kind(const cairn_value *value)
{
    return value ? (enum cairn_kind)value->kind : CAIRN_UNDEFINED;
}

int cn_value_bool(const cairn_value *value)
{
    return value && value->kind == CAIRN_BOOL && value->number != 0;
}

static int bigint_to_int(const cairn_value *value, int64_t *number)
{
    const uint8_t *bytes = value->bytes;
    size_t size = value->size;
    uint64_t most = value->negative ? (uint64_t)1 << 63 : INT64_MAX, magnitude = 0;
    while (size && !bytes[size - 1])
        size--;
    if (size > 8)
        return CAIRN_EMISMATCH;
    for (size_t i = size; i > 0; i--)
        magnitude = magnitude << 8 | bytes[i - 1];
    if (magnitude > most)
        return CAIRN_EMISMATCH;
    *number = value->negative ? (int64_t)(0 - magnitude) : (int64_t)magnitude;
    return 0;
}

int cn_value_int(const cairn_value *value, int64_t *number)
{
    if (value && value->kind == CAIRN_BIGINT)
        return bigint_to_int(value, number);
    if (!value || value->kind != CAIRN_NUMBER || !(fabs(value->number) <= 9007199254740991.0) ||
        value->number != trunc(value->number))
        return CAIRN_EMISMATCH;
    *number = (int64_t)value->number;
    return 0;
}

int cn_value_number(const cairn_value *value, double *number)
{
    if (!value || (value->kind != CAIRN_NUMBER && value->kind != CAIRN_DATE))
        return CAIRN_EMISMATCH;
    *number = value->number;
    return 0;
}

const char *cn_value_text(const cairn_value *value, size_t *size)
{
    bool is_text = value && value->kind == CAIRN_TEXT;
    if (size)
        *size = is_text ? value->size : 0;
    return is_text ? value->bytes : NULL;
}

const void *cn_value_bytes(const cairn_value *value, size_t *size)
{
    bool has = value && (value->kind == CAIRN_BYTES || value->kind == CAIRN_BIGINT);
    if (size)
        *size = has ? value->size : 0;
    return has ? value->bytes : NULL;
}

static bool has_pairs(const cairn_value *value)
{
    return value && (value->kind == CAIRN_OBJECT || value->kind == CAIRN_MAP ||
                     value->kind == CAIRN_REGEXP || value->kind == CAIRN_FAULT);
}

size_t cn_value_count(const cairn_value *value)
{
    bool has =
        has_pairs(value) || (value && (value->kind == CAIRN_ARRAY || value->kind == CAIRN_SET));
    return has ? value->count : 0;
}

const cairn_value *cn_value_at(const cairn_value *value, size_t index)
{
    if (index >= cn_value_count(value))
        return NULL;
    return has_pairs(value) ? value->items[2 * index + 1] : value->items[index];
}

const cairn_value *cn_value_key(const cairn_value *value, size_t index)
{
    return has_pairs(value) && index < value->count ? value->items[2 * index] : NULL;
}

const cairn_value *cn_value_get(const cairn_value *value, const char *name)
{
    size_t size = strlen(name);
    for (size_t i = has_pairs(value) ? value->count : 0; i > 0; i--) {
        const cairn_value *key = value->items[2 * i - 2];
        if (key->kind == CAIRN_TEXT && key->size == size && memcmp(key->bytes, name, size) == 0)
            return value->items[2 * i - 1];
    }
    return NULL;
}

struct cn_value_remote *cn_value_remote(const cairn_value *value)
{
    bool is_remote = value && (value->kind == CAIRN_FUNCTION || value->kind == CAIRN_STREAM ||
                               value->kind == CAIRN_STUB);
    return is_remote ? value->remote : NULL;
}
