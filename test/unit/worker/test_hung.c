/* SPDX-License-Identifier: Apache-2.0 */
/* Events that can never be answered are failed; those for which anything could still come are not.
 */
#include "worker/hung.h"

#include <string.h>

#include "bindings/call.h"
#include "test/lib/worker_rig.h"
#include "worker/dispatch.h"
#include "worker/event.h"
#include "worker/instance.h"
#include "worker/runtime.h"

static void sweep(struct cn_lane *lane, void *data)
{
    (void)data;
    cn_hung_sweep(lane);
}

static bool has_events(struct cn_lane *lane, void *data)
{
    return lane->events.live == *(size_t *)data;
}

static size_t none = 0, one = 1, two = 2;

TEST(hung, N1_one_that_awaits_what_nobody_settles_is_failed)
{
    struct worker_rig rig = {0};
    worker_rig_open(&rig, 1);
    CHECK(!worker_rig_deploy(&rig, "default: { fetch: () => new Promise(() => {}) }"));
    int fd = worker_rig_send(&rig, NULL, "/");
    worker_rig_until(&rig, 0, has_events, &one);
    worker_rig_run(&rig, 0, sweep, NULL);
    const char *answer = worker_rig_receive(fd);
    CHECK_INT(500, worker_rig_status(answer));
    worker_rig_until(&rig, 0, has_events, &none);
    worker_rig_close(&rig);
}

TEST(hung, N1_one_with_a_timer_is_not_whoever_has_set_it)
{
    struct worker_rig rig = {0};
    worker_rig_open(&rig, 1);
    CHECK(!worker_rig_deploy(
        &rig,
        "default: { fetch(r) { if (r.url.endsWith('/timer')) {"
        " globalThis.timer = setTimeout(() => {}, 1e8); return new Response('set'); }"
        " if (r.url.endsWith('/clear')) { clearTimeout(timer); return new Response('clear'); }"
        " return new Promise(() => {}); } }"));
    CHECK_STR("set", worker_rig_body(&rig, "/timer"));
    int fd = worker_rig_send(&rig, NULL, "/");
    worker_rig_until(&rig, 0, has_events, &one);
    for (int i = 0; i < 3; i++)
        worker_rig_run(&rig, 0, sweep, NULL);
    worker_rig_until(&rig, 0, has_events, &one); /* the timer of another request: shared, perhaps */
    CHECK_STR("clear", worker_rig_body(&rig, "/clear"));
    worker_rig_run(&rig, 0, sweep, NULL);
    CHECK_INT(500, worker_rig_status(worker_rig_receive(fd)));
    worker_rig_close(&rig);
}

/* What is AWAY is neither on the lane nor on its desk. */
static struct cn_envelope *away;

static void keep(struct cn_carrier *carrier, struct cn_envelope *envelope)
{
    (void)carrier;
    away = envelope;
}

static struct cn_carrier keeper = {keep};

static JSValueRef nothing(JSContextRef ctx, JSObjectRef function, JSObjectRef self, size_t count,
                          const JSValueRef values[], JSValueRef *exception)
{
    (void)function, (void)self, (void)count, (void)values, (void)exception;
    return JSValueMakeUndefined(ctx);
}

static void call_node(struct cn_lane *lane, void *data)
{
    (void)data;
    struct cn_js_context *context = worker_rig_instance(lane)->runtime->context;
    struct cn_dispatch *dispatch = cn_dispatch_new(lane, lane);
    lane->desk.carrier = &keeper;
    dispatch->envelope.to = cn_node_place_of(&lane->desk, 7, 1, 0);
    dispatch->serial = 1;
    dispatch->handler = "target";
    cn_js_enter(context);
    cn_dispatch_from_js(context->ref, dispatch, (const uint8_t *)"x", 1,
                        JSObjectMakeFunctionWithCallback(context->ref, NULL, nothing));
    cn_js_leave(context);
}

static bool is_away(struct cn_lane *lane, void *data)
{
    (void)lane, (void)data;
    return away;
}

static void answer_it(struct cn_lane *lane, void *data)
{
    (void)data;
    lane->desk.carrier = NULL;
    cn_envelope_back(away);
    cn_envelope_answer(away, NULL);
    away = NULL;
}

static bool is_desk_empty(struct cn_lane *lane, void *data)
{
    (void)data;
    return cn_list_empty(&lane->desk.ready);
}

TEST(hung, N3_an_instance_that_waits_for_another_node_may_go_on)
{
    struct worker_rig rig = {0};
    worker_rig_open(&rig, 1);
    CHECK(!worker_rig_deploy(&rig, "default: { fetch: () => new Promise(() => {}) }"));
    int fd = worker_rig_send(&rig, NULL, "/");
    worker_rig_until(&rig, 0, has_events, &one);
    worker_rig_run(&rig, 0, call_node, NULL);
    worker_rig_until(&rig, 0, is_away, NULL);
    worker_rig_run(&rig, 0, sweep, NULL);
    worker_rig_until(&rig, 0, has_events, &one);
    worker_rig_run(&rig, 0, answer_it, NULL);
    worker_rig_until(&rig, 0, is_desk_empty, NULL);
    worker_rig_run(&rig, 0, sweep, NULL);
    CHECK_INT(500, worker_rig_status(worker_rig_receive(fd)));
    worker_rig_close(&rig);
}

/* The desk is never empty where objects call each other all the time. */
static void sweep_beside(struct cn_lane *lane, void *data)
{
    struct cn_envelope busy = {.origin.request = *(uint64_t *)data};
    cn_list_push_back(&lane->desk.ready, &busy.link);
    cn_hung_sweep(lane);
    cn_list_remove(&busy.link);
}

static void id_of_first(struct cn_lane *lane, void *data)
{
    struct cn_instance *instance = CN_CONTAINER_OF(lane->instances.next, struct cn_instance, link);
    *(uint64_t *)data = CN_CONTAINER_OF(instance->events.next, struct cn_event, link)->id;
}

TEST(hung, N3_what_is_on_the_desk_of_a_busy_lane_counts_for_its_own_request_only)
{
    struct worker_rig rig = {0};
    worker_rig_open(&rig, 1);
    CHECK(!worker_rig_deploy(&rig, "default: { fetch: () => new Promise(() => {}) }"));
    int fd = worker_rig_send(&rig, NULL, "/");
    worker_rig_until(&rig, 0, has_events, &one);
    uint64_t own, nobody = 0;
    worker_rig_run(&rig, 0, id_of_first, &own);
    worker_rig_run(&rig, 0, sweep_beside, &own);
    worker_rig_run(&rig, 0, sweep_beside, &nobody); /* whose it is cannot be told */
    worker_rig_until(&rig, 0, has_events, &one);
    uint64_t other = own + 1;
    worker_rig_run(&rig, 0, sweep_beside, &other);
    CHECK_INT(500, worker_rig_status(worker_rig_receive(fd)));
    worker_rig_close(&rig);
}

TEST(hung, N2_the_youngest_is_failed_and_who_waited_for_it_goes_on)
{
    struct worker_rig rig = {0};
    worker_rig_open(&rig, 1);
    /* The second is canceled: its end is the first one's answer. */
    CHECK(!worker_rig_deploy(
        &rig, "default: { fetch(r) { if (r.url.endsWith('/first')) return new Promise((go) => {"
              " globalThis.go = go; });"
              " r.signal.onabort = () => {}; return new Promise(() => {}); } }"));
    int first = worker_rig_send(&rig, NULL, "/first");
    worker_rig_until(&rig, 0, has_events, &one);
    int second = worker_rig_send(&rig, NULL, "/second");
    worker_rig_until(&rig, 0, has_events, &two);
    worker_rig_run(&rig, 0, sweep, NULL);
    CHECK_INT(500, worker_rig_status(worker_rig_receive(second)));
    worker_rig_until(&rig, 0, has_events, &one); /* one at a time */
    worker_rig_run(&rig, 0, sweep, NULL);
    CHECK_INT(500, worker_rig_status(worker_rig_receive(first)));
    worker_rig_close(&rig);
}
