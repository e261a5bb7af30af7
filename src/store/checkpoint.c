/* SPDX-License-Identifier: Apache-2.0 */
/* store/checkpoint.c - the keeper's work.
 *
 * A checkpoint:
 *   1  sets the boundary B to the last LSN appended, with no commit half way (commit_gate);
 *      from here on the first change of a page is logged whole (record.h, R7)
 *   2  writes back every image that is dirty, then syncs every file written
 *   3  flushes the catalog; a driven store syncs its log up to B, which nothing else does
 *   4  replaces log/checkpoint: recovery starts at B + 1
 *   5  hands files set aside up to B, and segments that end by B, to history or removes them
 *
 *   6  of a driven store: appends a mark unless something has been appended since 1, so that
 *      others' redo can start behind B too (record.h, R9)
 *
 * K1  Step 4 happens only after 2 and 3 succeeded; step 5 only after 4 is durable.
 * K2  A full disk delays a checkpoint and refuses commits; any other failure stops
 *     writes for good (cn_log_fail). Nothing is retried as if it had not failed.
 * K3  Steps repeated after a crash do no harm: files set aside are found by name, and
 *     segments below redo_lsn are handed over again.
 * K4  Damage of one file set aside is a line in the log, not the end of handing over.
 * K5  Whoever drives a store is told when its disk takes nothing any more, as soon as it is found
 *     and whether anybody writes or not: what refuses writes elsewhere ends a node (shard/host.h,
 *     H7). */
#include "store/checkpoint.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/cond.h"
#include "base/crc32c.h"
#include "base/diag.h"
#include "base/mem.h"
#include "store/catalog.h"
#include "store/chores.h"
#include "store/image.h"
#include "store/log.h"
#include "store/store.h"

enum {
    LOOK_MS = 200,   /* how often the size of the log is looked at */
    IDLE_MS = 20000, /* a checkpoint at least this often if there is something to write */
    CHECKPOINT_VERSION = 1,
};

static const char checkpoint_path[] = "log/checkpoint";

struct cn_keeper {
    struct cn_keeper_config config;
    pthread_mutex_t lock; /* guards down to the blank line */
    pthread_cond_t wanted, finished;
    bool woken, stopping;
    unsigned held;        /* checkpoints wait */
    bool running;         /* one may be going on */
    uint64_t asked, done; /* checkpoints: asked for, finished (also in failure) */
    struct cn_err last;   /* result of the last one asked for */
    uint64_t redo_lsn;
    uint64_t count;

    uint64_t last_ms;       /* keeper: when the last checkpoint ended */
    uint64_t last_boundary; /* keeper */
    uint64_t mark_lsn;      /* keeper: of the last mark */
    pthread_t thread;
    struct cn_chore chore; /* in place of it */
};

/* ---- The checkpoint file ---- */

static uint32_t checkpoint_crc(const struct cn_checkpoint *checkpoint)
{
    const size_t start = offsetof(struct cn_checkpoint, version);
    return cn_crc32c(0, (const uint8_t *)checkpoint + start, sizeof(*checkpoint) - start);
}

int cn_checkpoint_read(struct cn_disk *disk, struct cn_checkpoint *checkpoint, struct cn_err *err)
{
    struct cn_disk_file *file;
    int rc = cn_disk_open(disk, checkpoint_path, CN_DISK_READONLY, &file);
    if (rc == -ENOENT)
        return 0;
    if (rc < 0)
        return cn_err_errno(err, -rc, "cannot open %s", checkpoint_path);
    int64_t got = cn_disk_read(file, checkpoint, sizeof(*checkpoint), 0);
    cn_disk_close(file);
    if (got < 0)
        return cn_err_errno(err, (int)-got, "cannot read %s", checkpoint_path);
    if (got != sizeof(*checkpoint) || checkpoint->magic != CN_CHECKPOINT_MAGIC ||
        checkpoint->crc != checkpoint_crc(checkpoint))
        return cn_err_set(err, CN_ECORRUPT, "%s is damaged", checkpoint_path);
    if (checkpoint->version > CHECKPOINT_VERSION)
        return cn_err_set(err, CN_EVERSION, "%s was written by a newer version", checkpoint_path);
    return 1;
}

int cn_checkpoint_write(struct cn_disk *disk, uint64_t redo_lsn, uint64_t durable_lsn,
                        struct cn_err *err)
{
    struct cn_checkpoint checkpoint = {
        .magic = CN_CHECKPOINT_MAGIC,
        .version = CHECKPOINT_VERSION,
        .redo_lsn = redo_lsn,
        .durable_lsn = durable_lsn,
    };
    checkpoint.crc = checkpoint_crc(&checkpoint);
    int rc = cn_disk_replace(disk, checkpoint_path, &checkpoint, sizeof(checkpoint));
    return rc < 0 ? cn_err_errno(err, -rc, "cannot write %s", checkpoint_path) : 0;
}

/* ---- The past is handed over ---- */

struct aside_walk {
    uint64_t redo_lsn;
    char (*names)[CN_IMAGE_PATH_MAX];
    size_t count, capacity;
};

static void aside_collect(void *data, const char *name, bool is_dir)
{
    struct aside_walk *walk = data;
    struct cn_object_key key;
    uint64_t lsn;
    if (is_dir || !cn_image_aside_parse(name, &key, &lsn) || lsn >= walk->redo_lsn)
        return;
    CN_GROW(walk->names, walk->count, walk->capacity);
    snprintf(walk->names[walk->count++], CN_IMAGE_PATH_MAX, "%s", name);
}

/* K4: what is damaged cannot become history, and must not keep the log from being released: it is
 * kept under another name, and moments before the reset are refused. */
static int aside_give_up(struct cn_disk *disk, const char *path, const struct cn_err *why)
{
    char kept[CN_IMAGE_PATH_MAX + 16];
    snprintf(kept, sizeof(kept), "%s.damaged", path);
    cn_warn("a database that was taken away does not come into history: %s; kept as %s",
            why ? why->text : "it is damaged", kept);
    return cn_disk_rename(disk, path, kept);
}

/* Files set aside by resets that recovery no longer sees. */
static int aside_hand_over(struct cn_disk *disk, const struct cn_store_history *history,
                           uint64_t redo_lsn, struct cn_err *err)
{
    struct aside_walk walk = {.redo_lsn = redo_lsn};
    int rc = cn_disk_list(disk, "aside", aside_collect, &walk);
    if (rc < 0)
        cn_err_errno(err, -rc, "cannot list the folder aside");
    for (size_t i = 0; i < walk.count && rc == 0; i++) {
        struct cn_object_key key;
        uint64_t lsn;
        char path[CN_IMAGE_PATH_MAX];
        (void)cn_image_aside_parse(walk.names[i], &key, &lsn); /* parsed before */
        cn_image_aside_path(&key, lsn, path);
        if (history)
            rc = history->set_aside(history->data, &key, lsn, path, err);
        if (rc == CN_ECORRUPT) {
            rc = aside_give_up(disk, path, err);
            continue;
        }
        if (rc < 0)
            break;
        rc = cn_disk_unlink(disk, path);
        if (rc == -ENOENT)
            rc = 0; /* taken */
        if (rc < 0)
            cn_err_errno(err, -rc, "cannot remove %s", path);
    }
    cn_free(walk.names);
    return rc;
}

static int segments_hand_over(struct cn_log *log, const struct cn_store_history *history,
                              uint64_t redo_lsn, struct cn_err *err)
{
    struct cn_segment_info segment;
    while (cn_log_segments_before(log, redo_lsn, &segment, 1) == 1) {
        int rc = 0;
        if (history) {
            char path[CN_SEGMENT_PATH_MAX];
            cn_segment_path(segment.number, path);
            rc = history->segment(history->data, path, &segment, err);
        }
        if (rc == 0)
            rc = cn_log_release(log, segment.number, err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

int cn_checkpoint_hand_over(struct cn_disk *disk, struct cn_log *log,
                            const struct cn_store_history *history, uint64_t redo_lsn,
                            struct cn_err *err)
{
    int rc = aside_hand_over(disk, history, redo_lsn, err);
    return rc < 0 ? rc : segments_hand_over(log, history, redo_lsn, err);
}

/* ---- A checkpoint ---- */

/* Steps 1 to 4. */
static int checkpoint_take(struct cn_keeper *keeper, struct cn_err *err)
{
    struct cn_log *log = keeper->config.log;
    struct cn_images *images = keeper->config.images;
    if (cn_log_failed(log, err))
        return CN_EREADONLY; /* what a failed sync has dropped must not be called written */
    pthread_rwlock_wrlock(&images->commit_gate);
    uint64_t boundary = cn_log_checkpoint_start(log);
    pthread_rwlock_unlock(&images->commit_gate);
    keeper->last_boundary = boundary;

    int rc = cn_images_write_back(images, 0, err);
    if (rc == 0)
        rc = cn_images_sync(images, err);
    if (rc == 0)
        rc = cn_catalog_flush(keeper->config.catalog, log, err);
    if (rc == 0)
        rc = cn_log_wait(log, boundary, err);
    uint64_t reached = keeper->config.trust_os ? 0 : cn_log_durable(log);
    if (rc == 0 && keeper->config.driven) {
        rc = cn_log_sync(log, boundary, err);
        reached = boundary;
    }
    if (rc == 0)
        rc = cn_checkpoint_write(keeper->config.disk, boundary + 1, reached, err);
    if (rc < 0)
        return rc;
    pthread_mutex_lock(&keeper->lock);
    keeper->redo_lsn = boundary + 1;
    keeper->count++;
    pthread_mutex_unlock(&keeper->lock);
    return 0;
}

/* Step 6. One that cannot be appended is missed only by the size of others' logs. */
static void mark(struct cn_keeper *keeper)
{
    struct cn_log *log = keeper->config.log;
    struct cn_log_entry entry = {.kind = CN_RECORD_MARK, .boundary = keeper->last_boundary};
    int64_t time_ms;
    if (cn_log_appended(log) == keeper->last_boundary && keeper->last_boundary > 0)
        (void)cn_log_append(log, &entry, &keeper->mark_lsn, &time_ms, NULL);
}

static bool out_of_space(int rc)
{
    return rc == -ENOSPC || rc == -EDQUOT;
}

static int checkpoint_run(struct cn_keeper *keeper, struct cn_err *err)
{
    struct cn_err own = {0};
    int rc = checkpoint_take(keeper, &own);
    if (rc < 0 && !out_of_space(rc) && !cn_log_failed(keeper->config.log, NULL))
        cn_log_fail(keeper->config.log, own.text); /* K2 */
    if (rc == 0) {
        const struct cn_store_driven *driven = keeper->config.driven;
        if (driven)
            mark(keeper);
        if (driven && driven->checkpointed)
            driven->checkpointed(driven->data, keeper->last_boundary);
        rc = cn_checkpoint_hand_over(keeper->config.disk, keeper->config.log,
                                     keeper->config.history, keeper->last_boundary + 1, &own);
        if (rc < 0) /* only delays: the files are still there */
            cn_warn("cannot hand over what the log no longer needs: %s", own.text);
    }
    if (rc < 0 && err)
        *err = own;
    return rc;
}

/* ---- The thread ---- */

static uint64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static bool checkpoint_due(struct cn_keeper *keeper)
{
    uint64_t appended = cn_log_appended(keeper->config.log);
    if (appended == keeper->last_boundary ||
        (appended == keeper->mark_lsn && appended == keeper->last_boundary + 1))
        return false; /* nothing new; what can be released was */
    return cn_log_live_size(keeper->config.log) > keeper->config.live_size / 2 ||
           now_ms() - keeper->last_ms > IDLE_MS;
}

static void write_back(struct cn_keeper *keeper)
{
    struct cn_images *images = keeper->config.images;
    uint64_t dirty = atomic_load(&images->dirty_pages);
    uint64_t limit = keeper->config.dirty_pages_max / 2;
    if (cn_images_over_budget(images) && limit > dirty / 2)
        limit = dirty / 2; /* what all stores have together is too much: each writes half */
    /* After a full disk all is written, however little it is: nothing else tells that there is
     * space again. */
    if (atomic_load(&keeper->config.images->no_space))
        limit = 0;
    else if (!limit)
        limit = 1;
    /* A failure has stopped the store or, on a full disk, is tried again. */
    (void)cn_images_write_back(keeper->config.images, limit, NULL);
}

static bool must_write_back(struct cn_keeper *keeper)
{
    struct cn_images *images = keeper->config.images;
    uint64_t dirty = atomic_load(&images->dirty_pages);
    return dirty > keeper->config.dirty_pages_max || atomic_load(&images->no_space) ||
           (dirty > 0 && cn_images_over_budget(images));
}

/* K5: `rc` is what became of a checkpoint. */
static void tell_unwritable(struct cn_keeper *keeper, int rc, struct cn_err *err)
{
    const struct cn_store_driven *driven = keeper->config.driven;
    cn_log_retry_space(keeper->config.log);
    bool full = out_of_space(rc);
    if (!full && atomic_load(&keeper->config.images->no_space))
        full = cn_err_set(err, -ENOSPC, "no space to write database files") < 0;
    if ((full || cn_log_unwritable(keeper->config.log, err)) && driven->unwritable)
        driven->unwritable(driven->data, err);
}

/* Does what is due. Called and returns with the lock held. */
static void keeper_work(struct cn_keeper *keeper)
{
    int rc = 0;
    uint64_t asked = keeper->asked;
    keeper->woken = false;
    bool wanted = asked != keeper->done && !keeper->held;
    bool may = keeper->running = !keeper->held;
    pthread_mutex_unlock(&keeper->lock);

    struct cn_err err = {0};
    if (wanted || (may && checkpoint_due(keeper))) {
        rc = checkpoint_run(keeper, &err);
        keeper->last_ms = now_ms();
    } else if (must_write_back(keeper)) {
        write_back(keeper);
    } else if (atomic_load(&keeper->config.images->has_large)) {
        (void)cn_images_write_back_large(keeper->config.images, NULL);
    }
    struct cn_err own = err;
    if (keeper->config.driven)
        tell_unwritable(keeper, rc, &own);
    pthread_mutex_lock(&keeper->lock);
    keeper->running = false;
    if (wanted) {
        keeper->done = asked;
        keeper->last = err;
    }
    pthread_cond_broadcast(&keeper->finished);
}

static void on_chore(struct cn_chore *chore)
{
    struct cn_keeper *keeper = CN_CONTAINER_OF(chore, struct cn_keeper, chore);
    pthread_mutex_lock(&keeper->lock);
    do
        keeper_work(keeper);
    while ((keeper->asked != keeper->done && !keeper->held) || keeper->woken);
    pthread_mutex_unlock(&keeper->lock);
}

static void *keeper_run(void *arg)
{
    struct cn_keeper *keeper = arg;
    pthread_mutex_lock(&keeper->lock);
    for (;;) {
        if ((keeper->asked == keeper->done || keeper->held) && !keeper->woken && !keeper->stopping)
            (void)cn_cond_wait_ms(&keeper->wanted, &keeper->lock, LOOK_MS);
        if (keeper->stopping && keeper->asked == keeper->done)
            break;
        keeper_work(keeper);
    }
    pthread_mutex_unlock(&keeper->lock);
    return NULL;
}

/* Something changed that it waits for. With the lock held. */
static void keeper_call(struct cn_keeper *keeper)
{
    if (keeper->config.driven && !keeper->config.manual)
        cn_chore_wake(keeper->config.driven->chores, &keeper->chore);
    else
        pthread_cond_signal(&keeper->wanted);
}

/* ---- Face ---- */

struct cn_keeper *cn_keeper_new(const struct cn_keeper_config *config)
{
    struct cn_keeper *keeper = CN_NEW(struct cn_keeper);
    keeper->config = *config;
    keeper->redo_lsn = config->redo_lsn;
    keeper->last_boundary = config->redo_lsn - 1;
    keeper->last_ms = now_ms();
    pthread_mutex_init(&keeper->lock, NULL);
    cn_cond_init(&keeper->wanted);
    pthread_cond_init(&keeper->finished, NULL);
    if (!config->manual && config->driven) {
        cn_chore_add(config->driven->chores, &keeper->chore, on_chore);
    } else if (!config->manual) {
        if (pthread_create(&keeper->thread, NULL, keeper_run, keeper) != 0)
            cn_assert_fail("the keeper's thread starts", __FILE__, __LINE__);
        (void)pthread_setname_np(keeper->thread, "cairn-keep"); /* only for those who look */
    }
    return keeper;
}

void cn_keeper_free(struct cn_keeper *keeper, bool checkpoint)
{
    struct cn_err err = {0};
    if (checkpoint && cn_keeper_checkpoint(keeper, &err) < 0)
        cn_warn("the last checkpoint failed, the next start will recover: %s", err.text);
    if (!keeper->config.manual && keeper->config.driven) {
        cn_chore_remove(keeper->config.driven->chores, &keeper->chore);
    } else if (!keeper->config.manual) {
        pthread_mutex_lock(&keeper->lock);
        keeper->stopping = true;
        pthread_cond_signal(&keeper->wanted);
        pthread_mutex_unlock(&keeper->lock);
        pthread_join(keeper->thread, NULL);
    }
    pthread_mutex_destroy(&keeper->lock);
    pthread_cond_destroy(&keeper->wanted);
    pthread_cond_destroy(&keeper->finished);
    cn_free(keeper);
}

void cn_keeper_wake(struct cn_keeper *keeper)
{
    pthread_mutex_lock(&keeper->lock);
    keeper->woken = true;
    keeper_call(keeper);
    pthread_mutex_unlock(&keeper->lock);
}

int cn_keeper_checkpoint(struct cn_keeper *keeper, struct cn_err *err)
{
    if (keeper->config.manual)
        return checkpoint_run(keeper, err);
    pthread_mutex_lock(&keeper->lock);
    uint64_t mine = ++keeper->asked;
    keeper_call(keeper);
    while (keeper->done < mine)
        pthread_cond_wait(&keeper->finished, &keeper->lock);
    int rc = keeper->last.code;
    if (rc < 0 && err)
        *err = keeper->last;
    pthread_mutex_unlock(&keeper->lock);
    return rc;
}

void cn_keeper_hold(struct cn_keeper *keeper)
{
    pthread_mutex_lock(&keeper->lock);
    keeper->held++;
    while (keeper->running)
        pthread_cond_wait(&keeper->finished, &keeper->lock);
    pthread_mutex_unlock(&keeper->lock);
}

void cn_keeper_release(struct cn_keeper *keeper)
{
    pthread_mutex_lock(&keeper->lock);
    CN_ASSERT(keeper->held > 0);
    keeper->held--;
    keeper_call(keeper);
    pthread_mutex_unlock(&keeper->lock);
}

uint64_t cn_keeper_redo_lsn(struct cn_keeper *keeper)
{
    pthread_mutex_lock(&keeper->lock);
    uint64_t lsn = keeper->redo_lsn;
    pthread_mutex_unlock(&keeper->lock);
    return lsn;
}

uint64_t cn_keeper_count(struct cn_keeper *keeper)
{
    pthread_mutex_lock(&keeper->lock);
    uint64_t count = keeper->count;
    pthread_mutex_unlock(&keeper->lock);
    return count;
}
