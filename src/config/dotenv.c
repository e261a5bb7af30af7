/* SPDX-License-Identifier: Apache-2.0 */
/* config/dotenv.c - the .dev.vars and .env files of a project.
 *
 *     # a comment
 *     KEY=value            # up to a '#', ends trimmed
 *     export KEY="a\nb"    # double quotes: \n and \r mean line ends
 *     KEY='literal'        # single quotes and backticks: as written
 *
 * Quoted values may span lines. A key that comes again replaces the first. */
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "config/config.h"
#include "config/confscan.h"

static bool is_key_char(int c)
{
    return (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z') || c == '_' || c == '.' ||
           c == '-';
}

static void skip_spaces(struct cn_confscan *scan)
{
    int c;
    while ((c = cn_confscan_peek(scan, 0)) == ' ' || c == '\t' || c == '\r')
        cn_confscan_skip(scan);
}

static void skip_line(struct cn_confscan *scan)
{
    while (cn_confscan_peek(scan, 0) >= 0 && cn_confscan_peek(scan, 0) != '\n')
        cn_confscan_skip(scan);
}

static bool read_key(struct cn_confscan *scan, struct cn_buf *key)
{
    cn_buf_clear(key);
    while (is_key_char(cn_confscan_peek(scan, 0))) {
        cn_buf_append_byte(key, (uint8_t)cn_confscan_peek(scan, 0));
        cn_confscan_skip(scan);
    }
    return key->size > 0;
}

/* The cursor stands on the opening quote. */
static bool read_quoted(struct cn_confscan *scan, struct cn_buf *value)
{
    int quote = cn_confscan_peek(scan, 0), line = scan->line, column = cn_confscan_column(scan);
    cn_confscan_skip(scan);
    for (int c; (c = cn_confscan_peek(scan, 0)) != quote;) {
        int next = cn_confscan_peek(scan, 1);
        if (c < 0)
            return cn_confscan_fail_at(scan, line, column, "this value is never closed") != NULL;
        cn_confscan_skip(scan);
        if (c == '\\' && quote == '"' && (next == 'n' || next == 'r')) {
            c = next == 'n' ? '\n' : '\r';
            cn_confscan_skip(scan);
        } else if (c == '\\' && next == quote) {
            c = quote;
            cn_confscan_skip(scan);
        }
        cn_buf_append_byte(value, (uint8_t)c);
    }
    cn_confscan_skip(scan);
    skip_spaces(scan);
    int after = cn_confscan_peek(scan, 0);
    if (after >= 0 && after != '\n' && after != '#')
        return cn_confscan_fail(scan, "nothing but a comment may follow the closing quote") != NULL;
    skip_line(scan);
    return true;
}

static void read_plain(struct cn_confscan *scan, struct cn_buf *value)
{
    int c;
    while ((c = cn_confscan_peek(scan, 0)) >= 0 && c != '\n' && c != '#') {
        cn_buf_append_byte(value, (uint8_t)c);
        cn_confscan_skip(scan);
    }
    while (value->size && strchr(" \t\r", value->data[value->size - 1]))
        value->size--;
    skip_line(scan);
}

static void set_text(struct cn_confnode *table, const char *key, const struct cn_buf *value,
                     int line)
{
    struct cn_confnode *node = cn_confnode_find(table, key);
    if (!node) {
        node =
            cn_confnode_new_text(CN_CONF_STRING, (const char *)value->data, value->size, line, 1);
        cn_confnode_add(table, key, node);
        return;
    }
    cn_free(node->text);
    node->text = cn_strndup(value->data ? (const char *)value->data : "", value->size);
    node->length = value->size;
    node->line = line;
}

/* One "KEY=value"; the cursor stands on the key. */
static bool read_entry(struct cn_confscan *scan, struct cn_confnode *table, struct cn_buf *key,
                       struct cn_buf *value)
{
    int line = scan->line;
    if (!read_key(scan, key))
        return cn_confscan_fail(scan, "expected KEY=value") != NULL;
    skip_spaces(scan);
    if (strcmp(cn_buf_text(key), "export") == 0 && is_key_char(cn_confscan_peek(scan, 0))) {
        read_key(scan, key);
        skip_spaces(scan);
    }
    if (cn_confscan_peek(scan, 0) != '=')
        return cn_confscan_fail(scan, "expected '=' after \"%s\"", cn_buf_text(key)) != NULL;
    cn_confscan_skip(scan);
    skip_spaces(scan);
    cn_buf_clear(value);
    int quote = cn_confscan_peek(scan, 0);
    if (quote == '"' || quote == '\'' || quote == '`') {
        if (!read_quoted(scan, value))
            return false;
    } else {
        read_plain(scan, value);
    }
    if (value->size && memchr(value->data, 0, value->size))
        return cn_confscan_fail_at(scan, line, 1, "a value must not hold a NUL character") != NULL;
    if (++scan->node_count > CN_CONF_NODE_MAX)
        return cn_confscan_fail(scan, "more than %d values in one file", CN_CONF_NODE_MAX) != NULL;
    set_text(table, cn_buf_text(key), value, line);
    return true;
}

struct cn_confnode *cn_dotenv_parse(const char *name, const char *text, size_t length,
                                    struct cn_err *err)
{
    struct cn_confscan scan;
    if (!cn_confscan_init(&scan, name, text, length, err))
        return NULL;
    struct cn_confnode *table = cn_confnode_new(CN_CONF_TABLE, 1, 1);
    struct cn_buf key = {0}, value = {0};
    while (!scan.failed && cn_confscan_peek(&scan, 0) >= 0) {
        skip_spaces(&scan);
        int c = cn_confscan_peek(&scan, 0);
        if (c == '#')
            skip_line(&scan);
        else if (c >= 0 && c != '\n')
            read_entry(&scan, table, &key, &value);
        if (!scan.failed && cn_confscan_peek(&scan, 0) == '\n')
            cn_confscan_skip(&scan);
    }
    cn_buf_fini(&key);
    cn_buf_fini(&value);
    if (scan.failed) {
        cn_confnode_free(table);
        return NULL;
    }
    return table;
}
