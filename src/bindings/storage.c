/* SPDX-License-Identifier: Apache-2.0 */
/* bindings/storage.c - an object's storage: key-value pairs, SQL, transactions, alarm.
 *
 * Every function's first argument is the number of the object (or of a cursor).
 * Values are bytes that the prelude has serialized. */
#include <string.h>

#include "base/assert.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "border/storage.h"
#include "js/native.h"
#include "object/object.h"
#include "store/database.h"
#include "store/kvtable.h"
#include "worker/instance.h"
#include "worker/jsclass.h"
#include "worker/lane.h"
#include "worker/runtime.h"

#define CURSORS_MAX 256
#define SQL_NS_MAX 30000000000u

static struct cn_lane *lane_of(JSContextRef ctx)
{
    return ((struct cn_instance *)cn_runtime_of(ctx)->data)->lane;
}

static struct cn_jsobject *object_arg(JSContextRef ctx, JSValueRef handle)
{
    return cn_jsobject_find(cn_runtime_of(ctx)->data, cn_js_to_number(ctx, handle));
}

/* For the output gate, whose object may be that of another script's turn: to wait is always right.
 */
static struct cn_jsobject *any_object_arg(JSContextRef ctx, JSValueRef handle)
{
    return cn_handles_find(&lane_of(ctx)->objects, cn_js_to_number(ctx, handle));
}

static JSValueRef throw_err(JSContextRef ctx, JSValueRef *exception, const struct cn_err *err)
{
    return cn_js_throw(ctx, exception, CN_JS_ERROR, "%s", err->text);
}

/* O4, O5: storage names its object, and whoever uses it, that object takes part in the turn. */
static void touch(struct cn_lane *lane, struct cn_object *object)
{
    cn_object_touch(object);
    if (lane->object_lane.strayed)
        lane->vm->clock[CN_JS_STRAY] = 1;
}

/* The database of the object, or NULL with the exception set. `writes`: something may be written
 * that outputs wait for. */
static struct cn_database *database(JSContextRef ctx, JSValueRef handle, bool writes,
                                    JSValueRef *exception)
{
    struct cn_jsobject *js = object_arg(ctx, handle);
    struct cn_err err;
    if (!js || cn_object_is_broken(js->object)) {
        cn_js_throw(ctx, exception, CN_JS_ERROR,
                    "This instance of the Durable Object was reset; its storage cannot be used.");
        return NULL;
    }
    touch(js->instance->lane, js->object);
    struct cn_database *db = cn_object_database(js->object, &err);
    if (!db)
        throw_err(ctx, exception, &err);
    else if (writes)
        js->object->unconfirmed = false;
    return db;
}

/* For natives that may write, and for those that only read; the object is their first argument. */
static struct cn_database *database_to_write(JSContextRef ctx, JSValueRef handle,
                                             JSValueRef *exception)
{
    return database(ctx, handle, true, exception);
}

static struct cn_database *database_to_read(JSContextRef ctx, JSValueRef handle,
                                            JSValueRef *exception)
{
    return database(ctx, handle, false, exception);
}

/* Two keys at most are used at a time. */
static struct cn_kv_bytes key_arg(JSContextRef ctx, JSValueRef value, struct cn_buf *buf)
{
    cn_buf_clear(buf);
    cn_js_append_utf8(ctx, value, buf);
    cn_buf_text(buf);
    return (struct cn_kv_bytes){buf->data, buf->size};
}

static struct cn_buf *scratch_of(JSContextRef ctx)
{
    return &lane_of(ctx)->scratch;
}

/* kvGet(o, key) -> Uint8Array or undefined */
static JSValueRef native_kv_get(CN_JS_NATIVE_ARGS)
{
    struct cn_database *db = database_to_read(ctx, cn_js_arg(0), exception);
    if (!db)
        return JSValueMakeUndefined(ctx);
    struct cn_kv_bytes value;
    struct cn_err err;
    int rc = cn_kvtable_get(db, key_arg(ctx, cn_js_arg(1), scratch_of(ctx)), &value, &err);
    if (rc < 0)
        return throw_err(ctx, exception, &err);
    return rc ? cn_js_uint8array(ctx, value.data, value.size) : JSValueMakeUndefined(ctx);
}

/* kvPut(o, key, bytes) */
static JSValueRef native_kv_put(CN_JS_NATIVE_ARGS)
{
    struct cn_database *db = database_to_write(ctx, cn_js_arg(0), exception);
    if (!db)
        return JSValueMakeUndefined(ctx);
    uint8_t *bytes;
    size_t size;
    if (!cn_js_bytes(ctx, cn_js_arg(2), &bytes, &size))
        return cn_js_throw(ctx, exception, CN_JS_TYPE_ERROR, "kvPut: not bytes");
    struct cn_err err;
    int rc = cn_kvtable_put(db, key_arg(ctx, cn_js_arg(1), scratch_of(ctx)),
                            (struct cn_kv_bytes){bytes, size}, &err);
    return rc < 0 ? throw_err(ctx, exception, &err) : JSValueMakeUndefined(ctx);
}

/* kvDelete(o, key) -> whether it was there */
static JSValueRef native_kv_delete(CN_JS_NATIVE_ARGS)
{
    struct cn_database *db = database_to_write(ctx, cn_js_arg(0), exception);
    if (!db)
        return JSValueMakeUndefined(ctx);
    struct cn_err err;
    int rc = cn_kvtable_delete(db, key_arg(ctx, cn_js_arg(1), scratch_of(ctx)), &err);
    return rc < 0 ? throw_err(ctx, exception, &err) : JSValueMakeBoolean(ctx, rc);
}

struct listing {
    JSContextRef ctx;
    JSValueRef function;
    JSValueRef exception;
};

static int on_pair(void *data, struct cn_kv_bytes key, struct cn_kv_bytes value)
{
    struct listing *listing = data;
    JSContextRef ctx = listing->ctx;
    JSValueRef argv[2] = {cn_js_text(ctx, key.data, key.size),
                          cn_js_uint8array(ctx, value.data, value.size)};
    JSValueRef result = cn_js_invoke(ctx, listing->function, 2, argv, &listing->exception);
    return !result || listing->exception || JSValueToBoolean(ctx, result) ? 1 : 0;
}

static struct cn_kv_bytes optional_key(JSContextRef ctx, JSValueRef value, struct cn_buf *buf)
{
    if (JSValueIsUndefined(ctx, value))
        return (struct cn_kv_bytes){0};
    return key_arg(ctx, value, buf);
}

/* kvList(o, start | undefined, startAfter, end | undefined, prefix | undefined, reverse, limit,
 * each): each(key, bytes) returns true to stop */
static JSValueRef native_kv_list(CN_JS_NATIVE_ARGS)
{
    struct cn_database *db = database_to_read(ctx, cn_js_arg(0), exception);
    if (!db)
        return JSValueMakeUndefined(ctx);
    struct cn_buf start = {0}, end = {0}, prefix = {0};
    struct cn_kvtable_range range = {
        .start = optional_key(ctx, cn_js_arg(1), &start),
        .start_after = JSValueToBoolean(ctx, cn_js_arg(2)),
        .end = optional_key(ctx, cn_js_arg(3), &end),
        .prefix = optional_key(ctx, cn_js_arg(4), &prefix),
        .reverse = JSValueToBoolean(ctx, cn_js_arg(5)),
        .limit = cn_js_to_int64(ctx, cn_js_arg(6)),
    };
    struct listing listing = {ctx, cn_js_arg(7), NULL};
    struct cn_err err;
    int rc = cn_kvtable_list(db, &range, on_pair, &listing, &err);
    cn_buf_fini(&start);
    cn_buf_fini(&end);
    cn_buf_fini(&prefix);
    if (listing.exception)
        *exception = listing.exception;
    else if (rc < 0)
        throw_err(ctx, exception, &err);
    return JSValueMakeUndefined(ctx);
}

/* --- SQL ------------------------------------------------------------------------------------- */

static JSValueRef column_value(JSContextRef ctx, struct cn_statement *statement, int column)
{
    size_t size;
    switch (cn_statement_column_type(statement, column)) {
    case CN_SQL_NULL:
        return JSValueMakeNull(ctx);
    case CN_SQL_INT:
        return JSValueMakeNumber(ctx, (double)cn_statement_column_int(statement, column));
    case CN_SQL_REAL:
        return JSValueMakeNumber(ctx, cn_statement_column_real(statement, column));
    case CN_SQL_TEXT: {
        const char *text = cn_statement_column_text(statement, column, &size);
        return cn_js_text(ctx, text ? text : "", size);
    }
    case CN_SQL_BLOB: {
        const void *blob = cn_statement_column_blob(statement, column, &size);
        return cn_js_arraybuffer_take(ctx, size ? cn_memdup(blob, size) : cn_alloc(1), size);
    }
    }
    CN_UNREACHABLE();
}

/* A number is bound as the REAL it is in JavaScript, -0 and whole ones too, as on the platform; a
 * column with INTEGER affinity makes an integer of it. The prelude has made texts of all else. */
static int bind_value(JSContextRef ctx, struct cn_statement *statement, int index, JSValueRef value,
                      struct cn_buf *scratch, struct cn_err *err)
{
    uint8_t *bytes;
    size_t size;
    switch (JSValueGetType(ctx, value)) {
    case kJSTypeUndefined:
    case kJSTypeNull:
        return cn_statement_bind_null(statement, index, err);
    case kJSTypeNumber:
        return cn_statement_bind_real(statement, index, cn_js_to_number(ctx, value), err);
    case kJSTypeString:
        cn_buf_clear(scratch);
        cn_js_append_utf8(ctx, value, scratch);
        return cn_statement_bind_text(statement, index, cn_buf_text(scratch), scratch->size, false,
                                      err);
    default:
        if (cn_js_bytes(ctx, value, &bytes, &size))
            return cn_statement_bind_blob(statement, index, bytes, size, false, err);
        return cn_err_set(err, CN_EINVALID, "a value of this type cannot be bound");
    }
}

/* The next row as an array, or null. The statement goes back when there is none. */
static JSValueRef next_row(JSContextRef ctx, struct cn_statement *statement, int rc,
                           JSValueRef *exception, const struct cn_err *err)
{
    if (rc < 0)
        return throw_err(ctx, exception, err);
    if (rc == 0)
        return JSValueMakeNull(ctx);
    JSValueRef small[32];
    int count = cn_statement_column_count(statement);
    JSValueRef *values = count <= 32 ? small : cn_alloc((size_t)count * sizeof(*values));
    /* Values on the C heap are not seen by the collector: keep long rows protected. */
    for (int i = 0; i < count; i++) {
        values[i] = column_value(ctx, statement, i);
        if (values != small)
            JSValueProtect(ctx, values[i]);
    }
    JSValueRef row = JSObjectMakeArray(ctx, (size_t)count, values, exception);
    if (values != small) {
        for (int i = 0; i < count; i++)
            JSValueUnprotect(ctx, values[i]);
        cn_free(values);
    }
    return row;
}

static struct cn_handles *cursors_of(JSContextRef ctx)
{
    return &lane_of(ctx)->cursors;
}

static int run_through(struct cn_statement *statement, uint64_t *rows_read, uint64_t *rows_written,
                       struct cn_err *err)
{
    if (cn_statement_parameter_count(statement))
        return cn_err_set(err, CN_ESQL,
                          "When executing multiple SQL statements in a single call, only the last "
                          "statement can have parameters.");
    int rc;
    while ((rc = cn_statement_step(statement, err)) > 0)
        ;
    if (rc < 0)
        return rc;
    *rows_read += cn_statement_rows_read(statement);
    *rows_written += cn_statement_rows_written(statement);
    return 0;
}

/* A statement may run as long as a turn may, 30 s at most (DO-TX-6): the engine cannot end it. */
static void limit_time(JSContextRef ctx, struct cn_database *db)
{
    uint64_t budget_ns = lane_of(ctx)->vm->budget_ns;
    if (!budget_ns || budget_ns > SQL_NS_MAX)
        budget_ns = SQL_NS_MAX;
    cn_database_set_deadline(db, cn_clock_mono_ns(cn_clock_system()) + budget_ns);
}

/* Throws; a statement that ran out of time resets the object. The statement has been released. */
static JSValueRef throw_sql(JSContextRef ctx, struct cn_jsobject *js, JSValueRef *exception,
                            const struct cn_err *err)
{
    if (err->code != CN_ETIMEOUT)
        return throw_err(ctx, exception, err);
    static const char text[] = "Durable Object exceeded its CPU time limit in an SQL statement and "
                               "was reset.";
    cn_object_reset(js->object, CN_FAULT_RESET, CN_ELIMIT, text);
    return cn_js_throw(ctx, exception, CN_JS_ERROR, text);
}

/* What the statement has is the object's (js/engine/alloc.h, M7), to 64 KB. */
static void count_memory(struct cn_jscursor *cursor)
{
    struct cn_holding *holding = &cursor->holding.base;
    int64_t more = cn_statement_memory(cursor->statement) - cursor->holding.bytes;
    if (more < 65536 && more > -65536)
        return;
    holding->must = true; /* it is there: store/sqlite_memory.h has asked */
    if (more < 0)
        holding->give(holding, (size_t)-more);
    else
        (void)holding->take(holding, (size_t)more);
    holding->must = false;
}

/* A statement under way as JavaScript knows it. An object has CURSORS_MAX at most: those that were
 * given up half read go when newer ones come. 0: there is no room. */
static uint64_t open_cursor(JSContextRef ctx, struct cn_jsobject *js,
                            struct cn_statement *statement)
{
    if (js->cursor_count == CURSORS_MAX)
        cn_jscursor_end(lane_of(ctx), CN_CONTAINER_OF(js->cursors.next, struct cn_jscursor, link));
    struct cn_jscursor *cursor = CN_NEW(struct cn_jscursor);
    cursor->js = js;
    cursor->statement = statement;
    cursor->handle = cn_handles_add(cursors_of(ctx), cursor);
    if (!cursor->handle) {
        cn_free(cursor);
        return 0;
    }
    cn_list_push_back(&js->cursors, &cursor->link);
    js->cursor_count++;
    cn_js_holding_begin(&cursor->holding);
    count_memory(cursor);
    return cursor->handle;
}

/* Runs every statement of `sql` but the last, each to its end before the next is even compiled, and
 * prepares that one. */
static int run_to_last(struct cn_database *db, struct cn_buf *sql, struct cn_statement **statement,
                       uint64_t *rows_read, uint64_t *rows_written, struct cn_err *err)
{
    const char *at = cn_buf_text(sql);
    size_t left = sql->size;
    while (left) {
        size_t used = 0;
        int rc = cn_database_prepare(db, at, left, CN_SQL_GUEST, statement, &used, err);
        if (rc < 0)
            return rc;
        at += used;
        left -= used;
        if (!*statement)
            break; /* only white space may follow the last one, as on the platform */
        if (strspn(at, " \t\n\v\f\r") == left)
            return 0;
        if (cn_statement_parameter_count(*statement) > 0)
            return cn_err_set(err, CN_ESQL,
                              "When executing multiple SQL statements in a single call, only the "
                              "last statement can have parameters.");
        rc = run_through(*statement, rows_read, rows_written, err);
        if (rc < 0)
            return rc;
        cn_statement_release(*statement);
        *statement = NULL;
    }
    return cn_err_set(err, CN_ESQL, "SQL code did not contain a statement.");
}

static int bind_all(JSContextRef ctx, struct cn_statement *statement, size_t count,
                    const JSValueRef values[], struct cn_err *err)
{
    if ((size_t)cn_statement_parameter_count(statement) != count)
        return cn_err_set(err, CN_ESQL,
                          "Wrong number of parameter bindings for SQL query. The query has %d "
                          "parameter(s) and %zu were given.",
                          cn_statement_parameter_count(statement), count);
    int rc = 0;
    for (size_t i = 0; i < count && rc == 0; i++)
        rc = bind_value(ctx, statement, (int)i + 1, values[i], scratch_of(ctx), err);
    return rc;
}

/* What a call says beside the row that it returns, in memory that the prelude sees: numbers cross
 * for nothing. */
enum { OUT_CURSOR, OUT_ROWS_READ, OUT_ROWS_WRITTEN, OUT_SHAPE };

/* sqlOut() -> Float64Array: [cursor or 0: the statement is over, rowsRead, rowsWritten, shape] */
static JSValueRef native_sql_out(CN_JS_NATIVE_ARGS)
{
    /* Without an instance (tests of the prelude alone) there are no objects. */
    struct cn_instance *instance = cn_runtime_of(ctx)->data;
    if (!instance)
        return JSValueMakeUndefined(ctx);
    struct cn_lane *lane = instance->lane;
    return JSObjectMakeTypedArrayWithBytesNoCopy(ctx, kJSTypedArrayTypeFloat64Array, lane->sql_out,
                                                 sizeof(lane->sql_out), NULL, NULL, exception);
}

/* The names of the statement's columns are kept for sqlNames(), which may follow. */
static void keep_names(struct cn_lane *lane, struct cn_statement *statement)
{
    double shape = (double)cn_statement_shape(statement);
    if (lane->sql_out[OUT_SHAPE] == shape)
        return;
    lane->sql_out[OUT_SHAPE] = shape;
    cn_buf_clear(&lane->sql_names);
    int count = cn_statement_column_count(statement);
    for (int i = 0; i < count; i++) {
        const char *name = cn_statement_column_name(statement, i);
        cn_buf_append(&lane->sql_names, name, strlen(name) + 1);
    }
}

/* sqlNames() -> names of the columns of the statement that was executed last */
static JSValueRef native_sql_names(CN_JS_NATIVE_ARGS)
{
    const struct cn_buf *text = &lane_of(ctx)->sql_names;
    JSObjectRef names = JSObjectMakeArray(ctx, 0, NULL, exception);
    unsigned count = 0;
    for (size_t at = 0; at < text->size; count++) {
        const char *name = (const char *)text->data + at;
        JSObjectSetPropertyAtIndex(ctx, names, count, cn_js_text_z(ctx, name), NULL);
        at += strlen(name) + 1;
    }
    return names;
}

/* sqlExec(o, query, ...bindings) -> first row | null; sqlOut() has the rest. Runs all statements
 * but the last, starts the last. */
static JSValueRef native_sql_exec(CN_JS_NATIVE_ARGS)
{
    struct cn_database *db = database_to_write(ctx, cn_js_arg(0), exception);
    if (!db)
        return JSValueMakeUndefined(ctx);
    struct cn_lane *lane = lane_of(ctx);
    struct cn_jsobject *js = object_arg(ctx, cn_js_arg(0));
    struct cn_buf sql = {0};
    struct cn_err err;
    struct cn_statement *statement = NULL;
    uint64_t rows_read = 0, rows_written = 0;
    cn_js_append_utf8(ctx, cn_js_arg(1), &sql);
    limit_time(ctx, db);
    int rc = run_to_last(db, &sql, &statement, &rows_read, &rows_written, &err);
    if (rc == 0)
        rc = bind_all(ctx, statement, argc > 2 ? argc - 2 : 0, argv + 2, &err);
    if (rc == 0)
        rc = cn_statement_step(statement, &err);
    cn_database_set_deadline(db, 0);
    cn_buf_fini(&sql);
    if (rc < 0)
        goto fail;
    JSValueRef row = next_row(ctx, statement, rc, exception, &err);
    keep_names(lane, statement);
    lane->sql_out[OUT_ROWS_READ] = (double)(rows_read + cn_statement_rows_read(statement));
    lane->sql_out[OUT_ROWS_WRITTEN] = (double)(rows_written + cn_statement_rows_written(statement));
    lane->sql_out[OUT_CURSOR] = 0;
    if (rc == 0) {
        cn_statement_release(statement);
    } else if (!(lane->sql_out[OUT_CURSOR] = open_cursor(ctx, js, statement))) {
        cn_err_set(&err, CN_EOVERLOADED, "Too many SQL cursors are open.");
        goto fail;
    }
    return row;
fail:
    cn_statement_release(statement);
    return throw_sql(ctx, js, exception, &err);
}

/* sqlNext(cursor) -> row array, or null at the end; sqlOut() has the counts */
static JSValueRef native_sql_next(CN_JS_NATIVE_ARGS)
{
    struct cn_lane *lane = lane_of(ctx);
    struct cn_jscursor *cursor =
        cn_jscursor_find(cn_runtime_of(ctx)->data, cn_js_to_number(ctx, cn_js_arg(0)));
    if (!cursor)
        return cn_js_throw(ctx, exception, CN_JS_ERROR,
                           "The SQL cursor was ended: the object was reset, its data deleted, or "
                           "more than %d newer cursors were opened.",
                           CURSORS_MAX);
    struct cn_err err;
    struct cn_jsobject *js = cursor->js;
    touch(lane, js->object);
    limit_time(ctx, js->object->db);
    int rc = cn_statement_step(cursor->statement, &err);
    cn_database_set_deadline(js->object->db, 0);
    if (rc < 0) {
        cn_jscursor_end(lane, cursor);
        return throw_sql(ctx, js, exception, &err);
    }
    count_memory(cursor);
    JSValueRef row = next_row(ctx, cursor->statement, rc, exception, &err);
    lane->sql_out[OUT_ROWS_READ] = (double)cn_statement_rows_read(cursor->statement);
    lane->sql_out[OUT_ROWS_WRITTEN] = (double)cn_statement_rows_written(cursor->statement);
    if (rc == 0)
        cn_jscursor_end(lane, cursor);
    return row;
}

/* databaseSize(o) -> bytes */
static JSValueRef native_database_size(CN_JS_NATIVE_ARGS)
{
    struct cn_database *db = database_to_read(ctx, cn_js_arg(0), exception);
    if (!db)
        return JSValueMakeUndefined(ctx);
    return JSValueMakeNumber(ctx, (double)cn_database_size(db));
}

/* --- transactions ---------------------------------------------------------------------------- */

/* savepoint(o) -> level */
static JSValueRef native_savepoint(CN_JS_NATIVE_ARGS)
{
    struct cn_database *db = database_to_write(ctx, cn_js_arg(0), exception);
    if (!db)
        return JSValueMakeUndefined(ctx);
    struct cn_err err;
    int level = cn_object_savepoint(object_arg(ctx, cn_js_arg(0))->object, &err);
    return level < 0 ? throw_err(ctx, exception, &err) : JSValueMakeNumber(ctx, level);
}

/* savepointEnd(o, level, keep) */
static JSValueRef native_savepoint_end(CN_JS_NATIVE_ARGS)
{
    struct cn_database *db = database_to_write(ctx, cn_js_arg(0), exception);
    if (!db)
        return JSValueMakeUndefined(ctx);
    struct cn_err err;
    int level = cn_js_to_int32(ctx, cn_js_arg(1));
    if (level < 1)
        return cn_js_throw(ctx, exception, CN_JS_RANGE_ERROR, "There is no such savepoint.");
    int rc = cn_object_savepoint_end(object_arg(ctx, cn_js_arg(0))->object, level,
                                     JSValueToBoolean(ctx, cn_js_arg(2)), &err);
    return rc < 0 ? throw_err(ctx, exception, &err) : JSValueMakeUndefined(ctx);
}

/* transactionBegin(o), transactionEnd(o): while one is open, turns do not commit */
static JSValueRef native_transaction_begin(CN_JS_NATIVE_ARGS)
{
    struct cn_jsobject *js = object_arg(ctx, cn_js_arg(0));
    if (js) {
        touch(js->instance->lane, js->object);
        js->object->transactions++;
    }
    return JSValueMakeUndefined(ctx);
}

static JSValueRef native_transaction_end(CN_JS_NATIVE_ARGS)
{
    struct cn_jsobject *js = object_arg(ctx, cn_js_arg(0));
    if (js && js->object->transactions) {
        touch(js->instance->lane, js->object); /* its turn commits */
        js->object->transactions--;
    }
    return JSValueMakeUndefined(ctx);
}

/* deleteAll(o, alarmToo) */
static JSValueRef native_delete_all(CN_JS_NATIVE_ARGS)
{
    struct cn_database *db = database_to_write(ctx, cn_js_arg(0), exception);
    if (!db)
        return JSValueMakeUndefined(ctx);
    struct cn_jsobject *js = object_arg(ctx, cn_js_arg(0));
    struct cn_err err;
    if (js->object->transactions) /* one that was rolled back has no savepoint any more */
        return cn_js_throw(ctx, exception, CN_JS_ERROR, "%s", CN_DELETE_ALL_REFUSED);
    if (!cn_database_savepoint_level(db)) /* else it is refused */
        cn_jscursor_end_all(lane_of(ctx), js);
    int rc = cn_database_delete_all(db, JSValueToBoolean(ctx, cn_js_arg(1)), &err);
    return rc < 0 ? throw_err(ctx, exception, &err) : JSValueMakeUndefined(ctx);
}

/* storageCommit(o): what was written so far, whatever becomes of the turn; not inside a transaction
 */
static JSValueRef native_storage_commit(CN_JS_NATIVE_ARGS)
{
    struct cn_jsobject *js = object_arg(ctx, cn_js_arg(0));
    struct cn_err err;
    if (!js)
        return JSValueMakeUndefined(ctx);
    touch(js->instance->lane, js->object);
    int rc = cn_object_commit(js->object, &err);
    return rc < 0 ? throw_err(ctx, exception, &err) : JSValueMakeUndefined(ctx);
}

struct sync {
    struct cn_output output;
    struct cn_js_pin callback;
};

static void on_synced(struct cn_output *output, const struct cn_err *err)
{
    struct sync *sync = CN_CONTAINER_OF(output, struct sync, output);
    if (cn_js_enter_pin(&sync->callback)) {
        struct cn_js_context *context = sync->callback.context;
        JSValueRef argv[1] = {err ? cn_js_text_z(context->ref, err->text)
                                  : JSValueMakeUndefined(context->ref)};
        cn_js_invoke(context->ref, sync->callback.value, 1, argv, NULL);
        cn_js_pin_clear(&sync->callback);
        cn_js_leave(context);
    } else {
        cn_js_pin_clear(&sync->callback);
    }
    cn_free(sync);
}

/* storageSync(o | 0, all, callback): when everything written by the end of this turn is durable;
 * without `all`, what may be unconfirmed does not count */
static JSValueRef native_storage_sync(CN_JS_NATIVE_ARGS)
{
    struct cn_jsobject *js = any_object_arg(ctx, cn_js_arg(0));
    struct cn_object *object =
        js ? js->object : cn_object_lane_gate(&lane_of(ctx)->object_lane); /* O5 */
    if (object && cn_object_is_broken(object))
        return JSValueMakeUndefined(ctx);
    struct sync *sync = CN_NEW(struct sync);
    cn_js_pin_set(&sync->callback, cn_js_context_of(ctx), cn_js_arg(2));
    if (!object)
        on_synced(&sync->output, NULL);
    else if (JSValueToBoolean(ctx, cn_js_arg(1)))
        cn_object_sync(object, &sync->output, on_synced);
    else
        cn_object_output(object, &sync->output, on_synced);
    return JSValueMakeUndefined(ctx);
}

/* outputOpen(o | 0) -> whether what it, or code of nobody's, sends now would leave at once */
static JSValueRef native_output_open(CN_JS_NATIVE_ARGS)
{
    struct cn_lane *lane = lane_of(ctx);
    struct cn_jsobject *js = any_object_arg(ctx, cn_js_arg(0));
    if (js)
        return JSValueMakeBoolean(ctx, cn_object_output_open(js->object));
    bool open = !lane->object_lane.node || cn_object_lane_open(&lane->object_lane);
    if (open)
        lane->vm->clock[CN_JS_STRAY] = 0;
    return JSValueMakeBoolean(ctx, open);
}

/* unconfirmedBegin(o) -> whether nothing is in the transaction that outputs must wait for;
 * unconfirmedEnd(o, that): what was written in between need not be waited for */
static JSValueRef native_unconfirmed_begin(CN_JS_NATIVE_ARGS)
{
    struct cn_database *db = database_to_read(ctx, cn_js_arg(0), exception);
    if (!db)
        return JSValueMakeUndefined(ctx);
    struct cn_object *object = object_arg(ctx, cn_js_arg(0))->object;
    return JSValueMakeBoolean(ctx, object->unconfirmed || !cn_database_in_transaction(db));
}

static JSValueRef native_unconfirmed_end(CN_JS_NATIVE_ARGS)
{
    struct cn_jsobject *js = object_arg(ctx, cn_js_arg(0));
    if (js && js->object->db)
        js->object->unconfirmed =
            JSValueToBoolean(ctx, cn_js_arg(1)) && cn_database_in_transaction(js->object->db);
    return JSValueMakeUndefined(ctx);
}

/* --- alarms ---------------------------------------------------------------------------------- */

/* alarmGet(o) -> milliseconds or null */
static JSValueRef native_alarm_get(CN_JS_NATIVE_ARGS)
{
    if (!database_to_read(ctx, cn_js_arg(0), exception))
        return JSValueMakeUndefined(ctx);
    struct cn_jsobject *js = object_arg(ctx, cn_js_arg(0));
    struct cn_err err;
    int64_t alarm_ms;
    if (cn_object_alarm_get(js->object, &alarm_ms, &err) < 0)
        return throw_err(ctx, exception, &err);
    return alarm_ms == CN_ALARM_NONE ? JSValueMakeNull(ctx)
                                     : JSValueMakeNumber(ctx, (double)alarm_ms);
}

/* alarmSet(o, milliseconds | null) */
static JSValueRef native_alarm_set(CN_JS_NATIVE_ARGS)
{
    if (!database_to_write(ctx, cn_js_arg(0), exception))
        return JSValueMakeUndefined(ctx);
    struct cn_jsobject *js = object_arg(ctx, cn_js_arg(0));
    struct cn_err err;
    int64_t alarm_ms =
        JSValueIsNull(ctx, cn_js_arg(1)) ? CN_ALARM_NONE : cn_js_to_int64(ctx, cn_js_arg(1));
    if (cn_object_alarm_set(js->object, alarm_ms, &err) < 0)
        return throw_err(ctx, exception, &err);
    return JSValueMakeUndefined(ctx);
}
