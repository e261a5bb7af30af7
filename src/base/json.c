/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"

#include <inttypes.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/hexdigit.h"
#include "base/mem.h"
#include "base/utf8.h"

/* Values and texts come from blocks that are freed together. */
#define BLOCK_SIZE ((size_t)16 << 10)
/* Members of an object of which each new name is compared with all others; those of a larger one
 * are sorted at its end. */
#define COMPARED_MAX 32
#define VALUE_COST 64 /* ends of name and text, and what rounds them up */

struct block {
    struct block *next;
    size_t used, size;
    max_align_t bytes[];
};

struct scan {
    const char *at, *end, *start;
    struct block *blocks;
    struct cn_err *err;
    int depth;
    size_t left; /* values that there may be yet */
};

static void *take(struct scan *scan, size_t size)
{
    size = (size + sizeof(max_align_t) - 1) / sizeof(max_align_t) * sizeof(max_align_t);
    struct block *block = scan->blocks;
    if (!block || block->size - block->used < size) {
        size_t room = size > BLOCK_SIZE ? size : BLOCK_SIZE;
        block = cn_alloc(sizeof(*block) + room);
        *block = (struct block){.next = scan->blocks, .size = room};
        scan->blocks = block;
    }
    void *bytes = (char *)block->bytes + block->used;
    block->used += size;
    return bytes;
}

static void free_blocks(struct block *block)
{
    while (block) {
        struct block *next = block->next;
        cn_free(block);
        block = next;
    }
}

static struct cn_json *fail(struct scan *scan, const char *sentence)
{
    cn_err_set(scan->err, CN_EINVALID, "malformed JSON at byte %zu: %s",
               (size_t)(scan->at - scan->start), sentence);
    return NULL;
}

static void skip_blank(struct scan *scan)
{
    while (scan->at < scan->end && strchr(" \t\r\n", *scan->at) && *scan->at)
        scan->at++;
}

static int hex_digits(struct scan *scan)
{
    int value = 0;
    for (int i = 0; i < 4; i++) {
        if (scan->at == scan->end)
            return -1;
        char c = *scan->at++;
        int digit = cn_hexdigit_value((unsigned char)c);
        if (digit < 0)
            return -1;
        value = value * 16 + digit;
    }
    return value;
}

/* Behind a backslash. False: not an escape that JSON has. */
static bool read_escape(struct scan *scan, char **out)
{
    static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    if (scan->at == scan->end)
        return false;
    char c = *scan->at++;
    const char *found = c ? strchr(names, c) : NULL;
    if (found) {
        *(*out)++ = values[found - names];
        return true;
    }
    if (c != 'u')
        return false;
    int high = hex_digits(scan), low = 0;
    if (high < 0 || (high >= 0xdc00 && high <= 0xdfff))
        return false;
    if (high >= 0xd800 && high <= 0xdbff) {
        if (scan->end - scan->at < 6 || scan->at[0] != '\\' || scan->at[1] != 'u')
            return false;
        scan->at += 2;
        low = hex_digits(scan);
        if (low < 0xdc00 || low > 0xdfff)
            return false;
        high = 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
    }
    *out += cn_utf8_encode((uint32_t)high, *out);
    return true;
}

/* From the quote on. NULL with the error set. What is written is never longer than what is read. */
static char *read_string(struct scan *scan, size_t *size)
{
    const char *quote = ++scan->at;
    while (quote < scan->end && *quote != '"')
        quote += *quote == '\\' && quote + 1 < scan->end ? 2 : 1;
    if (quote >= scan->end)
        return (char *)fail(scan, "this string has no end");
    char *text = take(scan, (size_t)(quote - scan->at) + 1), *out = text;
    while (*scan->at != '"') {
        unsigned char c = (unsigned char)*scan->at++;
        if (c < 0x20)
            return (char *)fail(scan, "a control character must be escaped");
        if (c != '\\')
            *out++ = (char)c;
        else if (!read_escape(scan, &out))
            return (char *)fail(scan, "this escape is not one of JSON");
    }
    scan->at++;
    *out = 0;
    *size = (size_t)(out - text);
    if (!cn_utf8_valid(text, *size))
        return (char *)fail(scan, "this string is not UTF-8");
    return text;
}

static size_t count_digits(struct scan *scan)
{
    const char *from = scan->at;
    while (scan->at < scan->end && *scan->at >= '0' && *scan->at <= '9')
        scan->at++;
    return (size_t)(scan->at - from);
}

static struct cn_json *read_number(struct scan *scan, struct cn_json *value)
{
    const char *from = scan->at;
    bool whole = true;
    if (*scan->at == '-')
        scan->at++;
    const char *digits = scan->at;
    if (count_digits(scan) == 0 || (digits[0] == '0' && scan->at - digits > 1))
        return fail(scan, "not a value");
    if (scan->at < scan->end && *scan->at == '.') {
        whole = false;
        scan->at++;
        if (count_digits(scan) == 0)
            return fail(scan, "digits must follow the point");
    }
    if (scan->at < scan->end && (*scan->at == 'e' || *scan->at == 'E')) {
        whole = false;
        scan->at++;
        if (scan->at < scan->end && (*scan->at == '+' || *scan->at == '-'))
            scan->at++;
        if (count_digits(scan) == 0)
            return fail(scan, "digits must follow the exponent");
    }
    size_t size = (size_t)(scan->at - from);
    char *copy = take(scan, size + 1);
    memcpy(copy, from, size);
    copy[size] = 0;
    errno = 0;
    value->number = strtod(copy, NULL);
    value->kind = CN_JSON_NUMBER;
    if (!isfinite(value->number))
        return fail(scan, "this number is too large");
    errno = 0;
    value->integer = whole ? strtoll(copy, NULL, 10) : 0;
    if (whole && errno == 0)
        value->kind = CN_JSON_INT;
    return value;
}

static struct cn_json *read_value(struct scan *scan);

static struct cn_json *read_member(struct scan *scan, const struct cn_json *object, size_t count)
{
    size_t size;
    if (scan->at == scan->end || *scan->at != '"')
        return fail(scan, "a name in quotes must stand here");
    char *name = read_string(scan, &size);
    if (!name)
        return NULL;
    if (strlen(name) != size || (count < COMPARED_MAX && cn_json_find(object, name)))
        return fail(scan, "this name is there twice, or holds a NUL");
    skip_blank(scan);
    if (scan->at == scan->end || *scan->at != ':')
        return fail(scan, "a colon must follow the name");
    scan->at++;
    skip_blank(scan);
    struct cn_json *value = read_value(scan);
    if (value)
        value->name = name;
    return value;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Whether a name is there twice, in time that a hostile text cannot make quadratic. */
static bool has_double(const struct cn_json *object, size_t count)
{
    bool found = false;
    size_t at = 0;
    const char **names = cn_alloc(count * sizeof(*names));
    for (const struct cn_json *member = object->first; member; member = member->next)
        names[at++] = member->name;
    qsort(names, count, sizeof(*names), compare_names);
    for (size_t i = 1; i < count && !found; i++)
        found = strcmp(names[i - 1], names[i]) == 0;
    cn_free(names);
    return found;
}

static struct cn_json *read_list(struct scan *scan, struct cn_json *list, char close)
{
    struct cn_json **tail = &list->first;
    size_t count = 0;
    if (++scan->depth > CN_JSON_DEPTH_MAX)
        return fail(scan, "nested too deeply");
    scan->at++;
    skip_blank(scan);
    if (scan->at < scan->end && *scan->at == close) {
        scan->at++;
        scan->depth--;
        return list;
    }
    for (;;) {
        struct cn_json *value =
            list->kind == CN_JSON_OBJECT ? read_member(scan, list, count) : read_value(scan);
        if (!value)
            return NULL;
        *tail = value;
        tail = &value->next;
        if (list->kind == CN_JSON_OBJECT && ++count > CN_JSON_MEMBER_MAX)
            return fail(scan, "too many members");
        skip_blank(scan);
        char c = scan->at < scan->end ? *scan->at++ : 0;
        if (c == close)
            break;
        if (c != ',')
            return fail(scan, "a comma or the end of the list must stand here");
        skip_blank(scan);
    }
    if (count > COMPARED_MAX && has_double(list, count))
        return fail(scan, "a name of this object is there twice");
    scan->depth--;
    return list;
}

static bool read_word(struct scan *scan, const char *word)
{
    size_t size = strlen(word);
    if ((size_t)(scan->end - scan->at) < size || memcmp(scan->at, word, size) != 0)
        return false;
    scan->at += size;
    return true;
}

static struct cn_json *read_value(struct scan *scan)
{
    if (scan->left == 0)
        return fail(scan, "too many values");
    scan->left--;
    struct cn_json *value = take(scan, sizeof(*value));
    *value = (struct cn_json){.kind = CN_JSON_NULL};
    switch (scan->at < scan->end ? *scan->at : 0) {
    case '{':
        value->kind = CN_JSON_OBJECT;
        return read_list(scan, value, '}');
    case '[':
        value->kind = CN_JSON_ARRAY;
        return read_list(scan, value, ']');
    case '"':
        value->kind = CN_JSON_STRING;
        value->text = read_string(scan, &value->size);
        return value->text ? value : NULL;
    case 'n':
        return read_word(scan, "null") ? value : fail(scan, "not a value");
    case 't':
    case 'f':
        value->kind = CN_JSON_BOOL;
        value->boolean = *scan->at == 't';
        return read_word(scan, value->boolean ? "true" : "false") ? value
                                                                  : fail(scan, "not a value");
    case 0:
        return fail(scan, "the text ends too early");
    default:
        return read_number(scan, value);
    }
}

struct cn_json *cn_json_parse(const char *text, size_t size, struct cn_err *err)
{
    return cn_json_parse_some(text, size, SIZE_MAX, err);
}

size_t cn_json_cost(const char *text, size_t size, size_t values_max)
{
    size_t values = 1;
    bool in_string = false;
    for (size_t i = 0; i < size && values < values_max; i++) {
        char c = text[i];
        if (c == '\\' && in_string)
            i++;
        else if (c == '"')
            in_string = !in_string;
        else if (!in_string)
            values += c == ',' || c == '[' || c == '{';
    }
    return values * (sizeof(struct cn_json) + VALUE_COST) + size + BLOCK_SIZE;
}

struct cn_json *cn_json_parse_some(const char *text, size_t size, size_t values_max,
                                   struct cn_err *err)
{
    struct scan scan = {
        .at = text, .start = text, .end = text + size, .err = err, .left = values_max};
    skip_blank(&scan);
    struct cn_json *root = read_value(&scan);
    if (root) {
        skip_blank(&scan);
        if (scan.at < scan.end)
            root = fail(&scan, "there is something behind the value");
    }
    if (root)
        root->owner = scan.blocks;
    else
        free_blocks(scan.blocks);
    return root;
}

void cn_json_free(struct cn_json *root)
{
    if (root)
        free_blocks(root->owner);
}

const struct cn_json *cn_json_find(const struct cn_json *object, const char *name)
{
    if (!object || object->kind != CN_JSON_OBJECT)
        return NULL;
    for (const struct cn_json *member = object->first; member; member = member->next) {
        if (strcmp(member->name, name) == 0)
            return member;
    }
    return NULL;
}

const char *cn_json_text(const struct cn_json *object, const char *name)
{
    const struct cn_json *member = cn_json_find(object, name);
    return member && member->kind == CN_JSON_STRING ? member->text : NULL;
}

int64_t cn_json_int(const struct cn_json *object, const char *name)
{
    const struct cn_json *member = cn_json_find(object, name);
    return member && member->kind == CN_JSON_INT ? member->integer : 0;
}

void cn_json_write(struct cn_buf *out, const struct cn_json *json)
{
    bool is_object = json->kind == CN_JSON_OBJECT;
    switch (json->kind) {
    case CN_JSON_NULL:
        cn_buf_append_str(out, "null");
        break;
    case CN_JSON_BOOL:
        cn_buf_append_str(out, json->boolean ? "true" : "false");
        break;
    case CN_JSON_INT:
        cn_buf_printf(out, "%" PRId64, json->integer);
        break;
    case CN_JSON_NUMBER:
        cn_buf_printf(out, "%.17g", json->number);
        break;
    case CN_JSON_STRING:
        cn_buf_append_json(out, json->text, json->size);
        break;
    case CN_JSON_ARRAY:
    case CN_JSON_OBJECT:
        cn_buf_append_byte(out, is_object ? '{' : '[');
        for (const struct cn_json *item = json->first; item; item = item->next) {
            if (is_object) {
                cn_buf_append_json(out, item->name, strlen(item->name));
                cn_buf_append_byte(out, ':');
            }
            cn_json_write(out, item);
            if (item->next)
                cn_buf_append_byte(out, ',');
        }
        cn_buf_append_byte(out, is_object ? '}' : ']');
    }
}
