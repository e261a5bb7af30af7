/* SPDX-License-Identifier: Apache-2.0 */
/* A heap past its bound: who holds most starts anew (R2), and the others keep what they have. */
#include "worker/relief.h"

#include <stdio.h>
#include <string.h>

#include "base/account.h"
#include "test/lib/worker_rig.h"
#include "worker/instance.h"

#define COUNTING \
    "default: { fetch: () => new Response(String(globalThis.n = (globalThis.n ?? 0) + 1)) }"
/* 8 MB with each request, all of it different. */
#define HOARDING                                                                     \
    "default: { fetch: () => { const all = globalThis.all || (globalThis.all = []);" \
    " all.push(new Array(1 << 20).fill(all.length + 0.5));"                          \
    " return new Response(String(all.length)); } }"

static void tick(struct cn_lane *lane, void *data)
{
    (void)data;
    cn_relief_tick(lane);
}

static bool is_whole(struct cn_lane *lane, void *data)
{
    (void)data;
    return lane->current[0] && lane->current[1];
}

static uint64_t limits_of(struct worker_rig *rig, const char *name)
{
    return cn_counter_get(&cn_lane_metrics_worker(&rig->lanes[0].metrics, name)->limits);
}

static const char *ask(struct worker_rig *rig, const char *host)
{
    const char *answer = worker_rig_receive(worker_rig_send(rig, host, "/"));
    const char *body = strstr(answer, "\r\n\r\n");
    return worker_rig_status(answer) == 200 && body ? body + 4 : "refused";
}

TEST(relief, R2_the_script_that_holds_most_is_reset_and_the_other_keeps_its_state)
{
    struct worker_rig rig = {.heap_bytes_max = 64u << 20};
    worker_rig_open(&rig, 1);
    CHECK(!worker_rig_deploy_named(&rig, "hog", HOARDING, "innocent", COUNTING, NULL));
    CHECK_STR("1", ask(&rig, "innocent.test"));
    for (int i = 0; i < 12; i++)
        (void)ask(&rig, "hog.test");
    /* Each is a second of patience; a heap that takes long to look at is looked at every tenth. */
    for (int i = 0; i < 100 && !limits_of(&rig, "hog"); i++)
        worker_rig_run(&rig, 0, tick, NULL);
    CHECK(limits_of(&rig, "hog") > 0);
    CHECK_INT(0, limits_of(&rig, "innocent"));
    worker_rig_until(&rig, 0, is_whole, NULL);
    CHECK_STR("2", ask(&rig, "innocent.test"));
    CHECK_STR("1", ask(&rig, "hog.test")); /* a fresh global */
    worker_rig_close(&rig);
}

/* What belongs to no script: as what one that was reset has left, until the collector finds it. */
static void leave_behind(struct cn_lane *lane, void *data)
{
    JSValueRef *left = data;
    JSStringRef source = JSStringCreateWithUTF8CString(
        "Array.from({ length: 12 }, (_, i) => new Array(1 << 20).fill(i + 0.5))");
    *left = JSEvaluateScript(lane->vm->bare, source, NULL, NULL, 1, NULL);
    JSStringRelease(source);
    CHECK(*left);
    JSValueProtect(lane->vm->bare, *left);
}

static void let_go(struct cn_lane *lane, void *data)
{
    JSValueRef *left = data;
    JSValueUnprotect(lane->vm->bare, *left);
}

TEST(relief, R8_who_holds_little_is_not_accused_of_what_another_has_left)
{
    struct worker_rig rig = {.heap_bytes_max = 64u << 20};
    JSValueRef left;
    worker_rig_open(&rig, 1);
    CHECK(!worker_rig_deploy_named(&rig, "small", COUNTING, "innocent", COUNTING, NULL));
    CHECK_STR("1", ask(&rig, "innocent.test"));
    worker_rig_run(&rig, 0, leave_behind, &left);
    for (int i = 0; i < 15; i++) {
        char want[8];
        worker_rig_run(&rig, 0, tick, NULL);
        snprintf(want, sizeof(want), "%d", 2 + i);
        CHECK_STR(want, ask(&rig, "innocent.test"));
        snprintf(want, sizeof(want), "%d", 1 + i);
        CHECK_STR(want, ask(&rig, "small.test"));
    }
    CHECK_INT(0, limits_of(&rig, "innocent") + limits_of(&rig, "small"));
    CHECK_INT(0, cn_counter_get(&rig.lanes[0].metrics.refusals[CN_REFUSAL_MEMORY]));
    worker_rig_run(&rig, 0, let_go, &left);
    worker_rig_close(&rig);
}

TEST(relief, R6_below_the_bound_nobody_is_reset_or_refused)
{
    struct worker_rig rig = {.heap_bytes_max = 512u << 20};
    worker_rig_open(&rig, 1);
    CHECK(!worker_rig_deploy_named(&rig, "hog", HOARDING, "innocent", COUNTING, NULL));
    for (int i = 1; i <= 4; i++) {
        char want[8] = {(char)('0' + i), 0};
        CHECK_STR(want, ask(&rig, "hog.test"));
        worker_rig_run(&rig, 0, tick, NULL);
    }
    CHECK_INT(0, limits_of(&rig, "hog"));
    CHECK_INT(0, cn_counter_get(&rig.lanes[0].metrics.refusals[CN_REFUSAL_MEMORY]));
    worker_rig_close(&rig);
}

static void note_told(struct cn_lane *lane, void *data)
{
    uint64_t *told = data;
    *told = 0;
    for (int i = 0; i < CN_ACCOUNT_KIND_COUNT; i++)
        *told += lane->told[i];
}

TEST(relief, what_a_lane_has_told_the_account_is_taken_back_with_it)
{
    uint64_t before[CN_ACCOUNT_KIND_COUNT], told;
    for (int i = 0; i < CN_ACCOUNT_KIND_COUNT; i++)
        before[i] = cn_account_kind_bytes((enum cn_account_kind)i);
    struct worker_rig rig = {0};
    worker_rig_open(&rig, 1);
    CHECK(!worker_rig_deploy(&rig, HOARDING));
    CHECK_STR("1", worker_rig_body(&rig, "/"));
    worker_rig_run(&rig, 0, tick, NULL);
    worker_rig_run(&rig, 0, note_told, &told);
    CHECK(told > 8u << 20);
    worker_rig_close(&rig);
    for (int i = 0; i < CN_ACCOUNT_KIND_COUNT; i++)
        CHECK_INT(before[i], cn_account_kind_bytes((enum cn_account_kind)i));
}
