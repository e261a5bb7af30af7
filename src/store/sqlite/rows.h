/* SPDX-License-Identifier: Apache-2.0 */
/* store/sqlite/rows.h - rows that a statement has read and written since its counts were reset.
 *
 * Written: inserts into tables and indexes, and deletions of rows, by the statement's own program;
 * not those of triggers. Read: rows that its loops have visited.
 *
 * Threads: the connection's. */
#ifndef CN_STORE_SQLITE_ROWS_H
#define CN_STORE_SQLITE_ROWS_H
#include <sqlite3.h>

sqlite3_int64 cn_sqlite_rows_written(sqlite3_stmt *stmt);
sqlite3_int64 cn_sqlite_rows_read(sqlite3_stmt *stmt);

#endif
