/* SPDX-License-Identifier: Apache-2.0 */
/* store/dump.h - a plain SQLite database as SQL.
 *
 * Writes what makes the same tables, rows, indexes, views and triggers in an empty database, in
 * this order: with foreign keys a row can be inserted only if the table it refers to is there, and
 * triggers must not run for rows that they have run for. Rows are written as they are read: the
 * size of the database does not matter.
 *
 * X1  Read into an empty database, in one transaction, it gives every value back as it was: type,
 *     bytes, bits.
 * X2  Tables whose names begin with _cf_ or sqlite_ are left out, and what belongs to them. A
 *     virtual table cannot be exported: CN_EUNSUPPORTED.
 * X3  What fails, fails: an error of the disk, of the database or of `write` is the result, and
 *     nothing is written after it.
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
