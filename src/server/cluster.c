/* SPDX-License-Identifier: Apache-2.0 */
/* server/cluster.c - the life of a node: it joins when its engine answers and nobody has its name,
 * and leaves. See cluster.h. */
#include "server/cluster.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cond.h"
#include "base/diag.h"
#include "base/mem.h"
#include "cluster/bodies.h"
#include "cluster/haul.h"
#include "cluster/link.h"
#include "object/shard.h"
#include "remote/remote.h"
#include "server/address.h"
#include "server/cluster_private.h"
#include "server/witness.h"
#include "store/blob.h"

enum { LEAVE_MS = 40000 }; /* more than the member's own limit, and the closing of stores */

/* --- what the host tells --------------------------------------------------------------------- */

static bool shards_may_take(void *data, unsigned index)
{
    return cn_host_may_take(((struct cn_cluster *)data)->host, index);
}

static int host_joined(void *data, struct cn_host *host, const struct cn_engine_pg_info *info,
                       struct cn_err *err)
{
    struct cn_cluster *cluster = data;
    struct cn_shards_options options = {.count = info->shard_count,
                                        .number = cn_cluster_number,
                                        .named = cn_cluster_named,
                                        .may_take = shards_may_take,
                                        .data = cluster};
    cluster->info = *info;
    cluster->book.cluster = cluster->info.cluster;
    cluster->shards = cn_shards_new(&options);
    cn_cluster_hauls_open(cluster);
    int rc = cn_cluster_remote_open(cluster, err);
    if (rc == 0)
        rc = cn_cluster_bodies_open(cluster, info, err);
    if (rc == 0)
        rc = cn_cluster_disk_join(&cluster->disk, host, info, err);
    if (rc < 0)
        return rc;
    if (cluster->witness)
        cn_witness_tell(cluster->witness, cluster->disk.id,
                        cluster->disk.life + CN_HOST_LIFE_JOINS - 1, info->cluster);
    cn_cluster_lock(cluster);
    cluster->state = CN_CLUSTER_JOINED;
    pthread_cond_broadcast(&cluster->changed);
    cn_cluster_unlock(cluster);
    return 0;
}

void cn_cluster_fail(void *data, const struct cn_err *err)
{
    struct cn_cluster *cluster = data;
    cn_cluster_lock(cluster);
    bool serving = cluster->state == CN_CLUSTER_JOINED;
    cluster->state = CN_CLUSTER_FAILED;
    cluster->why = *err;
    pthread_cond_broadcast(&cluster->changed);
    cn_cluster_unlock(cluster);
    if (serving)
        (void)kill(getpid(), SIGTERM); /* drains, stops, and ends with the reason */
}

static void host_left(void *data)
{
    struct cn_cluster *cluster = data;
    cn_cluster_lock(cluster);
    cluster->left = true;
    pthread_cond_broadcast(&cluster->changed);
    cn_cluster_unlock(cluster);
}

static void host_pipe(void *data, struct cn_stream_moved *moved, const uint8_t *body, size_t size)
{
    cn_remote_pipe(((struct cn_cluster *)data)->remote, moved, body, size);
}

static void host_silent(void *data, uint64_t disk)
{
    cn_remote_silent(((struct cn_cluster *)data)->remote, disk);
}

static void host_sessions(void *data, uint64_t own, const struct cn_host_session *sessions,
                          unsigned count)
{
    cn_remote_sessions(((struct cn_cluster *)data)->remote, own, sessions, count);
}

/* --- joining --------------------------------------------------------------------------------- */

unsigned cn_cluster_allowed(const struct cn_cluster_options *options)
{
    return options->allow_async
               ? CN_ENGINE_NO_STANDBY | CN_ENGINE_ASYNC | CN_ENGINE_NO_FSYNC | CN_ENGINE_TORN_PAGES
               : 0;
}

int cn_cluster_check(const struct cn_cluster_options *options, struct cn_err *err)
{
    char *host = NULL;
    uint16_t port;
    if (!options->node || !cn_engine_pg_is_node(options->node))
        return cn_err_set(err, CN_EINVALID,
                          "a node of a cluster needs a name that no other has, of up to %d letters,"
                          " digits, '-', '_' and '.': --node NAME",
                          CN_ENGINE_PG_NODE_MAX);
    if (!options->peer || cn_address_parse(options->peer, &host, &port, NULL) < 0 ||
        !cn_engine_pg_is_address(options->peer)) {
        cn_free(host);
        return cn_err_set(err, CN_EINVALID,
                          "a node of a cluster needs an address where the others reach it: --peer "
                          "HOST:PORT");
    }
    cn_free(host);
    return 0;
}

/* How often sessions of other disks with this name have beaten so far; NULL: there is none. */
static int others_of_the_name(struct cn_cluster *cluster, struct cn_buf *beats, struct cn_err *err)
{
    char disk[24];
    const char *values[] = {cluster->node, disk};
    snprintf(disk, sizeof(disk), "%" PRId64, (int64_t)cluster->disk.id);
    return cn_book_ask(&cluster->book,
                       "SELECT string_agg(s.id || ':' || s.beat || ' ' || d.address, ', ' ORDER BY "
                       "s.id) FROM cairn.session s JOIN cairn.disk d ON d.id = s.disk WHERE s.live "
                       "AND d.node = $1::text AND d.id <> $2::bigint",
                       values, 2, beats, err);
}

/* N2. The engine may be away: the host waits for it, and is not started before. */
static int check_name(struct cn_cluster *cluster, struct cn_err *err)
{
    struct cn_buf before = {0}, after = {0};
    int rc;
    do
        rc = others_of_the_name(cluster, &before, err);
    while (cn_cluster_is_away(cluster, rc, err));
    if (rc == 1) {
        cn_cluster_lock(cluster);
        (void)cn_cond_wait_ms(&cluster->changed, &cluster->lock, CN_CLUSTER_SILENT_MS);
        cn_cluster_unlock(cluster);
        do
            rc = others_of_the_name(cluster, &after, err);
        while (cn_cluster_is_away(cluster, rc, err));
    }
    if (rc == 1 && strcmp(cn_buf_text(&before), cn_buf_text(&after)) != 0)
        rc = cn_err_set(err, CN_EEXISTS,
                        "another node of this cluster is called %s and is alive, at %s",
                        cluster->node, strchr(cn_buf_text(&after), ' ') + 1);
    cn_buf_fini(&before);
    cn_buf_fini(&after);
    return rc < 0 ? rc : 0;
}

static int open_host(struct cn_cluster *cluster, const struct cn_cluster_options *options,
                     struct cn_err *err)
{
    char *peer_host = NULL;
    uint16_t port;
    struct cn_host_config config = {.conninfo = cluster->url,
                                    .node = cluster->node,
                                    .cluster =
                                        *cluster->disk.cluster ? cluster->disk.cluster : NULL,
                                    .disk = cluster->disk.id,
                                    .life = cluster->disk.life,
                                    .shard_count = options->shard_count,
                                    .replicas = options->replicas,
                                    .allow_flaws = cluster->book.allow_flaws,
                                    .verified = options->verified,
                                    .disk_hands = &cluster->disk.hands,
                                    .front = &cluster->front,
                                    .beside = &cluster->beside,
                                    .data = cluster,
                                    .joined = host_joined,
                                    .failed = cn_cluster_fail,
                                    .left = host_left,
                                    .pipe = host_pipe,
                                    .silent = host_silent,
                                    .sessions = host_sessions};
    int rc = cn_address_parse(options->peer, &peer_host, &port, err);
    if (rc < 0)
        return rc;
    config.listen_fd = cn_links_bind(peer_host, port, &port, err);
    bool bare_v6 = strchr(peer_host, ':') != NULL;
    cluster->address =
        cn_sprintf("%s%s%s:%u", bare_v6 ? "[" : "", peer_host, bare_v6 ? "]" : "", port);
    config.address = cluster->address;
    cn_free(peer_host);
    if (config.listen_fd < 0)
        return cn_err_context(err, "--peer");
    rc = cn_host_new(&config, &cluster->host, err);
    if (rc < 0)
        close(config.listen_fd);
    else
        rc = cn_host_start(cluster->host, err);
    cluster->started = rc == 0;
    return rc;
}

/* Until the engine has told which cluster it is. */
static int await_joined(struct cn_cluster *cluster, struct cn_err *err)
{
    cn_cluster_lock(cluster);
    while (cluster->state == CN_CLUSTER_BOOTING)
        pthread_cond_wait(&cluster->changed, &cluster->lock);
    int rc = cluster->state == CN_CLUSTER_FAILED ? cluster->why.code : 0;
    if (rc < 0)
        *err = cluster->why;
    cn_cluster_unlock(cluster);
    return rc;
}

static struct cn_cluster *make(const struct cn_cluster_options *options)
{
    struct cn_cluster *cluster = CN_NEW(struct cn_cluster);
    cn_cond_init(&cluster->changed);
    pthread_mutex_init(&cluster->lock, NULL);
    cluster->url = cn_strdup(options->url);
    cluster->node = cn_strdup(options->node);
    cluster->lane_count = options->lane_count ? options->lane_count : 1;
    cluster->call_wait_ms = options->call_wait_ms;
    cluster->witness = options->witness;
    cluster->book = (struct cn_book){.conninfo = cluster->url,
                                     .node = cluster->node,
                                     .shard_count = options->shard_count,
                                     .replicas = options->replicas};
    cluster->book.allow_flaws = cn_cluster_allowed(options);
    cn_cluster_front_init(cluster);
    cn_cluster_agree_init(cluster);
    cn_cluster_remote_init(cluster);
    cn_cluster_bodies_init(cluster);
    return cluster;
}

static int start(struct cn_cluster *cluster, const struct cn_cluster_options *options,
                 struct cn_err *err)
{
    struct cn_replicas_config replicas = {.disk = options->disk,
                                          .retention_ms = options->history_ms,
                                          .history_size_max = options->history_bytes};
    int rc = cn_cluster_disk_open(&cluster->disk, &replicas, err);
    if (rc < 0)
        return rc;
    if (options->verified)
        cn_cluster_disk_verify(&cluster->disk);
    if (*cluster->disk.cluster)
        cluster->book.cluster = cluster->disk.cluster;
    rc = cn_blobs_open_by_shard(options->disk, "blobs", &cluster->blobs, err);
    if (rc == 0)
        rc = check_name(cluster, err);
    if (rc == 0)
        rc = open_host(cluster, options, err);
    if (rc == 0)
        rc = await_joined(cluster, err);
    if (rc == 0 && pthread_create(&cluster->watch, NULL, cn_cluster_watch, cluster) != 0)
        rc = cn_err_set(err, CN_ENOMEM, "cannot start a thread");
    cluster->watching = rc == 0;
    return rc;
}

int cn_cluster_open(const struct cn_cluster_options *options, struct cn_cluster **out,
                    struct cn_err *err)
{
    int rc = cn_cluster_check(options, err);
    if (rc < 0)
        return rc;
    struct cn_cluster *cluster = make(options);
    rc = start(cluster, options, err);
    if (rc < 0) {
        cn_cluster_leave(cluster);
        cn_cluster_free(cluster);
        struct cn_err why = *err;
        if (rc == CN_EDENIED)
            cn_err_set(err, rc,
                       "%.300s (allow_async = true in [cairn.cluster], or --allow-async, serves on "
                       "such an engine all the same)",
                       why.text);
        return rc;
    }
    if (options->allow_async)
        cn_warn("cluster: allow_async: what was acknowledged may be lost when the engine fails");
    cn_info("cluster: %s is a node of %s, which has %u shards; others reach it at %s",
            cluster->node, cluster->info.cluster, cluster->info.shard_count, cluster->address);
    *out = cluster;
    return 0;
}

/* --- leaving --------------------------------------------------------------------------------- */

void cn_cluster_depart(struct cn_cluster *cluster)
{
    atomic_store(&cluster->departing, true);
    cn_cluster_leave(cluster);
}

void cn_cluster_leave(struct cn_cluster *cluster)
{
    if (!cluster->started)
        return;
    cn_cluster_lock(cluster);
    bool gone = cluster->parted;
    cn_cluster_unlock(cluster);
    if (gone)
        return;
    if (cluster->bodies)
        cn_bodies_stop(cluster->bodies);
    if (cluster->hauls)
        cn_hauls_stop(cluster->hauls);
    cn_host_leave(cluster->host, true);
    int64_t until = cn_host_clock_ms() + LEAVE_MS;
    cn_cluster_lock(cluster);
    while (!cluster->left && cn_host_clock_ms() < until)
        (void)cn_cond_wait_ms(&cluster->changed, &cluster->lock, CN_CLUSTER_LOOK_MS);
    bool left = cluster->parted = cluster->left;
    cn_cluster_unlock(cluster);
    if (left && cluster->witness && cn_host_has_parted(cluster->host))
        cn_witness_left(cluster->witness);
    if (left)
        return;
    cn_error("cluster: this node could not leave in %d s and ends as it is; what was acknowledged "
             "is safe in the engine",
             LEAVE_MS / 1000);
    _exit(1);
}

void cn_cluster_free(struct cn_cluster *cluster)
{
    if (!cluster)
        return;
    cn_cluster_lock(cluster);
    cluster->ending = true;
    pthread_cond_broadcast(&cluster->changed);
    cn_cluster_unlock(cluster);
    if (cluster->watching)
        pthread_join(cluster->watch, NULL);
    cn_shards_free(cluster->shards);
    if (cluster->host)
        cn_host_free(cluster->host);
    cn_bodies_free(cluster->bodies);
    cn_hauls_free(cluster->hauls);
    cn_blobs_close(cluster->blobs);
    cn_remote_free(cluster->remote);
    if (cluster->disk.replicas)
        cn_cluster_disk_close(&cluster->disk);
    for (size_t i = 0; i < cluster->name_count; i++)
        cn_free(cluster->names[i].text);
    cn_free(cluster->names);
    cn_free(cluster->url);
    cn_free(cluster->node);
    cn_free(cluster->address);
    pthread_mutex_destroy(&cluster->lock);
    pthread_cond_destroy(&cluster->changed);
    cn_free(cluster);
}

/* --- what it has ----------------------------------------------------------------------------- */

bool cn_cluster_failed(struct cn_cluster *cluster, struct cn_err *err)
{
    cn_cluster_lock(cluster);
    bool failed = cluster->state == CN_CLUSTER_FAILED;
    if (failed)
        *err = cluster->why;
    cn_cluster_unlock(cluster);
    return failed;
}

void cn_cluster_serve(struct cn_cluster *cluster, struct cn_node *node)
{
    atomic_store(&cluster->objects, node);
}

struct cn_shards *cn_cluster_shards(struct cn_cluster *cluster)
{
    return cluster->shards;
}

struct cn_host *cn_cluster_host(struct cn_cluster *cluster)
{
    return cluster->host;
}

const struct cn_book *cn_cluster_book(const struct cn_cluster *cluster)
{
    return &cluster->book;
}

const struct cn_engine_pg_info *cn_cluster_info(const struct cn_cluster *cluster)
{
    return &cluster->info;
}

uint64_t cn_cluster_disk_id(const struct cn_cluster *cluster)
{
    return cluster->disk.id;
}

void cn_cluster_mark(const struct cn_cluster *cluster, uint64_t *disk, uint64_t *life)
{
    *disk = cluster->disk.id;
    *life = cluster->disk.life;
}
