/* SPDX-License-Identifier: Apache-2.0 */
#include "object/socket.h"

#include <string.h>

#include "base/assert.h"
#include "base/diag.h"
#include "base/loop.h"
#include "base/mem.h"
#include "object/internal.h"
#include "object/node.h"

#define QUEUE_HIGH (256 << 10)
#define OUTBOX_SIZE_MAX (256u << 20)

struct cn_socket_tag {
    struct cn_list sockets; /* of struct cn_socket_tag_link, oldest first */
    size_t count;
    size_t size;
    char name[];
};

struct cn_socket_set {
    struct cn_object_lane *lane;
    struct cn_namespace *ns;
    struct cn_object_key key;
    char *name; /* owned; the object's, or NULL */
    size_t name_size;
    struct cn_list sockets; /* of struct cn_object_socket, oldest first */
    size_t count;
    struct cn_map tags;                       /* name -> struct cn_socket_tag, owned */
    struct cn_ws_message *request, *response; /* the automatic response; NULL: none */
    unsigned event_timeout_ms;
    bool live;  /* the object is in memory and has used the set */
    bool awake; /* the object is in memory */
};

/* One thing sent in a turn. */
struct sent {
    struct cn_ws_end *end;         /* a reference to its pair */
    struct cn_ws_message *message; /* a reference; NULL: a close */
    struct cn_ws_item *close;      /* owned */
};

struct cn_socket_outbox {
    struct cn_output output;
    struct sent *items; /* owned */
    size_t count, capacity;
    size_t bytes;
};

static void pump(struct cn_object_socket *socket);

/* --- sets --------------------------------------------------------------------------------- */

static struct cn_socket_set *set_find(struct cn_object *object)
{
    return cn_map_find(&object->lane->socket_sets, &object->key, sizeof(object->key));
}

static struct cn_socket_set *set_new(struct cn_object_lane *lane, struct cn_namespace *ns,
                                     const struct cn_object_key *key, const char *name,
                                     size_t name_size)
{
    struct cn_socket_set *set = CN_NEW(struct cn_socket_set);
    set->lane = lane;
    set->ns = ns;
    set->key = *key;
    if (name) {
        set->name = cn_strndup(name, name_size);
        set->name_size = name_size;
    }
    cn_list_init(&set->sockets);
    cn_map_init(&set->tags);
    cn_map_set(&lane->socket_sets, key, sizeof(*key), set);
    return set;
}

struct cn_socket_set *cn_object_sockets(struct cn_object *object)
{
    struct cn_socket_set *set = set_find(object);
    if (!set) {
        set = set_new(object->lane, object->ns, &object->key, object->name, object->name_size);
        set->awake = true;
    }
    set->live = true;
    return set;
}

static void set_free_if_unused(struct cn_socket_set *set)
{
    if (set->live || set->count)
        return;
    CN_ASSERT(set->tags.count == 0);
    cn_map_take(&set->lane->socket_sets, &set->key, sizeof(set->key));
    cn_map_fini(&set->tags);
    cn_ws_message_unref(set->request);
    cn_ws_message_unref(set->response);
    cn_free(set->name);
    cn_free(set);
}

void cn_object_socket_freed(struct cn_object *object)
{
    struct cn_socket_set *set = set_find(object);
    /* After a reset the key may have a new instance already. */
    if (!set || cn_map_find(&object->lane->objects, &object->key, sizeof(object->key)))
        return;
    set->live = false;
    if (set->awake)
        object->lane->hibernated_count += set->count;
    set->awake = false;
    set_free_if_unused(set);
}

void cn_object_socket_woken(struct cn_object *object)
{
    struct cn_socket_set *set = object->lane->socket_sets.count ? set_find(object) : NULL;
    if (!set || set->awake)
        return;
    set->awake = true;
    object->lane->hibernated_count -= set->count;
}

/* --- tags --------------------------------------------------------------------------------- */

struct cn_text cn_object_socket_tag_name(const struct cn_socket_tag *tag)
{
    return (struct cn_text){tag->name, tag->size};
}

static void tag_add(struct cn_object_socket *socket, const struct cn_text *name)
{
    struct cn_socket_set *set = socket->set;
    struct cn_socket_tag *tag = cn_map_find(&set->tags, name->data, name->size);
    if (!tag) {
        tag = cn_alloc(sizeof(*tag) + name->size);
        cn_list_init(&tag->sockets);
        tag->count = 0;
        tag->size = name->size;
        memcpy(tag->name, name->data, name->size);
        cn_map_set(&set->tags, name->data, name->size, tag);
    }
    struct cn_socket_tag_link *link = &socket->tags[socket->tag_count++];
    link->tag = tag;
    link->socket = socket;
    tag->count++;
    cn_list_push_back(&tag->sockets, &link->link);
}

static void tags_remove(struct cn_object_socket *socket)
{
    for (unsigned i = 0; i < socket->tag_count; i++) {
        struct cn_socket_tag *tag = socket->tags[i].tag;
        cn_list_remove(&socket->tags[i].link);
        if (--tag->count > 0)
            continue;
        cn_map_take(&socket->set->tags, tag->name, tag->size);
        cn_free(tag);
    }
}

/* --- sockets ------------------------------------------------------------------------------- */

static void on_ready(struct cn_ws_end *end)
{
    pump(end->owner);
}

#define TO(state) (1u << (state))
static const unsigned moves[CN_OBJECT_SOCKET_STATES] = {
    [CN_OBJECT_SOCKET_OPEN] = TO(CN_OBJECT_SOCKET_TOLD) | TO(CN_OBJECT_SOCKET_ENDING),
    [CN_OBJECT_SOCKET_TOLD] = TO(CN_OBJECT_SOCKET_ENDING),
};

static void set_state(struct cn_object_socket *socket, enum cn_object_socket_state state)
{
    CN_ASSERT(moves[socket->state] & TO(state));
    socket->state = state;
}

/* K6: it is not listed any more. */
static void leave_set(struct cn_object_socket *socket)
{
    struct cn_socket_set *set = socket->set;
    tags_remove(socket);
    cn_list_remove(&socket->link);
    set->count--;
    set->lane->socket_count--;
    if (!set->awake)
        set->lane->hibernated_count--;
    socket->set = NULL;
    set_free_if_unused(set);
}

/* Its close event is over. One that an object holds stays in the set, for its reset. */
static void become_told(struct cn_object_socket *socket)
{
    set_state(socket, CN_OBJECT_SOCKET_TOLD);
    if (socket->holder)
        return;
    leave_set(socket);
    cn_list_push_back(&socket->lane->sockets_told, &socket->link);
}

/* The conversation is over: forgets the socket. It is ENDING. */
static void socket_free(struct cn_object_socket *socket)
{
    struct cn_ws_end *end = socket->end;
    CN_ASSERT(socket->state == CN_OBJECT_SOCKET_ENDING);
    if (socket->event)
        socket->event->socket = NULL; /* it ends by itself */
    if (socket->set)
        leave_set(socket);
    cn_list_remove(&socket->link);
    struct cn_object *holder = socket->holder;
    cn_free(socket);
    cn_ws_end_release(end);
    if (holder && --holder->sockets == 0)
        cn_object_rest(holder);
}

static void socket_end(struct cn_object_socket *socket)
{
    set_state(socket, CN_OBJECT_SOCKET_ENDING);
    socket_free(socket);
}

/* The other side is gone for good. What it sent before is still delivered. */
static void on_gone(struct cn_ws_end *end)
{
    struct cn_object_socket *socket = end->owner;
    if (socket->state == CN_OBJECT_SOCKET_TOLD)
        socket_end(socket);
}

static const struct cn_ws_end_ops end_ops = {on_ready, NULL, on_gone};

struct cn_object_socket *cn_object_socket_of(struct cn_ws_end *end)
{
    return end->ops == &end_ops ? end->owner : NULL;
}

/* How sockets close that a reset object had. */
static struct cn_ws_close reset_close(const struct cn_object *object)
{
    uint16_t code =
        object->broken_faults & CN_FAULT_RETRYABLE ? CN_WS_RESTART : CN_WS_INTERNAL_ERROR;
    return (struct cn_ws_close){code, true, "", 0, NULL};
}

/* In its set; its end is claimed next. */
static struct cn_object_socket *socket_new(struct cn_socket_set *set, struct cn_ws_end *end,
                                           bool auto_reply, const struct cn_text *tags,
                                           size_t tag_count)
{
    struct cn_object_socket *socket =
        cn_alloc_zero(sizeof(*socket) + tag_count * sizeof(struct cn_socket_tag_link));
    socket->end = end;
    socket->lane = set->lane;
    socket->set = set;
    socket->auto_reply = auto_reply;
    for (size_t i = 0; i < tag_count; i++)
        tag_add(socket, &tags[i]);
    cn_list_push_back(&set->sockets, &socket->link);
    set->count++;
    set->lane->socket_count++;
    return socket;
}

struct cn_object_socket *cn_object_socket_accept(struct cn_object *object, struct cn_ws_end *end,
                                                 bool hibernatable, bool auto_reply,
                                                 const struct cn_text *tags, size_t tag_count)
{
    cn_loop_assert_owner(object->lane->loop);
    CN_ASSERT(tag_count <= CN_SOCKET_TAGS_MAX);
    if (cn_object_is_broken(object)) { /* K5 */
        struct cn_ws_close close = reset_close(object);
        cn_ws_end_close(end, &close);
        cn_ws_end_release(end);
        return NULL;
    }
    struct cn_object_socket *socket =
        socket_new(cn_object_sockets(object), end, auto_reply, tags, tag_count);
    socket->accepted_ms = cn_clock_wall_ms(cn_node_clock(object->lane->node));
    if (!hibernatable) {
        socket->holder = object;
        if (object->sockets++ == 0)
            cn_list_remove(&object->idle_link);
    }
    cn_ws_end_claim(end, &end_ops, socket);
    return socket;
}

void cn_object_socket_each(struct cn_object *object, const struct cn_text *tag,
                           void (*each)(struct cn_object_socket *socket, void *data), void *data)
{
    cn_loop_assert_owner(object->lane->loop);
    struct cn_socket_set *set = set_find(object);
    if (!set)
        return;
    if (tag) {
        struct cn_socket_tag *found = cn_map_find(&set->tags, tag->data, tag->size);
        if (!found)
            return;
        CN_LIST_FOREACH(&found->sockets, node)
        {
            struct cn_object_socket *socket =
                CN_CONTAINER_OF(node, struct cn_socket_tag_link, link)->socket;
            if (!socket->unlisted)
                each(socket, data);
        }
        return;
    }
    CN_LIST_FOREACH(&set->sockets, node)
    {
        struct cn_object_socket *socket = CN_CONTAINER_OF(node, struct cn_object_socket, link);
        if (!socket->holder && !socket->unlisted)
            each(socket, data);
    }
}

size_t cn_object_socket_survey(struct cn_object_lane *lane, const struct cn_object_key *key,
                               bool *hibernated, size_t limit,
                               void (*each)(const struct cn_object_socket *socket, void *data),
                               void *data)
{
    cn_loop_assert_owner(lane->loop);
    struct cn_socket_set *set = cn_map_find(&lane->socket_sets, key, sizeof(*key));
    size_t count = 0;
    *hibernated = set && set->count && !set->awake;
    if (!set)
        return 0;
    CN_LIST_FOREACH(&set->sockets, node)
    {
        if (count++ == limit)
            break;
        each(CN_CONTAINER_OF(node, struct cn_object_socket, link), data);
    }
    return set->count;
}

/* --- settings ------------------------------------------------------------------------------ */

void cn_object_socket_set_auto_response(struct cn_object *object, const struct cn_text *request,
                                        const struct cn_text *response)
{
    cn_loop_assert_owner(object->lane->loop);
    struct cn_socket_set *set = cn_object_sockets(object);
    cn_ws_message_unref(set->request);
    cn_ws_message_unref(set->response);
    set->request = request ? cn_ws_message_new(true, request->data, request->size) : NULL;
    set->response = request ? cn_ws_message_new(true, response->data, response->size) : NULL;
}

bool cn_object_socket_auto_response(struct cn_object *object, struct cn_text *request,
                                    struct cn_text *response)
{
    struct cn_socket_set *set = set_find(object);
    if (!set || !set->request)
        return false;
    *request = (struct cn_text){(const char *)set->request->bytes, set->request->size};
    *response = (struct cn_text){(const char *)set->response->bytes, set->response->size};
    return true;
}

void cn_object_socket_set_event_timeout(struct cn_object *object, unsigned timeout_ms)
{
    cn_loop_assert_owner(object->lane->loop);
    cn_object_sockets(object)->event_timeout_ms = timeout_ms;
}

unsigned cn_object_socket_event_timeout(struct cn_object *object)
{
    struct cn_socket_set *set = set_find(object);
    return set ? set->event_timeout_ms : 0;
}

/* --- events -------------------------------------------------------------------------------- */

static void event_free(struct cn_socket_event *event)
{
    cn_list_remove(&event->link);
    if (event->item)
        cn_ws_item_free(event->item);
    cn_free(event->call.name);
    cn_free(event);
}

static void event_send(struct cn_socket_event *event)
{
    struct cn_socket_set *set = event->socket->set;
    struct cn_call *call = &event->call;
    cn_list_remove(&event->link);
    if (set->event_timeout_ms && !event->socket->holder) {
        event->deadline_ms = uv_now(set->lane->loop) + set->event_timeout_ms;
        cn_list_push_back(&set->lane->socket_events, &event->link);
    }
    if (set->name && !call->name) {
        call->name = cn_strndup(set->name, set->name_size);
        call->name_size = set->name_size;
    }
    cn_call_send(call, NULL);
}

/* The peer's close has been told. Its answer, if the program has not given one. */
static void close_told(struct cn_object_socket *socket, const struct cn_ws_close *close)
{
    struct cn_ws_end *end = socket->end;
    if (end->voice == CN_WS_OPEN && socket->auto_reply) {
        struct cn_ws_close reply = {close->code, true, close->reason, close->reason_size, NULL};
        cn_ws_end_close(end, &reply);
    }
    become_told(socket); /* not before: on_gone() may have run just now */
    /* Otherwise its own close is on the way, or may still come until the connection gives up. */
    if (cn_ws_end_closed(end) || end->peer->state == CN_WS_END_RELEASED)
        socket_end(socket);
}

bool cn_object_socket_closes(const struct cn_socket_event *event)
{
    return event->socket && event->kind == CN_SOCKET_CLOSE;
}

void cn_object_socket_told(struct cn_socket_event *event)
{
    if (cn_object_socket_closes(event))
        event->socket->unlisted = true;
}

/* Back from the object: K1, the next one may go. */
static void on_done(struct cn_envelope *envelope)
{
    struct cn_socket_event *event =
        CN_CONTAINER_OF(cn_call_of(envelope), struct cn_socket_event, call);
    struct cn_object_socket *socket = event->socket;
    if (!socket) {
        event_free(event);
        return;
    }
    if (envelope->faults & CN_FAULT_OVERLOADED && !(envelope->faults & CN_FAULT_RESET)) {
        /* Nothing is lost: it is tried again at the next tick; its client is held back. */
        cn_list_remove(&event->link);
        event->deadline_ms = 0;
        socket->unlisted = false;
        cn_list_push_back(&socket->set->lane->socket_events, &event->link);
        return;
    }
    if (event->kind == CN_SOCKET_ERROR) {
        event->kind = CN_SOCKET_CLOSE;
        event_send(event);
        return;
    }
    socket->event = NULL;
    if (event->kind == CN_SOCKET_CLOSE)
        close_told(socket, &event->item->close);
    else
        pump(socket);
    event_free(event);
}

static void event_begin(struct cn_object_socket *socket, struct cn_ws_item *item)
{
    struct cn_socket_set *set = socket->set;
    struct cn_socket_event *event = CN_NEW(struct cn_socket_event);
    event->socket = socket;
    event->item = item;
    event->kind = item->message       ? CN_SOCKET_MESSAGE
                  : item->close.error ? CN_SOCKET_ERROR
                                      : CN_SOCKET_CLOSE;
    cn_list_init(&event->link);
    struct cn_call *call = &event->call;
    call->kind = CN_CALL_SOCKET;
    call->ns = set->ns;
    call->key = set->key;
    call->envelope.from = cn_desk_place(set->lane->desk);
    call->payload = event;
    call->size = item->message ? item->message->size : 0;
    call->envelope.on_done = on_done;
    socket->event = event;
    event_send(event);
}

/* DO-WS-5: answered here, without the object. */
static bool answer_automatically(struct cn_object_socket *socket, const struct cn_ws_item *item)
{
    struct cn_socket_set *set = socket->set;
    if (!set->request || socket->holder || !item->message || !item->message->text ||
        item->message->size != set->request->size ||
        memcmp(item->message->bytes, set->request->bytes, set->request->size) != 0)
        return false;
    socket->auto_response_ms = cn_clock_wall_ms(cn_node_clock(set->lane->node));
    (void)cn_ws_end_send(socket->end, set->response); /* a socket that is closed says so itself */
    return true;
}

/* Goes on with what the peer has sent. */
static void pump(struct cn_object_socket *socket)
{
    struct cn_ws_end *end = socket->end;
    struct cn_ws_item *item;
    while (!socket->event && socket->state == CN_OBJECT_SOCKET_OPEN &&
           (item = cn_ws_end_take(end))) {
        if (answer_automatically(socket, item))
            cn_ws_item_free(item);
        else
            event_begin(socket, item);
    }
    cn_ws_end_hold(end, end->queue_bytes > QUEUE_HIGH); /* K3 */
}

/* --- the outbox ---------------------------------------------------------------------------- */

static void outbox_send(struct cn_output *output, const struct cn_err *err)
{
    struct cn_socket_outbox *outbox = CN_CONTAINER_OF(output, struct cn_socket_outbox, output);
    for (size_t i = 0; i < outbox->count; i++) {
        struct sent *sent = &outbox->items[i];
        /* If the writes were lost nothing goes out; a socket that has gone takes nothing. */
        if (!err && sent->end->state != CN_WS_END_RELEASED && sent->message)
            (void)cn_ws_end_send(sent->end, sent->message);
        else if (!err && sent->end->state != CN_WS_END_RELEASED) {
            cn_ws_end_close(sent->end, &sent->close->close);
            struct cn_object_socket *socket = cn_object_socket_of(sent->end);
            if (socket && socket->state == CN_OBJECT_SOCKET_TOLD)
                socket_end(socket);
        }
        cn_ws_message_unref(sent->message);
        if (sent->close)
            cn_ws_item_free(sent->close);
        cn_ws_end_unref(sent->end);
    }
    cn_free(outbox->items);
    cn_free(outbox);
}

static struct sent *outbox_add(struct cn_object *object, struct cn_ws_end *end)
{
    struct cn_socket_outbox *outbox = object->outbox;
    if (!outbox) {
        outbox = object->outbox = CN_NEW(struct cn_socket_outbox);
        cn_object_output(object, &outbox->output, outbox_send);
    }
    CN_GROW(outbox->items, outbox->count, outbox->capacity);
    struct sent *sent = &outbox->items[outbox->count++];
    *sent = (struct sent){.end = end};
    cn_ws_end_ref(end);
    return sent;
}

int cn_object_socket_send(struct cn_object *object, struct cn_ws_end *end,
                          struct cn_ws_message *message)
{
    cn_loop_assert_owner(object->lane->loop);
    CN_ASSERT(cn_object_in_turn(object));
    if (object->outbox && object->outbox->bytes + message->size > OUTBOX_SIZE_MAX)
        return CN_EOVERLOADED;
    outbox_add(object, end)->message = cn_ws_message_ref(message);
    object->outbox->bytes += message->size;
    return 0;
}

void cn_object_socket_close(struct cn_object *object, struct cn_ws_end *end,
                            const struct cn_ws_close *close)
{
    cn_loop_assert_owner(object->lane->loop);
    CN_ASSERT(cn_object_in_turn(object));
    struct cn_ws_item *item = cn_alloc(sizeof(*item) + close->reason_size);
    item->message = NULL;
    item->close = *close;
    item->close.reason = item->text;
    if (close->reason_size)
        memcpy(item->text, close->reason, close->reason_size);
    outbox_add(object, end)->close = item;
}

/* --- the lane ------------------------------------------------------------------------------ */

void cn_object_socket_lane_init(struct cn_object_lane *lane)
{
    cn_map_init(&lane->socket_sets);
    cn_list_init(&lane->socket_events);
    cn_list_init(&lane->sockets_told);
}

void cn_object_socket_lane_tick(struct cn_object_lane *lane)
{
    cn_loop_assert_owner(lane->loop);
    uint64_t now = uv_now(lane->loop);
    CN_LIST_FOREACH(&lane->socket_events, node)
    {
        struct cn_socket_event *event = CN_CONTAINER_OF(node, struct cn_socket_event, link);
        if (!event->deadline_ms) {
            if (event->socket)
                event_send(event); /* the object was overloaded */
            else
                event_free(event);
            continue;
        }
        /* One that is not delivered yet has not begun to use its time. */
        struct cn_call *call = &event->call;
        if (event->deadline_ms > now || !call->taken_back)
            continue;
        cn_list_remove(&event->link);
        cn_warn("an event of a WebSocket ran longer than its time-out in %s", call->ns->name);
        call->taken_back(call);
        cn_call_fail(call, CN_FAULT_REMOTE, CN_ETIMEOUT, "the event took longer than its time-out");
    }
}

void cn_object_socket_holder_reset(struct cn_object *object)
{
    struct cn_socket_set *set = set_find(object);
    if (!set)
        return;
    struct cn_ws_close close = reset_close(object);
    struct cn_list held;
    cn_list_init(&held);
    CN_LIST_FOREACH(&set->sockets, node)
    {
        if (CN_CONTAINER_OF(node, struct cn_object_socket, link)->holder != object)
            continue;
        cn_list_remove(node);
        cn_list_push_back(&held, node);
    }
    /* The first, until there is none: both ends of a pair may be here, and with one the other can
     * be freed. */
    while (!cn_list_empty(&held)) {
        struct cn_object_socket *socket = CN_CONTAINER_OF(held.next, struct cn_object_socket, link);
        set_state(socket, CN_OBJECT_SOCKET_ENDING); /* on_gone() leaves it to us */
        cn_ws_end_close(socket->end, &close);
        socket_free(socket); /* the set stays: the object is still there */
    }
}

static struct cn_socket_set *find_of_shard(const struct cn_lane_shard *own)
{
    size_t cursor = 0;
    const struct cn_map_entry *entry;
    while (cn_map_next(&own->lane->socket_sets, &cursor, &entry)) {
        struct cn_socket_set *set = entry->value;
        if (set->count && cn_lane_shard_of(own->lane, &set->key) == own)
            return set;
    }
    return NULL;
}

/* --- moves: K7 ------------------------------------------------------------------------------ */

static struct cn_text text_of(const struct cn_ws_message *message)
{
    return message ? (struct cn_text){(const char *)message->bytes, message->size}
                   : (struct cn_text){0};
}

/* A message that was to be tried again goes first. True: nothing of the socket is under way. */
static bool take_back_event(struct cn_object_socket *socket)
{
    struct cn_socket_event *event = socket->event;
    if (!event)
        return true;
    if (event->kind != CN_SOCKET_MESSAGE || event->deadline_ms || cn_list_empty(&event->link))
        return false;
    cn_ws_end_put_back(socket->end, event->item);
    event->item = NULL;
    event_free(event);
    socket->event = NULL;
    return true;
}

static bool may_move(struct cn_object_socket *socket)
{
    return !socket->holder && socket->state == CN_OBJECT_SOCKET_OPEN &&
           socket->end->voice == CN_WS_OPEN && !socket->end->close_taken &&
           socket->end->peer->state != CN_WS_END_RELEASED && take_back_event(socket);
}

static void join_party(struct cn_socket_party *party, struct cn_object_socket *socket)
{
    struct cn_socket_party_member *member = &party->members[party->count++];
    *member = (struct cn_socket_party_member){.end = socket->end,
                                              .auto_reply = socket->auto_reply,
                                              .auto_response_ms = socket->auto_response_ms,
                                              .accepted_ms = socket->accepted_ms,
                                              .tag_count = socket->tag_count};
    for (unsigned i = 0; i < socket->tag_count; i++)
        member->tags[i] = cn_object_socket_tag_name(socket->tags[i].tag);
}

/* Those that go together leave the set when they have gone: tags are the set's until then. */
static void send_party(struct cn_socket_set *set, struct cn_socket_party *party,
                       struct cn_object_socket **sockets)
{
    for (size_t i = 0; i < party->count; i++)
        cn_ws_end_let_go(party->members[i].end);
    set->lane->send_sockets(set->lane, party);
    for (size_t i = 0; i < party->count; i++) {
        set_state(sockets[i], CN_OBJECT_SOCKET_ENDING);
        leave_set(sockets[i]);
        cn_free(sockets[i]);
    }
    party->count = 0;
}

/* With `live` set, so that the set stays. */
static void move_set(struct cn_socket_set *set)
{
    struct cn_object_socket *sockets[CN_SOCKET_PARTY_MAX];
    struct cn_socket_party party = {.ns = set->ns,
                                    .key = set->key,
                                    .name = {set->name, set->name_size},
                                    .request = text_of(set->request),
                                    .response = text_of(set->response),
                                    .event_timeout_ms = set->event_timeout_ms};
    party.members = cn_alloc(CN_SOCKET_PARTY_MAX * sizeof(*party.members));
    CN_LIST_FOREACH(&set->sockets, node)
    {
        struct cn_object_socket *socket = CN_CONTAINER_OF(node, struct cn_object_socket, link);
        if (!may_move(socket))
            continue;
        sockets[party.count] = socket;
        join_party(&party, socket);
        if (party.count == CN_SOCKET_PARTY_MAX)
            break;
    }
    if (party.count)
        send_party(set, &party, sockets);
    cn_free(party.members);
}

static bool any_may_move(const struct cn_socket_set *set)
{
    CN_LIST_FOREACH(&set->sockets, node)
    {
        if (may_move(CN_CONTAINER_OF(node, struct cn_object_socket, link)))
            return true;
    }
    return false;
}

void cn_object_socket_arrive(struct cn_object_lane *lane, struct cn_call *call)
{
    if (lane->take_sockets)
        lane->take_sockets(lane, call);
    else
        cn_call_turn_away(call, 0, CN_EINVALID, "sockets come from other nodes alone");
}

void cn_object_socket_adopt(struct cn_object_lane *lane, const struct cn_socket_party *party)
{
    cn_loop_assert_owner(lane->loop);
    struct cn_socket_set *set = cn_map_find(&lane->socket_sets, &party->key, sizeof(party->key));
    if (!set) {
        set = set_new(lane, party->ns, &party->key, party->name.data, party->name.size);
        set->awake = cn_map_find(&lane->objects, &party->key, sizeof(party->key));
    }
    if (party->request.data && !set->request) {
        set->request = cn_ws_message_new(true, party->request.data, party->request.size);
        set->response = cn_ws_message_new(true, party->response.data, party->response.size);
    }
    if (party->event_timeout_ms)
        set->event_timeout_ms = party->event_timeout_ms;
    for (size_t i = 0; i < party->count; i++) {
        const struct cn_socket_party_member *member = &party->members[i];
        struct cn_object_socket *socket =
            socket_new(set, member->end, member->auto_reply, member->tags, member->tag_count);
        socket->accepted_ms = member->accepted_ms;
        socket->auto_response_ms = member->auto_response_ms;
        if (!set->awake)
            lane->hibernated_count++;
        cn_ws_end_claim(member->end, &end_ops, socket);
    }
}

/* --- a shard goes ---------------------------------------------------------------------------- */

void cn_object_socket_let_go(struct cn_lane_shard *own)
{
    static const struct cn_ws_close close = {CN_WS_RESTART, true, "", 0, NULL};
    struct cn_socket_set *set;
    cn_loop_assert_owner(own->lane->loop);
    while ((set = find_of_shard(own))) {
        bool live = set->live;
        set->live = true; /* so that it stays until the last of them has gone */
        while (own->rests && own->lane->send_sockets && any_may_move(set))
            move_set(set);
        while (!cn_list_empty(&set->sockets)) {
            struct cn_object_socket *socket =
                CN_CONTAINER_OF(set->sockets.next, struct cn_object_socket, link);
            set_state(socket, CN_OBJECT_SOCKET_ENDING); /* on_gone() leaves it to us */
            cn_ws_end_close(socket->end, &close);
            socket_free(socket);
        }
        set->live = live; /* a reset object, not freed yet, has used it */
        set_free_if_unused(set);
    }
}

void cn_object_socket_lane_fini(struct cn_object_lane *lane)
{
    cn_loop_assert_owner(lane->loop);
    struct cn_list *node;
    while ((node = cn_list_take_front(&lane->socket_events))) {
        struct cn_socket_event *event = CN_CONTAINER_OF(node, struct cn_socket_event, link);
        if (event->deadline_ms)
            continue;
        if (event->socket)
            event->socket->event = NULL;
        event_free(event);
    }
    for (;;) {
        size_t cursor = 0;
        const struct cn_map_entry *entry;
        if (!cn_map_next(&lane->socket_sets, &cursor, &entry))
            break;
        struct cn_socket_set *set = entry->value;
        set->live = true; /* so that it stays until the last of them has gone */
        while (!cn_list_empty(&set->sockets))
            socket_end(CN_CONTAINER_OF(set->sockets.next, struct cn_object_socket, link));
        set->live = false;
        set_free_if_unused(set);
    }
    cn_map_fini(&lane->socket_sets);
    while (!cn_list_empty(&lane->sockets_told))
        socket_end(CN_CONTAINER_OF(lane->sockets_told.next, struct cn_object_socket, link));
}

/* --- checks -------------------------------------------------------------------------------- */

static size_t check_tags(const struct cn_socket_set *set)
{
    size_t links = 0, cursor = 0;
    const struct cn_map_entry *entry;
    while (cn_map_next(&set->tags, &cursor, &entry)) {
        const struct cn_socket_tag *tag = entry->value;
        CN_ASSERT(tag->count > 0 && tag->count == cn_list_length(&tag->sockets));
        links += tag->count;
    }
    return links;
}

static void check_set(const struct cn_socket_set *set)
{
    size_t links = 0;
    CN_LIST_FOREACH(&set->sockets, node)
    {
        const struct cn_object_socket *socket =
            CN_CONTAINER_OF(node, struct cn_object_socket, link);
        CN_ASSERT(socket->set == set && socket->end->owner == socket);
        links += socket->tag_count;
    }
    CN_ASSERT(set->count == cn_list_length(&set->sockets));
    CN_ASSERT(links == check_tags(set));
    CN_ASSERT(set->count || set->live); /* or it is freed */
}

void cn_object_socket_check(const struct cn_object_lane *lane)
{
    size_t count = 0, asleep = 0, cursor = 0;
    const struct cn_map_entry *entry;
    while (cn_map_next(&lane->socket_sets, &cursor, &entry)) {
        const struct cn_socket_set *set = entry->value;
        check_set(set);
        count += set->count;
        asleep += set->awake ? 0 : set->count;
        CN_ASSERT(set->awake || !cn_map_find(&lane->objects, &set->key, sizeof(set->key)));
    }
    CN_ASSERT(lane->socket_count == count);
    CN_ASSERT(lane->hibernated_count == asleep);
}

size_t cn_object_socket_held_count(const struct cn_object *object)
{
    const struct cn_socket_set *set =
        cn_map_find(&object->lane->socket_sets, &object->key, sizeof(object->key));
    size_t count = 0;
    if (!set)
        return 0;
    CN_LIST_FOREACH(&set->sockets, node)
    {
        if (CN_CONTAINER_OF(node, struct cn_object_socket, link)->holder == object)
            count++;
    }
    return count;
}
