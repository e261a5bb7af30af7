/* SPDX-License-Identifier: Apache-2.0 */
/* test/simulate/bodies.c - what lies beside the stores, as shard/bodies.h has it: of some writes
 * a body, which is on disks and not in the log.
 *
 * A body is on its owner's disk and on those of all replicas that are reached when it is written,
 * on two at the least (Z1). Later the owner takes what it lacks from whoever has it, brings the
 * other replicas what they lack, in its time, and tells its member which of them are whole (Z6).
 * The operator is the adversary: a disk whose replica is dropped is taken away at that moment, with
 * what it has of the shard. So what P3 of member_place.c promises is all that keeps bodies. */
#include <string.h>

#include "test/simulate/world.h"

bool with_bodies;
static uint32_t on[OPS + 1]; /* by write: disks that have its body, as bits */

static uint32_t bit(uint64_t disk)
{
    return 1u << disk;
}

void bodies_reset(bool with)
{
    with_bodies = with;
    memset(on, 0, sizeof(on));
}

static bool has_body(unsigned op)
{
    return with_bodies && ops[op].write && op % 2 == 0;
}

static bool reaches(int n, int m)
{
    return nodes[m].up && nodes[m].frozen_until <= now && !(nodes[n].no_peer >> m & 1) &&
           !(nodes[m].no_peer >> n & 1);
}

static void tell(struct node *node, unsigned shard)
{
    uint64_t disks[CN_CLUSTER_REPLICAS_MAX];
    unsigned count = 0;
    for (uint64_t disk = 1; disk <= DISKS && count < CN_CLUSTER_REPLICAS_MAX; disk++)
        if (node->whole[shard] & bit(disk))
            disks[count++] = disk;
    cn_member_whole(&node->member, shard, node->whole_epoch[shard], disks, count);
}

/* Who misses it has fallen behind. False: too few can take it, and nothing is written. */
bool bodies_put(int n, unsigned shard, unsigned op)
{
    struct node *node = &nodes[n];
    const struct cn_engine_shard *row = &node->member.shards[shard].row;
    uint32_t mask = bit(node->disk), missed = 0;
    if (!has_body(op))
        return true;
    for (unsigned i = 0; i < row->replica_count; i++) {
        int m = node_of_disk(row->disks[i]);
        if (m == n)
            continue;
        *(m >= 0 && reaches(n, m) ? &mask : &missed) |= bit(row->disks[i]);
    }
    for (int m = 0; m < NODES && mask == bit(node->disk); m++)
        if (m != n && reaches(n, m))
            mask |= bit(nodes[m].disk); /* in the place of a replica */
    if (mask == bit(node->disk) && replicas > 1)
        return false;
    on[op] = mask;
    if (node->whole[shard] & missed) {
        node->whole[shard] &= ~missed;
        tell(node, shard);
    }
    return true;
}

/* Takes what this disk lacks from those who are reached; whether it has all then. */
static bool take_all(int n, unsigned shard)
{
    struct node *node = &nodes[n];
    const struct store *store = &node->store[shard];
    bool all = true;
    for (unsigned i = 1; i <= node->member.shards[shard].have; i++) {
        unsigned op = store->op[i];
        for (int m = 0; m < NODES && has_body(op) && !(on[op] & bit(node->disk)); m++)
            if (m != n && reaches(n, m) && on[op] & bit(nodes[m].disk))
                on[op] |= bit(node->disk);
        all = all && (!has_body(op) || on[op] & bit(node->disk));
    }
    return all;
}

static void bring_all(int n, unsigned shard, uint64_t disk)
{
    struct node *node = &nodes[n];
    for (unsigned i = 1; i <= node->member.shards[shard].have; i++)
        if (has_body(node->store[shard].op[i]))
            on[node->store[shard].op[i]] |= bit(disk);
}

static void keep(int n, unsigned shard)
{
    struct node *node = &nodes[n];
    const struct cn_member_shard *seen = &node->member.shards[shard];
    if (seen->role != CN_ROLE_SERVING || (!calm && !one_in(4)))
        return;
    if (node->whole_epoch[shard] != seen->epoch) {
        node->whole_epoch[shard] = seen->epoch;
        node->whole[shard] = 0;
    }
    uint32_t row = 0;
    for (unsigned i = 0; i < seen->row.replica_count; i++)
        row |= bit(seen->row.disks[i]);
    node->whole[shard] &= row; /* those that are none any more make room */
    if (!take_all(n, shard))
        return;
    node->whole[shard] |= bit(node->disk);
    for (unsigned i = 0; i < seen->row.replica_count; i++) {
        int m = node_of_disk(seen->row.disks[i]);
        if (m < 0 || m == n || !reaches(n, m) || (!calm && !one_in(3)))
            continue;
        bring_all(n, shard, seen->row.disks[i]);
        node->whole[shard] |= bit(seen->row.disks[i]);
    }
    tell(node, shard);
}

void bodies_keep(int n)
{
    for (unsigned i = 0; i < SHARDS && with_bodies; i++)
        keep(n, i);
}

void bodies_dropped(unsigned shard, uint64_t disk)
{
    for (unsigned op = 1; op <= op_count && with_bodies; op++)
        if (ops[op].shard == shard)
            on[op] &= ~bit(disk);
}

/* No body has its only copy there. */
bool bodies_may_lose(uint64_t disk)
{
    uint32_t others = 0;
    for (int n = 0; n < NODES; n++)
        others |= nodes[n].disk == disk ? 0 : bit(nodes[n].disk);
    for (unsigned op = 1; op <= op_count; op++)
        if (has_body(op) && on[op] & bit(disk) && !(on[op] & others))
            return false;
    return true;
}

void bodies_lost(uint64_t disk)
{
    for (unsigned op = 1; op <= op_count; op++)
        on[op] &= ~bit(disk);
}

bool bodies_settled(const struct store *store, uint64_t disk)
{
    for (unsigned i = 1; i <= store->total; i++)
        if (has_body(store->op[i]) && !(on[store->op[i]] & bit(disk)))
            return false;
    return true;
}

void bodies_check(unsigned shard, const struct store *store)
{
    for (unsigned i = 1; i <= store->total; i++) {
        unsigned op = store->op[i];
        uint32_t there = 0;
        for (int n = 0; n < NODES; n++)
            there |= on[op] & bit(nodes[n].disk);
        if (has_body(op) && !there)
            fail("the body of write %u of shard %u is lost", op, shard);
    }
}
