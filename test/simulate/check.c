/* SPDX-License-Identifier: Apache-2.0 */
/* test/simulate/check.c - what must be true.
 *
 * When an answer leaves (lease reads): nobody with a later epoch of the shard has answered before.
 * In the end: every object's history is linearizable (test/simulate/world.h), what was refused is
 * not there, all replicas are alike, and nothing is stuck: every shard is served, has its replicas,
 * and its log is cut. Of some seeds the end is waited for: the map has come to rest by then. */
#include <stdio.h>
#include <string.h>

#include "test/simulate/world.h"

struct stats stats;
static uint64_t epoch_left[SHARDS];
static bool was_accepted;

void check_reset(void)
{
    op_count = 0;
    failed = stuck = was_accepted = false;
    memset(epoch_left, 0, sizeof(epoch_left));
}

/* Nobody answers under the old engine any more, and epochs begin anew. */
void check_accepted(void)
{
    was_accepted = true;
    memset(epoch_left, 0, sizeof(epoch_left));
    for (unsigned i = 1; i <= op_count; i++)
        if (ops[i].status != STATUS_UNKNOWN) {
            ops[i].status = STATUS_UNKNOWN;
            ops[i].answered = now;
        }
}

bool check_was_accepted(void)
{
    return was_accepted;
}

void check_answer(int node, const struct out *out)
{
    /* With verified reads an answer may leave late: it was right when its statement was sent. */
    if (!verified && out->epoch < epoch_left[out->shard])
        fail("two owners answer: node %d answers %u of shard %d under epoch %d, after one under %d",
             node, out->op, out->shard, (int)out->epoch, (int)epoch_left[out->shard]);
    if (out->epoch > epoch_left[out->shard])
        epoch_left[out->shard] = out->epoch;
}

static int owner_node(int shard)
{
    uint64_t disk, owner = engine_owner(shard, &disk);
    for (int n = 0; n < NODES && owner; n++)
        if (nodes[n].up && nodes[n].disk == disk && nodes[n].member.session == owner &&
            nodes[n].store[shard].serving)
            return n;
    return -1;
}

static bool settled(int shard, const char **why)
{
    uint64_t disks[CN_CLUSTER_REPLICAS_MAX];
    unsigned count = engine_replicas(shard, disks);
    int owner = owner_node(shard);
    *why = "has no owner that serves it";
    if (owner < 0)
        return false;
    *why = "has answers that do not leave";
    if (nodes[owner].out_count)
        return false;
    uint64_t last = nodes[owner].store[shard].total;
    *why = "does not have the replicas that are wanted";
    if (count != replicas)
        return false;
    for (unsigned i = 0; i < count; i++) {
        bool found = false;
        for (int n = 0; n < NODES; n++)
            if (nodes[n].up && nodes[n].disk == disks[i]) {
                *why = "has a replica that lags behind";
                found = nodes[n].member.shards[shard].have == last;
                if (found && !bodies_settled(&nodes[owner].store[shard], disks[i])) {
                    *why = "has a replica that lacks bodies";
                    found = false;
                }
            }
        if (!found)
            return false;
    }
    *why = "has a log that is not cut";
    return engine_trim(shard) == last;
}

bool check_settled(void)
{
    const char *why;
    for (int i = 0; i < SHARDS; i++)
        if (!settled(i, &why))
            return false;
    for (int n = 0; n < NODES; n++)
        if (!nodes[n].up || nodes[n].member.state != CN_MEMBER_LIVE)
            return false;
    return true;
}

static void check_replicas(unsigned shard, const struct store *store)
{
    uint64_t disks[CN_CLUSTER_REPLICAS_MAX];
    unsigned count = engine_replicas((int)shard, disks);
    for (unsigned i = 0; i < count; i++)
        for (int n = 0; n < NODES; n++) {
            const struct store *other = &nodes[n].store[shard];
            if (nodes[n].disk != disks[i] || !other->here)
                continue;
            unsigned len = other->total < store->total ? other->total : store->total;
            if (memcmp(&other->op[1], &store->op[1], len * sizeof(uint16_t)) != 0)
                fail("the replica of shard %u on node %d differs", shard, n);
            len = other->synced < store->total ? other->synced : store->total;
            if (memcmp(&other->disk_op[1], &store->op[1], len * sizeof(uint16_t)) != 0)
                fail("the replica of shard %u on the disk of node %d differs", shard, n);
        }
}

void check_rest(uint64_t version_before)
{
    if (failed || engine_version() == version_before)
        return;
    stuck = true;
    snprintf(failure, sizeof(failure), "stuck: the map does not come to rest");
}

void check_history(void)
{
    for (int i = 0; i < SHARDS; i++) {
        int owner = owner_node(i);
        const char *why;
        if (!settled(i, &why)) {
            stuck = true;
            if (!failed)
                snprintf(failure, sizeof(failure), "stuck: shard %d %s", i, why);
        }
        if (owner < 0)
            continue;
        const struct store *store = &nodes[owner].store[i];
        for (unsigned object = 0; object < OBJECTS && !failed; object++)
            history_check((unsigned)i, object, &store->op[1], store->total);
        if (!failed)
            check_replicas((unsigned)i, store);
        if (!failed && with_bodies)
            bodies_check((unsigned)i, store);
    }
    for (unsigned i = 1; i <= op_count; i++)
        stats.answered += ops[i].status == STATUS_OK;
    stats.ops += op_count;
    stats.seeds++;
}
