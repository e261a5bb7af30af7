/* SPDX-License-Identifier: Apache-2.0 */
/* Events for a worker that do not come by HTTP: D1 to D3 of worker/dispatch.h, from a lane to
 * itself and to another, and what is refused. */
#include "worker/dispatch.h"

#include <stdio.h>
#include <string.h>

#include "base/loop.h"
#include "base/mem.h"
#include "test/lib/worker_rig.h"
#include "worker/instance.h"

/* scheduled() writes down what it is given; "throw" fails, "hold" waits until "go". */
#define WORKER                                                                    \
    "default: { async scheduled(event) { (globalThis.seen = globalThis.seen || "  \
    "[]).push(event.cron);"                                                       \
    " if (event.cron === 'throw') throw new TypeError('no');"                     \
    " if (event.cron === 'spin') for (;;);"                                       \
    " if (event.cron === 'hold') await new Promise((f) => globalThis.go = f); }," \
    " fetch: () => { globalThis.go?.(); return new Response((globalThis.seen || []).join()); } }"

struct sent {
    struct cn_dispatch *dispatch;
    const struct cn_lane *from;
    struct cn_err err;
    unsigned faults;
    bool inside; /* cn_dispatch_send() is on the stack */
    unsigned done;
};

static struct worker_rig rig;
static struct sent sent[8];
static unsigned order[8], order_count; /* the sender's lane's */

static void on_done(struct cn_dispatch *dispatch)
{
    struct sent *own = dispatch->envelope.data;
    CHECK(!own->inside); /* D3 */
    CHECK(cn_loop_is_mine(&own->from->loop));
    own->err = dispatch->envelope.err;
    own->faults = dispatch->envelope.faults;
    own->done++;
    order[order_count++ % 8] = (unsigned)(own - sent);
    cn_dispatch_free(dispatch);
}

struct errand {
    unsigned slot, to;
    const char *cron, *script, *handler;
    uint32_t serial;
};

static void send_one(struct cn_lane *lane, void *data)
{
    const struct errand *errand = data;
    struct sent *own = &sent[errand->slot];
    *own = (struct sent){.from = lane, .inside = true};
    struct cn_dispatch *dispatch = cn_dispatch_new(lane, &rig.lanes[errand->to]);
    char json[128];
    snprintf(json, sizeof(json), "{\"cron\":\"%s\",\"scheduledTime\":1}", errand->cron);
    dispatch->handler = errand->handler ? errand->handler : "scheduled";
    dispatch->script = cn_strdup(errand->script ? errand->script : "worker");
    dispatch->serial = errand->serial;
    dispatch->bytes = cn_memdup(json, strlen(json));
    dispatch->size = strlen(json);
    dispatch->envelope.data = own;
    dispatch->on_done = on_done;
    cn_dispatch_send(dispatch, NULL);
    own->inside = false;
}

static void send_cron(unsigned slot, unsigned to, const char *cron)
{
    struct errand errand = {.slot = slot, .to = to, .cron = cron};
    worker_rig_run(&rig, 0, send_one, &errand);
}

static bool is_done(struct cn_lane *lane, void *data)
{
    (void)lane;
    return ((struct sent *)data)->done > 0;
}

static void begin(unsigned lanes)
{
    rig = (struct worker_rig){.cpu_limit_ms = 50};
    order_count = 0;
    worker_rig_open(&rig, lanes);
    CHECK(!worker_rig_deploy(&rig, WORKER));
}

TEST(dispatch, D3_each_is_answered_once_on_the_lane_it_came_from)
{
    begin(2);
    for (unsigned to = 0; to < 2; to++) {
        send_cron(0, to, "one");
        worker_rig_until(&rig, 0, is_done, &sent[0]);
        CHECK_INT(0, sent[0].err.code);
        send_cron(1, to, "throw");
        worker_rig_until(&rig, 0, is_done, &sent[1]);
        CHECK(sent[1].err.code < 0 && sent[1].faults & CN_FAULT_REMOTE);
        CHECK_INT(1, sent[0].done);
        CHECK_INT(1, sent[1].done);
    }
    CHECK_STR("one,throw", worker_rig_body(&rig, "/")); /* of lane 0, its own */
    worker_rig_close(&rig);
}

struct burst {
    unsigned to;
};

static void send_burst(struct cn_lane *lane, void *data)
{
    static const char *const crons[] = {"a", "b", "c", "d", "e"};
    for (unsigned i = 0; i < 5; i++) {
        struct errand errand = {.slot = i, .to = ((struct burst *)data)->to, .cron = crons[i]};
        send_one(lane, &errand);
    }
    for (unsigned i = 0; i < 5; i++)
        CHECK(!sent[i].done); /* D1: later */
}

TEST(dispatch, D1_D2_they_arrive_later_and_in_order)
{
    begin(2);
    for (unsigned to = 0; to < 2; to++) {
        struct burst burst = {to};
        order_count = 0;
        worker_rig_run(&rig, 0, send_burst, &burst);
        for (unsigned i = 0; i < 5; i++)
            worker_rig_until(&rig, 0, is_done, &sent[i]);
        for (unsigned i = 0; i < 5; i++)
            CHECK_INT(i, order[i]);
    }
    CHECK_STR("a,b,c,d,e", worker_rig_body(&rig, "/"));
    worker_rig_close(&rig);
}

TEST(dispatch, what_nobody_takes_is_refused_with_the_reason)
{
    static const struct {
        struct errand errand;
        const char *text;
        unsigned faults;
    } cases[] = {
        {{.cron = "x", .script = "nobody"}, "is not running", CN_FAULT_RETRYABLE},
        {{.cron = "x", .serial = 4000000000u}, "has ended", CN_FAULT_RETRYABLE},
        {{.cron = "x", .script = "nobody", .to = 1}, "is not running", CN_FAULT_RETRYABLE},
        {{.cron = "x", .handler = "nothing of the kind"}, "", CN_FAULT_REMOTE},
        {{.cron = "spin"}, "CPU limit of 50 ms", CN_FAULT_REMOTE},
    };
    begin(2);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct errand errand = cases[i].errand;
        worker_rig_run(&rig, 0, send_one, &errand);
        worker_rig_until(&rig, 0, is_done, &sent[0]);
        if (sent[0].err.code >= 0 || !(sent[0].faults & cases[i].faults) ||
            !strstr(sent[0].err.text, cases[i].text))
            test_fail(__FILE__, __LINE__, "case %zu: %d %u %s", i, sent[0].err.code, sent[0].faults,
                      sent[0].err.text);
    }
    /* and the worker is there as before */
    send_cron(0, 0, "after");
    worker_rig_until(&rig, 0, is_done, &sent[0]);
    CHECK_INT(0, sent[0].err.code);
    worker_rig_close(&rig);
}

static bool has_event(struct cn_lane *lane, void *data)
{
    (void)data;
    return lane->events.live == 1;
}

/* D3: what is under way when the lane ends is answered with an error, or dropped; once. */
TEST(dispatch, D3_one_under_way_goes_with_its_lane)
{
    begin(1);
    send_cron(0, 0, "hold");
    worker_rig_until(&rig, 0, has_event, NULL);
    CHECK_INT(0, sent[0].done);
    worker_rig_close(&rig);
    CHECK(sent[0].done <= 1);
    CHECK(!sent[0].done || sent[0].err.code < 0);
}
