/* SPDX-License-Identifier: Apache-2.0 */
#include "shard/disk.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/crc32c.h"
#include "base/disk.h"
#include "base/err.h"

#define CLUSTER_FILE "shards/CLUSTER"
#define SEEN_FILE "shards/SEEN"
#define SEEN_FORMAT(u) \
    "cairn seen version %" u " life %" u " session %" u " beat %" u " decision %" u
enum { SEEN_SIZE = 200 };

static struct cn_replica *replica_of(struct cn_cluster_disk *disk, uint32_t shard)
{
    return cn_replicas_find(disk->replicas, shard);
}

static int missing(struct cn_err *err, uint32_t shard)
{
    return cn_err_set(err, CN_ECORRUPT, "the replica of shard %u is gone from this disk", shard);
}

/* --- what the host asks ------------------------------------------------------------------------
 */

static int disk_discard(void *data, uint32_t shard, struct cn_err *err)
{
    struct cn_cluster_disk *disk = data;
    struct cn_cluster_entry *entry = &disk->entries[shard];
    if (entry->coming)
        cn_replica_copy_abort(entry->coming);
    entry->coming = NULL;
    return cn_replicas_discard(disk->replicas, shard, err);
}

static int disk_create(void *data, uint32_t shard, struct cn_err *err)
{
    struct cn_cluster_disk *disk = data;
    struct cn_replica *replica;
    int rc = disk_discard(disk, shard, err);
    return rc < 0 ? rc : cn_replicas_create(disk->replicas, shard, &replica, err);
}

static int disk_write(void *data, uint32_t shard, const void *records, size_t size,
                      struct cn_err *err)
{
    struct cn_replica *replica = replica_of(data, shard);
    return replica ? cn_replica_feed(replica, records, size, err) : missing(err, shard);
}

static int disk_open(void *data, uint32_t shard, uint64_t lsn, struct cn_err *err)
{
    struct cn_cluster_disk *disk = data;
    struct cn_replica *replica = replica_of(disk, shard);
    struct cn_store *store;
    return replica ? cn_replica_promote(replica, lsn, &disk->entries[shard].sink, &store, err)
                   : missing(err, shard);
}

static int disk_sync(void *data, uint32_t shard, struct cn_err *err)
{
    struct cn_cluster_disk *disk = data;
    int rc = cn_disk_sync_all(disk->files);
    return rc < 0 ? cn_err_errno(err, -rc, "cannot sync the replica of shard %u", shard) : 0;
}

/* With its checksum: a digit that has become another would tell less, and nobody could see it. */
static size_t seen_text(char text[SEEN_SIZE], const struct cn_engine_seen *seen, bool sum)
{
    int size = snprintf(text, SEEN_SIZE, SEEN_FORMAT(PRIu64), seen->version, seen->life,
                        seen->session, seen->beat, seen->decision);
    if (sum)
        size += snprintf(text + size, SEEN_SIZE - (size_t)size, " crc %08" PRIx32,
                         cn_crc32c(0, text, (size_t)size));
    text[size] = '\n';
    text[size + 1] = 0;
    return (size_t)size + 1;
}

static int disk_remember(void *data, const struct cn_engine_seen *seen, struct cn_err *err)
{
    struct cn_cluster_disk *disk = data;
    char text[SEEN_SIZE];
    size_t size = seen_text(text, seen, true);
    int rc = cn_disk_replace(disk->files, SEEN_FILE, text, size);
    return rc < 0 ? cn_err_errno(err, -rc, SEEN_FILE) : 0;
}

static void disk_tidy(void *data)
{
    cn_replicas_tidy(((struct cn_cluster_disk *)data)->replicas);
}

static int disk_close(void *data, uint32_t shard, struct cn_err *err)
{
    struct cn_replica *replica = replica_of(data, shard);
    return replica ? cn_replica_demote(replica, err) : missing(err, shard);
}

static uint64_t disk_appended(void *data, uint32_t shard)
{
    struct cn_replica *replica = replica_of(data, shard);
    return replica ? cn_replica_appended(replica) : 0;
}

static uint64_t disk_records(void *data, uint32_t shard, uint64_t from, uint64_t to,
                             size_t size_max, struct cn_buf *records)
{
    struct cn_replica *replica = replica_of(data, shard);
    return replica ? cn_replica_records(replica, from, to, size_max, records) : 0;
}

static int disk_settled(void *data, uint32_t shard, uint64_t lsn, struct cn_err *err)
{
    struct cn_replica *replica = replica_of(data, shard);
    return replica ? cn_replica_settled(replica, lsn, err) : missing(err, shard);
}

static void disk_refuse(void *data, uint32_t shard, const char *reason)
{
    struct cn_replica *replica = replica_of(data, shard);
    if (replica)
        cn_replica_refuse(replica, reason);
}

static int disk_copy_out(void *data, uint32_t shard, cn_host_piece piece, void *copy,
                         struct cn_err *err)
{
    struct cn_replica *replica = replica_of(data, shard);
    uint64_t lsn;
    return replica ? cn_replica_copy(replica, piece, copy, &lsn, err) : missing(err, shard);
}

static int disk_copy_begin(void *data, uint32_t shard, struct cn_err *err)
{
    struct cn_cluster_disk *disk = data;
    int rc = disk_discard(disk, shard, err);
    return rc < 0 ? rc
                  : cn_replica_copy_begin(disk->replicas, shard, &disk->entries[shard].coming, err);
}

static int disk_copy_take(void *data, uint32_t shard, const void *bytes, size_t size,
                          struct cn_err *err)
{
    struct cn_cluster_entry *entry = &((struct cn_cluster_disk *)data)->entries[shard];
    CN_ASSERT(entry->coming);
    return cn_replica_copy_take(entry->coming, bytes, size, err);
}

static int disk_copy_end(void *data, uint32_t shard, uint64_t *lsn, struct cn_err *err)
{
    struct cn_cluster_entry *entry = &((struct cn_cluster_disk *)data)->entries[shard];
    struct cn_replica *replica;
    struct cn_replica_state state;
    CN_ASSERT(entry->coming);
    int rc = cn_replica_copy_end(entry->coming, &replica, err);
    entry->coming = NULL; /* also when it failed */
    if (rc < 0)
        return rc;
    cn_replica_state(replica, &state);
    *lsn = state.have;
    return 0;
}

/* --- what replicas tell, and lanes ask ----------------------------------------------------------
 */

static void on_appended(void *data, uint32_t shard)
{
    struct cn_cluster_disk *disk = data;
    cn_host_appended(atomic_load(&disk->host), shard); /* it is open, so there is a host */
}

static void on_checkpointed(void *data, uint32_t shard, uint64_t lsn)
{
    struct cn_cluster_disk *disk = data;
    struct cn_host *host = atomic_load(&disk->host);
    if (host) /* else cn_cluster_disk_join() tells */
        cn_host_checkpointed(host, shard, lsn);
}

/* H7 */
static void on_unwritable(void *data, uint32_t shard, const struct cn_err *err)
{
    struct cn_host *host = atomic_load(&((struct cn_cluster_disk *)data)->host);
    (void)shard; /* it is in the text */
    if (host)
        cn_host_disk_failed(host, err);
}

static bool may_leave(void *data)
{
    struct cn_cluster_entry *entry = data;
    return cn_host_may_leave(atomic_load_explicit(&entry->disk->host, memory_order_relaxed),
                             entry->shard);
}

static uint64_t take_ticket(void *data)
{
    struct cn_cluster_entry *entry = data;
    return cn_host_ticket(atomic_load_explicit(&entry->disk->host, memory_order_relaxed));
}

static bool is_confirmed(void *data, uint64_t ticket)
{
    struct cn_cluster_entry *entry = data;
    return cn_host_confirmed(atomic_load_explicit(&entry->disk->host, memory_order_relaxed),
                             ticket);
}

void cn_cluster_disk_verify(struct cn_cluster_disk *disk)
{
    for (uint32_t i = 0; i < CN_REPLICA_SHARDS_MAX; i++) {
        disk->entries[i].sink.ticket = take_ticket;
        disk->entries[i].sink.confirmed = is_confirmed;
    }
}

/* --- its life -----------------------------------------------------------------------------------
 */

static int read_cluster(struct cn_cluster_disk *disk, struct cn_err *err)
{
    struct cn_disk_file *file;
    char text[CN_ENGINE_PG_ID_SIZE + 1];
    int rc = cn_disk_open(disk->files, CLUSTER_FILE, CN_DISK_READONLY, &file);
    if (rc == -ENOENT)
        return 0;
    if (rc < 0)
        return cn_err_errno(err, -rc, CLUSTER_FILE);
    int64_t size = cn_disk_read(file, text, sizeof(text), 0);
    cn_disk_close(file);
    if (size < 0)
        return cn_err_errno(err, (int)-size, CLUSTER_FILE);
    if (size != CN_ENGINE_PG_ID_SIZE || text[size - 1] != '\n')
        return cn_err_set(err, CN_ECORRUPT, CLUSTER_FILE " is not the id of a cluster");
    memcpy(disk->cluster, text, CN_ENGINE_PG_ID_SIZE - 1);
    return 0;
}

static int read_seen(struct cn_cluster_disk *disk, struct cn_err *err)
{
    struct cn_disk_file *file;
    struct cn_engine_seen *seen = &disk->seen;
    char text[SEEN_SIZE] = {0}, again[SEEN_SIZE];
    int rc = cn_disk_open(disk->files, SEEN_FILE, CN_DISK_READONLY, &file);
    if (rc == -ENOENT)
        return 0;
    if (rc < 0)
        return cn_err_errno(err, -rc, SEEN_FILE);
    int64_t size = cn_disk_read(file, text, sizeof(text) - 1, 0);
    cn_disk_close(file);
    if (size < 0)
        return cn_err_errno(err, (int)-size, SEEN_FILE);
    (void)sscanf(text, SEEN_FORMAT(SCNu64), &seen->version, &seen->life, &seen->session,
                 &seen->beat, &seen->decision);
    (void)seen_text(again, seen, strstr(text, " crc ")); /* builds before wrote none */
    return (size_t)size == strlen(again) && memcmp(text, again, (size_t)size) == 0
               ? 0
               : cn_err_set(err, CN_ECORRUPT,
                            SEEN_FILE
                            " is damaged: this disk cannot tell an engine that has gone back");
}

int cn_cluster_disk_open(struct cn_cluster_disk *disk, const struct cn_replicas_config *config,
                         struct cn_err *err)
{
    *disk = (struct cn_cluster_disk){
        .hands = {disk, disk_create, disk_write, disk_open, disk_close, disk_discard, disk_sync,
                  disk_appended, disk_records, disk_settled, disk_refuse, disk_copy_out,
                  disk_copy_begin, disk_copy_take, disk_copy_end, disk_remember, disk_tidy},
        .files = config->disk};
    for (uint32_t i = 0; i < CN_REPLICA_SHARDS_MAX; i++)
        disk->entries[i] = (struct cn_cluster_entry){
            .disk = disk, .shard = i, .sink = {.data = &disk->entries[i], .may_leave = may_leave}};
    struct cn_replicas_config own = *config;
    own.hooks.data = disk;
    own.hooks.appended = on_appended;
    own.hooks.checkpointed = on_checkpointed;
    own.hooks.unwritable = on_unwritable;
    int rc = cn_replicas_open(&own, &disk->replicas, err);
    if (rc < 0)
        return rc;
    disk->id = cn_replicas_disk(disk->replicas);
    rc = cn_replicas_life(disk->replicas, &disk->life, err);
    if (rc == 0)
        rc = read_cluster(disk, err);
    if (rc == 0)
        rc = read_seen(disk, err);
    if (rc == 0)
        cn_replicas_tidy(
            disk->replicas); /* or a disk that is full of it could not be joined with */
    if (rc < 0)
        cn_replicas_close(disk->replicas);
    return rc;
}

int cn_cluster_disk_join(struct cn_cluster_disk *disk, struct cn_host *host,
                         const struct cn_engine_pg_info *info, struct cn_err *err)
{
    char text[CN_ENGINE_PG_ID_SIZE];
    memcpy(text, info->cluster, sizeof(text) - 1);
    text[sizeof(text) - 1] = '\n';
    if (!*disk->cluster) {
        int rc = cn_disk_replace(disk->files, CLUSTER_FILE, text, sizeof(text));
        if (rc < 0)
            return cn_err_errno(err, -rc, CLUSTER_FILE);
    }
    atomic_store(&disk->host, host); /* first: what is checkpointed from now on is told */
    for (uint32_t i = 0; i < info->shard_count; i++) {
        struct cn_replica *replica = replica_of(disk, i);
        struct cn_replica_state state;
        if (!replica)
            continue;
        cn_replica_state(replica, &state);
        cn_host_found(host, i, state.have, state.checkpoint);
    }
    return 0;
}

void cn_cluster_disk_close(struct cn_cluster_disk *disk)
{
    for (uint32_t i = 0; i < CN_REPLICA_SHARDS_MAX; i++)
        if (disk->entries[i].coming)
            cn_replica_copy_abort(disk->entries[i].coming);
    cn_replicas_close(disk->replicas);
}

struct cn_store *cn_cluster_disk_store(struct cn_cluster_disk *disk, uint32_t shard)
{
    struct cn_replica *replica = replica_of(disk, shard);
    return replica ? cn_replica_store(replica) : NULL;
}

struct cn_history *cn_cluster_disk_history(struct cn_cluster_disk *disk, uint32_t shard)
{
    struct cn_replica *replica = replica_of(disk, shard);
    return replica ? cn_replica_history(replica) : NULL;
}
