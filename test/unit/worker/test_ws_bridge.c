/* SPDX-License-Identifier: Apache-2.0 */
/* Two ends on different lanes: nothing is under way until somebody reaches out, what is sent comes
 * in order and as it was, and whoever goes takes the other side with it. */
#include "worker/ws_bridge.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"
#include "net/ws_conn.h"
#include "test/lib/worker_rig.h"
#include "test/lib/ws_side.h"
#include "worker/websocket.h"

/* The object's lane and the script's. */
enum { Y, X };

static struct worker_rig rig;

/* --- who has an end --------------------------------------------------------------------------- */

static struct ws_side far, near; /* on X and on Y */

static void let_go(struct cn_lane *lane, void *data)
{
    (void)lane;
    struct ws_side *side = data;
    cn_ws_end_release(side->end);
    side->end = NULL;
}

struct saying {
    struct ws_side *side;
    const char *text;
};

static void say_on_lane(struct cn_lane *lane, void *data)
{
    (void)lane;
    struct saying *saying = data;
    ws_side_say(saying->side, saying->text);
}

static void say(struct ws_side *side, const char *text)
{
    struct saying saying = {side, text};
    worker_rig_run(&rig, side == &far ? X : Y, say_on_lane, &saying);
}

static void nothing(struct cn_lane *lane, void *data)
{
    (void)lane, (void)data;
}

/* What is in the mailboxes of both lanes has been delivered, and what that has caused. */
static void settle(void)
{
    for (int i = 0; i < 3; i++) {
        worker_rig_run(&rig, X, nothing, NULL);
        worker_rig_run(&rig, Y, nothing, NULL);
    }
}

/* --- a bridge --------------------------------------------------------------------------------- */

static uint64_t address; /* of the end on X that waits for a bridge */

/* An end with an owner, whose other end is on its way to Y. */
static void make_far(struct cn_lane *lane, void *data)
{
    (void)data;
    struct cn_ws_end *waits;
    char text[CN_SOCKET_ADDRESS_SIZE];
    cn_ws_pair_new(&far.end, &waits);
    CHECK(cn_websocket_number(lane, far.end));
    address = cn_websocket_number(lane, waits);
    cn_websocket_transit(lane, waits, text);
    cn_ws_end_claim(far.end, &ws_side_ops, &far);
}

static void make_near(struct cn_lane *lane, void *data)
{
    near.end = cn_ws_bridge_new(lane, data ? *(unsigned *)data : X, address);
    CHECK(near.end && near.end->state == CN_WS_END_NEW);
    CHECK(!cn_ws_bridge_of(near.end)); /* the bridge is behind the other end of its pair */
    CHECK(!cn_ws_bridge_attached(cn_ws_bridge_of(near.end->peer)));
}

static void claim_near(struct cn_lane *lane, void *data)
{
    (void)lane, (void)data;
    cn_ws_end_claim(near.end, &ws_side_ops, &near);
}

static void attach(struct cn_lane *lane, void *data)
{
    (void)lane, (void)data;
    struct cn_ws_bridge *bridge = cn_ws_bridge_of(near.end->peer);
    cn_ws_bridge_attach(bridge);
    CHECK(cn_ws_bridge_attached(bridge));
    cn_ws_bridge_attach(bridge); /* once is enough */
}

static void open_lanes(void)
{
    rig = (struct worker_rig){.objects = true};
    far = near = (struct ws_side){0};
    worker_rig_open(&rig, 2);
}

static void open_bridge(void)
{
    open_lanes();
    worker_rig_run(&rig, X, make_far, NULL);
    worker_rig_run(&rig, Y, make_near, NULL);
    worker_rig_run(&rig, Y, claim_near, NULL);
}

static void count_ends(struct cn_lane *lane, void *data)
{
    *(unsigned *)data = lane->ends.live;
}

static unsigned ends_of(unsigned lane)
{
    unsigned count;
    worker_rig_run(&rig, lane, count_ends, &count);
    return count;
}

/* Whoever still has an end lets go of it; nothing is left of the bridge on either lane. */
static void close_bridge(void)
{
    if (near.end)
        worker_rig_run(&rig, Y, let_go, &near);
    settle();
    if (far.end)
        worker_rig_run(&rig, X, let_go, &far);
    settle();
    CHECK_INT(0, ends_of(X));
    CHECK_INT(0, ends_of(Y));
    worker_rig_close(&rig);
}

static void check_waits(struct cn_lane *lane, void *data)
{
    struct cn_ws_end *end = cn_websocket_find(lane, (double)address);
    CHECK(end && (end->state == CN_WS_END_TRANSIT) == *(bool *)data);
    CHECK((cn_ws_bridge_of(end) != NULL) == !*(bool *)data);
    CHECK(*(bool *)data || cn_ws_bridge_attached(cn_ws_bridge_of(end)));
}

TEST(ws_bridge, nothing_is_under_way_before_somebody_reaches_out)
{
    bool waits = true;
    open_bridge();
    say(&far, "early");
    settle();
    CHECK_STR("", near.seen);
    worker_rig_run(&rig, X, check_waits, &waits);
    worker_rig_run(&rig, Y, attach, NULL);
    settle();
    waits = false;
    worker_rig_run(&rig, X, check_waits, &waits);
    CHECK_STR("m:early", near.seen);
    CHECK_STR("", far.seen);
    close_bridge();
}

TEST(ws_bridge, what_is_sent_reaches_out_and_comes_in_order_both_ways)
{
    open_bridge();
    say(&far, "one");
    say(&near, "hello"); /* attaches by itself */
    settle();
    say(&far, "#two");
    say(&far, "");
    say(&near, "again");
    settle();
    CHECK_STR("m:one b:#two m:", near.seen);
    CHECK_STR("m:hello m:again", far.seen);
    say(&near, "!");
    settle();
    CHECK_STR("m:hello m:again c4001:done:clean", far.seen);
    CHECK_INT(2, ends_of(X)); /* one half of the conversation is left */
    say(&far, "last");
    say(&far, "!");
    settle();
    CHECK_STR("m:one b:#two m: m:last c4001:done:clean", near.seen);
    CHECK_INT(1, ends_of(X)); /* both have closed: the bridge has gone by itself */
    CHECK_INT(0, ends_of(Y));
    close_bridge();
}

static void hold_back(struct cn_lane *lane, void *data)
{
    (void)lane;
    cn_ws_end_hold(near.end, *(bool *)data);
}

/* E4 of net/ws_end.h */
TEST(ws_bridge, a_wish_to_hold_back_crosses_it)
{
    bool hold = true;
    open_bridge();
    worker_rig_run(&rig, Y, attach, NULL);
    settle();
    worker_rig_run(&rig, Y, hold_back, &hold);
    settle();
    CHECK_STR("hold", far.seen);
    hold = false;
    worker_rig_run(&rig, Y, hold_back, &hold);
    settle();
    CHECK_STR("hold go", far.seen);
    close_bridge();
}

/* --- ends of it ------------------------------------------------------------------------------- */

#define LOST "c1006:WebSocket disconnected without sending Close frame.:cut"

/* E3 of net/ws_end.h, over the bridge: 1006 without an error. */
TEST(ws_bridge, who_lets_go_of_either_side_ends_the_other)
{
    for (int attached = 0; attached < 2; attached++) {
        open_bridge();
        if (attached)
            worker_rig_run(&rig, Y, attach, NULL);
        settle();
        worker_rig_run(&rig, Y, let_go, &near);
        settle();
        CHECK_STR(LOST, far.seen);
        close_bridge();
    }
    open_bridge();
    worker_rig_run(&rig, Y, attach, NULL);
    settle();
    worker_rig_run(&rig, X, let_go, &far);
    settle();
    CHECK_STR(LOST, near.seen);
    close_bridge();
}

TEST(ws_bridge, a_cut_arrives_with_its_error)
{
    open_bridge();
    worker_rig_run(&rig, Y, attach, NULL);
    settle();
    say(&far, "?");
    settle();
    CHECK_STR("c1006::cutwire", near.seen);
    close_bridge();
}

static void release_waiting(struct cn_lane *lane, void *data)
{
    (void)data;
    cn_ws_end_release(cn_websocket_find(lane, (double)address));
}

/* Nobody waits for an end that was let go before it was reached. */
TEST(ws_bridge, one_that_comes_too_late_is_told_so)
{
    open_bridge();
    worker_rig_run(&rig, X, release_waiting, NULL);
    worker_rig_run(&rig, Y, attach, NULL);
    settle();
    CHECK_STR(LOST, near.seen);
    CHECK_INT(0, ends_of(Y));
    close_bridge();
}

/* The number of an end is no key to one that somebody has: it must be on its way. */
TEST(ws_bridge, an_end_that_is_somebodys_is_not_attached_to)
{
    open_lanes();
    worker_rig_run(&rig, X, make_far, NULL);
    uint64_t waits = address;
    address = far.end->handle;
    worker_rig_run(&rig, Y, make_near, NULL);
    worker_rig_run(&rig, Y, claim_near, NULL);
    worker_rig_run(&rig, Y, attach, NULL);
    settle();
    CHECK_STR(LOST, near.seen);
    CHECK_STR("", far.seen);
    CHECK(far.end->ops == &ws_side_ops);
    address = waits;
    worker_rig_run(&rig, X, release_waiting, NULL);
    close_bridge();
}

TEST(ws_bridge, what_is_sent_to_a_lane_that_is_not_there_goes_nowhere)
{
    unsigned nowhere = 7;
    open_lanes();
    worker_rig_run(&rig, Y, make_near, &nowhere);
    worker_rig_run(&rig, Y, claim_near, NULL);
    say(&near, "lost");
    say(&near, "?");
    CHECK_STR("", near.seen);
    close_bridge();
}

/* Their lanes stop: each side ends its own, and what is under way is dropped. */
TEST(ws_bridge, lanes_stop_with_one_open)
{
    open_bridge();
    worker_rig_run(&rig, Y, attach, NULL);
    settle();
    say(&far, "late");
    worker_rig_run(&rig, Y, let_go, &near);
    worker_rig_run(&rig, X, let_go, &far);
    worker_rig_close(&rig);
    open_bridge(); /* never attached */
    worker_rig_run(&rig, Y, let_go, &near);
    worker_rig_run(&rig, X, let_go, &far);
    worker_rig_close(&rig);
}

static void overfill(struct cn_lane *lane, void *data)
{
    (void)data;
    static uint64_t numbers[CN_HANDLES_MAX + 1];
    size_t count = 0;
    while ((numbers[count] = cn_handles_add(&lane->ends, &lane->ends)) != 0)
        count++;
    CHECK(!cn_ws_bridge_new(lane, X, 1));
    while (count > 0)
        cn_handles_remove(&lane->ends, numbers[--count]);
    CHECK_INT(0, lane->ends.live);
}

TEST(ws_bridge, there_is_none_where_too_many_ends_are)
{
    open_lanes();
    worker_rig_run(&rig, Y, overfill, NULL);
    close_bridge();
}

/* --- messages --------------------------------------------------------------------------------- */

static struct cn_ws_message *shared;

static void send_shared(struct cn_lane *lane, void *data)
{
    (void)lane, (void)data;
    shared = cn_ws_message_new(true, "shared", 6);
    CHECK_INT(0, cn_ws_end_send(far.end, shared));
}

static void keep_no_longer(struct cn_lane *lane, void *data)
{
    (void)lane, (void)data;
    CHECK_INT(1, shared->refs); /* the other lane has never counted */
    cn_ws_message_unref(shared);
}

static const struct cn_ws_message *alone;

static void look_at_waiting(struct cn_lane *lane, void *data)
{
    (void)data;
    struct cn_ws_end *end = cn_websocket_find(lane, (double)address);
    alone = CN_CONTAINER_OF(end->queue.next, struct cn_ws_item, link)->message;
}

/* Counted without locks: of one that somebody here holds the other lane gets a copy. */
TEST(ws_bridge, a_message_crosses_alone)
{
    open_bridge();
    say(&far, "alone");
    worker_rig_run(&rig, X, look_at_waiting, NULL);
    worker_rig_run(&rig, Y, attach, NULL);
    settle();
    CHECK(near.last == alone);
    worker_rig_run(&rig, X, send_shared, NULL);
    settle();
    CHECK_STR("m:alone m:shared", near.seen);
    CHECK(near.last != shared);
    worker_rig_run(&rig, X, keep_no_longer, NULL);
    close_bridge();
}

/* --- connections that move -------------------------------------------------------------------- */

static void move_there(struct cn_lane *lane, void *data)
{
    (void)lane;
    struct cn_ws_moved moved = {.stream = {.fd = *(int *)data}, .protocol = cn_strdup("chat")};
    cn_ws_bridge_replace(cn_ws_bridge_of(near.end->peer), near.end, &moved);
    near.end = NULL;
}

/* A pair of connected sockets of TCP. */
static void connect_pair(int pair[2])
{
    struct sockaddr_in address_ = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof(address_);
    struct timeval patience = {.tv_sec = 30};
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    CHECK_INT(0, bind(listener, (struct sockaddr *)&address_, size));
    CHECK_INT(0, listen(listener, 1));
    CHECK_INT(0, getsockname(listener, (struct sockaddr *)&address_, &size));
    pair[0] = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    CHECK_INT(0, connect(pair[0], (struct sockaddr *)&address_, size));
    pair[1] = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    CHECK(pair[1] >= 0);
    close(listener);
}

static void count_connections(struct cn_lane *lane, void *data)
{
    *(size_t *)data = cn_ws_lane_count(lane->ws);
}

static void receive(int fd, const char *expected, size_t size)
{
    char got[64];
    CHECK_INT((int)size, recv(fd, got, size, MSG_WAITALL));
    CHECK(memcmp(got, expected, size) == 0);
}

/* Its script is out of the way: the connection and the object's end are one pair on one lane. What
 * waited there goes out first. */
TEST(ws_bridge, a_connection_goes_to_the_lane_of_the_other_side)
{
    int pair[2];
    size_t count;
    open_lanes();
    worker_rig_run(&rig, X, make_far, NULL);
    worker_rig_run(&rig, Y, make_near, NULL); /* nobody has claimed it */
    connect_pair(pair);
    say(&far, "early");
    worker_rig_run(&rig, Y, move_there, &pair[1]);
    settle();
    CHECK_INT(0, ends_of(Y));
    worker_rig_run(&rig, X, count_connections, &count);
    CHECK_INT(1, count);
    receive(pair[0],
            "\x81\x05"
            "early",
            7);
    say(&far, "more");
    receive(pair[0],
            "\x81\x04"
            "more",
            6);
    close(pair[0]);
    worker_rig_run(&rig, X, let_go, &far);
    worker_rig_close(&rig);
}

TEST(ws_bridge, a_connection_that_finds_nobody_is_closed)
{
    int pair[2];
    char byte;
    open_lanes();
    worker_rig_run(&rig, X, make_far, NULL);
    worker_rig_run(&rig, Y, make_near, NULL); /* nobody has claimed it */
    connect_pair(pair);
    worker_rig_run(&rig, X, release_waiting, NULL);
    worker_rig_run(&rig, Y, move_there, &pair[1]);
    settle();
    CHECK_INT(0, recv(pair[0], &byte, 1, 0));
    close(pair[0]);
    CHECK_INT(0, ends_of(Y));
    close_bridge();
}
