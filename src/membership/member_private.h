/* SPDX-License-Identifier: Apache-2.0 */
/* membership/member_private.h - what the parts of a member tell each other.
 *
 * member.c has the session, the link, batches and the gate; member_shard.c the map, roles and
 * tails; member_place.c which shard should be where. A planted bug is a place that asks BROKEN():
 * compiled only for the simulation that looks whether it finds them. */
#ifndef CN_MEMBERSHIP_MEMBER_PRIVATE_H
#define CN_MEMBERSHIP_MEMBER_PRIVATE_H
#include "membership/member.h"

#ifdef CN_SIMULATION
enum cn_broken {
    CN_BROKEN_NOTHING,
    CN_BROKEN_NO_LEASE, /* C5 */
    CN_BROKEN_LEASE_FROM_ANSWER,
    CN_BROKEN_EARLY_ACK,
    CN_BROKEN_NO_BARRIER, /* C4 */
    CN_BROKEN_ANY_LINK,
    CN_BROKEN_OLD_READ, /* C3 */
    CN_BROKEN_NO_TAIL,
    CN_BROKEN_MOVE_EARLY, /* C7 */
    CN_BROKEN_MOVE_OPEN,
    CN_BROKEN_EPOCH,      /* C9 */
    CN_BROKEN_FEED_EARLY, /* C6 */
    CN_BROKEN_COPY_EARLY,
    CN_BROKEN_HASTY_FENCE, /* C2 */
    CN_BROKEN_UNSYNCED_VIEW,
    CN_BROKEN_FORGED_HINT,
    CN_BROKEN_RESEND_BLIND, /* C1 */
    CN_BROKEN_HELLO_VIEW,
    CN_BROKEN_KEEP_UNDURABLE,
    CN_BROKEN_LEAVE_OPEN, /* C5 */
    CN_BROKEN_CONFIRM_OLD,
    CN_BROKEN_FLAWED_ENGINE, /* C11 */
    CN_BROKEN_OLDER_TIMELINE,
    CN_BROKEN_IGNORE_TRIM,  /* C8 */
    CN_BROKEN_FORGET_COPY,  /* S5 of member_shard.c */
    CN_BROKEN_CLAIM_CUT,    /* C8, and the engine does not ask either */
    CN_BROKEN_DROP_PARTIAL, /* P3 of member_place.c */
    CN_BROKEN_JOIN_LESS,    /* C15: an engine that tells less is joined, */
    CN_BROKEN_OLDER_MAP,    /* its map is believed, */
    CN_BROKEN_FORGETFUL,    /* or what was seen is forgotten with the process, */
    CN_BROKEN_UNREMEMBERED, /* or is acted on before the disk has it */
    CN_BROKEN_ADOPT_OPEN,   /* C16: a restored shard is served, and its other copies stay */
    CN_BROKEN_MEMBER
};
extern int cn_member_broken;
#define BROKEN(what) (cn_member_broken == CN_BROKEN_##what)
#else
#define BROKEN(what) false
#endif

/* member.c: sends if the session is LIVE and the link has room; false: not now. */
bool cn_member_send(struct cn_member *member, int64_t now_ms, enum cn_engine_kind kind,
                    const struct cn_engine_item *items, size_t count);
void cn_member_resign(struct cn_member *member, int64_t now_ms);
void cn_member_is_over(struct cn_member *member, int64_t now_ms, uint64_t session); /* C13 */
/* C15 */
void cn_member_lost_data(struct cn_member *member, int64_t now_ms);
struct cn_member_peer *cn_member_peer_find(struct cn_member *member, uint64_t session);
struct cn_member_peer *cn_member_peer_of_disk(struct cn_member *member, uint64_t disk);

/* member_shard.c */
static inline bool cn_role_owns(enum cn_member_role role)
{
    return role >= CN_ROLE_TAKING;
}
bool cn_shard_has_replica(const struct cn_member_shard *shard, uint64_t disk);
void cn_shard_set_role(struct cn_member *member, int64_t now_ms, uint32_t index,
                       enum cn_member_role role);
void cn_shard_want_read(struct cn_member *member, uint32_t index);
void cn_shard_link_lost(struct cn_member *member);
void cn_shard_before_settling(struct cn_member *member, int64_t now_ms);
void cn_shard_after_settling(struct cn_member *member, int64_t now_ms);
void cn_shard_fenced(struct cn_member *member, int64_t now_ms);
void cn_shard_view(struct cn_member *member, int64_t now_ms, const struct cn_engine_view *view);
void cn_shard_opened(struct cn_member *member); /* C12 */
void cn_shard_barrier(struct cn_member *member, int64_t now_ms, uint64_t number);
void cn_shard_answer(struct cn_member *member, int64_t now_ms,
                     const struct cn_engine_answer *answer);
void cn_shard_pump(struct cn_member *member, int64_t now_ms);
void cn_shard_durable(struct cn_member *member, const struct cn_engine_item *item);
void cn_shard_feed(struct cn_member *member, uint32_t index, uint64_t from, uint64_t to);
void cn_shard_begin_move(struct cn_member *member, int64_t now_ms, uint32_t index,
                         uint64_t session);
void cn_shard_adopt(struct cn_member *member, int64_t now_ms, uint32_t index);
void cn_shard_void(struct cn_member *member, int64_t now_ms, uint32_t index);

/* member_place.c: after each view. */
void cn_place_count(struct cn_member *member);
void cn_place_plan(struct cn_member *member, int64_t now_ms);

#endif
