/* SPDX-License-Identifier: Apache-2.0 */
/* config/jsonc.c - JSON (RFC 8259) with comments and trailing commas, and nothing
 * else: no single quotes, no bare keys, no hexadecimal numbers. A key that
 * appears twice is refused, because one of the two would be lost silently. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "config/confscan.h"

static struct cn_confnode *parse_value(struct cn_confscan *scan);

/* Moves to the next token, over white space and comments. False: a comment has no end. */
static bool skip_blank(struct cn_confscan *scan)
{
    for (;;) {
        int c = cn_confscan_peek(scan, 0);
        if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
            cn_confscan_skip(scan);
        } else if (c == '/' && cn_confscan_peek(scan, 1) == '/') {
            while (cn_confscan_peek(scan, 0) >= 0 && cn_confscan_peek(scan, 0) != '\n')
                cn_confscan_skip(scan);
        } else if (c == '/' && cn_confscan_peek(scan, 1) == '*') {
            int line = scan->line, column = cn_confscan_column(scan);
            cn_confscan_skip(scan);
            cn_confscan_skip(scan);
            while (!(cn_confscan_peek(scan, 0) == '*' && cn_confscan_peek(scan, 1) == '/')) {
                if (cn_confscan_peek(scan, 0) < 0) {
                    cn_confscan_fail_at(scan, line, column, "this comment is never closed");
                    return false;
                }
                cn_confscan_skip(scan);
            }
            cn_confscan_skip(scan);
            cn_confscan_skip(scan);
        } else {
            return true;
        }
    }
}

static bool parse_unicode_escape(struct cn_confscan *scan, struct cn_buf *out)
{
    int64_t code = cn_confscan_hex(scan, 4);
    if (code < 0)
        return cn_confscan_fail(scan, "\\u needs four hexadecimal digits") != NULL;
    if (code >= 0xd800 && code <= 0xdbff && cn_confscan_peek(scan, 0) == '\\' &&
        cn_confscan_peek(scan, 1) == 'u') {
        cn_confscan_skip(scan);
        cn_confscan_skip(scan);
        int64_t low = cn_confscan_hex(scan, 4);
        if (low < 0xdc00 || low > 0xdfff)
            return cn_confscan_fail(scan, "a surrogate pair is broken") != NULL;
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    }
    if (code >= 0xd800 && code <= 0xdfff)
        return cn_confscan_fail(scan, "a surrogate without its partner is not a character") != NULL;
    cn_confscan_append_utf8(out, (uint32_t)code);
    return true;
}

/* The cursor stands on the opening quote. */
static bool parse_string(struct cn_confscan *scan, struct cn_buf *out)
{
    static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    int line = scan->line, column = cn_confscan_column(scan);
    cn_confscan_skip(scan);
    for (;;) {
        int c = cn_confscan_peek(scan, 0);
        if (c < 0 || c == '\n')
            return cn_confscan_fail_at(scan, line, column, "this string is never closed") != NULL;
        if (c < 0x20)
            return cn_confscan_fail(scan, "a control character must be written as an escape") !=
                   NULL;
        cn_confscan_skip(scan);
        if (c == '"')
            return true;
        if (c != '\\') {
            cn_buf_append_byte(out, (uint8_t)c);
            continue;
        }
        c = cn_confscan_peek(scan, 0);
        const char *known = c > 0 ? strchr(names, c) : NULL;
        if (known) {
            cn_confscan_skip(scan);
            cn_buf_append_byte(out, (uint8_t)values[known - names]);
        } else if (c == 'u') {
            cn_confscan_skip(scan);
            if (!parse_unicode_escape(scan, out))
                return false;
        } else {
            return cn_confscan_fail(scan, "unknown escape in a string") != NULL;
        }
    }
}

static struct cn_confnode *parse_text(struct cn_confscan *scan)
{
    return cn_confscan_text(scan, parse_string);
}

static bool is_digit(int c)
{
    return c >= '0' && c <= '9';
}

static void skip_digits(struct cn_confscan *scan)
{
    while (is_digit(cn_confscan_peek(scan, 0)))
        cn_confscan_skip(scan);
}

static struct cn_confnode *parse_number(struct cn_confscan *scan)
{
    char digits[64];
    size_t start = scan->pos;
    int line = scan->line, column = cn_confscan_column(scan);
    bool whole = true;
    if (cn_confscan_peek(scan, 0) == '-')
        cn_confscan_skip(scan);
    if (!is_digit(cn_confscan_peek(scan, 0)))
        return cn_confscan_fail_at(scan, line, column, "this is not a JSON value");
    if (cn_confscan_peek(scan, 0) == '0' && is_digit(cn_confscan_peek(scan, 1)))
        return cn_confscan_fail(scan, "a number must not begin with zero");
    skip_digits(scan);
    if (cn_confscan_peek(scan, 0) == '.') {
        whole = false;
        cn_confscan_skip(scan);
        if (!is_digit(cn_confscan_peek(scan, 0)))
            return cn_confscan_fail(scan, "digits must follow the decimal point");
        skip_digits(scan);
    }
    if ((cn_confscan_peek(scan, 0) | 32) == 'e') {
        whole = false;
        cn_confscan_skip(scan);
        if (cn_confscan_peek(scan, 0) == '+' || cn_confscan_peek(scan, 0) == '-')
            cn_confscan_skip(scan);
        if (!is_digit(cn_confscan_peek(scan, 0)))
            return cn_confscan_fail(scan, "digits must follow the exponent");
        skip_digits(scan);
    }
    size_t size = scan->pos - start;
    if (size >= sizeof(digits))
        return cn_confscan_fail_at(scan, line, column, "this number has too many digits");
    memcpy(digits, scan->text + start, size);
    digits[size] = 0;
    struct cn_confnode *node = cn_confscan_node(scan, whole ? CN_CONF_INTEGER : CN_CONF_FLOAT);
    if (!node)
        return NULL;
    node->line = line;
    node->column = column;
    errno = 0;
    if (whole)
        node->integer = strtoll(digits, NULL, 10);
    if (!whole || errno == ERANGE) {
        node->kind = CN_CONF_FLOAT;
        node->number = strtod(digits, NULL);
        if (!isfinite(node->number)) {
            cn_confnode_free(node);
            return cn_confscan_fail_at(scan, line, column, "this number is out of range");
        }
    }
    return node;
}

/* After an element: the cursor moves past ',' or `close`; *more says which. */
static bool parse_separator(struct cn_confscan *scan, int close, bool *more)
{
    if (!skip_blank(scan))
        return false;
    int c = cn_confscan_peek(scan, 0);
    if (c != ',' && c != close)
        return cn_confscan_fail(scan, "expected ',' or '%c'", close) != NULL;
    cn_confscan_skip(scan);
    *more = c == ',';
    if (!skip_blank(scan))
        return false;
    if (*more && cn_confscan_peek(scan, 0) == close) { /* a trailing comma */
        cn_confscan_skip(scan);
        *more = false;
    }
    return true;
}

static bool parse_member(struct cn_confscan *scan, struct cn_confnode *table)
{
    int line = scan->line, column = cn_confscan_column(scan);
    if (cn_confscan_peek(scan, 0) != '"')
        return cn_confscan_fail(scan, "expected a key in double quotes") != NULL;
    struct cn_buf key = {0};
    bool good = parse_string(scan, &key);
    const char *name = good ? cn_buf_text(&key) : NULL;
    if (good && strlen(name) != key.size)
        good = cn_confscan_fail_at(scan, line, column, "a key must not hold a NUL character");
    if (good && cn_confnode_find(table, name))
        good = cn_confscan_fail_at(scan, line, column,
                                   "the key \"%s\" appears twice (first on line %d)", name,
                                   cn_confnode_find(table, name)->line);
    if (good && skip_blank(scan) && cn_confscan_peek(scan, 0) != ':')
        good = cn_confscan_fail(scan, "expected ':' after the key");
    struct cn_confnode *value = NULL;
    if (good && !scan->failed) {
        cn_confscan_skip(scan);
        value = parse_value(scan);
    }
    if (value)
        cn_confnode_add(table, name, value);
    cn_buf_fini(&key);
    return value != NULL;
}

static struct cn_confnode *parse_container(struct cn_confscan *scan, enum cn_confnode_kind kind)
{
    int close = kind == CN_CONF_TABLE ? '}' : ']';
    struct cn_confnode *node = cn_confscan_node(scan, kind);
    if (!node)
        return NULL;
    if (++scan->depth > CN_CONF_DEPTH_MAX) {
        cn_confscan_fail(scan, "nested deeper than %d levels", CN_CONF_DEPTH_MAX);
        goto fail;
    }
    cn_confscan_skip(scan);
    if (!skip_blank(scan))
        goto fail;
    bool more = cn_confscan_peek(scan, 0) != close;
    if (!more)
        cn_confscan_skip(scan);
    while (more) {
        if (kind == CN_CONF_TABLE) {
            if (!parse_member(scan, node))
                goto fail;
        } else {
            struct cn_confnode *item = parse_value(scan);
            if (!item)
                goto fail;
            cn_confnode_push(node, item);
        }
        if (!parse_separator(scan, close, &more))
            goto fail;
    }
    scan->depth--;
    return node;
fail:
    cn_confnode_free(node);
    return NULL;
}

static struct cn_confnode *parse_word(struct cn_confscan *scan, const char *word,
                                      enum cn_confnode_kind kind)
{
    struct cn_confnode *node = cn_confscan_node(scan, kind);
    size_t size = strlen(word);
    if (!node)
        return NULL;
    if (scan->length - scan->pos < size || memcmp(scan->text + scan->pos, word, size) != 0) {
        cn_confnode_free(node);
        return cn_confscan_fail(scan, "this is not a JSON value");
    }
    if (kind == CN_CONF_BOOL)
        node->boolean = *word == 't';
    scan->pos += size;
    return node;
}

static struct cn_confnode *parse_value(struct cn_confscan *scan)
{
    if (!skip_blank(scan))
        return NULL;
    switch (cn_confscan_peek(scan, 0)) {
    case -1:
        return cn_confscan_fail(scan, "the file ends where a value should be");
    case '{':
        return parse_container(scan, CN_CONF_TABLE);
    case '[':
        return parse_container(scan, CN_CONF_ARRAY);
    case '"':
        return parse_text(scan);
    case 't':
        return parse_word(scan, "true", CN_CONF_BOOL);
    case 'f':
        return parse_word(scan, "false", CN_CONF_BOOL);
    case 'n':
        return parse_word(scan, "null", CN_CONF_NULL);
    default:
        return parse_number(scan);
    }
}

struct cn_confnode *cn_jsonc_parse(const char *name, const char *text, size_t length,
                                   struct cn_err *err)
{
    struct cn_confscan scan;
    if (!cn_confscan_init(&scan, name, text, length, err))
        return NULL;
    struct cn_confnode *root = parse_value(&scan);
    if (root && skip_blank(&scan) && cn_confscan_peek(&scan, 0) >= 0)
        cn_confscan_fail(&scan, "nothing may follow the first value");
    if (scan.failed) {
        cn_confnode_free(root);
        return NULL;
    }
    return root;
}
