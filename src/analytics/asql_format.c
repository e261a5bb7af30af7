/* SPDX-License-Identifier: Apache-2.0 */
/* analytics/asql_format.c - results as JSON, JSONEachRow or TabSeparated.
 *
 * Whole numbers of 64 bits are texts in JSON, for a reader may have doubles only. */
#include <math.h>
#include <string.h>

#include "analytics/asql_private.h"

#define PIECE_SIZE ((size_t)64 << 10)

static void append_json(struct cn_buf *out, const struct cn_type *type,
                        const struct cn_value *value)
{
    bool quoted = type->kind == CN_KIND_INT && type->bits == 64;
    switch (type->kind) {
    case CN_KIND_TEXT:
        return cn_buf_append_json(out, value->text, value->size);
    case CN_KIND_NUMBER:
        if (!isfinite(value->number))
            return cn_buf_append_str(out, "null");
        break;
    case CN_KIND_TIME:
    case CN_KIND_INTERVAL:
        quoted = true;
        break;
    case CN_KIND_INT:
        break;
    case CN_KIND_LIST: {
        struct cn_type item = {.kind = type->item_kind, .bits = 64};
        cn_buf_append_byte(out, '[');
        for (uint32_t i = 0; i < value->size; i++) {
            cn_buf_append_str(out, i ? "," : "");
            append_json(out, &item, &value->items[i]);
        }
        return cn_buf_append_byte(out, ']');
    }
    }
    cn_buf_append_str(out, quoted ? "\"" : "");
    cn_value_print(out, type, value);
    cn_buf_append_str(out, quoted ? "\"" : "");
}

static void append_json_row(struct cn_buf *out, const struct cn_asql_table *table, size_t row)
{
    cn_buf_append_byte(out, '{');
    for (size_t i = 0; i < table->column_count; i++) {
        const struct cn_asql_column *column = &table->columns[i];
        cn_buf_append_str(out, i ? "," : "");
        cn_buf_append_json(out, column->name, strlen(column->name));
        cn_buf_append_byte(out, ':');
        append_json(out, &column->type, &table->rows[row][i]);
    }
    cn_buf_append_byte(out, '}');
}

/* Tabs, line ends and backslashes of values are written as \t, \n and \\. */
static void append_tabs_row(struct cn_buf *out, const struct cn_asql_table *table, size_t row)
{
    struct cn_buf text = {0};
    for (size_t i = 0; i < table->column_count; i++) {
        cn_buf_append_str(out, i ? "\t" : "");
        cn_buf_clear(&text);
        cn_value_print(&text, &table->columns[i].type, &table->rows[row][i]);
        for (size_t k = 0; k < text.size; k++) {
            static const char special[] = "\t\n\r\\\0", letters[] = "tnr\\0";
            const char *found = memchr(special, text.data[k], sizeof(special) - 1);
            if (found)
                cn_buf_append_byte(out, '\\');
            cn_buf_append_byte(out, found ? (uint8_t)letters[found - special] : text.data[k]);
        }
    }
    cn_buf_append_byte(out, '\n');
    cn_buf_fini(&text);
}

static void append_meta(struct cn_buf *out, const struct cn_asql_table *table)
{
    cn_buf_append_str(out, "{\"meta\":[");
    for (size_t i = 0; i < table->column_count; i++) {
        const struct cn_asql_column *column = &table->columns[i];
        cn_buf_append_str(out, i ? ",{\"name\":" : "{\"name\":");
        cn_buf_append_json(out, column->name, strlen(column->name));
        cn_buf_append_str(out, ",\"type\":\"");
        cn_type_name(&column->type, out);
        cn_buf_append_str(out, "\"}");
    }
    cn_buf_append_str(out, "],\"data\":[");
}

int cn_asql_write(const struct cn_asql *asql, enum cn_format format,
                  const struct cn_asql_table *table)
{
    static const char *const types[] = {"application/json", "application/x-ndjson",
                                        "text/tab-separated-values; charset=UTF-8"};
    struct cn_buf out = {0};
    int rc = 0;
    if (format == CN_FORMAT_JSON)
        append_meta(&out, table);
    for (size_t i = 0; i < table->row_count && rc >= 0; i++) {
        if (format == CN_FORMAT_TABS) {
            append_tabs_row(&out, table, i);
        } else {
            cn_buf_append_str(&out, format == CN_FORMAT_JSON && i ? "," : "");
            append_json_row(&out, table, i);
            cn_buf_append_str(&out, format == CN_FORMAT_JSON_ROWS ? "\n" : "");
        }
        if (out.size >= PIECE_SIZE) {
            rc = asql->write(asql->data, types[format], out.data, out.size);
            cn_buf_clear(&out);
        }
    }
    if (format == CN_FORMAT_JSON)
        cn_buf_printf(&out, "],\"rows\":%zu,\"rows_before_limit_at_least\":%zu}\n",
                      table->row_count, table->row_count_all);
    if (rc >= 0)
        (void)asql->write(asql->data, types[format], out.data, out.size);
    cn_buf_fini(&out);
    return 0; /* whoever is gone needs no answer */
}
