/* SPDX-License-Identifier: Apache-2.0 */
/* admin/control_sql.c - SQL and key-value pairs of one object.
 *
 * Under the rules that hold for the object's own statements (no _cf_ tables, no transactions of its
 * own). In a live object a script is one event among the others and must be quick.
 *
 * Q1  A script is one transaction: all of it is done, and durable when it is answered, or nothing.
 * Q2  Bounded: ROWS_MAX, ANSWER_SIZE_MAX, RESULTS_MAX, and time. Past the first two the answer says
 *     "truncated", and a statement that writes still runs to its end.
 * Q3  With "readonly" nothing that writes is run.
 * Q4  Pages of pairs have every key once, whatever bytes it has: a cursor that was given is taken.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "admin/clone.h"
#include "admin/handler.h"
#include "base/clock.h"
#include "store/database.h"
#include "store/kvtable.h"
#include "text/base64.h"

#define ROWS_MAX 10000
#define ANSWER_SIZE_MAX ((size_t)8 << 20)
#define RESULTS_MAX 100
#define LIVE_SECONDS_MAX 5 /* its lane waits meanwhile */
#define ALONE_SECONDS_MAX 60
#define KEYS_MAX 1000

struct script {
    const char *sql;
    const struct cn_json *params; /* an array, or NULL; for the first statement */
    bool readonly;
    struct cn_buf *out;
    int row_count, result_count;
    bool truncated;
};

static int bind(struct cn_statement *statement, const struct cn_json *params, struct cn_err *err)
{
    int index = 1, rc = 0;
    for (const struct cn_json *value = params ? params->first : NULL; value && rc == 0;
         value = value->next, index++) {
        switch (value->kind) {
        case CN_JSON_NULL:
            rc = cn_statement_bind_null(statement, index, err);
            break;
        case CN_JSON_BOOL:
            rc = cn_statement_bind_int(statement, index, value->boolean, err);
            break;
        case CN_JSON_INT:
            rc = cn_statement_bind_int(statement, index, value->integer, err);
            break;
        case CN_JSON_NUMBER:
            rc = cn_statement_bind_real(statement, index, value->number, err);
            break;
        case CN_JSON_STRING:
            rc = cn_statement_bind_text(statement, index, value->text, value->size, false, err);
            break;
        default:
            rc = cn_err_set(err, CN_EINVALID, "a parameter must be null, a number or a string");
        }
    }
    if (rc == 0 && index - 1 != cn_statement_parameter_count(statement))
        rc = cn_err_set(err, CN_EINVALID, "the statement has %d parameters, but %d are given",
                        cn_statement_parameter_count(statement), index - 1);
    return rc;
}

static void append_column(struct cn_buf *out, struct cn_statement *statement, int column)
{
    size_t size;
    switch (cn_statement_column_type(statement, column)) {
    case CN_SQL_NULL:
        cn_buf_append_str(out, "null");
        break;
    case CN_SQL_INT:
        cn_buf_printf(out, "%" PRId64, cn_statement_column_int(statement, column));
        break;
    case CN_SQL_REAL: {
        double number = cn_statement_column_real(statement, column);
        cn_buf_printf(out, isfinite(number) ? "%.17g" : "\"%f\"", number);
        break;
    }
    case CN_SQL_TEXT: {
        const char *text = cn_statement_column_text(statement, column, &size);
        cn_buf_append_json(out, text, size);
        break;
    }
    case CN_SQL_BLOB: {
        const void *bytes = cn_statement_column_blob(statement, column, &size);
        cn_buf_append_str(out, "{\"base64\":\"");
        cn_base64_encode(out, bytes, size);
        cn_buf_append_str(out, "\"}");
        break;
    }
    }
}

static int append_rows(struct script *script, struct cn_statement *statement, struct cn_err *err)
{
    struct cn_buf *out = script->out;
    int columns = cn_statement_column_count(statement), rc;
    bool first = true;
    cn_buf_append_str(out, script->result_count++ ? ",{\"columns\":[" : "{\"columns\":[");
    for (int i = 0; i < columns; i++) {
        const char *name = cn_statement_column_name(statement, i);
        if (i > 0)
            cn_buf_append_byte(out, ',');
        cn_buf_append_json(out, name, strlen(name));
    }
    cn_buf_append_str(out, "],\"rows\":[");
    while ((rc = cn_statement_step(statement, err)) == 1) {
        /* Past the limits a statement still runs to its end: it may write. */
        if (script->row_count >= ROWS_MAX || out->size >= ANSWER_SIZE_MAX) {
            script->truncated = true;
            if (!cn_statement_writes(statement))
                break;
            continue;
        }
        script->row_count++;
        cn_buf_append_str(out, first ? "[" : ",[");
        first = false;
        for (int i = 0; i < columns; i++) {
            if (i > 0)
                cn_buf_append_byte(out, ',');
            append_column(out, statement, i);
        }
        cn_buf_append_byte(out, ']');
    }
    cn_buf_printf(out, "],\"rowsRead\":%" PRIu64 ",\"rowsWritten\":%" PRIu64 "}",
                  cn_statement_rows_read(statement), cn_statement_rows_written(statement));
    return rc < 0 ? rc : 0;
}

static int run_script(struct cn_object *object, struct cn_database *db, void *data,
                      struct cn_err *err)
{
    struct script *script = data;
    const char *at = script->sql, *end = at + strlen(at);
    int rc = 0;
    uint64_t seconds = object ? LIVE_SECONDS_MAX : ALONE_SECONDS_MAX;
    cn_database_set_deadline(db, cn_clock_mono_ns(cn_clock_system()) + seconds * 1000000000u);
    while (rc == 0 && at < end) {
        struct cn_statement *statement;
        size_t used;
        rc = cn_database_prepare(db, at, (size_t)(end - at), CN_SQL_GUEST | CN_SQL_UNCACHED,
                                 &statement, &used, err);
        if (rc < 0)
            break;
        at += used;
        if (!statement)
            continue;
        if (script->result_count == RESULTS_MAX)
            rc = cn_err_set(err, CN_ELIMIT, "more than %d statements", RESULTS_MAX);
        if (rc == 0 && script->readonly && cn_statement_writes(statement))
            rc = cn_err_set(err, CN_EDENIED, "this statement writes, which was not asked for");
        if (rc == 0)
            rc = bind(statement, script->params, err);
        script->params = NULL; /* those behind it have none */
        if (rc == 0)
            rc = append_rows(script, statement, err);
        cn_statement_release(statement);
    }
    cn_database_set_deadline(db, 0);
    return rc;
}

/* {"sql": "...", "params": [...], "readonly": true} */
int cn_control_sql(struct cn_control_call *call, struct cn_err *err)
{
    struct cn_object_key key;
    const struct cn_json *sql = cn_json_find(call->json, "sql");
    const struct cn_json *readonly = cn_json_find(call->json, "readonly");
    struct script script = {.params = cn_json_find(call->json, "params"), .out = &call->scratch};
    if (!sql || sql->kind != CN_JSON_STRING || strlen(sql->text) != sql->size)
        return cn_err_set(err, CN_EINVALID, "\"sql\" must be a text");
    if (script.params && script.params->kind != CN_JSON_ARRAY)
        return cn_err_set(err, CN_EINVALID, "\"params\" must be an array");
    if (readonly && readonly->kind != CN_JSON_BOOL)
        return cn_err_set(err, CN_EINVALID, "\"readonly\" must be true or false");
    script.sql = sql->text;
    script.readonly = readonly && readonly->boolean;
    int rc = cn_control_object(call, 2, &key, err);
    if (rc < 0)
        return rc;
    cn_buf_append_str(script.out, "{\"results\":[");
    rc = cn_control_with_database(call, &key, run_script, &script, err);
    if (rc < 0)
        return rc;
    cn_buf_printf(script.out, "],\"truncated\":%s}", script.truncated ? "true" : "false");
    return cn_control_answer(call, script.out);
}

/* --- key-value pairs ------------------------------------------------------------------------- */

struct pairs {
    struct cn_buf *out;
    struct cn_kvtable_range range;
    int64_t limit;
    int64_t count;
    struct cn_buf last; /* key */
};

static int append_pair(void *data, struct cn_kv_bytes key, struct cn_kv_bytes value)
{
    struct pairs *pairs = data;
    if (pairs->out->size >= ANSWER_SIZE_MAX)
        return 1;
    cn_buf_append_str(pairs->out, pairs->count++ ? ",{\"key\":" : "{\"key\":");
    cn_buf_append_json(pairs->out, key.data, key.size);
    cn_buf_printf(pairs->out, ",\"bytes\":%zu,\"value\":", value.size);
    cn_clone_append_json(pairs->out, value.data, value.size);
    cn_buf_append_byte(pairs->out, '}');
    cn_buf_clear(&pairs->last);
    cn_buf_append(&pairs->last, key.data, key.size);
    return 0;
}

static int list_pairs(struct cn_object *object, struct cn_database *db, void *data,
                      struct cn_err *err)
{
    (void)object;
    struct pairs *pairs = data;
    int rc = cn_kvtable_list(db, &pairs->range, append_pair, pairs, err);
    return rc < 0 ? rc : 0;
}

int cn_control_kv(struct cn_control_call *call, struct cn_err *err)
{
    struct cn_object_key key;
    struct pairs pairs = {.out = &call->scratch};
    struct cn_buf after = {0}; /* the key that the last page ended with */
    const char *prefix = cn_control_param(call, "prefix");
    int rc = cn_control_object(call, 2, &key, err);
    if (rc == 0)
        rc = cn_control_param_number(call, "limit", KEYS_MAX, 100, &pairs.limit, err);
    if (rc == 0)
        rc = cn_control_read_cursor(call, "p", &after, err);
    if (rc < 0)
        goto done;
    pairs.range.limit = pairs.limit ? pairs.limit : 1;
    if (prefix)
        pairs.range.prefix = (struct cn_kv_bytes){prefix, strlen(prefix)};
    if (after.size) {
        pairs.range.start = (struct cn_kv_bytes){after.data, after.size};
        pairs.range.start_after = true;
    }
    cn_buf_append_str(pairs.out, "{\"entries\":[");
    rc = cn_control_with_database(call, &key, list_pairs, &pairs, err);
    if (rc == 0) {
        bool more = pairs.count == pairs.range.limit || pairs.out->size >= ANSWER_SIZE_MAX;
        cn_buf_append_str(pairs.out, "],\"cursor\":");
        if (more) /* Q4 */
            cn_control_append_cursor(pairs.out, 'p', pairs.last.data, pairs.last.size);
        else
            cn_buf_append_str(pairs.out, "null");
        cn_buf_append_byte(pairs.out, '}');
        rc = cn_control_answer(call, pairs.out);
    }
done:
    cn_buf_fini(&pairs.last);
    cn_buf_fini(&after);
    return rc;
}

#define KEY_SIZE_MAX 2048 /* as in prelude/workers/object/storage.js */

struct edit {
    struct cn_kv_bytes key, value; /* value.data NULL: delete */
    bool existed;
};

static int edit_pair(struct cn_object *object, struct cn_database *db, void *data,
                     struct cn_err *err)
{
    (void)object;
    struct edit *edit = data;
    if (edit->value.data)
        return cn_kvtable_put(db, edit->key, edit->value, err);
    int rc = cn_kvtable_delete(db, edit->key, err);
    edit->existed = rc == 1;
    return rc < 0 ? rc : 0;
}

static int run_edit(struct cn_control_call *call, struct edit *edit, struct cn_err *err)
{
    struct cn_object_key key;
    if (call->rest.size > KEY_SIZE_MAX)
        return cn_err_set(err, CN_EINVALID, "a key has at most %d bytes", KEY_SIZE_MAX);
    edit->key = (struct cn_kv_bytes){call->rest.data, call->rest.size};
    int rc = cn_control_object(call, 2, &key, err);
    return rc < 0 ? rc : cn_control_with_database(call, &key, edit_pair, edit, err);
}

/* PUT /api/objects/NAMESPACE/OBJECT/kv/KEY; the body is the value, as clone.h has it */
int cn_control_kv_put(struct cn_control_call *call, struct cn_err *err)
{
    struct cn_buf value = {0};
    if (!call->json)
        return cn_err_set(err, CN_EINVALID, "the body must be the value, as JSON");
    int rc = cn_clone_from_json(&value, call->json, err);
    struct edit edit = {.value = {value.data, value.size}};
    if (rc == 0)
        rc = run_edit(call, &edit, err);
    if (rc == 0) {
        cn_buf_printf(&call->scratch, "{\"bytes\":%zu,\"value\":", value.size);
        cn_clone_append_json(&call->scratch, value.data, value.size);
        cn_buf_append_byte(&call->scratch, '}');
        rc = cn_control_answer(call, &call->scratch);
    }
    cn_buf_fini(&value);
    return rc;
}

/* DELETE of the same */
int cn_control_kv_delete(struct cn_control_call *call, struct cn_err *err)
{
    struct edit edit = {0};
    int rc = run_edit(call, &edit, err);
    if (rc < 0)
        return rc;
    cn_buf_printf(&call->scratch, "{\"deleted\":%s}", edit.existed ? "true" : "false");
    return cn_control_answer(call, &call->scratch);
}
