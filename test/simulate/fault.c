/* SPDX-License-Identifier: Apache-2.0 */
/* test/simulate/fault.c - what goes wrong. */
#include "test/simulate/world.h"

static unsigned lost_disks;
static int32_t lost_at;

void fault_reset(void)
{
    lost_disks = 0;
}

static void fault_node(int n)
{
    struct node *node = &nodes[n];
    if (!node->up) {
        if (one_in(2))
            node_start(n);
        return;
    }
    if (one_in(2)) {
        uint64_t disk = node->disk;
        uint64_t life = node->disk_life;
        node_crash(n);
        if (one_in(2))
            engine_bury(disk, life);
        if (one_in(3))
            push(now + 5 + (int32_t)rnd(300), EVENT_START, n, 0, 0, NULL);
    } else {
        node->frozen_until = now + 100 + (int32_t)rnd(one_in(2) ? 3000 : 8000);
        TRACE("node %d is frozen until %d", n, node->frozen_until);
    }
}

static void fault_network(int n)
{
    if (one_in(2)) {
        nodes[n].no_engine = !nodes[n].no_engine;
        TRACE("node %d %s the engine", n, nodes[n].no_engine ? "does not reach" : "reaches");
    } else {
        nodes[n].no_peer ^= (uint8_t)(1u << rnd(NODES));
        if (one_in(3)) /* from nobody to nobody */
            for (int i = 0; i < NODES; i++) {
                nodes[i].no_peer |= (uint8_t)(1u << n);
                nodes[n].no_peer |= (uint8_t)(1u << i);
            }
        TRACE("node %d does not reach nodes %02x", n, nodes[n].no_peer);
    }
}

static void fault_disk(int n)
{
    if (engine_is_back() || lost_disks >= 2 || next_disk >= DISKS || !one_in(2) ||
        !engine_may_lose(nodes[n].disk) || !bodies_may_lose(nodes[n].disk))
        return;
    /* Two of two replicas within moments are not survived: the first loss must have been noticed.
     */
    if (lost_disks && now - lost_at < 10000)
        return;
    lost_at = now;
    lost_disks++;
    node_lose_disk(n);
}

static void operator(int n)
{
    struct node *node = &nodes[n];
    if (!node->up || node->frozen_until > now)
        return;
    switch (rnd(5)) {
    case 0:
        TRACE("operator: node %d is to leave", n);
        cn_member_leave(&node->member, node_clock(node), !one_in(4));
        break;
    case 1:
        TRACE("operator: node %d is to be drained", n);
        engine_drain(node->disk, true);
        break;
    default:
        node_move(n, rnd(SHARDS));
        break;
    }
    node_after(n);
    if (node->left)
        node_crash(n);
}

static void mend_some(void)
{
    for (int i = 0; i < NODES; i++) {
        if (one_in(2))
            nodes[i].no_engine = false;
        if (one_in(2))
            nodes[i].no_peer = 0;
        if (!nodes[i].up && one_in(2))
            node_start(i);
        if (one_in(3))
            engine_drain(nodes[i].disk, false);
    }
}

void fault(void)
{
    int n = (int)rnd(NODES);
    if (calm)
        return;
    switch (rnd(12)) {
    case 0:
    case 1:
    case 2:
        fault_node(n);
        break;
    case 3:
    case 4:
        fault_network(n);
        break;
    case 5:
    case 6:
        engine_fault();
        break;
    case 7:
        fault_disk(n);
        break;
    case 8:
    case 9:
        operator(n);
        break;
    case 10:
        node_forge(n);
        break;
    default:
        mend_some();
        break;
    }
}

void heal(void)
{
    TRACE("all is mended");
    calm = true;
    engine_heal();
    for (int i = 0; i < NODES; i++) {
        nodes[i].no_engine = false;
        nodes[i].no_peer = 0;
        nodes[i].frozen_until = 0;
        node_start(i);
    }
}
