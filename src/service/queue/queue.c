/* SPDX-License-Identifier: Apache-2.0 */
/* service/queue/queue.c - see queue.h.
 *
 * Tables:
 *     ready    in the order of delivery; rows up to state.done are settled and only wait to be
 *              removed; rows up to `cursor` are leased (or about to be settled)
 *     delayed  what must not be delivered before `due`
 *     state    one row: counters, settings
 *
 * A message that moves (from delayed to ready, or back for a retry) gets a new row id, because the
 * order of rows is the order of delivery; `origin` keeps its first one, from which the id that
 * consumers see is computed.
 *
 * Batches are mostly acknowledged in the order they were given out. Then an acknowledgement moves
 * state.done, one number in a row that is written anyway, and many rows are removed at a time: to
 * remove each batch by itself would rebalance the front of a long table again and again.
 *
 * In memory, rebuilt from nothing after a start: the cursor, the leases, who waits, and the
 * counters of `state`, which every turn that changes them writes back. A turn that fails is rolled
 * back and the object reset, so that memory and disk cannot differ.
 *
 * Q1  The counters are those of the tables. What is out (leases, transfers) refers to rows that are
 *     there: whoever removes rows for another reason takes them from there too.
 * Q2  No counter below zero is written, and one that is read makes the queue count anew. */
#include "service/queue/queue.h"

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
#include "service/queue/queue_private.h"
#include "store/database.h"

/* Rows that are moved or removed in one turn. */
#define STEP_ROWS_MAX 1000
/* Settled rows are removed when there are CN_QUEUE_DONE_ROWS_MAX of them, or so many bytes, or no
 * others. */
#define DONE_BYTES_MAX (1 << 20)
/* How soon a message is tried again that could not be sent to its dead letter queue. */
#define DEAD_LETTER_RETRY_MS 5000

/* A message that is out. */
struct leased {
    int64_t row;
    uint32_t retries, size;
};

struct lease {
    struct cn_list link; /* in queue->leases */
    uint64_t number;
    int64_t until_ms;
    struct cn_queue_policy policy;
    size_t count, left;      /* of messages; of those not settled */
    struct leased *messages; /* owned; row 0: settled */
};

/* Messages on their way to the dead letter queue: their rows stay until they are durable there. */
struct transfer {
    struct cn_list link;     /* in queue->transfers */
    struct cn_queue *queue;  /* NULL: it has left memory */
    struct leased *messages; /* owned */
    size_t count;
};

/* --- sending --------------------------------------------------------------------------------- */

static void more_ready(struct cn_queue *queue)
{
    queue->ready++;
    if (!queue->unread++)
        queue->since_ms = cn_queue_now(queue);
    queue->changed = true;
}

static int send_one(struct cn_queue *queue, const struct cn_queue_call *call,
                    const struct cn_queue_message *message, int64_t now, struct cn_err *err)
{
    struct cn_statement *statement;
    bool delayed = message->delay_s > 0;
    int64_t row = ++queue->last;
    int rc = CN_QUEUE_PREPARE(queue, delayed ? CN_QUEUE_SQL_SEND_DELAYED : CN_QUEUE_SQL_SEND,
                              &statement, err, row, now, message->type);
    const uint8_t *bytes = call->bodies.data ? call->bodies.data : (const uint8_t *)"";
    if (rc == 0)
        rc =
            cn_statement_bind_blob(statement, 4, bytes + message->offset, message->size, true, err);
    if (rc == 0 && delayed)
        rc = cn_statement_bind_int(statement, 5, now + message->delay_s * 1000, err);
    if (rc == 0)
        rc = cn_service_sql_run(statement, err);
    if (rc < 0)
        return rc;
    queue->bytes += (int64_t)message->size;
    queue->changed = true;
    if (delayed)
        queue->delayed++;
    else
        more_ready(queue);
    return 0;
}

static int op_send(struct cn_queue *queue, struct cn_queue_call *call, struct cn_err *err)
{
    int64_t now = cn_queue_now(queue);
    for (size_t i = 0; i < call->count; i++) {
        int rc = send_one(queue, call, &call->messages[i], now, err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* --- settling -------------------------------------------------------------------------------- */

static struct lease *find_lease(struct cn_queue *queue, uint64_t number)
{
    CN_LIST_FOREACH(&queue->leases, node)
    {
        struct lease *lease = CN_CONTAINER_OF(node, struct lease, link);
        if (lease->number == number)
            return lease;
    }
    return NULL;
}

static void free_lease(struct lease *lease)
{
    cn_list_remove(&lease->link);
    cn_free(lease->messages);
    cn_free(lease);
}

/* The message is gone from `ready` (its row is deleted by the caller). */
static void count_out(struct cn_queue *queue, const struct leased *message)
{
    queue->ready--;
    queue->bytes -= message->size;
    queue->changed = true;
}

/* Puts a message back, behind all others or until `delay_ms` from now. Its old row goes. */
static int put_back(struct cn_queue *queue, const struct leased *message, int64_t delay_ms,
                    bool counts, struct cn_err *err)
{
    int64_t row = ++queue->last, due = cn_queue_now(queue) + delay_ms;
    int rc = CN_QUEUE_RUN(queue, delay_ms > 0 ? CN_QUEUE_SQL_TO_DELAYED : CN_QUEUE_SQL_AGAIN, err,
                          message->row, row, due, counts);
    if (rc == 0)
        rc = CN_QUEUE_RUN(queue, CN_QUEUE_SQL_DELETE, err, message->row);
    if (rc < 0)
        return rc;
    queue->ready--;
    if (delay_ms > 0)
        queue->delayed++;
    else
        more_ready(queue);
    queue->changed = true;
    return 0;
}

static void pump(struct cn_queue *queue);

static void free_transfer(struct transfer *transfer)
{
    cn_free(transfer->messages);
    cn_free(transfer);
}

/* The dead letter queue has answered: its messages may go here, or must be tried again. */
static void on_transferred(struct cn_service_call *call)
{
    struct transfer *transfer = call->call.envelope.data;
    struct cn_queue *queue = transfer->queue;
    struct cn_object *object = queue ? queue->object : NULL;
    bool failed = call->call.envelope.err.code != 0;
    struct cn_err err;
    int rc = 0;
    if (failed)
        cn_warn("queue %s cannot take dead letters yet: %s", call->call.ns->name,
                call->call.envelope.err.text);
    cn_list_remove(&transfer->link);
    if (object && !cn_object_is_broken(object)) {
        cn_object_enter(object);
        for (size_t i = 0; i < transfer->count && rc == 0; i++) {
            if (failed) {
                rc = put_back(queue, &transfer->messages[i], DEAD_LETTER_RETRY_MS, false, &err);
            } else {
                rc = CN_QUEUE_RUN(queue, CN_QUEUE_SQL_DELETE, &err, transfer->messages[i].row);
                count_out(queue, &transfer->messages[i]);
            }
        }
        if (rc == 0)
            rc = cn_queue_save(queue, &err);
        if (rc < 0)
            cn_object_reset(object, CN_FAULT_RESET, rc, "%s", err.text);
        else
            pump(queue);
        cn_object_leave(object);
    }
    free_transfer(transfer);
    cn_service_call_free(call);
    if (object && object->holds)
        cn_object_unhold(object);
}

/* Collects messages that go to the dead letter queue. */
static int add_dead_letter(struct cn_queue *queue, struct cn_queue_call **call,
                           struct cn_namespace *to, const struct leased *message,
                           struct cn_err *err)
{
    struct cn_statement *statement;
    int rc = CN_QUEUE_PREPARE(queue, CN_QUEUE_SQL_GET, &statement, err, message->row);
    if (rc == 0)
        rc = cn_statement_step(statement, err);
    if (rc <= 0)
        return rc;
    size_t size;
    const void *body = cn_statement_column_blob(statement, 4, &size);
    if (!*call) {
        *call = cn_queue_call_new(to, CN_QUEUE_SEND);
        struct transfer *transfer = CN_NEW(struct transfer);
        transfer->queue = queue;
        cn_list_init(&transfer->link);
        transfer->messages = cn_alloc(CN_QUEUE_BATCH_COUNT_MAX * sizeof(*transfer->messages));
        (*call)->base.call.envelope.data = transfer;
    }
    cn_queue_add(*call, body, size, (enum cn_queue_type)cn_statement_column_int(statement, 1), 0);
    cn_statement_reset(statement);
    struct transfer *transfer = (*call)->base.call.envelope.data;
    CN_ASSERT(transfer->count < CN_QUEUE_BATCH_COUNT_MAX);
    transfer->messages[transfer->count++] = *message;
    return 0;
}

static void send_dead_letters(struct cn_queue *queue, struct cn_queue_call *call)
{
    if (!call)
        return;
    struct transfer *transfer = call->base.call.envelope.data;
    cn_list_push_back(&queue->transfers, &transfer->link);
    cn_object_hold(queue->object);
    cn_service_call_send(&call->base, queue->object->lane, on_transferred);
}

static void drop_dead_letters(struct cn_queue_call *call)
{
    if (!call)
        return;
    free_transfer(call->base.call.envelope.data);
    cn_service_call_free(&call->base);
}

/* Sends them if what made them has succeeded. Returns `rc`. */
static int end_dead_letters(struct cn_queue *queue, struct cn_queue_call *call, int rc)
{
    if (rc == 0)
        send_dead_letters(queue, call);
    else
        drop_dead_letters(call);
    return rc;
}

static int drop(struct cn_queue *queue, const struct leased *message, struct cn_err *err)
{
    int rc = CN_QUEUE_RUN(queue, CN_QUEUE_SQL_DELETE, err, message->row);
    if (rc < 0)
        return rc;
    count_out(queue, message);
    queue->dropped++;
    cn_warn("queue %s: a message was dropped after %u attempts; there is no dead letter queue",
            queue->object->ns->name + strlen("$queue/"), message->retries + 1);
    return 0;
}

/* A delivery that did not succeed. */
static int retry(struct cn_queue *queue, const struct cn_queue_policy *policy,
                 const struct leased *message, int64_t delay_s, struct cn_queue_call **dead,
                 struct cn_err *err)
{
    if (message->retries < policy->max_retries) {
        int64_t delay = delay_s < 0 ? policy->retry_delay_s : delay_s;
        return put_back(queue, message, delay * 1000, true, err);
    }
    if (policy->dead_letters)
        return add_dead_letter(queue, dead, policy->dead_letters, message, err);
    return drop(queue, message, err);
}

/* Removes rows that are settled, if it is worth the while. */
static int remove_done(struct cn_queue *queue, struct cn_err *err)
{
    if (queue->ready && queue->done_rows < CN_QUEUE_DONE_ROWS_MAX &&
        queue->done_bytes < DONE_BYTES_MAX)
        return 0;
    queue->done_rows = queue->done_bytes = 0;
    return CN_QUEUE_RUN(queue, CN_QUEUE_SQL_DELETE_DONE, err, queue->done);
}

/* All of a lease acknowledged: rows read together lie together, so they go together. Leases are
 * given, and listed, in the order of rows: before the first one, and without transfers, nothing
 * lives. */
static int ack_all(struct cn_queue *queue, struct lease *lease, struct cn_err *err)
{
    int64_t first = lease->messages[0].row, last = lease->messages[lease->count - 1].row;
    bool in_order = queue->leases.next == &lease->link && cn_list_empty(&queue->transfers);
    CN_ASSERT(first > queue->done && last <= queue->cursor);
    int rc = in_order ? 0 : CN_QUEUE_RUN(queue, CN_QUEUE_SQL_DELETE_RUN, err, first, last);
    for (size_t i = 0; i < lease->count && rc == 0; i++) {
        count_out(queue, &lease->messages[i]);
        if (in_order)
            queue->done_bytes += lease->messages[i].size;
    }
    if (rc < 0 || !in_order)
        return rc;
    queue->done = last;
    queue->done_rows += (int64_t)lease->count;
    return remove_done(queue, err);
}

/* Ends a lease; `verdicts` NULL: every message is retried (or, with `release`, just put back). */
static int settle(struct cn_queue *queue, struct lease *lease, const struct cn_queue_policy *policy,
                  const struct cn_queue_verdict *verdicts, bool release, struct cn_err *err)
{
    struct cn_queue_call *dead = NULL;
    int rc = 0;
    for (size_t i = 0; i < lease->count && rc == 0; i++) {
        const struct leased *message = &lease->messages[i];
        if (!message->row)
            continue;
        if (release) {
            rc = put_back(queue, message, 0, false, err);
        } else if (!verdicts || verdicts[i].retry) {
            rc = retry(queue, policy, message, verdicts ? verdicts[i].delay_s : -1, &dead, err);
        } else {
            rc = CN_QUEUE_RUN(queue, CN_QUEUE_SQL_DELETE, err, message->row);
            count_out(queue, message);
        }
    }
    free_lease(lease);
    return end_dead_letters(queue, dead, rc);
}

static bool all_are_acknowledged(const struct cn_queue_call *call)
{
    for (size_t i = 0; i < call->verdict_count; i++)
        if (call->verdicts[i].retry)
            return false;
    return true;
}

static int op_settle(struct cn_queue *queue, struct cn_queue_call *call, struct cn_err *err)
{
    struct lease *lease = find_lease(queue, call->lease);
    if (!lease) { /* it had lasted too long, or the queue was loaded anew: Q2 */
        call->unknown = true;
        return 0;
    }
    if (call->release)
        return settle(queue, lease, &call->policy, NULL, true, err);
    if (!call->verdicts) { /* Q4: whoever has them says them by the messages then */
        call->unknown = true;
        return 0;
    }
    if (call->verdict_count != lease->count)
        return cn_err_set(err, CN_EINVALID, "%zu verdicts for %zu messages", call->verdict_count,
                          lease->count);
    if (lease->left == lease->count && all_are_acknowledged(call)) {
        int rc = ack_all(queue, lease, err);
        free_lease(lease);
        return rc;
    }
    return settle(queue, lease, &call->policy, call->verdicts, false, err);
}

/* The message of a delivery that is still out, or NULL. */
static struct leased *find_leased(struct cn_queue *queue, int64_t row, uint32_t attempts,
                                  struct lease **found)
{
    CN_LIST_FOREACH(&queue->leases, node)
    {
        struct lease *lease = CN_CONTAINER_OF(node, struct lease, link);
        for (size_t i = 0; i < lease->count; i++) {
            if (lease->messages[i].row == row && lease->messages[i].retries + 1 == attempts) {
                *found = lease;
                return &lease->messages[i];
            }
        }
    }
    return NULL;
}

/* A verdict on a message that is not out: if it was before a restart, it waits behind the cursor
 * with the same row and attempts (Q2 of queue.h). There it is where a retry would put it. */
static int settle_unread(struct cn_queue *queue, struct cn_queue_verdict *verdict,
                         struct cn_err *err)
{
    struct cn_statement *statement;
    if (verdict->row <= queue->cursor || verdict->row > queue->found)
        return 0; /* settled, on its way to the dead letters, or never given out */
    int rc = CN_QUEUE_PREPARE(queue, CN_QUEUE_SQL_GET, &statement, err, verdict->row);
    if (rc == 0)
        rc = cn_statement_step(statement, err);
    if (rc <= 0)
        return rc;
    struct leased message = {.row = verdict->row,
                             .retries = (uint32_t)cn_statement_column_int(statement, 2)};
    size_t size;
    (void)cn_statement_column_blob(statement, 4, &size);
    message.size = (uint32_t)size;
    cn_statement_reset(statement);
    verdict->good = message.retries + 1 == verdict->attempts;
    if (!verdict->good || verdict->retry)
        return 0;
    rc = CN_QUEUE_RUN(queue, CN_QUEUE_SQL_DELETE, err, message.row);
    if (rc < 0)
        return rc;
    count_out(queue, &message);
    queue->unread--;
    return 0;
}

static int op_ack(struct cn_queue *queue, struct cn_queue_call *call, struct cn_err *err)
{
    struct cn_queue_call *dead = NULL;
    int rc = 0;
    for (size_t i = 0; i < call->verdict_count && rc == 0; i++) {
        struct cn_queue_verdict *verdict = &call->verdicts[i];
        struct lease *lease;
        struct leased *message = find_leased(queue, verdict->row, verdict->attempts, &lease);
        if (!message) {
            rc = settle_unread(queue, verdict, err);
            call->settled += verdict->good;
            continue;
        }
        verdict->good = true;
        call->settled++;
        if (verdict->retry) {
            rc = retry(queue, &lease->policy, message, verdict->delay_s, &dead, err);
        } else {
            rc = CN_QUEUE_RUN(queue, CN_QUEUE_SQL_DELETE, err, message->row);
            count_out(queue, message);
        }
        message->row = 0;
        if (--lease->left == 0)
            free_lease(lease);
    }
    return end_dead_letters(queue, dead, rc);
}

/* --- receiving ------------------------------------------------------------------------------- */

/* Makes what is due ready; at most so many that the turn stays short. */
static int promote(struct cn_queue *queue, int64_t now, struct cn_err *err)
{
    for (int i = 0; i < STEP_ROWS_MAX && queue->delayed; i++) {
        int64_t id;
        int rc = cn_queue_read_int(queue, CN_QUEUE_SQL_DUE, 1, &now, 0, &id, err);
        if (rc < 0 || !id)
            return rc;
        int64_t row = ++queue->last;
        rc = CN_QUEUE_RUN(queue, CN_QUEUE_SQL_TO_READY, err, id, row);
        if (rc == 0)
            rc = CN_QUEUE_RUN(queue, CN_QUEUE_SQL_DELETE_DELAYED, err, id);
        if (rc < 0)
            return rc;
        queue->delayed--;
        more_ready(queue);
    }
    return 0;
}

/* Leases whose time is over: their messages count as not delivered. */
static int end_leases(struct cn_queue *queue, int64_t now, struct cn_err *err)
{
    CN_LIST_FOREACH(&queue->leases, node)
    {
        struct lease *lease = CN_CONTAINER_OF(node, struct lease, link);
        if (lease->until_ms > now)
            continue;
        struct cn_queue_policy policy = lease->policy;
        int rc = settle(queue, lease, &policy, NULL, false, err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* Reads the messages behind the cursor into the call and makes a lease of them. What has expired
 * is removed on the way. */
static int take(struct cn_queue *queue, struct cn_queue_call *call, int64_t now, struct cn_err *err)
{
    struct cn_statement *statement;
    int rc = CN_QUEUE_PREPARE(queue, CN_QUEUE_SQL_READ, &statement, err, queue->cursor);
    if (rc < 0)
        return rc;
    if (!call->messages) /* else all that it was given before had expired */
        call->messages = cn_alloc_zero(call->count_max * sizeof(*call->messages));
    struct leased *leased = cn_alloc(call->count_max * sizeof(*leased));
    int64_t expired_first = 0, expired_last = 0;
    unsigned expired = 0;
    int64_t expired_bytes = 0;
    while (call->count < call->count_max && (rc = cn_statement_step(statement, err)) > 0) {
        struct cn_queue_message *message = &call->messages[call->count];
        const void *body = cn_statement_column_blob(statement, 5, &message->size);
        message->row = cn_statement_column_int(statement, 0);
        message->sent_ms = cn_statement_column_int(statement, 1);
        if (message->sent_ms + queue->retention_s * 1000 <= now && !call->count &&
            expired < STEP_ROWS_MAX) {
            expired_first = expired ? expired_first : message->row;
            expired_last = message->row;
            expired_bytes += (int64_t)message->size;
            expired++;
            continue;
        }
        if (call->count && call->bodies.size + message->size > CN_QUEUE_BATCH_SIZE_MAX)
            break;
        message->type = (enum cn_queue_type)cn_statement_column_int(statement, 2);
        uint32_t retries = (uint32_t)cn_statement_column_int(statement, 3);
        message->attempts = retries + 1;
        cn_queue_public_id(queue->object->ns, cn_statement_column_int(statement, 4), message->id);
        message->offset = call->bodies.size;
        cn_buf_append(&call->bodies, body, message->size);
        leased[call->count++] = (struct leased){message->row, retries, (uint32_t)message->size};
    }
    cn_statement_reset(statement);
    if (expired && rc >= 0) {
        rc = CN_QUEUE_RUN(queue, CN_QUEUE_SQL_DELETE_RUN, err, expired_first, expired_last);
        queue->ready -= expired;
        queue->unread -= expired;
        queue->bytes -= expired_bytes;
        queue->cursor = expired_last;
        queue->changed = true;
    }
    if (rc == 0 && !call->count && !expired)
        rc = cn_err_set(err, CN_ECORRUPT, "the queue has lost count of its messages");
    if (rc < 0 || !call->count) {
        cn_free(leased);
        return rc < 0 ? rc : 0;
    }
    queue->cursor = call->messages[call->count - 1].row;
    queue->unread -= call->count;
    queue->since_ms = now;
    struct lease *lease = CN_NEW(struct lease);
    *lease = (struct lease){.number = ++queue->last_lease,
                            .until_ms = now + call->lease_ms,
                            .policy = call->policy,
                            .count = call->count,
                            .left = call->count,
                            .messages = leased};
    cn_list_push_back(&queue->leases, &lease->link);
    call->lease = lease->number;
    return 0;
}

/* Answers those who wait, as far as there are messages for them. */
static int serve(struct cn_queue *queue, int64_t now, struct cn_err *err)
{
    while (!cn_list_empty(&queue->waiting) && queue->unread) {
        struct cn_queue_call *call =
            CN_CONTAINER_OF(queue->waiting.next, struct cn_queue_call, link);
        if (queue->paused && !call->paused_too)
            return 0;
        if (queue->unread < call->count_max && now < queue->since_ms + call->timeout_ms)
            return 0;
        int rc = take(queue, call, now, err);
        if (rc == 0)
            rc = cn_queue_read_metrics(queue, &call->metrics, err);
        if (rc < 0)
            return rc;
        if (!call->count)
            continue; /* all of them had expired */
        cn_list_remove(&call->link);
        cn_call_reply(&call->base.call, NULL);
    }
    return 0;
}

static void on_timer(uv_timer_t *timer);

static void stop_timer(struct cn_queue *queue)
{
    uv_timer_stop(queue->timer);
    if (!queue->holding)
        return;
    queue->holding = false;
    if (queue->object->holds) /* a lane that stops has dropped them all */
        cn_object_unhold(queue->object);
}

/* Sets the timer to whatever comes next: a delay, a lease, a batch that has waited enough. */
static int arm(struct cn_queue *queue, int64_t now, struct cn_err *err)
{
    int64_t next = INT64_MAX;
    if (!cn_list_empty(&queue->waiting) && queue->unread && !queue->paused) {
        struct cn_queue_call *call =
            CN_CONTAINER_OF(queue->waiting.next, struct cn_queue_call, link);
        next = queue->since_ms + call->timeout_ms;
    }
    CN_LIST_FOREACH(&queue->leases, node)
    {
        struct lease *lease = CN_CONTAINER_OF(node, struct lease, link);
        next = lease->until_ms < next ? lease->until_ms : next;
    }
    if (queue->delayed && !cn_list_empty(&queue->waiting)) {
        int64_t due;
        int rc = cn_queue_read_int(queue, CN_QUEUE_SQL_FIRST_DUE, 0, NULL, INT64_MAX, &due, err);
        if (rc < 0)
            return rc;
        next = due < next ? due : next;
    }
    if (next == INT64_MAX) {
        stop_timer(queue);
        return 0;
    }
    uint64_t wait = next > now ? (uint64_t)(next - now) : 0;
    /* The clock of the machine may be set: look again after a minute at the latest. */
    uv_timer_start(queue->timer, on_timer, wait < 60000 ? wait : 60000, 0);
    if (!queue->holding)
        cn_object_hold(queue->object);
    queue->holding = true;
    return 0;
}

/* Inside a turn: does all that can be done now. A failure resets the object. */
static void pump(struct cn_queue *queue)
{
    struct cn_err err;
    int64_t now = cn_queue_now(queue);
    int rc = end_leases(queue, now, &err);
    if (rc == 0)
        rc = promote(queue, now, &err);
    if (rc == 0)
        rc = serve(queue, now, &err);
    if (rc == 0)
        rc = cn_queue_save(queue, &err);
    if (rc == 0)
        rc = arm(queue, now, &err);
    if (rc < 0)
        cn_object_reset(queue->object, CN_FAULT_RESET, rc, "%s", err.text);
}

static void on_timer(uv_timer_t *timer)
{
    struct cn_queue *queue = timer->data;
    struct cn_object *object = queue->object;
    cn_object_enter(object);
    pump(queue);
    cn_object_leave(object);
}

/* --- other requests -------------------------------------------------------------------------- */

/* Q1: their rows go, or the queue leaves memory. */
static void forget_out(struct cn_queue *queue)
{
    CN_LIST_FOREACH(&queue->leases, node)
    free_lease(CN_CONTAINER_OF(node, struct lease, link));
    CN_LIST_FOREACH(&queue->transfers, node)
    CN_CONTAINER_OF(node, struct transfer, link)->count = 0; /* it is still answered */
}

/* Everything goes but the settings; what is out is not known any more when it is settled. */
static int op_purge(struct cn_queue *queue, struct cn_err *err)
{
    struct cn_database *db = cn_object_database(queue->object, err);
    if (!db)
        return err->code;
    cn_service_sql_release(&queue->sql);
    int rc = cn_database_delete_all(db, false, err);
    if (rc == 0)
        rc = cn_queue_tables(db, err);
    forget_out(queue);
    queue->ready = queue->delayed = queue->bytes = 0;
    queue->unread = 0;
    queue->cursor = queue->done = queue->last;
    queue->done_rows = queue->done_bytes = 0;
    queue->changed = true;
    return rc;
}

static int op_configure(struct cn_queue *queue, const struct cn_queue_call *call)
{
    if (call->paused >= 0)
        queue->paused = call->paused != 0;
    if (call->retention_s >= 0)
        queue->retention_s = call->retention_s;
    queue->changed = true;
    return 0;
}

/* Expired messages at the head go. Those further back were sent later, or have been retried, and
 * are looked at when they come to the front. */
static int expire(struct cn_queue *queue, struct cn_err *err)
{
    int64_t now = cn_queue_now(queue), first = 0;
    struct cn_statement *statement;
    int rc = CN_QUEUE_PREPARE(queue, CN_QUEUE_SQL_READ, &statement, err, queue->cursor);
    int64_t last = 0, next_ms = 0;
    unsigned count = 0;
    while (rc == 0 && (rc = cn_statement_step(statement, err)) > 0) {
        int64_t sent = cn_statement_column_int(statement, 1);
        if (sent + queue->retention_s * 1000 > now || count == STEP_ROWS_MAX) {
            next_ms = count == STEP_ROWS_MAX ? now : sent + queue->retention_s * 1000;
            rc = 0;
            break;
        }
        size_t size;
        cn_statement_column_blob(statement, 5, &size);
        last = cn_statement_column_int(statement, 0);
        first = first ? first : last;
        queue->bytes -= (int64_t)size;
        count++;
        rc = 0;
    }
    if (rc >= 0)
        cn_statement_reset(statement);
    if (rc == 0 && count) {
        rc = CN_QUEUE_RUN(queue, CN_QUEUE_SQL_DELETE_RUN, err, first, last);
        queue->ready -= count;
        queue->unread -= count;
        queue->changed = true;
        cn_info("queue %s: %u messages have expired", queue->object->ns->name, count);
    }
    if (rc == 0 && (queue->ready || queue->delayed)) {
        if (!next_ms)
            next_ms = now + 60000;
        rc = cn_object_alarm_set(queue->object, next_ms, err);
    }
    return rc;
}

/* --- the class ------------------------------------------------------------------------------- */

static int queue_create(struct cn_object *object, void *class_data, void **instance,
                        struct cn_err *err)
{
    (void)class_data;
    struct cn_database *db = cn_object_database(object, err);
    if (!db || cn_queue_tables(db, err) < 0)
        return err->code;
    struct cn_queue *queue = CN_NEW(struct cn_queue);
    queue->object = object;
    cn_list_init(&queue->waiting);
    cn_list_init(&queue->leases);
    cn_list_init(&queue->transfers);
    cn_service_sql_init(&queue->sql, cn_queue_sql_texts, CN_QUEUE_SQL_COUNT);
    queue->timer = CN_NEW(uv_timer_t);
    uv_timer_init(object->lane->loop, queue->timer);
    queue->timer->data = queue;
    *instance = queue;
    int rc = cn_queue_load(queue, err);
    queue->since_ms = cn_queue_now(queue);
    cn_rand_secure(&queue->last_lease, sizeof(queue->last_lease));
    queue->last_lease >>= 1; /* Q2 of queue.h */
    return rc;
}

static void call_taken_back(struct cn_call *call)
{
    cn_list_remove(&CN_CONTAINER_OF(call, struct cn_queue_call, base.call)->link);
}

static int receive(struct cn_queue *queue, struct cn_queue_call *call)
{
    if (!call->waits) {
        call->timeout_ms = 0;
        if ((queue->paused && !call->paused_too) || !queue->unread)
            return 1;
    }
    if (call->waits)
        cn_list_push_back(&queue->waiting, &call->link);
    else
        cn_list_push_front(&queue->waiting, &call->link);
    call->base.call.taken_back = call_taken_back;
    return 0;
}

/* Whoever does not want to wait stands at the front: nothing was there for them, all had expired.
 */
static void answer_empty(struct cn_queue *queue)
{
    while (!cn_list_empty(&queue->waiting)) {
        struct cn_queue_call *call =
            CN_CONTAINER_OF(queue->waiting.next, struct cn_queue_call, link);
        if (call->waits)
            return;
        cn_list_remove(&call->link);
        cn_call_reply(&call->base.call, NULL);
    }
}

/* Answers the call unless it waits. */
static void deliver_request(struct cn_queue *queue, struct cn_queue_call *call)
{
    struct cn_err err;
    int rc = 0;
    bool answer = true;
    switch ((enum cn_queue_op)call->base.call.op) {
    case CN_QUEUE_SEND:
        rc = op_send(queue, call, &err);
        break;
    case CN_QUEUE_RECEIVE:
        pump(queue); /* what is due now counts */
        if (cn_object_is_broken(queue->object))
            return;
        answer = receive(queue, call) == 1;
        break;
    case CN_QUEUE_SETTLE:
        rc = op_settle(queue, call, &err);
        break;
    case CN_QUEUE_ACK:
        rc = op_ack(queue, call, &err);
        break;
    case CN_QUEUE_METRICS:
        break;
    case CN_QUEUE_PURGE:
        rc = op_purge(queue, &err);
        break;
    case CN_QUEUE_CONFIGURE:
        rc = op_configure(queue, call);
        break;
    }
    if (rc == 0 && answer)
        rc = cn_queue_read_metrics(queue, &call->metrics, &err);
    if (rc < 0) {
        /* Memory must not be ahead of the disk. */
        cn_object_reset(queue->object, CN_FAULT_RESET, rc, "%s", err.text);
        return;
    }
    if (answer)
        cn_call_reply(&call->base.call, NULL);
    bool waits = !answer && call->waits;
    pump(queue);
    if (!answer && !waits)
        answer_empty(queue);
}

static void queue_deliver(struct cn_object *object, void *instance, struct cn_call *call)
{
    struct cn_queue *queue = instance;
    if (call->kind == CN_CALL_ALARM) {
        struct cn_err err;
        cn_alarm_begin(object, call->payload);
        int rc = expire(queue, &err);
        if (rc == 0)
            rc = cn_queue_save(queue, &err);
        if (rc < 0) {
            cn_object_reset(object, CN_FAULT_RESET, rc, "%s", err.text);
            return;
        }
        cn_alarm_succeeded(object);
        cn_call_reply(call, NULL);
        return;
    }
    deliver_request(queue, CN_CONTAINER_OF(cn_service_request(call), struct cn_queue_call, base));
}

static void queue_release(struct cn_object *object, void *instance)
{
    (void)object;
    struct cn_queue *queue = instance;
    cn_service_sql_release(&queue->sql);
    stop_timer(queue); /* so that a broken object can go */
}

/* Receivers that wait ask wherever the queue is next. */
static void queue_stopping(struct cn_object *object, void *instance)
{
    (void)object;
    struct cn_queue *queue = instance;
    struct cn_list *node;
    while ((node = cn_list_take_front(&queue->waiting))) {
        struct cn_queue_call *call = CN_CONTAINER_OF(node, struct cn_queue_call, link);
        cn_call_fail(&call->base.call, CN_FAULT_RETRYABLE, CN_ECLOSED, "%s", CN_SHARD_AWAY);
    }
}

static void on_timer_closed(uv_handle_t *handle)
{
    cn_free(handle);
}

static void queue_destroy(struct cn_object *object, void *instance)
{
    (void)object;
    struct cn_queue *queue = instance;
    CN_ASSERT(cn_list_empty(&queue->waiting));
    forget_out(queue);
    struct cn_list *node;
    while ((node = cn_list_take_front(&queue->transfers)))
        CN_CONTAINER_OF(node, struct transfer, link)->queue = NULL;
    cn_service_sql_fini(&queue->sql);
    uv_close((uv_handle_t *)queue->timer, on_timer_closed);
    cn_free(queue);
}

const struct cn_class cn_queue_class = {
    .create = queue_create,
    .deliver = queue_deliver,
    .release = queue_release,
    .destroy = queue_destroy,
    .stopping = queue_stopping,
};

static_assert(CN_QUEUE_CONFIGURE < CN_OBJECT_OPS, "each operation has a counter");

/* --- the descriptor -------------------------------------------------------------------------- */

const struct cn_service_def cn_service_queue = {
    .name = "queue",
    .title = "Queues",
    .about = "messages that wait until a worker takes them",
    .page = "reference/queues.md",
    .class_ = &cn_queue_class,
    .operations = {"send", "receive", "settle", "ack", "metrics", "purge", "configure"},
    .wire = &cn_queue_wire,
    .config = &cn_queue_config,
    .natives = &cn_queue_natives,
    .face = &cn_queue_face,
    .routes = &cn_queue_routes,
    .command = &cn_queue_command,
    .metrics = cn_queue_metrics,
};
