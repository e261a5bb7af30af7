/* SPDX-License-Identifier: Apache-2.0 */
/* store/dump.h - a plain SQLite database as SQL.
 *
 * Writes what makes the same tables, rows, indexes, views and triggers in an empty database, in the
 * order that the hosted platform's export has: tables with their rows, the rest of the schema
 * behind them. Rows are written as they are read: the size of the database does not matter.
 *
 * Tables whose names begin with _cf_ or sqlite_ are left out. A virtual table cannot be exported:
 * CN_EUNSUPPORTED.
 *
 * Threads: any; the file must not change meanwhile. */
#ifndef CN_STORE_DUMP_H
#define CN_STORE_DUMP_H
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

struct cn_disk;

struct cn_dump {
    const char *table; /* only this one; NULL: all */
    bool no_schema, no_data;
    int (*write)(void *data, const void *bytes, size_t size, struct cn_err *err);
    void *data;
};

int cn_dump_sql(struct cn_disk *disk, const char *path, const struct cn_dump *dump,
                struct cn_err *err);

#endif
