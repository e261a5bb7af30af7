/* SPDX-License-Identifier: Apache-2.0 */
#include "fleet/cluster_backup.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/diag.h"
#include "base/disk.h"
#include "base/err.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/rand.h"
#include "fleet/backup_manifest.h"
#include "fleet/backup_shard.h"
#include "fleet/cluster.h"
#include "fleet/version_files.h"
#include "membership/registry.h"
#include "shard/backup_stream.h"
#include "shard/bodies.h"
#include "shard/host.h"
#include "store/backup.h"
#include "store/blob.h"
#include "store/replica.h"
#include "v4/depot.h"

enum { RETRY_MS = 100, STATE_TRIES = 5 };
#define BODY_PIECE ((size_t)256 << 10)

struct backup {
    struct cn_cluster *cluster;
    struct cn_disk *to;
    struct cn_backup_report *report;
    struct cn_manifest *manifest;
    struct cn_replicas *replicas; /* in `to` */
    struct cn_blobs *bodies;      /* in `to` */
    struct cn_blobs *sources;     /* bodies of all nodes */
    uint64_t body_count;
    int64_t moved_ms; /* when something last came of the shard that is being taken */
    bool fatal;       /* the last error is of the folder, or the wish of who asked: no retry */
    struct cn_err *err;
};

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000ll + now.tv_nsec / 1000000;
}

static void pause_ms(int64_t ms)
{
    struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    (void)nanosleep(&time, NULL); /* a shorter one does no harm */
}

static bool is_cancelled(struct backup *backup)
{
    return backup->report->cancelled && backup->report->cancelled(backup->report->data);
}

static int stop(struct backup *backup, int rc)
{
    backup->fatal = true;
    return rc;
}

static int cancelled(struct backup *backup)
{
    return stop(backup, cn_err_set(backup->err, CN_EABORTED, "the backup was cancelled"));
}

/* --- bodies ----------------------------------------------------------------------------------- */

static int write_body(struct backup *backup, struct cn_blob_reader *reader,
                      const struct cn_blob_id *id)
{
    struct cn_blob_writer *writer;
    struct cn_blob_id written;
    int rc = cn_blob_create_as(backup->bodies, id, &writer, backup->err);
    if (rc < 0)
        return stop(backup, rc);
    uint8_t *bytes = cn_alloc(BODY_PIECE);
    uint64_t size = cn_blob_size(reader);
    for (uint64_t at = 0; rc == 0 && at < size;) {
        int64_t got = is_cancelled(backup)
                          ? cancelled(backup)
                          : cn_blob_read(reader, bytes, BODY_PIECE, at, backup->err);
        if (got <= 0) {
            rc = got < 0 ? (int)got
                         : cn_err_set(backup->err, CN_ECORRUPT, "a body of R2 is too short");
            break;
        }
        rc = cn_blob_write(writer, bytes, (size_t)got, backup->err);
        if (rc < 0)
            stop(backup, rc);
        at += (uint64_t)got;
        backup->moved_ms = now_ms();
    }
    cn_free(bytes);
    if (rc < 0) {
        cn_blob_abandon(writer);
        return rc;
    }
    rc = cn_blob_finish(writer, &written, backup->err);
    backup->body_count += rc == 0;
    return rc < 0 ? stop(backup, rc) : 0;
}

/* 1: it is in the backup; 0: nobody has it. */
static int take_body(struct backup *backup, const struct cn_blob_id *id)
{
    struct cn_blob_reader *reader;
    if (cn_blob_is_here(backup->bodies, id))
        return 1;
    int rc = cn_blob_open(backup->sources, id, &reader, backup->err);
    if (rc < 0)
        return rc == CN_ENOTFOUND ? 0 : rc;
    rc = write_body(backup, reader, id);
    cn_blob_close(reader);
    return rc < 0 ? rc : 1;
}

/* What a disk has of the shard. That one cannot be asked does no harm: U3. */
static int take_listed(struct backup *backup, uint32_t shard, uint64_t disk)
{
    struct cn_bodies *bodies = cn_cluster_body_keeper(backup->cluster);
    struct cn_blob_id *ids = cn_alloc(CN_FRAME_IDS_MAX * sizeof(*ids)), after = {0};
    struct cn_err away;
    int64_t count;
    int rc = 0;
    do {
        count = cn_bodies_list(bodies, disk, shard, &after, ids, &away);
        for (int64_t i = 0; i < count && rc >= 0; i++)
            rc = take_body(backup, &ids[i]);
        if (count > 0)
            after = ids[count - 1];
    } while (count > 0 && rc >= 0);
    cn_free(ids);
    return rc < 0 ? rc : 0;
}

static int take_all_listed(struct backup *backup, uint32_t shard)
{
    uint64_t disks[CN_CLUSTER_NODES_MAX + 1];
    unsigned count = cn_host_linked(cn_cluster_host(backup->cluster), disks);
    disks[count++] = cn_cluster_disk_id(backup->cluster);
    int rc = 0;
    for (unsigned i = 0; i < count && rc == 0; i++)
        rc = take_listed(backup, shard, disks[i]);
    return rc;
}

/* U3 */
static int take_named(void *data, const struct cn_blob_id *id)
{
    struct backup *backup = data;
    int rc = take_body(backup, id);
    return rc == 0 ? cn_err_set(backup->err, CN_ENOTFOUND,
                                "a body of R2 that is referred to was deleted meanwhile")
                   : (rc < 0 ? rc : 0);
}

static int take_all_named(struct backup *backup, uint32_t shard)
{
    struct cn_backup_shard view;
    int rc = cn_backup_shard_open(&view, backup->to, shard, backup->manifest->shards[shard].lsn,
                                  backup->err);
    if (rc < 0)
        return rc;
    rc = cn_backup_shard_bodies(&view, take_named, backup, backup->err);
    cn_backup_shard_close(&view);
    return rc;
}

/* --- stores ----------------------------------------------------------------------------------- */

static int next_piece(struct backup *backup, uint64_t owner, const struct cn_backup_stream_ask *ask,
                      struct cn_backup_stream_piece *piece)
{
    return owner == ask->disk ? cn_backup_stream_next(cn_cluster_backup_streams(backup->cluster),
                                                      ask, piece, backup->err)
                              : cn_bodies_store(cn_cluster_body_keeper(backup->cluster), owner, ask,
                                                piece, backup->err);
}

/* What a peer has sent that is no such stream is his fault; anything else is our disk's. */
static int taken(struct backup *backup, int rc)
{
    return rc == CN_EINVALID || rc == CN_ECORRUPT || rc == CN_EVERSION ? rc : stop(backup, rc);
}

static int take_stream(struct backup *backup, uint32_t shard, uint64_t owner,
                       struct cn_replica_copy *copy, uint64_t *epoch)
{
    struct cn_backup_stream_ask ask = {.disk = cn_cluster_disk_id(backup->cluster),
                                       .shard = shard,
                                       .size = CN_BACKUP_STREAM_PIECE_MAX};
    struct cn_backup_stream_piece piece = {0};
    int rc = 0;
    cn_rand_secure(ask.id, sizeof(ask.id));
    while (rc == 0 && !piece.ended) {
        cn_buf_clear(&piece.bytes);
        rc = is_cancelled(backup) ? cancelled(backup) : next_piece(backup, owner, &ask, &piece);
        if (rc == 0 && piece.bytes.size) {
            rc = cn_replica_copy_take(copy, piece.bytes.data, piece.bytes.size, backup->err);
            if (rc < 0)
                rc = taken(backup, rc);
            ask.offset += piece.bytes.size;
            backup->moved_ms = now_ms();
        } else if (rc == 0 && now_ms() - backup->moved_ms > CN_BACKUP_PATIENCE_MS) {
            rc = cn_err_set(backup->err, CN_ETIMEOUT, "nothing comes of its store");
        }
    }
    *epoch = piece.epoch;
    cn_buf_fini(&piece.bytes);
    return rc;
}

/* Who only looks finds something to lock. */
static int put_lock(struct backup *backup, uint32_t shard)
{
    char folder[CN_BACKUP_SHARD_PATH_SIZE], path[CN_BACKUP_SHARD_PATH_SIZE + 8];
    struct cn_disk_file *file;
    cn_backup_shard_path(shard, folder);
    snprintf(path, sizeof(path), "%s/LOCK", folder);
    int rc = cn_disk_open(backup->to, path, CN_DISK_CREATE, &file);
    if (rc < 0)
        return stop(backup, cn_err_errno(backup->err, -rc, "cannot write %s", path));
    cn_disk_close(file);
    return 0;
}

static int take_store(struct backup *backup, uint32_t shard, uint64_t owner)
{
    struct cn_manifest_shard *entry = &backup->manifest->shards[shard];
    struct cn_replica_copy *copy;
    struct cn_replica *replica;
    struct cn_replica_state state;
    uint64_t epoch;
    int rc = cn_replicas_discard(backup->replicas, shard, backup->err); /* of a try before */
    if (rc == 0)
        rc = cn_replica_copy_begin(backup->replicas, shard, &copy, backup->err);
    if (rc < 0)
        return stop(backup, rc);
    rc = take_stream(backup, shard, owner, copy, &epoch);
    if (rc < 0) {
        cn_replica_copy_abort(copy);
        return rc;
    }
    rc = cn_replica_copy_end(copy, &replica, backup->err);
    if (rc < 0)
        return taken(backup, rc);
    cn_replica_state(replica, &state);
    entry->lsn = state.have;
    entry->epoch = epoch;
    if (!cn_host_name(cn_cluster_host(backup->cluster), owner, entry->node))
        snprintf(entry->node, sizeof(entry->node), "unknown");
    return put_lock(backup, shard);
}

/* --- shards ----------------------------------------------------------------------------------- */

static int try_shard(struct backup *backup, uint32_t shard)
{
    struct cn_host_view view;
    if (!cn_host_view(cn_cluster_host(backup->cluster), shard, &view) || !view.owner)
        return cn_err_set(backup->err, CN_ECLOSED, "no node answers for it");
    char name[CN_ENGINE_PG_NODE_MAX + 1] = "?";
    (void)cn_host_name(cn_cluster_host(backup->cluster), view.owner, name); /* or it is gone */
    int rc = take_all_listed(backup, shard);
    if (rc == 0)
        rc = take_store(backup, shard, view.owner);
    if (rc == 0)
        rc = take_all_named(backup, shard);
    return rc < 0 && !backup->fatal ? cn_err_context(backup->err, "node %s", name) : rc;
}

/* U2 */
static int take_shard(struct backup *backup, uint32_t shard)
{
    int rc = CN_ECLOSED;
    unsigned tries = 0;
    char told[CN_ERR_TEXT_MAX] = "";
    backup->moved_ms = now_ms();
    while (rc < 0 && !backup->fatal) {
        struct cn_err *err = backup->err;
        *err = (struct cn_err){0};
        rc = is_cancelled(backup) ? cancelled(backup) : try_shard(backup, shard);
        if (rc == 0 || backup->fatal)
            break;
        tries += rc != CN_ECLOSED; /* without an owner, or with one that gives it away: wait */
        if (tries >= CN_BACKUP_TRIES || now_ms() - backup->moved_ms > CN_BACKUP_PATIENCE_MS) {
            backup->fatal = true;
            cn_err_context(err, "shard %" PRIu32 " could not be had", shard);
        } else {
            if (strcmp(told, err->text) != 0) /* once, however often it is tried */
                cn_info("backup: shard %" PRIu32 ": %s; trying again", shard, err->text);
            memcpy(told, err->text, sizeof(told));
            pause_ms(RETRY_MS);
        }
    }
    return rc;
}

/* --- the engine ------------------------------------------------------------------------------- */

/* recall() writes, so what the statement saw was waited for (D7 of engine_pg_schema.c). */
static const char engine_state[] =
    "SELECT json_build_object('secret', c.secret, 'namespaces', (SELECT "
    "coalesce(json_agg(json_build_array(n.id, n.name) ORDER BY n.id), '[]'::json) FROM "
    "cairn.namespace n), 'documents', (SELECT coalesce(json_agg(json_build_array(d.name, "
    "d.version, d.body) ORDER BY d.name), '[]'::json) FROM cairn.document d), 'depot', (SELECT "
    "json_build_object('version', p.version, 'serial', p.serial, 'state', p.state) FROM "
    "cairn.depot p))::text FROM cairn.cluster c, LATERAL (SELECT cairn.recall('classes')) waited";

static int fetch_versions(struct backup *backup, const char *text)
{
    struct cn_version_files version_files = {cn_cluster_registry(backup->cluster), backup->to};
    struct cn_depot_state *state = cn_depot_state_read(text, strlen(text), backup->err);
    int rc = state ? 0 : backup->err->code;
    for (size_t i = 0; rc == 0 && i < state->script_count; i++) {
        const struct cn_depot_script *script = &state->scripts[i];
        for (size_t k = 0; rc == 0 && k < script->version_count; k++) {
            const struct cn_depot_version *version = &script->versions[k];
            if (is_cancelled(backup))
                rc = cancelled(backup);
            if (rc == 0 && *version->code &&
                !cn_version_files_has(&version_files, version->code, true))
                rc = cn_version_files_fetch(&version_files, version->code, true, backup->err);
            if (rc == 0 && !cn_version_files_has(&version_files, version->id, false))
                rc = cn_version_files_fetch(&version_files, version->id, false, backup->err);
        }
    }
    cn_depot_state_unref(state);
    return rc;
}

static int take_engine(struct backup *backup)
{
    int rc = CN_ENOTFOUND;
    /* A version that a deployment has removed meanwhile is not in the next state. */
    for (unsigned i = 0; rc == CN_ENOTFOUND && i < STATE_TRIES; i++) {
        struct cn_buf text = {0};
        *backup->err = (struct cn_err){0};
        rc = cn_registry_ask(cn_cluster_registry(backup->cluster), engine_state, NULL, 0, &text,
                             backup->err);
        if (rc == 0)
            rc = cn_err_set(backup->err, CN_EPROTOCOL, "the engine does not know the cluster");
        struct cn_json *json =
            rc > 0 ? cn_json_parse(cn_buf_text(&text), text.size, backup->err) : NULL;
        if (rc > 0)
            rc = json ? 0 : CN_EPROTOCOL;
        const char *state = json ? cn_json_text(cn_json_find(json, "depot"), "state") : NULL;
        if (rc == 0 && state)
            rc = fetch_versions(backup, state);
        if (rc == 0) {
            rc = cn_disk_replace(backup->to, CN_MANIFEST_CLUSTER, text.data, text.size);
            if (rc < 0)
                cn_err_errno(backup->err, -rc, "cannot write " CN_MANIFEST_CLUSTER);
        }
        cn_json_free(json);
        cn_buf_fini(&text);
    }
    return rc;
}

/* --- all of it -------------------------------------------------------------------------------- */

static void note_entry(void *data, const char *name, bool is_dir)
{
    (void)name, (void)is_dir;
    *(bool *)data = true;
}

static int open_target(struct backup *backup)
{
    bool occupied = false;
    struct cn_replicas_config config = {.disk = backup->to, .manual = true, .retention_ms = -1};
    int rc = cn_disk_list(backup->to, "", note_entry, &occupied);
    if (rc < 0)
        return cn_err_errno(backup->err, -rc, "cannot list the folder of the backup");
    if (occupied)
        return cn_err_set(backup->err, CN_EEXISTS, "the folder of the backup is not empty");
    rc = cn_manifest_begin(backup->to, backup->err);
    if (rc == 0)
        rc = cn_replicas_open(&config, &backup->replicas, backup->err);
    if (rc == 0)
        rc = cn_blobs_open_by_shard(backup->to, "blobs", &backup->bodies, backup->err);
    if (rc == 0)
        backup->sources = cn_cluster_blobs(backup->cluster);
    return rc;
}

/* What made it a disk with replicas goes: it is nobody's. */
static int close_target(struct backup *backup, int rc)
{
    if (backup->sources)
        cn_blobs_close(backup->sources);
    if (backup->bodies)
        cn_blobs_close(backup->bodies);
    if (backup->replicas)
        cn_replicas_close(backup->replicas);
    static const char *const files[] = {"shards/DISK", "shards/LOCK"};
    for (size_t i = 0; i < 2 && rc == 0; i++) {
        rc = cn_disk_unlink(backup->to, files[i]);
        if (rc < 0)
            cn_err_errno(backup->err, -rc, "cannot remove %s from the backup", files[i]);
    }
    return rc;
}

static int make(struct backup *backup)
{
    struct cn_manifest *manifest = backup->manifest;
    const struct cn_engine_pg_info *info = cn_cluster_info(backup->cluster);
    struct cn_host *host = cn_cluster_host(backup->cluster);
    struct cn_clock *clock = cn_clock_system();
    snprintf(manifest->cluster, sizeof(manifest->cluster), "%s", info->cluster);
    if (!cn_host_name(host, cn_cluster_disk_id(backup->cluster), manifest->node))
        return cn_err_set(backup->err, CN_ECLOSED, "this node is not in the cluster at the moment");
    manifest->began_ms = cn_clock_wall_ms(clock);
    manifest->shard_count = info->shard_count;
    manifest->replicas = info->replicas;
    int rc = open_target(backup);
    for (uint32_t i = 0; rc == 0 && i < info->shard_count; i++)
        rc = take_shard(backup, i);
    rc = close_target(backup, rc);
    if (rc == 0)
        rc = take_engine(backup);
    if (rc == 0)
        rc = cn_manifest_list(backup->to, manifest, backup->report->cancelled, backup->report->data,
                              backup->err);
    if (rc == 0 && !backup->report->compared_there)
        rc = cn_manifest_compare(backup->to, manifest, backup->err);
    manifest->ended_ms = cn_clock_wall_ms(clock);
    return rc < 0 ? rc : cn_manifest_write(backup->to, manifest, backup->err);
}

int cn_cluster_backup(void *cluster, struct cn_disk *to, struct cn_backup_report *report,
                      struct cn_buf *json, struct cn_err *err)
{
    struct cn_err own = {0};
    struct backup backup = {.cluster = cluster,
                            .to = to,
                            .report = report,
                            .manifest = CN_NEW(struct cn_manifest),
                            .err = &own};
    if (!cn_cluster_backup_begin(cluster)) {
        cn_free(backup.manifest);
        return cn_err_set(err, CN_ELOCKED, "this node is making a backup already");
    }
    int rc = make(&backup);
    cn_cluster_backup_end(cluster);
    if (rc == 0) {
        report->file_count = backup.manifest->file_count;
        report->bytes = backup.manifest->bytes;
        cn_buf_printf(json,
                      "{\"files\":%" PRIu64 ",\"bytes\":%" PRIu64
                      ",\"cluster\":\"%s\",\"shards\":%u,\"bodies\":%" PRIu64
                      ",\"consistency\":\"" CN_MANIFEST_CONSISTENCY "\"}",
                      report->file_count, report->bytes, backup.manifest->cluster,
                      backup.manifest->shard_count, backup.body_count);
    }
    cn_free(backup.manifest);
    if (rc < 0 && err)
        *err = own;
    return rc;
}
