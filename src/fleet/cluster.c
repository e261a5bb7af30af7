/* SPDX-License-Identifier: Apache-2.0 */
/* fleet/cluster.c - the life of a node: it joins when its engine answers and nobody has its name,
 * and leaves. See cluster.h. */
#include "fleet/cluster.h"

#include <inttypes.h>
#include <netdb.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cond.h"
#include "base/diag.h"
#include "base/disk.h"
#include "base/mem.h"
#include "config/address.h"
#include "fleet/cluster_private.h"
#include "fleet/witness.h"
#include "object/shard.h"
#include "peer/link.h"
#include "remote/remote.h"
#include "shard/backup_stream.h"
#include "shard/bodies.h"
#include "store/blob.h"

enum {
    LEAVE_MS = 40000, /* more than the member's own limit, and the closing of stores */
    ROOM_SIZE = 8 << 20
};
#define ROOM_FILE "shards/ROOM"

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
    cluster->registry.cluster = cluster->info.cluster;
    cluster->shards = cn_shards_new(&options);
    cn_cluster_backup_streams_open(cluster);
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
    bool serving = cluster->state == CN_CLUSTER_JOINED && cluster->had_session;
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
    struct cn_cluster *cluster = data;
    cn_cluster_lock(cluster);
    cluster->had_session = cluster->had_session || own;
    pthread_cond_broadcast(&cluster->changed);
    cn_cluster_unlock(cluster);
    cn_remote_sessions(cluster->remote, own, sessions, count);
}

/* --- joining --------------------------------------------------------------------------------- */

unsigned cn_cluster_allowed(const struct cn_cluster_options *options)
{
    return options->allow_async
               ? CN_ENGINE_NO_STANDBY | CN_ENGINE_ASYNC | CN_ENGINE_NO_FSYNC | CN_ENGINE_TORN_PAGES
               : 0;
}

/* Others are told the address as it is given: one that means every interface leads nowhere. */
static bool means_any(const char *host)
{
    struct addrinfo hints = {.ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM}, *found;
    if (getaddrinfo(host, NULL, &hints, &found) != 0)
        return false; /* a name; it is looked up when it is bound */
    bool any;
    if (found->ai_family == AF_INET6) {
        const struct in6_addr *six = &((struct sockaddr_in6 *)found->ai_addr)->sin6_addr;
        static const uint8_t zeros[4];
        any = IN6_IS_ADDR_UNSPECIFIED(six) ||
              (IN6_IS_ADDR_V4MAPPED(six) && memcmp(six->s6_addr + 12, zeros, sizeof(zeros)) == 0);
    } else {
        any = ((struct sockaddr_in *)found->ai_addr)->sin_addr.s_addr == htonl(INADDR_ANY);
    }
    freeaddrinfo(found);
    return any;
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
    bool any = means_any(host);
    cn_free(host);
    return any ? cn_err_set(err, CN_EINVALID,
                            "--peer %.100s is no address where other nodes can reach this one: it "
                            "stands for all interfaces; give the address that they connect to",
                            options->peer)
               : 0;
}

/* How often sessions of other disks with this name have beaten so far; NULL: there is none. */
static int others_of_the_name(struct cn_cluster *cluster, struct cn_buf *beats, struct cn_err *err)
{
    char disk[24];
    const char *values[] = {cluster->node, disk};
    snprintf(disk, sizeof(disk), "%" PRId64, (int64_t)cluster->disk.id);
    return cn_registry_ask(
        &cluster->registry,
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
                                    .seen = cluster->disk.seen,
                                    .shard_count = options->shard_count,
                                    .replicas = options->replicas,
                                    .allow_flaws = cluster->registry.allow_flaws,
                                    .verified = options->verified,
                                    .shut = true, /* N10 */
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

/* Until the engine has told which cluster it is; and that it has not gone back (C15), before
 * anything it tells is believed, or asked of it by another link: N7. */
static int await_joined(struct cn_cluster *cluster, struct cn_err *err)
{
    cn_cluster_lock(cluster);
    while (cluster->state == CN_CLUSTER_BOOTING)
        pthread_cond_wait(&cluster->changed, &cluster->lock);
    while (cluster->state == CN_CLUSTER_JOINED && !cluster->had_session)
        (void)cn_cond_wait_ms(&cluster->changed, &cluster->lock, CN_CLUSTER_LOOK_MS);
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
    cluster->registry = (struct cn_registry){.conninfo = cluster->url,
                                             .node = cluster->node,
                                             .shard_count = options->shard_count,
                                             .replicas = options->replicas};
    cluster->registry.allow_flaws = cn_cluster_allowed(options);
    cn_cluster_front_init(cluster);
    cn_cluster_agree_init(cluster);
    cn_cluster_remote_init(cluster);
    cn_cluster_bodies_init(cluster);
    return cluster;
}

/* N11: who would have to leave at once does not come. */
static int check_room(struct cn_disk *disk, struct cn_err *err)
{
    struct cn_disk_file *file;
    int rc = cn_disk_open(disk, ROOM_FILE, CN_DISK_CREATE | CN_DISK_TRUNCATE, &file);
    if (rc == 0) {
        rc = cn_disk_allocate(file, 0, ROOM_SIZE);
        cn_disk_close(file);
        (void)cn_disk_unlink(disk, ROOM_FILE); /* or the next start makes it anew */
    }
    return rc < 0 ? cn_err_errno(err, -rc,
                                 "a node needs %d MB of free space in its data directory to join",
                                 ROOM_SIZE >> 20)
                  : 0;
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
        cluster->registry.cluster = cluster->disk.cluster;
    rc = cn_blobs_open_by_shard(options->disk, "blobs", &cluster->blobs, err);
    if (rc == 0)
        rc = check_room(options->disk, err);
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
    if (cluster->streams)
        cn_backup_streams_stop(cluster->streams);
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
    cn_backup_streams_free(cluster->streams);
    cn_blobs_close(cluster->blobs);
    cn_remote_free(cluster->remote);
    if (cluster->disk.replicas)
        cn_cluster_disk_close(&cluster->disk);
    for (size_t i = 0; i < cluster->name_count; i++)
        cn_free(cluster->names[i].text);
    cn_free(cluster->names);
    cn_buf_fini(&cluster->apart);
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

const struct cn_registry *cn_cluster_registry(const struct cn_cluster *cluster)
{
    return &cluster->registry;
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
