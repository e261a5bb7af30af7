/* SPDX-License-Identifier: Apache-2.0 */
/* cli/print.h - what commands print: tables for people, JSON for programs. */
#ifndef CN_CLI_PRINT_H
#define CN_CLI_PRINT_H
#include <stddef.h>
#include <stdint.h>

struct cn_buf;
struct cn_err;
struct cn_json;

/* A table that is printed when all of it is known: columns as wide as they need. */
struct cn_table {
    size_t column_count;
    char **cells; /* owned, row after row, the heading first */
    size_t cell_count, cell_room;
};
void cn_table_init(struct cn_table *table, size_t column_count);
/* The next cell; the text is copied, control characters are shown as escapes. */
void cn_table_add(struct cn_table *table, const char *text, size_t size);
/* The same of a JSON value: a string without quotes, anything else as JSON. */
void cn_table_add_json(struct cn_table *table, const struct cn_json *cell);
/* Prints to standard output and frees. */
void cn_table_print(struct cn_table *table);

/* Appends a text with control characters as escapes. */
void cn_print_escape(struct cn_buf *out, const char *text, size_t size);
/* Prints such a text on standard output: what a server tells may have come from anybody. */
void cn_print_shown(const char *text);
/* "1.5 MiB" */
void cn_print_size(uint64_t bytes, char text[32]);
/* "2026-01-31T12:00:00Z" */
void cn_print_time(int64_t time_ms, char text[32]);
/* Says on standard error why a command failed, if `rc` is negative. Returns its exit status. */
int cn_print_outcome(int rc, const struct cn_err *err);
/* Prints a tree as JSON on one line. */
void cn_print_line(const struct cn_json *json);

#endif
