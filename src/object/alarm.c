/* SPDX-License-Identifier: Apache-2.0 */
/* object/alarm.c - see alarm.h.
 *
 * A lane's queue is a binary heap of (time, key). Entries are hints: when one is
 * due, the object is asked for its alarm again, so an entry that is out of date
 * (the alarm was moved or deleted) does no harm and is not searched for.
 *
 * Q1  A lane asks of a key only whether it is its own, by number: while the server starts, others
 *     have alarms that are due and no lane yet.
 *
 * What is known of a failed run is kept beside the heap and not in the object, which may be
 * evicted long before the next try. */
#include "object/alarm.h"

#include <string.h>

#include "base/assert.h"
#include "base/diag.h"
#include "base/loop.h"
#include "base/mem.h"
#include "object/internal.h"
#include "object/node.h"
#include "store/catalog.h"
#include "store/database.h"
#include "store/store.h"

#define FIRST_DELAY_MS 2000
#define DELAY_MS_MAX 1024000
/* Alarms handed to objects and not finished, per lane: a storm goes in waves. */
#define RUNNING_MAX 256
#define LOAD_COUNT 1000
/* Shards whose windows are moved in one tick. */
#define LOADS_PER_TICK 16
/* How soon an alarm is looked at again that could not be read. */
#define UNREADABLE_MS 60000
/* And one whose shard takes no events just now. */
#define NOT_TAKEN_MS 250
/* DO-AL-8 */
#define RUN_MS_MAX (15 * 60 * 1000)

struct hint {
    int64_t time_ms;
    struct cn_object_key key;
};

/* An alarm whose last run failed. */
struct retry {
    int64_t stored_ms;  /* which one it was */
    int64_t due_ms;     /* when it is tried again */
    unsigned count;     /* of runs that failed, */
    unsigned own_count; /* by the class's own fault: those count */
};

struct cn_alarm_queue {
    struct hint *heap; /* earliest first */
    size_t count, capacity;
    struct hint *aside; /* due, of namespaces that are not known (A4) */
    size_t aside_count, aside_capacity;
    unsigned aside_known; /* how many namespaces were known when they were looked at */
    unsigned running;
    struct cn_map calls;   /* key -> struct alarm_call, under way (A1) */
    struct cn_map retries; /* key -> struct retry, owned */
    uv_timer_t timer;
};

struct alarm_call {
    struct cn_call call;
    struct cn_alarm_info info;
};

static int64_t now_ms(struct cn_object_lane *lane)
{
    return cn_clock_wall_ms(cn_node_clock(lane->node));
}

/* --- the heap -------------------------------------------------------------------------------- */

static void heap_push(struct cn_alarm_queue *queue, struct hint hint)
{
    CN_GROW(queue->heap, queue->count, queue->capacity);
    size_t i = queue->count++;
    while (i > 0 && queue->heap[(i - 1) / 2].time_ms > hint.time_ms) {
        queue->heap[i] = queue->heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    queue->heap[i] = hint;
}

static struct hint heap_take(struct cn_alarm_queue *queue)
{
    CN_ASSERT(queue->count > 0);
    struct hint first = queue->heap[0], last = queue->heap[--queue->count];
    size_t i = 0;
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= queue->count)
            break;
        if (child + 1 < queue->count && queue->heap[child + 1].time_ms < queue->heap[child].time_ms)
            child++;
        if (last.time_ms <= queue->heap[child].time_ms)
            break;
        queue->heap[i] = queue->heap[child];
        i = child;
    }
    if (queue->count)
        queue->heap[i] = last;
    return first;
}

static void arm(struct cn_object_lane *lane);

static void add_hint(struct cn_object_lane *lane, const struct cn_object_key *key, int64_t time_ms)
{
    heap_push(lane->alarms, (struct hint){time_ms, *key});
    arm(lane);
}

/* A4 */
static void put_aside(struct cn_object_lane *lane, const struct hint *hint)
{
    struct cn_alarm_queue *queue = lane->alarms;
    CN_GROW(queue->aside, queue->aside_count, queue->aside_capacity);
    queue->aside[queue->aside_count++] = *hint;
}

static void take_aside(struct cn_object_lane *lane)
{
    struct cn_alarm_queue *queue = lane->alarms;
    unsigned known = cn_node_namespace_count(lane->node);
    if (known == queue->aside_known)
        return;
    queue->aside_known = known; /* before they are looked at: another may come meanwhile */
    for (size_t i = 0; i < queue->aside_count; i++)
        heap_push(queue, queue->aside[i]);
    queue->aside_count = 0;
}

/* --- firing ---------------------------------------------------------------------------------- */

static int64_t retry_delay(struct cn_object_lane *lane, unsigned retries)
{
    int64_t delay = FIRST_DELAY_MS;
    for (unsigned i = 0; i < retries && delay < DELAY_MS_MAX; i++)
        delay *= 2;
    return delay + (int64_t)cn_rand_below(&lane->rand, (uint64_t)delay / 4 + 1);
}

static bool was_set(const struct cn_object *object, int level)
{
    return object->alarm_was_set >> (level - 1) & 1;
}

/* Ends a run: forgets the alarm, or stores when to try again. In a turn of the object. */
static void finish_run(struct cn_object *object, int64_t next_ms)
{
    struct cn_err err;
    object->alarm_running = false;
    struct cn_database *db = cn_object_database(object, &err);
    for (int level = db ? cn_database_savepoint_level(db) : 0; level > 0; level--) { /* A8 */
        if (!was_set(object, level))
            cn_database_set_saved_alarm(db, level, next_ms);
    }
    if (object->alarm_set)
        return; /* another was set meanwhile: that one stands */
    if (!db || cn_database_set_alarm(db, next_ms, &err) < 0)
        cn_object_reset(object, CN_FAULT_RESET, err.code, "the alarm could not be stored: %s",
                        err.text);
}

static bool is_served(struct cn_object_lane *lane, const struct cn_object_key *key)
{
    return cn_lane_shard_of(lane, key)->serves;
}

static void forget_retry(struct cn_object_lane *lane, const struct cn_object_key *key)
{
    cn_free(cn_map_take(&lane->alarms->retries, key, sizeof(*key)));
}

/* A run failed, and will be repeated. */
static void try_again(struct cn_object_lane *lane, const struct alarm_call *alarm)
{
    const struct cn_object_key *key = &alarm->call.key;
    if (!is_served(lane, key))
        return; /* A6 */
    struct retry *retry = cn_map_find(&lane->alarms->retries, key, sizeof(*key));
    if (!retry) {
        retry = CN_NEW(struct retry);
        cn_map_set(&lane->alarms->retries, key, sizeof(*key), retry);
    }
    retry->stored_ms = alarm->info.scheduled_ms;
    retry->due_ms = now_ms(lane) + retry_delay(lane, alarm->info.retry_count);
    retry->count = alarm->info.retry_count + 1;
    retry->own_count =
        alarm->info.own_count + (alarm->call.envelope.faults & CN_FAULT_REMOTE ? 1 : 0);
    add_hint(lane, key, retry->due_ms);
}

/* The last try has failed too. */
static void give_up(struct cn_object *object, const struct alarm_call *alarm)
{
    cn_error("%s: alarm() failed %u times and is given up: %s", object->ns->name,
             alarm->info.own_count + 1, alarm->call.envelope.err.text);
    cn_counter_add(&cn_object_metrics(object)->alarms_given_up, 1);
    forget_retry(object->lane, &object->key);
    cn_object_enter(object);
    finish_run(object, CN_ALARM_NONE);
    cn_object_leave(object);
}

/* An alarm that became due while another ran found it running, and its hint is gone (A1). The
 * object may be gone too by the time the end of the run is known, or have come back without its
 * database: then the catalog has its alarm (A5). */
static void look_again(struct cn_object_lane *lane, const struct cn_object_key *key,
                       struct cn_object *object)
{
    if (!object || !object->db) {
        cn_alarm_look(lane, key);
        return;
    }
    int64_t stored = cn_database_alarm(object->db);
    if (stored != CN_ALARM_NONE && stored <= object->shard->alarm_window_ms)
        add_hint(lane, key, stored);
}

static void on_alarm_done(struct cn_envelope *envelope)
{
    struct cn_call *call = cn_call_of(envelope);
    struct alarm_call *alarm = CN_CONTAINER_OF(call, struct alarm_call, call);
    struct cn_object_lane *lane = envelope->from.desk->objects;
    lane->alarms->running--;
    cn_map_take(&lane->alarms->calls, &call->key, sizeof(call->key));
    struct cn_object *object = cn_map_find(&lane->objects, &call->key, sizeof(call->key));
    bool running = object && object->alarm_running;
    if (envelope->err.code != 0)
        cn_counter_add(&call->ns->metrics[lane->index].alarm_failures, 1);
    if (envelope->err.code == 0)
        forget_retry(lane, &call->key);
    else if (!running) /* it was reset under it: the stored alarm is still there and due */
        try_again(lane, alarm);
    else if (envelope->faults & CN_FAULT_REMOTE && alarm->info.own_count >= CN_ALARM_RETRIES_MAX)
        give_up(object, alarm);
    else if (!object->alarm_set)
        try_again(lane, alarm);
    if (running) {
        object->alarm_running = false;
        cn_object_rest(object);
    }
    look_again(lane, &call->key, object);
    cn_free(call->name);
    cn_free(alarm);
    arm(lane);
}

/* The class has run the handler: part of its last turn. */
void cn_alarm_succeeded(struct cn_object *object)
{
    cn_loop_assert_owner(object->lane->loop);
    if (object->alarm_running)
        finish_run(object, CN_ALARM_NONE);
}

/* A4 */
static void look_later(struct cn_object_lane *lane, const struct hint *hint,
                       const struct cn_err *err)
{
    cn_error("an alarm that is due cannot be read and waits: %s", err->text);
    add_hint(lane, &hint->key, now_ms(lane) + UNREADABLE_MS);
}

/* A7: of an object whose database is not open, the catalog knows it. 1; 0: there is none. */
static int stored_alarm(const struct cn_lane_shard *own, const struct cn_object_key *key,
                        const struct cn_object *object, int64_t *stored_ms, struct cn_err *err)
{
    struct cn_catalog_entry entry = {.alarm_ms = CN_ALARM_NONE};
    char name[CN_OBJECT_NAME_MAX + 1];
    int found = 1;
    if (object && object->db)
        entry.alarm_ms = cn_database_alarm(object->db);
    else
        found = cn_catalog_find(cn_store_catalog(own->store), key, &entry, name, err);
    *stored_ms = entry.alarm_ms;
    return found < 0 ? found : found && entry.alarm_ms != CN_ALARM_NONE;
}

static void fire(struct cn_object_lane *lane, const struct hint *hint)
{
    const struct cn_lane_shard *own = cn_lane_shard_of(lane, &hint->key);
    if (!own->serves)
        return;                      /* A6 */
    if (!cn_lane_shard_takes(own)) { /* a lease that may come back */
        add_hint(lane, &hint->key, now_ms(lane) + NOT_TAKEN_MS);
        return;
    }
    struct cn_namespace *ns = cn_node_namespace_find(lane->node, hint->key.namespace_id);
    if (!ns) {
        put_aside(lane, hint); /* no worker has had the class yet; it fires when one does */
        return;
    }
    struct cn_object *object = cn_map_find(&lane->objects, &hint->key, sizeof(hint->key));
    int64_t stored;
    struct cn_err err;
    if (cn_map_find(&lane->alarms->calls, &hint->key, sizeof(hint->key)))
        return; /* A1: its end looks again */
    if (object && object->state == CN_OBJECT_SUSPENDED)
        return;                                           /* the end of the visit looks again */
    if (object && object->state == CN_OBJECT_RESTORING) { /* A7: it may have another soon */
        add_hint(lane, &hint->key, now_ms(lane) + NOT_TAKEN_MS);
        return;
    }
    int found = stored_alarm(own, &hint->key, object, &stored, &err);
    if (found < 0)
        look_later(lane, hint, &err);
    if (found != 1)
        return;
    const struct retry *retry = cn_map_find(&lane->alarms->retries, &hint->key, sizeof(hint->key));
    if (retry && retry->stored_ms != stored)
        retry = NULL; /* that was another alarm */
    int64_t due = retry && retry->due_ms > stored ? retry->due_ms : stored;
    if (due > now_ms(lane)) {
        add_hint(lane, &hint->key, due);
        return;
    }
    struct alarm_call *alarm = CN_NEW(struct alarm_call);
    alarm->info = (struct cn_alarm_info){.scheduled_ms = stored};
    if (retry) {
        alarm->info.retry_count = retry->count;
        alarm->info.own_count = retry->own_count;
    }
    alarm->call.kind = CN_CALL_ALARM;
    alarm->call.ns = ns;
    alarm->call.key = hint->key;
    alarm->call.envelope.from = cn_desk_place(lane->desk);
    alarm->call.payload = &alarm->info;
    alarm->call.envelope.on_done = on_alarm_done;
    struct cn_object_metrics *metrics = &ns->metrics[lane->index];
    cn_counter_add(&metrics->alarms, 1);
    cn_histogram_note(&metrics->alarm_lateness, cn_histogram_us,
                      (uint64_t)(now_ms(lane) - due) * 1000);
    lane->alarms->running++;
    cn_map_set(&lane->alarms->calls, &hint->key, sizeof(hint->key), alarm);
    cn_call_send(&alarm->call, NULL);
}

void cn_alarm_begin(struct cn_object *object, const struct cn_alarm_info *info)
{
    cn_loop_assert_owner(object->lane->loop);
    CN_ASSERT(!object->alarm_running);
    object->alarm_running = true;
    object->alarm_set = false;
    object->alarm_scheduled_ms = info->scheduled_ms;
    object->alarm_started_ms = now_ms(object->lane);
}

/* DO-AL-8: what runs for too long is reset; that counts as a failure of its own. */
static void end_overlong(struct cn_object_lane *lane)
{
    int64_t now = now_ms(lane);
    size_t cursor = 0;
    const struct cn_map_entry *entry;
    while (cn_map_next(&lane->alarms->calls, &cursor, &entry)) {
        struct alarm_call *alarm = entry->value;
        struct cn_object *object = alarm->call.object;
        if (object && object->alarm_running && now - object->alarm_started_ms > RUN_MS_MAX) {
            cn_object_reset(object, CN_FAULT_REMOTE | CN_FAULT_RESET, CN_ETIMEOUT,
                            "alarm() ran for more than 15 minutes; the object was reset");
            return; /* one at a time: the reset may change the map */
        }
    }
}

struct loading {
    struct cn_object_lane *lane;
    struct cn_alarm_cursor last;
};

static int on_entry(void *data, const struct cn_catalog_entry *entry)
{
    struct loading *loading = data;
    loading->last = (struct cn_alarm_cursor){entry->alarm_ms, entry->key};
    if (cn_node_owner_index(loading->lane->node, &entry->key) == loading->lane->index) /* Q1 */
        heap_push(loading->lane->alarms, (struct hint){entry->alarm_ms, entry->key});
    return 0;
}

/* Brings the alarms up to the end of the new window into memory. */
static void load_window(struct cn_lane_shard *own)
{
    struct cn_object_lane *lane = own->lane;
    int64_t end = now_ms(lane) + CN_ALARM_WINDOW_MS;
    struct cn_catalog *catalog = cn_store_catalog(own->store);
    struct loading loading = {.lane = lane};
    struct cn_alarm_cursor after = {own->alarm_window_ms, {0}};
    const struct cn_alarm_cursor *from = own->alarm_window_ms == INT64_MIN ? NULL : &after;
    struct cn_err err;
    for (;;) {
        int count =
            cn_catalog_list_alarms(catalog, end, from, LOAD_COUNT, on_entry, &loading, &err);
        if (count < 0) {
            cn_error("the alarms cannot be listed: %s", err.text);
            return;
        }
        if (count < LOAD_COUNT)
            break;
        after = loading.last;
        from = &after;
    }
    own->alarm_window_ms = end;
}

/* Shards that have a window whose end comes near, a few at a time: a tick is not to take long, and
 * there are many ticks until then. */
static void load_windows(struct cn_object_lane *lane, int64_t now)
{
    unsigned left = LOADS_PER_TICK;
    for (unsigned i = 0; i < lane->shard_count && left; i++) {
        struct cn_lane_shard *own = &lane->shards[i];
        if (!own->serves || (own->alarm_window_ms != INT64_MIN &&
                             now <= own->alarm_window_ms - CN_ALARM_WINDOW_MS / 2))
            continue;
        load_window(own);
        left--;
    }
}

static void on_timer(uv_timer_t *timer)
{
    struct cn_object_lane *lane = timer->data;
    cn_alarm_tick(lane);
    cn_object_lane_step(lane);
}

static void arm(struct cn_object_lane *lane)
{
    struct cn_alarm_queue *queue = lane->alarms;
    if (!queue->count || lane->stopping || queue->running >= RUNNING_MAX)
        return;
    int64_t wait = queue->heap[0].time_ms - now_ms(lane);
    if (wait < 0)
        wait = 0;
    uv_timer_start(&queue->timer, on_timer, cn_loop_delay(lane->loop, (uint64_t)wait, true), 0);
}

void cn_alarm_tick(struct cn_object_lane *lane)
{
    cn_loop_assert_owner(lane->loop);
    struct cn_alarm_queue *queue = lane->alarms;
    if (lane->stopping)
        return;
    int64_t now = now_ms(lane);
    end_overlong(lane);
    load_windows(lane, now);
    take_aside(lane);
    while (queue->count && queue->heap[0].time_ms <= now && queue->running < RUNNING_MAX) {
        struct hint hint = heap_take(queue);
        fire(lane, &hint);
    }
    arm(lane);
}

void cn_alarm_counts(const struct cn_object_lane *lane, size_t *running, size_t *due)
{
    cn_loop_assert_owner(lane->loop);
    const struct cn_alarm_queue *queue = lane->alarms;
    int64_t now = cn_clock_wall_ms(cn_node_clock(lane->node));
    *running = queue->running;
    *due = 0;
    if (!queue->count || queue->heap[0].time_ms > now)
        return;
    for (size_t i = 0; i < queue->count; i++)
        *due += queue->heap[i].time_ms <= now;
}

/* --- setting --------------------------------------------------------------------------------- */

int cn_object_alarm_get(struct cn_object *object, int64_t *alarm_ms, struct cn_err *err)
{
    cn_loop_assert_owner(object->lane->loop);
    struct cn_database *db = cn_object_database(object, err);
    if (!db)
        return err->code;
    /* DO-AL-2: while the handler runs there is none, unless it has been set again. */
    *alarm_ms = object->alarm_running && !object->alarm_set ? CN_ALARM_NONE : cn_database_alarm(db);
    return 0;
}

int cn_object_alarm_set(struct cn_object *object, int64_t alarm_ms, struct cn_err *err)
{
    cn_loop_assert_owner(object->lane->loop);
    struct cn_database *db = cn_object_database(object, err);
    if (!db)
        return err->code;
    int rc = cn_database_set_alarm(db, alarm_ms, err);
    if (rc < 0)
        return rc;
    object->alarm_changed = true;
    if (object->alarm_running)
        object->alarm_set = true;
    forget_retry(object->lane, &object->key);
    return 0;
}

int cn_object_savepoint(struct cn_object *object, struct cn_err *err)
{
    static_assert(CN_SAVEPOINT_MAX <= 64, "a bit for each");
    cn_loop_assert_owner(object->lane->loop);
    struct cn_database *db = cn_object_database(object, err);
    int level = db ? cn_database_savepoint(db, err) : err->code;
    if (level > 0) {
        uint64_t bit = (uint64_t)1 << (level - 1);
        object->alarm_was_set = (object->alarm_was_set & ~bit) | (object->alarm_set ? bit : 0);
    }
    return level;
}

int cn_object_savepoint_end(struct cn_object *object, int level, bool keep, struct cn_err *err)
{
    cn_loop_assert_owner(object->lane->loop);
    struct cn_database *db = cn_object_database(object, err);
    if (!db)
        return err->code;
    int rc = keep ? cn_database_savepoint_release(db, level, err)
                  : cn_database_savepoint_rollback(db, level, err);
    if (rc == 0 && !keep) /* A8 */
        object->alarm_set = was_set(object, level);
    return rc;
}

void cn_alarm_committed(struct cn_object *object)
{
    if (!object->alarm_changed)
        return;
    object->alarm_changed = false;
    int64_t time_ms = cn_database_alarm(object->db);
    if (time_ms != CN_ALARM_NONE && time_ms <= object->shard->alarm_window_ms)
        add_hint(object->lane, &object->key, time_ms);
}

void cn_alarm_give_up(struct cn_object *object)
{
    cn_loop_assert_owner(object->lane->loop);
    if (!object->alarm_running || !object->db)
        return;
    if (object->class_->release)
        object->class_->release(object, object->instance);
    cn_database_rollback(object->db);
    if (cn_database_alarm(object->db) != object->alarm_scheduled_ms)
        return; /* another was set, and committed (A8) */
    struct cn_err err;
    uint64_t lsn;
    int rc = cn_database_set_alarm(object->db, CN_ALARM_NONE, &err);
    if (rc == 0)
        rc = cn_database_commit(object->db, &lsn, &err);
    if (rc < 0)
        cn_error("the alarm of an aborted object stays: %s", err.text);
    else
        object->lsn = object->last_lsn = lsn;
}

void cn_alarm_look(struct cn_object_lane *lane, const struct cn_object_key *key)
{
    cn_loop_assert_owner(lane->loop);
    const struct cn_lane_shard *own = cn_lane_shard_of(lane, key);
    struct cn_catalog_entry entry;
    char name[CN_OBJECT_NAME_MAX + 1];
    struct cn_err err;
    if (!own->serves)
        return; /* A6 */
    int found = cn_catalog_find(cn_store_catalog(own->store), key, &entry, name, &err);
    if (found < 0)
        look_later(lane, &(struct hint){0, *key}, &err);
    if (found == 1 && entry.alarm_ms != CN_ALARM_NONE && entry.alarm_ms <= own->alarm_window_ms)
        add_hint(lane, key, entry.alarm_ms);
}

void cn_alarm_interrupted(struct cn_object *object)
{
    object->alarm_running = false;
}

static void drop_hints(struct cn_lane_shard *own)
{
    struct cn_alarm_queue *queue = own->lane->alarms;
    size_t count = queue->count, aside_count = queue->aside_count;
    queue->count = queue->aside_count = 0;
    for (size_t i = 0; i < count; i++) {
        struct hint hint = queue->heap[i]; /* what is pushed goes to places that were read */
        if (cn_lane_shard_of(own->lane, &hint.key) != own)
            heap_push(queue, hint);
    }
    for (size_t i = 0; i < aside_count; i++) {
        if (cn_lane_shard_of(own->lane, &queue->aside[i].key) != own)
            queue->aside[queue->aside_count++] = queue->aside[i];
    }
}

static void drop_retries(struct cn_lane_shard *own)
{
    struct cn_map *retries = &own->lane->alarms->retries;
    struct cn_object_key *keys = cn_alloc((retries->count + 1) * sizeof(*keys));
    const struct cn_map_entry *entry;
    size_t cursor = 0, count = 0;
    while (cn_map_next(retries, &cursor, &entry)) {
        memcpy(&keys[count], entry->key, sizeof(*keys));
        if (cn_lane_shard_of(own->lane, &keys[count]) == own)
            count++;
    }
    for (size_t i = 0; i < count; i++)
        forget_retry(own->lane, &keys[i]);
    cn_free(keys);
}

void cn_alarm_let_go(struct cn_lane_shard *own)
{
    drop_hints(own);
    drop_retries(own);
    own->alarm_window_ms = INT64_MIN;
}

void cn_alarm_lane_init(struct cn_object_lane *lane)
{
    struct cn_alarm_queue *queue = CN_NEW(struct cn_alarm_queue);
    cn_map_init(&queue->calls);
    cn_map_init(&queue->retries);
    lane->alarms = queue;
    uv_timer_init(lane->loop, &queue->timer);
    queue->timer.data = lane;
}

uv_handle_t *cn_alarm_lane_handle(struct cn_object_lane *lane)
{
    return (uv_handle_t *)&lane->alarms->timer;
}

void cn_alarm_lane_fini(struct cn_object_lane *lane)
{
    size_t cursor = 0;
    const struct cn_map_entry *entry;
    while (cn_map_next(&lane->alarms->retries, &cursor, &entry))
        cn_free(entry->value);
    cn_map_fini(&lane->alarms->retries);
    cn_map_fini(&lane->alarms->calls);
    cn_free(lane->alarms->heap);
    cn_free(lane->alarms->aside);
    cn_free(lane->alarms);
}

void cn_alarm_check(const struct cn_object_lane *lane)
{
    const struct cn_alarm_queue *queue = lane->alarms;
    CN_ASSERT(queue->running == queue->calls.count && queue->running <= RUNNING_MAX);
    for (size_t i = 1; i < queue->count; i++)
        CN_ASSERT(queue->heap[(i - 1) / 2].time_ms <= queue->heap[i].time_ms);
}
