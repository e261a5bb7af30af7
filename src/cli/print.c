/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/print.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/utf8.h"

void cn_table_init(struct cn_table *table, size_t column_count)
{
    *table = (struct cn_table){.column_count = column_count};
}

void cn_print_escape(struct cn_buf *out, const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c < 0x20 || c == 0x7f)
            cn_buf_printf(out, "\\x%02x", c);
        else
            cn_buf_append_byte(out, c);
    }
}

void cn_print_shown(const char *text)
{
    struct cn_buf shown = {0};
    cn_print_escape(&shown, text, strlen(text));
    printf("%s", cn_buf_text(&shown));
    cn_buf_fini(&shown);
}

void cn_print_size(uint64_t bytes, char text[32])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double number = (double)bytes;
    size_t unit = 0;
    for (; number >= 1024 && unit + 1 < sizeof(units) / sizeof(units[0]); unit++)
        number /= 1024;
    snprintf(text, 32, unit ? "%.1f %s" : "%.0f %s", number, units[unit]);
}

void cn_table_add(struct cn_table *table, const char *text, size_t size)
{
    struct cn_buf cell = {0};
    cn_print_escape(&cell, text, size);
    CN_GROW(table->cells, table->cell_count, table->cell_room);
    (void)cn_buf_text(&cell);
    table->cells[table->cell_count++] = (char *)cn_buf_take(&cell);
}

/* Characters, so that columns stay straight for most of the world's texts. */
static size_t width_of(const char *text)
{
    size_t width = 0;
    for (; *text; text++)
        width += ((unsigned char)*text & 0xc0) != 0x80;
    return width;
}

void cn_table_print(struct cn_table *table)
{
    size_t columns = table->column_count;
    size_t *widths = cn_alloc_zero((columns + 1) * sizeof(*widths));
    for (size_t i = 0; i < table->cell_count; i++) {
        size_t width = width_of(table->cells[i]);
        widths[i % columns] = width > widths[i % columns] ? width : widths[i % columns];
    }
    for (size_t i = 0; i < table->cell_count; i++) {
        bool last = i % columns == columns - 1;
        fputs(table->cells[i], stdout);
        size_t pad = last ? 0 : widths[i % columns] - width_of(table->cells[i]) + 2;
        printf("%*s%s", (int)pad, "", last ? "\n" : "");
        cn_free(table->cells[i]);
    }
    cn_free(widths);
    cn_free(table->cells);
    *table = (struct cn_table){0};
}

void cn_print_time(int64_t time_ms, char text[32])
{
    time_t seconds = (time_t)(time_ms / 1000);
    struct tm tm;
    strftime(text, 32, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&seconds, &tm));
}

void cn_print_line(const struct cn_json *json)
{
    struct cn_buf line = {0};
    cn_json_write(&line, json);
    puts(cn_buf_text(&line));
    cn_buf_fini(&line);
}

void cn_table_add_json(struct cn_table *table, const struct cn_json *cell)
{
    struct cn_buf text = {0};
    if (cell->kind == CN_JSON_STRING)
        cn_buf_append(&text, cell->text, cell->size);
    else
        cn_json_write(&text, cell);
    cn_table_add(table, (char *)text.data, text.size);
    cn_buf_fini(&text);
}

int cn_print_outcome(int rc, const struct cn_err *err)
{
    if (rc < 0)
        fprintf(stderr, "cairn: %s\n", err->text);
    return rc < 0 ? 1 : 0;
}
