/* SPDX-License-Identifier: Apache-2.0 */
#include "object/node_db.h"

#include <pthread.h>

#include "base/mem.h"
#include "object/shard.h"
#include "store/catalog.h"
#include "store/database.h"
#include "store/store.h"

#define NAMESPACE "$cairn"

/* Column by column in docs/reference/data-format.md. */
static const char schema[] =
    "CREATE TABLE IF NOT EXISTS restores(namespace INTEGER NOT NULL, id BLOB NOT NULL,"
    " source_namespace INTEGER NOT NULL, source_id BLOB NOT NULL, bookmark TEXT NOT NULL,"
    " PRIMARY KEY(namespace, id));";

struct cn_node_db {
    struct cn_store *store;
    struct cn_shards *shards;
    pthread_mutex_t lock; /* held while the database is open */
    struct cn_object_key key;
    bool schema_done;
};

int cn_node_db_open(struct cn_store *store, struct cn_shards *shards, struct cn_node_db **out,
                    struct cn_err *err)
{
    uint32_t namespace_id = 0;
    int rc = cn_catalog_namespace_find(cn_store_catalog(store), NAMESPACE, sizeof(NAMESPACE) - 1,
                                       &namespace_id, err);
    if (rc < 0)
        return rc;
    struct cn_node_db *own = CN_NEW(struct cn_node_db);
    own->store = store;
    own->shards = shards;
    own->key.namespace_id = rc ? namespace_id : 0;
    pthread_mutex_init(&own->lock, NULL);
    *out = own;
    return 0;
}

void cn_node_db_close(struct cn_node_db *own)
{
    if (!own)
        return;
    pthread_mutex_destroy(&own->lock);
    cn_free(own);
}

/* With the lock held. */
static int run_locked(struct cn_node_db *own, cn_node_db_work work, void *data, uint64_t *lsn,
                      struct cn_err *err)
{
    struct cn_database *db;
    int rc = cn_database_open(own->store, &own->key, NULL, &db, err);
    if (rc < 0)
        return rc;
    if (!own->schema_done)
        rc = cn_database_exec(db, schema, err);
    if (rc == 0)
        rc = work(db, data, err);
    if (rc == 0)
        rc = cn_database_commit(db, lsn, err);
    if (rc == 0)
        own->schema_done = true;
    cn_database_close(db); /* rolls back what was not committed */
    return rc;
}

/* The first write needs the number. With the lock held. */
static int number(struct cn_node_db *own, struct cn_err *err)
{
    uint32_t id;
    bool numbered = own->shards && cn_shards_numbered(own->shards);
    int rc = numbered ? cn_shards_number(own->shards, NAMESPACE, &id, err)
                      : cn_store_namespace(own->store, NAMESPACE, &id, err);
    if (rc == 0 && numbered)
        rc = cn_store_namespace_learn(own->store, id, NAMESPACE, err);
    if (rc == 0)
        own->key.namespace_id = id;
    return rc;
}

int cn_node_db_run(struct cn_node_db *own, cn_node_db_work work, void *data, struct cn_err *err)
{
    uint64_t lsn = 0;
    int rc = 0;
    pthread_mutex_lock(&own->lock);
    if (!own->key.namespace_id)
        rc = number(own, err);
    if (rc == 0)
        rc = run_locked(own, work, data, &lsn, err);
    pthread_mutex_unlock(&own->lock);
    if (rc == 0)
        rc = cn_store_wait(own->store, lsn, err);
    return rc;
}

int cn_node_db_read(struct cn_node_db *own, cn_node_db_work work, void *data, struct cn_err *err)
{
    uint64_t lsn;
    int rc = 0;
    pthread_mutex_lock(&own->lock);
    if (own->key.namespace_id)
        rc = run_locked(own, work, data, &lsn, err);
    pthread_mutex_unlock(&own->lock);
    return rc;
}
