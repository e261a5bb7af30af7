/* SPDX-License-Identifier: Apache-2.0 */
/* membership/member_place.c - which shard should be where.
 *
 * Every node looks at the same map and does its own part: who has a replica claims what has no
 * owner, who has none and is next in line copies what has too few, an owner gives away and drops.
 * Nobody is asked; the engine refuses what another has done first. So none of this can do harm by
 * being wrong: it is about being served soon, spread evenly, and coming to rest.
 *
 * P1  In line: nodes are ranked by what they have, then by a hash with the shard; the first acts at
 *     once, the next a while later, so that one that does not act delays but does not prevent.
 * P2  Rest: shards and replicas move for balance only between nodes that differ by two or more, so
 *     a move never makes a move back reasonable; and only when the map has been quiet. What is
 *     under way counts as if it were there, or two at once would overshoot, and come back.
 * P3  An owner drops a replica when as many as are wanted remain on live nodes; the engine checks.
 *     Where bodies lie beside the stores, those that remain are to have all of them, as the owner
 *     has seen it under this epoch: a node whose replicas are dropped may be taken away, disk and
 *     all, at that moment (test/simulate/bodies.c does).
 * P4  An owner that is asked for a copy while it gives the shard away, or has not taken it yet,
 *     says nothing: who has asked asks again, whoever is the owner then, until a copy comes.
 */
#include "membership/member_private.h"

static uint64_t mix(uint64_t x)
{
    x ^= x >> 33;
    x *= 0xff51afd7ed558ccdull;
    x ^= x >> 33;
    x *= 0xc4ceb9fe1a85ec53ull;
    return x ^ (x >> 33);
}

void cn_place_count(struct cn_member *member)
{
    for (unsigned i = 0; i < member->peer_count; i++)
        member->peers[i].owned = member->peers[i].held = 0;
    for (unsigned s = 0; s < member->config.shard_count; s++) {
        const struct cn_engine_shard *row = &member->shards[s].row;
        struct cn_member_peer *owner = cn_member_peer_find(member, row->owner);
        if (owner)
            owner->owned++;
        for (unsigned i = 0; i < row->replica_count; i++) {
            struct cn_member_peer *peer = cn_member_peer_of_disk(member, row->disks[i]);
            if (peer)
                peer->held++;
        }
    }
}

static bool before(const struct cn_member_peer *a, const struct cn_member_peer *b, unsigned a_load,
                   unsigned b_load, uint32_t shard)
{
    if (a->draining != b->draining)
        return b->draining;
    if (a->shut != b->shut)
        return b->shut;
    if (a_load != b_load)
        return a_load < b_load;
    uint64_t a_hash = mix(a->id * 2654435761u + shard), b_hash = mix(b->id * 2654435761u + shard);
    return a_hash != b_hash ? a_hash < b_hash : a->id < b->id;
}

/* How many that could do it as well come before `me`: P1. */
static unsigned rank(struct cn_member *member, const struct cn_member_peer *me, uint32_t index,
                     bool by_owned, bool replicas)
{
    unsigned count = 0;
    for (unsigned i = 0; i < member->peer_count; i++) {
        const struct cn_member_peer *peer = &member->peers[i];
        if (peer->id == me->id ||
            cn_shard_has_replica(&member->shards[index], peer->disk) != replicas)
            continue;
        count += by_owned ? before(peer, me, peer->owned, me->owned, index)
                          : before(peer, me, peer->held, me->held, index);
    }
    return count;
}

/* Replicas on live nodes that are to stay. */
static unsigned good_replicas(struct cn_member *member, uint32_t index)
{
    const struct cn_engine_shard *row = &member->shards[index].row;
    unsigned count = 0;
    for (unsigned i = 0; i < row->replica_count; i++) {
        struct cn_member_peer *peer = cn_member_peer_of_disk(member, row->disks[i]);
        count += peer && !peer->draining;
    }
    return count;
}

/* P3: nothing that is beside the store would be lost with the others. */
static bool is_whole(const struct cn_member *member, uint32_t index, uint64_t disk)
{
    const struct cn_member_shard *shard = &member->shards[index];
    bool told = shard->whole_epoch == shard->epoch; /* what was seen under another says nothing */
    bool whole = !member->config.waits_for_whole || BROKEN(DROP_PARTIAL);
    for (unsigned i = 0; i < CN_CLUSTER_REPLICAS_MAX && !whole; i++)
        whole = told && shard->whole[i] == disk;
    return whole;
}

/* Of the good ones, those that are whole. */
static unsigned whole_replicas(struct cn_member *member, uint32_t index)
{
    const struct cn_engine_shard *row = &member->shards[index].row;
    unsigned count = 0;
    for (unsigned i = 0; i < row->replica_count; i++) {
        struct cn_member_peer *peer = cn_member_peer_of_disk(member, row->disks[i]);
        count += peer && !peer->draining && is_whole(member, index, row->disks[i]);
    }
    return count;
}

void cn_member_whole(struct cn_member *member, uint32_t index, uint64_t epoch,
                     const uint64_t *disks, unsigned count)
{
    struct cn_member_shard *shard = &member->shards[index];
    shard->whole_epoch = epoch;
    for (unsigned i = 0; i < CN_CLUSTER_REPLICAS_MAX; i++)
        shard->whole[i] = i < count ? disks[i] : 0;
}

/* --- what has no owner ----------------------------------------------------------------------- */

/* Replicas on live nodes, whether they are to stay or not. */
static unsigned live_replicas(struct cn_member *member, uint32_t index)
{
    const struct cn_engine_shard *row = &member->shards[index].row;
    unsigned count = 0;
    for (unsigned i = 0; i < row->replica_count; i++)
        count += cn_member_peer_of_disk(member, row->disks[i]) != NULL;
    return count;
}

/* One who has nothing may claim what is whole in the engine (C8). It is nobody's yet, or those who
 * had it are away; they may come back, so they are waited for as for any replica. Of a restored
 * shard (C16) those that the map names may have nothing either. */
static bool may_claim_fresh(struct cn_member *member, uint32_t index)
{
    const struct cn_member_shard *shard = &member->shards[index];
    bool whole = !shard->row.trim || BROKEN(CLAIM_CUT);
    return shard->role == CN_ROLE_NONE && !shard->voided && whole &&
           shard->row.replica_count < CN_CLUSTER_REPLICAS_MAX &&
           (shard->row.restored || !live_replicas(member, index));
}

static bool should_claim(struct cn_member *member, int64_t now_ms, uint32_t index,
                         const struct cn_member_peer *me)
{
    struct cn_member_shard *shard = &member->shards[index];
    bool fresh = may_claim_fresh(member, index);
    if (shard->role != CN_ROLE_FOLLOWING && !fresh)
        return false;
    if (cn_member_peer_find(member, shard->row.owner)) {
        if (shard->role == CN_ROLE_FOLLOWING)
            shard->need_since_ms = 0;
        return false;
    }
    if (!shard->need_since_ms)
        shard->need_since_ms = now_ms;
    int64_t wait_ms = member->config.beat_ms * rank(member, me, index, true, !fresh);
    if (fresh && shard->row.replica_count)
        wait_ms += member->config.replace_ms;
    /* C16: first those that the map names, then who else has a copy, then who has nothing. */
    if (shard->row.restored && !cn_shard_has_replica(shard, member->config.disk))
        wait_ms += member->config.replace_ms;
    if (shard->row.restored && fresh)
        wait_ms += member->config.replace_ms;
    return now_ms - shard->need_since_ms >= wait_ms;
}

static void plan_claims(struct cn_member *member, int64_t now_ms, struct cn_member_peer *me)
{
    struct cn_engine_item items[CN_ENGINE_ITEMS_MAX];
    unsigned count = 0;
    if (member->claiming || member->leaving || member->config.shut) /* C12 */
        return;
    for (uint32_t i = 0; i < member->config.shard_count && count < CN_ENGINE_ITEMS_MAX; i++) {
        if (!should_claim(member, now_ms, i, me))
            continue;
        const struct cn_member_shard *shard = &member->shards[i];
        bool fresh = shard->row.restored && shard->role == CN_ROLE_NONE;
        items[count++] = (struct cn_engine_item){
            .shard = i, .epoch = shard->row.epoch, .fresh = fresh && !BROKEN(CLAIM_CUT)};
        me->owned++; /* so that several nodes share what one has left */
    }
    if (!count || !cn_member_send(member, now_ms, CN_ENGINE_CLAIM, items, count))
        return;
    member->claiming = true;
    for (unsigned i = 0; i < count; i++) {
        struct cn_member_shard *shard = &member->shards[items[i].shard];
        shard->fresh = shard->role == CN_ROLE_NONE;
        shard->need_since_ms = 0;
        cn_shard_set_role(member, now_ms, items[i].shard, CN_ROLE_CLAIMING);
    }
}

/* --- what is to go elsewhere ----------------------------------------------------------------- */

static struct cn_member_peer *move_target(struct cn_member *member, uint32_t index)
{
    const struct cn_engine_shard *row = &member->shards[index].row;
    struct cn_member_peer *best = NULL;
    for (unsigned i = 0; i < row->replica_count; i++) {
        struct cn_member_peer *peer = cn_member_peer_of_disk(member, row->disks[i]);
        if (!peer || peer->id == member->session || peer->draining || peer->shut) /* C12 */
            continue;
        if (!best || before(peer, best, peer->owned, best->owned, index))
            best = peer;
    }
    return best;
}

/* Shards on their way from here to there. */
static unsigned moving_to(const struct cn_member *member, uint64_t session)
{
    unsigned count = 0;
    for (uint32_t i = 0; i < member->config.shard_count && member->moves; i++)
        count += member->shards[i].role >= CN_ROLE_STOPPING && member->shards[i].move_to == session;
    return count;
}

static void plan_moves(struct cn_member *member, int64_t now_ms, struct cn_member_peer *me)
{
    bool out = member->leaving || me->draining;
    bool quiet = now_ms - member->changed_ms >= member->config.settle_ms;
    if (!out && !quiet)
        return;
    for (uint32_t i = 0; i < member->config.shard_count; i++) {
        if (member->moves >= CN_MEMBER_MOVES_MAX || member->shards[i].role != CN_ROLE_SERVING)
            continue;
        struct cn_member_peer *to = move_target(member, i);
        if (!to || (!out && to->owned + moving_to(member, to->id) + 2 + member->moves > me->owned))
            continue; /* P2 */
        cn_shard_begin_move(member, now_ms, i, to->id);
    }
}

/* --- replicas: too few, too many ------------------------------------------------------------- */

/* The disk that is missed least, 0: none. The dead first, then the draining, then the fullest. */
static uint64_t drop_choice(struct cn_member *member, uint32_t index)
{
    const struct cn_engine_shard *row = &member->shards[index].row;
    unsigned good = whole_replicas(member, index), worst = 0;
    uint64_t disk = 0;
    if (good < member->config.replicas)
        return 0;
    for (unsigned i = 0; i < row->replica_count; i++) {
        struct cn_member_peer *peer = cn_member_peer_of_disk(member, row->disks[i]);
        if (row->disks[i] == member->config.disk)
            continue;
        if (!peer)
            return row->disks[i];
        unsigned weight = peer->draining ? 2 + CN_CLUSTER_SHARDS_MAX : 1 + peer->held;
        if ((peer->draining || good > member->config.replicas) && weight > worst) {
            worst = weight;
            disk = row->disks[i];
        }
    }
    return disk;
}

static void plan_drops(struct cn_member *member, int64_t now_ms)
{
    for (uint32_t i = 0; i < member->config.shard_count; i++) {
        struct cn_member_shard *shard = &member->shards[i];
        struct cn_engine_item item = {.shard = i};
        if (shard->role == CN_ROLE_SERVING && !shard->dropping)
            item.disk = drop_choice(member, i);
        else if (shard->role == CN_ROLE_NONE && shard->voided && !shard->dropping)
            item.disk = member->config.disk; /* C8: it has nothing */
        if (shard->role == CN_ROLE_NONE && shard->row.owner == member->session) {
            cn_member_resign(member, now_ms); /* given to who has nothing: others may claim it */
            return;
        }
        if (item.disk)
            shard->dropping = cn_member_send(member, now_ms, CN_ENGINE_DROP, &item, 1);
    }
}

/* Somebody who is not its owner has two replicas more than this node. */
static bool relieves(struct cn_member *member, uint32_t index, const struct cn_member_peer *me)
{
    const struct cn_engine_shard *row = &member->shards[index].row;
    for (unsigned i = 0; i < row->replica_count; i++) {
        struct cn_member_peer *peer = cn_member_peer_of_disk(member, row->disks[i]);
        if (peer && peer->id != row->owner && peer->held >= me->held + member->copies + 2) /* P2 */
            return true;
    }
    return false;
}

static bool should_copy(struct cn_member *member, int64_t now_ms, uint32_t index,
                        const struct cn_member_peer *me)
{
    struct cn_member_shard *shard = &member->shards[index];
    const struct cn_engine_shard *row = &shard->row;
    if (shard->role != CN_ROLE_NONE || shard->voided ||
        row->replica_count >= CN_CLUSTER_REPLICAS_MAX || !cn_member_peer_find(member, row->owner))
        return false;
    unsigned good = good_replicas(member, index);
    if (good >= member->config.replicas) {
        shard->need_since_ms = 0;
        bool quiet = now_ms - member->changed_ms >= member->config.settle_ms;
        return quiet && good == member->config.replicas && relieves(member, index, me) &&
               rank(member, me, index, false, false) == 0;
    }
    if (!shard->need_since_ms)
        shard->need_since_ms = now_ms;
    /* A node that is away may come back; one that was never there, or is draining, will not. */
    int64_t wait_ms =
        live_replicas(member, index) < row->replica_count ? member->config.replace_ms : 0;
    wait_ms += 4 * member->config.beat_ms * rank(member, me, index, false, false);
    return now_ms - shard->need_since_ms >= wait_ms;
}

static void ask_for_copy(struct cn_member *member, int64_t now_ms, uint32_t index)
{
    struct cn_member_shard *shard = &member->shards[index];
    struct cn_member_peer *owner = cn_member_peer_find(member, shard->row.owner);
    struct cn_member_message ask = {
        .kind = CN_MESSAGE_ASK, .shard = index, .session = member->session};
    shard->asked_ms = now_ms;
    if (owner)
        member->host->tell(member->host->data, owner->id, owner->disk, &ask);
}

static void plan_copies(struct cn_member *member, int64_t now_ms, struct cn_member_peer *me)
{
    for (uint32_t i = 0; i < member->config.shard_count; i++) {
        struct cn_member_shard *shard = &member->shards[i];
        if (shard->role == CN_ROLE_COPYING && now_ms - shard->since_ms >= member->config.copy_ms) {
            cn_shard_void(member, now_ms, i);
        } else if (shard->role == CN_ROLE_COPYING && !shard->begun &&
                   now_ms - shard->asked_ms >= 4 * member->config.beat_ms) {
            ask_for_copy(member, now_ms, i); /* P4 */
        }
        if (member->copies >= CN_MEMBER_COPIES_MAX || member->leaving || me->draining ||
            !should_copy(member, now_ms, i, me))
            continue;
        cn_shard_set_role(member, now_ms, i, CN_ROLE_COPYING);
        shard->begun = false;
        ask_for_copy(member, now_ms, i);
    }
}

/* C16: after a link broke, or when there was no room. */
static void plan_adoptions(struct cn_member *member, int64_t now_ms)
{
    for (uint32_t i = 0; i < member->config.shard_count; i++)
        cn_shard_adopt(member, now_ms, i);
}

/* --- what is told ---------------------------------------------------------------------------- */

static void plan_checkpoints(struct cn_member *member, int64_t now_ms)
{
    struct cn_engine_item items[CN_ENGINE_ITEMS_MAX];
    unsigned count = 0;
    for (uint32_t i = 0; i < member->config.shard_count && count < CN_ENGINE_ITEMS_MAX; i++) {
        struct cn_member_shard *shard = &member->shards[i];
        if (shard->role >= CN_ROLE_FOLLOWING && shard->checkpoint > shard->checkpoint_told)
            items[count++] = (struct cn_engine_item){.shard = i, .to = shard->checkpoint};
    }
    if (!count || !cn_member_send(member, now_ms, CN_ENGINE_CHECKPOINT, items, count))
        return;
    for (unsigned i = 0; i < count; i++)
        member->shards[items[i].shard].checkpoint_told = items[i].to;
}

/* Followers that hear nothing of their owner ask the engine. */
static void plan_reads(struct cn_member *member, int64_t now_ms)
{
    for (uint32_t i = 0; i < member->config.shard_count; i++) {
        struct cn_member_shard *shard = &member->shards[i];
        if (shard->role != CN_ROLE_FOLLOWING || now_ms - shard->fed_ms < 3 * member->config.feed_ms)
            continue;
        shard->fed_ms = now_ms;
        cn_shard_want_read(member, i);
    }
}

static void plan_drained(struct cn_member *member, const struct cn_member_peer *me)
{
    if (!me->draining || member->drained || me->held)
        return;
    member->drained = true;
    member->host->note(member->host->data, CN_NOTE_DRAINED);
}

void cn_place_plan(struct cn_member *member, int64_t now_ms)
{
    struct cn_member_peer *me = cn_member_peer_find(member, member->session);
    if (!me || !member->seen)
        return;
    plan_claims(member, now_ms, me);
    plan_moves(member, now_ms, me);
    plan_drops(member, now_ms);
    if (member->state != CN_MEMBER_LIVE)
        return; /* resigned */
    plan_adoptions(member, now_ms);
    plan_copies(member, now_ms, me);
    plan_checkpoints(member, now_ms);
    plan_reads(member, now_ms);
    plan_drained(member, me);
}
