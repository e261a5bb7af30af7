/* SPDX-License-Identifier: Apache-2.0 */
/* object/object.c - turns, gates and the life of an object. See object.h. */
#include "object/object.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/diag.h"
#include "base/loop.h"
#include "base/mem.h"
#include "object/alarm.h"
#include "object/internal.h"
#include "object/node.h"
#include "object/restore.h"
#include "object/socket.h"
#include "store/database.h"
#include "store/pool.h"
#include "store/store.h"

#define TO(state) (1u << (state))
#define ENDS (TO(CN_OBJECT_BROKEN) | TO(CN_OBJECT_GONE))
static const unsigned moves[CN_OBJECT_STATES] = {
    [CN_OBJECT_NEW] = TO(CN_OBJECT_RESTORING) | TO(CN_OBJECT_SUSPENDED) | ENDS,
    [CN_OBJECT_RESTORING] = TO(CN_OBJECT_NEW) | TO(CN_OBJECT_STARTING) | ENDS,
    [CN_OBJECT_STARTING] = TO(CN_OBJECT_RUNNING) | ENDS,
    [CN_OBJECT_RUNNING] = ENDS,
    [CN_OBJECT_SUSPENDED] = TO(CN_OBJECT_NEW) | ENDS,
    [CN_OBJECT_BROKEN] = TO(CN_OBJECT_GONE),
};

static void set_state(struct cn_object *object, enum cn_object_state state)
{
    CN_ASSERT(moves[object->state] & TO(state));
    object->state = state;
}

struct cn_database *cn_object_database(struct cn_object *object, struct cn_err *err)
{
    if (object->db)
        return object->db;
    if (cn_object_is_broken(object)) {
        cn_err_set(err, CN_ECLOSED, "the object was reset");
        return NULL;
    }
    if (object->state == CN_OBJECT_RESTORING || object->state == CN_OBJECT_SUSPENDED) { /* O7 */
        cn_err_set(err, CN_ELOCKED, "another has the object's database");
        return NULL;
    }
    struct cn_database_options options = {0};
    if (object->class_ && object->class_->limits)
        options.limits = *object->class_->limits;
    if (!object->class_ || !object->class_->threads)
        options.pool = object->shard->databases;
    if (!cn_lane_shard_knows(object->shard, object->ns)) { /* O9: it has not started */
        cn_err_set(err, CN_EOVERLOADED, "the class is used here for the first time; try again");
        return NULL;
    }
    if (cn_database_open(object->shard->store, &object->key, &options, &object->db, err) < 0)
        return NULL;
    struct cn_database_meta meta;
    cn_database_meta(object->db, &meta);
    if (meta.has_name && !object->name) {
        object->name_size = strlen(meta.name);
        object->name = cn_strndup(meta.name, object->name_size);
    }
    object->lsn = object->last_lsn = cn_database_lsn(object->db);
    return object->db;
}

/* Records the name with the first commit, so that alarms and listings know it (DO-ID-2). */
static int keep_name(struct cn_object *object, struct cn_err *err)
{
    if (!object->name || object->name_size > CN_OBJECT_NAME_MAX)
        return 0;
    struct cn_database_meta meta;
    cn_database_meta(object->db, &meta);
    if (meta.has_name)
        return 0;
    return cn_database_set_name(object->db, object->name, object->name_size, err);
}

/* O3: all writes of the turn, or since the last cn_object_commit() of it, become one commit. If
 * SQLite has rolled them back by itself it fails, though the code may have caught the error. */
static void commit(struct cn_object *object)
{
    if (!object->db || object->transactions || !cn_database_in_transaction(object->db))
        return;
    struct cn_err err;
    uint64_t lsn;
    int rc = keep_name(object, &err);
    if (rc == 0)
        rc = cn_database_commit(object->db, &lsn, &err);
    else
        cn_database_rollback(object->db);
    if (rc < 0) {
        cn_object_reset(object, CN_FAULT_RESET, rc, "the writes could not be committed: %s",
                        err.text);
        return;
    }
    if (!object->unconfirmed || object->alarm_changed)
        object->lsn = lsn;
    object->last_lsn = lsn;
    object->unconfirmed = false;
    cn_alarm_committed(object);
    if (cn_store_pressure(object->shard->store) != CN_LOG_ROOMY)
        cn_object_press(object); /* O8 */
}

int cn_object_commit(struct cn_object *object, struct cn_err *err)
{
    cn_loop_assert_owner(object->lane->loop);
    CN_ASSERT(cn_object_in_turn(object));
    if (!cn_object_is_broken(object))
        commit(object);
    if (!cn_object_is_broken(object))
        return 0;
    *err = *object->broken;
    return err->code;
}

/* G1, O5. */
static void address_output(const struct cn_object *object, struct cn_output *output)
{
    output->shard = object->shard;
    output->lsn = output->all ? object->last_lsn : object->lsn;
    output->stray = object->lane->stray_last;
    output->ticket = object->shard->store ? cn_store_ticket(object->shard->store) : 0;
}

/* --- turns ----------------------------------------------------------------------------------- */

void cn_turn_begin(struct cn_object_lane *lane)
{
    cn_loop_assert_owner(lane->loop);
    lane->turn_depth++;
}

/* What has run since the last change of focus was for `current`. */
static void count_ticks(struct cn_object_lane *lane)
{
    if (lane->current && lane->current->ns)
        cn_counter_add(&cn_object_metrics(lane->current)->ticks,
                       cn_clock_ticks() - lane->turn_ticks);
}

void cn_turn_focus(struct cn_object_lane *lane, struct cn_object *object)
{
    CN_ASSERT(lane->turn_depth && (!object || cn_object_in_turn(object)));
    if (lane->current == object)
        return;
    count_ticks(lane);
    lane->current = object;
    if (object)
        lane->turn_ticks = cn_clock_ticks();
}

bool cn_object_in_turn(const struct cn_object *object)
{
    return !cn_list_empty(&object->turn_link);
}

void cn_object_join(struct cn_object *object)
{
    CN_ASSERT(object->lane->turn_depth);
    if (!cn_object_in_turn(object))
        cn_list_push_back(&object->lane->turn, &object->turn_link);
}

void cn_object_enter(struct cn_object *object)
{
    cn_turn_begin(object->lane);
    cn_object_join(object);
    cn_turn_focus(object->lane, object);
}

void cn_object_leave(struct cn_object *object)
{
    cn_turn_end(object->lane);
}

/* The outputs of an object whose commit has been made wait for the gate from now on. */
static void give_outputs(struct cn_object_lane *lane, struct cn_object *object)
{
    struct cn_list *node;
    while ((node = cn_list_take_front(&object->outputs))) {
        struct cn_output *output = CN_CONTAINER_OF(node, struct cn_output, link);
        address_output(object, output);
        cn_list_push_back(&lane->held, &output->link);
    }
}

static void fail_outputs(struct cn_object *object, const struct cn_err *err)
{
    struct cn_list *node;
    while ((node = cn_list_take_front(&object->outputs))) {
        struct cn_output *output = CN_CONTAINER_OF(node, struct cn_output, link);
        output->send(output, err);
    }
}

/* Commits first, of all, then outputs: one may rest on another object's write. Only when no object
 * is in the turn any more is anything sent, for that may begin another turn. */
static void finish_turn(struct cn_object_lane *lane)
{
    struct cn_list done, broken, *node;
    cn_list_init(&done);
    cn_list_init(&broken);
    const struct cn_err *lost = NULL;
    lane->stray_last += lane->strayed;
    while ((node = cn_list_take_front(&lane->turn))) {
        struct cn_object *object = CN_CONTAINER_OF(node, struct cn_object, turn_link);
        cn_list_push_back(&done, node);
        if (!cn_object_is_broken(object))
            commit(object);
        if (!lane->strayed)
            continue;
        cn_object_lane_note_stray(lane, object); /* O5 */
        if (cn_object_is_broken(object))
            lost = object->broken;
    }
    lane->strayed = false;
    count_ticks(lane);
    lane->current = NULL;
    lane->turn_depth = 0;
    while ((node = cn_list_take_front(&done))) {
        struct cn_object *object = CN_CONTAINER_OF(node, struct cn_object, turn_link);
        object->outbox = NULL; /* complete: it is among the outputs */
        if (cn_object_is_broken(object) || (lost && object == lane->nobody)) {
            cn_list_push_back(&broken, node);
            continue;
        }
        give_outputs(lane, object);
        if (object->db)
            cn_database_rest(object->db);
        cn_object_rest(object);
    }
    while ((node = cn_list_take_front(&broken))) {
        struct cn_object *object = CN_CONTAINER_OF(node, struct cn_object, turn_link);
        fail_outputs(object, object == lane->nobody ? lost : object->broken);
        cn_object_rest(object);
    }
    (void)cn_object_lane_release(lane, UINT32_MAX);
}

void cn_turn_end(struct cn_object_lane *lane)
{
    cn_loop_assert_owner(lane->loop);
    CN_ASSERT(lane->turn_depth);
    if (lane->turn_depth > 1)
        lane->turn_depth--;
    else if (cn_list_empty(&lane->turn))
        lane->turn_depth = 0;
    else
        finish_turn(lane);
}

void cn_object_touch(struct cn_object *object)
{
    cn_loop_assert_owner(object->lane->loop);
    struct cn_object_lane *lane = object->lane;
    if (lane->current == object)
        return;
    cn_object_join(object);
    lane->nobody->shard = object->shard;
    lane->strayed = true;
}

void cn_object_output(struct cn_object *object, struct cn_output *output,
                      void (*send)(struct cn_output *output, const struct cn_err *err))
{
    output->send = send;
    if (cn_object_in_turn(object)) {
        cn_list_push_back(&object->outputs, &output->link);
        return;
    }
    if (object->cut) { /* S6 of shard.h */
        static const struct cn_err away = {CN_ECLOSED, CN_SHARD_CUT};
        output->send(output, &away);
        return;
    }
    address_output(object, output);
    cn_object_lane_hold(object->lane, output);
}

void cn_object_sync(struct cn_object *object, struct cn_output *output,
                    void (*send)(struct cn_output *output, const struct cn_err *err))
{
    cn_loop_assert_owner(object->lane->loop);
    output->all = true;
    cn_object_output(object, output, send);
}

/* --- delivery -------------------------------------------------------------------------------- */

static void start(struct cn_object *object)
{
    const struct cn_class *class_;
    void *class_data;
    struct cn_object_lane *lane = object->lane;
    struct cn_err err;
    if (!cn_node_class(lane, object->ns, &object->key, &class_, &class_data)) {
        cn_object_reset(object, CN_FAULT_RETRYABLE, CN_ENOTFOUND,
                        "no worker provides the class of namespace %s", object->ns->name);
        return;
    }
    set_state(object, CN_OBJECT_STARTING);
    object->class_ = class_;
    cn_counter_add(&cn_object_metrics(object)->started, 1);
    cn_counter_add(&cn_object_metrics(object)->live, 1);
    cn_object_lock(object);
    cn_object_enter(object);
    int rc = class_->create(object, class_data, &object->instance, &err);
    if (rc < 0)
        cn_object_started(object, &err);
    else if (rc == 0)
        cn_object_started(object, NULL);
    cn_object_leave(object);
}

/* Alarms on their way were those of the state that is no more. */
static void drop_alarm_calls(struct cn_object *object)
{
    CN_LIST_FOREACH(&object->inbox, node)
    {
        struct cn_call *call = CN_CONTAINER_OF(node, struct cn_call, envelope.link);
        if (call->kind != CN_CALL_ALARM)
            continue;
        cn_list_remove(&call->envelope.link);
        object->inbox_count--;
        object->inbox_bytes -= call->size;
        cn_call_turn_away(call, CN_FAULT_RETRYABLE, CN_ECLOSED, "the object was restored");
    }
}

void cn_object_restored(struct cn_object *object, const struct cn_err *err)
{
    if (object->state == CN_OBJECT_RESTORING) {
        if (err)
            cn_object_reset(object, CN_FAULT_RETRYABLE, err->code,
                            "the object could not be restored: %s", err->text);
        else
            drop_alarm_calls(object);
        if (!err && object->inbox_count)
            start(object);
        else if (!err)
            set_state(object, CN_OBJECT_NEW);
        cn_object_deliver_all(object);
    }
    cn_object_unhold(object);
}

void cn_object_started(struct cn_object *object, const struct cn_err *err)
{
    cn_loop_assert_owner(object->lane->loop);
    if (object->state != CN_OBJECT_STARTING)
        return; /* reset meanwhile */
    if (err) {
        cn_object_reset(object, err->code == CN_EOVERLOADED ? CN_FAULT_OVERLOADED : CN_FAULT_REMOTE,
                        err->code, "%s", err->text);
        return;
    }
    set_state(object, CN_OBJECT_RUNNING);
    cn_object_unlock(object);
}

static bool is_running(const struct cn_object *object, const struct cn_call *call)
{
    CN_LIST_FOREACH(&object->running, node)
    {
        if (node == &call->envelope.link)
            return true;
    }
    return false;
}

/* A turn for the call, which is in no list. */
static void deliver(struct cn_object *object, struct cn_call *call)
{
    bool closes = call->kind == CN_CALL_SOCKET && cn_object_socket_closes(call->payload);
    object->running_count++;
    cn_list_push_back(&object->running, &call->envelope.link);
    cn_object_enter(object);
    if (call->kind == CN_CALL_ACCESS)
        cn_access_deliver(object, call);
    else
        object->class_->deliver(object, object->instance, call);
    if (closes && is_running(object, call)) /* else it was answered, and may be gone */
        cn_object_socket_told(call->payload);
    cn_object_leave(object);
}

void cn_object_deliver_all(struct cn_object *object)
{
    if (object->busy)
        return;
    object->busy = true;
    for (;;) {
        if (cn_object_press_tell(object))
            continue;
        if (object->kicked && cn_list_empty(&object->press_link) && object->instance &&
            (object->state == CN_OBJECT_RUNNING || object->state == CN_OBJECT_STARTING)) {
            object->kicked = false;
            cn_object_enter(object);
            object->class_->resume(object, object->instance);
            cn_object_leave(object);
            continue;
        }
        if (object->state != CN_OBJECT_RUNNING || object->gate_locks || !object->inbox_count)
            break;
        if (cn_store_pressure(object->shard->store) == CN_LOG_CROWDED) {
            cn_object_press(object); /* O8 */
            break;
        }
        struct cn_list *node = cn_list_take_front(&object->inbox);
        if (!node)
            break;
        struct cn_call *call = CN_CONTAINER_OF(node, struct cn_call, envelope.link);
        object->inbox_count--;
        object->inbox_bytes -= call->size;
        deliver(object, call);
    }
    object->busy = false;
    cn_object_rest(object);
}

static void start_or_restore(struct cn_object *object)
{
    set_state(object, CN_OBJECT_RESTORING); /* before: it may be over at once */
    if (!cn_lane_shard_knows(object->shard, object->ns)) {
        object->learning = true;
        cn_lane_shard_learn(object->shard, object->ns);
    } else if (!cn_restore_before_start(object)) {
        start(object);
    }
}

void cn_object_learnt(struct cn_object *object, const struct cn_err *err)
{
    object->learning = false;
    if (object->state != CN_OBJECT_RESTORING)
        return;
    if (err)
        cn_object_reset(object, CN_FAULT_RETRYABLE, err->code, "%s", err->text);
    else if (!cn_restore_before_start(object))
        start(object);
    cn_object_deliver_all(object);
}

/* Calls of what the object has lent do not wait for the input gate here: the class knows whether
 * the code that lent it is the one that keeps the gate closed, and waits for the answer. */
static bool passes_gate(const struct cn_object *object, const struct cn_call *call)
{
    return call->kind == CN_CALL_OTHER && object->class_ && object->class_->gates_lent &&
           object->instance && !object->busy &&
           (object->state == CN_OBJECT_RUNNING || object->state == CN_OBJECT_STARTING);
}

void cn_object_receive(struct cn_object *object, struct cn_call *call)
{
    call->object = object;
    call->arrived_ns = uv_hrtime();
    object->event_ms = uv_now(object->lane->loop);
    cn_list_remove(&object->idle_link);
    if (!object->ns)
        object->ns = call->ns; /* suspended before any worker had its class */
    if (!object->name && call->name) {
        object->name = call->name;
        object->name_size = call->name_size;
        call->name = NULL;
    }
    if (passes_gate(object, call)) {
        deliver(object, call);
        cn_object_rest(object);
        return;
    }
    cn_list_push_back(&object->inbox, &call->envelope.link);
    object->inbox_count++;
    object->inbox_bytes += call->size;
    if (object->state == CN_OBJECT_NEW)
        start_or_restore(object);
    cn_object_deliver_all(object);
}

void cn_object_suspend(struct cn_object *object)
{
    set_state(object, CN_OBJECT_SUSPENDED);
    cn_object_hold(object); /* V2 of access.h */
}

void cn_object_resume(struct cn_object *object)
{
    CN_ASSERT(object->state == CN_OBJECT_SUSPENDED && object->holds > 0);
    object->holds--;
    if (!object->inbox_count) {
        cn_object_retire(object);
        return;
    }
    set_state(object, CN_OBJECT_NEW);
    start_or_restore(object);
    cn_object_deliver_all(object);
}

/* --- gates and holds ------------------------------------------------------------------------- */

void cn_object_lock(struct cn_object *object)
{
    cn_loop_assert_owner(object->lane->loop);
    object->gate_locks++;
}

void cn_object_unlock(struct cn_object *object)
{
    cn_loop_assert_owner(object->lane->loop);
    CN_ASSERT(object->gate_locks > 0);
    if (--object->gate_locks == 0 && object->inbox_count)
        cn_object_lane_wake(object->lane, object);
}

void cn_object_kick(struct cn_object *object)
{
    cn_loop_assert_owner(object->lane->loop);
    object->kicked = true;
    cn_object_lane_wake(object->lane, object);
}

void cn_object_hold(struct cn_object *object)
{
    cn_loop_assert_owner(object->lane->loop);
    if (object->holds++ == 0 && !cn_object_is_broken(object))
        cn_list_remove(&object->idle_link);
}

void cn_object_unhold(struct cn_object *object)
{
    cn_loop_assert_owner(object->lane->loop);
    CN_ASSERT(object->holds > 0);
    if (--object->holds == 0)
        cn_object_rest(object);
}

void cn_object_wait(struct cn_object *object)
{
    cn_loop_assert_owner(object->lane->loop);
    if (object->waits++ == 0 && !cn_object_is_broken(object))
        cn_list_remove(&object->idle_link);
}

void cn_object_unwait(struct cn_object *object)
{
    cn_loop_assert_owner(object->lane->loop);
    CN_ASSERT(object->waits > 0);
    if (--object->waits == 0)
        cn_object_rest(object);
}

/* Nothing is under way: it may be evicted from now on. Or it is broken and can be freed. */
void cn_object_rest(struct cn_object *object)
{
    struct cn_object_lane *lane = object->lane;
    if (cn_object_in_turn(object) || object->busy)
        return;
    /* Outputs of its last turn are told one by one, and that may bring us here. */
    if (object->state == CN_OBJECT_BROKEN && cn_list_empty(&object->idle_link) &&
        cn_list_empty(&object->outputs)) {
        cn_list_push_back(&lane->broken, &object->idle_link);
        cn_object_lane_kick(lane);
    }
    if (cn_object_is_broken(object))
        return;
    if (object->running_count || object->inbox_count || object->gate_locks ||
        object->transactions || object->sockets)
        return;
    cn_list_remove(&object->idle_link);
    if (object->holds || object->waits) {
        if (object->class_ && object->class_->lets_go)
            cn_list_push_back(&lane->waiting, &object->idle_link);
        return;
    }
    object->idle_since_ms = uv_now(lane->loop);
    cn_list_push_back(&lane->idle, &object->idle_link);
}

unsigned cn_object_stream_begin(struct cn_object *object)
{
    struct cn_shard *shard = object->shard->shard;
    unsigned turn = atomic_load(&shard->stream_turn) & 1;
    if (!cn_object_is_broken(object)) {
        atomic_fetch_add(&shard->streams[turn], 1);
        object->streams[turn]++;
    }
    return turn;
}

void cn_object_stream_end(struct cn_object *object, unsigned turn)
{
    if (!object->streams[turn & 1])
        return; /* it has ended with the object */
    object->streams[turn & 1]--;
    atomic_fetch_sub(&object->shard->shard->streams[turn & 1], 1);
}

static void end_streams(struct cn_object *object)
{
    for (unsigned turn = 0; turn < 2; turn++) {
        atomic_fetch_sub(&object->shard->shard->streams[turn], object->streams[turn]);
        object->streams[turn] = 0;
    }
}

/* --- the end --------------------------------------------------------------------------------- */

static void fail_all(struct cn_object *object, struct cn_list *calls)
{
    struct cn_list *node;
    while ((node = cn_list_take_front(calls))) {
        struct cn_call *call = CN_CONTAINER_OF(node, struct cn_call, envelope.link);
        if (object->class_ && object->class_->failed && object->instance)
            object->class_->failed(object, object->instance, call);
        cn_call_turn_away(call, object->broken_faults, object->broken->code, object->broken->text);
    }
}

/* It has nothing of the shard any more. What was not committed is rolled back. */
static void leave_shard(struct cn_object *object)
{
    end_streams(object);
    if (!object->db)
        return;
    if (object->class_ && object->class_->release && object->instance)
        object->class_->release(object, object->instance);
    cn_database_rollback(object->db);
    cn_database_close(object->db);
    object->db = NULL;
}

void cn_object_reset(struct cn_object *object, unsigned faults, int code, const char *format, ...)
{
    cn_loop_assert_owner(object->lane->loop);
    if (cn_object_is_broken(object))
        return;
    if (object->ns)
        cn_counter_add(&cn_object_metrics(object)->resets, 1);
    va_list args;
    va_start(args, format);
    object->broken = CN_NEW(struct cn_err);
    vsnprintf(object->broken->text, sizeof(object->broken->text), format, args);
    va_end(args);
    object->broken->code = code;
    object->broken_faults = faults;
    set_state(object, CN_OBJECT_BROKEN);
    cn_list_remove(&object->idle_link);
    cn_object_press_forget(object);
    /* The key is free at once: the next call starts a new instance, on the state that is
     * committed. This instance has no storage any more. */
    cn_map_take(&object->lane->objects, &object->key, sizeof(object->key));
    leave_shard(object);
    cn_alarm_interrupted(object);
    object->running_count = object->inbox_count = 0;
    object->inbox_bytes = 0;
    bool before = object->busy; /* who is told may let go of it */
    object->busy = true;
    fail_all(object, &object->running);
    fail_all(object, &object->inbox);
    cn_object_socket_holder_reset(object);
    CN_ASSERT(!object->sockets); /* K5 */
    object->busy = before;
    cn_object_rest(object);
}

static struct cn_object *object_alloc(struct cn_object_lane *lane)
{
    struct cn_object *object = CN_NEW(struct cn_object);
    object->lane = lane;
    cn_list_init(&object->shard_link);
    cn_list_init(&object->inbox);
    cn_list_init(&object->running);
    cn_list_init(&object->outputs);
    cn_list_init(&object->idle_link);
    cn_list_init(&object->gone_link);
    cn_list_init(&object->wake_link);
    cn_list_init(&object->press_link);
    cn_list_init(&object->turn_link);
    return object;
}

struct cn_object *cn_object_new_nobody(struct cn_object_lane *lane)
{
    struct cn_object *nobody = object_alloc(lane);
    nobody->busy = true; /* it never rests, so nothing evicts it */
    return nobody;
}

void cn_object_free_nobody(struct cn_object *nobody)
{
    CN_ASSERT(!cn_object_in_turn(nobody) && cn_list_empty(&nobody->outputs));
    cn_free(nobody);
}

struct cn_object *cn_object_new(struct cn_object_lane *lane, struct cn_namespace *ns,
                                const struct cn_object_key *key)
{
    struct cn_object *object = object_alloc(lane);
    object->shard = cn_lane_shard_of(lane, key);
    object->ns = ns;
    object->key = *key;
    object->hibernatable = true;
    CN_ASSERT(object->shard->serves);
    cn_list_push_back(&object->shard->objects, &object->shard_link);
    cn_map_set(&lane->objects, key, sizeof(*key), object);
    lane->live_count++;
    cn_object_socket_woken(object);
    return object;
}

static bool has_nothing(const struct cn_object *object)
{
    return !cn_object_in_turn(object) && cn_list_empty(&object->running) &&
           cn_list_empty(&object->inbox) && cn_list_empty(&object->outputs);
}

void cn_object_retire(struct cn_object *object)
{
    CN_ASSERT(has_nothing(object) && !object->busy);
    struct cn_object_lane *lane = object->lane;
    cn_object_press_forget(object);
    cn_list_remove(&object->idle_link);
    cn_list_remove(&object->wake_link);
    if (!cn_object_is_broken(object))
        cn_map_take(&lane->objects, &object->key, sizeof(object->key));
    if (object->state == CN_OBJECT_RUNNING)
        cn_counter_add(&cn_object_metrics(object)->evicted, 1);
    set_state(object, CN_OBJECT_GONE); /* what destroy() drops does not bring it back on a list */
    leave_shard(object);
    cn_list_push_back(&lane->gone, &object->gone_link);
    cn_object_lane_kick(lane);
}

void cn_object_end(struct cn_object *object, const char *why)
{
    bool goes = object->class_ ? object->class_->lets_go : true;
    if (object->sockets || (!goes && (object->holds || object->waits)))
        cn_object_reset(object, CN_FAULT_RETRYABLE, CN_ECLOSED, "%s", why);
    else
        cn_object_retire(object);
}

void cn_object_free(struct cn_object *object)
{
    CN_ASSERT(object->state == CN_OBJECT_GONE);
    struct cn_object_lane *lane = object->lane;
    if (object->class_ && object->instance)
        object->class_->destroy(object, object->instance);
    CN_ASSERT(has_nothing(object));
    cn_list_remove(&object->wake_link); /* code of others may have kicked it since */
    cn_list_remove(&object->shard_link);
    cn_object_socket_freed(object);
    lane->live_count--;
    if (object->class_)
        cn_counter_add(&cn_object_metrics(object)->live, (uint64_t)-1);
    cn_free(object->name);
    cn_free(object->broken);
    cn_free(object);
}
