/* SPDX-License-Identifier: Apache-2.0 */
/* store/database.h - one object's SQLite database.
 *
 * The writes of one turn form one transaction. It begins by itself with the
 * first statement that writes and ends with cn_database_commit() or
 * cn_database_rollback(); savepoints nest inside. Metadata (alarm, name) set in
 * the turn belongs to the same transaction.
 *
 * Memory: the connection of an open small database costs about 40 kB (its page cache grows to 256
 * kB at most); between turns it may go to another database (store/pool.h). A closed one costs
 * nothing.
 *
 * Threads:   the lane that opened it, except cn_database_interrupt().
 * Ownership: cn_database_open() allocates, cn_database_close() frees; release
 *            statements before closing. */
#ifndef CN_STORE_DATABASE_H
#define CN_STORE_DATABASE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/record.h"

struct cn_database;
struct cn_database_pool;
struct cn_statement;
struct cn_store;

/* Zero means the default, which is what the platform documents (or, where its
 * code accepts more, what its code accepts). */
struct cn_database_limits {
    int value_size;         /* 4 MiB: a string, a BLOB, a row */
    int sql_size;           /* 100,000 bytes of one statement */
    int column_count;       /* 100 */
    int parameter_count;    /* 100 */
    int pattern_size;       /* 50 bytes of a LIKE or GLOB pattern */
    int compound_count;     /* 5 terms of a compound SELECT */
    uint64_t database_size; /* 10 GB, then SQLITE_FULL */
};

struct cn_database_options {
    bool must_exist;               /* CN_ENOTFOUND instead of an empty database */
    struct cn_database_pool *pool; /* borrowed; whose connections it may use (store/pool.h); NULL:
                                      it has one of its own */
    struct cn_database_limits limits;
};

/* CN_ELOCKED if it is open already. `options` may be NULL. */
int cn_database_open(struct cn_store *store, const struct cn_object_key *key,
                     const struct cn_database_options *options, struct cn_database **db,
                     struct cn_err *err);
/* Rolls back what was not committed. */
void cn_database_close(struct cn_database *db);

const struct cn_object_key *cn_database_key(const struct cn_database *db);
/* Bytes of the database as seen inside the transaction. */
uint64_t cn_database_size(struct cn_database *db);
/* Gives back cached pages and statements. */
void cn_database_shrink(struct cn_database *db);

/* ---- Transactions ---- */

/* Ends the turn. *lsn is the LSN to wait for: that of this commit, or of the
 * last one if nothing was written. On failure everything since the last commit
 * is rolled back and the reason is in `err`: CN_EREADONLY, CN_ELIMIT, ... */
int cn_database_commit(struct cn_database *db, uint64_t *lsn, struct cn_err *err);
void cn_database_rollback(struct cn_database *db);
/* The LSN of the last commit that a reader may see and that may not be durable yet, also if an
 * earlier opening of the database made it; 0 if everything is durable since long. */
uint64_t cn_database_lsn(const struct cn_database *db);
/* Something is to be committed or rolled back; also what SQLite has rolled back by itself (an OR
 * ROLLBACK, a statement that was interrupted, no memory): only a commit that fails tells of it. */
bool cn_database_in_transaction(const struct cn_database *db);

/* Opens a savepoint and returns its level: 1, 2, ... (at most CN_SAVEPOINT_MAX). */
#define CN_SAVEPOINT_MAX 64
int cn_database_savepoint(struct cn_database *db, struct cn_err *err);
int cn_database_savepoint_level(const struct cn_database *db); /* 0: none is open */
/* Ends the savepoint `level` and those inside it: keeps, or undoes, what they wrote. */
int cn_database_savepoint_release(struct cn_database *db, int level, struct cn_err *err);
int cn_database_savepoint_rollback(struct cn_database *db, int level, struct cn_err *err);

/* Everything goes: tables, key-value pairs, and, if asked, the alarm. Part of
 * the transaction. Releases cached statements; statements in use end. Takes no time and frees the
 * space. CN_EINVALID inside a savepoint, and nothing has ended. */
#define CN_DELETE_ALL_REFUSED "Cannot call deleteAll() within a transaction"
int cn_database_delete_all(struct cn_database *db, bool alarm_too, struct cn_err *err);

/* ---- Metadata ---- */

struct cn_database_meta {
    int64_t alarm_ms; /* CN_ALARM_NONE: no alarm */
    bool has_name;
    char name[CN_OBJECT_NAME_MAX + 1]; /* terminated */
};
/* As seen inside the transaction. */
void cn_database_meta(struct cn_database *db, struct cn_database_meta *meta);
int64_t cn_database_alarm(struct cn_database *db);
int cn_database_set_alarm(struct cn_database *db, int64_t alarm_ms, struct cn_err *err);
/* The one that a rollback to the savepoint `level`, which is open, brings back. */
void cn_database_set_saved_alarm(struct cn_database *db, int level, int64_t alarm_ms);
/* Kept for good with the object; longer than CN_OBJECT_NAME_MAX is CN_ELIMIT. */
int cn_database_set_name(struct cn_database *db, const char *name, size_t size, struct cn_err *err);

/* ---- SQL ---- */

enum cn_sql_flags {
    CN_SQL_GUEST = 1,   /* a user's statement: the authorizer applies (no _cf_ tables, no
                           transactions, only the listed pragmas) */
    CN_SQL_UNCACHED = 2 /* do not keep it for the next time */
};

/* Prepares the first statement of `sql`; *used says how many bytes it took.
 * *statement is NULL if there was only white space or comment. The same text
 * may be prepared again while it is in use. Errors end in ": SQLITE_<CODE>". */
int cn_database_prepare(struct cn_database *db, const char *sql, size_t size, unsigned flags,
                        struct cn_statement **statement, size_t *used, struct cn_err *err);
/* The first column of the first row of a statement that is not kept, as a number; without a row
 * *number stays as it is. */
int cn_database_number(struct cn_database *db, const char *sql, size_t size, int64_t *number,
                       struct cn_err *err);
/* Back to the cache; NULL is fine. */
void cn_statement_release(struct cn_statement *statement);

/* Parameters count from 1. Bytes are copied unless `borrowed`: then they stay
 * valid until the statement is reset or released. */
int cn_statement_parameter_count(struct cn_statement *statement);
const char *cn_statement_parameter_name(struct cn_statement *statement, int index);
int cn_statement_bind_null(struct cn_statement *statement, int index, struct cn_err *err);
int cn_statement_bind_int(struct cn_statement *statement, int index, int64_t value,
                          struct cn_err *err);
int cn_statement_bind_real(struct cn_statement *statement, int index, double value,
                           struct cn_err *err);
int cn_statement_bind_text(struct cn_statement *statement, int index, const char *text, size_t size,
                           bool borrowed, struct cn_err *err);
int cn_statement_bind_blob(struct cn_statement *statement, int index, const void *bytes,
                           size_t size, bool borrowed, struct cn_err *err);

/* 1: a row; 0: done; negative: failed. A statement that writes begins the
 * transaction. A commit ends statements that write: rows they had left are
 * lost, and the next step returns CN_ECLOSED. */
int cn_statement_step(struct cn_statement *statement, struct cn_err *err);
void cn_statement_reset(struct cn_statement *statement);
/* Whether it makes, changes or drops a table or the like. */
bool cn_statement_defines(struct cn_statement *statement);
bool cn_statement_writes(const struct cn_statement *statement);
/* Bytes that it has, rows that it sorts above all; of a guest's. */
int64_t cn_statement_memory(const struct cn_statement *statement);

enum cn_sql_type { CN_SQL_NULL, CN_SQL_INT, CN_SQL_REAL, CN_SQL_TEXT, CN_SQL_BLOB };
int cn_statement_column_count(struct cn_statement *statement);
const char *cn_statement_column_name(struct cn_statement *statement, int column);
/* A number for the names of its columns in their order: equal names, equal numbers; below 2^52.
 * 0: it has no columns. */
uint64_t cn_statement_shape(struct cn_statement *statement);
enum cn_sql_type cn_statement_column_type(struct cn_statement *statement, int column);
int64_t cn_statement_column_int(struct cn_statement *statement, int column);
double cn_statement_column_real(struct cn_statement *statement, int column);
/* Borrowed until the next step. */
const char *cn_statement_column_text(struct cn_statement *statement, int column, size_t *size);
const void *cn_statement_column_blob(struct cn_statement *statement, int column, size_t *size);

/* Rows visited and rows (of tables and indexes) written since the last reset. */
uint64_t cn_statement_rows_read(struct cn_statement *statement);
uint64_t cn_statement_rows_written(struct cn_statement *statement);
/* Rows inserted, updated or deleted since the last reset, by its triggers too. */
int64_t cn_statement_changes(const struct cn_statement *statement);
/* How much white space and how many comments a text of SQL begins with. */
size_t cn_sql_skip_space(const char *sql, size_t size);
/* True if there is nothing but white space, comments and semicolons. */
bool cn_sql_blank(const char *sql, size_t size);
/* Bytes of the first statement of a script, with its semicolon. */
size_t cn_sql_first(const char *sql, size_t size);

/* Runs every statement of a script and drops their rows; for C classes and tests. */
int cn_database_exec(struct cn_database *db, const char *sql, struct cn_err *err);
/* Rows changed by the last INSERT, UPDATE or DELETE; its last rowid. */
int64_t cn_database_changes(struct cn_database *db);
int64_t cn_database_last_rowid(struct cn_database *db);

/* Time limit: a statement running past this time (cn_clock_mono_ns) ends with
 * CN_ETIMEOUT. 0: none. */
void cn_database_set_deadline(struct cn_database *db, uint64_t deadline_ns);
/* Ends the running statement with CN_EABORTED; from any thread. */
void cn_database_interrupt(struct cn_database *db);

#endif
