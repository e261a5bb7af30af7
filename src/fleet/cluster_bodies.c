/* SPDX-License-Identifier: Apache-2.0 */
/* fleet/cluster_bodies.c - what lies beside the stores: bodies of R2 on the disks of several
 * nodes, and stores as backups stream them, whose pieces go the same way. See cluster_private.h. */
#include <string.h>

#include "base/mem.h"
#include "fleet/cluster_private.h"
#include "object/node.h"
#include "object/shard.h"
#include "service/def.h"
#include "service/service.h"
#include "shard/backup_stream.h"
#include "shard/bodies.h"
#include "store/blob.h"

/* --- bodies ---------------------------------------------------------------------------------- */

static bool bodies_send(void *data, uint64_t disk, enum cn_frame_kind kind, const void *head,
                        size_t head_size, const void *more, size_t more_size)
{
    return cn_host_send(((struct cn_cluster *)data)->host, disk, kind, head, head_size, more,
                        more_size);
}

static bool bodies_view(void *data, uint32_t shard, struct cn_host_view *view)
{
    return cn_host_view(((struct cn_cluster *)data)->host, shard, view);
}

static unsigned bodies_linked(void *data, uint64_t disks[CN_CLUSTER_NODES_MAX])
{
    return cn_host_linked(((struct cn_cluster *)data)->host, disks);
}

static void bodies_whole(void *data, uint32_t shard, uint64_t epoch, const uint64_t *disks,
                         unsigned count)
{
    cn_host_whole(((struct cn_cluster *)data)->host, shard, epoch, disks, count);
}

/* Those of one namespace, by its service. What nobody here knows of is kept. */
static int ask_service(struct cn_node *node, uint32_t namespace_id, const struct cn_blob_id *ids,
                       size_t count, uint8_t *known, struct cn_err *err)
{
    struct cn_namespace *ns = cn_node_namespace_find(node, namespace_id);
    const struct cn_service_def *def = ns ? cn_service_of(ns->name) : NULL;
    memset(known, 1, count);
    return def && def->blobs_known ? def->blobs_known(ns, ids, count, known, err) : 0;
}

static int bodies_known(void *data, uint32_t shard, const struct cn_blob_id *ids, size_t count,
                        uint8_t *known, struct cn_err *err)
{
    struct cn_cluster *cluster = data;
    struct cn_node *node = atomic_load(&cluster->objects);
    struct cn_blob_id *some = cn_alloc(count * sizeof(*some) + 1);
    uint8_t *bits = cn_alloc(count + 1), *done = cn_alloc_zero(count + 1);
    int rc = node ? 0 : cn_err_set(err, CN_EOVERLOADED, "the server is starting");
    (void)shard;
    for (size_t i = 0; i < count && rc == 0; i++) {
        uint32_t of = cn_blob_id_namespace(&ids[i]);
        size_t some_count = 0;
        for (size_t j = i; j < count && !done[i]; j++)
            if (cn_blob_id_namespace(&ids[j]) == of)
                some[some_count++] = ids[j];
        if (!some_count)
            continue;
        rc = ask_service(node, of, some, some_count, bits, err);
        for (size_t j = i, at = 0; j < count && rc == 0; j++)
            if (cn_blob_id_namespace(&ids[j]) == of) {
                known[j] = bits[at++];
                done[j] = 1;
            }
    }
    cn_free(some);
    cn_free(bits);
    cn_free(done);
    return rc;
}

static int bodies_store(void *data, const struct cn_backup_stream_ask *ask,
                        struct cn_backup_stream_piece *piece, struct cn_err *err)
{
    return cn_backup_stream_next(((struct cn_cluster *)data)->streams, ask, piece, err);
}

int cn_cluster_bodies_open(struct cn_cluster *cluster, const struct cn_engine_pg_info *info,
                           struct cn_err *err)
{
    struct cn_bodies_config config = {.blobs = cluster->blobs,
                                      .disk = cluster->disk.id,
                                      .shard_count = info->shard_count,
                                      .replicas = info->replicas,
                                      .hands = {cluster, bodies_send, bodies_view, bodies_linked,
                                                bodies_known, bodies_whole, bodies_store}};
    return cn_bodies_new(&config, &cluster->bodies, err);
}

struct cn_blobs *cn_cluster_blobs(struct cn_cluster *cluster)
{
    return cn_blobs_among(cluster->blobs, cn_bodies_peers(cluster->bodies));
}

void cn_cluster_bodies(struct cn_cluster *cluster, struct cn_bodies_stats *stats)
{
    cn_bodies_stats(cluster->bodies, stats);
}

struct cn_bodies *cn_cluster_body_keeper(struct cn_cluster *cluster)
{
    return cluster->bodies;
}

static bool beside_frame(void *data, uint64_t disk, const struct cn_frame *frame)
{
    struct cn_bodies *bodies = ((struct cn_cluster *)data)->bodies;
    /* NULL: it could not be opened, and the host is about to leave. */
    return !bodies || cn_bodies_frame(bodies, disk, frame);
}

static void beside_link(void *data, uint64_t disk, bool up)
{
    struct cn_bodies *bodies = ((struct cn_cluster *)data)->bodies;
    if (bodies)
        cn_bodies_link(bodies, disk, up);
}

void cn_cluster_bodies_init(struct cn_cluster *cluster)
{
    cluster->beside = (struct cn_host_beside){cluster, beside_frame, beside_link};
}

/* --- backups: the stores of shards that are served here (shard/backup_stream.h) --------------------- */

static void *stream_hold(void *data, uint32_t shard, uint64_t *epoch)
{
    struct cn_cluster *cluster = data;
    struct cn_host_view view;
    if (!cn_host_may_leave(cluster->host, shard) || !cn_host_view(cluster->host, shard, &view) ||
        view.owner != cluster->disk.id)
        return NULL;
    *epoch = view.epoch;
    return cn_shards_hold_index(cluster->shards, shard);
}

static void stream_release(void *data, void *hold)
{
    (void)data;
    cn_shard_release(hold);
}

static int stream_copy(void *data, uint32_t shard,
                       int (*write)(void *to, const void *bytes, size_t size), void *to,
                       struct cn_err *err)
{
    const struct cn_host_disk *hands = &((struct cn_cluster *)data)->disk.hands;
    return hands->copy_out(hands->data, shard, write, to, err);
}

void cn_cluster_backup_streams_open(struct cn_cluster *cluster)
{
    cluster->streams = cn_backup_streams_new(
        &(struct cn_backup_streams_host){cluster, stream_hold, stream_release, stream_copy});
}

struct cn_backup_streams *cn_cluster_backup_streams(struct cn_cluster *cluster)
{
    return cluster->streams;
}

bool cn_cluster_backup_begin(struct cn_cluster *cluster)
{
    return !atomic_exchange(&cluster->backing_up, true);
}

void cn_cluster_backup_end(struct cn_cluster *cluster)
{
    atomic_store(&cluster->backing_up, false);
}
