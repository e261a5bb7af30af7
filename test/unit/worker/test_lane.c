/* SPDX-License-Identifier: Apache-2.0 */
/* A lane: deployments that take and that do not, restarts, draining, stopping. */
#include "worker/lane.h"

#include <string.h>

#include "test/lib/worker_rig.h"
#include "worker/instance.h"

#define HELLO "default: { fetch: () => new Response('hello') }"

TEST(lane, answers_503_until_something_is_deployed_and_by_it_afterwards)
{
    struct worker_rig rig = {0};
    worker_rig_open(&rig, 1);
    const char *answer = worker_rig_get(&rig, "/");
    CHECK_INT(503, worker_rig_status(answer));
    CHECK(strstr(answer, "cairn: starting") && strstr(answer, "retry-after: 1"));
    CHECK(!worker_rig_deploy(&rig, HELLO));
    CHECK_STR("hello", worker_rig_body(&rig, "/"));
    CHECK_INT(1, cn_counter_get(&rig.lanes[0].metrics.refusals[CN_REFUSAL_STARTING]));
    worker_rig_close(&rig);
}

TEST(lane, a_deployment_that_fails_leaves_the_former_one_and_says_why)
{
    struct worker_rig rig = {0};
    worker_rig_open(&rig, 2);
    CHECK(!worker_rig_deploy(&rig, HELLO));
    const char *why = worker_rig_deploy(&rig, "get default() { throw new Error('no start'); }");
    CHECK(why && strstr(why, "worker worker failed to start") && strstr(why, "no start"));
    why = worker_rig_deploy(&rig, "default: {");
    CHECK(why && strstr(why, "SyntaxError"));
    why = worker_rig_deploy_named(&rig, "good", HELLO, "bad", "...(() => { throw 1; })()", NULL);
    CHECK(why && strstr(why, "worker bad failed"));
    CHECK_STR("hello", worker_rig_body(&rig, "/"));
    worker_rig_close(&rig);
}

TEST(lane, requests_go_to_the_worker_whose_route_they_have)
{
    struct worker_rig rig = {0};
    worker_rig_open(&rig, 1);
    CHECK(!worker_rig_deploy_named(&rig, "a", "default: { fetch: () => new Response('A') }", "b",
                                   "default: { fetch: () => new Response('B') }", NULL));
    CHECK(strstr(worker_rig_receive(worker_rig_send(&rig, "a.test", "/")), "\r\n\r\nA"));
    CHECK(strstr(worker_rig_receive(worker_rig_send(&rig, "b.test", "/")), "\r\n\r\nB"));
    const char *answer = worker_rig_receive(worker_rig_send(&rig, "c.test", "/"));
    CHECK_INT(404, worker_rig_status(answer));
    CHECK(strstr(answer, "no worker has a route"));
    worker_rig_close(&rig);
}

static void replace_first(struct cn_lane *lane, void *data)
{
    (void)data;
    cn_lane_replace(lane, worker_rig_instance(lane));
}

static bool has_instance(struct cn_lane *lane, void *data)
{
    (void)data;
    return worker_rig_instance(lane) != NULL;
}

TEST(lane, an_instance_that_held_too_much_is_replaced_by_a_fresh_one)
{
    struct worker_rig rig = {0};
    worker_rig_open(&rig, 1);
    CHECK(!worker_rig_deploy(
        &rig,
        "default: { fetch: () => new Response(String(globalThis.n = (globalThis.n ?? 0) + 1)) }"));
    CHECK_STR("1", worker_rig_body(&rig, "/"));
    CHECK_STR("2", worker_rig_body(&rig, "/"));
    worker_rig_run(&rig, 0, replace_first, NULL);
    worker_rig_until(&rig, 0, has_instance, NULL);
    CHECK_STR("1", worker_rig_body(&rig, "/"));
    worker_rig_close(&rig);
}

static bool has_event(struct cn_lane *lane, void *data)
{
    return lane->events.live == *(size_t *)data;
}

/* Holds its answer until another request lets it go. */
#define PATIENT                                                                     \
    "default: { fetch: (r) => r.url.endsWith('/wait')"                              \
    " ? new Promise((go) => { globalThis.go = () => go(new Response('waited')); })" \
    " : (globalThis.go?.(), new Response('other')) }"

TEST(lane, draining_waits_for_the_requests_that_are_under_way)
{
    struct worker_rig rig = {0};
    size_t one = 1;
    worker_rig_open(&rig, 1);
    CHECK(!worker_rig_deploy(&rig, PATIENT));
    int waiting = worker_rig_send(&rig, NULL, "/wait");
    worker_rig_until(&rig, 0, has_event, &one);
    int second = worker_rig_send(&rig, NULL, "/wait?not=it"); /* accepted before the drain */
    CHECK(strstr(worker_rig_receive(second), "other"));
    CHECK(strstr(worker_rig_receive(waiting), "waited"));
    cn_lane_drain(&rig.lanes[0]);
    uv_sem_wait(&rig.answered);
    CHECK(rig.lanes[0].draining);
    worker_rig_close(&rig);
}

TEST(lane, one_that_stops_ends_what_is_under_way_and_every_connection)
{
    struct worker_rig rig = {0};
    size_t two = 2;
    worker_rig_open(&rig, 1);
    CHECK(!worker_rig_deploy(&rig, PATIENT));
    int first = worker_rig_send(&rig, NULL, "/wait"), second = worker_rig_send(&rig, NULL, "/wait");
    worker_rig_until(&rig, 0, has_event, &two);
    worker_rig_close(&rig);
    CHECK_STR("", worker_rig_receive(first)); /* without a drain before it nothing is sent */
    CHECK_STR("", worker_rig_receive(second));
}

struct slow_commit {
    uv_sem_t begun, may_end;
};

static int commit_slowly(void *data, struct cn_err *err)
{
    (void)err;
    struct slow_commit *commit = data;
    uv_sem_post(&commit->begun);
    uv_sem_wait(&commit->may_end);
    return 0;
}

/* The second deployment comes right behind the order to stop. */
static void stop_and_deploy(struct cn_lane *lane, void *data)
{
    cn_lane_stop_begin(lane);
    worker_rig_begin(data, HELLO, NULL, NULL);
}

TEST(lane, N6_one_that_stops_while_a_deployment_is_being_written_serves_neither_that_nor_another)
{
    struct worker_rig rig = {0};
    struct slow_commit commit;
    worker_rig_open(&rig, 1);
    CHECK_INT(0, uv_sem_init(&commit.begun, 0));
    CHECK_INT(0, uv_sem_init(&commit.may_end, 0));
    CHECK(!worker_rig_deploy(&rig, HELLO));
    worker_rig_begin(&rig, HELLO, commit_slowly, &commit);
    uv_sem_wait(&commit.begun);
    worker_rig_run(&rig, 0, stop_and_deploy, &rig);
    uv_sem_wait(&rig.answered);
    CHECK_STR("the server is stopping", rig.deploy_err.text);
    uv_sem_post(&commit.may_end);
    cn_lane_stop_wait(&rig.lanes[0]);
    CHECK(uv_sem_trywait(&rig.answered) != 0); /* nobody is told */
    rig.lane_count = 0;
    worker_rig_close(&rig);
    uv_sem_destroy(&commit.begun);
    uv_sem_destroy(&commit.may_end);
}

TEST(lane, one_without_a_socket_runs_scripts_all_the_same)
{
    struct worker_rig rig = {0};
    worker_rig_open(&rig, 2); /* the second listens nowhere */
    CHECK(!worker_rig_deploy(&rig, HELLO));
    CHECK_STR("hello", worker_rig_body(&rig, "/"));
    CHECK(rig.lanes[0].listening && !rig.lanes[1].listening);
    CHECK(worker_rig_instance(&rig.lanes[1]));
    worker_rig_close(&rig);
}

static void check(void *data)
{
    cn_lane_check(data);
}

/* W3 of base/loop.h. On the lane's thread, where the children begin as well. */
static void count_wrongly(struct cn_lane *lane, void *data)
{
    (void)data;
    cn_lane_check(lane);
    CHECK_INT(1, lane->events.live);
    lane->events.live++;
    CHECK_ASSERTS("handles->live == used", check, lane);
    lane->events.live--;
    struct cn_instance *instance = worker_rig_instance(lane);
    struct cn_list *link = cn_list_take_front(&instance->events);
    CHECK_ASSERTS("lane->events.live == events", check, lane);
    cn_list_push_back(&instance->events, link);
    cn_lane_check(lane);
}

TEST(lane, W3_counters_are_compared_with_what_they_count)
{
    struct worker_rig rig = {0};
    worker_rig_open(&rig, 1);
    CHECK(!worker_rig_deploy(
        &rig, "default: { fetch: (request) => request.url.endsWith('/wait')"
              " ? new Promise((resolve) => globalThis.go = () => resolve(new Response('late')))"
              " : (go(), new Response('soon')) }"));
    int late = worker_rig_send(&rig, NULL, "/wait");
    size_t one = 1;
    worker_rig_until(&rig, 0, has_event, &one);
    worker_rig_run(&rig, 0, count_wrongly, NULL);
    CHECK_STR("soon", worker_rig_body(&rig, "/go"));
    CHECK(strstr(worker_rig_receive(late), "late"));
    worker_rig_close(&rig);
}
