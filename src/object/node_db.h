/* SPDX-License-Identifier: Apache-2.0 */
/* object/node_db.h - what the node itself must remember of a shard: a database in its store.
 *
 * The object with the id of zeros in the namespace "$cairn", in every shard. It is written to the
 * log like every object, so it is as durable, is in backups and has a history. It
 * is opened for the time of one piece of work, on whichever thread does it.
 *
 *     restores    restores to be done when an object starts (object/restore.h)
 *
 * Threads: any; works take turns on one lock and may block for the disk, so a lane
 * leaves them to the thread pool. */
#ifndef CN_OBJECT_NODE_DB_H
#define CN_OBJECT_NODE_DB_H
#include <stddef.h>

#include "base/err.h"

struct cn_database;
struct cn_node_db;
struct cn_shards;
struct cn_store;

/* `store` and `shards`, which numbers the namespace, are borrowed and outlive it; NULL: the store
 * does. Writes nothing until there is something to say. */
int cn_node_db_open(struct cn_store *store, struct cn_shards *shards, struct cn_node_db **own,
                    struct cn_err *err);
void cn_node_db_close(struct cn_node_db *own); /* NULL is fine */

/* Runs `work` on the database as one transaction, durable when this returns 0. A negative result
 * of `work` rolls back and is returned. */
typedef int (*cn_node_db_work)(struct cn_database *db, void *data, struct cn_err *err);
int cn_node_db_run(struct cn_node_db *own, cn_node_db_work work, void *data, struct cn_err *err);
/* The same for work that only reads: if nothing was ever written it is not run, and the result
 * is 0. */
int cn_node_db_read(struct cn_node_db *own, cn_node_db_work work, void *data, struct cn_err *err);

#endif
