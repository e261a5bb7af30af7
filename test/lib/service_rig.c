/* SPDX-License-Identifier: Apache-2.0 */
#include "test/lib/service_rig.h"

#include <sched.h>
#include <stdlib.h>

#include "base/loop.h"
#include "base/mem.h"
#include "object/alarm.h"
#include "service/def.h"
#include "service/kv/kvcache.h"
#include "service/pool.h"
#include "service/wire.h"
#include "test/lib/test.h"

static int64_t rig_wall(struct cn_clock *clock)
{
    return CN_CONTAINER_OF(clock, struct service_rig, clock)->wall_ms;
}

static uint64_t rig_mono(struct cn_clock *clock)
{
    return (uint64_t)rig_wall(clock) * 1000000u;
}

static bool find_class(struct cn_object_lane *lane, struct cn_namespace *ns,
                       const struct cn_object_key *key, const struct cn_class **class_,
                       void **class_data)
{
    (void)ns, (void)key;
    struct service_rig *rig = lane->data;
    *class_ = rig->class_;
    *class_data = cn_node_data(lane->node);
    return true;
}

void service_rig_open(struct service_rig *rig, struct cn_disk *disk, const struct cn_class *class_,
                      const char *namespace_name)
{
    struct cn_err err;
    *rig = (struct service_rig){.disk = disk, .class_ = class_, .wall_ms = 1700000000000};
    rig->clock = (struct cn_clock){rig_wall, rig_mono};
    struct cn_history_config history = {.disk = disk};
    CHECK_INT(0, cn_history_open(&history, &rig->history, &err));
    struct cn_store_config config = {
        .disk = disk, .sync = CN_LOG_OS, .history = cn_history_callbacks(rig->history)};
    CHECK_INT(0, cn_store_open(&config, &rig->store, &err));
    CHECK_INT(0, cn_blobs_open(disk, "blobs", &rig->services.blobs, &err));
    rig->services.pool = cn_pool_new(2);
    rig->services.kv_cache = cn_kvcache_new(1 << 20);
    CHECK_INT(0, cn_shards_single(rig->store, rig->history, &rig->shards, &err));
    struct cn_node_options options = {.shards = rig->shards,
                                      .clock = &rig->clock,
                                      .lane_count = 1,
                                      .find_class = find_class,
                                      .data = &rig->services,
                                      .secret = "0123456789abcde"};
    rig->node = cn_node_new(&options);
    CHECK_INT(0, cn_node_namespace(rig->node, namespace_name, &rig->ns, &err));
    CHECK_INT(0, cn_loop_init(&rig->loop, NULL));
    CHECK_INT(0, cn_mailbox_open(&rig->mailbox, &rig->loop, &rig->lane));
    cn_desk_open(&rig->desk, 0, &rig->loop, &rig->mailbox, cn_object_lane_step_desk, rig);
    CHECK_INT(0, cn_object_lane_start(&rig->lane, rig->node, &rig->desk, rig, &err));
}

static void on_stopped(struct cn_object_lane *lane)
{
    ((struct service_rig *)lane->data)->stopped = true;
}

void service_rig_close(struct service_rig *rig)
{
    cn_object_lane_stop(&rig->lane, on_stopped);
    cn_desk_close(&rig->desk);
    cn_mailbox_close(&rig->mailbox, NULL);
    uv_run(&rig->loop, UV_RUN_DEFAULT);
    CHECK(rig->stopped);
    CHECK_INT(0, uv_loop_close(&rig->loop));
    cn_node_free(rig->node);
    cn_shards_free(rig->shards);
    cn_pool_free(rig->services.pool);
    cn_kvcache_free(rig->services.kv_cache);
    cn_blobs_close(rig->services.blobs);
    cn_store_close(rig->store);
    cn_history_close(rig->history);
}

void service_rig_until(struct service_rig *rig, const bool *flag)
{
    uint64_t end = uv_hrtime() + 60000000000u; /* sanitizers are slow */
    while (!*flag) {
        CHECK(uv_hrtime() < end);
        cn_object_lane_step(&rig->lane);
        uv_run(&rig->loop, *flag ? UV_RUN_NOWAIT : UV_RUN_ONCE);
    }
}

static void on_done(struct cn_service_call *call)
{
    *(bool *)call->call.envelope.data = true;
}

/* As if the object were on another node. */
static void call_by_wire(struct service_rig *rig, const struct cn_service_wire *wire,
                         struct cn_service_call *call)
{
    struct cn_service_call *there = cn_alloc_zero(wire->size);
    struct cn_buf bytes = {0};
    bool done = false;
    cn_service_call_init(there, call->call.ns, call->call.name, call->call.op, wire->fini);
    cn_service_wire_ask(wire, call, &bytes);
    CHECK_INT(0, cn_service_wire_asked(wire, there, bytes.data, bytes.size, rig->node));
    there->call.size = call->call.size;
    there->call.envelope.data = &done;
    cn_service_call_send(there, &rig->lane, on_done);
    service_rig_until(rig, &done);
    call->call.envelope.err = there->call.envelope.err;
    call->call.envelope.faults = there->call.envelope.faults;
    if (!call->call.envelope.err.code) {
        cn_buf_clear(&bytes);
        cn_service_wire_answer(wire, there, &bytes);
        CHECK_INT(0, cn_service_wire_answered(wire, call, bytes.data, bytes.size, rig->node));
    }
    cn_buf_fini(&bytes);
    cn_service_call_free(there);
}

void service_rig_call(struct service_rig *rig, struct cn_service_call *call)
{
    bool done = false;
    const struct cn_service_def *def = cn_service_of(call->call.ns->name);
    if (getenv("CAIRN_TEST_WIRE") && def && cn_service_wire_has(def->wire, call->call.op)) {
        call_by_wire(rig, def->wire, call);
        return;
    }
    call->call.envelope.data = &done;
    cn_service_call_send(call, &rig->lane, on_done);
    service_rig_until(rig, &done);
    call->call.envelope.data = NULL;
}

static void spin(struct service_rig *rig)
{
    for (int i = 0; i < 100; i++) {
        cn_object_lane_step(&rig->lane);
        uv_run(&rig->loop, UV_RUN_NOWAIT);
    }
}

/* What an alarm does next may wait until what it did is durable, which another thread sees to. */
void service_rig_advance(struct service_rig *rig, int64_t ms)
{
    struct cn_store_stats before, after;
    rig->wall_ms += ms;
    cn_alarm_tick(&rig->lane);
    do {
        cn_store_stats(rig->store, &before);
        spin(rig);
        do {
            uv_run(&rig->loop, UV_RUN_NOWAIT);
            sched_yield();
            cn_store_stats(rig->store, &after);
        } while (after.durable_lsn < after.appended_lsn);
        spin(rig);
        cn_store_stats(rig->store, &after);
    } while (after.appended_lsn != before.appended_lsn);
}

static void hurry(uv_handle_t *handle, void *data)
{
    uv_timer_t *timer = (uv_timer_t *)handle;
    if (handle->type == UV_TIMER && uv_is_active(handle) &&
        uv_timer_get_due_in(timer) <= *(uint64_t *)data)
        uv_timer_start(timer, timer->timer_cb, 0, uv_timer_get_repeat(timer));
}

void service_rig_hurry(struct service_rig *rig, uint64_t within_ms)
{
    uv_walk(&rig->loop, hurry, &within_ms);
}

struct cn_background service_rig_background(struct service_rig *rig, const bool *draining,
                                            struct cn_deployment *const *deployment,
                                            void (*send)(struct cn_background *background,
                                                         const struct cn_background_event *event))
{
    return (struct cn_background){.loop = &rig->loop,
                                  .node = rig->node,
                                  .objects = &rig->lane,
                                  .draining = draining,
                                  .deployment = deployment,
                                  .send = send};
}
