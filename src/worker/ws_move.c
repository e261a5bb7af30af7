/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/ws_move.h"

#include <string.h>

#include "base/assert.h"
#include "base/loop.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "base/wire.h"
#include "net/ws_end.h"
#include "object/message.h"
#include "object/node.h"
#include "object/socket.h"
#include "worker/lane.h"
#include "worker/websocket.h"
#include "worker/ws_far.h"

enum {
    PARK_WAIT_MS = 8000, /* with the wait of a call, less than PARK_MS of ws_far.c */
    LUGGAGE_MAX = 24 << 20,
    ATTACHMENT_MAX = 1 << 16,
    TEXT_MAX = 4096,
    ITEMS_MAX = 1 << 16,
};

/* --- as bytes -------------------------------------------------------------------------------- */

struct packed_text {
    uint8_t *bytes;
    size_t size;
};

struct packed_item {
    bool text, close, clean;
    uint8_t *bytes; /* of a message, or the reason of a close */
    size_t size;
    unsigned code;
    char *error;
};

struct packed_socket {
    struct cn_ws_site site; /* of the other side, which is parked */
    bool auto_reply, deflate;
    int64_t auto_response_ms, accepted_ms;
    uint8_t *attachment;
    size_t attachment_size;
    char *protocol;
    struct packed_text *tags;
    size_t tag_count;
    struct packed_item *items;
    size_t item_count;
};

struct luggage {
    uint8_t *request, *response;
    size_t request_size, response_size;
    unsigned event_timeout_ms;
    struct packed_socket *sockets;
    size_t count;
};

static const struct cn_wire_field text_fields[] = {
    CN_WIRE_BYTES(1, struct packed_text, bytes, size, TEXT_MAX), CN_WIRE_END};

static const struct cn_wire_field item_fields[] = {
    CN_WIRE_BOOL(1, struct packed_item, text),
    CN_WIRE_BOOL(2, struct packed_item, close),
    CN_WIRE_BOOL(3, struct packed_item, clean),
    CN_WIRE_BYTES(4, struct packed_item, bytes, size, CN_WS_QUEUE_MAX),
    CN_WIRE_UINT(5, struct packed_item, code, UINT16_MAX),
    CN_WIRE_TEXT(6, struct packed_item, error, TEXT_MAX),
    CN_WIRE_END};

static const struct cn_wire_field socket_fields[] = {
    CN_WIRE_UINT(1, struct packed_socket, site.disk, UINT64_MAX),
    CN_WIRE_UINT(2, struct packed_socket, site.life, UINT64_MAX),
    CN_WIRE_UINT(3, struct packed_socket, site.lane, UINT16_MAX),
    CN_WIRE_UINT(4, struct packed_socket, site.handle, UINT64_MAX),
    CN_WIRE_BOOL(5, struct packed_socket, auto_reply),
    CN_WIRE_BOOL(6, struct packed_socket, deflate),
    CN_WIRE_INT(7, struct packed_socket, auto_response_ms),
    CN_WIRE_INT(8, struct packed_socket, accepted_ms),
    CN_WIRE_BYTES(9, struct packed_socket, attachment, attachment_size, ATTACHMENT_MAX),
    CN_WIRE_TEXT(10, struct packed_socket, protocol, TEXT_MAX),
    CN_WIRE_LIST(11, struct packed_socket, tags, tag_count, text_fields, CN_SOCKET_TAGS_MAX),
    CN_WIRE_LIST(12, struct packed_socket, items, item_count, item_fields, ITEMS_MAX),
    CN_WIRE_END};

static const struct cn_wire_field luggage_fields[] = {
    CN_WIRE_BYTES(1, struct luggage, request, request_size, TEXT_MAX),
    CN_WIRE_BYTES(2, struct luggage, response, response_size, TEXT_MAX),
    CN_WIRE_UINT(3, struct luggage, event_timeout_ms, UINT32_MAX),
    CN_WIRE_LIST(4, struct luggage, sockets, count, socket_fields, CN_SOCKET_PARTY_MAX),
    CN_WIRE_END};

static uint8_t *copy_text(struct cn_text text)
{
    return text.size ? cn_memdup(text.data, text.size) : NULL;
}

/* --- away ------------------------------------------------------------------------------------ */

enum member_state {
    HERE,    /* its client is on this node: parked, and no longer ours */
    AWAITED, /* its client's node is asked to park */
    THERE,   /* all that its client's node has sent is here */
    GONE
};

struct member {
    struct move *move;
    enum member_state state;
    struct cn_ws_end *end;   /* AWAITED, THERE: the object's, ours */
    struct cn_ws_far *far;   /* and the other one of its pair */
    struct packed_socket as; /* owned */
};

struct move {
    struct cn_list link; /* in lane->ws_moves */
    struct cn_lane *lane;
    struct cn_message message;
    struct luggage luggage; /* but its sockets */
    struct member *members; /* owned */
    size_t count;
    size_t awaited; /* members that are not parked, and not gone */
    uint64_t deadline_ms;
    bool sent;
};

static const struct cn_ws_close restart = {CN_WS_RESTART, true, "", 0, NULL};

static void set_out(struct move *move);

/* While it is awaited, its end only keeps what comes. */
static void end_ready(struct cn_ws_end *end)
{
    (void)end;
}

static void end_gone(struct cn_ws_end *end);
static const struct cn_ws_end_ops member_ops = {end_ready, NULL, end_gone};

static void member_settled(struct move *move)
{
    CN_ASSERT(move->awaited > 0);
    if (--move->awaited == 0 && !move->sent)
        set_out(move);
}

/* It ends for its client; on_parked() comes meanwhile, if it was AWAITED. */
static void member_drop(struct member *member)
{
    if (member->state == HERE || member->state == GONE)
        return;
    if (member->state == THERE)
        member->state = GONE;
    cn_ws_end_close(member->end, &restart);
    cn_ws_end_release(member->end);
}

/* Its client has gone, or is lost; or member_drop(). */
static void end_gone(struct cn_ws_end *end)
{
    struct member *member = end->owner;
    member->state = GONE;
    cn_ws_end_release(end);
}

static void on_parked(void *data, bool is_parked)
{
    struct member *member = data;
    CN_ASSERT(member->state == AWAITED);
    member->state = is_parked ? THERE : GONE;
    member_settled(member->move);
}

static void pack_item(struct packed_item *as, const struct cn_ws_item *item)
{
    const struct cn_ws_close *close = &item->close;
    if (item->message) {
        struct cn_text text = {(const char *)item->message->bytes, item->message->size};
        *as = (struct packed_item){
            .text = item->message->text, .bytes = copy_text(text), .size = text.size};
        return;
    }
    *as = (struct packed_item){.close = true,
                               .clean = close->clean,
                               .code = close->code,
                               .bytes =
                                   copy_text((struct cn_text){close->reason, close->reason_size}),
                               .size = close->reason_size,
                               .error = close->error ? cn_strdup(close->error) : NULL};
}

/* What has come and was not told. False: M1. */
static bool pack_items(struct member *member, size_t *room)
{
    struct packed_socket *as = &member->as;
    size_t count = cn_list_length(&member->end->queue);
    struct cn_ws_item *item;
    if (member->end->queue_bytes > *room || count > ITEMS_MAX)
        return false;
    *room -= member->end->queue_bytes;
    as->items = count ? cn_alloc_zero(count * sizeof(*as->items)) : NULL;
    while ((item = cn_ws_end_take(member->end))) {
        pack_item(&as->items[as->item_count++], item);
        cn_ws_item_free(item);
    }
    return true;
}

static void move_free(struct move *move)
{
    cn_list_remove(&move->link);
    for (size_t i = 0; i < move->count; i++)
        cn_wire_clear(socket_fields, &move->members[i].as);
    cn_wire_clear(luggage_fields, &move->luggage);
    cn_message_fini(&move->message);
    cn_free(move->members);
    cn_free(move);
}

/* M2, or its sockets are another's now. */
static void move_end(struct move *move, bool adopted)
{
    for (size_t i = 0; i < move->count; i++) {
        struct member *member = &move->members[i];
        if (member->state == HERE && !adopted) {
            cn_ws_far_unpark(move->lane, member->as.site.handle);
        } else if (member->state == THERE && adopted) {
            cn_ws_end_let_go(member->end); /* it is not told of the end of the other */
            cn_ws_far_hand_over(member->far);
            cn_ws_end_release(member->end);
        } else {
            member_drop(member);
        }
    }
    move_free(move);
}

static void on_done(struct cn_envelope *envelope)
{
    struct move *move = CN_CONTAINER_OF(cn_message_of(envelope), struct move, message);
    move_end(move, envelope->err.code == 0);
}

static void on_drop(struct cn_envelope *envelope)
{
    struct move *move = CN_CONTAINER_OF(cn_message_of(envelope), struct move, message);
    move_end(move, false);
}

/* What goes: those that are parked. */
static void pack(struct move *move, struct cn_buf *out)
{
    struct luggage *luggage = &move->luggage;
    size_t room = LUGGAGE_MAX;
    luggage->sockets = cn_alloc_zero(move->count * sizeof(*luggage->sockets));
    for (size_t i = 0; i < move->count; i++) {
        struct member *member = &move->members[i];
        if (member->state == AWAITED || (member->state == THERE && !pack_items(member, &room)))
            member_drop(member);
        if (member->state == HERE || member->state == THERE)
            luggage->sockets[luggage->count++] = member->as;
    }
    cn_wire_put(luggage_fields, luggage, out);
    cn_free(luggage->sockets); /* what they own is the members' */
    luggage->sockets = NULL;
    luggage->count = 0;
}

static void set_out(struct move *move)
{
    struct cn_buf bytes = {0};
    struct cn_call *call = &move->message.call;
    move->sent = true;
    pack(move, &bytes);
    move->message.bytes = bytes.data;
    move->message.size = call->size = bytes.size;
    call->kind = CN_CALL_ADOPT;
    call->payload = &move->message;
    call->envelope.from = cn_desk_place(&move->lane->desk);
    call->envelope.on_done = on_done;
    call->envelope.drop = on_drop;
    cn_call_send(call, NULL);
}

static void member_begin(struct member *member, const struct cn_socket_party_member *from)
{
    struct packed_socket *as = &member->as;
    struct cn_ws_end *end = from->end;
    struct cn_ws_far *far = cn_ws_far_of(end->peer);
    struct cn_text attachment = {(const char *)end->attachment, end->attachment_size};
    as->auto_reply = from->auto_reply;
    as->auto_response_ms = from->auto_response_ms;
    as->accepted_ms = from->accepted_ms;
    as->deflate = end->deflate;
    as->attachment = copy_text(attachment);
    as->attachment_size = attachment.size;
    as->protocol = end->protocol ? cn_strdup(end->protocol) : NULL;
    as->tag_count = from->tag_count;
    as->tags = from->tag_count ? cn_alloc_zero(from->tag_count * sizeof(*as->tags)) : NULL;
    for (size_t i = 0; i < from->tag_count; i++)
        as->tags[i] = (struct packed_text){copy_text(from->tags[i]), from->tags[i].size};
    if (!far || cn_ws_far_is_near(far)) {
        cn_ws_far_park(member->move->lane, end, &as->site);
        return;
    }
    as->site = cn_ws_far_site(far);
    member->state = AWAITED;
    member->end = end;
    member->far = far;
    member->move->awaited++;
    cn_ws_end_claim(end, &member_ops, member);
    cn_ws_far_ask_park(far, on_parked, member);
}

static void send_sockets(struct cn_object_lane *objects, const struct cn_socket_party *party)
{
    struct cn_lane *lane = objects->data;
    struct move *move = CN_NEW(struct move);
    cn_loop_assert_owner(&lane->loop);
    move->lane = lane;
    move->deadline_ms = uv_now(&lane->loop) + PARK_WAIT_MS;
    move->message.call.ns = party->ns;
    move->message.call.key = party->key;
    if (party->name.data) {
        move->message.call.name = cn_strndup(party->name.data, party->name.size);
        move->message.call.name_size = party->name.size;
    }
    move->luggage = (struct luggage){.request = copy_text(party->request),
                                     .response = copy_text(party->response),
                                     .request_size = party->request.size,
                                     .response_size = party->response.size,
                                     .event_timeout_ms = party->event_timeout_ms};
    cn_list_push_back(&lane->ws_moves, &move->link);
    move->count = party->count;
    move->members = cn_alloc_zero(party->count * sizeof(*move->members));
    move->awaited = 1; /* until all have begun */
    for (size_t i = 0; i < party->count; i++) {
        move->members[i].move = move;
        member_begin(&move->members[i], &party->members[i]);
    }
    if (--move->awaited == 0)
        set_out(move);
}

/* --- here ------------------------------------------------------------------------------------ */

/* M3 */
static bool socket_is_good(const struct packed_socket *as)
{
    for (size_t i = 0; i < as->item_count; i++) {
        const struct packed_item *item = &as->items[i];
        if (item->close && (item->code < CN_WS_NORMAL || item->code >= 5000 ||
                            item->size > CN_WS_REASON_MAX || i + 1 != as->item_count))
            return false;
        if ((item->close || item->text) && !cn_utf8_valid((const char *)item->bytes, item->size))
            return false;
    }
    return as->site.disk && as->site.handle;
}

/* It comes to the object's end by the other one of its pair. */
static void unpack_items(struct cn_ws_end *from, const struct packed_socket *as)
{
    for (size_t i = 0; i < as->item_count; i++) {
        const struct packed_item *item = &as->items[i];
        struct cn_ws_close close = {(uint16_t)item->code, item->clean,
                                    item->size ? (const char *)item->bytes : "", item->size,
                                    item->error};
        if (item->close) {
            cn_ws_end_close(from, &close);
            continue;
        }
        struct cn_ws_message *message = cn_ws_message_new(item->text, item->bytes, item->size);
        if (message)
            (void)cn_ws_end_send(from, message); /* it was in a queue like this one */
        cn_ws_message_unref(message);
    }
}

/* The object's end; NULL: there are too many. */
static struct cn_ws_end *unpack(struct cn_lane *lane, struct packed_socket *as)
{
    struct cn_ws_end *end = cn_ws_far_resume(lane, &as->site);
    if (!end || !cn_websocket_number(lane, end))
        return NULL;
    end->attachment = as->attachment;
    end->attachment_size = (uint32_t)as->attachment_size;
    end->protocol = as->protocol;
    end->deflate = as->deflate;
    as->attachment = NULL; /* the end's now */
    as->attachment_size = 0;
    as->protocol = NULL;
    unpack_items(end->peer, as);
    return end;
}

static void adopt(struct cn_lane *lane, const struct cn_call *call, struct luggage *luggage)
{
    struct cn_socket_party party = {
        .ns = call->ns,
        .key = call->key,
        .name = {call->name, call->name_size},
        .request = {(const char *)luggage->request, luggage->request_size},
        .response = {(const char *)luggage->response, luggage->response_size},
        .event_timeout_ms = luggage->event_timeout_ms};
    party.members = cn_alloc_zero((luggage->count + 1) * sizeof(*party.members));
    for (size_t i = 0; i < luggage->count; i++) {
        struct packed_socket *as = &luggage->sockets[i];
        struct cn_socket_party_member *member = &party.members[party.count];
        member->end = unpack(lane, as);
        if (!member->end)
            continue; /* its client's node is told with the next letter that it is gone */
        member->auto_reply = as->auto_reply;
        member->auto_response_ms = as->auto_response_ms;
        member->accepted_ms = as->accepted_ms;
        member->tag_count = as->tag_count;
        for (size_t t = 0; t < as->tag_count; t++)
            member->tags[t] = (struct cn_text){
                as->tags[t].size ? (const char *)as->tags[t].bytes : "", as->tags[t].size};
        party.count++;
    }
    cn_object_socket_adopt(&lane->object_lane, &party);
    cn_free(party.members);
}

static void take_sockets(struct cn_object_lane *objects, struct cn_call *call)
{
    struct cn_lane *lane = objects->data;
    const struct cn_message *message = call->payload;
    struct luggage luggage = {0};
    cn_loop_assert_owner(&lane->loop);
    bool good = cn_wire_get(luggage_fields, &luggage, message->bytes, message->size, NULL) == 0 &&
                (luggage.request_size == 0) == (luggage.response_size == 0);
    for (size_t i = 0; i < luggage.count && good; i++)
        good = socket_is_good(&luggage.sockets[i]);
    if (good) {
        adopt(lane, call, &luggage);
        cn_envelope_answer(&call->envelope, NULL);
    } else {
        cn_call_turn_away(call, CN_FAULT_REMOTE, CN_EPROTOCOL, "these are no WebSockets");
    }
    cn_wire_clear(luggage_fields, &luggage);
}

/* --- the lane -------------------------------------------------------------------------------- */

void cn_ws_move_tie(struct cn_lane *lane, const struct cn_ws_carrier *carrier)
{
    lane->carrier = carrier;
    lane->object_lane.send_sockets = send_sockets;
    lane->object_lane.take_sockets = take_sockets;
}

/* M2 */
void cn_ws_move_lane_tick(struct cn_lane *lane)
{
    CN_LIST_FOREACH(&lane->ws_moves, node)
    {
        struct move *move = CN_CONTAINER_OF(node, struct move, link);
        if (!move->sent && move->deadline_ms <= uv_now(&lane->loop))
            set_out(move);
    }
}

/* Calls that were sent have been dropped by now. */
void cn_ws_move_lane_stop(struct cn_lane *lane)
{
    while (!cn_list_empty(&lane->ws_moves)) {
        struct move *move = CN_CONTAINER_OF(lane->ws_moves.next, struct move, link);
        move->sent = true; /* those that go do not send it */
        move_end(move, false);
    }
}
