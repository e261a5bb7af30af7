/* SPDX-License-Identifier: Apache-2.0 */
#include "object/restore.h"

#include <string.h>

#include "base/assert.h"
#include "base/diag.h"
#include "base/loop.h"
#include "base/mem.h"
#include "object/alarm.h"
#include "object/internal.h"
#include "object/node.h"
#include "object/node_db.h"
#include "store/database.h"
#include "store/history.h"
#include "store/store.h"

/* What is to be done for one object; in lane->restores while there is something. */
struct pending {
    struct cn_object_key key;
    struct cn_list queue; /* of struct cn_restore_request, oldest first */
    bool working;         /* on the first of them; what is asked meanwhile only joins the queue */
    bool stored;          /* in node_db.h: a restore to be carried out, */
    struct cn_object_key source;     /* to the state of this one */
    char bookmark[CN_BOOKMARK_SIZE]; /* at this moment */
};

/* --- the node's own database ----------------------------------------------------------------- */

struct entry {
    const struct cn_object_key *key, *source;
    const char *bookmark; /* NULL: remove */
};

static int run_statement(struct cn_database *db, const char *sql, const struct entry *entry,
                         struct cn_err *err)
{
    struct cn_statement *statement;
    size_t used;
    int rc = cn_database_prepare(db, sql, strlen(sql), 0, &statement, &used, err);
    if (rc < 0)
        return rc;
    rc = cn_statement_bind_int(statement, 1, entry->key->namespace_id, err);
    if (rc == 0)
        rc = cn_statement_bind_blob(statement, 2, entry->key->id, CN_OBJECT_ID_SIZE, false, err);
    if (rc == 0 && entry->bookmark) {
        rc = cn_statement_bind_int(statement, 3, entry->source->namespace_id, err);
        if (rc == 0)
            rc = cn_statement_bind_blob(statement, 4, entry->source->id, CN_OBJECT_ID_SIZE, false,
                                        err);
        if (rc == 0)
            rc = cn_statement_bind_text(statement, 5, entry->bookmark, strlen(entry->bookmark),
                                        false, err);
    }
    if (rc == 0)
        rc = cn_statement_step(statement, err);
    cn_statement_release(statement);
    return rc;
}

static int write_entry(struct cn_database *db, void *data, struct cn_err *err)
{
    struct entry *entry = data;
    return run_statement(db,
                         entry->bookmark ? "INSERT OR REPLACE INTO restores VALUES(?, ?, ?, ?, ?)"
                                         : "DELETE FROM restores WHERE namespace = ? AND id = ?",
                         entry, err);
}

static struct pending *pending_make(struct cn_object_lane *lane, const struct cn_object_key *key)
{
    struct pending *pending = cn_map_find(&lane->restores, key, sizeof(*key));
    if (pending)
        return pending;
    pending = CN_NEW(struct pending);
    pending->key = *key;
    cn_list_init(&pending->queue);
    cn_map_set(&lane->restores, key, sizeof(*key), pending);
    return pending;
}

static bool read_key(struct cn_statement *statement, int column, struct cn_object_key *key)
{
    size_t size;
    key->namespace_id = (uint32_t)cn_statement_column_int(statement, column);
    const void *id = cn_statement_column_blob(statement, column + 1, &size);
    if (size != CN_OBJECT_ID_SIZE)
        return false;
    memcpy(key->id, id, size);
    return true;
}

static int read_entries(struct cn_database *db, void *data, struct cn_err *err)
{
    static const char sql[] =
        "SELECT namespace, id, source_namespace, source_id, bookmark FROM restores";
    struct cn_list *entries = data;
    struct cn_statement *statement;
    size_t used, size;
    int rc = cn_database_prepare(db, sql, strlen(sql), 0, &statement, &used, err);
    if (rc < 0)
        return rc;
    while ((rc = cn_statement_step(statement, err)) == 1) {
        struct cn_restore_entry read = {0};
        const char *bookmark = cn_statement_column_text(statement, 4, &size);
        if (!read_key(statement, 0, &read.key) || !read_key(statement, 2, &read.source) ||
            size != CN_BOOKMARK_SIZE - 1) {
            rc = cn_err_set(err, CN_ECORRUPT,
                            "the list of restores in the node's database is damaged");
            break;
        }
        memcpy(read.bookmark, bookmark, size);
        struct cn_restore_entry *entry = CN_NEW(struct cn_restore_entry);
        *entry = read;
        cn_list_push_back(entries, &entry->link);
    }
    cn_statement_release(statement);
    return rc;
}

int cn_restore_read(struct cn_node_db *db, struct cn_list *entries, struct cn_err *err)
{
    return cn_node_db_read(db, read_entries, entries, err);
}

void cn_restore_entries_free(struct cn_list *entries)
{
    struct cn_list *node;
    while ((node = cn_list_take_front(entries)))
        cn_free(CN_CONTAINER_OF(node, struct cn_restore_entry, link));
}

void cn_restore_take_up(struct cn_lane_shard *own)
{
    struct cn_object_lane *lane = own->lane;
    struct cn_list mine, *node;
    cn_list_init(&mine);
    cn_shard_take_restores(own->shard, lane, &mine);
    while ((node = cn_list_take_front(&mine))) {
        struct cn_restore_entry *entry = CN_CONTAINER_OF(node, struct cn_restore_entry, link);
        struct pending *pending = pending_make(lane, &entry->key);
        pending->stored = true;
        pending->source = entry->source;
        memcpy(pending->bookmark, entry->bookmark, sizeof(pending->bookmark));
        cn_free(entry);
    }
}

/* --- on the thread pool ---------------------------------------------------------------------- */

static void on_at_work(uv_work_t *work)
{
    struct cn_restore_request *request = work->data;
    const struct cn_shard *shard = request->shard;
    if (cn_history_bookmark_at(shard->history, shard->store, &request->key, request->time_ms,
                               request->bookmark, &request->err) == 0)
        request->err.code = 0; /* what is in there then was no failure */
}

static void on_next_work(uv_work_t *work)
{
    struct cn_restore_request *request = work->data;
    const struct cn_shard *shard = request->shard;
    struct entry entry = {&request->key, &request->source, request->bookmark};
    int rc = cn_history_check(shard->history, shard->store, &request->source, request->bookmark,
                              &request->err);
    if (rc == 0)
        rc = cn_node_db_run(shard->db, write_entry, &entry, &request->err);
    if (rc == 0)
        request->err.code = 0; /* as above */
}

/* A new object has its name only from the call that made it; it must outlive that call. */
static int keep_name(struct cn_restore_request *request, uint64_t *lsn, struct cn_err *err)
{
    struct cn_database *db;
    struct cn_database_meta meta;
    if (!request->name || request->name_size > CN_OBJECT_NAME_MAX)
        return 0;
    int rc = cn_database_open(request->shard->store, &request->key, NULL, &db, err);
    if (rc < 0)
        return rc;
    cn_database_meta(db, &meta);
    if (!meta.has_name) {
        rc = cn_database_set_name(db, request->name, request->name_size, err);
        if (rc == 0)
            rc = cn_database_commit(db, lsn, err);
    }
    cn_database_close(db);
    return rc;
}

/* P3 */
static bool is_hopeless(int code)
{
    return code == CN_ENOTFOUND || code == CN_EINVALID || code == CN_ECORRUPT;
}

static void on_carry_out_work(uv_work_t *work)
{
    struct cn_restore_request *request = work->data;
    const struct cn_shard *shard = request->shard;
    struct cn_err *err = &request->err, db_err;
    uint64_t lsn;
    bool own = memcmp(&request->key, &request->source, sizeof(request->key)) == 0;
    struct cn_history_moment source = {&request->source, request->bookmark};
    int rc = own ? cn_history_restore(shard->history, shard->store, &request->key,
                                      request->bookmark, &lsn, NULL, err)
                 : cn_history_restore_from(shard->history, shard->store, &request->key, &source,
                                           &lsn, NULL, err);
    if (rc == 0)
        rc = keep_name(request, &lsn, err);
    if (rc == 0)
        rc = cn_store_wait(shard->store, lsn, err);
    if (rc < 0 && !is_hopeless(rc))
        return;
    struct entry entry = {.key = &request->key};
    int removed = cn_node_db_run(shard->db, write_entry, &entry, &db_err);
    if (rc == 0) /* what is in `err` then was no failure */
        *err = removed < 0 ? db_err : (struct cn_err){0};
}

/* --- the queue of one object ----------------------------------------------------------------- */

static void advance(struct cn_object_lane *lane, struct pending *pending);

static void finish(struct cn_restore_request *request)
{
    cn_free(request->name);
    request->name = NULL;
    request->done(request, request->err.code ? &request->err : NULL);
}

/* The work on a request is over: takes it from its queue. NULL if the lane is stopping, or the
 * shard was closed: then what was written down is found by whoever opens it next. */
static struct pending *take_worked(struct cn_restore_request *request)
{
    struct cn_object_lane *lane = request->lane;
    if (request->abandoned && !request->err.code)
        cn_err_set(&request->err, CN_ECLOSED, "%s", CN_SHARD_AWAY);
    if (lane->stopping || request->abandoned)
        return NULL;
    struct pending *pending = cn_map_find(&lane->restores, &request->key, sizeof(request->key));
    CN_ASSERT(pending && pending->working && pending->queue.next == &request->link);
    cn_list_remove(&request->link);
    return pending;
}

/* Tells who asked, and goes on with the queue. */
static void finish_worked(struct cn_restore_request *request, struct pending *pending)
{
    struct cn_object_lane *lane = request->lane;
    struct cn_shard *shard = request->shard;
    finish(request);
    if (pending) {
        pending->working = false;
        advance(lane, pending);
        cn_object_lane_step(lane);
    }
    cn_shard_release(shard);
}

static void on_next_worked(uv_work_t *work, int status)
{
    (void)status; /* never cancelled */
    struct cn_restore_request *request = work->data;
    const struct cn_shard *shard = request->shard;
    struct pending *pending = take_worked(request);
    if (pending && !request->err.code) {
        pending->stored = true;
        pending->source = request->source;
        memcpy(pending->bookmark, request->bookmark, sizeof(pending->bookmark));
        cn_history_bookmark_undo(shard->history, shard->store, &request->key, 0, request->bookmark);
    }
    finish_worked(request, pending);
}

static void on_carried_out(uv_work_t *work, int status)
{
    (void)status; /* never cancelled */
    struct cn_restore_request *request = work->data;
    struct pending *pending = take_worked(request);
    if (pending && (!request->err.code || is_hopeless(request->err.code)))
        pending->stored = false;
    if (pending && !request->err.code)
        cn_alarm_look(request->lane, &request->key);
    finish_worked(request, pending);
}

static void queue_work(struct cn_restore_request *request, uv_work_cb work, uv_after_work_cb after)
{
    request->work.data = request;
    request->shard = cn_lane_shard_of(request->lane, &request->key)->shard;
    cn_shard_hold_more(request->shard);
    int rc = uv_queue_work(request->lane->loop, &request->work, work, after);
    CN_ASSERT(rc == 0);
}

/* Starts on the first of the queue; forgets the object when there is nothing left. */
static void advance(struct cn_object_lane *lane, struct pending *pending)
{
    if (pending->working)
        return;
    pending->working = true;
    while (!cn_list_empty(&pending->queue)) {
        struct cn_restore_request *request =
            CN_CONTAINER_OF(pending->queue.next, struct cn_restore_request, link);
        if (!request->object) {
            queue_work(request, on_next_work, on_next_worked);
            return;
        }
        if (pending->stored) {
            request->source = pending->source;
            memcpy(request->bookmark, pending->bookmark, sizeof(request->bookmark));
            queue_work(request, on_carry_out_work, on_carried_out);
            return;
        }
        /* What it waited for was refused, or has been carried out for an instance before. */
        cn_list_remove(&request->link);
        finish(request);
    }
    pending->working = false;
    if (pending->stored)
        return;
    cn_map_take(&lane->restores, &pending->key, sizeof(pending->key));
    cn_free(pending);
}

static void enqueue(struct cn_object_lane *lane, struct pending *pending,
                    struct cn_restore_request *request)
{
    cn_list_push_back(&pending->queue, &request->link);
    advance(lane, pending);
}

/* --- what an object asks --------------------------------------------------------------------- */

static void prepare(struct cn_object *object, struct cn_restore_request *request)
{
    CN_ASSERT(request->done);
    request->lane = object->lane;
    request->object = NULL;
    request->abandoned = false;
    request->key = object->key;
    request->name = NULL;
    request->err.code = 0;
    cn_list_init(&request->link);
}

static void on_now(struct cn_output *output, const struct cn_err *err)
{
    struct cn_restore_request *request = CN_CONTAINER_OF(output, struct cn_restore_request, output);
    if (!err) {
        /* Every commit of the object up to the turn's is at or before one of the two, and every
         * later one is after both. */
        uint64_t lsn = output->lsn > request->floor_lsn ? output->lsn : request->floor_lsn;
        struct cn_bookmark bookmark = {
            .lsn = lsn, .time_ms = cn_clock_wall_ms(cn_node_clock(request->lane->node))};
        cn_bookmark_format(&bookmark, &request->key, request->bookmark);
    }
    request->done(request, err);
}

void cn_restore_bookmark_now(struct cn_object *object, struct cn_restore_request *request)
{
    cn_loop_assert_owner(object->lane->loop);
    prepare(object, request);
    request->floor_lsn = object->cut ? 0 : cn_store_durable(object->shard->store);
    cn_object_output(object, &request->output, on_now);
}

static void on_at_worked(uv_work_t *work, int status)
{
    (void)status; /* never cancelled */
    struct cn_restore_request *request = work->data;
    struct cn_shard *shard = request->shard;
    finish(request);
    cn_shard_release(shard);
}

/* What the turn wrote is in the log's files now, where history looks. */
static void on_at(struct cn_output *output, const struct cn_err *err)
{
    struct cn_restore_request *request = CN_CONTAINER_OF(output, struct cn_restore_request, output);
    if (err)
        request->done(request, err);
    else if (!cn_lane_shard_of(request->lane, &request->key)->shard->history)
        request->done(request, &(struct cn_err){CN_EUNSUPPORTED, "no history is kept here"});
    else
        queue_work(request, on_at_work, on_at_worked);
}

void cn_restore_bookmark_at(struct cn_object *object, int64_t time_ms,
                            struct cn_restore_request *request)
{
    cn_loop_assert_owner(object->lane->loop);
    prepare(object, request);
    request->time_ms = time_ms;
    cn_object_output(object, &request->output, on_at);
}

static void on_refused(struct cn_output *output, const struct cn_err *err)
{
    (void)err;
    finish(CN_CONTAINER_OF(output, struct cn_restore_request, output));
}

void cn_restore_next(struct cn_object *object, const struct cn_object_key *source,
                     const char *bookmark, size_t bookmark_size, struct cn_restore_request *request)
{
    cn_loop_assert_owner(object->lane->loop);
    struct cn_object_lane *lane = object->lane;
    struct cn_bookmark parsed;
    prepare(object, request);
    request->source = source ? *source : object->key;
    int rc;
    if (object->cut)
        rc = cn_err_set(&request->err, CN_ECLOSED, "the object was reset");
    else if (!object->shard->shard->history)
        rc = cn_err_set(&request->err, CN_EUNSUPPORTED, "no history is kept here");
    else if (cn_lane_shard_of(lane, &request->source) != object->shard)
        rc = cn_err_set(&request->err, CN_EUNSUPPORTED,
                        "the other object is of another shard, whose history is not here");
    else if (lane->restores.count >= CN_RESTORE_PENDING_MAX)
        rc = cn_err_set(&request->err, CN_EOVERLOADED,
                        "%d restores are waiting for their objects to start",
                        CN_RESTORE_PENDING_MAX);
    else
        rc = cn_bookmark_parse(bookmark, bookmark_size, &request->source, &parsed, &request->err);
    if (rc < 0) {
        cn_object_output(object, &request->output, on_refused);
        return;
    }
    memcpy(request->bookmark, bookmark, bookmark_size);
    request->bookmark[bookmark_size] = 0;
    enqueue(lane, pending_make(lane, &object->key), request);
}

/* --- for the core ---------------------------------------------------------------------------- */

static void on_ready(struct cn_restore_request *request, const struct cn_err *err)
{
    struct cn_object *object = request->object;
    if (!request->lane->stopping) {
        if (err && !request->abandoned)
            cn_error("%s: an object could not be restored%s: %s", object->ns->name,
                     is_hopeless(err->code) ? " and stays as it is" : "", err->text);
        cn_object_restored(object, err);
    }
    cn_free(request);
}

bool cn_restore_before_start(struct cn_object *object)
{
    struct cn_object_lane *lane = object->lane;
    if (!lane->restores.count)
        return false;
    struct pending *pending = cn_map_find(&lane->restores, &object->key, sizeof(object->key));
    if (!pending)
        return false;
    struct cn_restore_request *request = CN_NEW(struct cn_restore_request);
    request->done = on_ready;
    request->lane = lane;
    request->object = object;
    request->key = object->key;
    if (object->name) {
        request->name = cn_strndup(object->name, object->name_size);
        request->name_size = object->name_size;
    }
    cn_object_hold(object);
    enqueue(lane, pending, request);
    return true;
}

void cn_restore_lane_init(struct cn_object_lane *lane)
{
    cn_map_init(&lane->restores);
}

static struct pending *find_of_shard(const struct cn_lane_shard *own)
{
    size_t cursor = 0;
    const struct cn_map_entry *entry;
    while (cn_map_next(&own->lane->restores, &cursor, &entry)) {
        struct pending *pending = entry->value;
        if (cn_lane_shard_of(own->lane, &pending->key) == own)
            return pending;
    }
    return NULL;
}

void cn_restore_let_go(struct cn_lane_shard *own, const struct cn_err *err)
{
    struct pending *pending;
    while ((pending = find_of_shard(own))) {
        struct cn_list *node;
        cn_map_take(&own->lane->restores, &pending->key, sizeof(pending->key));
        if (pending->working && (node = cn_list_take_front(&pending->queue)))
            CN_CONTAINER_OF(node, struct cn_restore_request, link)->abandoned = true;
        while ((node = cn_list_take_front(&pending->queue))) {
            struct cn_restore_request *request =
                CN_CONTAINER_OF(node, struct cn_restore_request, link);
            request->err = *err;
            finish(request);
        }
        cn_free(pending);
    }
}

/* Those being worked on are told when their work ends, which keeps the loop alive. */
void cn_restore_lane_fini(struct cn_object_lane *lane)
{
    size_t cursor = 0;
    const struct cn_map_entry *entry;
    while (cn_map_next(&lane->restores, &cursor, &entry)) {
        struct pending *pending = entry->value;
        cn_list_take_front(&pending->queue);
        struct cn_list *node;
        while ((node = cn_list_take_front(&pending->queue))) {
            struct cn_restore_request *request =
                CN_CONTAINER_OF(node, struct cn_restore_request, link);
            cn_err_set(&request->err, CN_ECLOSED, "the server is stopping");
            finish(request);
        }
        cn_free(pending);
    }
    cn_map_fini(&lane->restores);
}
