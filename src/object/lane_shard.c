/* SPDX-License-Identifier: Apache-2.0 */
/* object/lane_shard.c - what a lane does when a shard is opened, stopped or closed. See shard.h.
 *
 * All of it runs from the loop, outside of turns, when a letter is delivered; stop() is answered
 * later, by the step that finds nothing left.
 *
 * What "left" is, for stop(): an object with a call that waits or runs, one that starts, is being
 * restored, or is a visitor's; one with an open transaction, or with a commit that is not durable;
 * an output that is held. Everything else an object may have (timers, promises, sockets of its own)
 * is what any eviction ends. */
#include "base/assert.h"
#include "base/diag.h"
#include "base/loop.h"
#include "base/mem.h"
#include "object/alarm.h"
#include "object/internal.h"
#include "object/node.h"
#include "object/restore.h"
#include "object/socket.h"
#include "store/pool.h"
#include "store/store.h"

/* Connections of SQLite that objects of a lane have between them before one takes another's, */
#define CONNECTIONS_WANTED 1024
/* and those of a shard at least: a connection stays with its store. */
#define CONNECTIONS_MIN 8

/* A store is told the name of a namespace (O9), on a thread of the pool. */
struct learning {
    uv_work_t work;
    struct cn_list link; /* in own->learning */
    struct cn_object_lane *lane;
    struct cn_lane_shard *own;
    struct cn_shard *shard; /* held, once it has begun */
    struct cn_namespace *ns;
    struct cn_err err;
};

void cn_lane_shard_init(struct cn_lane_shard *own, struct cn_shard *shard,
                        struct cn_object_lane *lane)
{
    own->shard = shard;
    own->lane = lane;
    own->alarm_window_ms = INT64_MIN;
    cn_list_init(&own->objects);
    cn_list_init(&own->learning);
}

/* On the flusher's thread. */
static void on_durable(struct cn_log_listener *listener, uint64_t durable_lsn, int status)
{
    struct cn_lane_shard *own = CN_CONTAINER_OF(listener, struct cn_lane_shard, listener);
    if (status < 0) {
        atomic_store(&own->log_failed, true);
        atomic_store(&own->lane->log_failed, true);
    }
    /* A lane that holds nothing of the shard is not woken. The count is read without a lock: a lane
     * that holds something later looks at the durable LSN itself first. */
    uint64_t wanted = atomic_load(&own->wanted_lsn); /* 1: whatever there is */
    if (status < 0 || wanted == 1 || (wanted && wanted <= durable_lsn) ||
        atomic_load(&own->pressed_count))
        uv_async_send(&own->lane->durable);
}

/* Of each shard: those of a lane share its memory. */
static unsigned connections_wanted(const struct cn_object_lane *lane)
{
    unsigned share = CONNECTIONS_WANTED / lane->shard_count;
    return share > CONNECTIONS_MIN ? share : CONNECTIONS_MIN;
}

static void take_up(struct cn_lane_shard *own)
{
    CN_ASSERT(!own->store);
    own->store = own->shard->store;
    own->databases = cn_database_pool_new(connections_wanted(own->lane));
    own->listener.on_durable = on_durable;
    cn_restore_take_up(own);
    cn_store_listen(own->store, &own->listener);
}

/* --- stop ------------------------------------------------------------------------------------ */

static bool object_is_busy(const struct cn_object *object)
{
    if (cn_object_is_broken(object))
        return false;
    return object->running_count || object->inbox_count || object->transactions || object->busy ||
           object->state == CN_OBJECT_RESTORING || object->state == CN_OBJECT_STARTING ||
           object->state == CN_OBJECT_SUSPENDED || cn_object_in_turn(object) ||
           !cn_object_is_durable(object);
}

static bool has_something_left(const struct cn_lane_shard *own)
{
    CN_LIST_FOREACH(&own->objects, node)
    {
        if (object_is_busy(CN_CONTAINER_OF(node, struct cn_object, shard_link)))
            return true;
    }
    return cn_object_lane_holds(own->lane, own);
}

static void end_draining(struct cn_lane_shard *own)
{
    if (own->draining)
        own->lane->draining_count--;
    own->draining = false;
}

/* Classes whose calls wait for others that cannot come any more. */
static void tell_stopping(struct cn_lane_shard *own)
{
    CN_LIST_FOREACH(&own->objects, node) /* none is freed in here: that is a sweep's */
    {
        struct cn_object *object = CN_CONTAINER_OF(node, struct cn_object, shard_link);
        if (object->state != CN_OBJECT_RUNNING || !object->class_->stopping)
            continue;
        cn_object_enter(object);
        object->class_->stopping(object, object->instance);
        cn_object_leave(object);
    }
}

/* S7 */
static void drain(struct cn_lane_shard *own)
{
    atomic_store(&own->wanted_lsn, 1); /* every flush wakes the lane; before the look */
    if (has_something_left(own))
        return;
    end_draining(own); /* first: who is told below may bring a step about */
    own->rests = true;
    atomic_store(&own->wanted_lsn, 0);
    CN_LIST_FOREACH(&own->objects, node)
    {
        struct cn_object *object = CN_CONTAINER_OF(node, struct cn_object, shard_link);
        if (!cn_object_is_broken(object))
            cn_object_end(object, CN_SHARD_AWAY);
    }
    cn_lane_shard_answer(own, own->change);
}

void cn_lane_shards_drain(struct cn_object_lane *lane)
{
    CN_ASSERT(!lane->turn_depth && !lane->desk->stepping);
    for (unsigned i = 0; i < lane->shard_count && lane->draining_count; i++) {
        if (lane->shards[i].draining)
            drain(&lane->shards[i]);
    }
}

/* --- close ----------------------------------------------------------------------------------- */

static struct cn_object *first_alive(const struct cn_lane_shard *own)
{
    CN_LIST_FOREACH(&own->objects, node)
    {
        struct cn_object *object = CN_CONTAINER_OF(node, struct cn_object, shard_link);
        if (!cn_object_is_broken(object))
            return object;
    }
    return NULL;
}

static void end_objects(struct cn_lane_shard *own)
{
    struct cn_object *object;
    while ((object = first_alive(own))) {
        if (object->state == CN_OBJECT_SUSPENDED)
            object->holds--; /* its visitor's, who will find it gone */
        cn_object_reset(object, CN_FAULT_RETRYABLE, CN_ECLOSED, "%s", CN_SHARD_CUT);
    }
    /* S6: those that were broken before as well. */
    CN_LIST_FOREACH(&own->objects, node)
    CN_CONTAINER_OF(node, struct cn_object, shard_link)->cut = true;
}

/* S5: whoever waited is gone. One that has begun ends by itself. */
static void forget_learning(struct cn_lane_shard *own)
{
    for (struct cn_list *link; (link = cn_list_take_front(&own->learning));) {
        struct learning *learning = CN_CONTAINER_OF(link, struct learning, link);
        if (!learning->shard)
            cn_free(learning);
    }
}

void cn_lane_shard_detach(struct cn_lane_shard *own)
{
    struct cn_object_lane *lane = own->lane;
    own->serves = own->rests = false;
    end_draining(own);
    if (!own->store)
        return;
    CN_ASSERT(!first_alive(own) && !cn_object_lane_holds(lane, own)); /* S5 */
    cn_store_unlisten(own->store, &own->listener);
    if (lane->wanted == own)
        lane->wanted = NULL;
    atomic_store(&own->wanted_lsn, 0);
    atomic_store(&own->log_failed, false);
    cn_database_pool_free(own->databases);
    own->databases = NULL;
    forget_learning(own);
    cn_free(own->learnt);
    own->learnt = NULL;
    own->learnt_count = 0;
    own->store = NULL;
}

static void let_go(struct cn_lane_shard *own)
{
    struct cn_object_lane *lane = own->lane;
    cn_loop_assert_owner(lane->loop);
    CN_ASSERT(!lane->turn_depth);
    own->serves = false;
    if (!own->store)
        return;
    struct cn_err err;
    (void)cn_err_set(&err, CN_ECLOSED, "%s", CN_SHARD_CUT);
    end_objects(own);
    cn_object_lane_fail_held(lane, own, &err);
    cn_object_socket_let_go(own);
    cn_alarm_let_go(own);
    cn_restore_let_go(own, &err);
    cn_lane_shard_detach(own);
}

/* --- letters --------------------------------------------------------------------------------- */

void cn_lane_shard_look(struct cn_lane_shard *own, enum cn_shard_state state, uint64_t change)
{
    struct cn_object_lane *lane = own->lane;
    CN_ASSERT(!lane->turn_depth && !lane->desk->stepping);
    switch (state) {
    case CN_SHARD_OPENING:
    case CN_SHARD_OPEN:
        end_draining(own);
        own->rests = false;
        if (!own->store)
            take_up(own);
        if (!own->serves)
            own->alarm_window_ms = INT64_MIN; /* hints that were due meanwhile are gone */
        own->serves = true;
        cn_lane_shard_answer(own, change);
        break;
    case CN_SHARD_STOPPING:
    case CN_SHARD_STOPPED:
        own->serves = false;
        own->change = change;
        if (own->store && !own->draining) {
            own->draining = true;
            lane->draining_count++;
            tell_stopping(own);
        }
        if (!own->store)
            cn_lane_shard_answer(own, change);
        break;
    case CN_SHARD_CLOSING:
    case CN_SHARD_CLOSED:
        let_go(own);
        cn_lane_shard_answer(own, change);
        break;
    default:
        CN_ASSERT(false);
    }
    cn_object_lane_kick(lane); /* for a sweep, and for what can be drained */
    cn_object_lane_step(lane);
}

bool cn_object_lane_serves(struct cn_object_lane *lane, const struct cn_object_key *key)
{
    const struct cn_lane_shard *own = cn_lane_shard_of(lane, key);
    return cn_lane_shard_takes(own) && cn_lane_shard_may_leave(own, 0);
}

bool cn_object_lane_verifies(struct cn_object_lane *lane, const struct cn_object_key *key)
{
    const struct cn_lane_shard *own = cn_lane_shard_of(lane, key);
    return own->store && cn_store_verifies(own->store);
}

/* --- namespaces ------------------------------------------------------------------------------ */

static void learn_next(struct cn_object_lane *lane);

bool cn_lane_shard_knows(const struct cn_lane_shard *own, const struct cn_namespace *ns)
{
    if (!cn_shards_numbered(own->shard->shards) || !ns)
        return true; /* it has given out the number itself */
    for (size_t i = 0; i < own->learnt_count; i++) {
        if (own->learnt[i] == ns->id)
            return true;
    }
    return false;
}

static void on_learn(uv_work_t *work)
{
    struct learning *learning = work->data;
    const struct cn_namespace *ns = learning->ns;
    if (cn_store_namespace_learn(learning->shard->store, ns->id, ns->name, &learning->err) == 0)
        learning->err.code = 0;
}

/* The next object that waits for the namespace; what one does may end any other. */
static struct cn_object *next_learning(const struct cn_lane_shard *own,
                                       const struct cn_namespace *ns)
{
    CN_LIST_FOREACH(&own->objects, node)
    {
        struct cn_object *object = CN_CONTAINER_OF(node, struct cn_object, shard_link);
        if (object->learning && object->ns == ns)
            return object;
    }
    return NULL;
}

static void tell_learnt(struct learning *learning)
{
    struct cn_lane_shard *own = learning->own;
    const struct cn_err *err = learning->err.code ? &learning->err : NULL;
    if (!err) {
        own->learnt = cn_realloc(own->learnt, (own->learnt_count + 1) * sizeof(*own->learnt));
        own->learnt[own->learnt_count++] = learning->ns->id;
    }
    for (struct cn_object *object; (object = next_learning(own, learning->ns));)
        cn_object_learnt(object, err);
    cn_object_lane_step(own->lane);
}

static void on_learnt(uv_work_t *work, int status)
{
    (void)status; /* never cancelled */
    struct learning *learning = work->data;
    struct cn_object_lane *lane = learning->lane;
    struct cn_shard *shard = learning->shard;
    lane->learns = false;
    if (!lane->stopping) {
        bool wanted = !cn_list_empty(&learning->link); /* else the lane has let go of the shard */
        cn_list_remove(&learning->link);
        learn_next(lane);
        if (wanted)
            tell_learnt(learning);
    }
    cn_shard_release(shard);
    cn_free(learning);
}

static void learn(struct learning *learning)
{
    learning->lane->learns = true;
    learning->shard = learning->own->shard;
    learning->work.data = learning;
    cn_shard_hold_more(learning->shard);
    int rc = uv_queue_work(learning->lane->loop, &learning->work, on_learn, on_learnt);
    CN_ASSERT(rc == 0); /* it fails only without a function */
}

/* One at a time for each lane: more would take all threads of the pool while an engine stalls. */
static void learn_next(struct cn_object_lane *lane)
{
    for (unsigned i = 0; i < lane->shard_count && !lane->learns; i++) {
        struct cn_list *list = &lane->shards[i].learning;
        if (!cn_list_empty(list))
            learn(CN_CONTAINER_OF(list->next, struct learning, link));
    }
}

void cn_lane_shard_learn(struct cn_lane_shard *own, struct cn_namespace *ns)
{
    CN_LIST_FOREACH(&own->learning, node)
    {
        if (CN_CONTAINER_OF(node, struct learning, link)->ns == ns)
            return;
    }
    struct learning *learning = CN_NEW(struct learning);
    *learning = (struct learning){.lane = own->lane, .own = own, .ns = ns};
    cn_list_push_back(&own->learning, &learning->link);
    learn_next(own->lane);
}
