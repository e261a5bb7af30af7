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
        CN_ASSERT(pair->ends[i].released && cn_list_empty(&pair->ends[i].queue));
        cn_free(pair->ends[i].attachment);
        cn_free(pair->ends[i].protocol);
    }
    cn_free(pair);
}

void cn_ws_end_claim(struct cn_ws_end *end, const struct cn_ws_end_ops *ops, void *owner)
{
    CN_ASSERT(!end->released);
    end->ops = ops;
    end->owner = owner;
    if (end->peer->holding && ops->on_hold)
        ops->on_hold(end, true);
    if (!cn_list_empty(&end->queue))
        ops->on_ready(end);
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
    CN_ASSERT(!end->released);
    end->ops = NULL;
    end->owner = NULL;
    cn_ws_end_abort(end, NULL); /* E3; nothing if it has closed */
    end->released = true;
    drop_queue(end);
    if (end->on_released)
        end->on_released(end, end->released_data);
    struct cn_ws_end *peer = end->peer;
    if (!peer->released && peer->ops && peer->ops->on_gone)
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
    if (end->closed || end->peer->released)
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

void cn_ws_end_close(struct cn_ws_end *end, const struct cn_ws_close *close)
{
    if (end->closed)
        return;
    end->closed = true;
    if (end->peer->released)
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

void cn_ws_end_cut(struct cn_ws_end *end, const struct cn_ws_close *close)
{
    if (end->closed)
        return;
    end->aborted = end->peer->aborted = !end->peer->closed;
    end->peer->closed = true;
    cn_ws_end_close(end, close);
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
