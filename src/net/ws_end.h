/* SPDX-License-Identifier: Apache-2.0 */
/* net/ws_end.h - the two ends of a WebSocket as programs see it: messages and a close.
 *
 * A pair is two ends; what one sends arrives at the other, in order. Who is behind
 * an end does not matter to the other one: a network connection (ws_conn.h), a
 * script, an object (object/socket.h), or a bridge to another lane.
 *
 *     script ── send ──► [end | end] ──► connection ──► wire
 *            ◄── queue ──           ◄── messages ◄──
 *
 * Who has an end:
 *
 *     NEW ──claim──► CLAIMED ──┐
 *      │ ▲             ▲       ├──release──► RELEASED
 *      ▼ │             │       │
 *     TRANSIT ◄────────┴───────┘        NEW, TRANSIT: it is nobody's, and keeps what is sent to it
 *
 * What it may still say, whoever has it:
 *
 *     OPEN ──► CLOSING ──► CLOSED       CLOSING: its program has closed it, and the close is held
 *       └─────────┴──► CUT              back (object/socket.h); CUT: the conversation was cut off
 *       └────────────► CLOSED
 *
 * E1  What is sent is put into the other end's queue; its owner is told (on_ready)
 *     and takes items out when it likes. An end without an owner keeps them.
 * E2  An end that is CLOSED or CUT sends nothing more. Both are: the pair is over.
 * E3  An owner that lets go of its end without a close makes the other see 1006.
 * E4  A queue is bounded: an owner that cannot keep up asks the other side to hold
 *     back (cn_ws_end_hold); one that does not hold back is cut off.
 * E5  `ops` and `owner` are set exactly in CLAIMED. One that is NEW or in TRANSIT and was given a
 *     number is in the list of whoever ends it if nobody claims it (`keeper`).
 *
 * Threads:   one lane's.
 * Ownership: each end belongs to its owner until cn_ws_end_release(); the memory
 *            of a pair goes when both ends are released and no reference is left. */
#ifndef CN_NET_WS_END_H
#define CN_NET_WS_END_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "net/ws_frame.h"

struct cn_ws_end;

#define CN_WS_QUEUE_MAX (48u << 20) /* E4: a message of the largest size and then some */

struct cn_ws_end_ops {
    /* The queue is not empty. May run inside a call of the other end's owner. */
    void (*on_ready)(struct cn_ws_end *end);
    /* The other end asks to hold back, or to go on. May be NULL. */
    void (*on_hold)(struct cn_ws_end *end, bool hold);
    /* The other end has been released; the queue may still hold what it sent. May be NULL. */
    void (*on_gone)(struct cn_ws_end *end);
};

/* How a conversation ended. */
struct cn_ws_close {
    uint16_t code;
    bool clean;         /* by a close frame */
    const char *reason; /* UTF-8, not NUL-terminated */
    size_t reason_size;
    const char *error; /* what went wrong, if something did; NULL: nothing */
};

struct cn_ws_item {
    struct cn_list link;
    struct cn_ws_message *message; /* a reference; NULL: this is the close */
    struct cn_ws_close close;      /* its texts are in `text` */
    char text[];
};

enum cn_ws_end_state {
    CN_WS_END_NEW,
    CN_WS_END_TRANSIT, /* on its way to another script */
    CN_WS_END_CLAIMED,
    CN_WS_END_RELEASED,
    CN_WS_END_STATES
};

enum cn_ws_voice { CN_WS_OPEN, CN_WS_CLOSING, CN_WS_CLOSED, CN_WS_CUT, CN_WS_VOICES };

struct cn_ws_end {
    struct cn_ws_end *peer;
    enum cn_ws_end_state state;
    enum cn_ws_voice voice;
    const struct cn_ws_end_ops *ops; /* E5 */
    void *owner;
    struct cn_list keeper; /* E5 */
    struct cn_list queue;  /* of struct cn_ws_item, oldest first */
    size_t queue_bytes;
    uint64_t handle; /* for whoever numbers ends: 0 has none */
    void (*on_released)(struct cn_ws_end *end, void *data); /* tells that one; NULL: nobody */
    void *released_data;
    bool close_taken;    /* the other's close has been taken out of the queue */
    bool holding;        /* it has asked the other to hold back */
    uint8_t *attachment; /* owned; what a program keeps with it */
    uint32_t attachment_size;
    char *protocol; /* owned; the subprotocol, or NULL */
    bool deflate;   /* the connection behind it compresses */
};

/* Two joined ends; each has to be released. */
void cn_ws_pair_new(struct cn_ws_end **a, struct cn_ws_end **b);
/* Keep the memory of an end that may be released meanwhile. */
void cn_ws_end_ref(struct cn_ws_end *end);
void cn_ws_end_unref(struct cn_ws_end *end);

/* From NEW to TRANSIT, and back. */
void cn_ws_end_depart(struct cn_ws_end *end);
void cn_ws_end_arrive(struct cn_ws_end *end);
/* Becomes the owner; on_ready runs at once if something waits. */
void cn_ws_end_claim(struct cn_ws_end *end, const struct cn_ws_end_ops *ops, void *owner);
/* From CLAIMED back to TRANSIT: somebody else is to claim it, who does so before he returns. */
void cn_ws_end_let_go(struct cn_ws_end *end);
void cn_ws_end_release(struct cn_ws_end *end);

/* Sends a reference to `message` (which stays the caller's) to the other end. CN_ECLOSED: it has
 * closed already, or the other is gone. CN_EOVERLOADED: the other's queue is full; the pair has
 * been ended with 1013. */
int cn_ws_end_send(struct cn_ws_end *end, struct cn_ws_message *message);
/* Its program has closed it: a close will follow. */
void cn_ws_end_closing(struct cn_ws_end *end);
/* Sends a close, once: later ones are ignored. */
void cn_ws_end_close(struct cn_ws_end *end, const struct cn_ws_close *close);
/* Ends both directions: the other end sees this close, and what it sends goes nowhere. */
void cn_ws_end_cut(struct cn_ws_end *end, const struct cn_ws_close *close);
/* The same with 1006, and the error if one is given. */
void cn_ws_end_abort(struct cn_ws_end *end, const char *error);
/* The oldest item, the caller's, or NULL. */
struct cn_ws_item *cn_ws_end_take(struct cn_ws_end *end);
void cn_ws_item_free(struct cn_ws_item *item);
/* A message that was taken and not used: it is the oldest again. */
void cn_ws_end_put_back(struct cn_ws_end *end, struct cn_ws_item *item);
/* Asks the other end's owner to hold back, or to go on. */
void cn_ws_end_hold(struct cn_ws_end *end, bool hold);

/* It says nothing more. */
static inline bool cn_ws_end_closed(const struct cn_ws_end *end)
{
    return end->voice >= CN_WS_CLOSED;
}

/* Its program has closed it. */
static inline bool cn_ws_end_close_asked(const struct cn_ws_end *end)
{
    return end->voice == CN_WS_CLOSING || end->voice == CN_WS_CLOSED;
}

static inline bool cn_ws_end_over(const struct cn_ws_end *end)
{
    return cn_ws_end_closed(end) && end->close_taken;
}

#endif
