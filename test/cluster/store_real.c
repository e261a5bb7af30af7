/* SPDX-License-Identifier: Apache-2.0 */
/* Real stores: a write is a row of its object's database, and a commit; what makes it durable,
 * feeds followers, takes over and copies are the replicas of the server (shard/disk.h). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/disk.h"
#include "shard/disk.h"
#include "store/database.h"
#include "store/store.h"
#include "test/cluster/store.h"
#include "test/cluster/wire.h"

/* As the lane has it open. */
struct open_shard {
    struct cn_store *store;
    struct cn_log_listener listener;
    uint32_t namespace_id;
    struct cn_database *objects[OBJECTS];
};

static struct cn_cluster_disk disk;
static struct open_shard shards[SHARDS];
static struct cn_engine_pg_info info;

static void die(const char *what, const struct cn_err *err)
{
    fprintf(stderr, "%s: %s\n", what, err->text);
    _Exit(6);
}

static bool real_open(const char *dir, uint64_t *id, uint64_t *life)
{
    struct cn_err err = {0};
    struct cn_replicas_config config = {
        .disk = cn_disk_system_new(dir), .log_live_size = 256 << 10, .segment_size = 64 << 10};
    if (!config.disk || cn_cluster_disk_open(&disk, &config, &err) < 0)
        die(dir, &err);
    *id = disk.id;
    *life = disk.life;
    return true;
}

static void real_found(struct cn_host *host, const struct cn_engine_pg_info *of)
{
    struct cn_err err = {0};
    info = *of;
    if (cn_cluster_disk_join(&disk, host, &info, &err) < 0)
        die("join", &err);
}

static void on_durable(struct cn_log_listener *listener, uint64_t lsn, int status)
{
    node_wake();
}

/* The object's database, made if it is not there. NULL: the store refuses. */
static struct cn_database *object_of(uint32_t index, uint32_t object)
{
    struct open_shard *shard = &shards[index];
    struct cn_err err = {0};
    if (!shard->store) {
        shard->store = cn_cluster_disk_store(&disk, index);
        shard->listener.on_durable = on_durable;
        cn_store_listen(shard->store, &shard->listener);
    }
    if (!shard->namespace_id &&
        cn_store_namespace(shard->store, "test/Object", &shard->namespace_id, &err) < 0)
        return NULL;
    if (shard->objects[object])
        return shard->objects[object];
    struct cn_object_key key = {.namespace_id = shard->namespace_id, .id = {(uint8_t)object}};
    struct cn_database *db;
    if (cn_database_open(shard->store, &key, NULL, &db, &err) < 0)
        die("database", &err);
    if (cn_database_exec(db,
                         "CREATE TABLE IF NOT EXISTS writes(at INTEGER PRIMARY KEY AUTOINCREMENT, "
                         "record INTEGER, padding BLOB)",
                         &err) < 0) {
        cn_database_close(db);
        return NULL;
    }
    return shard->objects[object] = db;
}

static bool real_write(uint32_t shard, uint32_t object, uint32_t record, uint64_t *lsn)
{
    struct cn_err err = {0};
    struct cn_database *db = object_of(shard, object);
    char sql[150];
    snprintf(sql, sizeof(sql), "INSERT INTO writes(record, padding) VALUES (%u, randomblob(%u))",
             record, record % 97 ? 40 : 20000);
    if (!db || cn_database_exec(db, sql, &err) < 0)
        return false;
    return cn_database_commit(db, lsn, &err) == 0;
}

/* Its writes, in their order. */
static uint32_t all_writes(uint32_t shard, uint32_t object, uint32_t *records, uint32_t max,
                           uint64_t *lsn)
{
    static const char sql[] = "SELECT record FROM writes ORDER BY at";
    struct cn_err err = {0};
    struct cn_database *db = object_of(shard, object);
    struct cn_statement *statement;
    size_t used;
    uint32_t count = 0;
    int rc = 0;
    if (!db || cn_database_prepare(db, sql, sizeof(sql) - 1, 0, &statement, &used, &err) < 0)
        return UINT32_MAX;
    while (count < max && (rc = cn_statement_step(statement, &err)) > 0)
        records[count++] = (uint32_t)cn_statement_column_int(statement, 0);
    if (rc < 0)
        die("read", &err);
    cn_statement_release(statement);
    if (cn_database_in_transaction(db)) /* its table was made just now */
        (void)cn_database_commit(db, lsn, &err);
    uint64_t last = cn_database_lsn(db);
    *lsn = last > *lsn ? last : *lsn;
    return count;
}

static bool real_read(uint32_t shard, uint32_t object, uint32_t *count, uint64_t *hash,
                      uint64_t *lsn)
{
    static uint32_t records[SHARD_OPS];
    *count = all_writes(shard, object, records, SHARD_OPS, lsn);
    for (uint32_t i = 0; i < *count && *count != UINT32_MAX; i++)
        *hash = wire_hash(*hash, records[i]);
    return *count != UINT32_MAX;
}

static uint32_t real_dump(uint32_t shard, uint32_t *records, uint32_t max, uint64_t *lsn)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < OBJECTS; i++) {
        uint32_t more = all_writes(shard, i, records + count, max - count, lsn);
        count += more == UINT32_MAX ? 0 : more;
    }
    return count;
}

static uint64_t real_durable(uint32_t shard)
{
    return cn_store_durable(shards[shard].store);
}

static void real_let_go(uint32_t index)
{
    struct open_shard *shard = &shards[index];
    for (uint32_t i = 0; i < OBJECTS; i++)
        if (shard->objects[i])
            cn_database_close(shard->objects[i]);
    if (shard->store)
        cn_store_unlisten(shard->store, &shard->listener);
    *shard = (struct open_shard){0};
}

static void real_close(void)
{
    cn_cluster_disk_close(&disk);
    cn_disk_system_free(disk.files);
}

const struct stores real_stores = {&disk.hands, real_open,    real_found,  real_write, real_read,
                                   real_dump,   real_durable, real_let_go, real_close};
