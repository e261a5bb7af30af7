/* SPDX-License-Identifier: Apache-2.0 */
/* Requests as events: answered, failed, given up by their clients, going on after their answer. */
#include "worker/event_life.h"

#include <string.h>
#include <unistd.h>

#include "test/lib/worker_rig.h"
#include "worker/instance.h"

static bool has_events(struct cn_lane *lane, void *data)
{
    return lane->events.live == *(size_t *)data;
}

static size_t none = 0, one = 1;

TEST(event_life, what_a_script_throws_is_a_500_with_a_reference_and_no_word_of_it)
{
    struct worker_rig rig = {0};
    worker_rig_open(&rig, 1);
    CHECK(!worker_rig_deploy(&rig, "default: { fetch() { throw new Error('a secret'); } }"));
    const char *answer = worker_rig_get(&rig, "/");
    CHECK_INT(500, worker_rig_status(answer));
    CHECK(!strstr(answer, "secret"));
    worker_rig_until(&rig, 0, has_events, &none);
    worker_rig_close(&rig);
}

TEST(event_life, an_answer_that_is_none_is_a_500)
{
    static const char *const scripts[] = {
        "default: { fetch: () => 'text' }", "default: { fetch: () => undefined }",
        "default: { fetch: () => Promise.reject(new Error('x')) }", "default: {}", ""};
    struct worker_rig rig = {0};
    worker_rig_open(&rig, 1);
    for (size_t i = 0; i < sizeof(scripts) / sizeof(scripts[0]); i++) {
        if (worker_rig_deploy(&rig, scripts[i]))
            continue; /* refused at the start is as good */
        CHECK_INT(500, worker_rig_status(worker_rig_get(&rig, "/")));
    }
    worker_rig_until(&rig, 0, has_events, &none);
    worker_rig_close(&rig);
}

struct look {
    enum cn_event_state state;
    bool canceled;
};

static void look_at_first(struct cn_lane *lane, void *data)
{
    struct look *look = data;
    struct cn_instance *instance = worker_rig_instance(lane);
    struct cn_event *event = CN_CONTAINER_OF(instance->events.next, struct cn_event, link);
    look->state = event->state;
    look->canceled = cn_event_is_canceled(event);
}

#define AFTER                                                                                  \
    "default: { fetch(r, env, ctx) { if (r.url.endsWith('/go')) { globalThis.go(); return new" \
    " Response('went'); } ctx.waitUntil(new Promise((go) => { globalThis.go = go; }));"        \
    " return new Response('first'); } }"

TEST(event_life, E1_waitUntil_keeps_an_answered_event_until_it_is_settled)
{
    struct worker_rig rig = {0};
    struct look look;
    worker_rig_open(&rig, 1);
    CHECK(!worker_rig_deploy(&rig, AFTER));
    CHECK_STR("first", worker_rig_body(&rig, "/"));
    worker_rig_run(&rig, 0, look_at_first, &look);
    CHECK_INT(CN_EVENT_ANSWERED, look.state);
    CHECK_STR("went", worker_rig_body(&rig, "/go"));
    worker_rig_until(&rig, 0, has_events, &none);
    worker_rig_close(&rig);
}

static void move_answered(struct cn_lane *lane, void *data)
{
    struct cn_instance *instance = worker_rig_instance(lane);
    CN_LIST_FOREACH(&instance->events, node)
    CN_CONTAINER_OF(node, struct cn_event, link)->answered_ms -= *(uint64_t *)data;
    cn_event_sweep(lane);
}

/* WK-2: 30 s after the response. The time of the answer is moved back, nobody waits. */
TEST(event_life, WK_2_what_goes_on_for_too_long_after_its_answer_is_ended)
{
    struct worker_rig rig = {0};
    uint64_t short_ms = 29000, rest_ms = 2000;
    worker_rig_open(&rig, 1);
    CHECK(!worker_rig_deploy(&rig, AFTER));
    CHECK_STR("first", worker_rig_body(&rig, "/"));
    uint64_t start = uv_hrtime();
    worker_rig_run(&rig, 0, move_answered, &short_ms);
    if (uv_hrtime() - start < 900000000u) /* unless the machine stood still meanwhile */
        worker_rig_until(&rig, 0, has_events, &one);
    worker_rig_run(&rig, 0, move_answered, &rest_ms);
    worker_rig_until(&rig, 0, has_events, &none);
    worker_rig_close(&rig);
}

static bool first_is_canceled(struct cn_lane *lane, void *data)
{
    struct look look;
    (void)data;
    if (!lane->events.live)
        return true; /* and gone */
    look_at_first(lane, &look);
    return look.canceled;
}

TEST(event_life, a_client_that_goes_away_cancels_its_event)
{
    struct worker_rig rig = {0};
    worker_rig_open(&rig, 1);
    CHECK(!worker_rig_deploy(&rig, "default: { fetch: () => new Promise(() => setTimeout(() => {},"
                                   " 100000)) }"));
    int fd = worker_rig_send(&rig, NULL, "/");
    worker_rig_until(&rig, 0, has_events, &one);
    close(fd);
    worker_rig_until(&rig, 0, first_is_canceled, NULL);
    worker_rig_close(&rig);
}

TEST(event_life, a_number_of_a_request_is_sixteen_hexadecimal_digits)
{
    char text[17];
    cn_event_id_text(0, text);
    CHECK_STR("0000000000000000", text);
    cn_event_id_text(UINT64_MAX, text);
    CHECK_STR("ffffffffffffffff", text);
    cn_event_id_text(0x0123456789abcdefu, text);
    CHECK_STR("0123456789abcdef", text);
}
