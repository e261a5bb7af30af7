/* SPDX-License-Identifier: Apache-2.0 */
/* Instances: who gets new events, how the old ones end, and what a turn that is cut takes along. */
#include "worker/instance.h"

#include <string.h>

#include "test/lib/worker_rig.h"

static size_t count_instances(const struct cn_lane *lane)
{
    size_t count = 0;
    CN_LIST_FOREACH(&lane->instances, node)
    count += node != NULL;
    return count;
}

static bool has_events(struct cn_lane *lane, void *data)
{
    return lane->events.live == *(size_t *)data;
}

#define VERSION(n)                                                                     \
    "default: { fetch: (r) => r.url.endsWith('/wait')"                                 \
    " ? new Promise((go) => { globalThis.go = () => go(new Response('old " n "')); })" \
    " : r.url.endsWith('/go') ? (globalThis.go?.(), new Response('went'))"             \
    " : new Response('" n "') }"

struct look {
    size_t instances;
    enum cn_instance_state first;
    bool over;
};

static void look_inside(struct cn_lane *lane, void *data)
{
    struct look *look = data;
    look->instances = count_instances(lane);
    struct cn_instance *first = CN_CONTAINER_OF(lane->instances.next, struct cn_instance, link);
    look->first = first->state;
    look->over = cn_instance_is_over(first);
}

TEST(instance, I1_new_events_come_to_the_new_one_and_the_old_ones_end_where_they_began)
{
    struct worker_rig rig = {0};
    size_t one = 1;
    struct look look;
    worker_rig_open(&rig, 1);
    CHECK(!worker_rig_deploy(&rig, VERSION("one")));
    int waiting = worker_rig_send(&rig, NULL, "/wait");
    worker_rig_until(&rig, 0, has_events, &one);
    CHECK(!worker_rig_deploy(&rig, VERSION("two")));
    CHECK_STR("two", worker_rig_body(&rig, "/"));
    worker_rig_run(&rig, 0, look_inside, &look);
    CHECK_INT(2, look.instances);
    CHECK_INT(CN_INSTANCE_RETIRED, look.first);
    CHECK(!look.over); /* I3: it has an event */
    worker_rig_close(&rig);
    CHECK_STR("", worker_rig_receive(waiting));
}

TEST(instance, I3_one_that_was_retired_is_freed_with_its_last_event)
{
    struct worker_rig rig = {0};
    struct look look;
    worker_rig_open(&rig, 1);
    for (int i = 0; i < 3; i++)
        CHECK(!worker_rig_deploy(&rig, VERSION("x")));
    CHECK_STR("x", worker_rig_body(&rig, "/"));
    worker_rig_run(&rig, 0, look_inside, &look);
    CHECK_INT(1, look.instances);
    CHECK_INT(CN_INSTANCE_CURRENT, look.first);
    worker_rig_close(&rig);
}

TEST(instance, a_turn_past_its_cpu_time_gets_503_and_the_script_goes_on)
{
    struct worker_rig rig = {.cpu_limit_ms = 30};
    worker_rig_open(&rig, 1);
    CHECK(!worker_rig_deploy(
        &rig, "default: { fetch(r) { globalThis.n = (globalThis.n ?? 0) + 1;"
              " while (r.url.endsWith('/spin')); return new Response(String(n)); } }"));
    CHECK_STR("1", worker_rig_body(&rig, "/"));
    CHECK_INT(503, worker_rig_status(worker_rig_get(&rig, "/spin")));
    CHECK_STR("3", worker_rig_body(&rig, "/")); /* the same global */
    worker_rig_close(&rig);
}

static void after_cut(struct cn_lane *lane, void *data)
{
    (void)data;
    cn_instance_after_cut(worker_rig_instance(lane));
}

/* The turn that is cut was to settle what another request waits for. */
TEST(instance, who_waited_for_what_a_cut_turn_owed_is_failed_and_not_left_waiting)
{
    struct worker_rig rig = {.cpu_limit_ms = 30};
    size_t one = 1;
    worker_rig_open(&rig, 1);
    CHECK(!worker_rig_deploy(
        &rig, "default: { fetch(r) {"
              " if (r.url.endsWith('/wait')) return new Promise((go) => { globalThis.go = go; });"
              " if (r.url.endsWith('/spin')) { for (;;); }"
              " return new Response('other'); } }"));
    int waiting = worker_rig_send(&rig, NULL, "/wait");
    worker_rig_until(&rig, 0, has_events, &one);
    CHECK_INT(503, worker_rig_status(worker_rig_get(&rig, "/spin")));
    worker_rig_run(&rig, 0, after_cut, NULL);
    const char *answer = worker_rig_receive(waiting);
    CHECK_INT(503, worker_rig_status(answer));
    CHECK_STR("other", worker_rig_body(&rig, "/"));
    worker_rig_close(&rig);
}

/* What it waits for cannot have been lost with that turn. */
TEST(instance, who_came_after_a_turn_was_cut_is_not_failed_for_it)
{
    struct worker_rig rig = {.cpu_limit_ms = 30};
    worker_rig_open(&rig, 1);
    CHECK(!worker_rig_deploy(
        &rig, "default: { fetch(r) {"
              " if (r.url.endsWith('/wait')) return new Promise((go) => { globalThis.go = go; });"
              " if (r.url.endsWith('/spin')) { for (;;); }"
              " globalThis.go?.(new Response('waited')); return new Response('other'); } }"));
    CHECK_STR("other", worker_rig_body(&rig, "/"));
    CHECK_INT(503, worker_rig_status(worker_rig_get(&rig, "/spin")));
    size_t one = 1;
    int waiting = worker_rig_send(&rig, NULL, "/wait");
    worker_rig_until(&rig, 0, has_events, &one);
    worker_rig_run(&rig, 0, after_cut, NULL);
    CHECK_STR("other", worker_rig_body(&rig, "/"));
    CHECK_INT(200, worker_rig_status(worker_rig_receive(waiting)));
    worker_rig_close(&rig);
}

static void fail_events(struct cn_lane *lane, void *data)
{
    cn_instance_fail_events(worker_rig_instance(lane), "canceled", data);
}

TEST(instance, failing_its_events_answers_each_and_leaves_none)
{
    struct worker_rig rig = {0};
    size_t three = 3, none = 0;
    int fds[3];
    worker_rig_open(&rig, 1);
    CHECK(!worker_rig_deploy(&rig, VERSION("one")));
    for (int i = 0; i < 3; i++)
        fds[i] = worker_rig_send(&rig, NULL, "/wait");
    worker_rig_until(&rig, 0, has_events, &three);
    worker_rig_run(&rig, 0, fail_events, "because of a test");
    for (int i = 0; i < 3; i++)
        CHECK_INT(503, worker_rig_status(worker_rig_receive(fds[i])));
    worker_rig_until(&rig, 0, has_events, &none);
    CHECK_STR("one", worker_rig_body(&rig, "/"));
    worker_rig_close(&rig);
}
