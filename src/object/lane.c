/* SPDX-License-Identifier: Apache-2.0 */
/* object/lane.c - the objects of one lane: what is ready, what is held, what is idle.
 *
 * A step does everything that can be done now: what this lane has sent to itself
 * and its answers (object/envelope.h), then outputs whose writes have become durable.
 * It runs when a turn ends, when the flusher wakes the lane, and otherwise from the
 * idle handle of the desk, so nothing waits for a timer.
 *
 * L1  A step is never nested: what becomes ready inside it is done by it.
 * L2  A step does at most STEP_MAX things, then returns to the loop, so that
 *     connections are served however many calls objects make to each other.
 * L3  A lane that stops sends everything that it holds: it waits for each, in order.
 * L4  An object ends in two parts. cn_object_retire() takes it out of every list and table and
 *     runs no code of anybody, so whoever walks over a list may call it for each. Its class lets
 *     go of it later, in a sweep: from the loop, outside of turns and steps, with no walk and no
 *     function of an object on the stack, for that is code of its class and may do anything to
 *     any other object. */
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

#define STEP_MAX 1000
#define CLOCK_INTERVAL_MS 250
#define IDLE_MS 10000
#define IDLE_LONG_MS 70000
#define WAIT_MS_MAX (15 * 60 * 1000)

/* --- logs ----------------------------------------------------------------------------------- */

/* A log that has failed for good: an object whose writes it may never have taken is ahead of the
 * disk (G3). */
static void reset_unconfirmed(struct cn_lane_shard *own)
{
    uint64_t durable = cn_store_durable(own->store);
    struct cn_err err;
    if (cn_store_lost(own->store, &err) == 0)
        return;
    CN_LIST_FOREACH(&own->objects, node)
    {
        struct cn_object *object = CN_CONTAINER_OF(node, struct cn_object, shard_link);
        if (object->last_lsn > durable)
            cn_object_reset(object, CN_FAULT_RESET, CN_EREADONLY, "%s", err.text);
    }
}

static void check_when_due(struct cn_object_lane *lane);

static void on_durable_async(uv_async_t *async)
{
    struct cn_object_lane *lane = async->data;
    if (atomic_exchange(&lane->log_failed, false)) {
        (void)cn_object_lane_release(lane, UINT32_MAX);
        for (unsigned i = 0; i < lane->shard_count; i++) {
            struct cn_lane_shard *own = &lane->shards[i];
            if (atomic_exchange(&own->log_failed, false) && own->store)
                reset_unconfirmed(own);
        }
    }
    cn_object_lane_step(lane);
    check_when_due(lane);
}

/* --- steps ----------------------------------------------------------------------------------- */

void cn_object_lane_kick(struct cn_object_lane *lane)
{
    cn_desk_kick(lane->desk);
}

void cn_object_lane_wake(struct cn_object_lane *lane, struct cn_object *object)
{
    if (!cn_list_empty(&object->wake_link))
        return;
    cn_list_push_back(&lane->woken, &object->wake_link);
    cn_object_lane_kick(lane);
}

static void retire_broken(struct cn_object_lane *lane)
{
    CN_LIST_FOREACH(&lane->broken, node)
    {
        struct cn_object *object = CN_CONTAINER_OF(node, struct cn_object, idle_link);
        /* A class that lets go drops what holds it (a timer of an hour, say) itself. */
        if (!object->holds || (object->class_ && object->class_->lets_go))
            cn_object_retire(object);
    }
}

void cn_object_lane_sweep(struct cn_object_lane *lane)
{
    cn_loop_assert_owner(lane->loop);
    CN_ASSERT(!lane->turn_depth && !lane->desk->stepping); /* L4 */
    retire_broken(lane);
    struct cn_list *node;
    while ((node = cn_list_take_front(&lane->gone)))
        cn_object_free(CN_CONTAINER_OF(node, struct cn_object, gone_link));
}

static unsigned step_once(struct cn_object_lane *lane, unsigned budget)
{
    unsigned count = 0;
    struct cn_list *node;
    while (count < budget && (node = cn_list_take_front(&lane->woken))) {
        cn_object_deliver_all(CN_CONTAINER_OF(node, struct cn_object, wake_link));
        count++;
    }
    if (count < budget && !cn_list_empty(&lane->pressed))
        count += cn_object_lane_unpress(lane);
    while (count < budget && cn_desk_step_one(lane->desk))
        count++;
    return count + cn_object_lane_release(lane, budget - count);
}

void cn_object_lane_step(struct cn_object_lane *lane)
{
    cn_loop_assert_owner(lane->loop);
    struct cn_desk *desk = lane->desk;
    if (desk->stepping || lane->turn_depth)
        return; /* L1 */
    desk->stepping = true;
    unsigned budget = STEP_MAX;
    while (budget) {
        unsigned done = step_once(lane, budget);
        if (!done)
            break;
        budget -= done < budget ? done : budget;
    }
    desk->stepping = false;
    bool more = !cn_list_empty(&desk->ready) || !cn_list_empty(&lane->woken);
    if (cn_object_lane_want(lane) || more)
        cn_object_lane_kick(lane);
    if (lane->draining_count)
        cn_lane_shards_drain(lane);
}

void cn_object_lane_step_desk(struct cn_desk *desk)
{
    cn_object_lane_step(desk->objects);
    cn_object_lane_sweep(desk->objects);
}

/* --- checks ---------------------------------------------------------------------------------- */

/* Returns how many of the calls were sent from this lane. */
static size_t check_calls(const struct cn_object *object, const struct cn_list *calls,
                          size_t *bytes)
{
    size_t own = 0;
    CN_LIST_FOREACH(calls, node)
    {
        const struct cn_call *call = CN_CONTAINER_OF(node, struct cn_call, envelope.link);
        CN_ASSERT(call->object == object && call->envelope.state == CN_ENVELOPE_ARRIVED);
        *bytes += call->size;
        own += call->envelope.from.desk == object->lane->desk;
    }
    return own;
}

static size_t check_object(const struct cn_object *object)
{
    size_t waiting_bytes = 0, running_bytes = 0;
    size_t own = check_calls(object, &object->inbox, &waiting_bytes) +
                 check_calls(object, &object->running, &running_bytes);
    CN_ASSERT(object->inbox_count == cn_list_length(&object->inbox));
    CN_ASSERT(object->inbox_bytes == waiting_bytes);
    CN_ASSERT(object->running_count == cn_list_length(&object->running));
    CN_ASSERT(object->sockets == cn_object_socket_held_count(object));
    CN_ASSERT(!cn_object_in_turn(object) && cn_list_empty(&object->outputs));
    CN_ASSERT(!cn_object_is_broken(object)); /* O6 */
    return own;
}

/* Those on the list could be evicted now. */
static void check_idle(const struct cn_object_lane *lane)
{
    CN_LIST_FOREACH(&lane->idle, node)
    {
        const struct cn_object *object = CN_CONTAINER_OF(node, struct cn_object, idle_link);
        CN_ASSERT(!object->running_count && !object->inbox_count && !object->sockets);
        CN_ASSERT(!object->holds && !object->waits);
    }
}

void cn_object_lane_check(const struct cn_object_lane *lane)
{
    CN_ASSERT(!lane->turn_depth && !lane->desk->stepping && cn_list_empty(&lane->turn));
    cn_map_check(&lane->objects);
    size_t own = 0, cursor = 0;
    const struct cn_map_entry *entry;
    while (cn_map_next(&lane->objects, &cursor, &entry)) {
        const struct cn_object *object = entry->value;
        CN_ASSERT(object->lane == lane); /* O1 */
        own += check_object(object);
    }
    CN_ASSERT(lane->live_count ==
              lane->objects.count + cn_list_length(&lane->broken) + cn_list_length(&lane->gone));
    check_idle(lane);
    cn_desk_check(lane->desk, own);
    cn_object_socket_check(lane);
    cn_alarm_check(lane);
}

static void check_when_due(struct cn_object_lane *lane)
{
    if (cn_check_due(&lane->check_pause, lane->live_count + lane->socket_count))
        cn_object_lane_check(lane);
}

/* --- eviction -------------------------------------------------------------------------------- */

static void evict_idle(struct cn_object_lane *lane, uint64_t now)
{
    /* The list is in order of idle_since, but the two classes of patience differ. */
    CN_LIST_FOREACH(&lane->idle, node)
    {
        struct cn_object *object = CN_CONTAINER_OF(node, struct cn_object, idle_link);
        uint64_t patience = object->hibernatable ? lane->idle_ms : lane->idle_long_ms;
        if (now - object->idle_since_ms < lane->idle_ms)
            break;
        /* What it committed must be durable first: a new instance must not read what an answer
         * in flight still waits for. */
        if (now - object->idle_since_ms >= patience && cn_object_is_durable(object))
            cn_object_retire(object);
    }
}

/* Objects that timers and the like keep: for idle_long_ms after their last event (DO-LC-3), those
 * with waitUntil() promises for longer. */
static void evict_waiting(struct cn_object_lane *lane, uint64_t now)
{
    CN_LIST_FOREACH(&lane->waiting, node)
    {
        struct cn_object *object = CN_CONTAINER_OF(node, struct cn_object, idle_link);
        uint64_t patience = object->waits ? WAIT_MS_MAX : lane->idle_long_ms;
        if (now - object->event_ms >= patience && cn_object_is_durable(object))
            cn_object_retire(object);
    }
}

size_t cn_object_lane_evict(struct cn_object_lane *lane, size_t count)
{
    cn_loop_assert_owner(lane->loop);
    size_t evicted = 0;
    CN_LIST_FOREACH(&lane->idle, node)
    {
        struct cn_object *object = CN_CONTAINER_OF(node, struct cn_object, idle_link);
        if (evicted == count)
            break;
        if (!cn_object_is_durable(object))
            continue; /* as in evict_idle() */
        cn_object_retire(object);
        evicted++;
    }
    cn_object_lane_sweep(lane);
    for (unsigned i = 0; i < lane->shard_count; i++) {
        if (lane->shards[i].databases)
            cn_database_pool_trim(lane->shards[i].databases);
    }
    return evicted;
}

static void on_clock(uv_timer_t *timer)
{
    struct cn_object_lane *lane = timer->data;
    evict_idle(lane, uv_now(lane->loop));
    evict_waiting(lane, uv_now(lane->loop));
    cn_object_lane_sweep(lane);
    cn_alarm_tick(lane);
    cn_object_socket_lane_tick(lane);
    cn_object_press_tick(lane);
    cn_object_lane_step(lane);
    check_when_due(lane);
}

/* --- start and stop -------------------------------------------------------------------------- */

int cn_object_lane_start(struct cn_object_lane *lane, struct cn_node *node, struct cn_desk *desk,
                         void *data, struct cn_err *err)
{
    cn_loop_assert_owner(desk->spin.loop);
    uv_loop_t *loop = desk->spin.loop;
    *lane = (struct cn_object_lane){.node = node,
                                    .index = desk->index,
                                    .loop = loop,
                                    .desk = desk,
                                    .mailbox = desk->mailbox,
                                    .data = data};
    cn_map_init(&lane->objects);
    cn_list_init(&lane->woken);
    cn_list_init(&lane->pressed);
    cn_list_init(&lane->held);
    cn_list_init(&lane->idle);
    cn_list_init(&lane->waiting);
    cn_list_init(&lane->broken);
    cn_list_init(&lane->gone);
    cn_list_init(&lane->turn);
    cn_list_init(&lane->strays);
    uint64_t seed;
    cn_rand_secure(&seed, sizeof(seed));
    cn_rand_init(&lane->rand, seed);
    cn_restore_lane_init(lane);
    cn_node_idle_times(node, &lane->idle_ms, &lane->idle_long_ms);
    if (!lane->idle_ms)
        lane->idle_ms = IDLE_MS;
    if (!lane->idle_long_ms)
        lane->idle_long_ms = IDLE_LONG_MS;
    int rc = uv_async_init(loop, &lane->durable, on_durable_async);
    if (rc < 0)
        return cn_err_set(err, rc, "cannot make an async handle");
    lane->durable.data = lane;
    lane->nobody = cn_object_new_nobody(lane);
    uv_timer_init(loop, &lane->clock);
    lane->clock.data = lane;
    unsigned interval = lane->idle_ms < CLOCK_INTERVAL_MS ? lane->idle_ms : CLOCK_INTERVAL_MS;
    uv_timer_start(&lane->clock, on_clock, interval, interval);
    cn_alarm_lane_init(lane);
    cn_object_socket_lane_init(lane);
    desk->objects = lane;
    cn_shards_join(cn_node_shards(node), lane);
    cn_node_register_lane(node, lane);
    return 0;
}

static void on_closed(uv_handle_t *handle)
{
    struct cn_object_lane *lane = handle->data;
    if (--lane->handle_count)
        return;
    cn_map_fini(&lane->objects);
    cn_object_free_nobody(lane->nobody);
    cn_alarm_lane_fini(lane);
    cn_restore_lane_fini(lane);
    lane->stopped(lane);
}

void cn_object_lane_stop(struct cn_object_lane *lane, void (*stopped)(struct cn_object_lane *lane))
{
    cn_loop_assert_owner(lane->loop);
    CN_ASSERT(!lane->turn_depth && !lane->stopping);
    if (CN_DEBUG_CHECKS && !lane->desk->stepping)
        cn_object_lane_check(lane);
    lane->stopping = true;
    lane->stopped = stopped;
    /* What is held has been committed: it may still go out when the log is durable. */
    cn_object_lane_release_all(lane);
    for (;;) {
        size_t cursor = 0;
        const struct cn_map_entry *entry;
        if (!cn_map_next(&lane->objects, &cursor, &entry))
            break;
        struct cn_object *object = entry->value;
        cn_object_reset(object, CN_FAULT_RETRYABLE, CN_ECLOSED, "the server is stopping");
    }
    cn_object_lane_step(lane);
    cn_object_lane_sweep(lane);
    CN_LIST_FOREACH(&lane->broken, node)
    cn_object_retire(CN_CONTAINER_OF(node, struct cn_object, idle_link)); /* whatever holds them */
    cn_object_lane_sweep(lane);
    CN_ASSERT(!lane->live_count);
    cn_object_socket_lane_fini(lane);
    cn_object_lane_drop_strays(lane);
    for (unsigned i = 0; i < lane->shard_count; i++)
        cn_lane_shard_detach(&lane->shards[i]);
    cn_shards_leave(cn_node_shards(lane->node), lane);
    lane->handle_count = 3;
    uv_close(cn_alarm_lane_handle(lane), on_closed);
    uv_close((uv_handle_t *)&lane->durable, on_closed);
    uv_close((uv_handle_t *)&lane->clock, on_closed);
}
