/* SPDX-License-Identifier: Apache-2.0 */
#include "net/ws_end.h"

#include <string.h>

#include "base/assert.h"
#include "base/err.h"
#include "base/mem.h"

struct pair {
    struct cn_ws_end ends[2];
    unsigned refs; /* ends not released, and cn_ws_end_ref() */
};

#define TO(state) (1u << (state))
static const unsigned moves[CN_WS_END_STATES] = {
    [CN_WS_END_NEW] = TO(CN_WS_END_TRANSIT) | TO(CN_WS_END_CLAIMED) | TO(CN_WS_END_RELEASED),
    [CN_WS_END_TRANSIT] = TO(CN_WS_END_NEW) | TO(CN_WS_END_CLAIMED) | TO(CN_WS_END_RELEASED),
    [CN_WS_END_CLAIMED] = TO(CN_WS_END_TRANSIT) | TO(CN_WS_END_RELEASED),
};
static const unsigned voice_moves[CN_WS_VOICES] = {
    [CN_WS_OPEN] = TO(CN_WS_CLOSING) | TO(CN_WS_CLOSED) | TO(CN_WS_CUT),
    [CN_WS_CLOSING] = TO(CN_WS_CLOSED) | TO(CN_WS_CUT),
};

static void set_state(struct cn_ws_end *end, enum cn_ws_end_state state)
{
    CN_ASSERT(moves[end->state] & TO(state));
    CN_ASSERT((end->state == CN_WS_END_CLAIMED) == (end->ops != NULL)); /* E5 */
    end->state = state;
    cn_list_remove(&end->keeper);
}

static void set_voice(struct cn_ws_end *end, enum cn_ws_voice voice)
{
    CN_ASSERT(voice_moves[end->voice] & TO(voice));
    end->voice = voice;
}

static struct pair *pair_of(struct cn_ws_end *end)
{
    /* The first end is the one that lies before its peer. */
    return (struct pair *)(end < end->peer ? end : end->peer);
}

void cn_ws_pair_new(struct cn_ws_end **a, struct cn_ws_end **b)
{
    struct pair *pair = CN_NEW(struct pair);
    for (int i = 0; i < 2; i++) {
        pair->ends[i].peer = &pair->ends[1 - i];
        cn_list_init(&pair->ends[i].queue);
        cn_list_init(&pair->ends[i].keeper);
    }
    pair->refs = 2;
    *a = &pair->ends[0];
    *b = &pair->ends[1];
}

void cn_ws_end_ref(struct cn_ws_end *end)
{
    pair_of(end)->refs++;
}

void cn_ws_end_unref(struct cn_ws_end *end)
{
    struct pair *pair = pair_of(end);
    CN_ASSERT(pair->refs > 0);
    if (--pair->refs > 0)
        return;
    for (int i = 0; i < 2; i++) {
        CN_ASSERT(pair->ends[i].state == CN_WS_END_RELEASED && cn_list_empty(&pair->ends[i].queue));
        cn_free(pair->ends[i].attachment);
        cn_free(pair->ends[i].protocol);
    }
    cn_free(pair);
}

void cn_ws_end_depart(struct cn_ws_end *end)
{
    set_state(end, CN_WS_END_TRANSIT);
}

void cn_ws_end_arrive(struct cn_ws_end *end)
{
    set_state(end, CN_WS_END_NEW);
}

void cn_ws_end_claim(struct cn_ws_end *end, const struct cn_ws_end_ops *ops, void *owner)
{
    set_state(end, CN_WS_END_CLAIMED);
    end->ops = ops;
    end->owner = owner;
    if (end->peer->holding && ops->on_hold)
        ops->on_hold(end, true);
    if (!cn_list_empty(&end->queue))
        ops->on_ready(end);
}

void cn_ws_end_let_go(struct cn_ws_end *end)
{
    set_state(end, CN_WS_END_TRANSIT);
    end->ops = NULL;
    end->owner = NULL;
}

static void drop_queue(struct cn_ws_end *end)
{
    struct cn_list *link;
    while ((link = cn_list_take_front(&end->queue)))
        cn_ws_item_free(CN_CONTAINER_OF(link, struct cn_ws_item, link));
    end->queue_bytes = 0;
}

void cn_ws_end_release(struct cn_ws_end *end)
{
    set_state(end, CN_WS_END_RELEASED);
    end->ops = NULL;
    end->owner = NULL;
    cn_ws_end_abort(end, NULL); /* E3; nothing if it has closed */
    drop_queue(end);
    if (end->on_released)
        end->on_released(end, end->released_data);
    struct cn_ws_end *peer = end->peer;
    if (peer->ops && peer->ops->on_gone)
        peer->ops->on_gone(peer);
    cn_ws_end_unref(end);
}

/* Puts an item into the other end's queue. */
static void push(struct cn_ws_end *end, struct cn_ws_item *item, size_t bytes)
{
    struct cn_ws_end *peer = end->peer;
    cn_list_push_back(&peer->queue, &item->link);
    peer->queue_bytes += bytes;
    if (peer->ops)
        peer->ops->on_ready(peer);
}

int cn_ws_end_send(struct cn_ws_end *end, struct cn_ws_message *message)
{
    if (cn_ws_end_closed(end) || end->peer->state == CN_WS_END_RELEASED)
        return CN_ECLOSED;
    if (end->peer->queue_bytes > CN_WS_QUEUE_MAX) {
        static const char reason[] = "the other side does not read";
        struct cn_ws_close close = {CN_WS_TRY_LATER, false, reason, sizeof(reason) - 1, NULL};
        cn_ws_end_close(end->peer, &close);
        cn_ws_end_cut(end, &close);
        return CN_EOVERLOADED;
    }
    struct cn_ws_item *item = cn_alloc(sizeof(*item));
    item->message = cn_ws_message_ref(message);
    push(end, item, message->size + sizeof(*item));
    return 0;
}

void cn_ws_end_closing(struct cn_ws_end *end)
{
    if (end->voice == CN_WS_OPEN)
        set_voice(end, CN_WS_CLOSING);
}

/* Tells the other end. */
static void push_close(struct cn_ws_end *end, const struct cn_ws_close *close)
{
    if (end->peer->state == CN_WS_END_RELEASED)
        return;
    size_t error_size = close->error ? strlen(close->error) + 1 : 0;
    struct cn_ws_item *item = cn_alloc(sizeof(*item) + close->reason_size + error_size);
    item->message = NULL;
    item->close = *close;
    item->close.reason = item->text;
    if (close->reason_size > 0)
        memcpy(item->text, close->reason, close->reason_size);
    if (error_size > 0) {
        item->close.error = item->text + close->reason_size;
        memcpy(item->text + close->reason_size, close->error, error_size);
    }
    push(end, item, sizeof(*item));
}

void cn_ws_end_close(struct cn_ws_end *end, const struct cn_ws_close *close)
{
    if (cn_ws_end_closed(end))
        return;
    set_voice(end, CN_WS_CLOSED);
    push_close(end, close);
}

void cn_ws_end_cut(struct cn_ws_end *end, const struct cn_ws_close *close)
{
    if (cn_ws_end_closed(end))
        return;
    if (!cn_ws_end_closed(end->peer))
        set_voice(end->peer, CN_WS_CUT);
    set_voice(end, CN_WS_CUT);
    push_close(end, close);
}

void cn_ws_end_abort(struct cn_ws_end *end, const char *error)
{
    static const char reason[] = "WebSocket disconnected without sending Close frame.";
    struct cn_ws_close close = {CN_WS_ABNORMAL, false, reason, sizeof(reason) - 1, error};
    cn_ws_end_cut(end, &close);
}

struct cn_ws_item *cn_ws_end_take(struct cn_ws_end *end)
{
    struct cn_list *link = cn_list_take_front(&end->queue);
    if (!link)
        return NULL;
    struct cn_ws_item *item = CN_CONTAINER_OF(link, struct cn_ws_item, link);
    end->queue_bytes -= (item->message ? item->message->size : 0) + sizeof(*item);
    if (!item->message)
        end->close_taken = true;
    return item;
}

void cn_ws_end_put_back(struct cn_ws_end *end, struct cn_ws_item *item)
{
    CN_ASSERT(item->message);
    cn_list_push_front(&end->queue, &item->link);
    end->queue_bytes += item->message->size + sizeof(*item);
}

void cn_ws_item_free(struct cn_ws_item *item)
{
    cn_ws_message_unref(item->message);
    cn_free(item);
}

void cn_ws_end_hold(struct cn_ws_end *end, bool hold)
{
    if (end->holding == hold)
        return;
    end->holding = hold;
    struct cn_ws_end *peer = end->peer;
    if (peer->ops && peer->ops->on_hold)
        peer->ops->on_hold(peer, hold);
}
