/* SPDX-License-Identifier: Apache-2.0 */
/* module/storage.c - an object's storage for its class in C.
 *
 * S1  A cairn_statement outlives the database's own: what closes the database, or deletes all,
 *     takes that one away, and the next use prepares the text again.
 * S2  A statement has rows left (`busy`) only while a function of the class runs. */
#include "module/storage.h"

#include <string.h>

#include "base/assert.h"
#include "base/clock.h"
#include "base/mem.h"
#include "module/guard.h"
#include "module/internal.h"
#include "object/node.h"
#include "store/database.h"
#include "store/kvtable.h"

#define KEY_BYTES_MAX 2048
#define PAIR_BYTES_MAX (2u << 20)
#define SQL_NS_MAX 30000000000u
#define TRANSACTIONS_MAX 60 /* of CN_SAVEPOINT_MAX */

struct cairn_statement {
    uintptr_t handle;
    struct cn_list link; /* in the object's */
    cairn_object *object;
    struct cn_statement *statement; /* NULL: S1 */
    char *sql;                      /* owned */
    bool busy;                      /* S2 */
};

/* The object's database, in its turn; NULL: that is its last error. */
static struct cn_database *database(cairn_object *self, bool writes)
{
    struct cn_err err;
    if (!self->object) {
        cn_compiled_refuse(self, CAIRN_EMISUSE, "a worker has no storage");
        return NULL;
    }
    if (cn_object_is_broken(self->object)) {
        cn_compiled_refuse(self, CAIRN_ECLOSED,
                           "This instance of the Durable Object was reset; its storage cannot be "
                           "used.");
        return NULL;
    }
    if (!self->running) {
        cn_compiled_refuse(self, CAIRN_EMISUSE,
                           "storage is used from within functions of the class");
        return NULL;
    }
    cn_object_touch(self->object);
    struct cn_database *db = cn_object_database(self->object, &err);
    if (!db)
        cn_compiled_fault(self, &err);
    else if (writes)
        self->object->unconfirmed = false;
    return db;
}

/* What a function returns that has no database. */
static int closed(const cairn_object *self)
{
    return !self->object               ? CAIRN_EMISUSE
           : cn_compiled_is_gone(self) ? CAIRN_ECLOSED
           : self->running             ? CAIRN_ERROR
                                       : CAIRN_EMISUSE;
}

/* --- key-value ------------------------------------------------------------------------------- */

static struct cn_kv_bytes text_bytes(const char *text)
{
    return (struct cn_kv_bytes){text, text ? strlen(text) : 0};
}

static int check_key(cairn_object *self, const char *key)
{
    if (strlen(key) <= KEY_BYTES_MAX)
        return 0;
    return cn_compiled_refuse(self, CAIRN_ELIMIT, "a key has 2048 bytes at most");
}

const cairn_value *cn_api_kv_get(cairn_object *self, const char *key)
{
    struct cn_kv_bytes value;
    struct cn_err err;
    struct cn_database *db = check_key(self, key) == 0 ? database(self, false) : NULL;
    if (!db)
        return NULL;
    int rc = cn_kvtable_get(db, text_bytes(key), &value, &err);
    if (rc < 0)
        cn_compiled_fault(self, &err);
    return rc == 1 ? cn_compiled_lend_value(self, value.data, value.size) : NULL;
}

/* The database, for a change of the value of `key`. */
static int open_for_key(cairn_object *self, const char *key, struct cn_database **db)
{
    int rc = check_key(self, key);
    if (rc < 0)
        return rc;
    *db = database(self, true);
    return *db ? 0 : closed(self);
}

int cn_api_kv_put(cairn_object *self, const char *key, cairn_builder *builder)
{
    struct cn_err err;
    struct cn_database *db;
    int rc = open_for_key(self, key, &db);
    if (rc < 0)
        return rc;
    if (cn_builder_finish(builder, &err) < 0)
        return cn_compiled_fault(self, &err);
    if (builder->bytes.size + strlen(key) > PAIR_BYTES_MAX) {
        cn_builder_clear(builder);
        return cn_compiled_refuse(self, CAIRN_ELIMIT, "key and value have 2 MiB at most together");
    }
    rc = cn_kvtable_put(db, text_bytes(key),
                        (struct cn_kv_bytes){builder->bytes.data, builder->bytes.size}, &err);
    cn_builder_clear(builder);
    return rc < 0 ? cn_compiled_fault(self, &err) : 0;
}

int cn_api_kv_delete(cairn_object *self, const char *key)
{
    struct cn_err err;
    struct cn_database *db;
    int rc = open_for_key(self, key, &db);
    if (rc < 0)
        return rc;
    rc = cn_kvtable_delete(db, text_bytes(key), &err);
    return rc < 0 ? cn_compiled_fault(self, &err) : rc;
}

struct walk {
    cairn_object *self;
    int (*each)(void *data, const char *key, const cairn_value *value);
    void *data;
    int result;
};

static int visit(void *data, struct cn_kv_bytes key, struct cn_kv_bytes value)
{
    struct walk *walk = data;
    const cairn_value *read = cn_compiled_lend_value(walk->self, value.data, value.size);
    if (!read) {
        walk->result = CAIRN_ERROR;
        return 1;
    }
    char *name = cn_strndup(key.data, key.size);
    walk->result = walk->each(walk->data, name, read);
    cn_free(name);
    if (!walk->result && cn_compiled_is_gone(walk->self)) /* abort(): there is no database */
        walk->result = CAIRN_ECLOSED;
    return walk->result != 0;
}

int cn_api_kv_list(cairn_object *self, const struct cairn_range *range,
                   int (*each)(void *data, const char *key, const cairn_value *value), void *data)
{
    static const struct cairn_range all = {sizeof(all), NULL, NULL, NULL, 0, 0, 0};
    struct walk walk = {self, each, data, 0};
    struct cn_err err;
    if (!range)
        range = &all;
    if (range->size < sizeof(*range) || range->limit < 0)
        return cn_compiled_refuse(self, CAIRN_EMISUSE, "kv_list: the range is not filled in");
    struct cn_database *db = database(self, true); /* `each` may write */
    if (!db)
        return closed(self);
    struct cn_kvtable_range asked = {.start = text_bytes(range->start),
                                     .start_after = range->start_after != 0,
                                     .end = text_bytes(range->end),
                                     .prefix = text_bytes(range->prefix),
                                     .reverse = range->reverse != 0,
                                     .limit = range->limit};
    int rc = cn_kvtable_list(db, &asked, visit, &walk, &err);
    return rc < 0 ? cn_compiled_fault(self, &err) : walk.result;
}

int cn_api_delete_all(cairn_object *self)
{
    struct cn_err err;
    struct cn_database *db = database(self, true);
    if (!db)
        return closed(self);
    if (!cn_database_savepoint_level(db)) /* else it is refused */
        cn_compiled_release_statements(self);
    return cn_database_delete_all(db, true, &err) < 0 ? cn_compiled_fault(self, &err) : 0;
}

/* --- SQL ------------------------------------------------------------------------------------- */

static void limit_time(struct cn_database *db)
{
    cn_database_set_deadline(db, cn_clock_mono_ns(cn_clock_system()) + SQL_NS_MAX);
}

/* A statement that took too long has kept the whole lane: the object starts anew. */
static int sql_fault(cairn_object *self, const struct cn_err *err)
{
    if (err->code == CN_ETIMEOUT) {
        static const char text[] = "Durable Object exceeded its CPU time limit in an SQL statement "
                                   "and was reset.";
        cn_object_reset(self->object, CN_FAULT_RESET, CN_ELIMIT, text);
        return cn_compiled_refuse(self, CAIRN_ECLOSED, text);
    }
    return cn_compiled_fault(self, err);
}

static int prepare(struct cn_database *db, const char *sql, struct cn_statement **statement,
                   size_t *used, struct cn_err *err)
{
    return cn_database_prepare(db, sql, strlen(sql), CN_SQL_GUEST, statement, used, err);
}

int cn_api_sql_exec(cairn_object *self, const char *sql)
{
    struct cn_err err;
    struct cn_database *db = database(self, true);
    int rc = 0;
    if (!db)
        return closed(self);
    limit_time(db);
    while (rc == 0 && *sql) {
        struct cn_statement *statement;
        size_t used;
        rc = prepare(db, sql, &statement, &used, &err);
        if (rc < 0 || !statement)
            break;
        if (cn_statement_parameter_count(statement) > 0)
            rc = cn_err_set(&err, CN_ESQL, "sql_exec: a statement has parameters: SQLITE_MISUSE");
        while (rc == 0 && (rc = cn_statement_step(statement, &err)) == 1)
            rc = 0;
        cn_statement_release(statement);
        sql += used;
    }
    cn_database_set_deadline(db, 0);
    return rc < 0 ? sql_fault(self, &err) : 0;
}

/* S1. 0, or negative. */
static int need(cairn_statement *statement)
{
    struct cn_err err;
    size_t used;
    cairn_object *self = statement->object;
    struct cn_database *db = database(self, true);
    if (!db)
        return closed(self);
    if (statement->statement)
        return 0;
    if (prepare(db, statement->sql, &statement->statement, &used, &err) < 0)
        return cn_compiled_fault(self, &err);
    if (!statement->statement ||
        !cn_sql_blank(statement->sql + used, strlen(statement->sql + used)))
        return cn_compiled_refuse(self, CAIRN_ESQL, "sql_prepare takes one statement");
    return 0;
}

cairn_statement *cn_api_sql_prepare(cairn_object *self, const char *sql)
{
    cairn_statement *statement = CN_NEW(cairn_statement);
    statement->object = self;
    statement->sql = cn_strdup(sql);
    cn_guard_add(statement, CN_GUARD_STATEMENT, self);
    cn_list_push_back(&self->statements, &statement->link);
    if (need(statement) == 0)
        return statement;
    cn_api_sql_finalize(statement);
    return NULL;
}

static void set_busy(cairn_statement *statement, bool busy)
{
    if (statement->busy == busy)
        return;
    statement->busy = busy;
    statement->object->busy += busy ? 1 : -1u;
}

static void let_go(cairn_statement *statement)
{
    set_busy(statement, false);
    cn_statement_release(statement->statement);
    statement->statement = NULL;
}

void cn_api_sql_finalize(cairn_statement *statement)
{
    if (!statement)
        return;
    let_go(statement);
    cn_guard_remove(statement);
    cn_list_remove(&statement->link);
    cn_free(statement->sql);
    cn_free(statement);
}

void cn_compiled_release_statements(cairn_object *self)
{
    CN_LIST_FOREACH(&self->statements, node)
    let_go(CN_CONTAINER_OF(node, cairn_statement, link));
}

void cn_compiled_free_statements(cairn_object *self)
{
    CN_LIST_FOREACH(&self->statements, node)
    cn_api_sql_finalize(CN_CONTAINER_OF(node, cairn_statement, link));
}

void cn_compiled_reset_statements(cairn_object *self)
{
    CN_LIST_FOREACH(&self->statements, node)
    {
        cairn_statement *statement = CN_CONTAINER_OF(node, cairn_statement, link);
        if (statement->busy)
            cn_api_sql_reset(statement);
    }
    CN_ASSERT(!self->busy);
}

static int bound(cairn_statement *statement, int rc, const struct cn_err *err)
{
    return rc < 0 ? cn_compiled_fault(statement->object, err) : 0;
}

int cn_api_sql_bind_null(cairn_statement *statement, int index)
{
    struct cn_err err;
    int rc = need(statement);
    return rc < 0
               ? rc
               : bound(statement, cn_statement_bind_null(statement->statement, index, &err), &err);
}

int cn_api_sql_bind_int(cairn_statement *statement, int index, int64_t value)
{
    struct cn_err err;
    int rc = need(statement);
    return rc < 0 ? rc
                  : bound(statement,
                          cn_statement_bind_int(statement->statement, index, value, &err), &err);
}

int cn_api_sql_bind_real(cairn_statement *statement, int index, double value)
{
    struct cn_err err;
    int rc = need(statement);
    return rc < 0 ? rc
                  : bound(statement,
                          cn_statement_bind_real(statement->statement, index, value, &err), &err);
}

int cn_api_sql_bind_text(cairn_statement *statement, int index, const char *text, size_t size)
{
    struct cn_err err;
    int rc = need(statement);
    return rc < 0
               ? rc
               : bound(statement,
                       cn_statement_bind_text(statement->statement, index, text, size, false, &err),
                       &err);
}

int cn_api_sql_bind_blob(cairn_statement *statement, int index, const void *bytes, size_t size)
{
    struct cn_err err;
    int rc = need(statement);
    return rc < 0 ? rc
                  : bound(statement,
                          cn_statement_bind_blob(statement->statement, index, bytes, size, false,
                                                 &err),
                          &err);
}

int cn_api_sql_step(cairn_statement *statement)
{
    struct cn_err err;
    cairn_object *self = statement->object;
    int rc = need(statement);
    if (rc < 0)
        return rc;
    limit_time(self->object->db);
    rc = cn_statement_step(statement->statement, &err);
    cn_database_set_deadline(self->object->db, 0);
    set_busy(statement, rc == 1);
    if (rc == 1)
        return 1;
    cn_statement_reset(statement->statement);
    return rc < 0 ? sql_fault(self, &err) : 0;
}

void cn_api_sql_reset(cairn_statement *statement)
{
    set_busy(statement, false);
    if (statement->statement)
        cn_statement_reset(statement->statement);
}

int cn_api_sql_column_count(cairn_statement *statement)
{
    return statement->statement ? cn_statement_column_count(statement->statement) : 0;
}

/* Whether there is such a column; `row`: of a row. */
static bool has_column(cairn_statement *statement, int column, bool row)
{
    return column >= 0 && column < cn_api_sql_column_count(statement) && (statement->busy || !row);
}

const char *cn_api_sql_column_name(cairn_statement *statement, int column)
{
    return has_column(statement, column, false)
               ? cn_statement_column_name(statement->statement, column)
               : NULL;
}

enum cairn_kind cn_api_sql_column_kind(cairn_statement *statement, int column)
{
    static const enum cairn_kind kinds[] = {[CN_SQL_NULL] = CAIRN_NULL,
                                            [CN_SQL_INT] = CAIRN_NUMBER,
                                            [CN_SQL_REAL] = CAIRN_NUMBER,
                                            [CN_SQL_TEXT] = CAIRN_TEXT,
                                            [CN_SQL_BLOB] = CAIRN_BYTES};
    return has_column(statement, column, true)
               ? kinds[cn_statement_column_type(statement->statement, column)]
               : CAIRN_NULL;
}

int64_t cn_api_sql_column_int(cairn_statement *statement, int column)
{
    return has_column(statement, column, true)
               ? cn_statement_column_int(statement->statement, column)
               : 0;
}

double cn_api_sql_column_real(cairn_statement *statement, int column)
{
    return has_column(statement, column, true)
               ? cn_statement_column_real(statement->statement, column)
               : 0;
}

const char *cn_api_sql_column_text(cairn_statement *statement, int column, size_t *size)
{
    size_t count = 0;
    bool has = has_column(statement, column, true) &&
               cn_statement_column_type(statement->statement, column) != CN_SQL_NULL;
    const char *text = has ? cn_statement_column_text(statement->statement, column, &count) : NULL;
    if (size)
        *size = count;
    return text;
}

const void *cn_api_sql_column_blob(cairn_statement *statement, int column, size_t *size)
{
    size_t count = 0;
    bool has = has_column(statement, column, true) &&
               cn_statement_column_type(statement->statement, column) != CN_SQL_NULL;
    const void *bytes = has ? cn_statement_column_blob(statement->statement, column, &count) : NULL;
    if (size)
        *size = count;
    return has && !bytes ? "" : bytes; /* SQLite has no place for no bytes */
}

int64_t cn_api_sql_changes(cairn_object *self)
{
    struct cn_database *db = database(self, false);
    return db ? cn_database_changes(db) : 0;
}

int64_t cn_api_sql_last_rowid(cairn_object *self)
{
    struct cn_database *db = database(self, false);
    return db ? cn_database_last_rowid(db) : 0;
}

int64_t cn_api_database_size(cairn_object *self)
{
    struct cn_database *db = database(self, false);
    return db ? (int64_t)cn_database_size(db) : closed(self);
}

/* --- transactions ---------------------------------------------------------------------------- */

int cn_api_transaction_begin(cairn_object *self)
{
    struct cn_err err;
    struct cn_database *db = database(self, true);
    if (!db)
        return closed(self);
    if (self->transactions == TRANSACTIONS_MAX)
        return cn_compiled_refuse(self, CAIRN_ELIMIT, "transactions are nested 60 deep at most");
    int level = cn_object_savepoint(self->object, &err);
    if (level < 0)
        return cn_compiled_fault(self, &err);
    if (!self->transactions)
        self->first_level = level;
    CN_ASSERT(level == self->first_level + (int)self->transactions); /* nobody else opens any */
    self->transactions++;
    return 0;
}

static int end_transaction(cairn_object *self, bool keep)
{
    struct cn_err err;
    struct cn_database *db = database(self, true);
    if (!db)
        return closed(self);
    if (!self->transactions)
        return cn_compiled_refuse(self, CAIRN_EMISUSE, "there is no open transaction");
    int level = self->first_level + (int)--self->transactions;
    int rc = cn_object_savepoint_end(self->object, level, keep, &err);
    return rc < 0 ? cn_compiled_fault(self, &err) : 0;
}

int cn_api_transaction_commit(cairn_object *self)
{
    return end_transaction(self, true);
}

int cn_api_transaction_rollback(cairn_object *self)
{
    return end_transaction(self, false);
}

int cn_compiled_undo_transactions(cairn_object *self)
{
    struct cn_err err;
    self->transactions = 0;
    if (!cn_object_is_broken(self->object) && self->object->db &&
        cn_object_savepoint_end(self->object, self->first_level, false, &err) < 0)
        return cn_compiled_fault(self, &err);
    return cn_compiled_refuse(self, CAIRN_EMISUSE,
                              "a transaction was left open, and has been undone");
}

/* --- alarms ---------------------------------------------------------------------------------- */

int cn_api_alarm_get(cairn_object *self, int64_t *time)
{
    struct cn_err err;
    if (!database(self, false))
        return closed(self);
    if (cn_object_alarm_get(self->object, time, &err) < 0)
        return cn_compiled_fault(self, &err);
    if (*time == CN_ALARM_NONE)
        *time = -1;
    return 0;
}

static int set_alarm(cairn_object *self, int64_t time)
{
    struct cn_err err;
    if (!database(self, true))
        return closed(self);
    return cn_object_alarm_set(self->object, time, &err) < 0 ? cn_compiled_fault(self, &err) : 0;
}

int cn_api_alarm_set(cairn_object *self, int64_t time)
{
    return set_alarm(self, time < 0 ? 0 : time);
}

int cn_api_alarm_delete(cairn_object *self)
{
    return set_alarm(self, CN_ALARM_NONE);
}
