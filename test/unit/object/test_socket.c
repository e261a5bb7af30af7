/* SPDX-License-Identifier: Apache-2.0 */
/* WebSockets of objects with a class in C: who keeps what, order, gates, bounds (K1 to K4). */
#include "object/socket.h"

#include "base/buf.h"
#include "base/diag.h"
#include "test/unit/object/shard_world.h"

enum { JOIN = 1, ACCEPT, COUNT, AUTO, TIMEOUT, RESET, RESET_ACCEPT, RESET_JOIN, MANUAL, CLOSE };

static struct cn_ws_end *joining; /* the end that JOIN and ACCEPT take */
static struct cn_text joining_tag;
static struct cn_buf seen; /* what the class was told: "m:hello c1000:bye" */
static struct cn_call *parked;
static bool park;       /* keep the next message's call, */
static bool park_close; /* or that of the next close */

static int room_create(struct cn_object *object, void *class_data, void **instance,
                       struct cn_err *err)
{
    (void)object, (void)err;
    ((struct world *)class_data)->created++;
    *instance = class_data;
    return 0;
}

static void taken_back(struct cn_call *call)
{
    CHECK(call == parked);
    parked = NULL;
}

static void count_one(struct cn_object_socket *socket, void *data)
{
    (void)socket;
    (*(intptr_t *)data)++;
}

static intptr_t count_listed(struct cn_object *object)
{
    intptr_t count = 0;
    cn_object_socket_each(object, NULL, count_one, &count);
    return count;
}

/* K6: it is listed until here, though the answer has not left yet. */
static void reply_close(struct cn_object *object, struct cn_call *call, bool hibernatable)
{
    intptr_t listed = count_listed(object);
    cn_call_reply(call, NULL);
    CHECK_INT(listed - hibernatable, count_listed(object));
}

static void deliver_event(struct cn_object *object, struct cn_call *call)
{
    struct cn_socket_event *event = call->payload;
    if (!event->socket) {
        cn_call_reply(call, NULL);
        return;
    }
    struct cn_ws_item *item = event->item;
    if (seen.size)
        cn_buf_append_byte(&seen, ' ');
    if (event->kind == CN_SOCKET_MESSAGE)
        cn_buf_printf(&seen, "m:%.*s", (int)item->message->size, (char *)item->message->bytes);
    else if (event->kind == CN_SOCKET_ERROR)
        cn_buf_printf(&seen, "e:%s", item->close.error);
    else
        cn_buf_printf(&seen, "c%u", item->close.code);
    CHECK(event->socket->set); /* K6: in its close event still */
    if ((event->kind == CN_SOCKET_MESSAGE && park) ||
        (event->kind == CN_SOCKET_CLOSE && park_close)) {
        park = park_close = false;
        parked = call;
        call->taken_back = taken_back;
        return;
    }
    if (event->kind == CN_SOCKET_MESSAGE)
        CHECK_INT(0, cn_object_socket_send(object, event->socket->end, item->message));
    if (event->kind == CN_SOCKET_CLOSE)
        reply_close(object, call, !event->socket->holder);
    else
        cn_call_reply(call, NULL);
}

static void room_deliver(struct cn_object *object, void *instance, struct cn_call *call)
{
    (void)instance;
    if (call->kind == CN_CALL_SOCKET) {
        deliver_event(object, call);
        return;
    }
    struct cn_text ping = {"ping", 4}, pong = {"pong", 4};
    intptr_t count = 0;
    switch ((intptr_t)call->payload) {
    case JOIN:
    case MANUAL: /* the program answers a close, or not */
    case ACCEPT:
        cn_object_socket_accept(object, joining, (intptr_t)call->payload != ACCEPT,
                                (intptr_t)call->payload != MANUAL, &joining_tag,
                                joining_tag.size ? 1 : 0);
        break;
    case CLOSE: {
        struct cn_ws_close close = {1000, true, "", 0, NULL};
        cn_object_socket_close(object, joining, &close);
        break;
    }
    case COUNT:
        cn_object_socket_each(object, joining_tag.size ? &joining_tag : NULL, count_one, &count);
        break;
    case AUTO:
        cn_object_socket_set_auto_response(object, &ping, &pong);
        break;
    case TIMEOUT:
        cn_object_socket_set_event_timeout(object, 1);
        break;
    case RESET_ACCEPT:
    case RESET_JOIN:
        cn_object_reset(object, CN_FAULT_RESET, CN_EABORTED, "reset by the test");
        CHECK(!cn_object_socket_accept(object, joining, (intptr_t)call->payload == RESET_JOIN, true,
                                       NULL, 0));
        CHECK_INT(0, object->sockets);
        return;
    case RESET:
        cn_object_reset(object, CN_FAULT_RESET, CN_EABORTED, "reset by the test");
        return;
    }
    cn_call_reply(call, (void *)count);
}

static void room_destroy(struct cn_object *object, void *instance)
{
    (void)object;
    ((struct world *)instance)->destroyed++;
}

static const struct cn_class room = {
    .create = room_create, .deliver = room_deliver, .destroy = room_destroy};

/* --- the client's side ------------------------------------------------------------------------ */

struct client {
    struct cn_ws_end *end;
    struct cn_buf got;
    bool held, gone;
};

static void on_ready(struct cn_ws_end *end)
{
    struct client *client = end->owner;
    struct cn_ws_item *item;
    while ((item = cn_ws_end_take(end))) {
        if (client->got.size)
            cn_buf_append_byte(&client->got, ' ');
        if (item->message)
            cn_buf_printf(&client->got, "m:%.*s", (int)item->message->size,
                          (char *)item->message->bytes);
        else
            cn_buf_printf(&client->got, "c%u", item->close.code);
        cn_ws_item_free(item);
    }
}

static void on_hold(struct cn_ws_end *end, bool hold)
{
    ((struct client *)end->owner)->held = hold;
}

static void on_gone(struct cn_ws_end *end)
{
    ((struct client *)end->owner)->gone = true;
}

static const struct cn_ws_end_ops client_ops = {on_ready, on_hold, on_gone};

static void join(struct world *world, struct client *client, int how)
{
    *client = (struct client){0};
    cn_ws_pair_new(&client->end, &joining);
    cn_ws_end_claim(client->end, &client_ops, client);
    (void)ask(world, "room", how);
}

static void say(struct client *client, const char *text)
{
    struct cn_ws_message *message = cn_ws_message_new(true, text, strlen(text));
    CHECK_INT(0, cn_ws_end_send(client->end, message));
    cn_ws_message_unref(message);
}

static void hang_up(struct client *client)
{
    cn_ws_end_release(client->end);
    cn_buf_fini(&client->got);
}

/* Some of it is done by threads of the store: by the clock, not by turns of the loop. */
#define UNTIL(world, condition)                                           \
    do {                                                                  \
        for (uint64_t end_ = uv_hrtime() + 30000000000u; !(condition);) { \
            CHECK(uv_hrtime() < end_);                                    \
            uv_run(&(world)->loop, UV_RUN_NOWAIT);                        \
        }                                                                 \
    } while (0)
#define SEEN(text) (strcmp(cn_buf_text(&seen), text) == 0)
#define GOT(client, text) (strcmp(cn_buf_text(&(client)->got), text) == 0)

static void begin(struct world *world)
{
    world_open(world, test_dir(), &room);
    cn_buf_clear(&seen);
    joining_tag = (struct cn_text){0};
    parked = NULL;
    park = park_close = false;
}

static void evict(struct world *world)
{
    int before = world->destroyed;
    UNTIL(world, (cn_object_lane_evict(&world->lane, 10), world->destroyed > before));
}

/* A client whose object is busy with what it said. */
static void begin_parked(struct world *world, struct client *a)
{
    begin(world);
    join(world, a, JOIN);
    park = true;
    say(a, "slow");
    UNTIL(world, parked);
}

TEST(object_socket, an_evicted_object_keeps_its_sockets_and_wakes_up)
{
    struct world world;
    struct client a, b;
    begin(&world);
    joining_tag = (struct cn_text){"red", 3};
    join(&world, &a, JOIN);
    joining_tag = (struct cn_text){0};
    join(&world, &b, JOIN);
    evict(&world);
    say(&a, "one");
    say(&a, "two");
    UNTIL(&world, GOT(&a, "m:one m:two"));
    CHECK_INT(2, world.created);
    CHECK_INT(2, ask(&world, "room", COUNT));
    joining_tag = (struct cn_text){"red", 3};
    CHECK_INT(1, ask(&world, "room", COUNT));
    CHECK(b.got.size == 0);
    hang_up(&a);
    UNTIL(&world, SEEN("m:one m:two c1006"));
    CHECK_INT(0, ask(&world, "room", COUNT));
    hang_up(&b);
    world_close(&world);
}

TEST(object_socket, DO_WS_8_one_object_has_40000_sockets)
{
    enum { MANY = 40000 };
    struct world world;
    begin(&world);
    struct client *clients = cn_alloc(MANY * sizeof(*clients));
    for (int i = 0; i < MANY; i++) {
        joining_tag = (struct cn_text){i % 1000 ? "most" : "few", i % 1000 ? 4 : 3};
        join(&world, &clients[i], JOIN);
    }
    joining_tag = (struct cn_text){0};
    CHECK_INT(MANY, ask(&world, "room", COUNT));
    joining_tag = (struct cn_text){"few", 3};
    CHECK_INT(MANY / 1000, ask(&world, "room", COUNT));
    evict(&world);
    say(&clients[MANY - 1], "last");
    UNTIL(&world, GOT(&clients[MANY - 1], "m:last"));
    for (int i = 0; i < MANY; i++)
        hang_up(&clients[i]);
    joining_tag = (struct cn_text){0};
    while (ask(&world, "room", COUNT) > 0)
        uv_run(&world.loop, UV_RUN_NOWAIT);
    cn_free(clients);
    world_close(&world);
}

/* The turn of an object goes on after something in it has reset the object. */
TEST(object_socket, K5_a_reset_object_takes_no_socket)
{
    const int ways[] = {RESET_ACCEPT, RESET_JOIN};
    for (size_t i = 0; i < CN_ARRAY_COUNT(ways); i++) {
        struct world world;
        struct client a, b;
        begin(&world);
        join(&world, &b, ACCEPT);
        a = (struct client){0};
        cn_ws_pair_new(&a.end, &joining);
        cn_ws_end_claim(a.end, &client_ops, &a);
        struct answer *answer = post(&world, "room", ways[i]);
        run_until(&world, answer);
        CHECK_INT(CN_EABORTED, answer->call.envelope.err.code);
        cn_free(answer);
        UNTIL(&world, world.destroyed);
        CHECK(GOT(&a, "c1011"));
        CHECK(GOT(&b, "c1011"));
        CHECK(a.gone && b.gone);
        /* The next instance has nothing of it. */
        CHECK_INT(0, ask(&world, "room", COUNT));
        CHECK_INT(0, world.lane.socket_count);
        hang_up(&a);
        hang_up(&b);
        world_close(&world);
    }
}

/* A client has closed, and the program does not answer: the socket is not listed any more, whether
 * the object was awake or asleep; a close may still be sent. */
TEST(object_socket, K6_a_socket_leaves_the_list_with_its_close_event)
{
    struct world world;
    for (int asleep = 0; asleep < 2; asleep++) {
        struct client a, b;
        begin(&world);
        joining_tag = (struct cn_text){"red", 3};
        join(&world, &b, MANUAL);
        join(&world, &a, MANUAL);
        struct cn_ws_end *closing = joining;
        if (asleep)
            evict(&world);
        CHECK_INT(2, world.lane.socket_count);
        struct cn_ws_close close = {3000, true, "bye", 3, NULL};
        cn_ws_end_close(a.end, &close);
        UNTIL(&world, SEEN("c3000"));
        joining_tag = (struct cn_text){0};
        UNTIL(&world, ask(&world, "room", COUNT) == 1);
        joining_tag = (struct cn_text){"red", 3};
        CHECK_INT(1, ask(&world, "room", COUNT));
        CHECK_INT(1, world.lane.socket_count);
        CHECK(!a.gone && a.got.size == 0); /* the connection is still there */
        evict(&world);
        CHECK_INT(1, world.lane.hibernated_count);
        if (asleep) {
            joining = closing;
            (void)ask(&world, "room", CLOSE);
            UNTIL(&world, GOT(&a, "c1000"));
            UNTIL(&world, a.gone);
        }
        hang_up(&a);
        hang_up(&b);
        joining_tag = (struct cn_text){0};
        UNTIL(&world, ask(&world, "room", COUNT) == 0);
        CHECK_INT(0, world.lane.socket_count);
        world_close(&world);
    }
}

/* The class goes on in its close event after its turn. */
TEST(object_socket, K6_a_socket_is_not_listed_while_its_close_event_waits_for_something)
{
    struct world world;
    struct client a, b;
    begin(&world);
    join(&world, &b, MANUAL);
    join(&world, &a, MANUAL);
    park_close = true;
    struct cn_ws_close close = {3000, true, "bye", 3, NULL};
    cn_ws_end_close(a.end, &close);
    UNTIL(&world, parked);
    CHECK_INT(1, ask(&world, "room", COUNT));
    CHECK(((struct cn_socket_event *)parked->payload)->socket->set);
    struct cn_object *object = parked->object;
    cn_object_enter(object);
    cn_call_reply(parked, NULL);
    cn_object_leave(object);
    parked = NULL;
    CHECK_INT(1, ask(&world, "room", COUNT));
    hang_up(&a);
    hang_up(&b);
    UNTIL(&world, ask(&world, "room", COUNT) == 0);
    world_close(&world);
}

TEST(object_socket, K6_a_lane_that_stops_lets_go_of_those_that_have_left)
{
    struct world world;
    struct client a;
    begin(&world);
    join(&world, &a, MANUAL);
    struct cn_ws_close close = {3000, true, "bye", 3, NULL};
    cn_ws_end_close(a.end, &close);
    UNTIL(&world, SEEN("c3000"));
    UNTIL(&world, ask(&world, "room", COUNT) == 0);
    world_close(&world);
    CHECK(a.gone);
    hang_up(&a);
}

TEST(object_socket, K1_events_of_one_socket_come_one_at_a_time)
{
    struct world world;
    struct client a, b;
    begin(&world);
    join(&world, &a, JOIN);
    join(&world, &b, JOIN);
    park = true;
    say(&a, "slow");
    say(&a, "next");
    UNTIL(&world, parked);
    say(&b, "other");
    UNTIL(&world, GOT(&b, "m:other"));
    CHECK(SEEN("m:slow m:other"));
    cn_object_enter(parked->object);
    struct cn_object *object = parked->object;
    cn_call_reply(parked, NULL);
    cn_object_leave(object);
    UNTIL(&world, GOT(&a, "m:next"));
    hang_up(&a);
    hang_up(&b);
    world_close(&world);
}

TEST(object_socket, K2_a_close_is_told_once_and_answered)
{
    struct world world;
    struct client a;
    begin(&world);
    join(&world, &a, JOIN);
    struct cn_ws_close close = {4001, true, "bye", 3, NULL};
    say(&a, "last");
    cn_ws_end_close(a.end, &close);
    UNTIL(&world, a.gone);
    CHECK(SEEN("m:last c4001"));
    CHECK(GOT(&a, "m:last c4001"));
    CHECK_INT(0, ask(&world, "room", COUNT));
    hang_up(&a);
    join(&world, &a, JOIN);
    cn_ws_end_abort(a.end, "broken frame");
    UNTIL(&world, SEEN("m:last c4001 e:broken frame c1006"));
    UNTIL(&world, a.gone);
    hang_up(&a);
    world_close(&world);
}

TEST(object_socket, K3_a_client_is_held_back_while_its_object_is_busy)
{
    struct world world;
    struct client a;
    begin_parked(&world, &a);
    char *large = cn_alloc(100001);
    memset(large, 'x', 100000);
    large[100000] = 0;
    for (int i = 0; i < 3; i++)
        say(&a, large);
    CHECK(a.held);
    struct cn_object *object = parked->object;
    cn_object_enter(object);
    cn_call_reply(parked, NULL);
    cn_object_leave(object);
    UNTIL(&world, a.got.size > 300000);
    CHECK(!a.held);
    cn_free(large);
    hang_up(&a);
    world_close(&world);
}

TEST(object_socket, automatic_responses_do_not_wake)
{
    struct world world;
    struct client a;
    begin(&world);
    join(&world, &a, JOIN);
    (void)ask(&world, "room", AUTO);
    evict(&world);
    world.clock.wall_ms = 5000000;
    say(&a, "ping");
    UNTIL(&world, GOT(&a, "m:pong"));
    CHECK_INT(1, world.created);
    CHECK_INT(5000000, cn_object_socket_of(joining)->auto_response_ms);
    say(&a, "pinG");
    UNTIL(&world, GOT(&a, "m:pong m:pinG"));
    CHECK_INT(2, world.created);
    hang_up(&a);
    world_close(&world);
}

TEST(object_socket, an_event_past_its_time_is_given_up)
{
    struct world world;
    struct client a;
    cn_diag_setup(CN_DIAG_PRETTY, CN_DIAG_ERROR); /* the warning is expected */
    begin(&world);
    join(&world, &a, JOIN);
    (void)ask(&world, "room", TIMEOUT);
    park = true;
    say(&a, "slow");
    say(&a, "next");
    while (!GOT(&a, "m:next"))
        uv_run(&world.loop, UV_RUN_ONCE);
    CHECK(!parked);
    hang_up(&a);
    world_close(&world);
    cn_diag_setup(CN_DIAG_PRETTY, CN_DIAG_INFO);
}

TEST(object_socket, an_accepted_socket_keeps_its_object_and_ends_with_it)
{
    struct world world;
    struct client a, b;
    begin(&world);
    join(&world, &a, ACCEPT);
    join(&world, &b, JOIN);
    say(&a, "here");
    UNTIL(&world, GOT(&a, "m:here"));
    for (int i = 0; i < 10; i++) {
        cn_object_lane_evict(&world.lane, 10);
        uv_run(&world.loop, UV_RUN_NOWAIT);
    }
    CHECK_INT(0, world.destroyed);
    CHECK_INT(1, ask(&world, "room", COUNT)); /* it is not among the hibernatable ones */
    struct answer *reset = post(&world, "room", RESET);
    run_until(&world, reset);
    cn_free(reset);
    UNTIL(&world, GOT(&a, "m:here c1011") && a.gone);
    CHECK(!b.gone);
    say(&b, "still");
    UNTIL(&world, GOT(&b, "m:still")); /* with the next instance */
    CHECK_INT(2, world.created);
    hang_up(&a);
    hang_up(&b);
    world_close(&world);
}

TEST(object_socket, what_is_sent_to_a_socket_that_has_gone_is_dropped)
{
    struct world world;
    struct client a;
    begin_parked(&world, &a);
    struct cn_object *object = parked->object;
    struct cn_ws_end *end = joining;
    cn_object_enter(object);
    struct cn_ws_message *message = cn_ws_message_new(true, "late", 4);
    CHECK_INT(0, cn_object_socket_send(object, end, message));
    cn_call_reply(parked, NULL);
    hang_up(&a); /* before the turn's outputs leave */
    cn_object_leave(object);
    UNTIL(&world, SEEN("m:slow c1006"));
    CHECK_INT(1, message->refs);
    cn_ws_message_unref(message);
    CHECK_INT(0, ask(&world, "room", COUNT));
    world_close(&world);
}

TEST(object_socket, a_node_that_stops_lets_every_socket_go)
{
    struct world world;
    struct client a, b;
    begin(&world);
    join(&world, &a, JOIN);
    join(&world, &b, ACCEPT);
    say(&a, "on its way");
    world_close(&world);
    CHECK(a.gone && b.gone);
    CHECK(GOT(&b, "c1012"));
    hang_up(&a);
    hang_up(&b);
}

static void check(void *data)
{
    cn_object_lane_check(&((struct world *)data)->lane);
}

/* W3 of base/loop.h: by set, by tag, and of those that sleep. */
TEST(object_socket, are_counted)
{
    struct world world;
    begin(&world);
    struct client a = {0};
    join(&world, &a, JOIN);
    cn_object_lane_check(&world.lane);
    world.lane.socket_count--;
    CHECK_ASSERTS("lane->socket_count == count", check, &world);
    world.lane.socket_count++;
    evict(&world);
    cn_object_lane_check(&world.lane);
    world.lane.hibernated_count--;
    CHECK_ASSERTS("lane->hibernated_count == asleep", check, &world);
    world.lane.hibernated_count++;
    hang_up(&a);
    world_close(&world);
}

/* --- shards that go --------------------------------------------------------------------------- */

static void begin_shards(struct shard_world *own)
{
    shard_world_open(own, test_dir(), &room);
    cn_buf_clear(&seen);
    joining_tag = (struct cn_text){0};
    parked = NULL;
    park = park_close = false;
}

TEST(object_socket, S5_sockets_of_a_shard_that_is_closed_end_with_1012_awake_or_asleep)
{
    struct shard_world own;
    struct client asleep, busy, kept;
    begin_shards(&own);
    unsigned shard = shard_of_name(&own, "room");
    joining_tag = (struct cn_text){"red", 3};
    join(&own.world, &asleep, JOIN);
    evict(&own.world);
    CHECK_INT(1, own.world.lane.hibernated_count);
    shard_close(&own, shard);
    UNTIL(&own.world, GOT(&asleep, "c1012"));
    CHECK(own.world.lane.socket_count == 0 && own.world.lane.hibernated_count == 0);
    shard_open(&own, shard);
    await_state(&own, shard, CN_SHARD_OPEN);
    CHECK_INT(0, ask(&own.world, "room", COUNT));
    join(&own.world, &busy, JOIN);
    join(&own.world, &kept, ACCEPT);
    park = true;
    say(&busy, "slow");
    UNTIL(&own.world, parked);
    say(&busy, "behind");
    shard_close(&own, shard);
    CHECK(!parked); /* taken back */
    UNTIL(&own.world, GOT(&busy, "c1012"));
    UNTIL(&own.world, GOT(&kept, "c1012"));
    cn_object_lane_check(&own.world.lane);
    hang_up(&asleep);
    hang_up(&busy);
    hang_up(&kept);
    shard_world_close(&own);
}

TEST(object_socket, S7_what_comes_while_the_shard_is_stopped_waits_for_resume)
{
    struct shard_world own;
    struct client a;
    struct outcome stopped = {0}, resumed = {0};
    begin_shards(&own);
    unsigned shard = shard_of_name(&own, "room");
    join(&own.world, &a, JOIN);
    cn_shards_stop(own.world.shards, shard, on_outcome, &stopped);
    await_outcome(&own, &stopped);
    say(&a, "one");
    say(&a, "two");
    for (int i = 0; i < 3; i++) {
        uv_run(&own.world.loop, UV_RUN_NOWAIT);
        cn_object_socket_lane_tick(&own.world.lane);
    }
    CHECK(SEEN("") && a.got.size == 0);
    cn_shards_resume(own.world.shards, shard, on_outcome, &resumed);
    await_outcome(&own, &resumed);
    UNTIL(&own.world, GOT(&a, "m:one m:two"));
    CHECK(SEEN("m:one m:two"));
    hang_up(&a);
    shard_world_close(&own);
}
