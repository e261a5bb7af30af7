/* SPDX-License-Identifier: Apache-2.0 */
/* service/queue/queue_state.c - the tables of a queue, which queue.c explains, and the row of
 * counters.
 */
#include <string.h>

#include "base/assert.h"
#include "base/clock.h"
#include "base/diag.h"
#include "object/alarm.h"
#include "object/node.h"
#include "service/queue/queue_private.h"
#include "store/database.h"

static const char *const schema[] = {
    "CREATE TABLE ready (id INTEGER PRIMARY KEY, sent INTEGER NOT NULL, type INTEGER NOT NULL,"
    " retries INTEGER NOT NULL, origin INTEGER NOT NULL, body BLOB NOT NULL);"
    "CREATE TABLE delayed (id INTEGER PRIMARY KEY, due INTEGER NOT NULL, sent INTEGER NOT NULL,"
    " type INTEGER NOT NULL, retries INTEGER NOT NULL, origin INTEGER NOT NULL,"
    " body BLOB NOT NULL);"
    "CREATE INDEX delayed_due ON delayed (due);"
    "CREATE TABLE state (one INTEGER PRIMARY KEY CHECK (one = 1), last INTEGER NOT NULL,"
    " ready INTEGER NOT NULL, delayed INTEGER NOT NULL, bytes INTEGER NOT NULL,"
    " dropped INTEGER NOT NULL, paused INTEGER NOT NULL, retention INTEGER NOT NULL);"
    "INSERT INTO state VALUES (1, 0, 0, 0, 0, 0, 0, 345600);",
    "ALTER TABLE state ADD COLUMN done INTEGER NOT NULL DEFAULT 0;",
};

const char *const cn_queue_sql_texts[CN_QUEUE_SQL_COUNT] = {
    [CN_QUEUE_SQL_SEND] = "INSERT INTO ready VALUES (?1, ?2, ?3, 0, ?1, ?4)",
    [CN_QUEUE_SQL_SEND_DELAYED] = "INSERT INTO delayed VALUES (?1, ?5, ?2, ?3, 0, ?1, ?4)",
    [CN_QUEUE_SQL_READ] =
        "SELECT id, sent, type, retries, origin, body FROM ready WHERE id > ?1 ORDER BY id",
    [CN_QUEUE_SQL_DELETE_RUN] = "DELETE FROM ready WHERE id BETWEEN ?1 AND ?2",
    [CN_QUEUE_SQL_DELETE_DONE] = "DELETE FROM ready WHERE id <= ?1",
    [CN_QUEUE_SQL_DELETE] = "DELETE FROM ready WHERE id = ?1",
    [CN_QUEUE_SQL_GET] = "SELECT sent, type, retries, origin, body FROM ready WHERE id = ?1",
    [CN_QUEUE_SQL_TO_READY] =
        "INSERT INTO ready SELECT ?2, sent, type, retries, origin, body FROM delayed"
        " WHERE id = ?1",
    [CN_QUEUE_SQL_TO_DELAYED] =
        "INSERT INTO delayed SELECT ?2, ?3, sent, type, retries + ?4, origin, body"
        " FROM ready WHERE id = ?1",
    [CN_QUEUE_SQL_AGAIN] =
        "INSERT INTO ready SELECT ?2, sent, type, retries + ?4, origin, body FROM ready"
        " WHERE id = ?1",
    [CN_QUEUE_SQL_DUE] = "SELECT id FROM delayed WHERE due <= ?1 ORDER BY due, id LIMIT 1",
    [CN_QUEUE_SQL_DELETE_DELAYED] = "DELETE FROM delayed WHERE id = ?1",
    [CN_QUEUE_SQL_FIRST_DUE] = "SELECT due FROM delayed ORDER BY due LIMIT 1",
    [CN_QUEUE_SQL_OLDEST] = "SELECT sent FROM ready WHERE id > ?1 ORDER BY id LIMIT 1",
    [CN_QUEUE_SQL_OLDEST_DELAYED] = "SELECT sent FROM delayed ORDER BY due LIMIT 1",
    [CN_QUEUE_SQL_SAVE] =
        "UPDATE state SET last = ?1, ready = ?2, delayed = ?3, bytes = ?4, dropped = ?5,"
        " paused = ?6, retention = ?7, done = ?8 WHERE one = 1",
    [CN_QUEUE_SQL_LOAD] =
        "SELECT last, ready, delayed, bytes, dropped, paused, retention, done FROM state",
    [CN_QUEUE_SQL_RECOUNT] =
        "SELECT (SELECT count(*) FROM ready WHERE id > ?1), (SELECT count(*) FROM delayed),"
        " (SELECT ifnull(sum(length(body)), 0) FROM ready WHERE id > ?1)"
        " + (SELECT ifnull(sum(length(body)), 0) FROM delayed)",
};

int cn_queue_tables(struct cn_database *db, struct cn_err *err)
{
    return cn_service_schema(db, schema, CN_ARRAY_COUNT(schema), err);
}

int64_t cn_queue_now(struct cn_queue *queue)
{
    return cn_clock_wall_ms(cn_node_clock(queue->object->lane->node));
}

int cn_queue_prepare(struct cn_queue *queue, unsigned which, size_t count, const int64_t values[],
                     struct cn_statement **statement, struct cn_err *err)
{
    struct cn_database *db = cn_object_database(queue->object, err);
    if (!db)
        return err->code;
    int rc = cn_service_sql_get(&queue->sql, db, which, statement, err);
    for (size_t i = 0; i < count && rc == 0; i++)
        rc = cn_statement_bind_int(*statement, (int)i + 1, values[i], err);
    return rc;
}

int cn_queue_run(struct cn_queue *queue, unsigned which, size_t count, const int64_t values[],
                 struct cn_err *err)
{
    struct cn_statement *statement;
    int rc = cn_queue_prepare(queue, which, count, values, &statement, err);
    return rc < 0 ? rc : cn_service_sql_run(statement, err);
}

int cn_queue_read_int(struct cn_queue *queue, unsigned which, size_t count, const int64_t values[],
                      int64_t fallback, int64_t *value, struct cn_err *err)
{
    struct cn_statement *statement;
    int rc = cn_queue_prepare(queue, which, count, values, &statement, err);
    if (rc < 0)
        return rc;
    rc = cn_statement_step(statement, err);
    *value = rc > 0 ? cn_statement_column_int(statement, 0) : fallback;
    cn_statement_reset(statement);
    return rc < 0 ? rc : 0;
}

static bool counts(const struct cn_queue *queue)
{
    return queue->ready >= 0 && queue->delayed >= 0 && queue->bytes >= 0;
}

/* Q2 */
static int recount(struct cn_queue *queue, struct cn_err *err)
{
    struct cn_statement *statement;
    cn_warn("queue %s had lost count of its messages and counts them anew",
            queue->object->ns->name);
    int rc = cn_queue_prepare(queue, CN_QUEUE_SQL_RECOUNT, 1, &queue->done, &statement, err);
    if (rc == 0)
        rc = cn_statement_step(statement, err);
    if (rc < 0)
        return rc;
    queue->ready = cn_statement_column_int(statement, 0);
    queue->delayed = cn_statement_column_int(statement, 1);
    queue->bytes = cn_statement_column_int(statement, 2);
    queue->changed = true;
    cn_statement_reset(statement);
    return 0;
}

int cn_queue_load(struct cn_queue *queue, struct cn_err *err)
{
    struct cn_statement *statement;
    int rc = cn_queue_prepare(queue, CN_QUEUE_SQL_LOAD, 0, NULL, &statement, err);
    if (rc == 0)
        rc = cn_statement_step(statement, err);
    if (rc < 0)
        return rc;
    if (rc == 0)
        return cn_err_set(err, CN_ECORRUPT, "the queue has lost its state");
    queue->last = queue->found = cn_statement_column_int(statement, 0);
    queue->ready = cn_statement_column_int(statement, 1);
    queue->delayed = cn_statement_column_int(statement, 2);
    queue->bytes = cn_statement_column_int(statement, 3);
    queue->dropped = cn_statement_column_int(statement, 4);
    queue->paused = cn_statement_column_int(statement, 5) != 0;
    queue->retention_s = cn_statement_column_int(statement, 6);
    queue->done = queue->cursor = cn_statement_column_int(statement, 7);
    queue->done_rows = queue->done ? CN_QUEUE_DONE_ROWS_MAX : 0;
    cn_statement_reset(statement);
    rc = counts(queue) ? 0 : recount(queue, err);
    queue->unread = (uint64_t)queue->ready;
    return rc;
}

int cn_queue_save(struct cn_queue *queue, struct cn_err *err)
{
    if (!queue->changed)
        return 0;
    if (!counts(queue)) /* Q2 */
        return cn_err_set(err, CN_ECORRUPT, "the queue has lost count of its messages");
    queue->changed = false;
    int rc =
        CN_QUEUE_RUN(queue, CN_QUEUE_SQL_SAVE, err, queue->last, queue->ready, queue->delayed,
                     queue->bytes, queue->dropped, queue->paused, queue->retention_s, queue->done);
    int64_t alarm_ms;
    if (rc == 0)
        rc = cn_object_alarm_get(queue->object, &alarm_ms, err);
    /* Messages that nobody fetches must go one day. */
    if (rc == 0 && alarm_ms == CN_ALARM_NONE && queue->ready + queue->delayed > 0)
        rc = cn_object_alarm_set(queue->object, cn_queue_now(queue) + queue->retention_s * 1000,
                                 err);
    return rc;
}

int cn_queue_read_metrics(struct cn_queue *queue, struct cn_queue_metrics *metrics,
                          struct cn_err *err)
{
    int64_t oldest, oldest_delayed;
    int rc =
        cn_queue_read_int(queue, CN_QUEUE_SQL_OLDEST, 1, &queue->done, INT64_MAX, &oldest, err);
    oldest_delayed = INT64_MAX;
    if (rc == 0 && queue->delayed)
        rc = cn_queue_read_int(queue, CN_QUEUE_SQL_OLDEST_DELAYED, 0, NULL, INT64_MAX,
                               &oldest_delayed, err);
    if (oldest_delayed < oldest)
        oldest = oldest_delayed;
    *metrics = (struct cn_queue_metrics){
        .count = (uint64_t)(queue->ready + queue->delayed),
        .bytes = (uint64_t)queue->bytes,
        .oldest_ms = oldest == INT64_MAX ? 0 : oldest,
        .leased = (uint64_t)queue->ready - queue->unread,
        .dropped = (uint64_t)queue->dropped,
        .paused = queue->paused,
        .retention_s = queue->retention_s,
    };
    struct cn_object_metrics *seen = cn_object_metrics(queue->object);
    cn_counter_set(&seen->backlog_count, metrics->count);
    cn_counter_set(&seen->backlog_bytes, metrics->bytes);
    cn_counter_set(&seen->backlog_oldest_ms, (uint64_t)metrics->oldest_ms);
    return rc;
}
