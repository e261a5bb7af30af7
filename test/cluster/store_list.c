/* SPDX-License-Identifier: Apache-2.0 */
/* Stores that are lists of writes, in memory and in a file that is written whole: what a host asks
 * of a disk, and nothing else. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "test/cluster/store.h"
#include "test/cluster/wire.h"

enum { CHECKPOINT_MS = 200 };

struct record {
    uint32_t lsn, op;
};

struct store {
    bool here, open;
    uint32_t total, durable, synced;
    uint32_t op[SHARD_OPS + 1];
    uint32_t coming; /* of a copy: records so far */
    struct record half;
    uint32_t half_size;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all of them */
static struct store stores[SHARDS];
static const char *dir;
static struct cn_host *host;
static pthread_t keeper;
static bool ending, keeping;

/* --- files ------------------------------------------------------------------------------------ */

static void path_of(char *path, size_t size, const char *what, unsigned number)
{
    snprintf(path, size, "%s/%s%u", dir, what, number);
}

static bool save(const char *path, const void *bytes, size_t size)
{
    char fresh[300];
    snprintf(fresh, sizeof(fresh), "%s.tmp", path);
    int file = open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    bool good = file >= 0 && write(file, bytes, size) == (ssize_t)size && fdatasync(file) == 0;
    if (file >= 0)
        close(file);
    return good && rename(fresh, path) == 0;
}

static ssize_t load(const char *path, void *bytes, size_t size)
{
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = file < 0 ? -1 : read(file, bytes, size);
    if (file >= 0)
        close(file);
    return got;
}

static bool save_shard(unsigned index, uint32_t lsn)
{
    char path[300];
    path_of(path, sizeof(path), "shard", index);
    stores[index].op[0] = lsn;
    return save(path, stores[index].op, (lsn + 1) * sizeof(uint32_t));
}

/* C6: what the engine has. */
static void *keep(void *data)
{
    for (;;) {
        usleep(CHECKPOINT_MS * 1000);
        pthread_mutex_lock(&lock);
        if (ending)
            break;
        for (unsigned i = 0; i < SHARDS; i++) {
            struct store *store = &stores[i];
            if (!store->here || store->durable == store->synced || !save_shard(i, store->durable))
                continue;
            store->synced = store->durable;
            cn_host_checkpointed(host, i, store->synced);
        }
        pthread_mutex_unlock(&lock);
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

static bool list_open(const char *where, uint64_t *disk, uint64_t *life)
{
    char path[300];
    uint64_t identity[2] = {0, 0};
    dir = where;
    path_of(path, sizeof(path), "disk", 0);
    if (load(path, identity, sizeof(identity)) != sizeof(identity))
        return false; /* the test makes it */
    identity[1]++;
    *disk = identity[0];
    *life = identity[1] << 20;
    return save(path, identity, sizeof(identity));
}

static void list_found(struct cn_host *of, const struct cn_engine_pg_info *info)
{
    char path[300];
    host = of;
    for (unsigned i = 0; i < SHARDS; i++) {
        struct store *store = &stores[i];
        path_of(path, sizeof(path), "shard", i);
        if (load(path, store->op, sizeof(store->op)) < 4)
            continue;
        store->here = true;
        store->total = store->durable = store->synced = store->op[0];
        cn_host_found(host, i, store->total, store->total);
    }
    keeping = !getenv("NO_CHECKPOINTS") && pthread_create(&keeper, NULL, keep, NULL) == 0;
}

static void list_close(void)
{
    pthread_mutex_lock(&lock);
    ending = true;
    pthread_mutex_unlock(&lock);
    if (keeping)
        pthread_join(keeper, NULL);
}

/* --- what the host wants ---------------------------------------------------------------------- */

static int broken(struct cn_err *err, const char *what)
{
    return cn_err_set(err, CN_ECORRUPT, "%s", what);
}

static int hand_discard(void *data, uint32_t shard, struct cn_err *err)
{
    char path[300];
    path_of(path, sizeof(path), "shard", shard);
    pthread_mutex_lock(&lock);
    unlink(path);
    memset(&stores[shard], 0, sizeof(stores[shard]));
    pthread_mutex_unlock(&lock);
    return 0;
}

static int hand_create(void *data, uint32_t shard, struct cn_err *err)
{
    hand_discard(data, shard, err);
    pthread_mutex_lock(&lock);
    stores[shard].here = true;
    pthread_mutex_unlock(&lock);
    return 0;
}

static int hand_write(void *data, uint32_t shard, const void *records, size_t size,
                      struct cn_err *err)
{
    const struct record *all = records;
    struct store *store = &stores[shard];
    int rc = 0;
    pthread_mutex_lock(&lock);
    if (size % sizeof(*all) || !store->here || store->open)
        rc = broken(err, "no records, or for no store");
    for (size_t i = 0; i < size / sizeof(*all) && rc == 0; i++) {
        if (all[i].lsn <= store->total)
            continue;
        if (all[i].lsn != store->total + 1 || all[i].lsn > SHARD_OPS)
            rc = broken(err, "a gap");
        else
            store->op[++store->total] = all[i].op;
    }
    store->durable = store->total;
    pthread_mutex_unlock(&lock);
    return rc;
}

static int hand_open(void *data, uint32_t shard, uint64_t lsn, struct cn_err *err)
{
    struct store *store = &stores[shard];
    pthread_mutex_lock(&lock);
    int rc = store->here && store->total == lsn && !store->open ? 0 : broken(err, "open: not that");
    store->open = true;
    pthread_mutex_unlock(&lock);
    return rc;
}

static int hand_close(void *data, uint32_t shard, struct cn_err *err)
{
    struct store *store = &stores[shard];
    pthread_mutex_lock(&lock);
    int rc = store->open ? 0 : broken(err, "close: it is not open");
    store->open = false;
    store->total = store->durable; /* K2 */
    pthread_mutex_unlock(&lock);
    return rc;
}

static uint64_t hand_appended(void *data, uint32_t shard)
{
    pthread_mutex_lock(&lock);
    uint64_t total = stores[shard].total;
    pthread_mutex_unlock(&lock);
    return total;
}

static uint64_t hand_records(void *data, uint32_t shard, uint64_t from, uint64_t to, size_t max,
                             struct cn_buf *out)
{
    struct store *store = &stores[shard];
    uint64_t last = 0;
    size_t size = 0;
    pthread_mutex_lock(&lock);
    for (uint64_t lsn = from; lsn <= to && lsn <= store->total && store->open; lsn++) {
        struct record record = {(uint32_t)lsn, store->op[lsn]};
        if (last && size + sizeof(record) > max)
            break;
        cn_buf_append(out, &record, sizeof(record));
        size += sizeof(record);
        last = lsn;
    }
    pthread_mutex_unlock(&lock);
    return last;
}

static int hand_settled(void *data, uint32_t shard, uint64_t lsn, struct cn_err *err)
{
    struct store *store = &stores[shard];
    pthread_mutex_lock(&lock);
    int rc =
        store->open && lsn <= store->total && lsn > store->durable ? 0 : broken(err, "settled: H3");
    store->durable = (uint32_t)lsn;
    pthread_mutex_unlock(&lock);
    node_wake();
    return rc;
}

static void hand_refuse(void *data, uint32_t shard, const char *reason)
{
}

static int hand_copy_out(void *data, uint32_t shard, cn_host_piece piece, void *copy,
                         struct cn_err *err)
{
    static uint32_t all[SHARDS][SHARD_OPS + 1];
    struct store *store = &stores[shard];
    pthread_mutex_lock(&lock);
    uint32_t count = store->durable;
    memcpy(all[shard], store->op, (count + 1) * sizeof(uint32_t));
    pthread_mutex_unlock(&lock);
    struct record first = {count, 0};
    int rc = piece(copy, &first, sizeof(first));
    for (uint32_t i = 1; i <= count && rc == 0; i++) {
        struct record record = {i, all[shard][i]};
        rc = piece(copy, &record, 5); /* cut anywhere */
        if (rc == 0)
            rc = piece(copy, (char *)&record + 5, sizeof(record) - 5);
    }
    return rc;
}

static int hand_copy_begin(void *data, uint32_t shard, struct cn_err *err)
{
    return hand_discard(data, shard, err);
}

/* op[0] is how many there will be; before that, none. */
static int hand_copy_take(void *data, uint32_t shard, const void *bytes, size_t size,
                          struct cn_err *err)
{
    struct store *store = &stores[shard];
    int rc = 0;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < size && rc == 0; i++) {
        ((uint8_t *)&store->half)[store->half_size++] = ((const uint8_t *)bytes)[i];
        if (store->half_size < sizeof(store->half))
            continue;
        store->half_size = 0;
        if (store->coming == 0)
            store->op[0] = store->half.lsn;
        else if (store->half.lsn != store->coming || store->half.lsn > SHARD_OPS)
            rc = cn_err_set(err, CN_EINVALID, "no copy");
        else
            store->op[store->coming] = store->half.op;
        store->coming++;
    }
    pthread_mutex_unlock(&lock);
    return rc;
}

static int hand_copy_end(void *data, uint32_t shard, uint64_t *lsn, struct cn_err *err)
{
    struct store *store = &stores[shard];
    int rc = 0;
    pthread_mutex_lock(&lock);
    if (store->coming == 0 || store->coming - 1 != store->op[0] || store->half_size) {
        memset(store, 0, sizeof(*store));
        rc = cn_err_set(err, CN_EINVALID, "not the whole copy");
    } else {
        store->total = store->durable = store->synced = store->op[0];
        store->coming = 0;
        store->here = true;
        *lsn = store->total;
        rc = save_shard(shard, store->total) ? 0 : broken(err, "cannot be saved");
    }
    pthread_mutex_unlock(&lock);
    return rc;
}

static int hand_sync(void *data, uint32_t shard, struct cn_err *err)
{
    return 0; /* what it has is on the disk already */
}

static const struct cn_host_disk hands = {
    NULL,         hand_create,   hand_write,      hand_open,      hand_close,
    hand_discard, hand_sync,     hand_appended,   hand_records,   hand_settled,
    hand_refuse,  hand_copy_out, hand_copy_begin, hand_copy_take, hand_copy_end,
    NULL,         NULL};

/* --- the lane --------------------------------------------------------------------------------- */

static bool list_write(uint32_t shard, uint32_t object, uint32_t record, uint64_t *lsn)
{
    struct store *store = &stores[shard];
    pthread_mutex_lock(&lock);
    bool room = store->open && store->total < SHARD_OPS;
    if (room)
        store->op[++store->total] = record;
    *lsn = store->total;
    pthread_mutex_unlock(&lock);
    if (room)
        cn_host_appended(host, shard);
    return room;
}

static bool list_read(uint32_t shard, uint32_t object, uint32_t *count, uint64_t *hash,
                      uint64_t *lsn)
{
    const struct store *store = &stores[shard];
    pthread_mutex_lock(&lock);
    for (uint32_t i = 1; i <= store->total; i++)
        if (wire_object(store->op[i]) == object) {
            ++*count;
            *hash = wire_hash(*hash, store->op[i]);
        }
    *lsn = store->total;
    pthread_mutex_unlock(&lock);
    return true;
}

static uint32_t list_dump(uint32_t shard, uint32_t *records, uint32_t max, uint64_t *lsn)
{
    struct store *store = &stores[shard];
    pthread_mutex_lock(&lock);
    uint32_t count = store->total < max ? store->total : max;
    memcpy(records, &store->op[1], count * sizeof(uint32_t));
    *lsn = store->total;
    pthread_mutex_unlock(&lock);
    return count;
}

static uint64_t list_durable(uint32_t shard)
{
    pthread_mutex_lock(&lock);
    uint64_t durable = stores[shard].durable;
    pthread_mutex_unlock(&lock);
    return durable;
}

static void list_let_go(uint32_t shard)
{
}

const struct stores list_stores = {&hands,    list_open,    list_found,  list_write, list_read,
                                   list_dump, list_durable, list_let_go, list_close};
