/* SPDX-License-Identifier: Apache-2.0 */
#include "config/confnode.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/buf.h"
#include "base/mem.h"

/* Tables up to this many keys are searched one by one. */
#define INDEX_FROM 16

struct cn_confnode *cn_confnode_new(enum cn_confnode_kind kind, int line, int column)
{
    struct cn_confnode *node = CN_NEW(struct cn_confnode);
    node->kind = kind;
    node->line = line;
    node->column = column;
    return node;
}

struct cn_confnode *cn_confnode_new_text(enum cn_confnode_kind kind, const char *text,
                                         size_t length, int line, int column)
{
    CN_ASSERT(kind == CN_CONF_STRING || kind == CN_CONF_DATETIME);
    struct cn_confnode *node = cn_confnode_new(kind, line, column);
    node->text = cn_strndup(text ? text : "", length);
    node->length = length;
    return node;
}

void cn_confnode_free(struct cn_confnode *node)
{
    if (!node)
        return;
    switch (node->kind) {
    case CN_CONF_TABLE:
    case CN_CONF_ARRAY:
        for (size_t i = 0; i < node->count; i++)
            cn_confnode_free(node->items[i]);
        cn_free(node->items);
        if (node->index) {
            cn_map_fini(node->index);
            cn_free(node->index);
        }
        break;
    case CN_CONF_STRING:
    case CN_CONF_DATETIME:
        cn_free(node->text);
        break;
    case CN_CONF_INTEGER:
    case CN_CONF_FLOAT:
    case CN_CONF_BOOL:
    case CN_CONF_NULL:
        break;
    }
    cn_free(node->key);
    cn_free(node);
}

struct cn_confnode *cn_confnode_find(const struct cn_confnode *table, const char *key)
{
    CN_ASSERT(table->kind == CN_CONF_TABLE);
    if (table->index)
        return cn_map_find(table->index, key, strlen(key));
    for (size_t i = 0; i < table->count; i++)
        if (strcmp(table->items[i]->key, key) == 0)
            return table->items[i];
    return NULL;
}

static void items_append(struct cn_confnode *parent, struct cn_confnode *child)
{
    CN_GROW(parent->items, parent->count, parent->capacity);
    parent->items[parent->count++] = child;
}

void cn_confnode_add(struct cn_confnode *table, const char *key, struct cn_confnode *child)
{
    CN_ASSERT(!child->key && !cn_confnode_find(table, key));
    child->key = cn_strdup(key);
    items_append(table, child);
    if (table->index) {
        cn_map_set(table->index, key, strlen(key), child);
    } else if (table->count > INDEX_FROM) {
        table->index = CN_NEW(struct cn_map);
        cn_map_init(table->index);
        for (size_t i = 0; i < table->count; i++)
            cn_map_set(table->index, table->items[i]->key, strlen(table->items[i]->key),
                       table->items[i]);
    }
}

void cn_confnode_push(struct cn_confnode *array, struct cn_confnode *child)
{
    CN_ASSERT(array->kind == CN_CONF_ARRAY && !child->key);
    items_append(array, child);
}

const char *cn_confnode_kind_name(enum cn_confnode_kind kind)
{
    static const char *const names[] = {
        [CN_CONF_TABLE] = "a table",   [CN_CONF_ARRAY] = "an array",
        [CN_CONF_STRING] = "a string", [CN_CONF_INTEGER] = "an integer",
        [CN_CONF_FLOAT] = "a number",  [CN_CONF_BOOL] = "true or false",
        [CN_CONF_DATETIME] = "a date", [CN_CONF_NULL] = "null",
    };
    return names[kind];
}

void cn_confnode_write_json(const struct cn_confnode *node, struct cn_buf *out)
{
    switch (node->kind) {
    case CN_CONF_TABLE:
        cn_buf_append_byte(out, '{');
        for (size_t i = 0; i < node->count; i++) {
            if (i)
                cn_buf_append_byte(out, ',');
            cn_buf_append_json(out, node->items[i]->key, strlen(node->items[i]->key));
            cn_buf_append_byte(out, ':');
            cn_confnode_write_json(node->items[i], out);
        }
        cn_buf_append_byte(out, '}');
        break;
    case CN_CONF_ARRAY:
        cn_buf_append_byte(out, '[');
        for (size_t i = 0; i < node->count; i++) {
            if (i)
                cn_buf_append_byte(out, ',');
            cn_confnode_write_json(node->items[i], out);
        }
        cn_buf_append_byte(out, ']');
        break;
    case CN_CONF_STRING:
    case CN_CONF_DATETIME:
        cn_buf_append_json(out, node->text, node->length);
        break;
    case CN_CONF_INTEGER:
        cn_buf_printf(out, "%" PRId64, node->integer);
        break;
    case CN_CONF_FLOAT:
        if (isfinite(node->number))
            cn_buf_printf(out, "%.17g", node->number);
        else
            cn_buf_append_str(out, "null");
        break;
    case CN_CONF_BOOL:
        cn_buf_append_str(out, node->boolean ? "true" : "false");
        break;
    case CN_CONF_NULL:
        cn_buf_append_str(out, "null");
        break;
    }
}
