/* SPDX-License-Identifier: Apache-2.0 */
/* The class of queues without JavaScript: order, leases, delays, retention, purge, restart. */
#include "service/queue/queue.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "test/lib/service_rig.h"
#include "test/lib/simdisk.h"
#include "test/lib/storetest.h"
#include "test/lib/test.h"

static struct service_rig rig;

static struct cn_queue_metrics send_text(const char *text, int64_t delay_s)
{
    struct cn_queue_call *call = cn_queue_call_new(rig.ns, CN_QUEUE_SEND);
    cn_queue_add(call, text, strlen(text), CN_QUEUE_TEXT, delay_s);
    service_rig_call(&rig, &call->base);
    CHECK_INT(0, call->base.call.envelope.err.code);
    struct cn_queue_metrics metrics = call->metrics;
    cn_service_call_free(&call->base);
    return metrics;
}

/* What is there now, at most `max`. The caller frees it. */
static struct cn_queue_call *receive(size_t max, unsigned lease_ms)
{
    struct cn_queue_call *call = cn_queue_call_new(rig.ns, CN_QUEUE_RECEIVE);
    call->count_max = max;
    call->lease_ms = lease_ms;
    call->policy.max_retries = 1;
    service_rig_call(&rig, &call->base);
    CHECK_INT(0, call->base.call.envelope.err.code);
    return call;
}

/* "a1b2": the bodies, with their attempts. */
static const char *text_of(const struct cn_queue_call *call)
{
    static char text[256];
    size_t size = 0;
    for (size_t i = 0; i < call->count; i++) {
        const struct cn_queue_message *message = &call->messages[i];
        memcpy(text + size, call->bodies.data + message->offset, message->size);
        size += message->size;
        text[size++] = (char)('0' + message->attempts);
    }
    text[size] = 0;
    return text;
}

static void check_received(size_t max, unsigned lease_ms, const char *want)
{
    struct cn_queue_call *call = receive(max, lease_ms);
    CHECK_STR(want, text_of(call));
    cn_service_call_free(&call->base);
}

static size_t ack(const struct cn_queue_call *received, size_t index, bool retry, int64_t delay_s)
{
    struct cn_queue_call *call = cn_queue_call_new(rig.ns, CN_QUEUE_ACK);
    call->verdicts = cn_alloc_zero(sizeof(*call->verdicts));
    call->verdict_count = 1;
    call->verdicts[0] = (struct cn_queue_verdict){
        .retry = retry,
        .delay_s = delay_s,
        .row = received->messages[index].row,
        .attempts = received->messages[index].attempts,
    };
    service_rig_call(&rig, &call->base);
    size_t settled = call->settled;
    cn_service_call_free(&call->base);
    return settled;
}

static void settle_all(const struct cn_queue_call *received)
{
    struct cn_queue_call *call = cn_queue_call_new(rig.ns, CN_QUEUE_SETTLE);
    call->lease = received->lease;
    call->verdicts = cn_alloc_zero(received->count * sizeof(*call->verdicts));
    call->verdict_count = received->count;
    service_rig_call(&rig, &call->base);
    cn_service_call_free(&call->base);
}

/* Whether it is told to say them by the messages. */
static bool settle_without_verdicts(const struct cn_queue_call *received)
{
    struct cn_queue_call *call = cn_queue_call_new(rig.ns, CN_QUEUE_SETTLE);
    call->lease = received->lease;
    service_rig_call(&rig, &call->base);
    bool unknown = call->unknown;
    cn_service_call_free(&call->base);
    return unknown;
}

static struct cn_queue_metrics metrics(void)
{
    struct cn_queue_call *call = cn_queue_call_new(rig.ns, CN_QUEUE_METRICS);
    service_rig_call(&rig, &call->base);
    struct cn_queue_metrics result = call->metrics;
    cn_service_call_free(&call->base);
    return result;
}

static void simple(enum cn_queue_op op, int paused, int64_t retention_s)
{
    struct cn_queue_call *call = cn_queue_call_new(rig.ns, op);
    call->paused = paused;
    call->retention_s = retention_s;
    service_rig_call(&rig, &call->base);
    CHECK_INT(0, call->base.call.envelope.err.code);
    cn_service_call_free(&call->base);
}

static struct cn_disk *open_rig(void)
{
    struct cn_disk *disk = storetest_disk();
    service_rig_open(&rig, disk, &cn_queue_class, "$queue/test");
    return disk;
}

static void reopen(struct cn_disk *disk)
{
    service_rig_close(&rig);
    service_rig_open(&rig, disk, &cn_queue_class, "$queue/test");
}

TEST(queue, delivers_in_order_and_forgets_what_was_settled)
{
    open_rig();
    send_text("a", 0);
    send_text("b", 0);
    CHECK_INT(3, send_text("c", 0).bytes);
    struct cn_queue_call *first = receive(2, 60000);
    CHECK_STR("a1b1", text_of(first));
    check_received(5, 60000, "c1");
    settle_all(first);
    CHECK_INT(1, metrics().count);
    settle_all(first); /* twice is harmless */
    CHECK_INT(1, metrics().count);
    cn_service_call_free(&first->base);
    service_rig_close(&rig);
    cn_disk_system_free(rig.disk);
}

TEST(queue, a_lease_that_ends_is_a_retry_and_its_ack_comes_too_late)
{
    open_rig();
    send_text("a", 0);
    struct cn_queue_call *first = receive(5, 1000);
    CHECK_STR("a1", text_of(first));
    check_received(5, 1000, "");
    service_rig_advance(&rig, 1500);
    struct cn_queue_call *second = receive(5, 1000);
    CHECK_STR("a2", text_of(second));
    CHECK_INT(0, ack(first, 0, false, -1));
    CHECK_STR(first->messages[0].id, second->messages[0].id);
    CHECK_INT(1, ack(second, 0, false, -1));
    CHECK_INT(0, metrics().count);
    CHECK_INT(0, metrics().bytes);
    cn_service_call_free(&first->base);
    cn_service_call_free(&second->base);
    service_rig_close(&rig);
    cn_disk_system_free(rig.disk);
}

TEST(queue, a_retry_waits_for_its_delay_and_the_last_one_drops)
{
    open_rig();
    send_text("a", 0);
    struct cn_queue_call *first = receive(5, 60000);
    CHECK_INT(1, ack(first, 0, true, 10));
    check_received(5, 60000, "");
    service_rig_advance(&rig, 10000);
    struct cn_queue_call *second = receive(5, 60000);
    CHECK_STR("a2", text_of(second));
    CHECK_INT(1, ack(second, 0, true, 0));
    CHECK_INT(0, metrics().count);
    CHECK_INT(1, metrics().dropped);
    cn_service_call_free(&first->base);
    cn_service_call_free(&second->base);
    service_rig_close(&rig);
    cn_disk_system_free(rig.disk);
}

TEST(queue, a_restart_delivers_what_was_not_settled)
{
    struct cn_disk *disk = open_rig();
    send_text("a", 0);
    send_text("b", 0);
    send_text("late", 100);
    struct cn_queue_call *first = receive(2, 60000);
    CHECK_INT(1, ack(first, 1, false, -1));
    reopen(disk);
    CHECK_INT(2, metrics().count);
    check_received(5, 60000, "a1");
    service_rig_advance(&rig, 100000);
    check_received(5, 60000, "a2late1"); /* the lease of the other has ended too */
    cn_service_call_free(&first->base);
    service_rig_close(&rig);
    cn_disk_system_free(rig.disk);
}

/* Q4 */
TEST(queue, no_verdict_acknowledges_nothing)
{
    struct cn_disk *disk = open_rig();
    send_text("a", 0);
    send_text("b", 0);
    struct cn_queue_call *received = receive(10, 60000);
    CHECK(settle_without_verdicts(received));
    CHECK_INT(2, metrics().count);
    CHECK_INT(2, metrics().leased);
    CHECK_INT(1, ack(received, 1, false, -1)); /* by the messages they still can be */
    CHECK_INT(1, metrics().count);
    cn_service_call_free(&received->base);
    service_rig_close(&rig);
    cn_disk_system_free(disk);
}

/* Q2: leases were counted from 1 whenever the queue was loaded, so a verdict that came late, from a
 * node that had the batch of before, acknowledged messages of another batch. */
TEST(queue, a_verdict_that_comes_late_is_for_no_other_batch)
{
    struct cn_disk *disk = open_rig();
    send_text("a", 0);
    struct cn_queue_call *before = receive(1, 60000);
    reopen(disk);
    struct cn_queue_call *after = receive(1, 60000);
    CHECK_INT(1, after->count);
    CHECK(before->lease && before->lease != after->lease);
    settle_all(before);
    CHECK_INT(1, metrics().count);
    settle_all(after);
    CHECK_INT(0, metrics().count);
    cn_service_call_free(&before->base);
    cn_service_call_free(&after->base);
    service_rig_close(&rig);
    cn_disk_system_free(rig.disk);
}

/* Sends "000", "001", ... up to `count`. */
static void send_numbers(int count)
{
    for (int i = 0; i < count; i += 100) {
        struct cn_queue_call *call = cn_queue_call_new(rig.ns, CN_QUEUE_SEND);
        for (int k = i; k < i + 100 && k < count; k++) {
            char text[16];
            snprintf(text, sizeof(text), "%04d", k);
            cn_queue_add(call, text, 4, CN_QUEUE_TEXT, 0);
        }
        service_rig_call(&rig, &call->base);
        cn_service_call_free(&call->base);
    }
}

/* The next `count` are those from `first` on, for the first time. */
static struct cn_queue_call *receive_numbers(int first, size_t count)
{
    struct cn_queue_call *call = receive(count, 60000);
    CHECK_INT((int64_t)count, (int64_t)call->count);
    for (size_t i = 0; i < count; i++) {
        char text[16];
        snprintf(text, sizeof(text), "%04d", first + (int)i);
        CHECK(memcmp(call->bodies.data + call->messages[i].offset, text, 4) == 0);
    }
    return call;
}

/* Batches that are acknowledged in order are not removed one by one; nothing may show it. */
TEST(queue, what_was_acknowledged_in_order_stays_settled_over_restarts)
{
    struct cn_disk *disk = open_rig();
    send_numbers(3000);
    int next = 0;
    for (int round = 0; round < 13; round++) {
        for (int i = 0; i < 2; i++, next += 100) {
            struct cn_queue_call *call = receive_numbers(next, 100);
            settle_all(call);
            cn_service_call_free(&call->base);
        }
        CHECK_INT(3000 - next, (int64_t)metrics().count);
        CHECK_INT((3000 - next) * 4, (int64_t)metrics().bytes);
        if (round % 3 == 0)
            reopen(disk);
    }
    /* out of order: the second of three, a retry in the first, then the third */
    struct cn_queue_call *one = receive_numbers(next, 100), *two = receive_numbers(next + 100, 100),
                         *three = receive_numbers(next + 200, 100);
    settle_all(two);
    CHECK_INT(1, (int64_t)ack(one, 7, true, 0)); /* to the end of the queue */
    settle_all(three);
    CHECK_INT(99 + 1 + 100, (int64_t)metrics().count);
    settle_all(one);
    CHECK_INT(1 + 100, (int64_t)metrics().count);
    cn_service_call_free(&two->base);
    cn_service_call_free(&three->base);
    reopen(disk);
    struct cn_queue_call *rest = receive_numbers(next + 300, 100);
    settle_all(rest);
    cn_service_call_free(&rest->base);
    rest = receive(5, 60000);
    CHECK_INT(1, (int64_t)rest->count);
    CHECK_STR(one->messages[7].id, rest->messages[0].id);
    settle_all(rest);
    CHECK_INT(0, (int64_t)metrics().count);
    CHECK_INT(0, (int64_t)metrics().bytes);
    CHECK_INT(0, metrics().oldest_ms);
    cn_service_call_free(&one->base);
    cn_service_call_free(&rest->base);
    reopen(disk);
    CHECK_INT(0, (int64_t)metrics().count);
    send_numbers(3);
    check_received(5, 60000, "000010001100021");
    service_rig_close(&rig);
    cn_disk_system_free(rig.disk);
}

TEST(queue, pause_retention_and_purge)
{
    struct cn_disk *disk = open_rig();
    send_text("a", 0);
    simple(CN_QUEUE_CONFIGURE, 1, -1);
    check_received(5, 60000, "");
    reopen(disk); /* it stays paused */
    check_received(5, 60000, "");
    simple(CN_QUEUE_CONFIGURE, 0, 60);
    service_rig_advance(&rig, 59000);
    send_text("b", 0);
    service_rig_advance(&rig, 2000);
    check_received(5, 60000, "b1");
    CHECK_INT(1, metrics().count);
    send_text("c", 50);
    simple(CN_QUEUE_PURGE, -1, -1);
    CHECK_INT(0, metrics().count);
    CHECK_INT(0, metrics().bytes);
    CHECK_INT(60, metrics().retention_s);
    send_text("d", 0);
    check_received(5, 60000, "d1");
    reopen(disk);
    check_received(5, 60000, "d1");
    service_rig_close(&rig);
    cn_disk_system_free(rig.disk);
}

TEST(queue, messages_that_nobody_fetches_expire)
{
    open_rig();
    for (int i = 0; i < 3; i++)
        send_text("x", 0);
    CHECK_INT(3, metrics().count);
    service_rig_advance(&rig, (int64_t)CN_QUEUE_RETENTION_DEFAULT_S * 1000 + 1);
    CHECK_INT(0, metrics().count);
    service_rig_close(&rig);
    cn_disk_system_free(rig.disk);
}

TEST(queue, a_dead_letter_leaves_only_when_it_has_arrived)
{
    open_rig();
    struct cn_namespace *dead;
    struct cn_err err;
    CHECK_INT(0, cn_node_namespace(rig.node, "$queue/dead", &dead, &err));
    send_text("a", 0);
    send_text("b", 0);
    struct cn_queue_call *call = cn_queue_call_new(rig.ns, CN_QUEUE_RECEIVE);
    call->count_max = 5;
    call->lease_ms = 60000;
    call->policy.dead_letters = dead;
    service_rig_call(&rig, &call->base);
    CHECK_STR("a1b1", text_of(call));
    CHECK_INT(1, ack(call, 0, true, 0)); /* no retry is left to it */
    cn_service_call_free(&call->base);
    for (int i = 0; i < 10000 && metrics().count != 1; i++)
        service_rig_advance(&rig, 0); /* until the other queue has answered */
    CHECK_INT(1, metrics().count);
    struct cn_namespace *work = rig.ns;
    rig.ns = dead;
    CHECK_INT(1, metrics().count);
    check_received(5, 60000, "a1");
    rig.ns = work;
    service_rig_close(&rig);
    cn_disk_system_free(rig.disk);
}

static struct cn_object *queue_object(void)
{
    size_t cursor = 0;
    const struct cn_map_entry *entry;
    while (cn_map_next(&rig.lane.objects, &cursor, &entry)) {
        struct cn_object *object = entry->value;
        if (object->ns == rig.ns)
            return object;
    }
    return NULL;
}

static void on_answered(struct cn_service_call *call)
{
    (*(int *)call->call.envelope.data)++;
    cn_service_call_free(call);
}

/* Dead letters are under way when their queue is emptied: what comes of them is not counted again
 * (Q1). A count of -1 was stored, and the server span for ever after a restart. */
TEST(queue, Q1_a_purge_with_dead_letters_under_way_counts_nothing_twice)
{
    struct cn_disk *disk = open_rig();
    struct cn_namespace *dead;
    struct cn_err err;
    CHECK_INT(0, cn_node_namespace(rig.node, "$queue/dead", &dead, &err));
    send_text("a", 0);
    struct cn_queue_call *received = cn_queue_call_new(rig.ns, CN_QUEUE_RECEIVE);
    received->count_max = 5;
    received->lease_ms = 60000;
    received->policy.dead_letters = dead;
    service_rig_call(&rig, &received->base);
    CHECK_STR("a1", text_of(received));
    /* Both are there before the other queue can answer. */
    int answered = 0;
    struct cn_queue_call *failed = cn_queue_call_new(rig.ns, CN_QUEUE_ACK);
    failed->verdicts = cn_alloc_zero(sizeof(*failed->verdicts));
    failed->verdict_count = 1;
    failed->verdicts[0] =
        (struct cn_queue_verdict){.retry = true, .row = received->messages[0].row, .attempts = 1};
    struct cn_queue_call *purge = cn_queue_call_new(rig.ns, CN_QUEUE_PURGE);
    failed->base.call.envelope.data = purge->base.call.envelope.data = &answered;
    cn_service_call_send(&failed->base, &rig.lane, on_answered);
    cn_service_call_send(&purge->base, &rig.lane, on_answered);
    cn_service_call_free(&received->base);
    while (answered < 2 || queue_object()->holds)
        service_rig_advance(&rig, 0);
    CHECK_INT(0, metrics().count);
    CHECK_INT(0, metrics().bytes);
    send_text("b", 0);
    reopen(disk);
    CHECK_INT(1, metrics().count);
    CHECK_INT(1, metrics().bytes);
    check_received(5, 60000, "b1");
    service_rig_close(&rig);
    cn_disk_system_free(rig.disk);
}

TEST(queue, Q2_a_queue_whose_stored_counts_are_wrong_counts_anew)
{
    struct cn_disk *disk = open_rig();
    struct cn_err err;
    send_text("a", 0);
    send_text("bc", 0);
    send_text("def", 10);
    struct cn_object *object = queue_object();
    cn_object_enter(object);
    CHECK_INT(0, cn_database_exec(cn_object_database(object, &err),
                                  "UPDATE state SET ready = -1, bytes = -4", &err));
    cn_object_leave(object);
    reopen(disk);
    CHECK_INT(3, metrics().count);
    CHECK_INT(6, metrics().bytes);
    check_received(5, 60000, "a1bc1");
    service_rig_close(&rig);
    cn_disk_system_free(rig.disk);
}

/* All that a waiting receive is first given has expired: it goes on with what it has. */
TEST(queue, a_receive_that_finds_only_expired_messages_waits_on)
{
    open_rig();
    for (int i = 0; i < 3; i++)
        send_text("old", 0);
    rig.wall_ms += 345600 * 1000 + 1;
    int answered = 0;
    struct cn_queue_call *call = cn_queue_call_new(rig.ns, CN_QUEUE_RECEIVE);
    call->count_max = 5;
    call->lease_ms = 60000;
    call->waits = true;
    call->base.call.envelope.data = &answered;
    cn_service_call_send(&call->base, &rig.lane, on_answered);
    while (metrics().count)
        service_rig_advance(&rig, 0);
    CHECK_INT(0, answered);
    send_text("new", 0);
    while (!answered)
        service_rig_advance(&rig, 0);
    service_rig_close(&rig);
    cn_disk_system_free(rig.disk);
}

static void on_sent_away(struct cn_service_call *base)
{
    *(int *)base->call.envelope.data = base->call.envelope.err.code;
    CHECK(base->call.envelope.faults & CN_FAULT_RETRYABLE);
    cn_service_call_free(base);
}

static void on_stopped_shard(void *data, unsigned index, bool reached)
{
    (void)index;
    *(int *)data = reached ? 1 : -1;
}

TEST(queue, who_waits_for_messages_does_not_keep_a_shard_from_stopping)
{
    open_rig();
    int code = 0, stopped = 0;
    struct cn_queue_call *call = cn_queue_call_new(rig.ns, CN_QUEUE_RECEIVE);
    call->count_max = 5;
    call->lease_ms = 60000;
    call->waits = true;
    call->base.call.envelope.data = &code;
    cn_service_call_send(&call->base, &rig.lane, on_sent_away);
    CHECK_INT(0, metrics().count); /* it has come there */
    cn_shards_stop(rig.shards, 0, on_stopped_shard, &stopped);
    while (!stopped || !code)
        uv_run(&rig.loop, UV_RUN_ONCE);
    CHECK_INT(1, stopped);
    CHECK_INT(CN_ECLOSED, code);
    cn_shards_resume(rig.shards, 0, NULL, NULL);
    while (cn_shards_state(rig.shards, 0) != CN_SHARD_OPEN)
        uv_run(&rig.loop, UV_RUN_ONCE);
    send_text("new", 0);
    CHECK_INT(1, metrics().count);
    service_rig_close(&rig);
    cn_disk_system_free(rig.disk);
}
