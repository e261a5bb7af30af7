/* SPDX-License-Identifier: Apache-2.0 */
#include "server/data.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analytics/points.h"
#include "base/assert.h"
#include "base/disk.h"
#include "base/mem.h"
#include "base/whose.h"
#include "fleet/backup_manifest.h"
#include "fleet/cluster.h"
#include "fleet/cluster_restore.h"
#include "object/moved.h"
#include "object/node.h"
#include "object/secret.h"
#include "service/kv/kvcache.h"
#include "service/pool.h"
#include "store/backup.h"
#include "store/blob.h"
#include "store/history.h"
#include "store/store.h"
#include "worker/guest.h"

/* Long work of services at the same time, of all lanes. */
#define POOL_THREADS_MAX 16
/* Values of KV namespaces kept in memory, of all lanes. */
#define KV_CACHE_BYTES_MAX (32u << 20)

/* Services are classes in C, all others are the guest's. */
static bool find_class(struct cn_object_lane *lane, struct cn_namespace *ns,
                       const struct cn_object_key *key, const struct cn_class **class_,
                       void **class_data)
{
    struct cn_services *services = cn_node_data(ns->node);
    const struct cn_guest *guest = CN_CONTAINER_OF(services, struct cn_data, services)->guest;
    if (!cn_service_owns(ns->name))
        return guest && guest->find_class(lane, ns, key, class_, class_data);
    *class_data = services;
    return cn_service_find(ns, class_);
}

/* Another node writes to its objects from now on. */
static void on_shard_closed(void *data, unsigned index)
{
    (void)index;
    cn_kvcache_outdate(((struct cn_services *)data)->kv_cache);
}

int cn_data_check(struct cn_disk *disk, bool cluster, struct cn_err *err)
{
    if (cn_manifest_is_there(disk))
        return cn_err_set(err, CN_EINVALID,
                          "this is a backup of a cluster, and no data directory: cairn restore "
                          "makes one of it");
    if (cn_disk_has(disk, CN_BACKUP_UNFINISHED))
        return cn_err_set(err, CN_EINVALID, CN_BACKUP_UNFINISHED_TEXT);
    if (cn_disk_has(disk, CN_CLUSTER_RESTORING))
        return cn_err_set(err, CN_EINVALID,
                          "a restore into this directory was interrupted, or is under way: empty "
                          "it and restore again");
    if (cluster && cn_disk_has(disk, "FORMAT"))
        return cn_err_set(err, CN_EINVALID,
                          "this is the data directory of a single server, which cannot become a "
                          "node of a cluster: give the node a directory of its own");
    if (!cluster && cn_disk_has(disk, "shards/DISK"))
        return cn_err_set(err, CN_EINVALID,
                          "this is the data directory of a node of a cluster, which has parts of "
                          "its state and no more: serve it with --cluster, or take another");
    return 0;
}

/* The store of a single server. */
static int open_store(struct cn_data *data, const struct cn_data_options *options,
                      uint8_t secret[CN_SIPHASH_KEY_SIZE], struct cn_err *err)
{
    struct cn_history_config history = {.disk = data->disk,
                                        .retention_ms = options->history_ms,
                                        .size_max = options->history_bytes};
    int rc = cn_history_open(&history, &data->history, err);
    if (rc < 0)
        return rc;
    struct cn_store_config store = {.disk = data->disk,
                                    .history = cn_history_callbacks(data->history)};
    rc = cn_store_open(&store, &data->store, err);
    if (rc == 0)
        rc = cn_shards_single(data->store, data->history, &data->shards, err);
    if (rc == 0)
        rc = cn_secret_load(data->disk, secret, err);
    return rc < 0 ? rc : cn_moved_load(data->disk, &data->moved, err);
}

void cn_data_tell_holder(const char *path, struct cn_err *err)
{
    char *lock = cn_sprintf("%s/LOCK", path), who[CN_WHOSE_TEXT_MAX];
    cn_whose_lock(lock, who);
    cn_free(lock);
    cn_err_set(err, CN_ELOCKED, "the data directory is in use by %s", who);
}

static int open_cluster(struct cn_data *data, const struct cn_data_options *options,
                        uint8_t secret[CN_SIPHASH_KEY_SIZE], struct cn_err *err)
{
    struct cn_cluster_options cluster = *options->cluster;
    cluster.disk = data->disk;
    cluster.history_ms = options->history_ms;
    cluster.history_bytes = options->history_bytes;
    cluster.lane_count = options->lane_count;
    int rc = cn_cluster_open(&cluster, &data->cluster, err);
    if (rc < 0)
        return rc;
    data->shards = cn_cluster_shards(data->cluster);
    cn_cluster_secret(data->cluster, secret);
    return 0;
}

int cn_data_open(struct cn_data *data, const char *path, const struct cn_data_options *options,
                 struct cn_err *err)
{
    *data = (struct cn_data){.guest = options->guest};
    if (mkdir(path, 0700) < 0 && errno != EEXIST)
        return cn_err_errno(err, errno, "cannot make %s", path);
    data->disk = cn_disk_system_new(path);
    if (!data->disk)
        return cn_err_set(err, CN_ENOTFOUND, "cannot open the data directory %s", path);
    uint8_t secret[CN_SIPHASH_KEY_SIZE];
    int rc = cn_data_check(data->disk, options->cluster != NULL, err);
    if (rc == 0)
        rc = options->cluster ? open_cluster(data, options, secret, err)
                              : open_store(data, options, secret, err);
    if (rc == CN_ELOCKED && !options->cluster) {
        struct cn_err holder;
        cn_data_tell_holder(path, &holder);
        cn_err_set(err, rc, "%s: end it, or give this server a directory of its own (--data DIR)",
                   holder.text);
    }
    if (rc < 0)
        goto close;
    if (data->cluster)
        data->services.blobs = cn_cluster_blobs(data->cluster);
    else
        rc = cn_blobs_open(data->disk, "blobs", &data->services.blobs, err);
    if (rc < 0)
        goto close;
    data->services.pool = cn_pool_new(POOL_THREADS_MAX);
    if (!data->services.pool) {
        rc = cn_err_set(err, CN_EOVERLOADED, "cannot start a thread");
        goto close;
    }
    data->services.kv_cache = cn_kvcache_new(KV_CACHE_BYTES_MAX);
    struct cn_points_options points = {.disk = data->disk,
                                       .lane_count = options->lane_count,
                                       .retention_days = options->analytics_days};
    data->services.points = cn_points_new(&points);
    data->services.disk = data->disk;
    if (data->cluster)
        data->services.others = cn_cluster_others(data->cluster);
    struct cn_node_options node = {
        .shards = data->shards,
        .lane_count = options->lane_count,
        .moved = data->moved,
        .find_class = find_class,
        .data = &data->services,
        .new_objects_per_minute = options->new_objects_per_minute,
        .idle_ms = options->object_idle_ms,
        .idle_long_ms = options->object_idle_ms * 7,
    };
    memcpy(node.secret, secret, sizeof(secret));
    if (data->cluster)
        cn_cluster_mark(data->cluster, &node.disk, &node.life);
    data->node = cn_node_new(&node);
    if (data->cluster)
        cn_cluster_serve(data->cluster, data->node);
    cn_shards_on_close(data->shards, on_shard_closed, &data->services);
    return 0;
close:
    cn_data_close(data);
    cn_err_context(err, "%s", path);
    return rc;
}

void cn_data_close(struct cn_data *data)
{
    if (data->cluster)
        cn_cluster_leave(data->cluster);
    if (data->node)
        cn_node_free(data->node);
    cn_moved_free(data->moved);
    cn_points_free(data->services.points);
    if (data->services.pool)
        cn_pool_free(data->services.pool);
    cn_kvcache_free(data->services.kv_cache);
    if (data->services.blobs)
        cn_blobs_close(data->services.blobs);
    if (data->cluster)
        cn_cluster_free(data->cluster);
    else
        cn_shards_free(data->shards);
    if (data->store)
        cn_store_close(data->store);
    if (data->history)
        cn_history_close(data->history);
    if (data->disk)
        cn_disk_system_free(data->disk);
    *data = (struct cn_data){0};
}

static bool has_file(const char *path, const char *name)
{
    char *file = cn_sprintf("%s/%s", path, name);
    bool has = access(file, F_OK) == 0;
    cn_free(file);
    return has;
}

int cn_data_make(const char *path, struct cn_err *err)
{
    struct cn_data data;
    if (has_file(path, "FORMAT") || has_file(path, "shards/DISK"))
        return 0;
    struct cn_data_options options = {.lane_count = 1};
    int rc = cn_data_open(&data, path, &options, err);
    if (rc == 0)
        cn_data_close(&data);
    return rc;
}
