/* SPDX-License-Identifier: Apache-2.0 */
/* object/envelope.h - what is sent in order to be answered, and the places it is sent to.
 *
 * Whoever asks for something that lives at another place, or at the same one in another turn, puts
 * it into an envelope. Variants embed it: a call to an object (object/call.h), which is also what
 * services, alarms, events of WebSockets and administration send, and what a script's call by a
 * slot is; and an event for a worker (worker/dispatch.h). A variant says what its arrival is; all
 * else is done here.
 *
 *     state       who has it                             moves to
 *     OPEN        the sender, who fills it in            GATED, SENT
 *     GATED       the output gate of the sender          SENT; DONE if the sender was reset
 *     SENT        the way: a mailbox, or a desk's list   ARRIVED; RETURNING if it is refused
 *     ARRIVED     the target: waiting, then worked on    ANSWERED; RETURNING if the target ends;
 *                                                        AWAY if the target is on another node
 *     AWAY        the carrier of the desk                ARRIVED, when it is back
 *     ANSWERED    the output gate of the target          RETURNING
 *     RETURNING   the way back                           DONE
 *     DONE        the sender: frees it or sends it anew  GATED, SENT
 *
 * P1  Who has it owns it: nobody else touches it, or keeps a pointer to it. JavaScript knows the
 *     one it works on by a number (base/handles.h), which stands for nothing once that is answered
 *     or taken back: an answer that comes too late finds nothing and is dropped.
 * P2  One answer: for each that was SENT `on_done` runs once, on the lane of the sender, outside of
 *     turns, and never from inside the function that sent, answered or refused it. Instead of it,
 *     once, `drop`: if the sender was reset before its gate opened, or its lane has ended before
 *     the answer was back. Its pins are empty then.
 * P3  What one lane sends to one place arrives in the order in which it was SENT, and answers come
 *     back in the order in which they were let go: lists and mailboxes are queues, and nothing is
 *     put back into one.
 * P4  What it carries is the variant's: the bytes of the arguments are the sender's until it is
 *     SENT, the target's from ARRIVED on, who may take them; those of the result are the target's
 *     until RETURNING and the sender's from DONE on. Whoever frees it frees what is left of both.
 * P5  Bounded: of one object CN_OBJECT_INBOX_MAX calls wait, with CN_OBJECT_INBOX_BYTES_MAX bytes;
 *     a lane has CN_DESK_OUT_MAX out that are not back. Past either it is refused as overloaded.
 * P6  What ends, and what becomes of it:
 *       - the sender's object: GATED is dropped; all else comes back, and finds nobody to tell;
 *       - the target (reset, aborted, out of CPU time or memory, its code updated): ARRIVED is
 *         refused with the reason; ANSWERED in a turn that was not committed comes back with that
 *         error, else with its answer;
 *       - the target's lane: SENT is refused as "the server is stopping";
 *       - the sender's lane: what is back by then is told to its sender, the rest is dropped;
 *       - the process: nothing is left; an answer that was told rests on durable writes (G1).
 *
 * A *place* is where something lives. Each is behind a desk of this process, so every envelope goes
 * to a desk first, and only the step there looks at the kind of place:
 *
 *     kind     is                                     what the step does with what ARRIVES
 *     LANE     the lane of the desk                   gives it to the variant: `arrive`
 *     NODE     another node of the cluster, which     gives it to the carrier of the desk: AWAY
 *              the lane of the desk speaks to
 *     ENDED    a node whose session is over           refuses it, as reset
 *
 *     sender's lane         desk of the place             the other node
 *     cn_envelope_send() ──► step ──► arrive() ── NODE ──► carrier ── pipe ──► a step there
 *     on_done() ◄─────────── answered  ◄── cn_envelope_back() ◄── pipe ──────  answered
 *
 * P7  Who sends need not know where an object lives: its place is the lane that has it if its shard
 *     is here (cn_node_place()). That lane alone asks whether it is. If not, the call's place is a
 *     node from then on, and the carrier of that lane has it. So calls of one lane to one object
 *     take one way, whoever has the shard (C1 of object/call.h).
 * P8  What is AWAY is its carrier's alone. It comes back ARRIVED, exactly once, outside of turns,
 *     and is then answered or refused as by a target; a call may be taken in instead, if its shard
 *     has come here meanwhile. By the time the desk closes everything is back.
 * P9  There is one carrier for each desk, set before anything arrives there and cleared when nothing
 *     can any more. A node that is no member of a cluster has none: nothing is AWAY there, and what
 *     is for another node is refused.
 *
 * A desk is where the envelopes of a lane arrive: the mailbox is for those of other lanes, the list
 * for its own. Going on with one is a step (cn_desk_step_one()), done outside of turns only.
 *
 * Threads:   a desk and its carrier belong to its loop's thread. Of an envelope: see P1.
 * Ownership: see P1; the variant's struct begins with it or embeds it, and is freed by on_done or
 *            drop. */
#ifndef CN_OBJECT_ENVELOPE_H
#define CN_OBJECT_ENVELOPE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "base/err.h"
#include "base/list.h"
#include "base/mailbox.h"
#include "base/origin.h"
#include "object/output.h"

struct cn_object;
struct cn_object_lane;

#define CN_DESK_OUT_MAX (1u << 20)

/* What kind of failure the sender sees (DO-ERR-1). The first four travel between nodes. */
enum cn_call_fault {
    CN_FAULT_REMOTE = 1,     /* thrown by the object's own code */
    CN_FAULT_RETRYABLE = 2,  /* the object was not reached; a new try may succeed */
    CN_FAULT_OVERLOADED = 4, /* a bound was reached */
    CN_FAULT_RESET = 8,      /* the object was reset meanwhile */
    CN_FAULT_AWAY = 16,      /* told to scripts alone: of CN_ECLOSED, which none of them can make */
    /* Told by a carrier, of events of scripts (worker/background.h, B2): it has not begun at the
     * other node, nor ever will. */
    CN_FAULT_UNSENT = 32,
};

/* --- places ---------------------------------------------------------------------------------- */

struct cn_envelope;

/* What takes envelopes to other nodes (P8, P9). remote/ has the only one. */
struct cn_carrier {
    /* It is AWAY; cn_envelope_back() or, of a call, cn_call_back(), now or later. */
    void (*carry)(struct cn_carrier *carrier, struct cn_envelope *envelope);
};

struct cn_desk {
    unsigned index;                 /* of its lane */
    struct cn_mailbox *mailbox;     /* borrowed: the lane's */
    struct cn_object_lane *objects; /* borrowed: the objects of the lane; NULL: it has none */
    struct cn_carrier *carrier;     /* borrowed; NULL: there are no other nodes */
    void *data;                     /* the lane around it */
    struct cn_list ready;           /* of struct cn_envelope: from this lane to itself, and back */
    size_t out;                     /* sent from here and not back: P5 */
    size_t away;                    /* its carrier has: P8 */
    bool stepping;                  /* a step is on the stack: steps are never nested */
    bool closed;                    /* nothing arrives here any more */
    uv_idle_t spin;                 /* runs while there may be something for a step, */
    void (*step)(struct cn_desk *desk); /* which does what it can, outside of turns */
};

enum cn_place_kind {
    CN_PLACE_NOWHERE, /* not known yet */
    CN_PLACE_LANE,    /* of this process */
    CN_PLACE_NODE,    /* another one */
    CN_PLACE_ENDED,   /* it was one */
    CN_PLACE_KINDS
};

struct cn_place {
    enum cn_place_kind kind;
    unsigned lane;        /* of a node's life: of what it has lent */
    struct cn_desk *desk; /* the lane's; the one that speaks to the node */
    /* CN_PLACE_NODE. `disk` 0: whichever has the shard of the call's object; else it is an event for
     * a worker of that node. */
    uint64_t disk, life;
};

/* What is said of CN_PLACE_ENDED. */
#define CN_PLACE_ENDED_TEXT "This stub has ended: its node was taken for dead meanwhile."

static inline struct cn_place cn_desk_place(struct cn_desk *desk)
{
    return (struct cn_place){.kind = CN_PLACE_LANE, .desk = desk};
}

/* As the lane of `desk` reaches it. */
static inline struct cn_place cn_node_place_of(struct cn_desk *desk, uint64_t disk, uint64_t life,
                                               unsigned lane)
{
    return (struct cn_place){CN_PLACE_NODE, lane, desk, disk, life};
}

static inline bool cn_place_is_desk(const struct cn_place *place, const struct cn_desk *desk)
{
    return place->kind == CN_PLACE_LANE && place->desk == desk;
}

/* `mailbox` is open. */
void cn_desk_open(struct cn_desk *desk, unsigned index, uv_loop_t *loop, struct cn_mailbox *mailbox,
                  void (*step)(struct cn_desk *desk), void *data);
/* Sees to it that a step comes. */
void cn_desk_kick(struct cn_desk *desk);
/* Goes on with the next envelope of the list. False: there is none. Within a step. */
bool cn_desk_step_one(struct cn_desk *desk);
/* W3 of base/loop.h, outside of steps: all in the list are on their way from this lane to itself
 * and counted in `out`, with `others` that are known to be from here. */
void cn_desk_check(const struct cn_desk *desk, size_t others);
/* The lane ends: refuses what is on its way to it and tells senders what is back (P6). Its mailbox
 * is closed next, which does the same to what is in there. */
void cn_desk_close(struct cn_desk *desk);

/* --- envelopes ------------------------------------------------------------------------------- */

enum cn_envelope_state {
    CN_ENVELOPE_OPEN,
    CN_ENVELOPE_GATED,
    CN_ENVELOPE_SENT,
    CN_ENVELOPE_ARRIVED,
    CN_ENVELOPE_AWAY,
    CN_ENVELOPE_ANSWERED,
    CN_ENVELOPE_RETURNING,
    CN_ENVELOPE_DONE,
    CN_ENVELOPE_STATES
};

/* All zero: OPEN. */
struct cn_envelope {
    struct cn_mail mail;
    struct cn_list link;     /* in a desk's list; while ARRIVED, the target's */
    struct cn_output output; /* while GATED or ANSWERED */
    enum cn_envelope_state state;
    unsigned faults;   /* of enum cn_call_fault, when it failed */
    struct cn_err err; /* code 0: success */
    struct cn_place from, to;
    struct cn_origin origin;
    /* The variant's: it has ARRIVED. Ends, now or later, with one of cn_envelope_answer() and
     * cn_envelope_refuse(). */
    void (*arrive)(struct cn_envelope *envelope);
    void (*on_done)(struct cn_envelope *envelope); /* the sender's: P2 */
    void (*drop)(struct cn_envelope *envelope);    /* may be NULL from a lane to itself, ungated */
    void *data;                                    /* the sender's own */
};

/* Whether the table of moves has this one. */
bool cn_envelope_may_move(enum cn_envelope_state from, enum cn_envelope_state to);

/* Sends it from the lane that runs, when the gate of the object `gate` opens; NULL: at once. */
void cn_envelope_send(struct cn_envelope *envelope, struct cn_object *gate);
/* The same from a lane to itself, without a turn of the list: it has ARRIVED when this returns, and
 * `arrive` is the caller's to do. */
void cn_envelope_hand_in(struct cn_envelope *envelope);
/* It is for another node: from ARRIVED on. The desk has a carrier. */
void cn_envelope_carry(struct cn_envelope *envelope);
/* The carrier gives it back: ARRIVED again. */
void cn_envelope_back(struct cn_envelope *envelope);
/* It has its answer (or `err` and `faults`), which goes back when the gate of the object `gate`
 * opens; NULL: at once. */
void cn_envelope_answer(struct cn_envelope *envelope, struct cn_object *gate);
/* It will not be answered. */
void cn_envelope_refuse(struct cn_envelope *envelope, unsigned faults, int code, const char *text);

#endif
