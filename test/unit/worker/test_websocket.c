/* SPDX-License-Identifier: Apache-2.0 */
/* Ends of WebSockets as scripts know them: numbers, events, ends on their way, and what goes with
 * an instance. */
#include "worker/websocket.h"

#include <stdio.h>
#include <string.h>

#include "test/lib/worker_rig.h"
#include "worker/instance.h"

static struct worker_rig rig;

/* --- numbers and transit -----------------------------------------------------------------------
 */

static void number_ends(struct cn_lane *lane, void *data)
{
    (void)data;
    struct cn_instance *instance = worker_rig_instance(lane);
    struct cn_ws_end *a, *b;
    cn_ws_pair_new(&a, &b);
    double first = (double)cn_websocket_number(lane, a);
    double second = (double)cn_websocket_number(lane, b);
    CHECK(first > 0 && second > 0 && first != second);
    CHECK(cn_websocket_find(lane, first) == a && cn_websocket_find(lane, second) == b);
    CHECK(!cn_websocket_find(lane, 0) && !cn_websocket_find(lane, -1) &&
          !cn_websocket_find(lane, first + 0.5));
    cn_websocket_keep(instance, a);
    /* On its way: claimed by whoever has the address, once. */
    char address[CN_SOCKET_ADDRESS_SIZE];
    cn_websocket_transit(lane, b, address);
    static const char *const wrong[] = {"", ":", "0", "0:", "0:0", "x:1", "0:999999999999", "7:1"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        CHECK_INT(0, cn_websocket_claim(instance, wrong[i]));
    CHECK(cn_websocket_claim(instance, address) == (uint64_t)second);
    CHECK_INT(0, cn_websocket_claim(instance, address));
    cn_ws_end_release(a);
    CHECK(!cn_websocket_find(lane, first)); /* the number ends with its end */
    cn_ws_end_release(b);
    CHECK(!cn_websocket_find(lane, second));
    CHECK_INT(0, lane->ends.live);
}

TEST(websocket, a_number_is_one_ends_and_an_address_is_good_once)
{
    rig = (struct worker_rig){0};
    worker_rig_open(&rig, 1);
    CHECK(!worker_rig_deploy(&rig, "default: { fetch: () => new Response('') }"));
    worker_rig_run(&rig, 0, number_ends, NULL);
    worker_rig_close(&rig);
}

/* --- a script's ends ----------------------------------------------------------------------------
 */

/* /talk: both ends of a pair are the script's; what they were told, in order. */
#define TALK                                                                                 \
    "default: { async fetch(request) {"                                                      \
    " const told = [], [a, b] = Object.values(new WebSocketPair()); a.accept(); b.accept();" \
    " const over = new Promise((f) => b.addEventListener('close', (e) => {"                  \
    "   told.push(['close', e.code, e.reason, e.wasClean].join(':')); f(); }));"             \
    " b.addEventListener('message', (e) => { told.push(typeof e.data === 'string' ? e.data"  \
    "   : 'bytes:' + new Uint8Array(e.data).join()); });"                                    \
    " a.send('one'); told.push('sent'); a.send(new Uint8Array([0, 255])); a.send('');"       \
    " a.close(4001, 'done'); await over; return new Response(told.join('|')); } }"

static void check_none(struct cn_lane *lane, void *data)
{
    (void)data;
    cn_lane_check(lane);
    CHECK(cn_list_empty(&lane->sockets_ready));
}

/* Events come after the call that caused them, in order, and each once. */
TEST(websocket, events_are_told_later_in_order_and_once)
{
    rig = (struct worker_rig){0};
    worker_rig_open(&rig, 1);
    CHECK(!worker_rig_deploy(&rig, TALK));
    for (int i = 0; i < 3; i++)
        CHECK_STR("sent|one|bytes:0,255||close:4001:done:true", worker_rig_body(&rig, "/talk"));
    worker_rig_run(&rig, 0, check_none, NULL);
    worker_rig_close(&rig);
}

static bool has_no_ends(struct cn_lane *lane, void *data)
{
    (void)data;
    return lane->ends.live == 0;
}

static void replace(struct cn_lane *lane, void *data)
{
    (void)data;
    CHECK(lane->ends.live > 0);
    cn_lane_replace(lane, worker_rig_instance(lane));
}

/* I3 of instance.h: claimed or not, they go with their instance. */
TEST(websocket, ends_go_with_the_instance_that_has_them)
{
    rig = (struct worker_rig){0};
    worker_rig_open(&rig, 1);
    CHECK(!worker_rig_deploy(
        &rig, "default: { fetch() { const [a, b] = Object.values(new WebSocketPair()); a.accept();"
              " b.accept(); globalThis.kept = [a, b, new WebSocketPair(), new WebSocketPair()];"
              " return new Response('kept'); } }"));
    CHECK_STR("kept", worker_rig_body(&rig, "/"));
    worker_rig_run(&rig, 0, replace, NULL);
    worker_rig_until(&rig, 0, has_no_ends, NULL);
    worker_rig_close(&rig);
}
