/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/relief.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/account.h"
#include "base/diag.h"
#include "base/loop.h"
#include "base/mem.h"
#include "js/engine/memory.h"
#include "worker/event_life.h"
#include "worker/instance.h"
#include "worker/jsclass.h"
#include "worker/lane.h"
#include "worker/runtime.h"
#include "worker/websocket.h"

#define INTERVAL_MS 1000
/* How many ticks a heap may be above its bound before somebody is reset for it. */
#define PATIENCE 2
#define COLLECT_MS 1000 /* between two collections for want of memory */
#define GUILTY_PART 16  /* of the limit: who holds less is not reset for it */
#define HEAVY_PART 4    /* the same while requests are not refused yet (R7) */
#define SLOW_MS 200     /* between two times that sockets are closed: memory goes back later */

/* --- who holds most ----------------------------------------------------------------------------
 */

struct suspect {
    struct cn_instance *instance; /* NULL: nobody was found */
    struct cn_jsobject *js;       /* NULL: the script itself (R3) */
    uint64_t bytes;
    uint64_t all; /* what all instances hold together */
};

/* Messages that wait at ends of WebSockets behind which there is no connection (yet): nobody else
 * is slow to read them. */
static uint64_t waiting_bytes(struct cn_instance *instance)
{
    uint64_t bytes = 0;
    CN_LIST_FOREACH(&instance->sockets, node)
    bytes += CN_CONTAINER_OF(node, struct cn_jssocket, link)->end->queue_bytes;
    CN_LIST_FOREACH(&instance->ends, node)
    bytes += CN_CONTAINER_OF(node, struct cn_ws_end, keeper)->queue_bytes;
    return bytes;
}

static uint64_t instance_bytes(struct cn_instance *instance, struct cn_jsobject **largest,
                               uint64_t *largest_bytes)
{
    uint64_t all = cn_js_meter_bytes(&instance->runtime->context->meter) + waiting_bytes(instance);
    *largest = NULL;
    *largest_bytes = 0;
    CN_LIST_FOREACH(&instance->objects, node)
    {
        struct cn_jsobject *js = CN_CONTAINER_OF(node, struct cn_jsobject, link);
        uint64_t bytes = cn_js_meter_bytes(&js->meter);
        all += bytes;
        if (bytes <= *largest_bytes || cn_object_is_broken(js->object))
            continue;
        *largest = js;
        *largest_bytes = bytes;
    }
    return all;
}

/* R5 */
static struct suspect busiest(struct cn_lane *lane)
{
    struct suspect found = {0};
    CN_LIST_FOREACH(&lane->instances, node)
    {
        struct cn_instance *instance = CN_CONTAINER_OF(node, struct cn_instance, link);
        uint64_t ticks = cn_counter_get(&instance->metrics->ticks);
        if (found.instance && ticks <= found.bytes)
            continue;
        found.instance = instance;
        found.bytes = ticks;
    }
    found.bytes = 0;
    return found;
}

static struct suspect find_suspect(struct cn_lane *lane)
{
    struct suspect found = {0};
    uint64_t all = 0;
    if (!cn_js_alloc_on())
        return busiest(lane);
    CN_LIST_FOREACH(&lane->instances, node)
    {
        struct cn_instance *instance = CN_CONTAINER_OF(node, struct cn_instance, link);
        struct cn_jsobject *js;
        uint64_t object_bytes, bytes = instance_bytes(instance, &js, &object_bytes);
        cn_counter_set(&instance->metrics->memory, bytes);
        instance->held_bytes = bytes;
        all += bytes;
        if (found.instance && bytes <= found.bytes)
            continue;
        bool one = js && object_bytes > bytes / 2; /* R3 */
        found = (struct suspect){instance, one ? js : NULL, one ? object_bytes : bytes, 0};
    }
    found.all = all;
    return found;
}

static void describe(const struct suspect *suspect, char *text, size_t size)
{
    char name[256] = "";
    if (suspect->js)
        cn_jsobject_describe(suspect->js, name, sizeof(name));
    snprintf(text, size, "%s%sworker %s", name, *name ? ", " : "", suspect->instance->script->name);
}

/* --- the largest starts anew
 * ---------------------------------------------------------------------- */

/* R2 */
static void reset(struct cn_lane *lane, const struct suspect *suspect, const char *why)
{
    static const char object_text[] = "Durable Object exceeded its memory limit and was reset.";
    char name[384];
    describe(suspect, name, sizeof(name));
    cn_error("lane %u: %s; %s held %" PRIu64 " MB and is restarted", lane->options.index, why, name,
             suspect->bytes >> 20);
    cn_account_relieved(CN_ACCOUNT_RELIEVE_RESET, 1);
    cn_counter_add(&suspect->instance->metrics->limits, 1);
    if (suspect->js)
        cn_object_reset(suspect->js->object, CN_FAULT_RESET, CN_ELIMIT, object_text);
    else
        cn_lane_replace(lane, suspect->instance);
    cn_js_vm_collect(lane->vm); /* R4 */
    cn_js_engine_memory_release();
    lane->collected_ms = uv_now(&lane->loop);
}

/* --- the heap of the lane
 * ------------------------------------------------------------------------- */

/* Idle objects go before anybody is held to account: a quarter, half, all of them, the longest idle
 * first, until it is enough. */
static void evict_for_heap(struct cn_lane *lane, struct cn_js_memory *memory)
{
    size_t evicted = 0, now = 0;
    for (size_t share = 4; share && memory->heap_bytes > lane->options.heap_bytes_max; share /= 2) {
        now = cn_object_lane_evict(&lane->object_lane, lane->object_lane.live_count / share);
        if (!now)
            continue;
        evicted += now;
        cn_js_vm_collect(lane->vm);
        cn_js_vm_memory(lane->vm, memory);
    }
    if (evicted)
        cn_info("lane %u: memory is short; %zu idle objects were evicted", lane->options.index,
                evicted);
}

static void acquit(struct cn_lane *lane)
{
    lane->over_memory = 0;
    CN_LIST_FOREACH(&lane->instances, node)
    CN_CONTAINER_OF(node, struct cn_instance, link)->over_memory = false;
}

static void forgive(struct cn_lane *lane)
{
    if (lane->over_memory)
        cn_info("lane %u: memory is below its limit again", lane->options.index);
    acquit(lane);
}

/* R8 */
static bool is_innocent(const struct cn_lane *lane, const struct suspect *suspect)
{
    uint64_t bound = lane->options.heap_bytes_max;
    return cn_js_alloc_on() && suspect->bytes < bound / GUILTY_PART && suspect->all < bound;
}

static void accuse(struct cn_lane *lane, const struct cn_js_memory *memory)
{
    struct suspect suspect = find_suspect(lane);
    if (!suspect.instance)
        return;
    if (is_innocent(lane, &suspect)) {
        acquit(lane);
        return;
    }
    char name[384];
    describe(&suspect, name, sizeof(name));
    if (lane->over_memory++ == 0)
        cn_warn("lane %u: the JavaScript heap holds %zu MB, over its limit of %zu MB; new requests "
                "of worker %s get 503 (%s holds %" PRIu64 " MB)",
                lane->options.index, memory->heap_bytes >> 20, lane->options.heap_bytes_max >> 20,
                suspect.instance->script->name, name, suspect.bytes >> 20);
    suspect.instance->over_memory = true;
    if (lane->over_memory > PATIENCE) {
        suspect.instance->over_memory = false; /* before it goes */
        reset(lane, &suspect, "the JavaScript heap stayed above its limit");
        lane->over_memory = 0;
    }
}

/* Ticks to leave out after something that took so long, for it to take `part` thousandths of the
 * time. */
static unsigned pause_after(uint64_t began_ns, unsigned part)
{
    uint64_t pause = (uv_hrtime() - began_ns) / ((uint64_t)INTERVAL_MS * 1000 * part);
    return pause < 10 ? (unsigned)pause : 10;
}

/* Requests wait while the heap is looked at. Where turns look at its size themselves
 * (cn_relief_turn()) and there is room, that is done less often. */
static unsigned look_part(const struct cn_lane *lane)
{
    bool calm =
        cn_js_alloc_on() && cn_js_alloc_bytes_of(lane->alloc) < lane->options.heap_bytes_max / 2;
    return calm ? 1 : 10;
}

static void watch_heap(struct cn_lane *lane)
{
    /* The engine counts by going through its heap: a large one is looked at less often. */
    if (lane->memory_pause) {
        lane->memory_pause--;
        return;
    }
    struct cn_js_memory memory;
    uint64_t began = uv_hrtime();
    cn_js_vm_memory(lane->vm, &memory);
    lane->memory_pause = lane->over_memory ? 0 : pause_after(began, look_part(lane));
    if (memory.heap_bytes > lane->options.heap_bytes_max) {
        cn_js_vm_collect(lane->vm);
        cn_js_vm_memory(lane->vm, &memory);
    }
    if (lane->object_lane.node)
        evict_for_heap(lane, &memory);
    cn_counter_set(&lane->metrics.heap_bytes, memory.heap_bytes);
    cn_counter_set(&lane->metrics.heap_capacity, memory.capacity_bytes);
    if (memory.heap_bytes > lane->options.heap_bytes_max)
        accuse(lane, &memory);
    else
        forgive(lane);
}

void cn_relief_turn(struct cn_lane *lane)
{
    uint64_t bytes = cn_js_alloc_bytes_of(lane->alloc), bound = lane->options.heap_bytes_max;
    if (bytes <= bound || lane->heap_wanted)
        return;
    /* A large heap takes long to collect: a tenth of the time, unless refusals are near. */
    if (uv_hrtime() < lane->heap_pause_ns && bytes < bound + bound / 4)
        return;
    lane->heap_wanted = true;
    cn_lane_relieve(lane);
}

static void relieve_heap(struct cn_lane *lane)
{
    struct cn_js_memory memory = {.heap_bytes = cn_js_alloc_bytes_of(lane->alloc)};
    uint64_t began = uv_hrtime();
    lane->heap_wanted = false;
    if (lane->object_lane.node)
        evict_for_heap(lane, &memory);
    else
        cn_js_vm_collect(lane->vm);
    uint64_t now = uv_hrtime();
    lane->heap_pause_ns = now + (now - began) * 10 + 100000000u;
}

/* --- the memory of the process
 * ---------------------------------------------------------------------- */

static void tell(struct cn_lane *lane, enum cn_account_kind kind, uint64_t bytes)
{
    cn_account_add(kind, (int64_t)bytes - (int64_t)lane->told[kind]);
    lane->told[kind] = bytes;
}

static void publish(struct cn_lane *lane)
{
    uint64_t live = cn_js_alloc_bytes(), capacity = cn_counter_get(&lane->metrics.heap_capacity);
    tell(lane, CN_ACCOUNT_HEAP, live > capacity ? live : capacity);
    tell(lane, CN_ACCOUNT_SOCKETS, cn_ws_lane_bytes(lane->ws));
    tell(lane, CN_ACCOUNT_ANSWERS, cn_http_server_bytes(lane->http));
}

static void collect(struct cn_lane *lane, bool now)
{
    uint64_t ms = uv_now(&lane->loop);
    if (!now && ms - lane->collected_ms < COLLECT_MS)
        return;
    cn_js_vm_collect(lane->vm);
    uv_update_time(&lane->loop);
    lane->collected_ms = uv_now(&lane->loop);
}

static void evict_idle(struct cn_lane *lane)
{
    size_t evicted =
        lane->object_lane.node ? cn_object_lane_evict(&lane->object_lane, SIZE_MAX) : 0;
    if (evicted)
        cn_info("lane %u: memory is short; %zu idle objects were evicted", lane->options.index,
                evicted);
    cn_account_relieved(CN_ACCOUNT_RELIEVE_IDLE, evicted);
    collect(lane, evicted > 1000);
}

/* Those whose readers are slowest; `at_once`: also if some were closed a moment ago. Returns how
 * many there were. */
static size_t close_slow(struct cn_lane *lane, bool at_once)
{
    uint64_t now = uv_now(&lane->loop);
    if (!at_once && now - lane->slow_closed_ms < SLOW_MS)
        return 0;
    lane->slow_closed_ms = now;
    uint64_t bytes = cn_account_excess(CN_ACCOUNT_RELIEVE_IDLE) / lane->options.lane_count + 1;
    size_t count = cn_ws_lane_relieve(lane->ws, bytes);
    count += cn_http_server_relieve(lane->http, bytes);
    cn_account_relieved(CN_ACCOUNT_RELIEVE_SOCKETS, count);
    return count;
}

/* The event that has gathered most of its body; NULL: none has gathered any. */
static struct cn_event *largest_body(struct cn_lane *lane)
{
    struct cn_event *found = NULL;
    CN_LIST_FOREACH(&lane->instances, node)
    {
        struct cn_instance *instance = CN_CONTAINER_OF(node, struct cn_instance, link);
        CN_LIST_FOREACH(&instance->events, link)
        {
            struct cn_event *event = CN_CONTAINER_OF(link, struct cn_event, link);
            if (event->early.size && event->give_up &&
                (!found || event->early.size > found->early.size))
                found = event;
        }
    }
    return found;
}

static void drop_bodies(struct cn_lane *lane)
{
    uint64_t bytes = cn_account_excess(CN_ACCOUNT_RELIEVE_IDLE) / lane->options.lane_count + 1;
    uint64_t dropped = 0, count = 0;
    struct cn_event *event;
    for (; dropped < bytes && (event = largest_body(lane)); count++) {
        dropped += event->early.size;
        event->give_up(event);
    }
    cn_account_relieved(CN_ACCOUNT_RELIEVE_BODIES, count);
}

static void reset_largest(struct cn_lane *lane)
{
    unsigned part = cn_account_level() < CN_ACCOUNT_RELIEVE_REQUESTS ? HEAVY_PART : GUILTY_PART;
    uint64_t before = cn_js_alloc_bytes();
    collect(lane, true);
    uint64_t after = cn_js_alloc_bytes();
    if (before > after && before - after > cn_account_excess(CN_ACCOUNT_RELIEVE_BODIES)) {
        cn_js_engine_memory_release(); /* R4: it is on its way back */
        return;
    }
    struct suspect suspect = find_suspect(lane);
    if (!suspect.instance)
        return;
    if (cn_js_alloc_on() && suspect.bytes < cn_account_limit() / part)
        return; /* R6 */
    reset(lane, &suspect, "the process is at its limit of memory");
}

/* R1: what slow readers hold goes first, which takes a moment; a script that answers them would
 * be reset for it otherwise. */
static void reset_or_put_off(struct cn_lane *lane)
{
    if (!lane->reset_put_off && close_slow(lane, true)) {
        lane->reset_put_off = true;
        atomic_store(&lane->reset_wanted, true);
        cn_lane_relieve(lane);
        return;
    }
    lane->reset_put_off = false;
    reset_largest(lane);
}

bool cn_relief_refuses(const struct cn_instance *instance)
{
    enum cn_account_level level = cn_account_level();
    if (level < CN_ACCOUNT_RELIEVE_REQUESTS)
        return false;
    return cn_account_used() >= cn_account_limit() || !cn_js_alloc_on() || /* R6 */
           instance->held_bytes >= cn_account_limit() / GUILTY_PART;
}

void cn_relief_step(struct cn_lane *lane)
{
    cn_loop_assert_owner(&lane->loop);
    enum cn_account_level level = cn_account_level();
    if (lane->stopping || lane->vm->entered)
        return;
    if (lane->heap_wanted)
        relieve_heap(lane);
    if (level >= CN_ACCOUNT_RELIEVE_IDLE)
        evict_idle(lane);
    if (level >= CN_ACCOUNT_RELIEVE_SOCKETS)
        close_slow(lane, false);
    if (level >= CN_ACCOUNT_RELIEVE_BODIES)
        drop_bodies(lane);
    if (atomic_exchange(&lane->reset_wanted, false) && level >= CN_ACCOUNT_RELIEVE_BODIES)
        reset_or_put_off(lane);
    else if (level >= CN_ACCOUNT_RELIEVE_REQUESTS)
        (void)find_suspect(lane); /* for cn_relief_refuses() */
    publish(lane);
}

/* What each worker holds, for the metrics. */
static void count_held(struct cn_lane *lane)
{
    if (lane->held_pause) {
        lane->held_pause--;
        return;
    }
    uint64_t began = uv_hrtime();
    (void)find_suspect(lane);
    lane->held_pause = pause_after(began, 10);
}

void cn_relief_tick(struct cn_lane *lane)
{
    cn_loop_assert_owner(&lane->loop);
    watch_heap(lane);
    count_held(lane);
    publish(lane);
}

void cn_relief_end(struct cn_lane *lane)
{
    cn_loop_assert_owner(&lane->loop);
    for (unsigned i = 0; i < CN_ACCOUNT_KIND_COUNT; i++)
        tell(lane, i, 0);
}
