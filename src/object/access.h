/* SPDX-License-Identifier: Apache-2.0 */
/* object/access.h - access to an object's database from outside the lanes: administration.
 *
 * A visitor (a thread that may block) wants an object's data without running the
 * object's code. How it gets there depends on whether the object is in memory:
 *
 *     live, a look        `turn` runs as one more event of the object: in order, through
 *                         the input gate, in a turn of its own, which the end of the
 *                         turn commits; the visit ends when that is durable
 *     live, exclusive     the instance is reset (what it had under way fails), then as below
 *     not in memory       the object is suspended: the visitor may open, replace or
 *                         delete its database; calls that arrive wait until the end of the visit
 *
 * V1  The database has one owner at every moment: the lane's object, or the one
 *     visitor that suspended it. A second visitor is refused with CN_ELOCKED.
 * V2  A suspended object is in its lane's table, held, in the state
 *     CN_OBJECT_SUSPENDED; nothing starts, evicts or fires an alarm for it.
 * V3  Every visit that has begun ends, also when lanes stop: they answer all mail first.
 *     Visitors are gone before lanes stop (they are asked to hurry, and joined).
 * V4  A visitor holds the shard of the object (object/shard.h) from before it begins until it has
 *     ended. If the shard is closed meanwhile, the object is gone when the visit ends, and what
 *     the visitor has written is as durable as its store says.
 *
 * Threads:   the visitor's, which blocks; never a lane's.
 * Ownership: the struct is the visitor's, from begin to end. */
#ifndef CN_OBJECT_ACCESS_H
#define CN_OBJECT_ACCESS_H
#include <stdbool.h>
#include <uv.h>

#include "base/err.h"
#include "object/call.h"

struct cn_database;
struct cn_node;

struct cn_access {
    struct cn_node *node;
    struct cn_object_key key;
    bool exclusive;     /* end a live instance instead of joining it */
    const char *reason; /* what calls under way are told then */
    /* Runs on the object's lane, in a turn of the object. Negative: what it wrote is undone. */
    int (*turn)(struct cn_object *object, struct cn_database *db, void *data, struct cn_err *err);
    void *data;

    /* Private. */
    struct cn_mail mail;
    struct cn_call call; /* a look: from the object's lane to itself */
    struct cn_object_lane *lane;
    uv_sem_t done;
    bool suspended;
    int result;
    struct cn_err err;
};

/* 1: the object was live, `turn` has run and its writes are durable; do not call end. 0: the
 * object is suspended and the visitor's until cn_access_end(). Negative: refused, or `turn` failed.
 */
int cn_access_begin(struct cn_access *access, struct cn_err *err);
void cn_access_end(struct cn_access *access);

/* Runs `fn` on the lane that owns the object, between turns, and waits for its end. For what the
 * lane knows of it besides its database. */
int cn_access_lane(struct cn_node *node, const struct cn_object_key *key,
                   void (*fn)(struct cn_object_lane *lane, const struct cn_object_key *key,
                              void *data),
                   void *data, struct cn_err *err);

#endif
