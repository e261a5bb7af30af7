/* SPDX-License-Identifier: Apache-2.0 */
/* store/replica.c - the life of replicas: found, made, fed, checkpointed, promoted, demoted,
 * discarded. The rules are in the header.
 *
 * Locks, outermost first: a replica's `slow`, its `form_lock`, the lock of all; those of stores and
 * logs inside. A keeper's chore only tries for `slow`: whoever has it is about to do more than a
 * checkpoint. */
#include "store/replica.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/diag.h"
#include "base/disk.h"
#include "base/mem.h"
#include "base/rand.h"
#include "base/subdisk.h"
#include "store/catalog.h"
#include "store/checkpoint.h"
#include "store/recovery.h"
#include "store/replica_private.h"
#include "store/sqlite.h"

enum {
    IDLE_MS = 20000,       /* a boundary that was fed becomes the redo point within this time */
    REDO_PAGES_MAX = 4096, /* 16 MB in memory during a checkpoint of a follower */
    LIFE_STEP = 1 << 20,   /* header: room for increments */
    PATH_MAX_ = 64,
};

static const char name_path[] = "REPLICA", damaged_path[] = "DAMAGED",
                  aside_path[] = "shards/aside";

static uint64_t or_default(uint64_t value, uint64_t fallback)
{
    return value ? value : fallback;
}

static uint64_t now_ms(void)
{
    return cn_clock_mono_ns(cn_clock_system()) / 1000000;
}

int cn_replica_shard_check(uint32_t shard, struct cn_err *err)
{
    if (shard < CN_REPLICA_SHARDS_MAX)
        return 0;
    return cn_err_set(err, CN_EINVALID, "there is no shard %" PRIu32, shard);
}

/* ---- Folders ---- */

static void shard_folder(uint32_t shard, char path[PATH_MAX_])
{
    snprintf(path, PATH_MAX_, "shards/%04" PRIu32, shard);
}

struct cn_disk *cn_replica_disk_new(struct cn_replicas *replicas, uint32_t shard)
{
    char path[PATH_MAX_];
    shard_folder(shard, path);
    return cn_disk_sub_new(replicas->config.disk, path);
}

int cn_replica_name(struct cn_disk *disk, uint32_t shard, struct cn_err *err)
{
    char text[64];
    int size = snprintf(text, sizeof(text), "cairn replica of shard %" PRIu32 "\n", shard);
    int rc = cn_disk_replace(disk, name_path, text, (size_t)size);
    return rc < 0 ? cn_err_errno(err, -rc, "cannot write %s of shard %" PRIu32, name_path, shard)
                  : 0;
}

struct removal {
    struct cn_disk *disk;
    bool any;
};

static int remove_file(void *data, const char *path)
{
    struct removal *removal = data;
    int rc = cn_disk_unlink(removal->disk, path);
    removal->any = true;
    return rc == -ENOENT ? 0 : rc;
}

/* Folders that are empty now; those that the disk does not remove stay, and do no harm. */
static void remove_folders(struct cn_disk *disk, const char *path)
{
    struct cn_disk_entries entries;
    if (cn_disk_entries(disk, path, &entries) < 0)
        return;
    for (size_t i = 0; i < entries.count; i++) {
        char *full = path[0] ? cn_sprintf("%s/%s", path, entries.items[i].name)
                             : cn_strdup(entries.items[i].name);
        if (entries.items[i].is_dir) {
            remove_folders(disk, full);
            (void)cn_disk_unlink(disk, full); /* see above */
        }
        cn_free(full);
    }
    cn_disk_entries_fini(&entries);
}

int cn_replica_remove(struct cn_disk *disk, struct cn_err *err)
{
    struct removal removal = {.disk = disk};
    int rc = cn_disk_unlink(disk, name_path); /* P9: first, and durably */
    if (rc == 0)
        rc = cn_disk_sync_dir(disk, "");
    if (rc == 0 || rc == -ENOENT)
        rc = cn_disk_walk(disk, "", remove_file, &removal);
    /* Nothing of it may come back after a loss of power, among the files of the next one here. */
    if (rc == 0 && removal.any)
        rc = cn_disk_sync_all(disk);
    remove_folders(disk, "");
    return rc < 0 ? cn_err_errno(err, -rc, "cannot remove the files of a shard") : 0;
}

/* ---- The log of a follower ---- */

/* Opens it as it is found (P4). */
static int log_open(struct cn_replica *replica, struct cn_err *err)
{
    const struct cn_replicas_config *config = &replica->all->config;
    struct cn_recovery recovery;
    struct cn_recovery_config recovery_config = {
        .settled = true, .only_log = true, .planted = config->planted};
    int rc = cn_disk_mkdirs(replica->disk, "log");
    if (rc < 0)
        return cn_err_errno(err, -rc, "cannot make the log folder");
    rc = cn_recovery_run(&recovery_config, replica->disk, NULL, &recovery, err);
    if (rc < 0)
        return rc;
    struct cn_log_driven driven = {.budget = replica->all->log_budget};
    struct cn_log_config log_config = {
        .disk = replica->disk,
        .clock = config->clock,
        .sync = CN_LOG_OS,
        .driven = &driven,
        .segment_size = config->segment_size,
        .pending_max = UINT64_MAX,
        .live_max = UINT64_MAX, /* what its owner was allowed to write has to be taken */
        .next_lsn = recovery.next_lsn,
        .next_number = recovery.next_number,
        .last_time_ms = recovery.last_time_ms,
    };
    rc = cn_log_open(&log_config, &replica->log, err);
    for (size_t i = 0; rc == 0 && i < recovery.segment_count; i++)
        cn_log_adopt(replica->log, &recovery.segments[i]);
    atomic_store(&replica->redo_lsn, recovery.redo_lsn);
    atomic_store(&replica->boundary, recovery.boundary);
    cn_recovery_fini(&recovery);
    return rc;
}

static void log_close(struct cn_replica *replica)
{
    if (replica->log)
        cn_log_close(replica->log);
    replica->log = NULL;
}

static int log_missing(const struct cn_replica *replica, struct cn_err *err)
{
    return cn_err_set(err, CN_EREADONLY, "the log of shard %" PRIu32 " could not be opened: %s",
                      replica->shard, replica->why);
}

/* One that could not be opened again, for want of space say, is tried again by whoever needs it.
 * With `slow` held. */
static int log_need(struct cn_replica *replica, struct cn_err *err)
{
    struct cn_err own = {0};
    int rc = 0;
    pthread_rwlock_wrlock(&replica->form_lock);
    if (replica->form == CN_REPLICA_LOG && !replica->log)
        rc = log_open(replica, &own);
    if (rc < 0) {
        snprintf(replica->why, sizeof(replica->why), "%.255s", own.text);
        rc = log_missing(replica, err);
    }
    pthread_rwlock_unlock(&replica->form_lock);
    return rc;
}

/* ---- Checkpoints of a follower ---- */

int cn_replica_history_open(struct cn_replica *replica, struct cn_err *err)
{
    const struct cn_replicas_config *config = &replica->all->config;
    struct cn_history_config history = {
        .disk = replica->disk,
        .clock = config->clock,
        .retention_ms = config->retention_ms,
        .size_max = config->history_size_max,
    };
    return replica->history ? 0 : cn_history_open(&history, &replica->history, err);
}

static void tell_checkpoint(struct cn_replica *replica, uint64_t lsn)
{
    const struct cn_replica_hooks *hooks = &replica->all->config.hooks;
    atomic_store(&replica->redo_lsn, lsn + 1);
    if (hooks->checkpointed)
        hooks->checkpointed(hooks->data, replica->shard, lsn);
}

/* Files and catalog get all that the log has (P5). *boundary: where redo may start then. */
static int redo(struct cn_replica *replica, uint64_t *boundary, struct cn_err *err)
{
    struct cn_catalog *catalog;
    struct cn_recovery recovery;
    struct cn_recovery_config config = {
        .settled = true,
        .sync = true,
        .last_lsn = cn_log_durable(replica->log),
        .pages_max = REDO_PAGES_MAX,
        .planted = replica->all->config.planted,
        .cancelled = &replica->cancelled,
    };
    static const char *const folders[] = {"objects", "aside"};
    int rc = cn_sqlite_setup(err);
    for (size_t i = 0; i < CN_ARRAY_COUNT(folders) && rc == 0; i++) {
        rc = cn_disk_mkdirs(replica->disk, folders[i]);
        if (rc < 0)
            cn_err_errno(err, -rc, "cannot make the folder %s", folders[i]);
    }
    if (rc == 0)
        rc = cn_catalog_open(replica->disk, &catalog, err);
    if (rc < 0)
        return rc;
    cn_catalog_keep_small(catalog);
    rc = cn_recovery_run(&config, replica->disk, catalog, &recovery, err);
    cn_catalog_close(catalog);
    if (rc < 0)
        return rc;
    *boundary = recovery.boundary;
    cn_recovery_fini(&recovery);
    return 0;
}

/* With `slow` held, which keeps the form. */
static int log_checkpoint(struct cn_replica *replica, struct cn_err *err)
{
    uint64_t boundary = 0, fed = cn_log_fed_boundary(replica->log);
    if (fed > atomic_load(&replica->boundary))
        atomic_store(&replica->boundary, fed);
    if (atomic_load(&replica->boundary) <= atomic_load(&replica->redo_lsn))
        return 0;
    int rc = redo(replica, &boundary, err);
    if (rc < 0)
        return rc;
    /* The boundary that was fed is counted before it is written (a large feed is, in pieces): what
     * redo has read may end before it. It is there the next time. */
    if (boundary <= atomic_load(&replica->redo_lsn))
        return 0;
    rc = cn_log_sync(replica->log, boundary - 1, err); /* P2 */
    if (rc == 0)
        rc = cn_checkpoint_write(replica->disk, boundary, boundary - 1, err);
    if (rc < 0)
        return rc;
    tell_checkpoint(replica, boundary - 1);
    rc = cn_replica_history_open(replica, err);
    return rc < 0 ? rc
                  : cn_checkpoint_hand_over(replica->disk, replica->log,
                                            cn_history_callbacks(replica->history), boundary, err);
}

static bool log_checkpoint_due(struct cn_replica *replica)
{
    uint64_t boundary = cn_log_fed_boundary(replica->log), found = atomic_load(&replica->boundary);
    if (boundary < found)
        boundary = found;
    return boundary > atomic_load(&replica->redo_lsn) &&
           (cn_log_live_size(replica->log) > replica->all->config.log_live_size / 2 ||
            now_ms() - replica->checkpoint_ms > IDLE_MS);
}

static void on_unwritable(void *data, const struct cn_err *err)
{
    struct cn_replica *replica = data;
    const struct cn_replica_hooks *hooks = &replica->all->config.hooks;
    struct cn_err own = *err;
    (void)cn_err_context(&own, "shard %" PRIu32, replica->shard);
    if (hooks->unwritable)
        hooks->unwritable(hooks->data, replica->shard, &own);
}

static void on_chore(struct cn_chore *chore)
{
    struct cn_replica *replica = CN_CONTAINER_OF(chore, struct cn_replica, chore);
    struct cn_err err = {0};
    if (pthread_mutex_trylock(&replica->slow) != 0)
        return;
    if (replica->log && log_checkpoint_due(replica)) {
        int rc = log_checkpoint(replica, &err);
        replica->checkpoint_ms = now_ms();
        if (rc < 0 && rc != CN_EABORTED) /* tried again; meanwhile only the log is longer */
            cn_warn("cannot checkpoint the replica of shard %" PRIu32 ": %s", replica->shard,
                    err.text);
        if (rc == -ENOSPC || rc == -EDQUOT || rc == -EIO || rc == -EROFS)
            on_unwritable(replica, &err);
    }
    pthread_mutex_unlock(&replica->slow);
}

/* Takes `slow` from whoever has it as soon as that can be. */
static void slow_take(struct cn_replica *replica)
{
    atomic_store(&replica->cancelled, true);
    pthread_mutex_lock(&replica->slow);
    atomic_store(&replica->cancelled, false);
}

int cn_replica_checkpoint(struct cn_replica *replica, struct cn_err *err)
{
    pthread_mutex_lock(&replica->slow);
    int rc = log_need(replica, err);
    if (rc == 0)
        rc = replica->store ? cn_store_checkpoint(replica->store, err)
                            : log_checkpoint(replica, err);
    replica->checkpoint_ms = now_ms();
    pthread_mutex_unlock(&replica->slow);
    return rc;
}

/* ---- One replica ---- */

static void replica_free(struct cn_replica *replica)
{
    if (replica->all->chores)
        cn_chore_remove(replica->all->chores, &replica->chore);
    if (replica->store)
        cn_store_close(replica->store);
    log_close(replica);
    cn_history_close(replica->history);
    cn_disk_sub_free(replica->disk);
    pthread_mutex_destroy(&replica->slow);
    pthread_rwlock_destroy(&replica->form_lock);
    cn_free(replica);
}

int cn_replica_enter(struct cn_replicas *replicas, uint32_t shard, struct cn_replica **result,
                     struct cn_err *err)
{
    struct cn_replica *replica = CN_NEW(struct cn_replica);
    replica->all = replicas;
    replica->shard = shard;
    replica->disk = cn_replica_disk_new(replicas, shard);
    replica->checkpoint_ms = now_ms();
    pthread_mutex_init(&replica->slow, NULL);
    pthread_rwlock_init(&replica->form_lock, NULL);
    int rc = log_open(replica, err);
    if (replicas->chores)
        cn_chore_add(replicas->chores, &replica->chore, on_chore);
    if (rc < 0) {
        replica_free(replica);
        return rc;
    }
    pthread_mutex_lock(&replicas->lock);
    CN_ASSERT(!replicas->list[shard]);
    replicas->list[shard] = replica;
    pthread_mutex_unlock(&replicas->lock);
    *result = replica;
    return 0;
}

struct cn_replica *cn_replicas_find(struct cn_replicas *replicas, uint32_t shard)
{
    if (shard >= CN_REPLICA_SHARDS_MAX)
        return NULL;
    pthread_mutex_lock(&replicas->lock);
    struct cn_replica *replica = replicas->list[shard];
    pthread_mutex_unlock(&replicas->lock);
    return replica;
}

int cn_replicas_create(struct cn_replicas *replicas, uint32_t shard, struct cn_replica **replica,
                       struct cn_err *err)
{
    char path[PATH_MAX_];
    int rc = cn_replica_shard_check(shard, err);
    if (rc < 0)
        return rc;
    pthread_mutex_lock(&replicas->lock);
    bool taken = replicas->list[shard] || replicas->copies[shard];
    pthread_mutex_unlock(&replicas->lock);
    if (taken)
        return cn_err_set(err, CN_EEXISTS, "there is a replica of shard %" PRIu32, shard);
    shard_folder(shard, path);
    rc = cn_disk_mkdirs(replicas->config.disk, path);
    if (rc < 0)
        return cn_err_errno(err, -rc, "cannot make the folder %s", path);
    struct cn_disk *disk = cn_replica_disk_new(replicas, shard);
    rc = cn_replica_remove(disk, err); /* what is there is damaged */
    if (rc == 0)
        rc = cn_replica_name(disk, shard, err);
    cn_disk_sub_free(disk);
    return rc < 0 ? rc : cn_replica_enter(replicas, shard, replica, err);
}

/* A name that is not there yet: two of a shard in one millisecond are two. */
static void aside_folder(struct cn_replicas *replicas, uint32_t shard, char path[PATH_MAX_])
{
    char name[PATH_MAX_ + sizeof(name_path)];
    int64_t at = cn_clock_wall_ms(replicas->config.clock);
    do {
        snprintf(path, PATH_MAX_, "%s/%04" PRIu32 "-%" PRId64, aside_path, shard, at++);
        snprintf(name, sizeof(name), "%s/%s", path, name_path);
    } while (cn_disk_has(replicas->config.disk, name));
}

/* P10 */
static int set_aside(struct cn_replicas *replicas, uint32_t shard, struct cn_err *err)
{
    struct cn_disk *disk = replicas->config.disk;
    char from[PATH_MAX_], to[PATH_MAX_];
    shard_folder(shard, from);
    aside_folder(replicas, shard, to);
    int rc = cn_disk_mkdirs(disk, aside_path);
    if (rc == 0)
        rc = cn_disk_rename(disk, from, to);
    if (rc == 0)
        rc = cn_disk_sync_dir(disk, aside_path);
    if (rc == 0)
        rc = cn_disk_sync_dir(disk, "shards");
    return rc < 0 ? cn_err_errno(err, -rc, "cannot set %s aside", from) : 0;
}

void cn_replicas_tidy(struct cn_replicas *replicas)
{
    struct cn_disk_entries entries;
    int64_t now = cn_clock_wall_ms(replicas->config.clock);
    if (cn_disk_entries(replicas->config.disk, aside_path, &entries) < 0)
        return; /* there is none yet */
    for (size_t i = 0; i < entries.count; i++) {
        char path[PATH_MAX_];
        int64_t at;
        const char *name = entries.items[i].name;
        if (sscanf(name, "%*4u-%" SCNd64, &at) != 1 || now - at < replicas->config.aside_ms)
            continue;
        snprintf(path, sizeof(path), "%s/%.40s", aside_path, name);
        struct cn_disk *disk = cn_disk_sub_new(replicas->config.disk, path);
        if (cn_replica_remove(disk, NULL) == 0) /* else the next time */
            (void)cn_disk_unlink(replicas->config.disk, path);
        cn_disk_sub_free(disk);
    }
    cn_disk_entries_fini(&entries);
}

int cn_replicas_discard(struct cn_replicas *replicas, uint32_t shard, struct cn_err *err)
{
    struct cn_replica *replica = cn_replicas_find(replicas, shard);
    if (!replica)
        return cn_replica_shard_check(shard, err);
    if (replica->store)
        cn_replica_refuse(replica, "this disk has no replica of the shard any more");
    slow_take(replica);
    pthread_mutex_unlock(&replica->slow);
    pthread_mutex_lock(&replicas->lock);
    replicas->list[shard] = NULL;
    pthread_mutex_unlock(&replicas->lock);
    replica_free(replica);
    return set_aside(replicas, shard, err);
}

void cn_replica_state(struct cn_replica *replica, struct cn_replica_state *state)
{
    pthread_rwlock_rdlock(&replica->form_lock);
    struct cn_log *log = replica->store ? cn_store_log(replica->store) : replica->log;
    uint64_t fed = replica->log ? cn_log_fed_boundary(replica->log) : 0;
    uint64_t found = replica->log ? atomic_load(&replica->boundary) : 0;
    *state = (struct cn_replica_state){
        .form = replica->form,
        .have = log ? cn_log_durable(log) : 0,
        .checkpoint = atomic_load(&replica->redo_lsn) - 1,
        .boundary = fed > found ? fed : found,
        .live_bytes = log ? cn_log_live_size(log) : 0,
    };
    pthread_rwlock_unlock(&replica->form_lock);
}

int cn_replica_feed(struct cn_replica *replica, const void *bytes, size_t size, struct cn_err *err)
{
    pthread_rwlock_rdlock(&replica->form_lock);
    int rc;
    if (replica->form == CN_REPLICA_OPEN)
        rc = cn_err_set(err, CN_EINVALID, "shard %" PRIu32 " is open here and is not fed",
                        replica->shard);
    else
        rc = replica->log ? cn_log_feed(replica->log, bytes, size, err) : -EAGAIN;
    pthread_rwlock_unlock(&replica->form_lock);
    if (rc != -EAGAIN)
        return rc;
    slow_take(replica);
    rc = log_need(replica, err);
    pthread_mutex_unlock(&replica->slow);
    return rc < 0 ? rc : cn_replica_feed(replica, bytes, size, err);
}

/* ---- Changing the form ---- */

static void on_appended(void *data)
{
    struct cn_replica *replica = data;
    const struct cn_replica_hooks *hooks = &replica->all->config.hooks;
    if (hooks->appended)
        hooks->appended(hooks->data, replica->shard);
}

static void on_stall(void *data)
{
    struct cn_replica *replica = data;
    const struct cn_replica_hooks *hooks = &replica->all->config.hooks;
    hooks->stall(hooks->data, replica->shard);
}

static void on_checkpointed(void *data, uint64_t lsn)
{
    tell_checkpoint(data, lsn);
}

static int store_open(struct cn_replica *replica, const struct cn_sink *sink, struct cn_err *err)
{
    struct cn_replicas *all = replica->all;
    struct cn_store_driven driven = {
        .log = {.budget = all->log_budget,
                .appended = on_appended,
                .stall = all->config.hooks.stall ? on_stall : NULL,
                .data = replica},
        .chores = all->chores,
        .budget = &all->images_budget,
        .checkpointed = on_checkpointed,
        .unwritable = on_unwritable,
        .data = replica,
    };
    struct cn_store_config config = {
        .disk = replica->disk,
        .clock = all->config.clock,
        .sink = sink,
        .driven = &driven,
        .log_live_size = all->config.log_live_size,
        .log_live_max = all->config.log_live_max,
        .segment_size = all->config.segment_size,
        .dirty_size_max = all->config.dirty_size_max / 4,
        .open_files_max = all->config.open_files_max,
        .manual = all->config.manual,
        .planted = all->config.planted,
        .history = cn_history_callbacks(replica->history),
    };
    return cn_store_open(&config, &replica->store, err);
}

/* With `slow` held. A log that cannot be opened leaves a replica that tries again (log_need()). */
static int back_to_log(struct cn_replica *replica, struct cn_err *err)
{
    struct cn_err own = {0};
    replica->form = CN_REPLICA_LOG;
    int rc = log_open(replica, &own);
    if (rc < 0) {
        snprintf(replica->why, sizeof(replica->why), "%.255s", own.text);
        cn_error("shard %" PRIu32 " cannot be followed here: %s", replica->shard, own.text);
        if (err)
            *err = own;
    }
    return rc;
}

int cn_replica_promote(struct cn_replica *replica, uint64_t lsn, const struct cn_sink *sink,
                       struct cn_store **store, struct cn_err *err)
{
    slow_take(replica);
    int rc = log_need(replica, err);
    if (rc == 0 && replica->form == CN_REPLICA_OPEN)
        rc = cn_err_set(err, CN_EINVALID, "shard %" PRIu32 " is open already", replica->shard);
    else if (rc == 0 && cn_log_durable(replica->log) != lsn)
        rc = cn_err_set(err, CN_EINVALID,
                        "shard %" PRIu32 " has records up to %" PRIu64 " here, but %" PRIu64
                        " is the last that is settled",
                        replica->shard, cn_log_durable(replica->log), lsn);
    if (rc == 0)
        rc = cn_replica_history_open(replica, err);
    if (rc < 0)
        goto leave;
    pthread_rwlock_wrlock(&replica->form_lock);
    log_close(replica);
    rc = store_open(replica, sink, err);
    if (rc == 0) {
        replica->form = CN_REPLICA_OPEN;
        *store = replica->store;
    } else {
        (void)back_to_log(replica, NULL); /* the first reason is the one that is told */
    }
    pthread_rwlock_unlock(&replica->form_lock);
leave:
    pthread_mutex_unlock(&replica->slow);
    return rc;
}

int cn_replica_demote(struct cn_replica *replica, struct cn_err *err)
{
    int rc = 0;
    cn_replica_refuse(replica, "this node is no longer the owner of the shard"); /* whoever waits */
    slow_take(replica);
    if (replica->form == CN_REPLICA_OPEN) {
        pthread_rwlock_wrlock(&replica->form_lock);
        cn_store_close(replica->store);
        replica->store = NULL;
        rc = back_to_log(replica, err);
        pthread_rwlock_unlock(&replica->form_lock);
    }
    pthread_mutex_unlock(&replica->slow);
    return rc;
}

/* ---- OPEN ---- */

struct cn_store *cn_replica_store(struct cn_replica *replica)
{
    pthread_rwlock_rdlock(&replica->form_lock);
    struct cn_store *store = replica->store;
    pthread_rwlock_unlock(&replica->form_lock);
    return store;
}

struct cn_history *cn_replica_history(struct cn_replica *replica)
{
    pthread_rwlock_rdlock(&replica->form_lock);
    struct cn_history *history = replica->store ? replica->history : NULL;
    pthread_rwlock_unlock(&replica->form_lock);
    return history;
}

uint64_t cn_replica_appended(struct cn_replica *replica)
{
    pthread_rwlock_rdlock(&replica->form_lock);
    uint64_t lsn = replica->store ? cn_log_take_hint(cn_store_log(replica->store))
                   : replica->log ? cn_log_appended(replica->log)
                                  : 0;
    pthread_rwlock_unlock(&replica->form_lock);
    return lsn;
}

uint64_t cn_replica_records(struct cn_replica *replica, uint64_t from, uint64_t to, size_t size_max,
                            struct cn_buf *records)
{
    pthread_rwlock_rdlock(&replica->form_lock);
    struct cn_log *log = replica->store ? cn_store_log(replica->store) : replica->log;
    uint64_t last = log ? cn_log_records(log, from, to, size_max, records) : 0;
    pthread_rwlock_unlock(&replica->form_lock);
    return last;
}

int cn_replica_settled(struct cn_replica *replica, uint64_t lsn, struct cn_err *err)
{
    pthread_rwlock_rdlock(&replica->form_lock);
    int rc = replica->store
                 ? cn_log_settle(cn_store_log(replica->store), lsn, err)
                 : cn_err_set(err, CN_EINVALID, "shard %" PRIu32 " is not open", replica->shard);
    pthread_rwlock_unlock(&replica->form_lock);
    return rc;
}

void cn_replica_refuse(struct cn_replica *replica, const char *reason)
{
    pthread_rwlock_rdlock(&replica->form_lock);
    if (replica->store)
        cn_log_refuse(cn_store_log(replica->store), reason);
    pthread_rwlock_unlock(&replica->form_lock);
}

/* ---- All of them ---- */

static int lock_take(struct cn_replicas *replicas, struct cn_err *err)
{
    int rc =
        cn_disk_open(replicas->config.disk, "shards/LOCK", CN_DISK_CREATE, &replicas->lock_file);
    if (rc < 0)
        return cn_err_errno(err, -rc, "cannot open shards/LOCK");
    rc = cn_disk_lock(replicas->lock_file);
    if (rc == -EAGAIN || rc == -EWOULDBLOCK)
        return cn_err_set(err, CN_ELOCKED, "the shards are in use by another process");
    return rc < 0 ? cn_err_errno(err, -rc, "cannot lock shards/LOCK") : 0;
}

static int identity_write(struct cn_replicas *replicas, struct cn_err *err)
{
    char text[80];
    int size = snprintf(text, sizeof(text), "cairn disk %016" PRIx64 " life %" PRIu64 "\n",
                        replicas->disk_id, replicas->life);
    int rc = cn_disk_replace(replicas->config.disk, "shards/DISK", text, (size_t)size);
    return rc < 0 ? cn_err_errno(err, -rc, "cannot write shards/DISK") : 0;
}

static int identity_read(struct cn_replicas *replicas, struct cn_err *err)
{
    char text[80] = {0}, again[80];
    struct cn_disk_file *file;
    int rc = cn_disk_open(replicas->config.disk, "shards/DISK", CN_DISK_READONLY, &file);
    if (rc == -ENOENT) {
        while (replicas->disk_id == 0)
            cn_rand_secure(&replicas->disk_id, sizeof(replicas->disk_id));
        return identity_write(replicas, err);
    }
    if (rc < 0)
        return cn_err_errno(err, -rc, "cannot open shards/DISK");
    int64_t got = cn_disk_read(file, text, sizeof(text) - 1, 0);
    cn_disk_close(file);
    if (got < 0)
        return cn_err_errno(err, (int)-got, "cannot read shards/DISK");
    (void)sscanf(text, "cairn disk %" SCNx64 " life %" SCNu64, &replicas->disk_id, &replicas->life);
    snprintf(again, sizeof(again), "cairn disk %016" PRIx64 " life %" PRIu64 "\n",
             replicas->disk_id, replicas->life);
    if (replicas->disk_id == 0 || strcmp(text, again) != 0)
        return cn_err_set(err, CN_ECORRUPT, "shards/DISK is damaged");
    return 0;
}

uint64_t cn_replicas_disk(const struct cn_replicas *replicas)
{
    return replicas->disk_id;
}

int cn_replicas_life(struct cn_replicas *replicas, uint64_t *life, struct cn_err *err)
{
    pthread_mutex_lock(&replicas->lock);
    replicas->life += LIFE_STEP;
    int rc = identity_write(replicas, err);
    *life = replicas->life;
    pthread_mutex_unlock(&replicas->lock);
    return rc;
}

/* P4: not a replica any more, and not removed either. */
static int keep_damaged(struct cn_disk *disk, uint32_t shard, const struct cn_err *why,
                        struct cn_err *err)
{
    cn_error("the replica of shard %" PRIu32 " is damaged and does not count: %s", shard,
             why->text);
    int rc = cn_disk_rename(disk, name_path, damaged_path);
    if (rc == 0)
        rc = cn_disk_sync_dir(disk, "");
    return rc < 0 ? cn_err_errno(err, -rc, "cannot set a damaged shard aside") : 0;
}

static int folder_enter(struct cn_replicas *replicas, uint32_t shard, struct cn_err *err)
{
    struct cn_replica *replica;
    struct cn_err own = {0};
    struct cn_disk *disk = cn_replica_disk_new(replicas, shard);
    int rc = 0;
    if (cn_disk_has(disk, name_path)) {
        rc = cn_replica_enter(replicas, shard, &replica, &own);
        if (rc == CN_ECORRUPT)
            rc = keep_damaged(disk, shard, &own, err);
        else if (rc < 0 && err)
            *err = own;
    } else if (!cn_disk_has(disk, damaged_path)) {
        rc = cn_replica_remove(disk, err); /* P9 */
    }
    cn_disk_sub_free(disk);
    return rc;
}

static int folders_enter(struct cn_replicas *replicas, struct cn_err *err)
{
    struct cn_disk_entries entries;
    int rc = cn_disk_entries(replicas->config.disk, "shards", &entries);
    if (rc < 0)
        return cn_err_errno(err, -rc, "cannot list the folder shards");
    for (size_t i = 0; rc == 0 && i < entries.count; i++) {
        const char *name = entries.items[i].name;
        uint32_t shard;
        char again[PATH_MAX_];
        if (!entries.items[i].is_dir || sscanf(name, "%4" SCNu32, &shard) != 1 ||
            shard >= CN_REPLICA_SHARDS_MAX)
            continue;
        shard_folder(shard, again);
        if (strcmp(again + strlen("shards/"), name) == 0)
            rc = folder_enter(replicas, shard, err);
    }
    cn_disk_entries_fini(&entries);
    return rc;
}

static void config_fill(struct cn_replicas_config *config)
{
    if (!config->clock)
        config->clock = cn_clock_system();
    config->keepers = (unsigned)or_default(config->keepers, 2);
    config->aside_ms = (int64_t)or_default((uint64_t)config->aside_ms, 3600 * 1000);
    config->pending_max = or_default(config->pending_max, 256 << 20);
    config->dirty_size_max = or_default(config->dirty_size_max, 256 << 20);
    config->open_files_max = (uint32_t)or_default(config->open_files_max, 2048);
    config->log_live_size = or_default(config->log_live_size, 32 << 20);
    config->log_live_max = or_default(config->log_live_max, 1ull << 30);
    config->segment_size = or_default(config->segment_size, 4 << 20);
}

int cn_replicas_open(const struct cn_replicas_config *config, struct cn_replicas **result,
                     struct cn_err *err)
{
    struct cn_replicas *replicas = CN_NEW(struct cn_replicas);
    replicas->config = *config;
    config_fill(&replicas->config);
    pthread_mutex_init(&replicas->lock, NULL);
    replicas->log_budget = cn_log_budget_new(replicas->config.pending_max);
    replicas->images_budget.dirty_pages_max = replicas->config.dirty_size_max / CN_PAGE_SIZE;
    replicas->images_budget.open_files_max = replicas->config.open_files_max;
    if (!config->manual)
        replicas->chores = cn_chores_new(replicas->config.keepers);
    int rc = cn_disk_mkdirs(config->disk, "shards");
    if (rc < 0)
        cn_err_errno(err, -rc, "cannot make the folder shards");
    if (rc == 0)
        rc = lock_take(replicas, err);
    if (rc == 0)
        rc = identity_read(replicas, err);
    if (rc == 0)
        rc = folders_enter(replicas, err);
    if (rc < 0)
        cn_replicas_close(replicas);
    else
        *result = replicas;
    return rc;
}

void cn_replicas_close(struct cn_replicas *replicas)
{
    for (uint32_t i = 0; i < CN_REPLICA_SHARDS_MAX; i++) {
        CN_ASSERT(!replicas->copies[i]); /* aborted before */
        if (replicas->list[i])
            replica_free(replicas->list[i]);
    }
    if (replicas->chores)
        cn_chores_free(replicas->chores);
    cn_log_budget_free(replicas->log_budget);
    if (replicas->lock_file)
        cn_disk_close(replicas->lock_file);
    pthread_mutex_destroy(&replicas->lock);
    cn_free(replicas);
}
