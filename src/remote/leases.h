/* SPDX-License-Identifier: Apache-2.0 */
/* remote/leases.h - what objects and workers of a lane have lent to other nodes, and until when.
 *
 * What is by reference (object/lent.h) is kept by its owner, who counts how many hold it, and lets
 * go of it when that is nobody. Here is written down which of those are on other nodes: a *row* is
 * how many a session of another node (membership/member.h) holds of one thing. So when that session is
 * over its share is given back in its name, as if it had disposed of it.
 *
 *     a session of another node               its row, by
 *     asks, and the answer has a reference    +1, as the answer leaves (cn_leases_given())
 *     is given a stub of it by a third        +1, CN_LENT_LEND, which that third one sends
 *     duplicates, disposes of a stub          +1, -1: "~retain", "~release", which go on to the
 * owner is over                                 what is left is released
 *
 * Arguments are no row: what is lent for a call comes back with its end, however that comes.
 *
 * S1  The engine alone says that a session is over: it is missing among those that are live and was
 *     among them before, or another of its disk is live, or it was never among them for
 *     UNSEEN_MS. A broken pipe, a silent link, a node that is cut off from its peers or that cannot
 *     be asked end nothing: what is held is held by who may live, and works again when he is
 *     reached.
 * S2  What is over stays over (C1: sessions do not come again). Notes of such a session count for
 *     nothing and go no further; its calls to what was lent are refused as reset; what an answer to
 *     it has by reference is not counted. Its calls to objects are taken as ever.
 * S3  When a session is over each of its rows is released once for each that it counts, and is
 *     gone; so nobody's share is given back twice, and nobody else's. It runs as any release does:
 *     after what the owner was sent before, in a turn of its own.
 * S4  The other side of S2: when this node learns that its own session is over, what came to it by
 *     reference until then has ended. Stubs are of a *term*, and those of an earlier one fail here
 *     (retryable, reset), and send no notes. The next term begins when a session is over, not when
 *     one begins.
 * S5  Rows add up in whatever order notes arrive: one may be below zero for a moment, if a holder
 *     has released before it was known to hold. Only what is above zero is given back.
 * S6  An object that is not in memory has lent nothing (its numbers are not used again): notes are
 *     not delivered to it, and wake nobody.
 * S7  An answer that nobody waits for any more gives nothing away: what it has is released at once.
 *     One that is lost on its way is not known to be: its share lasts until the session is over, or
 *     the owner.
 * S8  Bounded: LEASES_MAX rows of a lane. What finds no room is not counted: it is let go of when
 *     its holder says so, or its owner ends. Sessions of releases that do not tell theirs are 0,
 * and are not counted either.
 *
 * Threads:   the lane's.
 * Ownership: embedded in struct cn_remote_lane. */
#ifndef CN_REMOTE_LEASES_H
#define CN_REMOTE_LEASES_H
#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"
#include "object/lent.h"
#include "shard/host.h"

struct cn_pipe_asker;
struct cn_remote_lane;

/* Who has lent something: an object, or an instance of a worker of the lane. No padding: it is a
 * part of keys. */
struct cn_lease_owner {
    struct cn_object_key key; /* zero: a worker */
    uint32_t serial;          /* of a worker */
};

/* Who holds it. */
struct cn_lease_holder {
    uint64_t disk, session; /* 0: not known, not counted */
};

struct cn_leases {
    struct cn_map rows;    /* struct row_key -> how many, in the pointer; never 0 */
    struct cn_map holders; /* session -> struct holder, owned: those that have rows */
    struct cn_map over;    /* disk -> struct ended, owned: S2 */
    struct cn_host_session live[CN_CLUSTER_NODES_MAX];
    unsigned live_count;
    uint64_t own; /* the session of this node; 0: none */
    uint32_t term;
};

void cn_leases_init(struct cn_leases *leases);
void cn_leases_fini(struct cn_leases *leases);

/* As the engine told (cn_host_config.sessions). Releases what is over. */
void cn_leases_told(struct cn_remote_lane *lane, uint64_t own,
                    const struct cn_host_session *sessions, unsigned count);

/* A call from another node to something lent. */
enum cn_lease_verdict {
    CN_LEASE_PASS,   /* it is for the owner */
    CN_LEASE_NOTED,  /* a note that goes no further: it is answered with nothing */
    CN_LEASE_REFUSED /* S2 */
};
enum cn_lease_verdict cn_leases_asked(struct cn_remote_lane *lane, const struct cn_lease_holder *by,
                                      const struct cn_lease_owner *owner, const char *method,
                                      const uint8_t *bytes, size_t size);

/* The answer of `owner` is about to leave for a session: what it has by reference is held there.
 * `waits` false: S7. */
void cn_leases_given(struct cn_remote_lane *lane, const struct cn_lease_holder *to,
                     const struct cn_lease_owner *owner, const struct cn_lent_list *lent,
                     bool waits);

/* CN_LENT_LEND, from this node. */
void cn_leases_lend(struct cn_remote_lane *lane, const struct cn_lease_owner *owner, double number,
                    const struct cn_lease_holder *to);

/* How many rows. */
size_t cn_leases_count(const struct cn_leases *leases);

#endif
