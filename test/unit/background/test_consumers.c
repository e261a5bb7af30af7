/* SPDX-License-Identifier: Apache-2.0 */
/* Queue consumers without JavaScript: a batch becomes one event, and what is said about it becomes
 * of its messages. The test is the script: it keeps the events and answers them when it likes. */
#include "background/consumers.h"

#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "service/node_calls.h"
#include "service/queue/queue.h"
#include "test/lib/service_rig.h"
#include "test/lib/storetest.h"
#include "test/lib/test.h"
#include "worker/background.h"
#include "worker/script.h"

#define EVENTS_MAX 8

static struct service_rig rig;
static struct {
    struct cn_background background;
    struct cn_deployment *deployment;
    struct cn_background_event events[EVENTS_MAX];
    size_t count;
    bool arrived, draining;
} lane;

static void keep_event(struct cn_background *background, const struct cn_background_event *event)
{
    CHECK(background == &lane.background && lane.count < EVENTS_MAX);
    CHECK_STR("worker", event->script);
    CHECK_STR("queue", event->handler);
    lane.events[lane.count++] = *event;
    lane.arrived = true;
}

/* A lane on which the script "worker" takes two messages at a time, one batch after the other. */
static struct cn_disk *open_lane(void)
{
    struct cn_disk *disk = storetest_disk();
    service_rig_open(&rig, disk, &cn_queue_class, "$queue/test");
    memset(&lane, 0, sizeof(lane));
    struct cn_script *script = cn_script_new();
    script->name = cn_strdup("worker");
    script->consumers = cn_alloc_zero(sizeof(*script->consumers));
    script->consumers[0] = (struct cn_script_consumer){
        .ns = rig.ns, .batch_count = 2, .max_retries = 3, .max_concurrency = 1};
    script->consumer_count = 1;
    lane.deployment = cn_deployment_new();
    cn_deployment_add(lane.deployment, script);
    lane.background = service_rig_background(&rig, &lane.draining, &lane.deployment, keep_event);
    return disk;
}

static void close_lane(struct cn_disk *disk)
{
    cn_consumers_stop(&lane.background);
    service_rig_close(&rig);
    cn_consumers_free(&lane.background);
    cn_deployment_unref(lane.deployment);
    cn_disk_system_free(disk);
}

static void send_texts(const char *texts)
{
    struct cn_queue_call *call = cn_queue_call_new(rig.ns, CN_QUEUE_SEND);
    for (; *texts; texts++)
        cn_queue_add(call, texts, 1, CN_QUEUE_TEXT, 0);
    service_rig_call(&rig, &call->base);
    cn_service_call_free(&call->base);
}

static uint64_t waiting(void)
{
    struct cn_queue_call *call = cn_queue_call_new(rig.ns, CN_QUEUE_METRICS);
    service_rig_call(&rig, &call->base);
    uint64_t count = call->metrics.count;
    cn_service_call_free(&call->base);
    return count;
}

/* The next event as "a1b2": bodies with their attempts. */
static const char *next_event(void)
{
    static char text[32];
    struct cn_err err;
    lane.arrived = lane.count > 0;
    service_rig_until(&rig, &lane.arrived);
    const struct cn_background_event *event = &lane.events[0];
    uint32_t size;
    memcpy(&size, event->bytes, sizeof(size));
    struct cn_json *json = cn_json_parse((const char *)event->bytes + 4, size, &err);
    CHECK_STR("test", cn_json_text(json, "queue"));
    const char *body = (const char *)event->bytes + 4 + size;
    size_t used = 0;
    const struct cn_json *each = cn_json_find(json, "numbers")->first;
    while (each) { /* sent, attempts, type, size */
        const struct cn_json *attempts = each->next, *length = attempts->next->next;
        CHECK_INT(1, length->integer);
        text[used++] = *body++;
        text[used++] = (char)('0' + attempts->integer);
        each = length->next;
    }
    text[used] = 0;
    CHECK_INT(used / 2 * CN_QUEUE_ID_HEX, strlen(cn_json_text(json, "ids")));
    CHECK_INT((size_t)(body - (const char *)event->bytes), event->size);
    cn_json_free(json);
    return text;
}

static void answer(const struct cn_background_answer *how)
{
    CHECK(lane.count > 0);
    struct cn_background_event event = lane.events[0];
    memmove(lane.events, lane.events + 1, --lane.count * sizeof(event));
    event.done(event.data, how);
    cn_free(event.bytes);
}

static void acknowledge(void)
{
    const uint8_t verdicts[5 * EVENTS_MAX] = {0};
    size_t count = strlen(next_event()) / 2;
    answer(&(struct cn_background_answer){.result = verdicts, .result_size = 5 * count});
}

TEST(consumers, a_batch_that_is_answered_is_gone)
{
    struct cn_disk *disk = open_lane();
    send_texts("abc");
    cn_consumers_update(&lane.background);
    CHECK_STR("a1b1", next_event());
    CHECK_INT(1, lane.count); /* max_concurrency: the third waits */
    acknowledge();
    CHECK_STR("c1", next_event());
    acknowledge();
    CHECK_INT(0, waiting());
    close_lane(disk);
}

TEST(consumers, a_verdict_is_of_one_message)
{
    struct cn_disk *disk = open_lane();
    uint8_t verdicts[10] = {0, 0xff, 0xff, 0xff, 0xff, /* acknowledged */
                            1, 0,    0,    0,    0};   /* again, at once */
    send_texts("ab");
    cn_consumers_update(&lane.background);
    CHECK_STR("a1b1", next_event());
    answer(&(struct cn_background_answer){.result = verdicts, .result_size = sizeof(verdicts)});
    CHECK_STR("b2", next_event());
    acknowledge();
    CHECK_INT(0, waiting());
    close_lane(disk);
}

/* N4. The second message's verdict is that of an answer which nobody sends. */
TEST(consumers, an_answer_that_is_not_understood_acknowledges_nothing)
{
    static const struct {
        size_t size;
        uint8_t second[5];
    } wrong[] = {
        {0, {0}},                          /* nothing: of no node of this release */
        {5, {0}},                          /* for one message of two */
        {9, {0}},                          /* cut off */
        {10, {2, 0, 0, 0, 0}},             /* no verdict that there is */
        {10, {1, 0xfe, 0xff, 0xff, 0xff}}, /* again in -2 s */
        {10, {1, 0xff, 0xff, 0xff, 0x7f}}, /* and in 68 years */
    };
    struct cn_disk *disk = open_lane();
    lane.deployment->scripts[0]->consumers[0].max_retries = CN_ARRAY_COUNT(wrong);
    send_texts("ab");
    cn_consumers_update(&lane.background);
    for (size_t i = 0; i < CN_ARRAY_COUNT(wrong); i++) {
        uint8_t verdicts[10] = {0};
        char expected[8];
        snprintf(expected, sizeof(expected), "a%zub%zu", i + 1, i + 1);
        CHECK_STR(expected, next_event());
        memcpy(verdicts + 5, wrong[i].second, 5);
        answer(&(struct cn_background_answer){.result = verdicts, .result_size = wrong[i].size});
        CHECK_INT(2, waiting());
    }
    CHECK_INT(2, waiting());
    (void)next_event();
    acknowledge();
    CHECK_INT(0, waiting());
    close_lane(disk);
}

TEST(consumers, a_handler_that_throws_gets_all_of_them_again)
{
    struct cn_disk *disk = open_lane();
    struct cn_background_answer thrown = {.faults = CN_FAULT_REMOTE};
    cn_err_set(&thrown.err, CN_EINVALID, "no");
    send_texts("ab");
    cn_consumers_update(&lane.background);
    CHECK_STR("a1b1", next_event());
    answer(&thrown);
    CHECK_STR("a2b2", next_event());
    acknowledge();
    CHECK_INT(0, waiting());
    close_lane(disk);
}

/* An event that was cut off by the end of its instance is no attempt. */
TEST(consumers, what_was_cut_off_was_not_tried)
{
    struct cn_disk *disk = open_lane();
    struct cn_background_answer cut = {0};
    cn_err_set(&cut.err, CN_ECLOSED, "the server is stopping");
    send_texts("ab");
    cn_consumers_update(&lane.background);
    CHECK_STR("a1b1", next_event());
    answer(&cut);
    CHECK_STR("a1b1", next_event());
    acknowledge();
    CHECK_INT(0, waiting());
    close_lane(disk);
}

TEST(consumers, a_lane_that_drains_gives_messages_back)
{
    struct cn_disk *disk = open_lane();
    cn_consumers_update(&lane.background); /* its request is at the queue now */
    lane.draining = true;
    send_texts("ab");
    CHECK_INT(2, waiting());
    CHECK_INT(0, lane.count);
    lane.draining = false;
    cn_consumers_update(&lane.background);
    CHECK_STR("a1b1", next_event()); /* not held until a lease ends, and never tried */
    acknowledge();
    CHECK_INT(0, waiting());
    close_lane(disk);
}

/* The queue is loaded anew, as when another node takes it over: it knows no leases. */
static void reload_queue(void)
{
    size_t cursor = 0;
    const struct cn_map_entry *entry;
    CHECK(cn_map_next(&rig.lane.objects, &cursor, &entry));
    struct cn_object *object = entry->value;
    cn_object_enter(object);
    cn_object_reset(object, CN_FAULT_RESET, UV_EIO, "for the test");
    cn_object_leave(object);
    cn_object_lane_sweep(&rig.lane);
}

/* N2: nobody else has had the messages by then. */
TEST(consumers, a_verdict_counts_when_the_queue_was_loaded_anew_meanwhile)
{
    struct cn_disk *disk = open_lane();
    uint8_t verdicts[10] = {0, 0xff, 0xff, 0xff, 0xff, /* acknowledged */
                            1, 0,    0,    0,    0};   /* again */
    send_texts("abcd");
    cn_consumers_update(&lane.background);
    CHECK_STR("a1b1", next_event());
    lane.draining = true; /* so that it does not ask again at once */
    reload_queue();
    CHECK_INT(4, waiting());
    answer(&(struct cn_background_answer){.result = verdicts, .result_size = sizeof(verdicts)});
    while (waiting() != 3)
        uv_run(&rig.loop, UV_RUN_NOWAIT);
    lane.draining = false;
    cn_consumers_update(&lane.background);
    CHECK_STR("b1c1", next_event()); /* it was never retried: that verdict was for a lease */
    acknowledge();
    CHECK_STR("d1", next_event());
    acknowledge();
    while (waiting() != 0)
        uv_run(&rig.loop, UV_RUN_NOWAIT);
    close_lane(disk);
}

/* N5: a queue whose commit was refused is reset, and would give the same batch again at once. */
TEST(consumers, after_a_batch_that_cannot_be_settled_the_lane_waits)
{
    struct cn_disk *disk = open_lane();
    send_texts("ab");
    cn_consumers_update(&lane.background);
    CHECK_STR("a1b1", next_event());
    cn_log_fail(cn_store_log(rig.store), "for the test");
    int count = 0; /* with the one that was asked for before the first verdict had failed */
    for (int i = 0; i < 1000; i++) {
        for (; lane.count; count++)
            acknowledge();
        uv_run(&rig.loop, UV_RUN_NOWAIT);
    }
    CHECK(count <= 2);
    service_rig_hurry(&rig, 1000);
    CHECK_STR("a1b1", next_event());
    acknowledge();
    close_lane(disk);
}

/* --- N3: other nodes ------------------------------------------------------------------------- */

static size_t two_others(void *data, struct cn_other items[], size_t max)
{
    (void)data;
    CHECK(max >= 2);
    items[0] = (struct cn_other){.disk = 5, .name = "five"};
    items[1] = (struct cn_other){.disk = 6, .name = "six"};
    return 2;
}

static const struct cn_node_calls others = {.list = two_others};

/* Where the batches are that run: "0 5 6", in the order in which they were sent. */
static const char *places(size_t count)
{
    static char text[64];
    size_t used = 0;
    while (lane.count < count) {
        lane.arrived = false;
        service_rig_until(&rig, &lane.arrived);
    }
    for (size_t i = 0; i < lane.count; i++)
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%d", i ? " " : "",
                                 (int)lane.events[i].at.disk);
    return text;
}

static struct cn_disk *open_spread(unsigned max_concurrency)
{
    struct cn_disk *disk = open_lane();
    rig.services.others = &others;
    lane.deployment->scripts[0]->consumers[0].batch_count = 1;
    lane.deployment->scripts[0]->consumers[0].max_concurrency = max_concurrency;
    cn_consumers_update(&lane.background);
    return disk;
}

TEST(consumers, batches_go_where_the_fewest_run_and_here_first)
{
    struct cn_disk *disk = open_spread(8);
    send_texts("abcdefg");
    CHECK_STR("0 5 6 0 5 6 0", places(7));
    acknowledge(); /* of one here */
    acknowledge(); /* of one at 5 */
    send_texts("hi");
    CHECK_STR("6 0 5 6 0 5 0", places(7)); /* 5 has the fewest, then all have the same */
    while (lane.count)
        acknowledge();
    while (waiting() != 0)
        uv_run(&rig.loop, UV_RUN_NOWAIT);
    close_lane(disk);
}

/* N4 */
TEST(consumers, nothing_from_another_node_acknowledges_nothing)
{
    struct cn_disk *disk = open_spread(2);
    send_texts("ab");
    CHECK_STR("0 5", places(2));
    acknowledge();
    CHECK_STR("5", places(1));
    CHECK_STR("b1", next_event());
    answer(&(struct cn_background_answer){0});
    CHECK_STR("0", places(1));
    CHECK_STR("b2", next_event());
    acknowledge();
    while (waiting() != 0)
        uv_run(&rig.loop, UV_RUN_NOWAIT);
    close_lane(disk);
}

TEST(consumers, one_batch_after_the_other_stays_here)
{
    struct cn_disk *disk = open_spread(8);
    for (int i = 0; i < 5; i++) {
        send_texts("a");
        CHECK_STR("0", places(1));
        acknowledge();
    }
    close_lane(disk);
}

TEST(consumers, max_concurrency_counts_batches_of_all_nodes)
{
    struct cn_disk *disk = open_spread(2);
    send_texts("abcd");
    CHECK_STR("0 5", places(2));
    CHECK_INT(4, waiting());
    CHECK_INT(2, lane.count);
    acknowledge();
    CHECK_STR("5 0", places(2));
    CHECK_INT(2, lane.count);
    while (waiting() != 0) {
        while (lane.count)
            acknowledge();
        uv_run(&rig.loop, UV_RUN_NOWAIT);
    }
    close_lane(disk);
}

/* B2 of worker/background.h: its node is lost. */
TEST(consumers, a_batch_whose_node_is_lost_comes_again_at_once_with_its_attempts)
{
    struct cn_disk *disk = open_spread(2);
    struct cn_background_answer lost = {.faults = CN_FAULT_RETRYABLE};
    cn_err_set(&lost.err, CN_ECLOSED, "Network connection lost.");
    send_texts("ab");
    CHECK_STR("0 5", places(2));
    acknowledge();
    CHECK_STR("b1", next_event());
    answer(&lost);
    CHECK_STR("b1", next_event());
    CHECK_STR("0", places(1));
    acknowledge();
    while (waiting() != 0)
        uv_run(&rig.loop, UV_RUN_NOWAIT);
    close_lane(disk);
}
