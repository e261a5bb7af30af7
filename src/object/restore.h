/* SPDX-License-Identifier: Apache-2.0 */
/* object/restore.h - point-in-time recovery as an object asks for it.
 *
 *     cn_restore_next() ──► checked, in node_db.h ──► done(undo bookmark)
 *         ...the instance ends (abort, eviction, crash of the node)...
 *     first call ──► restored, durable, out of it ──► the new instance starts
 *
 * P1  From the call of cn_restore_next() on, the object's next instance is not
 *     started before the request has been written down and carried out, or has
 *     been refused; from `done` on a crash makes no difference.
 * P2  No code of the object runs between the restoring commit and the end of the
 *     request. A crash in between restores once more, to the same state.
 * P3  A request that can never be carried out (its moment is no longer kept) is
 *     dropped: the call that started the object fails with the reason, the next one
 *     finds the object as it was. After other failures (disk) the request stands.
 *
 * SQL and key-value data and the alarm go back; a name stays. With a snapshot of
 * another object the alarm stays too.
 *
 * Reading history takes time, so all of it is done on the thread pool; requests and
 * restores of one object in order, those of different objects side by side.
 *
 * Threads:   the lane's.
 * Ownership: a request is the asker's; it must stay until `done` has run. */
#ifndef CN_OBJECT_RESTORE_H
#define CN_OBJECT_RESTORE_H
#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/err.h"
#include "base/list.h"
#include "object/output.h"
#include "store/bookmark.h"

struct cn_lane_shard;
struct cn_node_db;
struct cn_object;
struct cn_object_lane;
struct cn_shard;

/* Restores requested and not yet carried out, per lane; past it cn_restore_next() is refused. */
#define CN_RESTORE_PENDING_MAX 10000

/* A question to history, or a request. `bookmark` is the answer when `done` runs without error. */
struct cn_restore_request {
    char bookmark[CN_BOOKMARK_SIZE];
    /* Exactly once, on the lane, never from inside the function that was asked. */
    void (*done)(struct cn_restore_request *request, const struct cn_err *err);
    /* For restore.c from here on. */
    struct cn_object_lane *lane;
    struct cn_shard *shard;   /* held while a thread works on it */
    bool abandoned;           /* its shard was closed meanwhile */
    struct cn_object *object; /* a restore being carried out: what waits for it, held */
    struct cn_object_key key, source;
    struct cn_output output;
    struct cn_list link; /* in the object's queue */
    uv_work_t work;
    int64_t time_ms;
    uint64_t floor_lsn;
    char *name; /* owned: of the object, to be kept with what is restored */
    size_t name_size;
    struct cn_err err;
};

/* The bookmark of the state at the end of the running turn. Inside a turn. */
void cn_restore_bookmark_now(struct cn_object *object, struct cn_restore_request *request);
/* The bookmark of a moment; it is an error if it is not kept any more, or yet to come. */
void cn_restore_bookmark_at(struct cn_object *object, int64_t time_ms,
                            struct cn_restore_request *request);
/* Makes the object, before it starts the next time, what `source` (NULL: itself) was at the
 * bookmark. Answers with the bookmark that will undo this. The last request counts. */
void cn_restore_next(struct cn_object *object, const struct cn_object_key *source,
                     const char *bookmark, size_t bookmark_size,
                     struct cn_restore_request *request);

/* ---- for the core ---- */

/* True if a restore must come first: the object waits, and cn_object_restored() goes on with it. */
bool cn_restore_before_start(struct cn_object *object);
void cn_restore_lane_init(struct cn_object_lane *lane);
void cn_restore_lane_fini(struct cn_object_lane *lane);

/* What a shard's database says is to be restored (object/node_db.h). */
struct cn_restore_entry {
    struct cn_list link;
    struct cn_object_key key, source;
    char bookmark[CN_BOOKMARK_SIZE];
};
/* Reads all of them. Blocks for the disk; any thread. */
int cn_restore_read(struct cn_node_db *db, struct cn_list *entries, struct cn_err *err);
void cn_restore_entries_free(struct cn_list *entries);
/* The lane takes over those of its objects. */
void cn_restore_take_up(struct cn_lane_shard *own);
/* Fails what was asked by objects of the shard. What a thread works on is told when that ends. */
void cn_restore_let_go(struct cn_lane_shard *own, const struct cn_err *err);

#endif
