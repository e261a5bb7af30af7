/* SPDX-License-Identifier: Apache-2.0 */
/* object/gate.c - the output gate of a lane: what is held, for which shard, and when it leaves.
 *
 * See object/output.h (G1, G2) and O5 of object/object.h. Everything that is held stands in one
 * list. An output asks the shard of its own object; a write that strayed may be of another shard,
 * so an output also names the last stray before it, and leaves when that one and all before it are
 * durable. What code sends that runs for no object is held by `nobody`, which is no object of the
 * lane's: those that were written to may be reset meanwhile. */
#include "base/assert.h"
#include "base/loop.h"
#include "base/mem.h"
#include "object/internal.h"
#include "object/node.h"
#include "store/database.h"
#include "store/store.h"

/* --- strays ---------------------------------------------------------------------------------- */

static struct cn_stray *first_stray(const struct cn_object_lane *lane)
{
    return cn_list_empty(&lane->strays) ? NULL
                                        : CN_CONTAINER_OF(lane->strays.next, struct cn_stray, link);
}

static void drop_stray(struct cn_object_lane *lane, struct cn_stray *stray)
{
    cn_list_remove(&stray->link);
    cn_free(stray);
    const struct cn_stray *first = first_stray(lane);
    lane->stray_done = first ? first->number - 1 : lane->stray_last;
}

/* Forgets those that are durable, in order. */
static void settle_strays(struct cn_object_lane *lane)
{
    struct cn_stray *first;
    while ((first = first_stray(lane)) && first->lsn <= cn_store_durable(first->shard->store))
        drop_stray(lane, first);
    if (!first)
        lane->stray_done = lane->stray_last; /* the last may have left nothing to wait for */
}

void cn_object_lane_note_stray(struct cn_object_lane *lane, const struct cn_object *object)
{
    struct cn_stray *last = cn_list_empty(&lane->strays)
                                ? NULL
                                : CN_CONTAINER_OF(lane->strays.prev, struct cn_stray, link);
    if (!object->last_lsn || object->cut)
        return;
    if (!last || last->number != lane->stray_last || last->shard != object->shard) {
        last = CN_NEW(struct cn_stray);
        last->shard = object->shard;
        last->number = lane->stray_last;
        cn_list_push_back(&lane->strays, &last->link);
    }
    if (object->last_lsn > last->lsn)
        last->lsn = object->last_lsn;
}

bool cn_object_lane_open(struct cn_object_lane *lane)
{
    if (lane->strayed)
        return false;
    if (!cn_list_empty(&lane->strays))
        settle_strays(lane);
    return cn_list_empty(&lane->strays);
}

struct cn_object *cn_object_lane_gate(struct cn_object_lane *lane)
{
    cn_loop_assert_owner(lane->loop);
    if (cn_object_lane_open(lane))
        return NULL;
    if (!lane->strayed)
        lane->nobody->shard = first_stray(lane)->shard;
    cn_object_join(lane->nobody);
    return lane->nobody;
}

/* --- the gate -------------------------------------------------------------------------------- */

static bool may_leave(struct cn_object_lane *lane, const struct cn_output *output)
{
    if (output->stray > lane->stray_done) {
        settle_strays(lane);
        if (output->stray > lane->stray_done)
            return false;
    }
    /* K5 first: the gate is asked last. */
    return cn_store_confirmed(output->shard->store, output->ticket) &&
           cn_lane_shard_may_leave(output->shard, output->lsn);
}

/* What keeps it: the first stray, or the commit of its own object. */
static const struct cn_lane_shard *waits_for(const struct cn_object_lane *lane,
                                             const struct cn_output *output, uint64_t *lsn)
{
    const struct cn_stray *stray = output->stray > lane->stray_done ? first_stray(lane) : NULL;
    *lsn = stray ? stray->lsn : output->lsn;
    return stray ? stray->shard : output->shard;
}

void cn_object_lane_hold(struct cn_object_lane *lane, struct cn_output *output)
{
    /* G2: nothing overtakes what is held already. */
    if (cn_list_empty(&lane->held) && may_leave(lane, output)) {
        output->send(output, NULL);
        return;
    }
    cn_list_push_back(&lane->held, &output->link);
}

bool cn_object_output_open(const struct cn_object *object)
{
    if (object->db && cn_database_in_transaction(object->db) && !object->unconfirmed)
        return false;
    return cn_list_empty(&object->lane->held) && object->shard->store &&
           !cn_store_verifies(object->shard->store) &&
           cn_lane_shard_may_leave(object->shard, object->lsn);
}

bool cn_object_is_durable(const struct cn_object *object)
{
    return object->last_lsn <= cn_store_durable(object->shard->store);
}

/* G3: of an output that may not leave, will it ever? Durable or not, nothing leaves once the log
 * has failed while a lease keeps it (store/sink.h). */
static bool held_failed(const struct cn_object_lane *lane, const struct cn_output *output,
                        struct cn_err *err)
{
    uint64_t lsn;
    struct cn_store *store = waits_for(lane, output, &lsn)->store;
    return cn_store_lost(store, err) < 0;
}

unsigned cn_object_lane_release(struct cn_object_lane *lane, unsigned budget)
{
    unsigned count = 0;
    while (count < budget && !cn_list_empty(&lane->held)) {
        struct cn_output *output = CN_CONTAINER_OF(lane->held.next, struct cn_output, link);
        struct cn_err err;
        bool leaves = may_leave(lane, output);
        if (!leaves && !held_failed(lane, output, &err))
            break;
        cn_list_remove(&output->link);
        output->send(output, leaves ? NULL : &err);
        count++;
    }
    return count;
}

/* They are durable, and this node may not tell so any more. */
static void refuse_held(struct cn_object_lane *lane)
{
    struct cn_err err;
    (void)cn_err_set(&err, CN_EREADONLY, "the node may not answer any more");
    for (struct cn_list *link; (link = cn_list_take_front(&lane->held));) {
        struct cn_output *output = CN_CONTAINER_OF(link, struct cn_output, link);
        output->send(output, &err);
    }
}

void cn_object_lane_release_all(struct cn_object_lane *lane)
{
    while (!cn_list_empty(&lane->held)) {
        const struct cn_output *first = CN_CONTAINER_OF(lane->held.next, struct cn_output, link);
        struct cn_err err;
        uint64_t lsn;
        const struct cn_lane_shard *own = waits_for(lane, first, &lsn);
        if (cn_store_wait(own->store, lsn, &err) == 0 && first->stray > lane->stray_done) {
            settle_strays(lane); /* the next of them, or its own commit */
            continue;
        }
        /* If the log has failed, the first is told so. */
        if (!cn_object_lane_release(lane, UINT32_MAX))
            refuse_held(lane);
    }
}

bool cn_object_lane_want(struct cn_object_lane *lane)
{
    if (cn_list_empty(&lane->held)) {
        if (lane->wanted)
            atomic_store(&lane->wanted->wanted_lsn, 0);
        lane->wanted = NULL;
        return false;
    }
    const struct cn_output *oldest = CN_CONTAINER_OF(lane->held.next, struct cn_output, link);
    uint64_t lsn;
    struct cn_lane_shard *own = (struct cn_lane_shard *)waits_for(lane, oldest, &lsn);
    if (lane->wanted && lane->wanted != own)
        atomic_store(&lane->wanted->wanted_lsn, 0);
    lane->wanted = own;
    /* One that waits for no commit (of an object that never wrote) waits for the sink alone. */
    atomic_store(&own->wanted_lsn, lsn ? lsn : 1);
    return may_leave(lane, oldest); /* after the store: the flush may have ended in between */
}

/* --- a shard goes ---------------------------------------------------------------------------- */

bool cn_object_lane_holds(const struct cn_object_lane *lane, const struct cn_lane_shard *own)
{
    CN_LIST_FOREACH(&lane->held, node)
    {
        if (CN_CONTAINER_OF(node, struct cn_output, link)->shard == own)
            return true;
    }
    return false;
}

/* The number of the first stray into the shard; UINT64_MAX: none. */
static uint64_t stray_into(const struct cn_object_lane *lane, const struct cn_lane_shard *own)
{
    CN_LIST_FOREACH(&lane->strays, node)
    {
        const struct cn_stray *stray = CN_CONTAINER_OF(node, struct cn_stray, link);
        if (stray->shard == own)
            return stray->number;
    }
    return UINT64_MAX;
}

void cn_object_lane_fail_held(struct cn_object_lane *lane, const struct cn_lane_shard *own,
                              const struct cn_err *err)
{
    struct cn_list failed, *node;
    cn_list_init(&failed);
    settle_strays(lane);
    uint64_t lost = stray_into(lane, own);
    CN_LIST_FOREACH(&lane->held, each)
    {
        const struct cn_output *output = CN_CONTAINER_OF(each, struct cn_output, link);
        if (output->shard != own && output->stray < lost)
            continue;
        cn_list_remove(each);
        cn_list_push_back(&failed, each);
    }
    CN_LIST_FOREACH(&lane->strays, each)
    {
        struct cn_stray *stray = CN_CONTAINER_OF(each, struct cn_stray, link);
        if (stray->shard == own)
            drop_stray(lane, stray);
    }
    while ((node = cn_list_take_front(&failed))) {
        struct cn_output *output = CN_CONTAINER_OF(node, struct cn_output, link);
        output->send(output, err);
    }
}

void cn_object_lane_drop_strays(struct cn_object_lane *lane)
{
    struct cn_stray *stray;
    while ((stray = first_stray(lane)))
        drop_stray(lane, stray);
}
