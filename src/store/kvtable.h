/* SPDX-License-Identifier: Apache-2.0 */
/* store/kvtable.h - the key-value table (_cf_KV) of an object's database.
 *
 * Keys are UTF-8 and ordered by their bytes; values are opaque bytes. Changes
 * belong to the turn's transaction like any SQL. The table is made by the first put.
 *
 * Threads and ownership: those of the database. */
#ifndef CN_STORE_KVTABLE_H
#define CN_STORE_KVTABLE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct cn_database;

/* A key or a value: any bytes, borrowed. */
struct cn_kv_bytes {
    const void *data;
    size_t size;
};

/* 1 and the value (borrowed until the next call on this database), or 0 if there is none. */
int cn_kvtable_get(struct cn_database *db, struct cn_kv_bytes key, struct cn_kv_bytes *value,
                   struct cn_err *err);
int cn_kvtable_put(struct cn_database *db, struct cn_kv_bytes key, struct cn_kv_bytes value,
                   struct cn_err *err);
/* 1 if it was there, 0 if not. */
int cn_kvtable_delete(struct cn_database *db, struct cn_kv_bytes key, struct cn_err *err);

struct cn_kvtable_range {
    struct cn_kv_bytes start;  /* data NULL: from the first key */
    bool start_after;          /* leave `start` itself out */
    struct cn_kv_bytes end;    /* data NULL: to the last key; `end` itself is left out */
    struct cn_kv_bytes prefix; /* size 0: none */
    bool reverse;
    int64_t limit; /* 0: none */
};
/* Calls back with each pair, in order, until `each` returns nonzero; returns that or 0.
 * `each` may change the table: the walk sees a key once at most. */
int cn_kvtable_list(struct cn_database *db, const struct cn_kvtable_range *range,
                    int (*each)(void *data, struct cn_kv_bytes key, struct cn_kv_bytes value),
                    void *data, struct cn_err *err);

#endif
