/* SPDX-License-Identifier: Apache-2.0 */
/* server/cluster_front.c - shards that come and go: what the host wants of the lanes, and the
 * watch, which ends what takes too long. See cluster_private.h. */
#include "base/assert.h"
#include "base/cond.h"
#include "base/diag.h"
#include "cluster/haul.h"
#include "object/shard.h"
#include "server/cluster_private.h"
#include "server/witness.h"

enum {
    STOP_MS = 5000,   /* N5 */
    DEPART_MS = 9000, /* the same of a node that departs; less than the member's limit to leave */
    LOST_MS = 10000,  /* N9: longer than most engines take for a fail-over */
};

/* --- the front: what the host wants ---------------------------------------------------------- */

static int front_serve(void *data, uint32_t shard, struct cn_err *err)
{
    struct cn_cluster *cluster = data;
    struct cn_store *store = cn_cluster_disk_store(&cluster->disk, shard);
    CN_ASSERT(store);
    int rc = cn_shards_open(cluster->shards, shard, store,
                            cn_cluster_disk_history(&cluster->disk, shard), NULL, NULL, err);
    cn_cluster_lock(cluster);
    cluster->spots[shard].open = rc == 0;
    cn_cluster_unlock(cluster);
    return rc;
}

static void on_stopped(void *data, unsigned index, bool reached)
{
    struct cn_front_spot *spot = data;
    struct cn_cluster *cluster = spot->cluster;
    cn_cluster_lock(cluster);
    bool stopped = reached && spot->state == CN_FRONT_STOPPING;
    uint64_t ticket = spot->ticket;
    if (stopped)
        spot->state = CN_FRONT_SERVED;
    cn_cluster_unlock(cluster);
    if (stopped)
        cn_host_stopped(cluster->host, index, ticket);
}

/* N5, N6 */
static int stop_ms(struct cn_cluster *cluster)
{
    return atomic_load(&cluster->departing) ? DEPART_MS : STOP_MS;
}

static void front_stop(void *data, uint32_t shard, uint64_t ticket)
{
    struct cn_cluster *cluster = data;
    struct cn_front_spot *spot = &cluster->spots[shard];
    cn_cluster_lock(cluster);
    bool serves = spot->state == CN_FRONT_SERVED, forced = spot->state == CN_FRONT_FORCED;
    spot->ticket = ticket;
    spot->stop_by_ms = cn_host_clock_ms() + stop_ms(cluster);
    spot->resuming = spot->silenced = false;
    spot->stopping = spot->state == CN_FRONT_REOPENING;
    if (serves)
        spot->state = CN_FRONT_STOPPING;
    cn_cluster_unlock(cluster);
    if (serves) {
        cn_shards_stop(cluster->shards, shard, on_stopped, spot);
        cn_hauls_cut(cluster->hauls, shard); /* after it: no other can begin any more */
    } else if (forced)                       /* nothing runs in it */
        cn_host_stopped(cluster->host, shard, ticket);
}

static void front_resume(void *data, uint32_t shard)
{
    struct cn_cluster *cluster = data;
    struct cn_front_spot *spot = &cluster->spots[shard];
    cn_cluster_lock(cluster);
    bool stopped = spot->state == CN_FRONT_SERVED || spot->state == CN_FRONT_STOPPING;
    if (stopped) {
        spot->state = CN_FRONT_SERVED;
    } else {
        spot->resuming = true; /* by the watch: it reads the disk */
        spot->stopping = false;
        pthread_cond_broadcast(&cluster->changed);
    }
    cn_cluster_unlock(cluster);
    if (stopped)
        cn_shards_resume(cluster->shards, shard, NULL, NULL);
}

static void on_closed(void *data, unsigned index, bool reached)
{
    struct cn_front_spot *spot = data;
    CN_ASSERT(reached);
    cn_cluster_lock(spot->cluster);
    spot->state = CN_FRONT_SERVED;
    spot->open = false;
    cn_cluster_unlock(spot->cluster);
    cn_host_shut(spot->cluster->host, index);
}

static void front_close(void *data, uint32_t shard)
{
    struct cn_cluster *cluster = data;
    struct cn_front_spot *spot = &cluster->spots[shard];
    cn_cluster_lock(cluster);
    bool closed = spot->state == CN_FRONT_FORCED;
    bool busy = spot->state == CN_FRONT_FORCING || spot->state == CN_FRONT_REOPENING;
    spot->closing = busy;
    spot->open = spot->silenced = false;
    if (!busy)
        spot->state = CN_FRONT_SERVED;
    cn_cluster_unlock(cluster);
    if (closed)
        cn_host_shut(cluster->host, shard);
    else if (!busy)
        cn_shards_close(cluster->shards, shard, on_closed, spot);
    cn_hauls_cut(cluster->hauls, shard);
}

static void front_wake(void *data)
{
    struct cn_cluster *cluster = data;
    cn_shards_wake(cluster->shards);
}

void cn_cluster_front_init(struct cn_cluster *cluster)
{
    cluster->front = (struct cn_host_front){cluster,      front_serve, front_stop,
                                            front_resume, front_close, front_wake};
    for (unsigned i = 0; i < CN_CLUSTER_SHARDS_MAX; i++)
        cluster->spots[i].cluster = cluster;
}

/* --- the watch: N5, N9 ----------------------------------------------------------------------- */

static void on_forced(void *data, unsigned index, bool reached)
{
    struct cn_front_spot *spot = data;
    struct cn_cluster *cluster = spot->cluster;
    CN_ASSERT(reached);
    cn_cluster_lock(cluster);
    bool closing = spot->closing, silenced = spot->silenced;
    uint64_t ticket = spot->ticket;
    spot->state = closing ? CN_FRONT_SERVED : CN_FRONT_FORCED;
    spot->closing = false;
    pthread_cond_broadcast(&cluster->changed);
    cn_cluster_unlock(cluster);
    if (closing)
        cn_host_shut(cluster->host, index);
    else if (!silenced)
        cn_host_stopped(cluster->host, index, ticket);
}

static void force(struct cn_cluster *cluster, unsigned shard, bool late)
{
    if (late)
        cn_warn("cluster: calls to objects of shard %u have not ended in %d s; they fail, since it "
                "is moved to another node",
                shard, stop_ms(cluster) / 1000);
    cn_shards_close(cluster->shards, shard, on_forced, &cluster->spots[shard]);
    cn_hauls_cut(cluster->hauls, shard);
}

/* One that cannot be opened again stays closed, and the node ends. */
static void reopen(struct cn_cluster *cluster, unsigned shard)
{
    struct cn_front_spot *spot = &cluster->spots[shard];
    struct cn_err err = {0};
    int rc = front_serve(cluster, shard, &err);
    cn_cluster_lock(cluster);
    bool closing = spot->closing, stopping = spot->stopping && !closing && rc == 0;
    spot->state = stopping             ? CN_FRONT_STOPPING
                  : rc < 0 && !closing ? CN_FRONT_FORCED
                                       : CN_FRONT_SERVED;
    spot->closing = spot->stopping = false;
    spot->open &= !closing; /* it is closed again below */
    cn_cluster_unlock(cluster);
    if (rc < 0)
        cn_cluster_fail(cluster, &err);
    if (rc < 0 && closing)
        cn_host_shut(cluster->host, shard);
    else if (closing)
        cn_shards_close(cluster->shards, shard, on_closed, spot);
    else if (stopping)
        cn_shards_stop(cluster->shards, shard, on_stopped, spot);
}

/* With the lock held; gives it back meanwhile. True: something was done. */
static bool look(struct cn_cluster *cluster, unsigned shard)
{
    struct cn_front_spot *spot = &cluster->spots[shard];
    int64_t now = cn_host_clock_ms();
    bool late = spot->state == CN_FRONT_STOPPING && now >= spot->stop_by_ms;
    bool lost =
        spot->state == CN_FRONT_SERVED && spot->open && now - cluster->lease_seen_ms >= LOST_MS;
    bool opens = spot->state == CN_FRONT_FORCED &&
                 (spot->resuming || (spot->silenced && cn_host_may_take(cluster->host, shard)));
    if (!late && !lost && !opens)
        return false;
    spot->state = opens ? CN_FRONT_REOPENING : CN_FRONT_FORCING;
    spot->silenced = lost;
    spot->resuming = false;
    cn_cluster_unlock(cluster);
    if (opens)
        reopen(cluster, shard);
    else
        force(cluster, shard, late);
    cn_cluster_lock(cluster);
    return true;
}

/* N2 */
static void look_for_twin(struct cn_cluster *cluster)
{
    uint64_t twin = cn_host_twin(cluster->host);
    if (!twin || twin > cluster->disk.id) {
        cluster->twin_since_ms = 0;
    } else if (!cluster->twin_since_ms) {
        cluster->twin_since_ms = cn_host_clock_ms();
    } else if (cn_host_clock_ms() - cluster->twin_since_ms > CN_CLUSTER_SILENT_MS) {
        struct cn_err err;
        cn_err_set(&err, CN_EEXISTS, "another node of this cluster is called %s and is alive",
                   cluster->node);
        cn_cluster_fail(cluster, &err);
        cluster->twin_since_ms = INT64_MAX; /* once */
    }
}

/* N9 */
static void look_for_lease(struct cn_cluster *cluster)
{
    struct cn_host_status status;
    int64_t now = cn_host_clock_ms();
    cn_host_status(cluster->host, &status);
    bool was_lost = now - cluster->lease_seen_ms >= LOST_MS;
    if (status.lease) {
        if (was_lost)
            cn_info("cluster: this node may answer again");
        cluster->lease_seen_ms = now;
    } else if (!was_lost && now + CN_CLUSTER_LOOK_MS - cluster->lease_seen_ms >= LOST_MS) {
        cn_warn("cluster: this node has not been allowed to answer for %d s: it has no engine that "
                "it can write to; calls that wait fail, and can be tried elsewhere",
                LOST_MS / 1000);
    }
}

/* N8 */
static void look_for_witness(struct cn_cluster *cluster)
{
    if (!cluster->witness || cluster->unwatched || cn_witness_lives(cluster->witness))
        return;
    cluster->unwatched = true;
    cn_warn("cluster: the process that would tell of this one's death has ended itself; if this "
            "one is killed, others take over when it has been silent for long enough");
}

void *cn_cluster_watch(void *data)
{
    struct cn_cluster *cluster = data;
    cluster->lease_seen_ms = cn_host_clock_ms();
    cn_cluster_lock(cluster);
    while (!cluster->ending) {
        cn_cluster_unlock(cluster);
        look_for_twin(cluster);
        look_for_witness(cluster);
        look_for_lease(cluster);
        cn_cluster_lock(cluster);
        bool any = false;
        for (unsigned i = 0; i < CN_CLUSTER_SHARDS_MAX; i++)
            any = look(cluster, i) || any;
        if (!any && !cluster->ending)
            (void)cn_cond_wait_ms(&cluster->changed, &cluster->lock, CN_CLUSTER_LOOK_MS);
    }
    cn_cluster_unlock(cluster);
    return NULL;
}
