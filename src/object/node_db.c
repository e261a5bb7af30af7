/* SPDX-License-Identifier: Apache-2.0 */
#include "object/node_db.h"

#include <pthread.h>

#include "base/mem.h"
#include "store/catalog.h"
#include "store/database.h"
#include "store/store.h"

#define NAMESPACE "$cairn"

/* Column by column in docs/data-format.md. */
static const char schema[] =
    "CREATE TABLE IF NOT EXISTS restores(namespace INTEGER NOT NULL, id BLOB NOT NULL,"
    " source_namespace INTEGER NOT NULL, source_id BLOB NOT NULL, bookmark TEXT NOT NULL,"
    " PRIMARY KEY(namespace, id));";

struct cn_ledger {
    struct cn_store *store;
    pthread_mutex_t lock; /* held while the database is open */
    struct cn_object_key key;
    bool schema_done;
};

int cn_ledger_open(struct cn_store *store, struct cn_ledger **out, struct cn_err *err)
{
    uint32_t namespace_id = 0;
    int rc = cn_catalog_namespace_find(cn_store_catalog(store), NAMESPACE, sizeof(NAMESPACE) - 1,
                                       &namespace_id, err);
    if (rc < 0)
        return rc;
    struct cn_ledger *ledger = CN_NEW(struct cn_ledger);
    ledger->store = store;
    ledger->key.namespace_id = rc ? namespace_id : 0;
    pthread_mutex_init(&ledger->lock, NULL);
    *out = ledger;
    return 0;
}

void cn_ledger_close(struct cn_ledger *ledger)
{
    if (!ledger)
        return;
    pthread_mutex_destroy(&ledger->lock);
    cn_free(ledger);
}

/* With the lock held. */
static int run_locked(struct cn_ledger *ledger, cn_ledger_work work, void *data, uint64_t *lsn,
                      struct cn_err *err)
{
    struct cn_database *db;
    int rc = cn_database_open(ledger->store, &ledger->key, NULL, &db, err);
    if (rc < 0)
        return rc;
    if (!ledger->schema_done)
        rc = cn_database_exec(db, schema, err);
    if (rc == 0)
        rc = work(db, data, err);
    if (rc == 0)
        rc = cn_database_commit(db, lsn, err);
    if (rc == 0)
        ledger->schema_done = true;
    cn_database_close(db); /* rolls back what was not committed */
    return rc;
}

int cn_ledger_run(struct cn_ledger *ledger, cn_ledger_work work, void *data, struct cn_err *err)
{
    uint64_t lsn = 0;
    int rc = 0;
    pthread_mutex_lock(&ledger->lock);
    if (!ledger->key.namespace_id)
        rc = cn_store_namespace(ledger->store, NAMESPACE, &ledger->key.namespace_id, err);
    if (rc == 0)
        rc = run_locked(ledger, work, data, &lsn, err);
    pthread_mutex_unlock(&ledger->lock);
    if (rc == 0)
        rc = cn_store_wait(ledger->store, lsn, err);
    return rc;
}

int cn_ledger_read(struct cn_ledger *ledger, cn_ledger_work work, void *data, struct cn_err *err)
{
    uint64_t lsn;
    int rc = 0;
    pthread_mutex_lock(&ledger->lock);
    if (ledger->key.namespace_id)
        rc = run_locked(ledger, work, data, &lsn, err);
    pthread_mutex_unlock(&ledger->lock);
    return rc;
}
