/* SPDX-License-Identifier: Apache-2.0 */
/* service/r2/r2.c - the index of a bucket. See r2.h; multipart uploads are in r2_upload.c. */
#include "service/r2/r2.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <uv.h>

#include "base/assert.h"
#include "base/clock.h"
#include "base/diag.h"
#include "base/mem.h"
#include "base/rand.h"
#include "object/alarm.h"
#include "object/node.h"
#include "service/r2/named.h"
#include "service/r2/r2_private.h"
#include "store/database.h"
#include "text/hex.h"

/* Blobs that one run of the alarm deletes. */
#define GARBAGE_STEP 500
/* The object of a bucket's namespace. */
#define INDEX_NAME "0"

static const char *const schema[] = {
    "CREATE TABLE object (key BLOB PRIMARY KEY NOT NULL, version TEXT NOT NULL,"
    " size INTEGER NOT NULL, etag TEXT NOT NULL, uploaded INTEGER NOT NULL,"
    " checksums TEXT NOT NULL, http TEXT NOT NULL, custom TEXT NOT NULL,"
    " class TEXT NOT NULL, segments BLOB, body BLOB) WITHOUT ROWID;"
    "CREATE TABLE upload (id TEXT PRIMARY KEY NOT NULL, key BLOB NOT NULL,"
    " started INTEGER NOT NULL, http TEXT NOT NULL, custom TEXT NOT NULL,"
    " class TEXT NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE part (upload TEXT NOT NULL, number INTEGER NOT NULL, etag TEXT NOT NULL,"
    " size INTEGER NOT NULL, uploaded INTEGER NOT NULL, segment BLOB NOT NULL,"
    " PRIMARY KEY (upload, number)) WITHOUT ROWID;"
    "CREATE TABLE garbage (blob BLOB PRIMARY KEY NOT NULL, since INTEGER NOT NULL) WITHOUT ROWID;",
    /* MD5 of the customer's key that the body is encrypted with. */
    "ALTER TABLE object ADD COLUMN ssec TEXT; ALTER TABLE upload ADD COLUMN ssec TEXT;",
    "CREATE TABLE totals (one INTEGER PRIMARY KEY CHECK (one = 1), objects INTEGER NOT NULL,"
    " bytes INTEGER NOT NULL);"
    "INSERT INTO totals SELECT 1, count(*), coalesce(sum(size), 0) FROM object;",
    "CREATE TABLE pending (blob BLOB PRIMARY KEY NOT NULL, opening INTEGER NOT NULL) WITHOUT "
    "ROWID;",
    /* R6: what objects and parts refer to, of a cluster alone. */
    "CREATE TABLE named (blob BLOB PRIMARY KEY NOT NULL) WITHOUT ROWID;",
};

static const char *const sql_texts[CN_R2_SQL_COUNT] = {
    [CN_R2_SQL_GET] = "SELECT version, size, etag, uploaded, checksums, http, custom, class,"
                      " ssec, segments, body FROM object WHERE key = ?1",
    [CN_R2_SQL_PUT] = "INSERT OR REPLACE INTO object VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9,"
                      " ?10, ?11, ?12)",
    [CN_R2_SQL_DELETE] = "DELETE FROM object WHERE key = ?1",
    [CN_R2_SQL_LIST] = "SELECT version, size, etag, uploaded, checksums, http, custom, class, ssec,"
                       " key FROM object WHERE key > ?1 ORDER BY key",
    [CN_R2_SQL_LIST_FROM] = "SELECT version, size, etag, uploaded, checksums, http, custom, class,"
                            " ssec, key FROM object WHERE key >= ?1 ORDER BY key",
    [CN_R2_SQL_DISCARD] = "INSERT OR REPLACE INTO garbage VALUES (?1, ?2)",
    [CN_R2_SQL_GARBAGE] = "SELECT blob FROM garbage WHERE since <= ?1 LIMIT ?2",
    [CN_R2_SQL_DISCARDED] = "DELETE FROM garbage WHERE blob = ?1",
    [CN_R2_SQL_GARBAGE_LEFT] = "SELECT min(since) FROM garbage",
    [CN_R2_SQL_ANNOUNCE] = "INSERT INTO pending VALUES (?1, ?2)",
    [CN_R2_SQL_SETTLE] = "DELETE FROM pending WHERE blob = ?1",
    [CN_R2_SQL_LOST] = "SELECT blob FROM pending WHERE opening <> ?1",
    [CN_R2_SQL_NAME] = "INSERT OR REPLACE INTO named VALUES (?1)",
    [CN_R2_SQL_UNNAME] = "DELETE FROM named WHERE blob = ?1",
    [CN_R2_SQL_KNOWN] = "SELECT EXISTS (SELECT 1 FROM named WHERE blob = ?1) OR EXISTS (SELECT 1"
                        " FROM pending WHERE blob = ?1) OR EXISTS (SELECT 1 FROM garbage WHERE"
                        " blob = ?1)",
    [CN_R2_SQL_UPLOAD_CREATE] = "INSERT INTO upload VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    [CN_R2_SQL_UPLOAD_GET] = "SELECT key, http, custom, class, ssec FROM upload WHERE id = ?1",
    [CN_R2_SQL_UPLOAD_DELETE] = "DELETE FROM upload WHERE id = ?1",
    [CN_R2_SQL_UPLOAD_OLD] = "SELECT id FROM upload WHERE started <= ?1 LIMIT 1",
    [CN_R2_SQL_UPLOAD_OLDEST] = "SELECT min(started) FROM upload",
    [CN_R2_SQL_UPLOAD_LIST] = "SELECT id, key, started FROM upload ORDER BY key, id",
    [CN_R2_SQL_PART_PUT] = "INSERT OR REPLACE INTO part VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    [CN_R2_SQL_PART_GET] = "SELECT etag, size, segment FROM part WHERE upload = ?1 AND number = ?2",
    [CN_R2_SQL_PARTS] = "SELECT number, etag, size, segment, uploaded FROM part WHERE upload = ?1"
                        " ORDER BY number",
    [CN_R2_SQL_PARTS_DELETE] = "DELETE FROM part WHERE upload = ?1",
    [CN_R2_SQL_COUNT_UP] = "UPDATE totals SET objects = objects + ?1, bytes = bytes + ?2",
    [CN_R2_SQL_TOTALS] = "SELECT objects, bytes FROM totals",
};

int64_t cn_r2_now(struct cn_r2_bucket *bucket)
{
    return cn_clock_wall_ms(cn_node_clock(bucket->object->lane->node));
}

int cn_r2_sql(struct cn_r2_bucket *bucket, unsigned which, struct cn_statement **statement,
              struct cn_err *err)
{
    struct cn_database *db = cn_object_database(bucket->object, err);
    return db ? cn_service_sql_get(&bucket->sql, db, which, statement, err) : err->code;
}

int cn_r2_bind_text(struct cn_statement *statement, int index, const char *text, struct cn_err *err)
{
    return cn_statement_bind_text(statement, index, text ? text : "{}", text ? strlen(text) : 2,
                                  false, err);
}

int cn_r2_bind_key(struct cn_statement *statement, int index, const void *key, size_t size,
                   struct cn_err *err)
{
    return cn_statement_bind_blob(statement, index, key ? key : "", size, false, err);
}

int cn_r2_bind_ssec(struct cn_statement *statement, int index, const char *ssec, struct cn_err *err)
{
    return ssec ? cn_r2_bind_text(statement, index, ssec, err)
                : cn_statement_bind_null(statement, index, err);
}

bool cn_r2_key_fits(const struct cn_r2_call *call, struct cn_statement *statement, int column)
{
    size_t size;
    if (cn_statement_column_type(statement, column) == CN_SQL_NULL)
        return !call->ssec;
    const char *ssec = cn_statement_column_text(statement, column, &size);
    return call->ssec && strlen(call->ssec) == size && memcmp(call->ssec, ssec, size) == 0;
}

int cn_r2_number(struct cn_r2_bucket *bucket, unsigned which, int64_t *number, struct cn_err *err)
{
    struct cn_statement *statement;
    int rc = cn_r2_sql(bucket, which, &statement, err);
    if (rc == 0)
        rc = cn_statement_step(statement, err);
    if (rc < 0)
        return rc;
    bool is_null = rc == 0 || cn_statement_column_type(statement, 0) == CN_SQL_NULL;
    *number = is_null ? 0 : cn_statement_column_int(statement, 0);
    cn_statement_reset(statement);
    return !is_null;
}

/* --- bodies ---------------------------------------------------------------------------------- */

void cn_r2_body_fini(struct cn_r2_body *body)
{
    cn_free(body->segments);
    cn_free(body->bytes);
    *body = (struct cn_r2_body){0};
}

void cn_r2_cursor_close(struct cn_r2_cursor *cursor)
{
    cn_blob_close(cursor->blob);
    cursor->blob = NULL;
}

static int cursor_open(struct cn_r2_cursor *cursor, struct cn_blobs *blobs,
                       const struct cn_r2_body *body, size_t segment, struct cn_err *err)
{
    if (cursor->blob && cursor->segment == segment)
        return 0;
    if (cursor->now)
        return -EAGAIN;
    cn_r2_cursor_close(cursor);
    cursor->segment = segment;
    return cn_blob_open(blobs, &body->segments[segment].blob, &cursor->blob, err);
}

static int64_t read_segment(struct cn_r2_cursor *cursor, const struct cn_r2_body *body, void *bytes,
                            size_t size, uint64_t offset, struct cn_err *err)
{
    const struct cn_r2_segment *segment = &body->segments[cursor->segment];
    int64_t got;
    if (body->unseal && cursor->now)
        return -EAGAIN;
    if (body->unseal) {
        int rc = body->unseal(cursor->blob, body->key, segment->size, bytes, size, offset, err);
        return rc < 0 ? rc : (int64_t)size;
    }
    got = cursor->now ? cn_blob_read_now(cursor->blob, bytes, size, offset, err)
                      : cn_blob_read(cursor->blob, bytes, size, offset, err);
    if (got >= 0 && (size_t)got != size)
        return cn_err_set(err, CN_ECORRUPT, "a body is shorter than its index says");
    return got;
}

int64_t cn_r2_read_on(struct cn_r2_cursor *cursor, struct cn_blobs *blobs,
                      const struct cn_r2_body *body, void *bytes, size_t size, uint64_t offset,
                      struct cn_err *err)
{
    if (offset >= body->size)
        return 0;
    if (size > body->size - offset)
        size = (size_t)(body->size - offset);
    if (!body->segments) {
        memcpy(bytes, body->bytes + offset, size);
        return (int64_t)size;
    }
    size_t done = 0;
    for (size_t i = 0; i < body->count && done < size; i++) {
        const struct cn_r2_segment *segment = &body->segments[i];
        if (offset >= segment->size) {
            offset -= segment->size;
            continue;
        }
        uint64_t here = segment->size - offset;
        size_t part = here < size - done ? (size_t)here : size - done;
        int rc = cursor_open(cursor, blobs, body, i, err);
        int64_t got =
            rc < 0 ? rc : read_segment(cursor, body, (uint8_t *)bytes + done, part, offset, err);
        if (got < 0)
            return got;
        done += part;
        offset = 0;
    }
    return (int64_t)done;
}

int64_t cn_r2_read(struct cn_blobs *blobs, const struct cn_r2_body *body, void *bytes, size_t size,
                   uint64_t offset, struct cn_err *err)
{
    struct cn_r2_cursor cursor = {0};
    int64_t got = cn_r2_read_on(&cursor, blobs, body, bytes, size, offset, err);
    cn_r2_cursor_close(&cursor);
    return got;
}

static int run_for_blob(struct cn_r2_bucket *bucket, unsigned which, const struct cn_blob_id *id,
                        struct cn_err *err);

/* R2: the blobs of a body will go. */
int cn_r2_discard(struct cn_r2_bucket *bucket, const struct cn_r2_segment *segments, size_t count,
                  struct cn_err *err)
{
    int64_t now = cn_r2_now(bucket);
    for (size_t i = 0; i < count; i++) {
        struct cn_statement *statement;
        int rc = cn_r2_sql(bucket, CN_R2_SQL_DISCARD, &statement, err);
        if (rc == 0)
            rc = cn_statement_bind_blob(statement, 1, &segments[i].blob, sizeof(segments[i].blob),
                                        false, err);
        if (rc == 0)
            rc = cn_statement_bind_int(statement, 2, now, err);
        if (rc == 0)
            rc = cn_service_sql_run(statement, err);
        if (rc == 0 && bucket->spread)
            rc = run_for_blob(bucket, CN_R2_SQL_UNNAME, &segments[i].blob, err);
        if (rc < 0)
            return rc;
    }
    return count ? cn_r2_wake_by(bucket, now + CN_R2_GRACE_MS, err) : 0;
}

int cn_r2_wake_by(struct cn_r2_bucket *bucket, int64_t time_ms, struct cn_err *err)
{
    int64_t alarm_ms;
    int rc = cn_object_alarm_get(bucket->object, &alarm_ms, err);
    if (rc == 0 && (alarm_ms == CN_ALARM_NONE || alarm_ms > time_ms))
        rc = cn_object_alarm_set(bucket->object, time_ms, err);
    return rc;
}

/* --- blobs on their way in (R3) -------------------------------------------------------------- */

static int run_for_blob(struct cn_r2_bucket *bucket, unsigned which, const struct cn_blob_id *id,
                        struct cn_err *err)
{
    struct cn_statement *statement;
    int rc = cn_r2_sql(bucket, which, &statement, err);
    if (rc == 0)
        rc = cn_statement_bind_blob(statement, 1, id, sizeof(*id), false, err);
    if (rc == 0 && which == CN_R2_SQL_ANNOUNCE)
        rc = cn_statement_bind_int(statement, 2, cn_blobs_opening(bucket->services->blobs), err);
    return rc < 0 ? rc : cn_service_sql_run(statement, err);
}

/* Takes the note of a blob away; *noted: there was one. */
static int take_note(struct cn_r2_bucket *bucket, const struct cn_blob_id *id, bool *noted,
                     struct cn_err *err)
{
    int rc = run_for_blob(bucket, CN_R2_SQL_SETTLE, id, err);
    *noted = rc == 0 && cn_database_changes(bucket->object->db) > 0;
    return rc;
}

int cn_r2_settle(struct cn_r2_bucket *bucket, const struct cn_r2_body *body, struct cn_err *err)
{
    int rc = 0;
    bool noted = true;
    for (size_t i = 0; i < body->count && rc == 0; i++) {
        const struct cn_blob_id *id = &body->segments[i].blob;
        rc = take_note(bucket, id, &noted, err);
        if (rc == 0 && !noted)
            rc = cn_err_set(err, CN_ECLOSED,
                            "the bucket was served by another process meanwhile, which has given "
                            "this body up; put it again");
        if (rc == 0 && bucket->spread)
            rc = run_for_blob(bucket, CN_R2_SQL_NAME, id, err);
    }
    return rc;
}

static int op_announce(struct cn_r2_bucket *bucket, struct cn_r2_call *call, struct cn_err *err)
{
    return run_for_blob(bucket, CN_R2_SQL_ANNOUNCE, &call->body.segments[0].blob, err);
}

/* Of a put that was carried out, though who made it was not told so, nothing is given up. */
static int op_forget(struct cn_r2_bucket *bucket, struct cn_r2_call *call, struct cn_err *err)
{
    bool noted;
    int rc = take_note(bucket, &call->body.segments[0].blob, &noted, err);
    return rc < 0 || !noted ? rc : cn_r2_discard(bucket, call->body.segments, 1, err);
}

static int op_known(struct cn_r2_bucket *bucket, struct cn_r2_call *call, struct cn_err *err)
{
    struct cn_buf known = {0};
    int rc = 0;
    for (size_t at = 0; at + CN_BLOB_ID_SIZE <= call->ids.size && rc == 0; at += CN_BLOB_ID_SIZE) {
        struct cn_statement *statement;
        rc = cn_r2_sql(bucket, CN_R2_SQL_KNOWN, &statement, err);
        if (rc == 0)
            rc = cn_statement_bind_blob(statement, 1, call->ids.data + at, CN_BLOB_ID_SIZE, false,
                                        err);
        if (rc == 0)
            rc = cn_statement_step(statement, err);
        if (rc > 0)
            cn_buf_append_byte(&known, cn_statement_column_int(statement, 0) != 0);
        if (rc >= 0) {
            cn_statement_reset(statement);
            rc = 0;
        }
    }
    cn_buf_fini(&call->ids);
    call->ids = known;
    return rc;
}

/* What was on its way when an earlier process ended becomes garbage. */
static int discard_lost(struct cn_r2_bucket *bucket, struct cn_err *err)
{
    struct cn_r2_body lost = {0};
    struct cn_statement *statement;
    int rc = cn_r2_sql(bucket, CN_R2_SQL_LOST, &statement, err);
    if (rc == 0)
        rc = cn_statement_bind_int(statement, 1, cn_blobs_opening(bucket->services->blobs), err);
    while (rc == 0 && (rc = cn_statement_step(statement, err)) > 0) {
        size_t size;
        const void *id = cn_statement_column_blob(statement, 0, &size);
        rc = 0;
        if (size != CN_BLOB_ID_SIZE)
            continue;
        lost.segments = cn_realloc(lost.segments, (lost.count + 1) * sizeof(*lost.segments));
        lost.segments[lost.count] = (struct cn_r2_segment){0};
        memcpy(&lost.segments[lost.count++].blob, id, size);
    }
    if (rc == 0) {
        cn_statement_reset(statement);
        rc = cn_r2_settle(bucket, &lost, err);
    }
    if (rc == 0)
        rc = cn_r2_discard(bucket, lost.segments, lost.count, err);
    if (rc == 0 && lost.count)
        cn_info("%s: %zu bodies that no object refers to are collected", bucket->object->ns->name,
                lost.count);
    cn_r2_body_fini(&lost);
    return rc;
}

/* --- blobs on their way out (R2) ------------------------------------------------------------- */

/* Blobs on their way out. */
struct removal {
    uv_work_t work;
    struct cn_list link;         /* in bucket->removals */
    struct cn_r2_bucket *bucket; /* NULL: it has left memory */
    struct cn_blobs *blobs;
    struct cn_blob_id ids[GARBAGE_STEP];
    size_t count;
    struct cn_call *alarm; /* answered when they are gone; NULL: it was taken back */
};

static void run_removal(uv_work_t *work)
{
    struct removal *removal = work->data;
    struct cn_err err;
    for (size_t i = 0; i < removal->count; i++) {
        if (cn_blob_delete(removal->blobs, &removal->ids[i], &err) < 0) {
            cn_warn("r2: %s", err.text);
            removal->count = i; /* what is left is tried again */
        }
    }
}

static int forget_removed(struct cn_r2_bucket *bucket, const struct removal *removal,
                          struct cn_err *err)
{
    struct cn_statement *statement;
    int rc = 0;
    for (size_t i = 0; i < removal->count && rc == 0; i++) {
        rc = cn_r2_sql(bucket, CN_R2_SQL_DISCARDED, &statement, err);
        if (rc == 0)
            rc = cn_statement_bind_blob(statement, 1, &removal->ids[i], sizeof(removal->ids[i]),
                                        false, err);
        if (rc == 0)
            rc = cn_service_sql_run(statement, err);
    }
    int64_t since, due, now = cn_r2_now(bucket);
    if (rc == 0)
        rc = cn_r2_upload_expire(bucket, &due, err);
    if (rc == 0)
        rc = cn_r2_number(bucket, CN_R2_SQL_GARBAGE_LEFT, &since, err);
    if (rc < 0)
        return rc;
    if (rc > 0 && since + CN_R2_GRACE_MS < due)
        due = since + CN_R2_GRACE_MS;
    return due == INT64_MAX
               ? 0
               : cn_object_alarm_set(bucket->object, due > now + 1000 ? due : now + 1000, err);
}

static void on_removed(uv_work_t *work, int status)
{
    (void)status;
    struct removal *removal = work->data;
    struct cn_r2_bucket *bucket = removal->bucket;
    cn_list_remove(&removal->link);
    if (bucket && removal->alarm) {
        struct cn_object *object = bucket->object;
        struct cn_err err;
        cn_object_enter(object);
        int rc = forget_removed(bucket, removal, &err);
        if (rc < 0) {
            cn_database_rollback(object->db);
            cn_service_call_fail(removal->alarm, &err);
        } else {
            cn_alarm_succeeded(object);
            cn_call_reply(removal->alarm, NULL);
        }
        cn_object_leave(object);
    }
    cn_free(removal);
}

static void alarm_taken_back(struct cn_call *call)
{
    struct removal *removal = (void *)(uintptr_t)call->tag;
    if (removal)
        removal->alarm = NULL;
}

static void deliver_alarm(struct cn_r2_bucket *bucket, struct cn_call *call)
{
    struct cn_statement *statement;
    struct cn_err err;
    struct removal *removal = CN_NEW(struct removal);
    cn_alarm_begin(bucket->object, call->payload);
    int rc = cn_r2_sql(bucket, CN_R2_SQL_GARBAGE, &statement, &err);
    if (rc == 0)
        rc = cn_statement_bind_int(statement, 1, cn_r2_now(bucket) - CN_R2_GRACE_MS, &err);
    if (rc == 0)
        rc = cn_statement_bind_int(statement, 2, GARBAGE_STEP, &err);
    while (rc == 0 && (rc = cn_statement_step(statement, &err)) > 0) {
        size_t size;
        const void *id = cn_statement_column_blob(statement, 0, &size);
        rc = 0;
        if (size == CN_BLOB_ID_SIZE && removal->count < GARBAGE_STEP)
            memcpy(&removal->ids[removal->count++], id, size);
    }
    if (rc < 0) {
        cn_free(removal);
        cn_service_call_fail(call, &err);
        return;
    }
    cn_statement_reset(statement);
    removal->bucket = bucket;
    removal->blobs = bucket->services->blobs;
    removal->alarm = call;
    removal->work.data = removal;
    call->tag = (uintptr_t)removal;
    call->taken_back = alarm_taken_back;
    cn_list_init(&removal->link);
    cn_list_push_back(&bucket->removals, &removal->link);
    uv_queue_work(bucket->object->lane->loop, &removal->work, run_removal, on_removed);
}

/* --- descriptions ---------------------------------------------------------------------------- */

static void append_column(struct cn_buf *out, const char *name, struct cn_statement *statement,
                          int column, bool json)
{
    size_t size;
    const char *text = cn_statement_column_text(statement, column, &size);
    cn_buf_printf(out, ",\"%s\":", name);
    if (json)
        cn_buf_append(out, text, size);
    else
        cn_buf_append_json(out, text, size);
}

/* The columns version, size, etag, uploaded, checksums, http, custom, class, ssec as an object. */
static void append_object(struct cn_buf *out, const void *key, size_t key_size,
                          struct cn_statement *statement, bool http, bool custom)
{
    cn_buf_append_str(out, "{\"key\":");
    cn_buf_append_json(out, key, key_size);
    append_column(out, "version", statement, 0, false);
    cn_buf_printf(out, ",\"size\":%" PRId64, cn_statement_column_int(statement, 1));
    append_column(out, "etag", statement, 2, false);
    cn_buf_printf(out, ",\"uploaded\":%" PRId64, cn_statement_column_int(statement, 3));
    append_column(out, "checksums", statement, 4, true);
    if (http)
        append_column(out, "http", statement, 5, true);
    if (custom)
        append_column(out, "custom", statement, 6, true);
    append_column(out, "storageClass", statement, 7, false);
    if (cn_statement_column_type(statement, 8) != CN_SQL_NULL)
        append_column(out, "ssec", statement, 8, false);
    cn_buf_append_byte(out, '}');
}

static bool etag_listed(const char *list, const char *etag, size_t etag_size)
{
    for (const char *at = list; *at;) {
        size_t size = strcspn(at, "\n");
        if ((size == 1 && *at == '*') || (size == etag_size && memcmp(at, etag, size) == 0))
            return true;
        at += size + (at[size] == '\n');
    }
    return false;
}

/* Whether the conditions hold for the row that `statement` is at; NULL: there is none. */
static bool holds(const struct cn_r2_condition *only_if, struct cn_statement *statement)
{
    if (!statement)
        return !only_if->match && only_if->after_ms == INT64_MIN;
    size_t size;
    const char *etag = cn_statement_column_text(statement, 2, &size);
    int64_t unit = only_if->seconds ? 1000 : 1;
    int64_t uploaded = cn_statement_column_int(statement, 3) / unit;
    bool match = !only_if->match || etag_listed(only_if->match, etag, size);
    bool none_match = !only_if->none_match || !etag_listed(only_if->none_match, etag, size);
    bool after = only_if->after_ms == INT64_MIN || only_if->after_ms / unit < uploaded ||
                 (only_if->none_match && none_match);
    bool before = only_if->before_ms == INT64_MIN || uploaded < only_if->before_ms / unit ||
                  (only_if->match && match);
    return match && none_match && after && before;
}

/* 1: the statement is at the row of the key; reset it. */
static int find(struct cn_r2_bucket *bucket, const void *key, size_t size,
                struct cn_statement **statement, struct cn_err *err)
{
    int rc = cn_r2_sql(bucket, CN_R2_SQL_GET, statement, err);
    if (rc == 0)
        rc = cn_r2_bind_key(*statement, 1, key, size, err);
    return rc < 0 ? rc : cn_statement_step(*statement, err);
}

/* --- requests -------------------------------------------------------------------------------- */

static int op_get(struct cn_r2_bucket *bucket, struct cn_r2_call *call, struct cn_err *err)
{
    struct cn_statement *statement;
    int rc = find(bucket, call->key.data, call->key.size, &statement, err);
    if (rc < 0)
        return rc;
    if (rc == 0) {
        cn_statement_reset(statement);
        return 0;
    }
    call->found = true;
    call->failed = !holds(&call->only_if, statement);
    /* A description is given without a key as well; a key that is given must be the right one. */
    if (!call->failed && (call->base.call.op == CN_R2_GET || call->ssec) &&
        !cn_r2_key_fits(call, statement, 8))
        call->problem = CN_R2_BAD_KEY;
    append_object(&call->json, call->key.data, call->key.size, statement, true, true);
    if (call->base.call.op == CN_R2_GET && !call->failed && !call->problem) {
        size_t size;
        const void *bytes = cn_statement_column_blob(statement, 9, &size);
        call->body.size = (uint64_t)cn_statement_column_int(statement, 1);
        if (size) {
            call->body.segments = cn_memdup(bytes, size);
            call->body.count = size / sizeof(struct cn_r2_segment);
        } else {
            bytes = cn_statement_column_blob(statement, 10, &size);
            call->body.bytes = size ? cn_memdup(bytes, size) : cn_alloc(1);
        }
    }
    cn_statement_reset(statement);
    return 0;
}

/* The blobs of the row that the statement is at become garbage. */
static int discard_row(struct cn_r2_bucket *bucket, struct cn_statement *statement,
                       struct cn_err *err)
{
    size_t size;
    const void *bytes = cn_statement_column_blob(statement, 9, &size);
    if (!size)
        return 0;
    struct cn_r2_segment *segments = cn_memdup(bytes, size);
    int rc = cn_r2_discard(bucket, segments, size / sizeof(*segments), err);
    cn_free(segments);
    return rc;
}

/* Keeps the totals right: so many objects and bytes more. */
static int count_up(struct cn_r2_bucket *bucket, int64_t objects, int64_t bytes, struct cn_err *err)
{
    struct cn_statement *statement;
    int rc = cn_r2_sql(bucket, CN_R2_SQL_COUNT_UP, &statement, err);
    if (rc == 0)
        rc = cn_statement_bind_int(statement, 1, objects, err);
    if (rc == 0)
        rc = cn_statement_bind_int(statement, 2, bytes, err);
    return rc < 0 ? rc : cn_service_sql_run(statement, err);
}

static int op_totals(struct cn_r2_bucket *bucket, struct cn_r2_call *call, struct cn_err *err)
{
    struct cn_statement *statement;
    int rc = cn_r2_sql(bucket, CN_R2_SQL_TOTALS, &statement, err);
    if (rc == 0)
        rc = cn_statement_step(statement, err);
    if (rc < 0)
        return rc;
    if (rc > 0) {
        call->total_objects = (uint64_t)cn_statement_column_int(statement, 0);
        call->total_bytes = (uint64_t)cn_statement_column_int(statement, 1);
    }
    cn_statement_reset(statement);
    return 0;
}

static void make_version(char version[33])
{
    uint8_t bytes[16];
    cn_rand_secure(bytes, sizeof(bytes));
    cn_hex_encode(bytes, sizeof(bytes), version);
}

/* Writes the object that `call` describes; what was there becomes garbage. */
int cn_r2_store(struct cn_r2_bucket *bucket, struct cn_r2_call *call, struct cn_err *err)
{
    struct cn_statement *statement;
    char version[33];
    make_version(version);
    int64_t more = (int64_t)call->body.size;
    int rc = find(bucket, call->key.data, call->key.size, &statement, err);
    bool is_new = rc == 0;
    if (rc > 0) {
        more -= cn_statement_column_int(statement, 1);
        rc = discard_row(bucket, statement, err);
    }
    if (rc >= 0) {
        cn_statement_reset(statement);
        rc = count_up(bucket, is_new, more, err);
    }
    if (rc == 0)
        rc = cn_r2_sql(bucket, CN_R2_SQL_PUT, &statement, err);
    if (rc == 0)
        rc = cn_r2_bind_key(statement, 1, call->key.data, call->key.size, err);
    if (rc == 0)
        rc = cn_r2_bind_text(statement, 2, version, err);
    if (rc == 0)
        rc = cn_statement_bind_int(statement, 3, (int64_t)call->body.size, err);
    if (rc == 0)
        rc = cn_r2_bind_text(statement, 4, call->etag, err);
    if (rc == 0)
        rc = cn_statement_bind_int(statement, 5,
                                   call->uploaded_ms ? call->uploaded_ms : cn_r2_now(bucket), err);
    const char *const texts[] = {call->checksums, call->http, call->custom,
                                 call->storage_class ? call->storage_class : "Standard"};
    for (int i = 0; i < 4 && rc == 0; i++)
        rc = cn_r2_bind_text(statement, 6 + i, texts[i], err);
    if (rc == 0)
        rc =
            call->body.segments
                ? cn_statement_bind_blob(statement, 10, call->body.segments,
                                         call->body.count * sizeof(*call->body.segments), true, err)
                : cn_statement_bind_null(statement, 10, err);
    if (rc == 0)
        rc = call->body.segments
                 ? cn_statement_bind_null(statement, 11, err)
                 : cn_statement_bind_blob(statement, 11,
                                          call->body.bytes ? call->body.bytes : (uint8_t *)"",
                                          (size_t)call->body.size, true, err);
    if (rc == 0)
        rc = cn_r2_bind_ssec(statement, 12, call->ssec, err);
    if (rc == 0)
        rc = cn_service_sql_run(statement, err);
    if (rc == 0)
        rc = find(bucket, call->key.data, call->key.size, &statement, err);
    if (rc < 0)
        return rc;
    append_object(&call->json, call->key.data, call->key.size, statement, true, true);
    cn_statement_reset(statement);
    return 0;
}

static int op_put(struct cn_r2_bucket *bucket, struct cn_r2_call *call, struct cn_err *err)
{
    const struct cn_r2_condition *only_if = &call->only_if;
    int rc = cn_r2_settle(bucket, &call->body, err);
    if (rc < 0)
        return rc;
    if (only_if->match || only_if->none_match || only_if->after_ms != INT64_MIN ||
        only_if->before_ms != INT64_MIN) {
        struct cn_statement *statement;
        rc = find(bucket, call->key.data, call->key.size, &statement, err);
        if (rc < 0)
            return rc;
        call->failed = !holds(only_if, rc ? statement : NULL);
        cn_statement_reset(statement);
        if (call->failed) /* the blob is not wanted */
            return cn_r2_discard(bucket, call->body.segments, call->body.count, err);
    }
    return cn_r2_store(bucket, call, err);
}

/* Each key ends with a NUL; the last, as a script may have given it, with the text. */
static int op_delete(struct cn_r2_bucket *bucket, struct cn_r2_call *call, struct cn_err *err)
{
    const char *at = (const char *)call->key.data, *end = at + call->key.size;
    while (at < end) {
        size_t size = strnlen(at, (size_t)(end - at));
        struct cn_statement *statement;
        int rc = find(bucket, at, size, &statement, err);
        int64_t gone = rc > 0, bytes = rc > 0 ? cn_statement_column_int(statement, 1) : 0;
        if (rc > 0)
            rc = discard_row(bucket, statement, err);
        if (rc < 0)
            return rc;
        cn_statement_reset(statement);
        call->found = call->found || gone;
        rc = gone ? count_up(bucket, -gone, -bytes, err) : 0;
        if (rc == 0)
            rc = cn_r2_sql(bucket, CN_R2_SQL_DELETE, &statement, err);
        if (rc == 0)
            rc = cn_r2_bind_key(statement, 1, at, size, err);
        if (rc == 0)
            rc = cn_service_sql_run(statement, err);
        if (rc < 0)
            return rc;
        at += size + 1;
    }
    return 0;
}

/* --- listing --------------------------------------------------------------------------------- */

/* The least text that is greater than all that begin with `prefix`; false: there is none. */
static bool successor(const struct cn_buf *prefix, struct cn_buf *out)
{
    cn_buf_clear(out);
    cn_buf_append(out, prefix->data, prefix->size);
    while (out->size && out->data[out->size - 1] == 0xff)
        out->size--;
    if (!out->size)
        return false;
    out->data[out->size - 1]++;
    return true;
}

/* Where a key's common prefix ends: behind the delimiter that follows the asked prefix; 0: none. */
static size_t common_prefix(const struct cn_r2_call *call, const uint8_t *key, size_t size)
{
    if (!call->delimiter.size)
        return 0;
    const uint8_t *found = memmem(key + call->prefix.size, size - call->prefix.size,
                                  call->delimiter.data, call->delimiter.size);
    return found ? (size_t)(found - key) + call->delimiter.size : 0;
}

struct listing {
    struct cn_r2_bucket *bucket;
    struct cn_r2_call *call;
    struct cn_statement *statement;
    struct cn_buf prefixes; /* JSON strings, separated by commas */
    unsigned count;
};

/* (Re)starts the scan at or behind a key. */
static int seek(struct listing *listing, const void *key, size_t size, bool behind,
                struct cn_err *err)
{
    int rc = cn_r2_sql(listing->bucket, behind ? CN_R2_SQL_LIST : CN_R2_SQL_LIST_FROM,
                       &listing->statement, err);
    return rc < 0 ? rc : cn_r2_bind_key(listing->statement, 1, key, size, err);
}

static int begin_listing(struct listing *listing, struct cn_err *err)
{
    struct cn_r2_call *call = listing->call;
    struct cn_buf start = {0};
    int rc;
    if (call->after_prefix && call->after.data) {
        rc = successor(&call->after, &start)
                 ? seek(listing, start.data, start.size, false, err)
                 : seek(listing, call->after.data, call->after.size, true, err);
    } else if (call->after.data &&
               (call->after.size >= call->prefix.size
                    ? !call->prefix.size ||
                          memcmp(call->after.data, call->prefix.data, call->prefix.size) >= 0
                    : memcmp(call->after.data, call->prefix.data, call->after.size) > 0)) {
        rc = seek(listing, call->after.data, call->after.size, true, err);
    } else {
        rc = seek(listing, call->prefix.data, call->prefix.size, false, err);
    }
    cn_buf_fini(&start);
    return rc;
}

static void set_last(struct cn_r2_call *call, const void *bytes, size_t size, bool prefix)
{
    cn_buf_clear(&call->last);
    cn_buf_append(&call->last, bytes, size);
    call->last_prefix = prefix;
}

/* A common prefix is listed once; the scan goes on behind all its keys. */
static int list_prefix(struct listing *listing, const uint8_t *key, size_t end, struct cn_err *err)
{
    if (listing->prefixes.size)
        cn_buf_append_byte(&listing->prefixes, ',');
    cn_buf_append_json(&listing->prefixes, (const char *)key, end);
    set_last(listing->call, key, end, true);
    listing->count++;
    struct cn_buf next = {0};
    cn_statement_reset(listing->statement);
    if (!successor(&listing->call->last, &next)) {
        cn_buf_fini(&next);
        return 1; /* nothing can follow */
    }
    int rc = seek(listing, next.data, next.size, false, err);
    cn_buf_fini(&next);
    return rc;
}

static int op_list(struct cn_r2_bucket *bucket, struct cn_r2_call *call, struct cn_err *err)
{
    struct listing listing = {.bucket = bucket, .call = call};
    int rc = begin_listing(&listing, err);
    cn_buf_append_str(&call->json, "{\"objects\":[");
    bool first = true;
    while (rc == 0 && (rc = cn_statement_step(listing.statement, err)) > 0) {
        size_t size;
        const uint8_t *key = cn_statement_column_blob(listing.statement, 9, &size);
        rc = 0;
        if (size < call->prefix.size ||
            (call->prefix.size && memcmp(key, call->prefix.data, call->prefix.size) != 0))
            break;
        if (listing.count == call->limit) {
            call->truncated = true;
            break;
        }
        size_t end = common_prefix(call, key, size);
        if (end) {
            rc = list_prefix(&listing, key, end, err);
            continue;
        }
        if (!first)
            cn_buf_append_byte(&call->json, ',');
        first = false;
        append_object(&call->json, key, size, listing.statement, call->include_http,
                      call->include_custom);
        set_last(call, key, size, false);
        listing.count++;
    }
    if (rc >= 0) {
        cn_statement_reset(listing.statement);
        rc = 0;
    }
    cn_buf_append_str(&call->json, "],\"prefixes\":[");
    cn_buf_append(&call->json, listing.prefixes.data, listing.prefixes.size);
    cn_buf_append_str(&call->json, "]}");
    cn_buf_fini(&listing.prefixes);
    return rc;
}

/* --- the class ------------------------------------------------------------------------------- */

static int bucket_create(struct cn_object *object, void *class_data, void **instance,
                         struct cn_err *err)
{
    if (!cn_service_open(object, schema, CN_ARRAY_COUNT(schema), err))
        return err->code;
    struct cn_r2_bucket *bucket = CN_NEW(struct cn_r2_bucket);
    bucket->object = object;
    bucket->services = class_data;
    bucket->spread = cn_shards_numbered(cn_node_shards(object->lane->node));
    cn_list_init(&bucket->removals);
    cn_service_sql_init(&bucket->sql, sql_texts, CN_R2_SQL_COUNT);
    *instance = bucket;
    return discard_lost(bucket, err);
}

static void bucket_deliver(struct cn_object *object, void *instance, struct cn_call *call)
{
    static int (*const ops[])(struct cn_r2_bucket *, struct cn_r2_call *, struct cn_err *) = {
        [CN_R2_HEAD] = op_get,
        [CN_R2_GET] = op_get,
        [CN_R2_PUT] = op_put,
        [CN_R2_DELETE] = op_delete,
        [CN_R2_LIST] = op_list,
        [CN_R2_ANNOUNCE] = op_announce,
        [CN_R2_FORGET] = op_forget,
        [CN_R2_KNOWN] = op_known,
        [CN_R2_UPLOAD_CREATE] = cn_r2_upload_create,
        [CN_R2_UPLOAD_PART] = cn_r2_upload_part,
        [CN_R2_UPLOAD_COMPLETE] = cn_r2_upload_complete,
        [CN_R2_UPLOAD_ABORT] = cn_r2_upload_abort,
        [CN_R2_UPLOAD_LIST] = cn_r2_upload_list,
        [CN_R2_UPLOAD_PARTS] = cn_r2_upload_parts,
        [CN_R2_TOTALS] = op_totals,
    };
    if (call->kind == CN_CALL_ALARM) {
        deliver_alarm(instance, call);
        return;
    }
    struct cn_r2_call *request = CN_CONTAINER_OF(cn_service_request(call), struct cn_r2_call, base);
    struct cn_err err;
    int rc = ops[request->base.call.op](instance, request, &err);
    cn_service_answer(object, call, rc, &err);
}

static void bucket_release(struct cn_object *object, void *instance)
{
    (void)object;
    cn_service_sql_release(&((struct cn_r2_bucket *)instance)->sql);
}

static void bucket_destroy(struct cn_object *object, void *instance)
{
    (void)object;
    struct cn_r2_bucket *bucket = instance;
    struct cn_list *node;
    while ((node = cn_list_take_front(&bucket->removals)))
        CN_CONTAINER_OF(node, struct removal, link)->bucket = NULL;
    cn_service_sql_fini(&bucket->sql);
    cn_free(bucket);
}

const struct cn_class cn_r2_class = {
    .create = bucket_create,
    .deliver = bucket_deliver,
    .release = bucket_release,
    .destroy = bucket_destroy,
};

/* --- calls ----------------------------------------------------------------------------------- */

void cn_r2_call_fini(struct cn_service_call *base)
{
    struct cn_r2_call *call = CN_CONTAINER_OF(base, struct cn_r2_call, base);
    struct cn_buf *bufs[] = {&call->key,  &call->prefix, &call->delimiter, &call->after,
                             &call->json, &call->last,   &call->ids};
    char *texts[] = {
        call->only_if.match, call->only_if.none_match, call->etag, call->checksums, call->http,
        call->custom,        call->storage_class,      call->ssec, call->upload,    call->parts};
    for (size_t i = 0; i < CN_ARRAY_COUNT(bufs); i++)
        cn_buf_fini(bufs[i]);
    for (size_t i = 0; i < CN_ARRAY_COUNT(texts); i++)
        cn_free(texts[i]);
    cn_r2_body_fini(&call->body);
}

void cn_r2_id_draw(struct cn_namespace *ns, struct cn_blob_id *id)
{
    struct cn_shards *shards = cn_node_shards(ns->node);
    cn_blob_id_draw(id);
    if (!cn_shards_numbered(shards))
        return;
    struct cn_object_key key = {.namespace_id = ns->id};
    cn_id_from_name(&ns->keys, CN_JURISDICTION_NONE, INDEX_NAME, strlen(INDEX_NAME), key.id);
    cn_blob_id_place(id, ns->id, cn_shard_index(&key, cn_shards_count(shards)));
}

struct cn_r2_call *cn_r2_call_new(struct cn_namespace *ns, enum cn_r2_op op)
{
    struct cn_r2_call *call = CN_NEW(struct cn_r2_call);
    cn_service_call_init(&call->base, ns, INDEX_NAME, op, cn_r2_call_fini);
    call->only_if.after_ms = call->only_if.before_ms = INT64_MIN;
    return call;
}

static_assert(CN_R2_KNOWN < CN_OBJECT_OPS, "each operation has a counter");

/* R6 */
static int blobs_known(struct cn_namespace *ns, const struct cn_blob_id *ids, size_t count,
                       uint8_t *known, struct cn_err *err)
{
    struct cn_r2_call *call = cn_r2_call_new(ns, CN_R2_KNOWN);
    cn_buf_append(&call->ids, ids, count * sizeof(*ids));
    int rc = cn_service_call_wait(&call->base, ns->node, NULL, err);
    if (rc == 0 && call->ids.size != count)
        rc = cn_err_set(err, CN_EINVALID, "the index has answered about other blobs");
    if (rc == 0)
        memcpy(known, call->ids.data, count);
    cn_service_call_free(&call->base);
    return rc;
}

/* --- the descriptor -------------------------------------------------------------------------- */

const struct cn_service_def cn_service_r2 = {
    .name = "r2",
    .title = "R2",
    .about = "buckets of objects, over S3 too",
    .page = "reference/r2.md",
    .class_ = &cn_r2_class,
    .operations = {"head", "get", "put", "delete", "list", "upload_create", "upload_part",
                   "upload_complete", "upload_abort", "upload_list", "upload_parts", "totals",
                   "announce", "forget", "known"},
    .wire = &cn_r2_wire,
    .blobs_known = blobs_known,
    .blobs_named = cn_r2_named,
    .config = &cn_r2_config,
    .natives = &cn_r2_natives,
    .face = &cn_r2_face,
    .routes = &cn_r2_routes,
    .command = &cn_r2_command,
};
