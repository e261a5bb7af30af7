/* SPDX-License-Identifier: Apache-2.0 */
/* store/sqlite/engine.h - what we ask of SQLite beside its API; engine.c says why.
 *
 * Threads: the connection's. */
#ifndef CN_STORE_SQLITE_ENGINE_H
#define CN_STORE_SQLITE_ENGINE_H
#include <sqlite3.h>

/* Rows that a statement has read and written since its counts were reset. Written: inserts into
 * tables and indexes, and deletions of rows, by the statement's own program; not those of
 * triggers. Read: rows that its loops have visited. */
sqlite3_int64 cn_sqlite_rows_written(sqlite3_stmt *stmt);
sqlite3_int64 cn_sqlite_rows_read(sqlite3_stmt *stmt);

/* A new connection: locking_mode = EXCLUSIVE, journal_mode = MEMORY, synchronous = OFF, a cache of
 * `cache_kib`, and at most `page_count_max` pages (0: as SQLite has it). Touches no page. */
void cn_sqlite_configure(sqlite3 *connection, int cache_kib, unsigned page_count_max);

/* Pages of the database as the open transaction has it: PRAGMA page_count is compiled anew at every
 * use. */
unsigned cn_sqlite_page_count(sqlite3 *connection);

#endif
