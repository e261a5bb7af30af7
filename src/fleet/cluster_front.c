/* SPDX-License-Identifier: Apache-2.0 */
/* fleet/cluster_front.c - shards that come and go: what the host wants of the lanes, and the
 * watch, which ends what takes too long. See cluster_private.h. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/buf.h"
#include "base/cond.h"
#include "base/diag.h"
#include "fleet/cluster_private.h"
#include "fleet/witness.h"
#include "object/shard.h"
#include "shard/backup_stream.h"

enum {
    STOP_MS = 5000,   /* N5 */
    LINGER_MS = 5000, /* the same, of streams */
    /* Of a node that departs, in all; less than the member's limit to leave. */
    DEPART_MS = 9000,
    DEPART_LINGER_MS = 4000,
    LINGER_LOOK_MS = 20,
    LOST_MS = 10000, /* N9: longer than most engines take for a fail-over */
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
    cluster->entries[shard].open = rc == 0;
    cn_cluster_unlock(cluster);
    return rc;
}

static void on_stopped(void *data, unsigned index, bool reached)
{
    struct cn_front_entry *entry = data;
    struct cn_cluster *cluster = entry->cluster;
    cn_cluster_lock(cluster);
    bool stopped = reached && entry->state == CN_FRONT_STOPPING;
    uint64_t ticket = entry->ticket;
    if (stopped)
        entry->state = CN_FRONT_SERVED;
    cn_cluster_unlock(cluster);
    if (stopped)
        cn_host_stopped(cluster->host, index, ticket);
}

/* N5, N6 */
static int stop_ms(struct cn_cluster *cluster)
{
    return atomic_load(&cluster->departing) ? DEPART_MS - DEPART_LINGER_MS : STOP_MS;
}

static int linger_ms(struct cn_cluster *cluster)
{
    return atomic_load(&cluster->departing) ? DEPART_LINGER_MS : LINGER_MS;
}

static void stop_shard(struct cn_cluster *cluster, unsigned shard)
{
    cn_shards_stop(cluster->shards, shard, on_stopped, &cluster->entries[shard]);
    cn_backup_streams_cut(cluster->streams, shard); /* after it: no other can begin any more */
}

static void front_stop(void *data, uint32_t shard, uint64_t ticket)
{
    struct cn_cluster *cluster = data;
    struct cn_front_entry *entry = &cluster->entries[shard];
    unsigned turn = cn_shards_turn(cluster->shards, shard);
    bool lingers = cn_shards_streams(cluster->shards, shard, turn);
    cn_cluster_lock(cluster);
    bool serves = entry->state == CN_FRONT_SERVED, forced = entry->state == CN_FRONT_FORCED;
    entry->ticket = ticket;
    entry->resuming = entry->silenced = false;
    entry->stopping = entry->state == CN_FRONT_REOPENING;
    entry->turn = turn;
    entry->stop_by_ms = cn_host_clock_ms() + (lingers ? linger_ms(cluster) : stop_ms(cluster));
    if (serves)
        entry->state = lingers ? CN_FRONT_LINGERING : CN_FRONT_STOPPING;
    pthread_cond_broadcast(&cluster->changed); /* the watch looks more often */
    cn_cluster_unlock(cluster);
    if (serves && !lingers)
        stop_shard(cluster, shard);
    else if (forced) /* nothing runs in it */
        cn_host_stopped(cluster->host, shard, ticket);
}

static void front_resume(void *data, uint32_t shard)
{
    struct cn_cluster *cluster = data;
    struct cn_front_entry *entry = &cluster->entries[shard];
    cn_cluster_lock(cluster);
    bool stopped = entry->state == CN_FRONT_SERVED || entry->state == CN_FRONT_STOPPING;
    if (stopped || entry->state == CN_FRONT_LINGERING) { /* which has not stopped */
        entry->state = CN_FRONT_SERVED;
    } else {
        entry->resuming = true; /* by the watch: it reads the disk */
        entry->stopping = false;
        pthread_cond_broadcast(&cluster->changed);
    }
    cn_cluster_unlock(cluster);
    if (stopped)
        cn_shards_resume(cluster->shards, shard, NULL, NULL);
}

static void on_closed(void *data, unsigned index, bool reached)
{
    struct cn_front_entry *entry = data;
    CN_ASSERT(reached);
    cn_cluster_lock(entry->cluster);
    entry->state = CN_FRONT_SERVED;
    entry->open = false;
    cn_cluster_unlock(entry->cluster);
    cn_host_shut(entry->cluster->host, index);
}

static void front_close(void *data, uint32_t shard)
{
    struct cn_cluster *cluster = data;
    struct cn_front_entry *entry = &cluster->entries[shard];
    cn_cluster_lock(cluster);
    bool closed = entry->state == CN_FRONT_FORCED;
    bool busy = entry->state == CN_FRONT_FORCING || entry->state == CN_FRONT_REOPENING;
    entry->closing = busy;
    entry->open = entry->silenced = false;
    if (!busy)
        entry->state = CN_FRONT_SERVED;
    cn_cluster_unlock(cluster);
    if (closed)
        cn_host_shut(cluster->host, shard);
    else if (!busy)
        cn_shards_close(cluster->shards, shard, on_closed, entry);
    cn_backup_streams_cut(cluster->streams, shard);
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
        cluster->entries[i].cluster = cluster;
}

/* --- the watch: N5, N9 ----------------------------------------------------------------------- */

static void on_forced(void *data, unsigned index, bool reached)
{
    struct cn_front_entry *entry = data;
    struct cn_cluster *cluster = entry->cluster;
    CN_ASSERT(reached);
    cn_cluster_lock(cluster);
    bool closing = entry->closing, silenced = entry->silenced;
    uint64_t ticket = entry->ticket;
    entry->state = closing ? CN_FRONT_SERVED : CN_FRONT_FORCED;
    entry->closing = false;
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
    cn_shards_close(cluster->shards, shard, on_forced, &cluster->entries[shard]);
    cn_backup_streams_cut(cluster->streams, shard);
}

/* One that cannot be opened again stays closed, and the node ends. */
static void reopen(struct cn_cluster *cluster, unsigned shard)
{
    struct cn_front_entry *entry = &cluster->entries[shard];
    struct cn_err err = {0};
    int rc = front_serve(cluster, shard, &err);
    cn_cluster_lock(cluster);
    bool closing = entry->closing, stopping = entry->stopping && !closing && rc == 0;
    entry->state = stopping             ? CN_FRONT_STOPPING
                   : rc < 0 && !closing ? CN_FRONT_FORCED
                                        : CN_FRONT_SERVED;
    entry->closing = entry->stopping = false;
    entry->open &= !closing; /* it is closed again below */
    cn_cluster_unlock(cluster);
    if (rc < 0)
        cn_cluster_fail(cluster, &err);
    if (rc < 0 && closing)
        cn_host_shut(cluster->host, shard);
    else if (closing)
        cn_shards_close(cluster->shards, shard, on_closed, entry);
    else if (stopping)
        cn_shards_stop(cluster->shards, shard, on_stopped, entry);
}

/* With the lock held; gives it back meanwhile. True: something was done. */
static bool look(struct cn_cluster *cluster, unsigned shard)
{
    struct cn_front_entry *entry = &cluster->entries[shard];
    int64_t now = cn_host_clock_ms();
    bool late = entry->state == CN_FRONT_STOPPING && now >= entry->stop_by_ms;
    bool stops =
        entry->state == CN_FRONT_LINGERING &&
        (now >= entry->stop_by_ms || !cn_shards_streams(cluster->shards, shard, entry->turn));
    bool lost =
        entry->state == CN_FRONT_SERVED && entry->open && now - cluster->lease_seen_ms >= LOST_MS;
    bool opens = entry->state == CN_FRONT_FORCED &&
                 (entry->resuming || (entry->silenced && cn_host_may_take(cluster->host, shard)));
    if (stops) {
        entry->state = CN_FRONT_STOPPING;
        entry->stop_by_ms = now + stop_ms(cluster);
        cn_cluster_unlock(cluster);
        stop_shard(cluster, shard);
        cn_cluster_lock(cluster);
        return true;
    }
    if (!late && !lost && !opens)
        return false;
    entry->state = opens ? CN_FRONT_REOPENING : CN_FRONT_FORCING;
    entry->silenced = lost;
    entry->resuming = false;
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

/* What `cairn cluster status` shows: told to the engine when it has changed, and again if the
 * engine has not taken it. */
static void look_for_trouble(struct cn_cluster *cluster)
{
    struct cn_host_trouble troubles[CN_CLUSTER_NODES_MAX];
    unsigned count = cn_host_troubles(cluster->host, troubles);
    struct cn_buf disks = {0}, whys = {0}, told = {0};
    struct cn_registry registry = cluster->registry;
    struct cn_err err;
    char self[24];
    registry.timeout_ms = 2000;
    if (cn_host_clock_ms() - cluster->lease_seen_ms > CN_CLUSTER_LOOK_MS)
        return; /* the engine is away; the watch has more to do than to wait for it */
    for (unsigned i = 0; i < count; i++) {
        cn_buf_printf(&disks, "%s%" PRId64, i ? "," : "{", (int64_t)troubles[i].disk);
        cn_buf_printf(&whys, "%s\"%s\"", i ? "," : "{", troubles[i].why);
    }
    cn_buf_append_str(&disks, count ? "}" : "{}");
    cn_buf_append_str(&whys, count ? "}" : "{}");
    snprintf(self, sizeof(self), "%" PRId64, (int64_t)cluster->disk.id);
    const char *values[] = {self, cn_buf_text(&disks), cn_buf_text(&whys)};
    if (strcmp(cn_buf_text(&cluster->apart), values[1]) != 0 &&
        cn_registry_ask(&registry, "cairn.unreach($1::bigint, $2::bigint[], $3::text[])", values, 3,
                        &told, &err) == 1) {
        cn_buf_clear(&cluster->apart);
        cn_buf_append_str(&cluster->apart, values[1]);
    }
    cn_buf_fini(&disks);
    cn_buf_fini(&whys);
    cn_buf_fini(&told);
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
        look_for_trouble(cluster);
        cn_cluster_lock(cluster);
        bool any = false, lingers = false;
        for (unsigned i = 0; i < CN_CLUSTER_SHARDS_MAX; i++) {
            any = look(cluster, i) || any;
            lingers = lingers || cluster->entries[i].state == CN_FRONT_LINGERING;
        }
        if (!any && !cluster->ending)
            (void)cn_cond_wait_ms(&cluster->changed, &cluster->lock,
                                  lingers ? LINGER_LOOK_MS : CN_CLUSTER_LOOK_MS);
    }
    cn_cluster_unlock(cluster);
    return NULL;
}
