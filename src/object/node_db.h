/* SPDX-License-Identifier: Apache-2.0 */
/* object/node_db.h - what the node itself must remember: a database of its own in the store.
 *
 * The object with the id of zeros in the namespace "$cairn". It is written to the
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
struct cn_ledger;
struct cn_store;

/* `store` is borrowed and outlives the ledger. Writes nothing until there is something to say. */
int cn_ledger_open(struct cn_store *store, struct cn_ledger **ledger, struct cn_err *err);
void cn_ledger_close(struct cn_ledger *ledger); /* NULL is fine */

/* Runs `work` on the database as one transaction, durable when this returns 0. A negative result
 * of `work` rolls back and is returned. */
typedef int (*cn_ledger_work)(struct cn_database *db, void *data, struct cn_err *err);
int cn_ledger_run(struct cn_ledger *ledger, cn_ledger_work work, void *data, struct cn_err *err);
/* The same for work that only reads: if nothing was ever written it is not run, and the result
 * is 0. */
int cn_ledger_read(struct cn_ledger *ledger, cn_ledger_work work, void *data, struct cn_err *err);

#endif
