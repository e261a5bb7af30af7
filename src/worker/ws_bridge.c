/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/ws_bridge.h"

#include <string.h>

#include "base/assert.h"
#include "base/mem.h"
#include "net/server.h"
#include "net/ws_conn.h"
#include "net/ws_end.h"
#include "object/node.h"
#include "worker/lane.h"
#include "worker/websocket.h"

struct cn_ws_bridge {
    struct cn_lane *lane;
    struct cn_ws_end *end; /* ours; the script's is its peer */
    unsigned target_lane;
    uint64_t target; /* the number of the end there: its bridge, or the one to be attached to */
    bool attached;
};

enum letter_kind { ATTACH, ITEM, HOLD, GONE, ARRIVE };

struct letter {
    struct cn_mail mail;
    enum letter_kind kind;
    unsigned from_lane;
    uint64_t from, to; /* numbers of ends */
    struct cn_ws_item *item;
    bool hold;
    struct cn_ws_moved moved;
};

static void end_ready(struct cn_ws_end *end);
static void end_hold(struct cn_ws_end *end, bool hold);
static void end_gone(struct cn_ws_end *end);
static const struct cn_ws_end_ops bridge_ops = {end_ready, end_hold, end_gone};
static void deliver(struct cn_mail *mail, void *data);

struct cn_ws_bridge *cn_ws_bridge_of(struct cn_ws_end *end)
{
    return end->ops == &bridge_ops ? end->owner : NULL;
}

bool cn_ws_bridge_attached(const struct cn_ws_bridge *bridge)
{
    return bridge->attached;
}

/* --- mail ---------------------------------------------------------------------------------- */

static void letter_drop(struct letter *letter)
{
    if (letter->item)
        cn_ws_item_free(letter->item);
    if (letter->kind == ARRIVE)
        cn_ws_moved_drop(&letter->moved);
    cn_free(letter);
}

static void post(struct cn_ws_bridge *bridge, struct letter letter)
{
    struct letter *mail = cn_memdup(&letter, sizeof(letter));
    mail->mail.deliver = deliver;
    mail->from_lane = bridge->lane->options.index;
    mail->from = bridge->end->handle;
    mail->to = bridge->target;
    struct cn_object_lane *target = cn_node_lane(bridge->lane->options.node, bridge->target_lane);
    if (!target || !cn_mailbox_send(target->mailbox, &mail->mail))
        letter_drop(mail); /* that lane has ended, and its connections with it */
}

/* Messages are counted without locks: one that somebody else here holds is copied. */
static void make_portable(struct cn_ws_item *item)
{
    struct cn_ws_message *message = item->message;
    if (!message || (message->refs == 1 && !message->deflated))
        return;
    item->message = cn_ws_message_new(message->text, message->bytes, message->size);
    cn_ws_message_unref(message);
}

/* --- the bridge ---------------------------------------------------------------------------- */

static struct cn_ws_bridge *bridge_new(struct cn_lane *lane, struct cn_ws_end *end, unsigned index,
                                       uint64_t target)
{
    struct cn_ws_bridge *bridge = CN_NEW(struct cn_ws_bridge);
    *bridge = (struct cn_ws_bridge){lane, end, index, target, false};
    return bridge;
}

void cn_ws_bridge_free(struct cn_ws_bridge *bridge)
{
    struct cn_ws_end *end = bridge->end;
    cn_free(bridge);
    cn_ws_end_release(end);
}

struct cn_ws_end *cn_ws_bridge_new(struct cn_lane *lane, unsigned index, uint64_t handle)
{
    struct cn_ws_end *ours, *theirs;
    cn_ws_pair_new(&theirs, &ours);
    if (!cn_websocket_number(lane, ours)) {
        cn_ws_end_release(theirs);
        return NULL;
    }
    struct cn_ws_bridge *bridge = bridge_new(lane, ours, index, handle);
    cn_ws_end_claim(ours, &bridge_ops, bridge);
    return theirs;
}

void cn_ws_bridge_attach(struct cn_ws_bridge *bridge)
{
    if (bridge->attached)
        return;
    bridge->attached = true;
    post(bridge, (struct letter){.kind = ATTACH});
}

static void end_ready(struct cn_ws_end *end)
{
    struct cn_ws_bridge *bridge = end->owner;
    struct cn_ws_item *item;
    cn_ws_bridge_attach(bridge);
    while ((item = cn_ws_end_take(end))) {
        make_portable(item);
        post(bridge, (struct letter){.kind = ITEM, .item = item});
    }
    if (cn_ws_end_over(end))
        cn_ws_bridge_free(bridge);
}

static void end_hold(struct cn_ws_end *end, bool hold)
{
    struct cn_ws_bridge *bridge = end->owner;
    post(bridge, (struct letter){.kind = HOLD, .hold = hold});
}

static void end_gone(struct cn_ws_end *end)
{
    struct cn_ws_bridge *bridge = end->owner;
    post(bridge, (struct letter){.kind = GONE});
    cn_ws_bridge_free(bridge);
}

void cn_ws_bridge_replace(struct cn_ws_bridge *bridge, struct cn_ws_end *end,
                          const struct cn_ws_moved *moved)
{
    CN_ASSERT(!bridge->attached && bridge->end->peer == end);
    post(bridge, (struct letter){.kind = ARRIVE, .moved = *moved});
    struct cn_ws_end *ours = bridge->end;
    cn_free(bridge);
    cn_ws_end_release(ours); /* first: it is not told of the end of the other */
    cn_ws_end_release(end);
}

/* --- what arrives -------------------------------------------------------------------------- */

/* To one of ours: somebody on another lane wants to be its other side. */
static void deliver_attach(struct cn_lane *lane, struct letter *letter, struct cn_ws_end *end)
{
    struct cn_ws_bridge *bridge = bridge_new(lane, end, letter->from_lane, letter->from);
    bridge->attached = true;
    cn_ws_end_claim(end, &bridge_ops, bridge);
}

static void deliver_item(struct cn_ws_bridge *bridge, struct cn_ws_item *item)
{
    struct cn_ws_end *end = bridge->end;
    if (item->message)
        (void)cn_ws_end_send(end, item->message); /* a full queue ends the pair by itself */
    else if (item->close.code == CN_WS_ABNORMAL)
        cn_ws_end_cut(end, &item->close);
    else
        cn_ws_end_close(end, &item->close);
}

static void deliver(struct cn_mail *mail, void *data)
{
    struct cn_lane *lane = data;
    struct letter *letter = CN_CONTAINER_OF(mail, struct letter, mail);
    struct cn_ws_end *end = cn_websocket_find(lane, (double)letter->to);
    struct cn_ws_bridge *bridge = end ? cn_ws_bridge_of(end) : NULL;
    bool waits = end && end->state == CN_WS_END_TRANSIT;
    if (letter->kind == ARRIVE && waits && lane->http) { /* N3 */
        cn_ws_arrive(lane->ws, cn_http_server_streams(lane->http), &letter->moved, end);
        letter->kind = GONE; /* the connection has been taken */
    } else if (letter->kind == ATTACH && waits) {
        deliver_attach(lane, letter, end);
    } else if (letter->kind == ATTACH) {
        /* It was let go meanwhile: the other side must not wait for it. */
        struct cn_ws_bridge back = {lane, &(struct cn_ws_end){0}, letter->from_lane, letter->from,
                                    true};
        post(&back, (struct letter){.kind = GONE});
    } else if (letter->kind == GONE && bridge) {
        cn_ws_bridge_free(bridge);
    } else if (letter->kind == GONE && waits) {
        cn_ws_end_release(end);
    } else if (letter->kind == HOLD && bridge) {
        cn_ws_end_hold(end, letter->hold);
    } else if (letter->kind == ITEM && bridge) {
        deliver_item(bridge, letter->item);
        /* The end may have gone with it. */
        if (cn_websocket_find(lane, (double)letter->to) == end && cn_ws_bridge_of(end) == bridge &&
            cn_ws_end_over(end))
            cn_ws_bridge_free(bridge);
    }
    letter_drop(letter);
}
