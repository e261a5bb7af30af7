/* SPDX-License-Identifier: Apache-2.0 */
/* config/toml.c - TOML 1.0, complete and strict.
 *
 * What may be extended later is TOML's subtle part. Each table remembers how
 * it came to be (node->flags), and these rules follow from the specification:
 *
 *   T1  A [header] defines a table once. It may name a table that so far only
 *       existed as the path to another one (IMPLICIT), never one that was
 *       defined, made by dotted keys, written inline, or that is another kind
 *       of value.
 *   T2  Dotted keys extend only tables made by dotted keys (DOTTED), and only
 *       from within the table where these keys began.
 *   T3  An inline table or array ({...}, [...]) is complete where it stands
 *       (CLOSED).
 *   T4  [[header]] appends to an array that [[header]] made (TABLES). A path
 *       through such an array means its last table. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "config/confscan.h"

enum {
    IMPLICIT = 1,
    DEFINED = 2,
    DOTTED = 4,
    CLOSED = 8,
    TABLES = 16,
};

#define KEY_PARTS_MAX CN_CONF_DEPTH_MAX

/* a.b."c d" */
struct key_path {
    char *parts[KEY_PARTS_MAX]; /* owned */
    int columns[KEY_PARTS_MAX];
    size_t count;
    int line;
};

static struct cn_confnode *parse_value(struct cn_confscan *scan);

static void path_fini(struct key_path *path)
{
    for (size_t i = 0; i < path->count; i++)
        cn_free(path->parts[i]);
    path->count = 0;
}

static void skip_spaces(struct cn_confscan *scan)
{
    while (cn_confscan_peek(scan, 0) == ' ' || cn_confscan_peek(scan, 0) == '\t')
        cn_confscan_skip(scan);
}

/* Moves over one line end, if the cursor stands on it. */
static bool skip_newline(struct cn_confscan *scan)
{
    if (cn_confscan_peek(scan, 0) == '\r' && cn_confscan_peek(scan, 1) == '\n')
        cn_confscan_skip(scan);
    if (cn_confscan_peek(scan, 0) != '\n')
        return false;
    cn_confscan_skip(scan);
    return true;
}

static bool is_forbidden_control(int c)
{
    return (c >= 0 && c < 0x20 && c != '\t') || c == 0x7f;
}

/* Moves over a comment up to its line end. False: it holds a control character. */
static bool skip_comment(struct cn_confscan *scan)
{
    if (cn_confscan_peek(scan, 0) != '#')
        return true;
    for (;;) {
        int c = cn_confscan_peek(scan, 0);
        if (c < 0 || c == '\n' || (c == '\r' && cn_confscan_peek(scan, 1) == '\n'))
            return true;
        if (is_forbidden_control(c))
            return cn_confscan_fail(scan, "a comment must not hold control characters") != NULL;
        cn_confscan_skip(scan);
    }
}

/* White space, line ends and comments, as inside an array or between statements. */
static bool skip_blank_lines(struct cn_confscan *scan)
{
    do {
        skip_spaces(scan);
        if (!skip_comment(scan))
            return false;
    } while (skip_newline(scan));
    return true;
}

static bool parse_escape(struct cn_confscan *scan, struct cn_buf *out)
{
    static const char names[] = "btnfr\"\\", values[] = "\b\t\n\f\r\"\\";
    int c = cn_confscan_peek(scan, 0);
    const char *known = c > 0 ? strchr(names, c) : NULL;
    if (known) {
        cn_confscan_skip(scan);
        cn_buf_append_byte(out, (uint8_t)values[known - names]);
        return true;
    }
    if (c != 'u' && c != 'U')
        return cn_confscan_fail(scan, "unknown escape in a string (use single quotes for text "
                                      "with backslashes)") != NULL;
    cn_confscan_skip(scan);
    int64_t code = cn_confscan_hex(scan, c == 'u' ? 4 : 8);
    if (code < 0)
        return cn_confscan_fail(scan, "\\%c needs %d hexadecimal digits", c, c == 'u' ? 4 : 8) !=
               NULL;
    if (code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
        return cn_confscan_fail(scan, "this escape is not a Unicode character") != NULL;
    cn_confscan_append_utf8(out, (uint32_t)code);
    return true;
}

/* A string on one line; the cursor stands on its quote. */
static bool parse_short_string(struct cn_confscan *scan, struct cn_buf *out)
{
    int quote = cn_confscan_peek(scan, 0), line = scan->line, column = cn_confscan_column(scan);
    cn_confscan_skip(scan);
    for (;;) {
        int c = cn_confscan_peek(scan, 0);
        if (c < 0 || c == '\n' || c == '\r')
            return cn_confscan_fail_at(scan, line, column, "this string is never closed") != NULL;
        if (is_forbidden_control(c))
            return cn_confscan_fail(scan, "a control character must be written as an escape") !=
                   NULL;
        cn_confscan_skip(scan);
        if (c == quote)
            return true;
        if (c == '\\' && quote == '"') {
            if (!parse_escape(scan, out))
                return false;
        } else {
            cn_buf_append_byte(out, (uint8_t)c);
        }
    }
}

/* A backslash at the end of a line swallows the white space after it. */
static bool skip_line_continuation(struct cn_confscan *scan)
{
    size_t ahead = 0;
    while (cn_confscan_peek(scan, ahead) == ' ' || cn_confscan_peek(scan, ahead) == '\t')
        ahead++;
    if (cn_confscan_peek(scan, ahead) == '\r')
        ahead++;
    if (cn_confscan_peek(scan, ahead) != '\n')
        return false;
    do
        skip_spaces(scan);
    while (skip_newline(scan));
    return true;
}

/* A string in triple quotes; the cursor stands on the first. */
static bool parse_long_string(struct cn_confscan *scan, struct cn_buf *out)
{
    int quote = cn_confscan_peek(scan, 0), line = scan->line, column = cn_confscan_column(scan);
    for (int i = 0; i < 3; i++)
        cn_confscan_skip(scan);
    skip_newline(scan);
    for (;;) {
        int c = cn_confscan_peek(scan, 0);
        if (c < 0)
            return cn_confscan_fail_at(scan, line, column, "this string is never closed") != NULL;
        if (c == quote && cn_confscan_peek(scan, 1) == quote &&
            cn_confscan_peek(scan, 2) == quote) {
            /* Up to two quotes may stand directly before the closing three. */
            for (int i = 0; i < 2 && cn_confscan_peek(scan, 3) == quote; i++) {
                cn_buf_append_byte(out, (uint8_t)quote);
                cn_confscan_skip(scan);
            }
            for (int i = 0; i < 3; i++)
                cn_confscan_skip(scan);
            return true;
        }
        if (skip_newline(scan)) {
            cn_buf_append_byte(out, '\n');
            continue;
        }
        if (is_forbidden_control(c))
            return cn_confscan_fail(scan, "a control character must be written as an escape") !=
                   NULL;
        cn_confscan_skip(scan);
        if (c != '\\' || quote != '"')
            cn_buf_append_byte(out, (uint8_t)c);
        else if (!skip_line_continuation(scan) && !parse_escape(scan, out))
            return false;
    }
}

static struct cn_confnode *parse_text(struct cn_confscan *scan)
{
    int quote = cn_confscan_peek(scan, 0);
    bool is_long = cn_confscan_peek(scan, 1) == quote && cn_confscan_peek(scan, 2) == quote;
    return cn_confscan_text(scan, is_long ? parse_long_string : parse_short_string);
}

static bool is_digit(int c)
{
    return c >= '0' && c <= '9';
}

static bool is_bare_key(int c)
{
    return is_digit(c) || ((c | 32) >= 'a' && (c | 32) <= 'z') || c == '_' || c == '-';
}

/* One part of a key, owned by the caller; NULL: failed. */
static char *parse_key_part(struct cn_confscan *scan)
{
    struct cn_buf buf = {0};
    int c = cn_confscan_peek(scan, 0);
    if (c == '"' || c == '\'') {
        int column = cn_confscan_column(scan);
        if (!parse_short_string(scan, &buf))
            goto fail;
        if (buf.size != strlen(cn_buf_text(&buf))) {
            cn_confscan_fail_at(scan, scan->line, column, "a key must not hold a NUL character");
            goto fail;
        }
    } else {
        while (is_bare_key(cn_confscan_peek(scan, 0))) {
            cn_buf_append_byte(&buf, (uint8_t)cn_confscan_peek(scan, 0));
            cn_confscan_skip(scan);
        }
        if (buf.size == 0) {
            cn_confscan_fail(scan, "expected a key");
            goto fail;
        }
    }
    cn_buf_text(&buf);
    return (char *)cn_buf_take(&buf);
fail:
    cn_buf_fini(&buf);
    return NULL;
}

static bool parse_key_path(struct cn_confscan *scan, struct key_path *path)
{
    path->count = 0;
    path->line = scan->line;
    for (;;) {
        skip_spaces(scan);
        if (path->count == KEY_PARTS_MAX)
            return cn_confscan_fail(scan, "a key with more than %d parts", KEY_PARTS_MAX) != NULL;
        path->columns[path->count] = cn_confscan_column(scan);
        char *part = parse_key_part(scan);
        if (!part)
            return false;
        path->parts[path->count++] = part;
        skip_spaces(scan);
        if (cn_confscan_peek(scan, 0) != '.')
            return true;
        cn_confscan_skip(scan);
    }
}

static struct cn_confnode *add_table(struct cn_confscan *scan, struct cn_confnode *parent,
                                     const struct key_path *path, size_t index, unsigned flags)
{
    struct cn_confnode *table = cn_confscan_node(scan, CN_CONF_TABLE);
    if (!table)
        return NULL;
    table->flags = flags;
    table->line = path->line;
    table->column = path->columns[index];
    cn_confnode_add(parent, path->parts[index], table);
    return table;
}

static void *fail_twice(struct cn_confscan *scan, const struct key_path *path, size_t index,
                        const struct cn_confnode *first)
{
    return cn_confscan_fail_at(scan, path->line, path->columns[index],
                               "\"%s\" is already defined on line %d", path->parts[index],
                               first->line);
}

/* key = value, inside `table` (T2, T3). */
static bool parse_pair(struct cn_confscan *scan, struct cn_confnode *table)
{
    struct key_path path = {0};
    bool good = false;
    if (!parse_key_path(scan, &path))
        goto out;
    if (scan->depth + path.count - 1 > CN_CONF_DEPTH_MAX) {
        cn_confscan_fail(scan, "nested deeper than %d levels", CN_CONF_DEPTH_MAX);
        goto out;
    }
    if (cn_confscan_peek(scan, 0) != '=') {
        cn_confscan_fail(scan, "expected '=' after the key \"%s\"", path.parts[path.count - 1]);
        goto out;
    }
    cn_confscan_skip(scan);
    skip_spaces(scan);
    size_t last = path.count - 1;
    for (size_t i = 0; i < last; i++) {
        struct cn_confnode *next = cn_confnode_find(table, path.parts[i]);
        if (!next)
            next = add_table(scan, table, &path, i, DOTTED);
        else if (next->kind != CN_CONF_TABLE || !(next->flags & DOTTED))
            next = fail_twice(scan, &path, i, next);
        if (!next)
            goto out;
        table = next;
    }
    struct cn_confnode *before = cn_confnode_find(table, path.parts[last]);
    if (before) {
        fail_twice(scan, &path, last, before);
        goto out;
    }
    scan->depth += (unsigned)last;
    struct cn_confnode *value = parse_value(scan);
    scan->depth -= (unsigned)last;
    if (!value)
        goto out;
    cn_confnode_add(table, path.parts[last], value);
    good = true;
out:
    path_fini(&path);
    return good;
}

static struct cn_confnode *parse_array(struct cn_confscan *scan)
{
    struct cn_confnode *array = cn_confscan_node(scan, CN_CONF_ARRAY);
    if (!array)
        return NULL;
    array->flags = CLOSED;
    cn_confscan_skip(scan);
    for (;;) {
        if (!skip_blank_lines(scan))
            goto fail;
        if (cn_confscan_peek(scan, 0) == ']')
            break;
        struct cn_confnode *item = parse_value(scan);
        if (!item)
            goto fail;
        cn_confnode_push(array, item);
        if (!skip_blank_lines(scan))
            goto fail;
        if (cn_confscan_peek(scan, 0) == ',') {
            cn_confscan_skip(scan);
        } else if (cn_confscan_peek(scan, 0) != ']') {
            cn_confscan_fail(scan, "expected ',' or ']' in the array that begins on line %d",
                             array->line);
            goto fail;
        }
    }
    cn_confscan_skip(scan);
    return array;
fail:
    cn_confnode_free(array);
    return NULL;
}

/* Everything below an inline table is complete (T3). */
static void close_tables(struct cn_confnode *node)
{
    if (node->kind != CN_CONF_TABLE)
        return;
    node->flags = CLOSED;
    for (size_t i = 0; i < node->count; i++)
        close_tables(node->items[i]);
}

static struct cn_confnode *parse_inline_table(struct cn_confscan *scan)
{
    struct cn_confnode *table = cn_confscan_node(scan, CN_CONF_TABLE);
    if (!table)
        return NULL;
    cn_confscan_skip(scan);
    skip_spaces(scan);
    if (cn_confscan_peek(scan, 0) != '}') {
        for (;;) {
            if (!parse_pair(scan, table))
                goto fail;
            skip_spaces(scan);
            int c = cn_confscan_peek(scan, 0);
            if (c == '}')
                break;
            if (c != ',') {
                cn_confscan_fail(scan, "expected ',' or '}' in this inline table (it must stand "
                                       "on one line)");
                goto fail;
            }
            cn_confscan_skip(scan);
        }
    }
    cn_confscan_skip(scan);
    close_tables(table);
    return table;
fail:
    cn_confnode_free(table);
    return NULL;
}

static bool digits_at(const char *text, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!is_digit((unsigned char)text[i]))
            return false;
    return true;
}

static int two_digits(const char *text)
{
    return (text[0] - '0') * 10 + (text[1] - '0');
}

/* Size of a date "1979-05-27" at `text` (NUL-terminated), 0 if there is none. */
static size_t match_date(const char *text)
{
    static const int days[] = {31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    if (strlen(text) < 10 || !digits_at(text, 4) || text[4] != '-' || !digits_at(text + 5, 2) ||
        text[7] != '-' || !digits_at(text + 8, 2))
        return 0;
    int year = two_digits(text) * 100 + two_digits(text + 2);
    int month = two_digits(text + 5), day = two_digits(text + 8);
    if (month < 1 || month > 12 || day < 1 || day > days[month - 1])
        return 0;
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return month == 2 && day == 29 && !leap ? 0 : 10;
}

/* Size of a time "07:32:00.99" at `text`, 0 if there is none. */
static size_t match_time(const char *text)
{
    if (strlen(text) < 8 || !digits_at(text, 2) || text[2] != ':' || !digits_at(text + 3, 2) ||
        text[5] != ':' || !digits_at(text + 6, 2))
        return 0;
    if (two_digits(text) > 23 || two_digits(text + 3) > 59 || two_digits(text + 6) > 60)
        return 0;
    size_t size = 8;
    if (text[size] == '.') {
        if (!is_digit((unsigned char)text[++size]))
            return 0;
        while (is_digit((unsigned char)text[size]))
            size++;
    }
    return size;
}

static bool is_datetime(const char *text)
{
    size_t size = match_date(text);
    if (size == 0)
        return match_time(text) == strlen(text) && *text;
    text += size;
    if (*text == 0)
        return true;
    if (*text != 'T' && *text != 't' && *text != ' ')
        return false;
    text++;
    size = match_time(text);
    if (size == 0)
        return false;
    text += size;
    if (*text == 0 || ((*text | 32) == 'z' && text[1] == 0))
        return true;
    return (*text == '+' || *text == '-') && strlen(text) == 6 && digits_at(text + 1, 2) &&
           text[3] == ':' && digits_at(text + 4, 2) && two_digits(text + 1) < 24 &&
           two_digits(text + 4) < 60;
}

static bool is_base_digit(int c, int base)
{
    if (is_digit(c))
        return c - '0' < base;
    return base == 16 && (c | 32) >= 'a' && (c | 32) <= 'f';
}

/* Copies the digits at *from without their underscores, each of which must
 * stand between two digits. False: there is no digit, or a stray underscore. */
static bool copy_digits(const char **from, char **to, int base)
{
    const char *text = *from;
    if (!is_base_digit((unsigned char)*text, base))
        return false;
    for (; is_base_digit((unsigned char)*text, base) || *text == '_'; text++) {
        if (*text != '_')
            *(*to)++ = *text;
        else if (!is_base_digit((unsigned char)text[1], base))
            return false;
    }
    *from = text;
    return true;
}

/* Integers and floats. False: `text` is neither, or out of range. */
static bool parse_number_text(const char *text, struct cn_confnode *node)
{
    char digits[80];
    char *to = digits;
    const char *from = text;
    int base = 10;
    if (*from == '+' || *from == '-') {
        *to++ = *from++;
        if (*from == '0' && is_digit((unsigned char)from[1]))
            return false;
    }
    if (strcmp(from, "inf") == 0 || strcmp(from, "nan") == 0) {
        node->kind = CN_CONF_FLOAT;
        node->number = *from == 'i' ? (double)INFINITY : (double)NAN;
        if (*text == '-')
            node->number = -node->number;
        return true;
    }
    if (from == text && from[0] == '0' && (from[1] == 'x' || from[1] == 'o' || from[1] == 'b')) {
        base = from[1] == 'x' ? 16 : from[1] == 'o' ? 8 : 2;
        from += 2;
    } else if (from[0] == '0' && (is_digit((unsigned char)from[1]) || from[1] == '_')) {
        return false;
    }
    if (!copy_digits(&from, &to, base))
        return false;
    bool whole = true;
    if (base == 10 && *from == '.') {
        whole = false;
        *to++ = *from++;
        if (!copy_digits(&from, &to, 10))
            return false;
    }
    if (base == 10 && (*from | 32) == 'e') {
        whole = false;
        *to++ = *from++;
        if (*from == '+' || *from == '-')
            *to++ = *from++;
        if (!copy_digits(&from, &to, 10))
            return false;
    }
    *to = 0;
    if (*from)
        return false;
    errno = 0;
    node->kind = whole ? CN_CONF_INTEGER : CN_CONF_FLOAT;
    if (whole)
        node->integer = strtoll(digits, NULL, base);
    else
        node->number = strtod(digits, NULL);
    return whole ? errno == 0 : isfinite(node->number);
}

/* Numbers, dates, true and false: everything without quotes or brackets. */
static struct cn_confnode *parse_scalar(struct cn_confscan *scan)
{
    char word[72];
    size_t size = 0;
    for (;; size++) {
        int c = cn_confscan_peek(scan, size);
        bool date_space = c == ' ' && size == 10 && is_digit(cn_confscan_peek(scan, size + 1)) &&
                          cn_confscan_peek(scan, 4) == '-';
        if (!is_bare_key(c) && c != '+' && c != '.' && c != ':' && !date_space)
            break;
        if (size + 1 == sizeof(word))
            return cn_confscan_fail(scan, "this value is too long; text needs quotes");
        word[size] = (char)c;
    }
    word[size] = 0;
    if (size == 0)
        return cn_confscan_fail(scan, "expected a value");
    struct cn_confnode *node = cn_confscan_node(scan, CN_CONF_NULL);
    if (!node)
        return NULL;
    if (strcmp(word, "true") == 0 || strcmp(word, "false") == 0) {
        node->kind = CN_CONF_BOOL;
        node->boolean = *word == 't';
    } else if (is_datetime(word)) {
        node->kind = CN_CONF_DATETIME;
        node->text = cn_strndup(word, size);
        node->length = size;
    } else if (!parse_number_text(word, node)) {
        node->kind = CN_CONF_NULL;
        cn_confnode_free(node);
        return cn_confscan_fail(scan,
                                "\"%s\" is no number, date or boolean that TOML knows (text needs "
                                "quotes)",
                                word);
    }
    scan->pos += size;
    return node;
}

static struct cn_confnode *parse_value(struct cn_confscan *scan)
{
    struct cn_confnode *value;
    int c = cn_confscan_peek(scan, 0);
    if (c == '"' || c == '\'')
        return parse_text(scan);
    if (c != '[' && c != '{')
        return parse_scalar(scan);
    if (++scan->depth > CN_CONF_DEPTH_MAX)
        return cn_confscan_fail(scan, "nested deeper than %d levels", CN_CONF_DEPTH_MAX);
    value = c == '[' ? parse_array(scan) : parse_inline_table(scan);
    scan->depth--;
    return value;
}

/* The table that `parent` holds under path part `index`, as a step of a header's path. */
static struct cn_confnode *header_step(struct cn_confscan *scan, struct cn_confnode *parent,
                                       const struct key_path *path, size_t index)
{
    struct cn_confnode *next = cn_confnode_find(parent, path->parts[index]);
    scan->depth += next && next->kind == CN_CONF_ARRAY ? 2 : 1;
    if (!next)
        return add_table(scan, parent, path, index, IMPLICIT);
    if (next->kind == CN_CONF_ARRAY && (next->flags & TABLES))
        return next->items[next->count - 1]; /* T4 */
    if (next->kind != CN_CONF_TABLE || (next->flags & CLOSED))
        return fail_twice(scan, path, index, next);
    return next;
}

/* [a.b] (T1): the table that it opens. */
static struct cn_confnode *open_table(struct cn_confscan *scan, struct cn_confnode *parent,
                                      const struct key_path *path)
{
    size_t last = path->count - 1;
    struct cn_confnode *table = cn_confnode_find(parent, path->parts[last]);
    if (!table)
        return add_table(scan, parent, path, last, DEFINED);
    if (table->kind != CN_CONF_TABLE || table->flags != IMPLICIT)
        return fail_twice(scan, path, last, table);
    table->flags = DEFINED;
    table->line = path->line;
    table->column = path->columns[last];
    return table;
}

/* [[a.b]] (T4): the new table at the end of the array. */
static struct cn_confnode *append_table(struct cn_confscan *scan, struct cn_confnode *parent,
                                        const struct key_path *path)
{
    size_t last = path->count - 1;
    struct cn_confnode *array = cn_confnode_find(parent, path->parts[last]);
    if (array && (array->kind != CN_CONF_ARRAY || !(array->flags & TABLES)))
        return fail_twice(scan, path, last, array);
    struct cn_confnode *table = cn_confscan_node(scan, CN_CONF_TABLE);
    if (!table)
        return NULL;
    table->flags = DEFINED;
    table->line = path->line;
    table->column = path->columns[last];
    if (!array) {
        array = cn_confnode_new(CN_CONF_ARRAY, path->line, path->columns[last]);
        array->flags = TABLES;
        cn_confnode_add(parent, path->parts[last], array);
    }
    cn_confnode_push(array, table);
    return table;
}

/* A header line; the table that the following pairs belong to. NULL: failed. */
static struct cn_confnode *parse_header(struct cn_confscan *scan, struct cn_confnode *root)
{
    struct key_path path = {0};
    struct cn_confnode *table = NULL, *parent = root;
    bool is_array = cn_confscan_peek(scan, 1) == '[';
    cn_confscan_skip(scan);
    if (is_array)
        cn_confscan_skip(scan);
    if (!parse_key_path(scan, &path))
        goto out;
    if (cn_confscan_peek(scan, 0) != ']' || (is_array && cn_confscan_peek(scan, 1) != ']')) {
        cn_confscan_fail(scan, "expected '%s' after the table's name", is_array ? "]]" : "]");
        goto out;
    }
    cn_confscan_skip(scan);
    if (is_array)
        cn_confscan_skip(scan);
    scan->depth = 1;
    for (size_t i = 0; i + 1 < path.count; i++) {
        parent = header_step(scan, parent, &path, i);
        if (!parent)
            goto out;
    }
    scan->depth += is_array ? 2 : 1;
    if (scan->depth > CN_CONF_DEPTH_MAX)
        cn_confscan_fail(scan, "nested deeper than %d levels", CN_CONF_DEPTH_MAX);
    else
        table = is_array ? append_table(scan, parent, &path) : open_table(scan, parent, &path);
out:
    path_fini(&path);
    return table;
}

/* Dotted keys may extend only what the same table's body made (T2): when a
 * body ends, its dotted tables become like any defined one. */
static void seal_dotted(struct cn_confnode *table)
{
    for (size_t i = 0; i < table->count; i++) {
        struct cn_confnode *child = table->items[i];
        if (child->kind == CN_CONF_TABLE && (child->flags & DOTTED)) {
            child->flags = DEFINED;
            seal_dotted(child);
        }
    }
}

static bool parse_document(struct cn_confscan *scan, struct cn_confnode *root)
{
    struct cn_confnode *table = root;
    for (;;) {
        if (!skip_blank_lines(scan))
            return false;
        int c = cn_confscan_peek(scan, 0);
        if (c < 0)
            return true;
        if (c == '[') {
            seal_dotted(table);
            table = parse_header(scan, root);
            if (!table)
                return false;
        } else if (!parse_pair(scan, table)) {
            return false;
        }
        skip_spaces(scan);
        if (!skip_comment(scan))
            return false;
        if (cn_confscan_peek(scan, 0) >= 0 && !skip_newline(scan))
            return cn_confscan_fail(scan, "expected the end of the line") != NULL;
    }
}

struct cn_confnode *cn_toml_parse(const char *name, const char *text, size_t length,
                                  struct cn_err *err)
{
    struct cn_confscan scan;
    if (!cn_confscan_init(&scan, name, text, length, err))
        return NULL;
    struct cn_confnode *root = cn_confnode_new(CN_CONF_TABLE, 1, 1);
    root->flags = DEFINED;
    scan.depth = 1;
    if (!parse_document(&scan, root)) {
        cn_confnode_free(root);
        return NULL;
    }
    return root;
}
