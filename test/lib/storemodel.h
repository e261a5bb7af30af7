/* SPDX-License-Identifier: Apache-2.0 */
/* test/lib/storemodel.h - what a store must hold, kept beside it in plain memory.
 *
 * A model drives random turns against a store (writes, savepoints, rollbacks,
 * alarms, names, deleteAll, deletion, closing and opening) and remembers the state
 * of every object after each of its commits, with the LSN. Later, perhaps on what a
 * crash left of the disk, it compares:
 *
 *   M1  each object is in the state after one of its commits, whole: rows, alarm, name;
 *   M2  at the last acknowledged commit or a later one;
 *   M3  if a commit is there, so is every commit of any object with a smaller LSN;
 *   M4  the catalog says the same as the databases, and lists exactly the alarms;
 *   M5  every database passes SQLite's integrity check.
 *
 * Everything random comes from the seed. Threads: one. */
#ifndef CN_TEST_STOREMODEL_H
#define CN_TEST_STOREMODEL_H
#include <stdbool.h>
#include <stdint.h>

#include "base/rand.h"
#include "store/record.h"

struct cn_database;
struct cn_store;

enum { MODEL_SLOTS = 24, MODEL_OBJECTS_MAX = 64, MODEL_WHY_MAX = 1024 };

/* A row of the table: bytes grown from `seed`. size 0: no such row. */
struct model_slot {
    uint32_t seed;
    uint32_t size;
};

struct model_state {
    bool exists;      /* false: never committed to, or deleted */
    uint64_t version; /* kept in a table of its own; 0 while there are no tables */
    int64_t alarm_ms;
    bool has_name;
    struct model_slot slots[MODEL_SLOTS];
};

struct model_version {
    uint64_t lsn;
    struct model_state state;
};

struct model_object {
    struct cn_object_key key;
    struct model_version *versions; /* owned; oldest first, [0] is the empty object at LSN 0 */
    int version_count;
    struct cn_database *db; /* open, or NULL */
};

struct model {
    struct cn_rand rand;
    struct model_object objects[MODEL_OBJECTS_MAX];
    int object_count;
    uint64_t next_version;
    uint64_t commit_count;
    bool faults; /* the disk fails: any refusal by the store is fine */
    bool spoilt; /* pages may be damaged: rows are read without a check of the whole first */
    /* Called before a commit with what the object is about to become; NULL: not. */
    void (*on_intent)(void *data, int object_index, const struct model_state *state);
    void *intent_data;
    char why[MODEL_WHY_MAX]; /* the first thing that was wrong */
};

void model_init(struct model *model, uint64_t seed, int object_count);
void model_fini(struct model *model);

/* Namespaces of the model, made in a fixed order. 0, or negative with `why`. */
int model_open_namespaces(struct model *model, struct cn_store *store);

/* One random turn on a random object. Returns the LSN to wait for in *lsn (0: nothing
 * committed). CN_EREADONLY and other refusals by the store come back as they are and leave
 * the model as the store should be; what is wrong in itself returns CN_ECORRUPT with `why`. */
int model_turn(struct model *model, struct cn_store *store, uint64_t *lsn);
void model_close_databases(struct model *model);

/* Compares the store with the model (M1 to M5). `acked_lsn`: what had been promised. Databases
 * of the model must be closed. 0, or CN_ECORRUPT with `why`. On success the model forgets
 * the commits that were lost, so that it can go on from here. */
int model_compare(struct model *model, struct cn_store *store, uint64_t acked_lsn);
/* The same, and the model stays as it is: for a copy of its disk. */
int model_compare_copy(struct model *model, struct cn_store *store, uint64_t acked_lsn);

/* Reads one object's present state from the store. 0, or negative with `why`. */
int model_read_object(struct model *model, struct cn_store *store, struct model_object *object,
                      struct model_state *state);
/* Compares the rows of a plain SQLite file with a state. 0, or CN_ECORRUPT with `why`. */
int model_compare_file(struct model *model, const char *path, const struct model_state *state);
/* Enters a commit that somebody else made. */
void model_add(struct model_object *object, uint64_t lsn, const struct model_state *state);
/* The object was made what it was at another LSN, by the commit `lsn`: rows and alarm go
 * back; a name stays, or comes back if a deletion took it. */
void model_restored(struct model_object *object, uint64_t lsn, const struct model_state *rows);
/* The state of an object as of an LSN. */
const struct model_state *model_state_at(const struct model_object *object, uint64_t lsn);

#endif
