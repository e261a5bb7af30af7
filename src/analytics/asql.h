/* SPDX-License-Identifier: Apache-2.0 */
/* analytics/asql.h - the SQL of Analytics Engine, over the data points on disk.
 *
 *     text ──► asql_parse.c: a tree ──► asql_compile.c: names, types, constants ──► asql_run.c:
 *     scan, filter, group, sort ──► asql_format.c: JSON, JSONEachRow or TabSeparated
 *
 * Why not SQLite: the dialect is ClickHouse's (types, aliases in WHERE, parametric aggregates), and
 * SQLite groups by sorting all rows. Here blocks of columns stream through a tree of expressions
 * into a hash table of groups: memory is that of the groups, not of the points.
 *
 * Q1  A query reads only the columns it names, and only blocks of the time that WHERE asks for.
 * Q2  Memory is bounded by CN_ASQL_MEMORY_MAX for groups and results, the text by
 *     CN_ASQL_TEXT_MAX, depth and size of the tree by constants in asql_parse.c and asql_compile.c.
 * Q3  A query sees what was on disk when it began; whoever wants all points flushes them first.
 *
 * Threads:   any; a query runs on the thread that asks.
 * Ownership: the caller's. */
#ifndef CN_ANALYTICS_ASQL_H
#define CN_ANALYTICS_ASQL_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct cn_disk;

#define CN_ASQL_TEXT_MAX ((size_t)256 << 10)
#define CN_ASQL_MEMORY_MAX ((size_t)256 << 20)

struct cn_asql {
    struct cn_disk *disk;
    int64_t now_ms;
    /* Whether to give up; NULL: never. */
    bool (*cancelled)(void *data);
    /* The answer: its type (static storage) comes with the first piece, which may be empty.
     * Negative: nobody listens. Nothing is written of a query that failed. */
    int (*write)(void *data, const char *type, const void *bytes, size_t size);
    void *data;
};

/* CN_EINVALID: the text is not what can be asked, and `err` says where and why. */
int cn_asql_run(const struct cn_asql *asql, const char *text, size_t size, struct cn_err *err);

#endif
