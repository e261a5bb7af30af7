/* SPDX-License-Identifier: Apache-2.0 */
/* store/pool.h - connections of SQLite that go from one database to another.
 *
 * A connection costs 30 to 50 kB (schema, statements, pages) and, to be opened, the time of
 * compiling the schema and each statement anew. Objects of a class mostly have the same schema; of
 * ten thousand in memory few are at work. So a lane has a pool: a database between turns *rests*,
 * and when there are more connections than the pool wants, the one that has rested longest gives
 * its own to whoever needs one. It is back with the next use, and nobody above notices.
 *
 *     [own connection] --- cn_database_rest() ---> [resting] --- taken ---> [none]
 *            ^                                         |                       |
 *            +---------------- any use ----------------+-----------------------+
 *     a database that closes leaves its connection in the pool, free for the next that opens
 *
 * P1  A connection is taken only if nothing in it is of the database that it has (conditions of
 *     cn_sqlite_movable(); no statement in use, nothing uncommitted): what a script has set in
 *     it by a pragma keeps it where it is. changes(), total_changes(), last_insert_rowid() and
 *     PRAGMA data_version stay with the database.
 * P2  It goes only to a database of the same namespace and limits whose first page is the same
 *     byte by byte where schema and settings lie, and has the whole schema: sqlite_schema is one
 *     leaf without overflow pages. So whatever is compiled in it is right there, root pages too.
 *     What the page was is remembered with the connection, and right as long as the schema's cookie
 *     is the same: SQLite raises it with every change, and scripts cannot set it. It is the page
 *     that has this cookie: a transaction that is under way has made a schema that is in none yet.
 * P3  It carries nothing along: all pages are forgotten, bindings of statements are cleared.
 * P4  A database that has just been opened does not know whether it is used again. So while there
 *     are some connections, fewer than are wanted, it takes that of another which rests and fits;
 *     none is closed for it. One whose connection was taken is at work again and again, and has
 *     one of its own if there is room.
 *
 * Threads:   one: the lane's. Databases that other threads use have no pool.
 * Ownership: the lane's; its databases are closed before it is freed. */
#ifndef CN_STORE_POOL_H
#define CN_STORE_POOL_H
#include <stddef.h>

struct cn_database;
struct cn_database_pool;

/* `wanted` connections: fewer, and nobody's is taken but by P4. A quarter of them may be without
 * database. */
struct cn_database_pool *cn_database_pool_new(unsigned wanted);
void cn_database_pool_free(struct cn_database_pool *pool); /* NULL is fine */
/* Closes connections that no database has. */
void cn_database_pool_trim(struct cn_database_pool *pool);

struct cn_database_pool_stats {
    unsigned connections, resting, free; /* now: all, of databases at rest, of none */
    size_t moved, opened;                /* so far */
    size_t templated;                    /* databases that began by a template (template.h) */
};
void cn_database_pool_stats(const struct cn_database_pool *pool,
                            struct cn_database_pool_stats *stats);

/* Nobody is at work with it: what was borrowed of it (a value of the key-value table) ends, and its
 * connection may be taken, if it has a pool. */
void cn_database_rest(struct cn_database *db);

#endif
