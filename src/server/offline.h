/* SPDX-License-Identifier: Apache-2.0 */
/* server/offline.h - a data directory opened by a command while no server uses it.
 *
 * Ownership: the struct owns what it points to. */
#ifndef CN_SERVER_OFFLINE_H
#define CN_SERVER_OFFLINE_H
#include <stdbool.h>

#include "base/err.h"

struct cn_args;
struct cn_disk;
struct cn_history;
struct cn_store;

struct cn_datadir {
    struct cn_disk *real;    /* the directory itself */
    struct cn_disk *overlay; /* what is opened if nothing may change, else NULL */
    struct cn_history *history;
    struct cn_store *store;
};

/* The directory a command works on: --data, CAIRN_DATA, or .cairn in the current folder. */
const char *cn_datadir_path(const struct cn_args *args);
/* Opens it; CN_ELOCKED if a server has it, CN_ENOTFOUND if there is none. With `readonly` recovery
 * and all else that would change it stays in memory. History is kept, whatever its age. */
int cn_datadir_open(struct cn_datadir *dir, const char *path, bool readonly, struct cn_err *err);
void cn_datadir_close(struct cn_datadir *dir); /* one that was not opened is fine */

/* What the store was opened on. */
struct cn_disk *cn_datadir_disk(struct cn_datadir *dir);

#endif
