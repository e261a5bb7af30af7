/* SPDX-License-Identifier: Apache-2.0 */
/* membership/member_shard.c - the map as a node knows it, and its own part in each shard.
 *
 * S1  Roles change by set_role() only, along the table of membership/member.h.
 * S2  `have` is of the one history: it moves by what is durable in the engine (answers of APPEND,
 *     what was read and has its barrier, feeds of owners, who feed nothing else: C6), without gaps.
 *     So a feed may be late, doubled or from one who owns no more: LSNs alone decide.
 * S3  A tail is read piece by piece; each piece waits for its own barrier (C4). Only the last
 *     barrier's map says whether to serve (C3).
 * S4  Whoever stops being an owner, for whatever reason, is told CLOSE with `have`.
 * S5  A copy that the engine may count is kept until a map says that it does not: ADD may have been
 *     done though its answer is lost, and another replica may be gone by then.
 * S6  Of a shard that is `restored` (C16) nothing is read or fed onto a copy that is not owned: it
 *     may have more than the engine's log, and will be replaced by its owner's. */
#include "base/assert.h"
#include "membership/member_private.h"

#define TO(role) (1u << (role))

static const unsigned moves[CN_ROLES] = {
    [CN_ROLE_NONE] = TO(CN_ROLE_COPYING) | TO(CN_ROLE_CLAIMING) | TO(CN_ROLE_FOLLOWING),
    [CN_ROLE_COPYING] = TO(CN_ROLE_JOINING) | TO(CN_ROLE_NONE),
    [CN_ROLE_JOINING] = TO(CN_ROLE_FOLLOWING) | TO(CN_ROLE_NONE),
    [CN_ROLE_FOLLOWING] = TO(CN_ROLE_CLAIMING) | TO(CN_ROLE_TAKING) | TO(CN_ROLE_NONE),
    [CN_ROLE_CLAIMING] = TO(CN_ROLE_TAKING) | TO(CN_ROLE_FOLLOWING) | TO(CN_ROLE_NONE),
    [CN_ROLE_TAKING] =
        TO(CN_ROLE_SERVING) | TO(CN_ROLE_TAKING) | TO(CN_ROLE_FOLLOWING) | TO(CN_ROLE_NONE),
    [CN_ROLE_SERVING] = TO(CN_ROLE_STOPPING) | TO(CN_ROLE_FOLLOWING) | TO(CN_ROLE_TAKING),
    [CN_ROLE_STOPPING] =
        TO(CN_ROLE_MOVING) | TO(CN_ROLE_SERVING) | TO(CN_ROLE_FOLLOWING) | TO(CN_ROLE_TAKING),
    [CN_ROLE_MOVING] = TO(CN_ROLE_FOLLOWING) | TO(CN_ROLE_SERVING) | TO(CN_ROLE_TAKING),
};

bool cn_role_may_change(enum cn_member_role from, enum cn_member_role to)
{
    return moves[from] & TO(to);
}

static unsigned is_copy(enum cn_member_role role)
{
    return role == CN_ROLE_COPYING || role == CN_ROLE_JOINING;
}

static unsigned is_move(enum cn_member_role role)
{
    return role == CN_ROLE_STOPPING || role == CN_ROLE_MOVING;
}

void cn_shard_set_role(struct cn_member *member, int64_t now_ms, uint32_t index,
                       enum cn_member_role role)
{
    struct cn_member_shard *shard = &member->shards[index];
    CN_ASSERT(moves[shard->role] & TO(role));
    member->copies += is_copy(role) - is_copy(shard->role);
    member->moves += is_move(role) - is_move(shard->role);
    shard->role = role;
    shard->since_ms = now_ms;
}

static void act(struct cn_member *member, enum cn_member_act what, uint32_t index, uint64_t from,
                uint64_t lsn)
{
    member->host->act(member->host->data, what, index, member->shards[index].epoch, from, lsn);
}

bool cn_shard_has_replica(const struct cn_member_shard *shard, uint64_t disk)
{
    for (unsigned i = 0; i < shard->row.replica_count; i++)
        if (shard->row.disks[i] == disk)
            return true;
    return false;
}

/* --- tails ----------------------------------------------------------------------------------- */

static void set_read(struct cn_member *member, uint32_t index, enum cn_member_read read)
{
    struct cn_member_shard *shard = &member->shards[index];
    unsigned *count[] = {[CN_READ_WANTED] = &member->wanted,
                         [CN_READ_SENT] = &member->reads,
                         [CN_READ_HELD] = &member->held};
    if (shard->read == CN_READ_HELD)
        act(member, CN_ACT_FORGET, index, 0, 0);
    if (shard->read)
        --*count[shard->read];
    if (read)
        ++*count[read];
    shard->read = read;
}

void cn_shard_want_read(struct cn_member *member, uint32_t index)
{
    const struct cn_member_shard *shard = &member->shards[index];
    bool waits = shard->row.restored && !cn_role_owns(shard->role); /* S6 */
    if (shard->read == CN_READ_IDLE && !waits)
        set_read(member, index, CN_READ_WANTED);
}

static void send_read(struct cn_member *member, int64_t now_ms, uint32_t index)
{
    struct cn_member_shard *shard = &member->shards[index];
    struct cn_engine_item item = {.shard = index, .from = shard->have};
    if (!cn_member_send(member, now_ms, CN_ENGINE_READ, &item, 1))
        return;
    shard->read_number = member->number;
    shard->read_from = shard->have;
    set_read(member, index, CN_READ_SENT);
}

/* --- owning ---------------------------------------------------------------------------------- */

/* S4. Nothing that was not durable is left. */
static void stop_owning(struct cn_member *member, uint32_t index)
{
    struct cn_member_shard *shard = &member->shards[index];
    if (shard->appended != shard->sent)
        member->dirty--;
    if (BROKEN(KEEP_UNDURABLE) && shard->appended > shard->have)
        shard->have = shard->appended;
    shard->appended = shard->sent = shard->have;
    act(member, CN_ACT_CLOSE, index, 0, shard->have);
}

static void serve(struct cn_member *member, int64_t now_ms, uint32_t index)
{
    struct cn_member_shard *shard = &member->shards[index];
    shard->appended = shard->sent = shard->have;
    cn_shard_set_role(member, now_ms, index, CN_ROLE_SERVING);
    act(member, CN_ACT_SERVE, index, 0, shard->have);
}

/* C3: from here on, with a read that begins now. */
static void take(struct cn_member *member, int64_t now_ms, uint32_t index, uint64_t epoch)
{
    struct cn_member_shard *shard = &member->shards[index];
    if (shard->role > CN_ROLE_TAKING)
        stop_owning(member, index);
    shard->epoch = epoch;
    shard->synced = 0;
    shard->adopting = false;
    cn_shard_set_role(member, now_ms, index, CN_ROLE_TAKING);
    if (BROKEN(OLD_READ) && shard->read > CN_READ_WANTED)
        return;
    set_read(member, index, CN_READ_WANTED);
    if (BROKEN(NO_TAIL)) {
        set_read(member, index, CN_READ_IDLE);
        serve(member, now_ms, index);
    }
}

static void lose(struct cn_member *member, int64_t now_ms, uint32_t index)
{
    struct cn_member_shard *shard = &member->shards[index];
    if (shard->role > CN_ROLE_TAKING)
        stop_owning(member, index);
    set_read(member, index, CN_READ_IDLE);
    cn_shard_set_role(member, now_ms, index, CN_ROLE_FOLLOWING);
}

/* What is here is of no use: C8. */
void cn_shard_void(struct cn_member *member, int64_t now_ms, uint32_t index)
{
    struct cn_member_shard *shard = &member->shards[index];
    set_read(member, index, CN_READ_IDLE);
    act(member, CN_ACT_DISCARD, index, 0, 0);
    cn_shard_set_role(member, now_ms, index, CN_ROLE_NONE);
    shard->have = shard->checkpoint = shard->checkpoint_told = 0;
    shard->voided = cn_shard_has_replica(shard, member->config.disk);
}

/* The shard is owned by nobody yet: what CLAIM did not give goes back to what it was. */
static void unclaim(struct cn_member *member, int64_t now_ms, uint32_t index)
{
    bool fresh = member->shards[index].fresh;
    cn_shard_set_role(member, now_ms, index, fresh ? CN_ROLE_NONE : CN_ROLE_FOLLOWING);
}

void cn_shard_fenced(struct cn_member *member, int64_t now_ms)
{
    for (uint32_t i = 0; i < member->config.shard_count; i++) {
        struct cn_member_shard *shard = &member->shards[i];
        set_read(member, i, CN_READ_IDLE);
        if (shard->role == CN_ROLE_COPYING ||
            (BROKEN(FORGET_COPY) && shard->role == CN_ROLE_JOINING))
            cn_shard_void(member, now_ms, i);
        else if (shard->role == CN_ROLE_JOINING)
            cn_shard_set_role(member, now_ms, i, CN_ROLE_FOLLOWING); /* S5 */
        else if (shard->role == CN_ROLE_CLAIMING)
            unclaim(member, now_ms, i);
        else if (cn_role_owns(shard->role))
            lose(member, now_ms, i);
        shard->need_since_ms = 0;
        shard->dropping = shard->adopting = false;
    }
    CN_ASSERT(!member->dirty && !member->copies && !member->moves && !member->reads);
}

/* --- a broken link --------------------------------------------------------------------------- */

/* C4: what was read on it is of no use on another. */
void cn_shard_link_lost(struct cn_member *member)
{
    for (uint32_t i = 0; i < member->config.shard_count; i++) {
        enum cn_member_read read = member->shards[i].read;
        if (read == CN_READ_SENT || (read == CN_READ_HELD && !BROKEN(ANY_LINK)))
            set_read(member, i, CN_READ_WANTED);
        member->shards[i].dropping = member->shards[i].adopting = false;
        member->shards[i].checkpoint_told = 0;
    }
}

void cn_shard_before_settling(struct cn_member *member, int64_t now_ms)
{
    for (uint32_t i = 0; i < member->config.shard_count; i++)
        if (member->shards[i].role == CN_ROLE_CLAIMING)
            unclaim(member, now_ms, i);
}

static void send_add(struct cn_member *member, int64_t now_ms, uint32_t index)
{
    struct cn_engine_item item = {.shard = index, .to = member->shards[index].have};
    if (!cn_member_send(member, now_ms, CN_ENGINE_ADD, &item, 1))
        cn_shard_void(member, now_ms, index);
}

/* A map that was asked for after HELLO is the last word on what was under way: C1. */
void cn_shard_after_settling(struct cn_member *member, int64_t now_ms)
{
    for (uint32_t i = 0; i < member->config.shard_count; i++) {
        struct cn_member_shard *shard = &member->shards[i];
        if (shard->role == CN_ROLE_JOINING) {
            send_add(member, now_ms, i); /* it was not done: cn_shard_view() would have seen it */
        } else if (shard->role == CN_ROLE_MOVING) {
            cn_shard_set_role(member, now_ms, i, CN_ROLE_SERVING); /* C7: and never will be */
            act(member, CN_ACT_RESUME, i, 0, shard->have);
        }
    }
}

/* --- the map --------------------------------------------------------------------------------- */

static void settle_owned(struct cn_member *member, int64_t now_ms, uint32_t index)
{
    struct cn_member_shard *shard = &member->shards[index];
    bool mine = shard->row.owner == member->session;
    if (!mine)
        lose(member, now_ms, index);
    else if (shard->row.epoch != shard->epoch && !BROKEN(EPOCH)) /* C9 */
        take(member, now_ms, index, shard->row.epoch);
    else if (shard->role == CN_ROLE_TAKING && !shard->row.restored)
        cn_shard_want_read(member, index); /* C16: it was, and the answer to ADOPT is lost */
}

static void settle(struct cn_member *member, int64_t now_ms, uint32_t index)
{
    struct cn_member_shard *shard = &member->shards[index];
    bool replica = cn_shard_has_replica(shard, member->config.disk);
    shard->voided = shard->voided && replica;
    switch (shard->role) {
    case CN_ROLE_NONE:
        /* A claim of a whole log whose answer was lost, perhaps with its process. Nothing of it was
         * cut since, for this disk has reported nothing; if it was, the read will tell (C8). Of a
         * restored shard (C16) only if it was this session's: the map may name a disk that has
         * nothing. */
        if (replica && !shard->voided &&
            (!shard->row.restored || shard->row.owner == member->session)) {
            act(member, CN_ACT_CREATE, index, 0, 0);
            cn_shard_set_role(member, now_ms, index, CN_ROLE_FOLLOWING);
            cn_shard_want_read(member, index);
            settle(member, now_ms, index);
        }
        break;
    case CN_ROLE_JOINING:
        if (replica) {
            cn_shard_set_role(member, now_ms, index, CN_ROLE_FOLLOWING);
            cn_shard_want_read(member, index);
            settle(member, now_ms, index); /* it may have been handed over already */
        }
        break;
    case CN_ROLE_FOLLOWING:
        if (!replica && !shard->row.restored) /* C16 */
            cn_shard_void(member, now_ms, index);
        else if (shard->row.owner == member->session)
            take(member, now_ms, index, shard->row.epoch);
        break;
    case CN_ROLE_TAKING:
    case CN_ROLE_SERVING:
    case CN_ROLE_STOPPING:
    case CN_ROLE_MOVING:
        settle_owned(member, now_ms, index);
        break;
    default:
        break;
    }
}

/* C13 */
static void tell_over(struct cn_member *member, const struct cn_member_peer *was, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        struct cn_member_message over = {.kind = CN_MESSAGE_HINT,
                                         .session = member->session,
                                         .from = was[i].id,
                                         .to = was[i].id};
        if (was[i].id != member->session && !cn_member_peer_find(member, was[i].id))
            member->host->tell(member->host->data, was[i].id, was[i].disk, &over);
    }
}

/* C2: a beat that has changed is young. */
static void see_sessions(struct cn_member *member, int64_t now_ms,
                         const struct cn_engine_view *view)
{
    struct cn_member_peer old[CN_CLUSTER_NODES_MAX];
    unsigned old_count = member->peer_count, next = 0;
    for (unsigned i = 0; i < old_count; i++)
        old[i] = member->peers[i];
    member->peer_count = 0;
    for (size_t i = 0; i < view->session_count && i < CN_CLUSTER_NODES_MAX; i++) {
        const struct cn_engine_session *session = &view->sessions[i];
        struct cn_member_peer *peer = &member->peers[member->peer_count++];
        *peer = (struct cn_member_peer){.id = session->id,
                                        .disk = session->disk,
                                        .beat = session->beat,
                                        .seen_ms = now_ms,
                                        .draining = session->draining,
                                        .shut = session->shut};
        for (unsigned k = 0; k < old_count; k++) { /* mostly the very next */
            const struct cn_member_peer *was = &old[(next + k) % old_count];
            if (was->id != session->id)
                continue;
            if (was->beat == session->beat) {
                peer->seen_ms = was->seen_ms;
                peer->suspected = was->suspected;
            }
            peer->owned = was->owned;
            peer->held = was->held;
            next += k + 1;
            break;
        }
    }
    tell_over(member, old, old_count);
}

void cn_shard_view(struct cn_member *member, int64_t now_ms, const struct cn_engine_view *view)
{
    see_sessions(member, now_ms, view);
    if (!view->shards || (member->seen && view->version < member->version)) /* C9 */
        return;
    bool changed = !member->seen || view->version != member->version;
    member->version = view->version;
    member->seen = true;
    if (changed)
        member->changed_ms = now_ms;
    for (uint32_t i = 0; i < member->config.shard_count; i++) {
        struct cn_member_shard *shard = &member->shards[i];
        if (cn_role_owns(shard->role) && view->shards[i].epoch < shard->epoch)
            continue; /* C9: seen before what our own statement did */
        shard->row = view->shards[i];
        if (shard->row.replica_count > CN_CLUSTER_REPLICAS_MAX)
            shard->row.replica_count = CN_CLUSTER_REPLICAS_MAX;
        settle(member, now_ms, i);
    }
    cn_place_count(member);
}

/* --- what was read --------------------------------------------------------------------------- */

/* C16: the tail is there. What the engine's log lacks is nowhere else, so it is synced first. */
static void adopt(struct cn_member *member, int64_t now_ms, uint32_t index)
{
    struct cn_member_shard *shard = &member->shards[index];
    struct cn_engine_item item = {.shard = index, .epoch = shard->epoch, .to = shard->have};
    if (shard->synced < shard->have) {
        shard->adopting = true;
        act(member, CN_ACT_SYNC, index, 0, shard->have);
    } else {
        shard->adopting = cn_member_send(member, now_ms, CN_ENGINE_ADOPT, &item, 1);
    }
}

void cn_shard_adopt(struct cn_member *member, int64_t now_ms, uint32_t index)
{
    const struct cn_member_shard *shard = &member->shards[index];
    bool ours = shard->row.owner == member->session && shard->row.epoch == shard->epoch;
    if (shard->role == CN_ROLE_TAKING && shard->row.restored && ours && !shard->adopting &&
        shard->read == CN_READ_IDLE)
        adopt(member, now_ms, index);
}

void cn_member_synced(struct cn_member *member, int64_t now_ms, uint32_t index, uint64_t lsn)
{
    CN_ASSERT(index < member->config.shard_count);
    struct cn_member_shard *shard = &member->shards[index];
    if (shard->role != CN_ROLE_TAKING || !shard->adopting)
        return;
    shard->synced = lsn;
    shard->adopting = false;
    cn_shard_adopt(member, now_ms, index);
}

/* The tail is there, and the shard is still ours. */
static void took(struct cn_member *member, int64_t now_ms, uint32_t index)
{
    if (!member->shards[index].row.restored || BROKEN(ADOPT_OPEN))
        serve(member, now_ms, index); /* C3, C4 */
    else
        cn_shard_adopt(member, now_ms, index);
}

static void use_tail(struct cn_member *member, int64_t now_ms, uint32_t index)
{
    struct cn_member_shard *shard = &member->shards[index];
    if (shard->read_last < shard->read_from && !shard->row.restored) { /* C15 */
        cn_member_lost_data(member, now_ms);
        return;
    }
    if (shard->read_to > shard->have) {
        act(member, CN_ACT_APPLY, index, shard->have, shard->read_to);
        shard->have = shard->read_to;
    }
    set_read(member, index, CN_READ_IDLE);
    if (shard->read_more)
        set_read(member, index, CN_READ_WANTED);
    else if (shard->role == CN_ROLE_TAKING && member->config.shut)
        return; /* C12: it is read again when it may be served */
    else if (shard->role == CN_ROLE_TAKING && shard->row.owner == member->session &&
             (shard->row.epoch == shard->epoch || BROKEN(EPOCH)))
        took(member, now_ms, index);
    else if (shard->role == CN_ROLE_TAKING)
        set_read(member, index, CN_READ_WANTED); /* the map has not caught up with our claim */
}

void cn_shard_opened(struct cn_member *member)
{
    for (uint32_t i = 0; i < member->config.shard_count; i++)
        if (member->shards[i].role == CN_ROLE_TAKING)
            cn_shard_want_read(member, i);
}

/* C4: a statement that was sent after the read was answered has been replicated. */
void cn_shard_barrier(struct cn_member *member, int64_t now_ms, uint64_t number)
{
    for (uint32_t i = 0; i < member->config.shard_count && member->held; i++)
        if (member->shards[i].read == CN_READ_HELD && member->shards[i].read_number < number)
            use_tail(member, now_ms, i);
}

static void on_read(struct cn_member *member, int64_t now_ms, const struct cn_engine_answer *answer)
{
    const struct cn_engine_item *item = &answer->items[0];
    struct cn_member_shard *shard = &member->shards[item->shard];
    if (BROKEN(UNSYNCED_VIEW) && answer->view)
        cn_shard_view(member, now_ms, answer->view);
    if (shard->read != CN_READ_SENT || shard->read_number != answer->number)
        return;                                             /* C3: begun before it was ours */
    if (item->from > shard->have && !BROKEN(IGNORE_TRIM)) { /* C8: what would follow is cut */
        bool owned = shard->role == CN_ROLE_TAKING;
        cn_shard_void(member, now_ms, item->shard);
        if (owned)
            cn_member_resign(member, now_ms);
        return;
    }
    set_read(member, item->shard, CN_READ_HELD);
    shard->read_to = item->to;
    shard->read_last = item->last;
    shard->read_more = item->more;
    shard->read_number = member->number;
    if (BROKEN(NO_BARRIER))
        use_tail(member, now_ms, item->shard);
    else if (shard->role != CN_ROLE_TAKING && item->to <= shard->have && !item->more &&
             item->last >= shard->read_from)
        set_read(member, item->shard, CN_READ_IDLE); /* nothing new */
    else
        member->barrier = true;
}

/* --- other answers --------------------------------------------------------------------------- */

static void on_claim(struct cn_member *member, int64_t now_ms,
                     const struct cn_engine_answer *answer)
{
    for (size_t i = 0; i < answer->count; i++) {
        uint32_t index = answer->items[i].shard;
        if (index >= member->config.shard_count || member->shards[index].role != CN_ROLE_CLAIMING)
            continue;
        if (member->shards[index].fresh)
            act(member, CN_ACT_CREATE, index, 0, 0);
        take(member, now_ms, index, answer->items[i].epoch);
    }
    member->claiming = false;
    cn_shard_before_settling(member, now_ms);
    member->barrier = true;
}

static void on_move(struct cn_member *member, int64_t now_ms, uint32_t index, bool done)
{
    struct cn_member_shard *shard = &member->shards[index];
    if (shard->role != CN_ROLE_MOVING)
        return;
    member->barrier = true;
    if (!done) {
        cn_shard_set_role(member, now_ms, index, CN_ROLE_SERVING);
        act(member, CN_ACT_RESUME, index, 0, shard->have);
        return;
    }
    struct cn_member_peer *peer = cn_member_peer_find(member, shard->move_to);
    struct cn_member_message hint = {
        .kind = CN_MESSAGE_HINT, .shard = index, .session = member->session};
    if (peer)
        member->host->tell(member->host->data, peer->id, peer->disk, &hint);
    /* The map still says it is ours, until it is seen again: not to be taken for a new gift. */
    shard->row.owner = shard->move_to;
    shard->row.epoch = shard->epoch + 1;
    lose(member, now_ms, index);
}

static void on_add(struct cn_member *member, int64_t now_ms, uint32_t index, bool done)
{
    if (member->shards[index].role != CN_ROLE_JOINING)
        return; /* a map has told already */
    if (!done) {
        cn_shard_void(member, now_ms, index); /* C8: too old; a new copy */
        return;
    }
    /* A replica from now on; the map that is known does not say so yet. */
    struct cn_engine_shard *row = &member->shards[index].row;
    if (!cn_shard_has_replica(&member->shards[index], member->config.disk) &&
        row->replica_count < CN_CLUSTER_REPLICAS_MAX)
        row->disks[row->replica_count++] = member->config.disk;
    cn_shard_set_role(member, now_ms, index, CN_ROLE_FOLLOWING);
    cn_shard_want_read(member, index);
    member->barrier = true;
}

/* C16: the copy here is the shard's only one from now on. The map tells, too. */
static void on_adopt(struct cn_member *member, uint32_t index, bool done)
{
    struct cn_member_shard *shard = &member->shards[index];
    shard->adopting = false;
    member->barrier = true;
    if (!done || shard->role != CN_ROLE_TAKING)
        return;
    shard->row.restored = false;
    shard->row.replica_count = 1;
    shard->row.disks[0] = member->config.disk;
    cn_shard_want_read(member, index);
}

void cn_shard_answer(struct cn_member *member, int64_t now_ms,
                     const struct cn_engine_answer *answer)
{
    if (answer->kind == CN_ENGINE_CLAIM) {
        on_claim(member, now_ms, answer);
        return;
    }
    if (!answer->count || answer->items[0].shard >= member->config.shard_count)
        return;
    uint32_t index = answer->items[0].shard;
    if (answer->kind == CN_ENGINE_READ)
        on_read(member, now_ms, answer);
    else if (answer->kind == CN_ENGINE_MOVE)
        on_move(member, now_ms, index, answer->done);
    else if (answer->kind == CN_ENGINE_ADD)
        on_add(member, now_ms, index, answer->done);
    else if (answer->kind == CN_ENGINE_ADOPT)
        on_adopt(member, index, answer->done);
    else if (answer->kind == CN_ENGINE_DROP)
        member->shards[index].dropping = false;
}

/* --- durable, fed, copied -------------------------------------------------------------------- */

/* C6: what is told to followers is durable. */
void cn_shard_feed(struct cn_member *member, uint32_t index, uint64_t from, uint64_t to)
{
    struct cn_member_shard *shard = &member->shards[index];
    struct cn_member_message feed = {.kind = CN_MESSAGE_FEED,
                                     .shard = index,
                                     .session = member->session,
                                     .epoch = shard->epoch,
                                     .from = from,
                                     .to = to};
    CN_ASSERT(to <= shard->have || BROKEN(FEED_EARLY));
    for (unsigned i = 0; i < shard->row.replica_count; i++) {
        struct cn_member_peer *peer = cn_member_peer_of_disk(member, shard->row.disks[i]);
        if (peer && peer->id != member->session)
            member->host->tell(member->host->data, peer->id, peer->disk, &feed);
    }
}

void cn_shard_durable(struct cn_member *member, const struct cn_engine_item *item)
{
    struct cn_member_shard *shard = &member->shards[item->shard];
    /* C7: it moves after its last batch, unless the map was changed by other hands. */
    if ((shard->role != CN_ROLE_SERVING && shard->role != CN_ROLE_STOPPING) ||
        shard->epoch != item->epoch)
        return;
    CN_ASSERT(shard->have == item->from || BROKEN(EPOCH) || BROKEN(MOVE_EARLY));
    shard->have = item->to;
    cn_shard_feed(member, item->shard, item->from, item->to);
    act(member, CN_ACT_SETTLE, item->shard, item->from, item->to);
}

static void on_feed(struct cn_member *member, int64_t now_ms,
                    const struct cn_member_message *message)
{
    struct cn_member_shard *shard = &member->shards[message->shard];
    if (shard->role != CN_ROLE_FOLLOWING && shard->role != CN_ROLE_CLAIMING)
        return;
    shard->fed_ms = now_ms;
    if (message->to <= shard->have || shard->row.restored) /* S6 */
        return;
    if (message->from > shard->have || message->from == message->to) {
        cn_shard_want_read(member, message->shard); /* a gap: from the engine */
        return;
    }
    act(member, CN_ACT_FED, message->shard, shard->have, message->to); /* S2 */
    shard->have = message->to;
}

void cn_member_message(struct cn_member *member, int64_t now_ms,
                       const struct cn_member_message *message)
{
    if (message->shard >= member->config.shard_count || message->kind >= CN_MESSAGE_KINDS ||
        message->from > message->to)
        return;
    struct cn_member_shard *shard = &member->shards[message->shard];
    if (message->kind == CN_MESSAGE_FEED) {
        on_feed(member, now_ms, message);
        cn_shard_pump(member, now_ms);
    } else if (message->kind == CN_MESSAGE_ASK) {
        struct cn_member_peer *peer = cn_member_peer_find(member, message->session);
        struct cn_member_message copy = {.kind = CN_MESSAGE_COPY,
                                         .shard = message->shard,
                                         .session = member->session,
                                         .to = BROKEN(COPY_EARLY) ? shard->appended : shard->have};
        if (peer && (shard->role == CN_ROLE_SERVING || shard->role == CN_ROLE_STOPPING))
            member->host->tell(member->host->data, peer->id, peer->disk, &copy);
    } else if (message->kind == CN_MESSAGE_HINT) {
        cn_member_is_over(member, now_ms, message->to);
    }
}

void cn_member_copied(struct cn_member *member, int64_t now_ms, uint32_t index, uint64_t lsn)
{
    CN_ASSERT(index < member->config.shard_count);
    struct cn_member_shard *shard = &member->shards[index];
    if (shard->role != CN_ROLE_COPYING)
        return;
    shard->have = shard->checkpoint = lsn;
    shard->fed_ms = now_ms;
    cn_shard_set_role(member, now_ms, index, CN_ROLE_JOINING);
    if (member->state == CN_MEMBER_LIVE && !member->settling)
        send_add(member, now_ms, index); /* else when the map is there again */
}

void cn_member_copy_begun(struct cn_member *member, uint32_t index)
{
    CN_ASSERT(index < member->config.shard_count);
    member->shards[index].begun = true;
}

void cn_member_copy_failed(struct cn_member *member, int64_t now_ms, uint32_t index)
{
    CN_ASSERT(index < member->config.shard_count);
    if (member->shards[index].role == CN_ROLE_COPYING)
        cn_shard_void(member, now_ms, index);
}

/* --- planned moves: C7 ----------------------------------------------------------------------- */

void cn_shard_begin_move(struct cn_member *member, int64_t now_ms, uint32_t index, uint64_t session)
{
    struct cn_member_shard *shard = &member->shards[index];
    shard->move_to = session;
    shard->stopped = false;
    cn_shard_set_role(member, now_ms, index, CN_ROLE_STOPPING);
    act(member, CN_ACT_STOP, index, 0, shard->have);
}

static void go_on_moving(struct cn_member *member, int64_t now_ms, uint32_t index)
{
    struct cn_member_shard *shard = &member->shards[index];
    if (!cn_member_peer_find(member, shard->move_to)) {
        cn_shard_set_role(member, now_ms, index, CN_ROLE_SERVING);
        act(member, CN_ACT_RESUME, index, 0, shard->have);
        return;
    }
    bool durable = shard->have == shard->appended || BROKEN(MOVE_EARLY);
    if ((!shard->stopped && !BROKEN(MOVE_EARLY)) || !durable)
        return;
    struct cn_engine_item item = {.shard = index, .epoch = shard->epoch, .session = shard->move_to};
    if (cn_member_send(member, now_ms, CN_ENGINE_MOVE, &item, 1))
        cn_shard_set_role(member, now_ms, index, CN_ROLE_MOVING);
}

void cn_member_stopped(struct cn_member *member, int64_t now_ms, uint32_t index)
{
    CN_ASSERT(index < member->config.shard_count);
    if (member->shards[index].role != CN_ROLE_STOPPING)
        return;
    member->shards[index].stopped = true;
    cn_shard_pump(member, now_ms);
}

bool cn_member_move(struct cn_member *member, int64_t now_ms, uint32_t index, uint64_t session)
{
    struct cn_member_peer *peer = cn_member_peer_find(member, session);
    if (index >= member->config.shard_count || member->shards[index].role != CN_ROLE_SERVING ||
        !peer || session == member->session ||
        !cn_shard_has_replica(&member->shards[index], peer->disk) ||
        member->state != CN_MEMBER_LIVE)
        return false;
    cn_shard_begin_move(member, now_ms, index, session);
    cn_shard_pump(member, now_ms);
    return true;
}

void cn_shard_pump(struct cn_member *member, int64_t now_ms)
{
    unsigned total = member->config.shard_count;
    if (member->state != CN_MEMBER_LIVE || member->settling)
        return;
    for (uint32_t i = 0; i < total && member->wanted && member->reads < CN_MEMBER_READS_MAX; i++)
        if (member->shards[i].read == CN_READ_WANTED && !member->shards[i].busy)
            send_read(member, now_ms, i);
    for (uint32_t i = 0; i < total && member->moves; i++)
        if (member->shards[i].role == CN_ROLE_STOPPING)
            go_on_moving(member, now_ms, i);
}
