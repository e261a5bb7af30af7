/* SPDX-License-Identifier: Apache-2.0 */
/* object/socket.h - WebSockets that belong to an object, whether it is in memory or not.
 *
 * The sockets of an object (struct cn_socket_set) belong to its lane, not to the
 * live object: tags, attachments, the automatic response and what clients have
 * sent stay when the object leaves memory, and the next message starts it again.
 *
 *     wire ─► end's queue ─► automatic response ─► event ─► input gate ─► class
 *     wire ◄─ end ◄─ output gate ◄─ outbox of the turn ◄─ class
 *
 * Two kinds: a hibernatable socket lets its object go; one that a program has
 * accept()ed keeps it in memory and ends with it.
 *
 *     OPEN ──its close event is over──► TOLD ──closed, or the peer is gone──► ENDING ──► freed
 *       └──the object was reset, the lane ends─────────────────────────────────▲
 *
 * K1  Events of one socket are delivered in order, one at a time: the next one
 *     waits until the class has answered the one before.
 * K2  Every socket gets exactly one close event, and nothing after it.
 * K3  What waits for a socket's object is bounded: past QUEUE_HIGH bytes its
 *     client is held back.
 * K4  What an object sends leaves when its turn's writes are durable, in order.
 * K5  A holder is alive: an object that was reset takes no socket, and has none
 *     from the moment on. An end that is given to it closes as its others did.
 * K6  A hibernatable socket is listed until the class has run the turn of its close event, and never
 *     after: a handler that waits for something, and an answer that waits for the output gate, make
 *     no difference to calls that come meanwhile. It is in its set while it is OPEN, and what is
 *     kept of it can be asked for until the event is over. The program may yet close it.
 * K7  When a shard that was STOPPED is closed (a planned move), hibernatable sockets that are open
 *     go to the node that has it next, with tags, attachment, settings and what their clients have
 *     sent: their clients do not notice. Nothing of them is under way then: events that were begun
 *     have ended (S7 of object/shard.h), and what leaves has left.
 *
 * Threads:   the lane that owns the object.
 * Ownership: the lane owns sets, sets own sockets, a socket owns its end. */
#ifndef CN_OBJECT_SOCKET_H
#define CN_OBJECT_SOCKET_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "net/ws_end.h"
#include "object/call.h"

struct cn_lane_shard;
struct cn_object;
struct cn_object_lane;
struct cn_socket_set;

#define CN_SOCKET_TAGS_MAX 10
#define CN_SOCKET_ADDRESS_SIZE 88 /* of an end on its way to another script, with its NUL */

enum cn_socket_event_kind {
    CN_SOCKET_MESSAGE,
    CN_SOCKET_CLOSE,
    CN_SOCKET_ERROR, /* the close follows */
};

struct cn_socket_tag_link {
    struct cn_list link; /* in the tag's list */
    struct cn_socket_tag *tag;
    struct cn_object_socket *socket;
};

enum cn_object_socket_state {
    CN_OBJECT_SOCKET_OPEN,
    CN_OBJECT_SOCKET_TOLD,   /* K2: nothing comes any more; its own close may still leave */
    CN_OBJECT_SOCKET_ENDING, /* whoever ends it frees it */
    CN_OBJECT_SOCKET_STATES
};

struct cn_object_socket {
    enum cn_object_socket_state state;
    struct cn_ws_end *end; /* owned; its `owner` is this struct */
    struct cn_object_lane *lane;
    struct cn_socket_set *set;     /* NULL: it has left it (K6) */
    struct cn_list link;           /* in set->sockets, or in lane->sockets_told */
    struct cn_object *holder;      /* of an accept()ed one: whom it keeps; NULL: hibernatable */
    struct cn_socket_event *event; /* under way, or NULL */
    int64_t auto_response_ms;      /* wall clock of the last one; 0: never */
    int64_t accepted_ms;           /* wall clock */
    bool auto_reply;               /* answer the peer's close once its event is over */
    bool unlisted;                 /* K6: it is over for the class */
    unsigned tag_count;
    struct cn_socket_tag_link tags[];
};

/* What call->payload is when call->kind is CN_CALL_SOCKET. */
struct cn_socket_event {
    struct cn_call call;
    struct cn_object_socket *socket; /* NULL: it has gone meanwhile */
    enum cn_socket_event_kind kind;
    struct cn_ws_item *item; /* owned: the message, or how it ended; NULL: it was put back */
    struct cn_list link;     /* in lane->socket_events */
    uint64_t deadline_ms;    /* loop time; 0: none */
};

struct cn_text {
    const char *data;
    size_t size;
};

/* Sockets of one object on their way to another node, or from one. */
struct cn_socket_party_member {
    struct cn_ws_end *end;
    bool auto_reply;
    int64_t auto_response_ms, accepted_ms;
    struct cn_text tags[CN_SOCKET_TAGS_MAX];
    size_t tag_count;
};

struct cn_socket_party {
    struct cn_namespace *ns;
    struct cn_object_key key;
    struct cn_text name;              /* data NULL: none */
    struct cn_text request, response; /* the automatic response; data NULL: none */
    unsigned event_timeout_ms;
    struct cn_socket_party_member *members;
    size_t count;
};
#define CN_SOCKET_PARTY_MAX 512

/* The object takes the end over. `tags` are distinct. NULL: the object was reset, and the end has
 * been closed and released (K5). */
struct cn_object_socket *cn_object_socket_accept(struct cn_object *object, struct cn_ws_end *end,
                                                 bool hibernatable, bool auto_reply,
                                                 const struct cn_text *tags, size_t tag_count);
/* The socket behind an end, or NULL if it is not an object's. */
struct cn_object_socket *cn_object_socket_of(struct cn_ws_end *end);

/* For the object: whether the event is the end of a socket; and it has had its turn (K6). */
bool cn_object_socket_closes(const struct cn_socket_event *event);
void cn_object_socket_told(struct cn_socket_event *event);

/* The set of a live object, made if need be. */
struct cn_socket_set *cn_object_sockets(struct cn_object *object);
/* Calls `each` for the hibernatable sockets, oldest first; those with `tag` unless it is NULL. */
void cn_object_socket_each(struct cn_object *object, const struct cn_text *tag,
                           void (*each)(struct cn_object_socket *socket, void *data), void *data);
/* All sockets of an object, whether it is in memory or not, for an onlooker: how many, and whether
 * they sleep. Calls `each` for up to `limit` of them, oldest first. */
size_t cn_object_socket_survey(struct cn_object_lane *lane, const struct cn_object_key *key,
                               bool *hibernated, size_t limit,
                               void (*each)(const struct cn_object_socket *socket, void *data),
                               void *data);
struct cn_text cn_object_socket_tag_name(const struct cn_socket_tag *tag);

/* The automatic response of the object's hibernatable sockets; request NULL: none. */
void cn_object_socket_set_auto_response(struct cn_object *object, const struct cn_text *request,
                                        const struct cn_text *response);
bool cn_object_socket_auto_response(struct cn_object *object, struct cn_text *request,
                                    struct cn_text *response);
/* How long an event may run; 0: no limit. */
void cn_object_socket_set_event_timeout(struct cn_object *object, unsigned timeout_ms);
unsigned cn_object_socket_event_timeout(struct cn_object *object);

/* Inside a turn of `object`: sends on any end, behind its output gate (K4). CN_EOVERLOADED: the
 * turn has sent too much. */
int cn_object_socket_send(struct cn_object *object, struct cn_ws_end *end,
                          struct cn_ws_message *message);
void cn_object_socket_close(struct cn_object *object, struct cn_ws_end *end,
                            const struct cn_ws_close *close);

/* For the lane. */
void cn_object_socket_lane_init(struct cn_object_lane *lane);
void cn_object_socket_lane_tick(struct cn_object_lane *lane);
/* W3 of base/loop.h: the counts of sockets, by set, by tag, by lane, and of those that sleep. */
void cn_object_socket_check(const struct cn_object_lane *lane);
/* And those that keep the object. */
size_t cn_object_socket_held_count(const struct cn_object *object);
void cn_object_socket_lane_fini(struct cn_object_lane *lane); /* lets every socket go */
/* The shard goes, and its objects have been reset: its sockets end as for a restart, or K7. */
void cn_object_socket_let_go(struct cn_lane_shard *own);
/* K7: a call of the kind CN_CALL_ADOPT has come. */
void cn_object_socket_arrive(struct cn_object_lane *lane, struct cn_call *call);
/* Takes the ends over; the object is not woken. */
void cn_object_socket_adopt(struct cn_object_lane *lane, const struct cn_socket_party *party);
/* The object was reset: its accept()ed sockets close. */
void cn_object_socket_holder_reset(struct cn_object *object);
/* The object has come into memory, and left it. */
void cn_object_socket_woken(struct cn_object *object);
void cn_object_socket_freed(struct cn_object *object);

#endif
