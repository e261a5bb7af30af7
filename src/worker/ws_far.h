/* SPDX-License-Identifier: Apache-2.0 */
/* worker/ws_far.h - two ends on different nodes of a cluster, joined by letters.
 *
 *     node A:  [client's end | far] ── letters ──► [far | object's end]  :node B
 *                                   ◄── letters ──
 *
 * What worker/ws_bridge.h is between lanes. A far end is made on A when a Response arrives there
 * whose WebSocket is of B, and reaches out when somebody on A uses it. The client's connection
 * stays on A; tags, attachment and all else that an object knows of its sockets are on B.
 *
 * A *trunk* is what a lane has with one lane of another node: their conversations share its
 * questions (struct cn_ws_carrier), each with as many letters as have gathered, and the answer to a
 * question names the conversations that are not known there.
 *
 * F1  Letters of a trunk arrive in order and once; or a question fails, and every conversation of
 *     the trunk ends. Nothing is sent again.
 * F2  What one side has lost ends on the other: it is named in the answer to its next letter, and
 *     about every one that says nothing a letter asks (keep_ms). It ends a tick or two later: how
 *     the other side has ended may be on its way still.
 * F3  A site has the life of its process: a letter for another life is for nobody.
 * F4  When the other side is lost, the side that was claimed (in front of a client) sees 1012, so
 *     that the client connects again; the side of the object sees 1006.
 * F5  Bounded: letters that wait in a trunk have WAIT_MAX bytes and one message more. Beyond that
 *     nothing is taken from the queues of its ends, whose owners are asked to hold back (E4 of
 *     net/ws_end.h). ASKED_MAX questions of a trunk are under way, TRUNKS_MAX trunks of a lane.
 * F6  Bytes of another node are input: what is malformed is refused as a whole.
 * F7  Moves (K7 of object/socket.h). An object goes from B to C: B asks A to PARK; A says PARKED
 *     behind all that it has sent, and keeps what comes then; B gives C what it knows of the socket
 *     (worker/ws_move.h); C says RESUME to A, which from then on speaks with C. A client of B
 *     itself becomes such a side of B's, parked from the start. One that nobody resumes within
 *     PARK_MS is lost, and at once if B closes it instead. The site of a parked end need not be of
 *     another node: a question to this node goes by mail.
 * F8  PARK is behind all that the object has sent, also what waits because the trunk is full: what
 *     comes later finds nobody, and its client would miss it and not know.
 *
 * Threads:   the lane's.
 * Ownership: a far end belongs to its conversation, and goes with it. */
#ifndef CN_WORKER_WS_FAR_H
#define CN_WORKER_WS_FAR_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cn_buf;
struct cn_lane;
struct cn_ws_end;
struct cn_ws_far;

/* An end of some node. */
struct cn_ws_site {
    uint64_t disk, life; /* of its process */
    unsigned lane;
    uint64_t handle;
};

/* A question to lane `to` of a node. */
struct cn_ws_asking {
    uint64_t disk;
    unsigned to;
    uint8_t *bytes; /* taken over (cn_free()) */
    size_t size;
    /* Called once, later, by the loop: `answer` is what cn_ws_far_asked() has said there, borrowed;
     * NULL: it has failed. */
    void (*done)(struct cn_lane *lane, void *asked, const uint8_t *answer, size_t size);
    void *asked;
};

/* The way to other nodes, given to a lane by who ties it to them. */
struct cn_ws_carrier {
    uint64_t disk, life; /* of this process */
    unsigned keep_ms;    /* F2 */
    void *data;
    /* Questions of one lane to another arrive in the order in which they are asked. */
    void (*ask)(void *data, struct cn_lane *lane, const struct cn_ws_asking *asking);
};

/* A new end here whose other side is at `site`, on another node. NULL: there are too many. */
struct cn_ws_end *cn_ws_far_new(struct cn_lane *lane, const struct cn_ws_site *site);
/* The far end behind an end, or NULL. */
struct cn_ws_far *cn_ws_far_of(struct cn_ws_end *end);
/* Reaches out, if it has not. */
void cn_ws_far_attach(struct cn_ws_far *far);
/* Ends it here, and tells the other side if it can. */
void cn_ws_far_free(struct cn_ws_far *far);

/* --- moves: F7 ------------------------------------------------------------------------------- */

/* Takes over an end that was an object's: a side that is parked. */
void cn_ws_far_park(struct cn_lane *lane, struct cn_ws_end *end, struct cn_ws_site *site);
/* Asks the other side of one that has the object here to park. `parked` is called once, from the
 * loop: true, all that it has sent is here; false, it is lost, and the far end goes. */
void cn_ws_far_ask_park(struct cn_ws_far *far, void (*parked)(void *data, bool is_parked),
                        void *data);
/* Whether it is the side that was claimed: a client is behind it. */
bool cn_ws_far_is_near(const struct cn_ws_far *far);
struct cn_ws_site cn_ws_far_site(const struct cn_ws_far *far); /* of the other side */
/* The other side is another's now: goes without a word. */
void cn_ws_far_hand_over(struct cn_ws_far *far);
/* If it is still parked: it is lost. */
void cn_ws_far_unpark(struct cn_lane *lane, uint64_t handle);
/* A new end here for an object that has come; its other side is parked at `site`, and resumes.
 * NULL: there are too many. What is sent on its peer comes before all that the other side has kept.
 */
struct cn_ws_end *cn_ws_far_resume(struct cn_lane *lane, const struct cn_ws_site *site);

/* A question of another node's lane. Appends the answer. False: F6. */
bool cn_ws_far_asked(struct cn_lane *lane, uint64_t disk, const uint8_t *bytes, size_t size,
                     struct cn_buf *answer);
/* The node is silent, or gone: its conversations are lost. */
void cn_ws_far_break(struct cn_lane *lane, uint64_t disk);

void cn_ws_far_lane_tick(struct cn_lane *lane); /* once a second */
/* Ends have gone; answers that come later find nothing. */
void cn_ws_far_lane_stop(struct cn_lane *lane);

#endif
