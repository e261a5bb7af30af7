/* SPDX-License-Identifier: Apache-2.0 */
/* server/offline.h - a data directory opened by a command while no server uses it.
 *
 * Ownership: the struct owns what it points to. */
#ifndef CN_SERVER_OFFLINE_H
#define CN_SERVER_OFFLINE_H
#include <stdbool.h>

#include "base/err.h"

struct cn_disk;
struct cn_history;
struct cn_shards;
struct cn_store;

struct cn_offline {
    struct cn_disk *real;    /* the directory itself */
    struct cn_disk *overlay; /* what is opened if nothing may change, else NULL */
    struct cn_history *history;
    struct cn_store *store;
    struct cn_shards *shards;
};

/* Opens it; CN_ELOCKED if a server has it, CN_ENOTFOUND if there is none. With `readonly` recovery
 * and all else that would change it stays in memory. History is kept, whatever its age. */
int cn_offline_open(struct cn_offline *dir, const char *path, bool readonly, struct cn_err *err);
void cn_offline_close(struct cn_offline *dir); /* one that was not opened is fine */

/* What the store was opened on. */
struct cn_disk *cn_offline_disk(struct cn_offline *dir);

#endif
