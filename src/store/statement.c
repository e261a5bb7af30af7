/* SPDX-License-Identifier: Apache-2.0 */
/* store/statement.c - prepared statements and their cache.
 *
 * A released statement stays in its database's cache under its text, the least
 * recently used going first, and is found again by cn_database_prepare(). A text that is
 * in use is prepared a second time, outside the cache. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "store/database_private.h"
#include "store/sqlite/engine.h"
#include "store/sqlite_memory.h"
#include "store/template.h"

enum { CACHE_MAX = 48 }; /* statements of one database; 2 to 5 kB each */

/* What SQLite takes from here on is the statement's (sqlite_memory.h, Q1). */
static void enter(struct cn_statement *statement)
{
    if (statement->guest)
        cn_sqlite_memory_begin(&statement->memory);
}

/* ---- Life ---- */

static void statement_free(struct cn_statement *statement)
{
    struct cn_database *db = statement->db;
    cn_list_remove(&statement->link);
    if (statement->sql) {
        (void)cn_map_take(&db->cache, statement->sql, statement->sql_size);
        db->cached_count--;
    }
    (void)sqlite3_finalize(statement->stmt); /* repeats an error that was reported */
    cn_sqlite_memory_forget(&statement->memory);
    cn_free(statement->sql);
    cn_free(statement);
}

void cn_statements_trim(struct cn_database *db, int keep)
{
    CN_LIST_FOREACH(&db->statements, link)
    {
        struct cn_statement *statement = CN_CONTAINER_OF(link, struct cn_statement, link);
        if (db->cached_count <= keep)
            break;
        if (!statement->in_use)
            statement_free(statement);
    }
}

void cn_statements_end_writers(struct cn_database *db)
{
    if (db->own[CN_OWN_KV_GET])
        (void)sqlite3_reset(db->own[CN_OWN_KV_GET]); /* its value was borrowed until now */
    CN_LIST_FOREACH(&db->statements, link)
    {
        struct cn_statement *statement = CN_CONTAINER_OF(link, struct cn_statement, link);
        if (statement->in_use && statement->writes && statement->stmt &&
            sqlite3_stmt_busy(statement->stmt)) {
            (void)sqlite3_reset(statement->stmt);
            statement->done = true;
        }
    }
}

void cn_statements_finalize(struct cn_database *db)
{
    cn_statements_trim(db, 0);
    CN_LIST_FOREACH(&db->statements, link)
    {
        struct cn_statement *statement = CN_CONTAINER_OF(link, struct cn_statement, link);
        (void)sqlite3_finalize(statement->stmt);
        statement->stmt = NULL;
    }
}

/* ---- Preparing ---- */

static void cache_add(struct cn_statement *statement, const char *sql, size_t size)
{
    struct cn_database *db = statement->db;
    cn_statements_trim(db, CACHE_MAX - 1);
    if (db->cached_count >= CACHE_MAX || cn_map_find(&db->cache, sql, size))
        return;
    statement->sql = cn_memdup(sql, size);
    statement->sql_size = size;
    (void)cn_map_set(&db->cache, sql, size, statement);
    db->cached_count++;
}

int cn_database_prepare(struct cn_database *db, const char *sql, size_t size, unsigned flags,
                        struct cn_statement **result, size_t *used, struct cn_err *err)
{
    bool guest = flags & CN_SQL_GUEST;
    bool expected;
    int ready = cn_template_prepare(db, sql, &size, guest, &expected, err);
    if (ready == 0)
        ready = cn_database_connect(db, err); /* statements come with the connection */
    if (ready < 0)
        return ready;
    struct cn_statement *statement = cn_map_find(&db->cache, sql, size);
    if (statement && !statement->in_use && statement->guest == guest) {
        cn_list_remove(&statement->link);
        cn_list_push_back(&db->statements, &statement->link);
        statement->in_use = true;
        if (statement->stands_in)
            statement->writes = !sqlite3_stmt_readonly(statement->stmt);
        statement->stands_in = false;
        if (db->template)
            cn_template_prepared(db, statement, sql, size, expected);
        *result = statement;
        *used = size;
        return 0;
    }
    if (size > INT32_MAX - 1)
        return cn_err_set(err, CN_ESQL, "statement too long: SQLITE_TOOBIG");
    sqlite3_stmt *stmt = NULL;
    const char *tail = sql;
    db->guest = guest;
    db->denial = NULL;
    db->makes_names = false;
    int rc =
        sqlite3_prepare_v3(db->connection, sql, (int)size,
                           flags & CN_SQL_UNCACHED ? 0 : SQLITE_PREPARE_PERSISTENT, &stmt, &tail);
    db->guest = false;
    if (rc != SQLITE_OK)
        return cn_database_error(db, rc, err);
    *used = (size_t)(tail - sql);
    *result = NULL;
    if (!stmt)
        return 0;
    statement = CN_NEW(struct cn_statement);
    statement->db = db;
    statement->stmt = stmt;
    statement->guest = guest;
    statement->makes_names = guest && db->makes_names;
    statement->writes = !sqlite3_stmt_readonly(stmt);
    statement->in_use = true;
    cn_list_push_back(&db->statements, &statement->link);
    if (!(flags & CN_SQL_UNCACHED) && *used == size)
        cache_add(statement, sql, size);
    if (db->template)
        cn_template_prepared(db, statement, sql, size, expected);
    *result = statement;
    return 0;
}

void cn_statement_release(struct cn_statement *statement)
{
    if (!statement)
        return;
    if (statement->db->template)
        cn_template_released(statement->db, statement);
    if (!statement->sql || !statement->stmt) {
        statement_free(statement);
        return;
    }
    cn_statement_reset(statement);
    (void)sqlite3_clear_bindings(statement->stmt);
    cn_sqlite_memory_forget(&statement->memory);
    statement->in_use = false;
}

void cn_statement_reset(struct cn_statement *statement)
{
    enter(statement);
    if (statement->stmt)
        (void)sqlite3_reset(statement->stmt); /* repeats the error of the last step */
    cn_sqlite_memory_end();
    statement->started = false;
    statement->done = false;
}

/* ---- Binding ---- */

/* Is the statement there to be bound? */
static int bind_check(struct cn_statement *statement, struct cn_err *err)
{
    if (!statement->stmt)
        return cn_err_set(err, CN_ECLOSED, "the statement was ended with its database");
    return 0;
}

static int bind_result(struct cn_statement *statement, int rc, struct cn_err *err)
{
    return rc == SQLITE_OK ? 0 : cn_database_error(statement->db, rc, err);
}

int cn_statement_parameter_count(struct cn_statement *statement)
{
    return sqlite3_bind_parameter_count(statement->stmt);
}

const char *cn_statement_parameter_name(struct cn_statement *statement, int index)
{
    return sqlite3_bind_parameter_name(statement->stmt, index);
}

int cn_statement_bind_null(struct cn_statement *statement, int index, struct cn_err *err)
{
    int rc = bind_check(statement, err);
    return rc < 0 ? rc : bind_result(statement, sqlite3_bind_null(statement->stmt, index), err);
}

int cn_statement_bind_int(struct cn_statement *statement, int index, int64_t value,
                          struct cn_err *err)
{
    int rc = bind_check(statement, err);
    return rc < 0 ? rc
                  : bind_result(statement, sqlite3_bind_int64(statement->stmt, index, value), err);
}

int cn_statement_bind_real(struct cn_statement *statement, int index, double value,
                           struct cn_err *err)
{
    int rc = bind_check(statement, err);
    return rc < 0 ? rc
                  : bind_result(statement, sqlite3_bind_double(statement->stmt, index, value), err);
}

int cn_statement_bind_text(struct cn_statement *statement, int index, const char *text, size_t size,
                           bool borrowed, struct cn_err *err)
{
    int rc = bind_check(statement, err);
    if (rc < 0)
        return rc;
    enter(statement);
    rc = sqlite3_bind_text64(statement->stmt, index, size ? text : "", size,
                             borrowed ? SQLITE_STATIC : SQLITE_TRANSIENT, SQLITE_UTF8);
    cn_sqlite_memory_end();
    return bind_result(statement, rc, err);
}

int cn_statement_bind_blob(struct cn_statement *statement, int index, const void *bytes,
                           size_t size, bool borrowed, struct cn_err *err)
{
    int rc = bind_check(statement, err);
    if (rc < 0)
        return rc;
    enter(statement);
    rc = sqlite3_bind_blob64(statement->stmt, index, size ? bytes : "", size,
                             borrowed ? SQLITE_STATIC : SQLITE_TRANSIENT);
    cn_sqlite_memory_end();
    return bind_result(statement, rc, err);
}

/* ---- Running ---- */

/* How many names in the schema are reserved, whatever their case; negative if it cannot be read. */
static int reserved_count(struct cn_database *db)
{
    static const char sql[] = "SELECT count(*) FROM main.sqlite_schema"
                              " WHERE substr(name, 1, 4) = '_cf_' COLLATE NOCASE";
    sqlite3_stmt *stmt;
    int count = -1;
    if (sqlite3_prepare_v2(db->connection, sql, -1, &stmt, NULL) == SQLITE_OK &&
        sqlite3_step(stmt) == SQLITE_ROW)
        count = sqlite3_column_int(stmt, 0);
    (void)sqlite3_finalize(stmt); /* its error is the -1 */
    return count;
}

/* A2 (authorizer.c): runs a guest's statement that names things without telling the authorizer,
 * and undoes it if the schema has a reserved name more than before. Such a statement has no rows.
 */
static int step_watched(struct cn_statement *statement)
{
    struct cn_database *db = statement->db;
    db->guest = false;
    int rc = sqlite3_exec(db->connection, "SAVEPOINT cairn_names", NULL, NULL, NULL);
    if (rc != SQLITE_OK)
        return rc;
    int before = reserved_count(db);
    db->guest = true;
    rc = sqlite3_step(statement->stmt);
    db->guest = false;
    if (sqlite3_get_autocommit(db->connection))
        return rc; /* rolled back as a whole, and the savepoint with it */
    int after = rc == SQLITE_DONE ? reserved_count(db) : before;
    if (before < 0 || after < 0 || after > before) {
        (void)sqlite3_reset(statement->stmt);
        (void)sqlite3_exec(db->connection, "ROLLBACK TO cairn_names", NULL, NULL, NULL);
        db->denial = cn_authorizer_reserved;
        rc = SQLITE_AUTH;
    }
    char *text = rc == SQLITE_DONE ? NULL : sqlite3_mprintf("%s", sqlite3_errmsg(db->connection));
    (void)sqlite3_exec(db->connection, "RELEASE cairn_names", NULL, NULL, NULL);
    if (text) /* what the release has said is of no interest */
        (void)sqlite3_set_errmsg(db->connection, rc, text);
    sqlite3_free(text);
    return rc;
}

int cn_statement_step(struct cn_statement *statement, struct cn_err *err)
{
    struct cn_database *db = statement->db;
    int rc;
    if (!statement->stmt)
        return cn_err_set(err, CN_ECLOSED, "the statement was ended with its database");
    if (statement->done)
        return cn_err_set(err, CN_ECLOSED, "the statement has ended");
    if (!statement->started) {
        if (statement->writes) {
            rc = cn_database_begin(db, err);
            if (rc < 0)
                return rc;
        }
        statement->started = true;
        statement->changes = 0;
        sqlite3_stmt_scanstatus_reset(statement->stmt); /* counts of the last time */
        db->timed_out = false;
        atomic_store_explicit(&db->interrupted, false, memory_order_relaxed);
    }
    db->guest =
        statement->guest; /* statements that SQLite prepares on the way are the guest's too */
    db->denial = NULL;
    int64_t changes = sqlite3_total_changes64(db->connection);
    enter(statement);
    rc = statement->makes_names ? step_watched(statement) : sqlite3_step(statement->stmt);
    cn_sqlite_memory_end();
    statement->changes += sqlite3_total_changes64(db->connection) - changes;
    db->guest = false;
    if (rc == SQLITE_ROW)
        return 1;
    statement->done = true;
    if (rc == SQLITE_DONE) {
        if (db->template)
            cn_template_ran(db, statement, 0);
        return 0;
    }
    rc = cn_database_error(db, rc, err);
    if (db->template)
        cn_template_ran(db, statement, rc);
    enter(statement);
    (void)sqlite3_reset(statement->stmt); /* so it holds nothing open; the error is taken */
    cn_sqlite_memory_end();
    return rc;
}

int64_t cn_statement_memory(const struct cn_statement *statement)
{
    return statement->memory;
}

bool cn_statement_writes(const struct cn_statement *statement)
{
    return statement->writes;
}

bool cn_statement_defines(struct cn_statement *statement)
{
    static const char *const words[] = {"CREATE", "DROP", "ALTER"};
    const char *sql = statement->stmt ? sqlite3_sql(statement->stmt) : NULL;
    size_t at = sql ? cn_sql_skip_space(sql, strlen(sql)) : 0;
    for (size_t i = 0; sql && i < CN_ARRAY_COUNT(words); i++) {
        if (strncasecmp(sql + at, words[i], strlen(words[i])) == 0)
            return statement->writes;
    }
    return false;
}

int cn_statement_column_count(struct cn_statement *statement)
{
    return sqlite3_column_count(statement->stmt);
}

const char *cn_statement_column_name(struct cn_statement *statement, int column)
{
    const char *name = sqlite3_column_name(statement->stmt, column);
    return name ? name : "";
}

uint64_t cn_statement_shape(struct cn_statement *statement)
{
    /* SQLite compiles a statement again when the schema has changed: names may be others then. */
    int prepared = sqlite3_stmt_status(statement->stmt, SQLITE_STMTSTATUS_REPREPARE, 0);
    if (statement->shape && statement->shape_prepared == prepared)
        return statement->shape;
    int count = sqlite3_column_count(statement->stmt);
    uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a */
    for (int i = 0; i < count; i++) {
        const char *at = cn_statement_column_name(statement, i);
        do
            hash = (hash ^ (uint8_t)*at) * 0x100000001b3u;
        while (*at++);
    }
    statement->shape_prepared = prepared;
    statement->shape = count ? (hash >> 12) | 1 : 0;
    return statement->shape;
}

enum cn_sql_type cn_statement_column_type(struct cn_statement *statement, int column)
{
    switch (sqlite3_column_type(statement->stmt, column)) {
    case SQLITE_INTEGER:
        return CN_SQL_INT;
    case SQLITE_FLOAT:
        return CN_SQL_REAL;
    case SQLITE_TEXT:
        return CN_SQL_TEXT;
    case SQLITE_BLOB:
        return CN_SQL_BLOB;
    default:
        return CN_SQL_NULL;
    }
}

int64_t cn_statement_column_int(struct cn_statement *statement, int column)
{
    return sqlite3_column_int64(statement->stmt, column);
}

double cn_statement_column_real(struct cn_statement *statement, int column)
{
    return sqlite3_column_double(statement->stmt, column);
}

const char *cn_statement_column_text(struct cn_statement *statement, int column, size_t *size)
{
    const char *text = (const char *)sqlite3_column_text(statement->stmt, column);
    *size = (size_t)sqlite3_column_bytes(statement->stmt, column);
    return text ? text : "";
}

const void *cn_statement_column_blob(struct cn_statement *statement, int column, size_t *size)
{
    const void *bytes = sqlite3_column_blob(statement->stmt, column);
    *size = (size_t)sqlite3_column_bytes(statement->stmt, column);
    return bytes ? bytes : "";
}

/* ---- Counting rows ---- */

uint64_t cn_statement_rows_read(struct cn_statement *statement)
{
    if (statement->stands_in)
        return statement->started ? statement->stood_read : 0;
    return statement->stmt ? (uint64_t)cn_sqlite_rows_read(statement->stmt) : 0;
}

/* The program's own writes, counted exactly; those of triggers and foreign keys, and of
 * deleting a whole table, by the number of rows changed. */
uint64_t cn_statement_rows_written(struct cn_statement *statement)
{
    if (!statement->stmt || !statement->started || !statement->writes)
        return 0;
    if (statement->stands_in)
        return statement->stood_written;
    int64_t rows = cn_sqlite_rows_written(statement->stmt);
    return (uint64_t)(rows > statement->changes ? rows : statement->changes);
}

int64_t cn_statement_changes(const struct cn_statement *statement)
{
    return statement->writes ? statement->changes : 0;
}

int cn_database_exec(struct cn_database *db, const char *sql, struct cn_err *err)
{
    size_t left = strlen(sql);
    int rc = 0;
    while (left > 0 && rc == 0) {
        struct cn_statement *statement;
        size_t used;
        rc = cn_database_prepare(db, sql, left, 0, &statement, &used, err);
        if (rc < 0)
            return rc;
        if (statement) {
            while ((rc = cn_statement_step(statement, err)) == 1)
                ;
            cn_statement_release(statement);
        }
        sql += used;
        left -= used;
    }
    return rc;
}

int cn_database_number(struct cn_database *db, const char *sql, size_t size, int64_t *number,
                       struct cn_err *err)
{
    struct cn_statement *statement;
    size_t used;
    int rc = cn_database_prepare(db, sql, size, CN_SQL_UNCACHED, &statement, &used, err);
    if (rc < 0)
        return rc;
    rc = cn_statement_step(statement, err);
    if (rc == 1)
        *number = cn_statement_column_int(statement, 0);
    cn_statement_release(statement);
    return rc < 0 ? rc : 0;
}
