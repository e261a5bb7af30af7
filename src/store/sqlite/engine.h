/* SPDX-License-Identifier: Apache-2.0 */
/* store/sqlite/engine.h - what we ask of SQLite beside its API; engine.c says why.
 *
 * Threads: the connection's. */
#ifndef CN_STORE_SQLITE_ENGINE_H
#define CN_STORE_SQLITE_ENGINE_H
#include <sqlite3.h>

/* F1 of store/functions.h. A function of SQLite's own, which is there, does this from now on, in
 * all connections; its user data stays. */
void cn_sqlite_replace(const char *name, int count,
                       void (*function)(sqlite3_context *context, int count,
                                        sqlite3_value **values));
/* json_patch() and unhex() refuse what would take too long. */
void cn_sqlite_bound(void);

/* Rows that a statement has read and written since its counts were reset. Written: inserts into
 * tables and indexes, and deletions of rows, by the statement's own program; not those of
 * triggers. Read: rows that its loops have visited. */
sqlite3_int64 cn_sqlite_rows_written(sqlite3_stmt *stmt);
sqlite3_int64 cn_sqlite_rows_read(sqlite3_stmt *stmt);

/* A new connection: locking_mode = EXCLUSIVE, journal_mode = MEMORY, synchronous = OFF, a cache of
 * `cache_kib`, and at most `page_count_max` pages (0: as SQLite has it). Touches no page. From now on
 * snippet() asks its progress handler, too, and long queries of FTS5 are refused. */
#define CN_SQLITE_QUERY_MAX 4096 /* bytes */
#define CN_SQLITE_NEAR_MAX 64    /* words and signs of a query with NEAR */
void cn_sqlite_configure(sqlite3 *connection, int cache_kib, unsigned page_count_max);

/* Pages of the database as the open transaction has it: PRAGMA page_count is compiled anew at every
 * use. */
unsigned cn_sqlite_page_count(sqlite3 *connection);

/* Pages of the open transaction, from the first; as many as there are. */
int cn_sqlite_pages_get(sqlite3 *connection, unsigned char *pages, unsigned count);
/* Writes them into a database that has none, in the transaction that was begun; the schema in them
 * is the one that the connection knows. A result of SQLite. */
int cn_sqlite_pages_put(sqlite3 *connection, const unsigned char *pages, unsigned count);

/* A connection that goes from one database to another (store/pool.h).
 *
 * What a new connection has, to know one that a script has changed: flags of pragmas, functions of
 * its own (case_sensitive_like), collations. */
struct cn_sqlite_fresh {
    sqlite3_uint64 flags;
    unsigned functions, collations;
};
void cn_sqlite_fresh(sqlite3 *connection, struct cn_sqlite_fresh *fresh);
/* Whether nothing in it is of the database that it has, but pages that can be forgotten, the schema
 * and statements: no transaction, no statement that runs, no pragma of the script's, nothing
 * temporary, no virtual tables (they remember what they have read), no statistics. */
int cn_sqlite_movable(sqlite3 *connection, const struct cn_sqlite_fresh *fresh);
/* What SQL can ask of a connection about its past. */
struct cn_sqlite_counts {
    sqlite3_int64 changes, total_changes, last_rowid;
    unsigned data_version;
};
extern const struct cn_sqlite_counts cn_sqlite_counts_new; /* of a new one */
/* Rises with every change of the schema; 0: it has not been read. */
unsigned cn_sqlite_schema_cookie(sqlite3 *connection);
/* Forgets all pages, the size of the file and the lock; only if it is movable. */
void cn_sqlite_leave(sqlite3 *connection, struct cn_sqlite_counts *counts);
/* Has another file from now on, whose schema is the same byte by byte; `data` is what its
 * authorizer and its progress handler are given. */
void cn_sqlite_enter(sqlite3 *connection, const struct cn_sqlite_counts *counts, void *data);

#endif
