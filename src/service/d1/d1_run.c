/* SPDX-License-Identifier: Apache-2.0 */
/* service/d1/d1_run.c - runs the queries of a call on a database and writes their results as JSON.
 *
 * Runs on the lane or on a thread of the pool: it uses the database and the call, nothing else. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/assert.h"
#include "base/clock.h"
#include "base/mem.h"
#include "service/d1/d1.h"

/* Rows between two looks at the clock. */
#define ROWS_PER_CHECK 64

struct run {
    struct cn_database *db;
    struct cn_d1_call *call;
    uint64_t deadline_ns;
    uint64_t size;      /* of the database, after the last query that wrote */
    bool rows;          /* one of them has given a row */
    struct cn_buf keys; /* of the columns: "name": each */
    size_t *key_ends;
    int key_capacity;
};

/* What a query did, for its meta. */
struct totals {
    uint64_t begin_ns, size; /* when it began */
    int64_t rowid;
    uint64_t rows_read, rows_written;
    int64_t changes;
    bool writes;  /* one of its statements can */
    bool defines; /* one of them makes, changes or drops tables and the like */
};

static uint64_t now_ns(void)
{
    return cn_clock_mono_ns(cn_clock_system());
}

static int check_time(struct run *run, struct cn_err *err)
{
    if (atomic_load_explicit(&run->call->cancelled, memory_order_relaxed))
        return cn_err_set(err, CN_ETIMEOUT, "the query was ended");
    return now_ns() > run->deadline_ns ? cn_err_set(err, CN_ETIMEOUT, "out of time") : 0;
}

/* --- values ---------------------------------------------------------------------------------- */

static int bind_values(struct run *run, struct cn_statement *statement,
                       const struct cn_d1_query *query, struct cn_err *err)
{
    const struct cn_d1_call *call = run->call;
    if ((size_t)cn_statement_parameter_count(statement) != query->count)
        return cn_err_set(err, CN_ESQL, "Wrong number of parameter bindings for SQL query.");
    int rc = 0;
    for (size_t i = 0; i < query->count && rc == 0; i++) {
        const struct cn_d1_value *value = &call->values[query->first + i];
        const uint8_t *bytes = call->bytes.data + value->at;
        int index = (int)i + 1;
        switch (value->type) {
        case CN_SQL_NULL:
            rc = cn_statement_bind_null(statement, index, err);
            break;
        case CN_SQL_INT:
            rc = cn_statement_bind_int(statement, index, value->integer, err);
            break;
        case CN_SQL_REAL:
            rc = cn_statement_bind_real(statement, index, value->real, err);
            break;
        case CN_SQL_TEXT:
            rc = cn_statement_bind_text(statement, index, (const char *)bytes, value->size, true,
                                        err);
            break;
        case CN_SQL_BLOB:
            rc = cn_statement_bind_blob(statement, index, bytes, value->size, true, err);
            break;
        }
    }
    return rc;
}

static void append_real(struct cn_buf *json, double value)
{
    char text[40];
    int size = isfinite(value) ? snprintf(text, sizeof(text), "%.17g", value)
                               : snprintf(text, sizeof(text), "null");
    cn_buf_append(json, text, (size_t)size);
}

static void append_blob(struct cn_buf *json, const uint8_t *bytes, size_t size)
{
    cn_buf_append_byte(json, '[');
    for (size_t i = 0; i < size; i++) {
        if (i)
            cn_buf_append_byte(json, ',');
        cn_buf_append_int(json, bytes[i]);
    }
    cn_buf_append_byte(json, ']');
}

static void append_value(struct cn_buf *json, struct cn_statement *row, int column)
{
    size_t size;
    const void *bytes;
    switch (cn_statement_column_type(row, column)) {
    case CN_SQL_NULL:
        cn_buf_append(json, "null", 4);
        break;
    case CN_SQL_INT:
        cn_buf_append_int(json, cn_statement_column_int(row, column));
        break;
    case CN_SQL_REAL:
        append_real(json, cn_statement_column_real(row, column));
        break;
    case CN_SQL_TEXT:
        bytes = cn_statement_column_text(row, column, &size);
        cn_buf_append_json(json, bytes, size);
        break;
    case CN_SQL_BLOB:
        bytes = cn_statement_column_blob(row, column, &size);
        append_blob(json, bytes, size);
        break;
    }
}

/* --- rows ------------------------------------------------------------------------------------ */

/* Writes the names once; a row only copies them. */
static void prepare_keys(struct run *run, struct cn_statement *statement, int count)
{
    cn_buf_clear(&run->keys);
    if (count > run->key_capacity) {
        run->key_ends = cn_realloc(run->key_ends, (size_t)count * sizeof(*run->key_ends));
        run->key_capacity = count;
    }
    for (int i = 0; i < count; i++) {
        const char *name = cn_statement_column_name(statement, i);
        cn_buf_append_byte(&run->keys, i ? ',' : '{');
        cn_buf_append_json(&run->keys, name, strlen(name));
        cn_buf_append_byte(&run->keys, ':');
        run->key_ends[i] = run->keys.size;
    }
}

static void append_object(struct run *run, struct cn_statement *row, int count)
{
    struct cn_buf *json = &run->call->json;
    size_t start = 0;
    for (int i = 0; i < count; i++) {
        cn_buf_append(json, run->keys.data + start, run->key_ends[i] - start);
        start = run->key_ends[i];
        append_value(json, row, i);
    }
    cn_buf_append_byte(json, '}');
}

static void append_array(struct run *run, struct cn_statement *row, int count)
{
    struct cn_buf *json = &run->call->json;
    for (int i = 0; i < count; i++) {
        cn_buf_append_byte(json, i ? ',' : '[');
        append_value(json, row, i);
    }
    cn_buf_append_byte(json, ']');
}

static void append_names(struct cn_buf *json, struct cn_statement *statement, int count)
{
    cn_buf_append_byte(json, '[');
    for (int i = 0; i < count; i++) {
        const char *name = cn_statement_column_name(statement, i);
        if (i)
            cn_buf_append_byte(json, ',');
        cn_buf_append_json(json, name, strlen(name));
    }
    cn_buf_append_byte(json, ']');
}

static int append_rows(struct run *run, struct cn_statement *statement, struct cn_err *err)
{
    struct cn_buf *json = &run->call->json;
    int count = cn_statement_column_count(statement), rc;
    bool objects = run->call->format == CN_D1_OBJECTS;
    if (objects)
        prepare_keys(run, statement, count);
    cn_buf_append_byte(json, '[');
    for (uint64_t rows = 0; (rc = cn_statement_step(statement, err)) > 0; rows++) {
        if (rows)
            cn_buf_append_byte(json, ',');
        run->rows = true;
        if (objects)
            append_object(run, statement, count);
        else
            append_array(run, statement, count);
        if (json->size > CN_D1_RESULT_MAX)
            return cn_err_set(err, CN_ELIMIT, "the result is larger than %u MiB: use LIMIT",
                              CN_D1_RESULT_MAX >> 20);
        if (rows % ROWS_PER_CHECK == 0 && (rc = check_time(run, err)) < 0)
            return rc;
    }
    cn_buf_append_byte(json, ']');
    return rc;
}

static int append_results(struct run *run, struct cn_statement *statement, struct cn_err *err)
{
    struct cn_buf *json = &run->call->json;
    if (run->call->format != CN_D1_ROWS)
        return append_rows(run, statement, err);
    cn_buf_append_str(json, "{\"columns\":");
    append_names(json, statement, cn_statement_column_count(statement));
    cn_buf_append_str(json, ",\"rows\":");
    int rc = append_rows(run, statement, err);
    cn_buf_append_byte(json, '}');
    return rc;
}

/* --- queries --------------------------------------------------------------------------------- */

static void add_totals(struct totals *totals, struct cn_statement *statement)
{
    totals->rows_read += cn_statement_rows_read(statement);
    totals->rows_written += cn_statement_rows_written(statement);
    totals->changes += cn_statement_changes(statement);
    totals->writes |= cn_statement_writes(statement);
    totals->defines |= cn_statement_defines(statement);
}

/* Runs a statement whose rows nobody wants. */
static int skip_rows(struct run *run, struct cn_statement *statement, struct cn_err *err)
{
    int rc;
    while ((rc = cn_statement_step(statement, err)) > 0) {
        rc = check_time(run, err);
        if (rc < 0)
            return rc;
    }
    return rc;
}

/* Runs all statements but the last, whose text and statement it gives. */
static int find_last(struct run *run, const char *sql, size_t size, struct cn_statement **last,
                     struct totals *totals, struct cn_err *err)
{
    for (;;) {
        size_t used;
        struct cn_statement *statement;
        int rc = cn_database_prepare(run->db, sql, size, CN_SQL_GUEST, &statement, &used, err);
        if (rc < 0)
            return rc;
        sql += used;
        size -= used;
        if (!statement && size == 0)
            return cn_err_set(err, CN_ESQL, "SQL code did not contain a statement.");
        if (!statement)
            continue;
        if (cn_sql_blank(sql, size)) {
            *last = statement;
            return 0;
        }
        struct cn_d1_query none = {0};
        if (cn_statement_parameter_count(statement) > 0)
            rc = cn_err_set(err, CN_ESQL,
                            "When executing multiple SQL statements in a single call, only the "
                            "last statement can have parameters.");
        else
            rc = bind_values(run, statement, &none, err);
        if (rc == 0)
            rc = skip_rows(run, statement, err);
        if (rc == 0)
            add_totals(totals, statement);
        cn_statement_release(statement);
        if (rc < 0)
            return rc;
    }
}

/* Notes how things are before a query, or before all. */
static struct totals begin_totals(struct run *run)
{
    return (struct totals){
        .begin_ns = now_ns(), .rowid = cn_database_last_rowid(run->db), .size = run->size};
}

static void append_plain(struct cn_buf *json, const struct cn_d1_meta *meta, int64_t rowid)
{
    cn_buf_printf(json, ",\"meta\":{\"duration\":%.4f,\"changes\":", meta->duration_ms);
    cn_buf_append_int(json, (int64_t)meta->changes);
    cn_buf_append_str(json, ",\"last_row_id\":");
    cn_buf_append_int(json, rowid); /* all of its digits */
    cn_buf_append_str(json, ",\"changed_db\":");
    cn_buf_append_int(json, (int64_t)meta->changed);
    cn_buf_append_str(json, ",\"size_after\":");
    cn_buf_append_int(json, (int64_t)meta->size_after);
    cn_buf_append_str(json, ",\"rows_read\":");
    cn_buf_append_int(json, (int64_t)meta->rows_read);
    cn_buf_append_str(json, ",\"rows_written\":");
    cn_buf_append_int(json, (int64_t)meta->rows_written);
    cn_buf_append_str(json, "}}");
}

/* What was done, where the call wants it. */
static void append_meta(struct run *run, const struct totals *totals)
{
    struct cn_d1_call *call = run->call;
    if (totals->writes)
        run->size = cn_database_size(run->db);
    uint64_t tenths_us = (now_ns() - totals->begin_ns) / 100;
    int64_t rowid = cn_database_last_rowid(run->db);
    /* What writes without changing a row changes the schema. */
    bool changed = totals->changes || rowid != totals->rowid || run->size != totals->size ||
                   (totals->writes && totals->defines);
    const struct cn_d1_meta meta = {.duration_ms = (double)tenths_us / 10000,
                                    .changes = (double)totals->changes,
                                    .last_rowid = (double)rowid,
                                    .changed = changed,
                                    .size_after = (double)run->size,
                                    .rows_read = (double)totals->rows_read,
                                    .rows_written = (double)totals->rows_written};
    if (call->plain)
        append_plain(&call->json, &meta, rowid);
    else
        cn_buf_append(&call->metas, &meta, sizeof(meta));
}

static int run_query(struct run *run, const struct cn_d1_query *query, struct totals *totals,
                     struct cn_err *err)
{
    struct cn_buf *json = &run->call->json;
    const char *sql = (const char *)run->call->bytes.data + query->at;
    size_t size = query->size;
    if (size > CN_D1_SQL_MAX && !run->call->trusted)
        return cn_err_set(err, CN_ESQL, "statement too long: SQLITE_TOOBIG");
    while (size && strchr(" \t\r\n", sql[size - 1]))
        size--; /* so that it is found in the cache */
    struct cn_statement *statement = NULL;
    int rc = find_last(run, sql, size, &statement, totals, err);
    if (rc < 0)
        return rc;
    bool counting = run->call->format == CN_D1_COUNT;
    if (!counting && run->call->plain)
        cn_buf_append_str(json, "{\"success\":true,\"results\":");
    rc = bind_values(run, statement, query, err);
    if (rc == 0)
        rc = counting ? skip_rows(run, statement, err) : append_results(run, statement, err);
    if (rc == 0) {
        add_totals(totals, statement);
        if (!counting)
            append_meta(run, totals);
    }
    cn_statement_release(statement);
    return rc;
}

/* On the platform a query is always inside a transaction, where PRAGMA foreign_keys and its like
 * do nothing. */
static bool has_pragma(const struct cn_d1_call *call)
{
    for (size_t i = 0; i < call->query_count; i++) {
        if (call->queries[i].size == 0 || (i && call->queries[i].at == call->queries[i - 1].at))
            continue;
        const char *sql = (const char *)call->bytes.data + call->queries[i].at;
        if (memmem(sql, call->queries[i].size, "PRAGMA", 6) ||
            memmem(sql, call->queries[i].size, "pragma", 6))
            return true;
    }
    return false;
}

/* An answer for each query. */
static int run_listed(struct run *run, size_t *index, struct cn_err *err)
{
    struct cn_d1_call *call = run->call;
    int rc = 0;
    cn_buf_append_byte(&call->json, '[');
    for (*index = 0; *index < call->query_count && rc == 0; ++*index) {
        struct totals totals = begin_totals(run);
        if (*index)
            cn_buf_append_byte(&call->json, ',');
        rc = check_time(run, err);
        if (rc == 0)
            rc = run_query(run, &call->queries[*index], &totals, err);
    }
    cn_buf_append_byte(&call->json, ']');
    if (!call->plain && call->format == CN_D1_OBJECTS && !run->rows)
        cn_buf_clear(&call->json);
    return rc;
}

/* One answer for all. */
static int run_counted(struct run *run, size_t *index, struct cn_err *err)
{
    struct cn_d1_call *call = run->call;
    struct totals totals = begin_totals(run);
    int rc = 0;
    for (*index = 0; *index < call->query_count && rc == 0; ++*index) {
        rc = check_time(run, err);
        if (rc == 0)
            rc = run_query(run, &call->queries[*index], &totals, err);
    }
    if (call->plain) {
        cn_buf_append_str(&call->json, "{\"success\":true,\"count\":");
        cn_buf_append_uint(&call->json, call->query_count);
    }
    append_meta(run, &totals);
    return rc;
}

static int run_queries(struct run *run, size_t *index, struct cn_err *err)
{
    struct cn_d1_call *call = run->call;
    int rc = 0, level = 0;
    if (call->query_count == 0)
        return cn_err_set(err, CN_ESQL, "No SQL statements detected.");
    if (has_pragma(call)) {
        level = cn_database_savepoint(run->db, err);
        if (level < 0)
            return level;
    }
    rc = call->format == CN_D1_COUNT ? run_counted(run, index, err) : run_listed(run, index, err);
    return rc == 0 && level ? cn_database_savepoint_release(run->db, level, err) : rc;
}

int cn_d1_run(struct cn_database *db, struct cn_d1_call *call, uint64_t deadline_ns,
              struct cn_err *err)
{
    struct run run = {
        .db = db, .call = call, .deadline_ns = deadline_ns, .size = cn_database_size(db)};
    size_t index = 0;
    cn_buf_clear(&call->json);
    cn_buf_clear(&call->metas);
    cn_database_set_deadline(db, deadline_ns);
    int rc = run_queries(&run, &index, err);
    cn_database_set_deadline(db, 0);
    cn_buf_fini(&run.keys);
    cn_free(run.key_ends);
    if (rc == CN_EABORTED)
        rc = cn_err_set(err, CN_ETIMEOUT, "the query was ended");
    if (rc == CN_ESQL || rc == CN_ELIMIT || rc == CN_EINVALID) {
        cn_database_rollback(db);
        cn_buf_clear(&call->json);
        cn_buf_append_str(&call->json, "{\"error\":");
        cn_buf_append_json(&call->json, err->text, strlen(err->text));
        cn_buf_printf(&call->json, ",\"index\":%zu}", index ? index - 1 : 0);
        return 0;
    }
    return rc;
}
