/* SPDX-License-Identifier: Apache-2.0 */
/* shard/bodies_keep.c - the keeper: what is missing comes, what is nobody's goes. See bodies.h,
 * Z3 to Z6.
 *
 * A round asks every node that can be reached for its digests, then looks at each shard of which
 * anybody has something:
 *
 *     a replica here      takes what others have and it lacks; what the owner lacks of its own is
 *                         asked about, once after the start everything is
 *     ... and owned here  lets the other replicas catch up, and tells whether all is whole
 *     no replica here     leaves (Z5)
 *
 * Two disks with equal digests have nothing to tell each other, nor have two that were compared and
 * have not changed since. */
#include <string.h>

#include "base/diag.h"
#include "base/err.h"
#include "base/mem.h"
#include "shard/bodies_private.h"

enum { LEAVE_AGAIN_MS = 10000, WARN_MS = 60000 };

/* Another disk in this round. */
struct peer {
    uint64_t disk;
    struct cn_bodies_digest *digests; /* owned; by shard */
};

struct round {
    struct peer peers[CN_CLUSTER_NODES_MAX];
    unsigned peer_count;
};

static bool is_stopping(struct cn_bodies *bodies)
{
    pthread_mutex_lock(&bodies->lock);
    bool stopping = bodies->stopping;
    pthread_mutex_unlock(&bodies->lock);
    return stopping;
}

static struct cn_bodies_digest digest_of(struct cn_bodies *bodies, uint32_t shard)
{
    pthread_mutex_lock(&bodies->lock);
    struct cn_bodies_digest digest = bodies->shards[shard].digest;
    pthread_mutex_unlock(&bodies->lock);
    return digest;
}

static bool is_same(const struct cn_bodies_digest *a, const struct cn_bodies_digest *b)
{
    return memcmp(a, b, sizeof(*a)) == 0;
}

static uint64_t number_at(const uint8_t *at, unsigned size)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < size; i++)
        value |= (uint64_t)at[i] << (8 * i);
    return value;
}

/* --- what others have ------------------------------------------------------------------------- */

static int ask_digests(struct cn_bodies *bodies, uint64_t disk, struct cn_bodies_digest *digests,
                       struct cn_err *err)
{
    struct cn_frame_body ask = {.op = CN_BODY_DIGESTS};
    struct cn_bodies_call call;
    int rc = cn_bodies_ask(bodies, disk, &ask, &call, err);
    memset(digests, 0, bodies->config.shard_count * sizeof(*digests));
    for (size_t at = 0; rc == 0 && at < call.bytes.size; at += CN_FRAME_DIGEST_SIZE) {
        uint64_t shard = number_at(call.bytes.data + at, 4);
        if (shard >= bodies->config.shard_count)
            continue;
        digests[shard].count = number_at(call.bytes.data + at + 4, 8);
        memcpy(digests[shard].sum, call.bytes.data + at + 12, sizeof(digests[shard].sum));
    }
    cn_bodies_call_fini(&call);
    return rc;
}

/* A page of another disk's ids behind *after; how many. */
static int64_t ask_list(struct cn_bodies *bodies, uint64_t disk, uint32_t shard,
                        struct cn_blob_id *after, struct cn_blob_id ids[CN_FRAME_IDS_MAX],
                        struct cn_err *err)
{
    struct cn_frame_body ask = {.op = CN_BODY_LIST, .shard = shard};
    struct cn_bodies_call call;
    memcpy(ask.id, after, sizeof(*after));
    int rc = cn_bodies_ask(bodies, disk, &ask, &call, err);
    size_t count = call.bytes.size / sizeof(*ids);
    if (rc == 0 && count)
        memcpy(ids, call.bytes.data, count * sizeof(*ids));
    cn_bodies_call_fini(&call);
    for (size_t i = 0; rc == 0 && i < count; i++) {
        if (memcmp(&ids[i], after, sizeof(*after)) <= 0 || cn_blob_id_shard(&ids[i]) != shard)
            rc = cn_err_set(err, CN_EPROTOCOL, "a list of bodies is not in order");
        *after = ids[i];
    }
    return rc < 0 ? rc : (int64_t)count;
}

int64_t cn_bodies_list(struct cn_bodies *bodies, uint64_t disk, uint32_t shard,
                       const struct cn_blob_id *after, struct cn_blob_id ids[CN_FRAME_IDS_MAX],
                       struct cn_err *err)
{
    struct cn_blob_id last = *after;
    return disk == bodies->config.disk
               ? cn_blobs_list(bodies->config.blobs, shard, &last, ids, CN_FRAME_IDS_MAX, err)
               : ask_list(bodies, disk, shard, &last, ids, err);
}

static int ask_has(struct cn_bodies *bodies, uint64_t disk, uint32_t shard,
                   const struct cn_blob_id *ids, size_t count, uint8_t *has, struct cn_err *err)
{
    struct cn_frame_body ask = {.op = CN_BODY_HAS,
                                .shard = shard,
                                .bytes = (const uint8_t *)ids,
                                .byte_count = count * sizeof(*ids)};
    struct cn_bodies_call call;
    int rc = cn_bodies_ask(bodies, disk, &ask, &call, err);
    if (rc == 0 && call.bytes.size != count)
        rc = cn_err_set(err, CN_EPROTOCOL, "another node has answered about other bodies");
    if (rc == 0)
        memcpy(has, call.bytes.data, count);
    cn_bodies_call_fini(&call);
    return rc;
}

/* --- taking what is missing (Z3) -------------------------------------------------------------- */

/* Of these, what is not here and known. */
static int pull_missing(struct cn_bodies *bodies, uint32_t shard, uint64_t disk,
                        struct cn_blob_id *ids, size_t count, struct cn_err *err)
{
    size_t lacking = 0;
    uint8_t known[CN_FRAME_IDS_MAX];
    for (size_t i = 0; i < count; i++)
        if (!cn_blob_is_here(bodies->config.blobs, &ids[i]))
            ids[lacking++] = ids[i];
    int rc = lacking ? cn_bodies_known(bodies, shard, ids, lacking, known, err) : 0;
    for (size_t i = 0; i < lacking && rc == 0; i++) {
        if (!known[i])
            continue;
        rc = cn_bodies_pull(bodies, &ids[i], disk, false, true, err);
        if (rc == CN_ENOTFOUND)
            rc = 0; /* gone meanwhile */
        else if (rc == 0) {
            pthread_mutex_lock(&bodies->lock);
            bodies->stats.repaired++;
            pthread_mutex_unlock(&bodies->lock);
        }
        if (is_stopping(bodies))
            rc = cn_err_set(err, CN_ECLOSED, "this node ends");
    }
    return rc;
}

/* Everything of the shard that the disk has. */
static int pull_all(struct cn_bodies *bodies, uint32_t shard, uint64_t disk, struct cn_err *err)
{
    struct cn_blob_id after = {{0}}, *ids = cn_alloc(CN_FRAME_IDS_MAX * sizeof(*ids));
    int64_t count;
    int rc = 0;
    do {
        count = ask_list(bodies, disk, shard, &after, ids, err);
        rc = count < 0 ? (int)count : pull_missing(bodies, shard, disk, ids, (size_t)count, err);
    } while (rc == 0 && count > 0);
    cn_free(ids);
    return rc;
}

int cn_bodies_catch_up(struct cn_bodies *bodies, uint32_t shard, uint64_t disk, struct cn_err *err)
{
    struct cn_bodies_digest *digests =
        cn_alloc(bodies->config.shard_count * sizeof(struct cn_bodies_digest));
    int rc = ask_digests(bodies, disk, digests, err);
    struct cn_bodies_digest mine = digest_of(bodies, shard);
    if (rc == 0 && !is_same(&mine, &digests[shard]))
        rc = pull_all(bodies, shard, disk, err);
    cn_free(digests);
    return rc;
}

/* --- what is nobody's (Z2) -------------------------------------------------------------------- */

static int delete_unknown(struct cn_bodies *bodies, uint32_t shard, const struct cn_blob_id *ids,
                          size_t count, uint8_t *known, struct cn_err *err)
{
    int rc = count ? cn_bodies_known(bodies, shard, ids, count, known, err) : 0;
    for (size_t i = 0; i < count && rc == 0; i++) {
        if (known[i])
            continue;
        rc = cn_bodies_delete(bodies, &ids[i], err);
        pthread_mutex_lock(&bodies->lock);
        bodies->stats.collected++;
        pthread_mutex_unlock(&bodies->lock);
    }
    return rc;
}

/* All that is here, or what the owner does not have. */
static int sweep(struct cn_bodies *bodies, uint32_t shard, uint64_t owner, struct cn_err *err)
{
    struct cn_blob_id after, ids[CN_BODIES_PAGE];
    uint8_t bits[CN_BODIES_PAGE];
    int64_t count;
    int rc = 0;
    bool first = true;
    do {
        count = cn_blobs_list(bodies->config.blobs, shard, first ? NULL : &after, ids,
                              CN_BODIES_PAGE, err);
        if (count <= 0)
            return (int)count;
        first = false;
        after = ids[count - 1];
        size_t left = 0;
        rc = owner ? ask_has(bodies, owner, shard, ids, (size_t)count, bits, err) : 0;
        for (int64_t i = 0; rc == 0 && i < count; i++)
            if (!owner || !bits[i])
                ids[left++] = ids[i];
        if (rc == 0)
            rc = delete_unknown(bodies, shard, ids, left, bits, err);
    } while (rc == 0 && !is_stopping(bodies));
    return rc;
}

/* --- leaving (Z5) ----------------------------------------------------------------------------- */

static void set_leaving(struct cn_bodies *bodies, const struct cn_blob_id *ids, size_t count)
{
    pthread_mutex_lock(&bodies->lock);
    bodies->leaving = ids;
    bodies->leaving_count = count;
    pthread_mutex_unlock(&bodies->lock);
}

/* Of these, which every replica has; with them said to be leaving. */
static int leave_page(struct cn_bodies *bodies, uint32_t shard, const struct cn_host_view *view,
                      const struct cn_blob_id *ids, size_t count, struct cn_err *err)
{
    uint8_t has[CN_BODIES_PAGE], all[CN_BODIES_PAGE];
    int rc = 0;
    memset(all, 1, sizeof(all));
    set_leaving(bodies, ids, count);
    for (unsigned i = 0; i < view->count && rc == 0; i++) {
        rc = ask_has(bodies, view->disks[i], shard, ids, count, has, err);
        for (size_t j = 0; j < count && rc == 0; j++)
            all[j] = all[j] && has[j];
    }
    for (size_t j = 0; j < count && rc == 0; j++) {
        if (!all[j])
            continue;
        rc = cn_bodies_delete(bodies, &ids[j], err);
        pthread_mutex_lock(&bodies->lock);
        bodies->stats.left++;
        pthread_mutex_unlock(&bodies->lock);
    }
    set_leaving(bodies, NULL, 0);
    return rc;
}

static int leave(struct cn_bodies *bodies, uint32_t shard, const struct cn_host_view *view,
                 struct cn_err *err)
{
    struct cn_blob_id after, ids[CN_BODIES_PAGE];
    uint8_t known[CN_BODIES_PAGE];
    int64_t count;
    bool first = true;
    int rc = 0;
    if (view->count < bodies->config.replicas)
        return 0;
    do {
        count = cn_blobs_list(bodies->config.blobs, shard, first ? NULL : &after, ids,
                              CN_BODIES_PAGE, err);
        if (count <= 0)
            return (int)count;
        first = false;
        after = ids[count - 1];
        rc = delete_unknown(bodies, shard, ids, (size_t)count, known, err);
        size_t left = 0;
        for (int64_t i = 0; rc == 0 && i < count; i++)
            if (known[i])
                ids[left++] = ids[i];
        if (rc == 0 && left)
            rc = leave_page(bodies, shard, view, ids, left, err);
    } while (rc == 0 && !is_stopping(bodies));
    return rc;
}

/* --- whether all is whole (Z6) ---------------------------------------------------------------- */

/* With the lock held. */
static bool has_caught_up(struct cn_bodies_shard *shard, uint64_t disk)
{
    for (unsigned i = 0; i < CN_CLUSTER_REPLICAS_MAX; i++)
        if (shard->caught_up[i] == disk)
            return true;
    return false;
}

/* With the lock held. */
static void tell(struct cn_bodies *bodies, uint32_t index)
{
    struct cn_bodies_shard *shard = &bodies->shards[index];
    const struct cn_bodies_hands *hands = &bodies->config.hands;
    uint64_t disks[CN_CLUSTER_REPLICAS_MAX];
    unsigned count = 0;
    if (memcmp(shard->told, shard->caught_up, sizeof(shard->told)) == 0)
        return;
    memcpy(shard->told, shard->caught_up, sizeof(shard->told));
    for (unsigned i = 0; i < CN_CLUSTER_REPLICAS_MAX; i++)
        if (shard->told[i])
            disks[count++] = shard->told[i];
    hands->whole(hands->data, index, shard->epoch, disks, count);
}

void cn_bodies_fell_behind(struct cn_bodies *bodies, uint32_t index, uint64_t disk)
{
    struct cn_bodies_shard *shard = &bodies->shards[index];
    pthread_mutex_lock(&bodies->lock);
    for (unsigned i = 0; i < CN_CLUSTER_REPLICAS_MAX; i++)
        if (shard->caught_up[i] == disk)
            shard->caught_up[i] = 0;
    tell(bodies, index);
    pthread_mutex_unlock(&bodies->lock);
}

/* What was seen under another epoch says nothing. Disks that are no replicas any more make room.
 * Whether there is anything here, which is asked after the map: if not, nobody lacks anything. */
static bool begin_owned(struct cn_bodies *bodies, uint32_t index, const struct cn_host_view *view)
{
    struct cn_bodies_shard *shard = &bodies->shards[index];
    pthread_mutex_lock(&bodies->lock);
    if (shard->epoch != view->epoch) {
        shard->epoch = view->epoch;
        memset(shard->told, 0, sizeof(shard->told));
        memset(shard->caught_up, 0, sizeof(shard->caught_up));
    }
    for (unsigned i = 0; i < CN_CLUSTER_REPLICAS_MAX; i++) {
        bool there = false;
        for (unsigned j = 0; j < view->count; j++)
            there = there || view->disks[j] == shard->caught_up[i];
        if (!there)
            shard->caught_up[i] = 0;
    }
    bool any = shard->digest.count > 0;
    pthread_mutex_unlock(&bodies->lock);
    return any;
}

static void mark_caught_up(struct cn_bodies *bodies, uint32_t index, uint64_t disk, uint64_t epoch)
{
    struct cn_bodies_shard *shard = &bodies->shards[index];
    pthread_mutex_lock(&bodies->lock);
    bool done = shard->epoch != epoch || has_caught_up(shard, disk);
    for (unsigned i = 0; i < CN_CLUSTER_REPLICAS_MAX && !done; i++)
        if (!shard->caught_up[i]) {
            shard->caught_up[i] = disk;
            done = true;
        }
    pthread_mutex_unlock(&bodies->lock);
}

/* The map had the disk as a replica before it is asked, and a put counts its body before it asks
 * the map: so what was put without the disk is in the list that it compares with. */
static void let_catch_up(struct cn_bodies *bodies, uint32_t index, const struct cn_host_view *view,
                         bool any)
{
    struct cn_bodies_shard *shard = &bodies->shards[index];
    for (unsigned i = 0; i < view->count && !is_stopping(bodies); i++) {
        struct cn_frame_body ask = {.op = CN_BODY_CATCH_UP, .shard = index};
        struct cn_bodies_call call = {0};
        struct cn_err err;
        uint64_t disk = view->disks[i];
        pthread_mutex_lock(&bodies->lock);
        bool done = has_caught_up(shard, disk);
        pthread_mutex_unlock(&bodies->lock);
        if (done)
            continue;
        if (disk == bodies->config.disk || !any ||
            cn_bodies_ask(bodies, disk, &ask, &call, &err) == 0)
            mark_caught_up(bodies, index, disk, view->epoch);
        cn_bodies_call_fini(&call);
    }
    pthread_mutex_lock(&bodies->lock);
    if (shard->epoch == view->epoch)
        tell(bodies, index);
    pthread_mutex_unlock(&bodies->lock);
}

static bool all_caught_up(struct cn_bodies *bodies, uint32_t index, const struct cn_host_view *view)
{
    bool all = true;
    pthread_mutex_lock(&bodies->lock);
    for (unsigned i = 0; i < view->count; i++)
        all = all && has_caught_up(&bodies->shards[index], view->disks[i]);
    pthread_mutex_unlock(&bodies->lock);
    return all;
}

/* --- a round ---------------------------------------------------------------------------------- */

static bool was_seen(struct cn_bodies *bodies, uint32_t index, const struct peer *peer)
{
    struct cn_bodies_shard *shard = &bodies->shards[index];
    struct cn_bodies_digest mine = digest_of(bodies, index);
    if (is_same(&mine, &peer->digests[index]))
        return true;
    for (unsigned i = 0; i < 4; i++)
        if (shard->seen[i].disk == peer->disk && is_same(&shard->seen[i].mine, &mine) &&
            is_same(&shard->seen[i].theirs, &peer->digests[index]))
            return true;
    return false;
}

static void remember_seen(struct cn_bodies *bodies, uint32_t index, const struct peer *peer,
                          const struct cn_bodies_digest *mine)
{
    struct cn_bodies_shard *shard = &bodies->shards[index];
    unsigned at = shard->seen_next++ % 4;
    shard->seen[at].disk = peer->disk;
    shard->seen[at].mine = *mine;
    shard->seen[at].theirs = peer->digests[index];
}

/* It is tried again in the next round; what lasts is told, once a minute. */
static void warn(struct cn_bodies *bodies, uint32_t index, const struct cn_err *err)
{
    int64_t now = cn_bodies_now_ms();
    bodies->failed = true;
    if (!bodies->failing_since_ms)
        bodies->failing_since_ms = now;
    if (is_stopping(bodies) || now - bodies->failing_since_ms < WARN_MS)
        return;
    bodies->failing_since_ms = now;
    cn_warn("cluster: bodies of shard %u are not compared with other nodes: %s", index, err->text);
}

/* Whether all that others have is here. */
static bool keep_replica(struct cn_bodies *bodies, const struct round *round, uint32_t index,
                         const struct cn_host_view *view)
{
    struct cn_bodies_shard *shard = &bodies->shards[index];
    struct cn_err err;
    bool all = true;
    if (!shard->swept && digest_of(bodies, index).count)
        shard->swept = sweep(bodies, index, 0, &err) == 0;
    for (unsigned i = 0; i < round->peer_count && !is_stopping(bodies); i++) {
        const struct peer *peer = &round->peers[i];
        if (was_seen(bodies, index, peer))
            continue;
        int rc = peer->digests[index].count ? pull_all(bodies, index, peer->disk, &err) : 0;
        if (rc == 0 && peer->disk == view->owner)
            rc = sweep(bodies, index, peer->disk, &err);
        struct cn_bodies_digest mine = digest_of(bodies, index);
        if (rc == 0)
            remember_seen(bodies, index, peer, &mine);
        else
            warn(bodies, index, &err);
        all = all && rc == 0;
    }
    return all;
}

static void keep_shard(struct cn_bodies *bodies, const struct round *round, uint32_t index)
{
    const struct cn_bodies_hands *hands = &bodies->config.hands;
    struct cn_bodies_shard *shard = &bodies->shards[index];
    struct cn_host_view view;
    struct cn_err err;
    bool here = digest_of(bodies, index).count > 0, any = here, replica = false;
    for (unsigned i = 0; i < round->peer_count; i++)
        any = any || round->peers[i].digests[index].count;
    if (!hands->view(hands->data, index, &view))
        return;
    for (unsigned i = 0; i < view.count; i++)
        replica = replica || view.disks[i] == bodies->config.disk;
    bool owned = view.owner == bodies->config.disk;
    bool bodied = owned && begin_owned(bodies, index, &view);
    bool all = !any || !replica || keep_replica(bodies, round, index, &view);
    if (owned && all)
        let_catch_up(bodies, index, &view, bodied || any);
    else if (owned)
        cn_bodies_fell_behind(bodies, index, bodies->config.disk);
    if (owned && !all_caught_up(bodies, index, &view))
        bodies->lacking++;
    if (!replica && here && cn_bodies_now_ms() >= shard->leave_at_ms) {
        if (leave(bodies, index, &view, &err) < 0)
            warn(bodies, index, &err);
        shard->leave_at_ms = cn_bodies_now_ms() + LEAVE_AGAIN_MS;
    }
}

/* Z4 */
static void repair_damaged(struct cn_bodies *bodies)
{
    struct cn_blob_id ids[CN_BODIES_DAMAGED_MAX];
    struct cn_err err;
    pthread_mutex_lock(&bodies->lock);
    unsigned count = bodies->damaged_count;
    memcpy(ids, bodies->damaged, sizeof(ids));
    pthread_mutex_unlock(&bodies->lock);
    for (unsigned i = 0; i < count && !is_stopping(bodies); i++) {
        uint64_t disk, size;
        int rc = 0;
        if (cn_blob_is_here(bodies->config.blobs, &ids[i])) {
            rc = cn_bodies_find(bodies, &ids[i], &disk, &size, &err);
            if (rc == 0)
                rc = cn_bodies_pull(bodies, &ids[i], disk, true, true, &err);
        } /* else it was deleted meanwhile */
        if (rc < 0)
            continue;
        cn_info("cluster: a body of shard %u is repaired", cn_blob_id_shard(&ids[i]));
        pthread_mutex_lock(&bodies->lock);
        for (unsigned j = 0; j < bodies->damaged_count; j++)
            if (memcmp(&bodies->damaged[j], &ids[i], sizeof(ids[i])) == 0)
                bodies->damaged[j] = bodies->damaged[--bodies->damaged_count];
        bodies->stats.repaired++;
        pthread_mutex_unlock(&bodies->lock);
    }
}

static void go_round(struct cn_bodies *bodies)
{
    const struct cn_bodies_hands *hands = &bodies->config.hands;
    struct round *round = CN_NEW(struct round);
    uint64_t linked[CN_CLUSTER_NODES_MAX];
    struct cn_err err;
    unsigned count = hands->linked(hands->data, linked);
    for (unsigned i = 0; i < count && !is_stopping(bodies); i++) {
        struct cn_bodies_digest *digests =
            cn_alloc(bodies->config.shard_count * sizeof(struct cn_bodies_digest));
        if (ask_digests(bodies, linked[i], digests, &err) == 0)
            round->peers[round->peer_count++] = (struct peer){linked[i], digests};
        else
            cn_free(digests);
    }
    repair_damaged(bodies);
    bodies->failed = false;
    bodies->lacking = 0;
    for (uint32_t i = 0; i < bodies->config.shard_count && !is_stopping(bodies); i++)
        keep_shard(bodies, round, i);
    if (!bodies->failed)
        bodies->failing_since_ms = 0;
    for (unsigned i = 0; i < round->peer_count; i++)
        cn_free(round->peers[i].digests);
    cn_free(round);
}

void *cn_bodies_keeper(void *data)
{
    struct cn_bodies *bodies = data;
    for (;;) {
        pthread_mutex_lock(&bodies->lock);
        int64_t until = cn_bodies_now_ms() + bodies->config.keep_ms;
        while (!bodies->stopping && !bodies->hurry && cn_bodies_now_ms() < until)
            cn_bodies_wait(bodies, until);
        bool stopping = bodies->stopping;
        bodies->hurry = false;
        pthread_mutex_unlock(&bodies->lock);
        if (stopping)
            return NULL;
        go_round(bodies);
        pthread_mutex_lock(&bodies->lock);
        bodies->stats.rounds++;
        bodies->stats.lacking = bodies->lacking;
        pthread_cond_broadcast(&bodies->changed);
        pthread_mutex_unlock(&bodies->lock);
    }
}
