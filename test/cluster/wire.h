/* SPDX-License-Identifier: Apache-2.0 */
/* test/cluster/wire.h - a cluster of real processes: what they and the test tell each other.
 *
 * node.c is a node without the server: the host as it is in the binary, with the member, the
 * engine's driver and the links, and with the stores of store.h. test_cluster.c starts such
 * nodes on a real PostgreSQL with a synchronous standby, asks them, kills, freezes and cuts them
 * off, kills and replaces the engine's servers, and judges the history: test/simulate/check.c tells
 * the rules.
 *
 * All of them have a datagram socket in one directory, for what clients ask; a message that finds
 * no room is lost. */
#ifndef CN_TEST_CLUSTER_WIRE_H
#define CN_TEST_CLUSTER_WIRE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { NODES = 5, SHARDS = 8, OBJECTS = 4, SHARD_OPS = 8000, CONTROL = 255 };

enum wire_kind { WIRE_OP, WIRE_REPLY, WIRE_CUT };
enum wire_status { STATUS_OPEN, STATUS_OK, STATUS_REFUSED, STATUS_UNKNOWN };

struct wire {
    uint32_t kind, from;
    uint32_t op, shard, object;
    bool write, dump; /* of OP; a dump is a read that tells all records */
    uint32_t status, len;
    uint64_t hash;
    uint32_t cut; /* CUT: bits of nodes it does not reach; bit 31: the engine */
    uint32_t count;
    uint32_t records[SHARD_OPS];
};
/* A record's low bits are its object, the others the number of the write. */
static inline unsigned wire_object(uint32_t record)
{
    return record % OBJECTS;
}
static inline uint64_t wire_hash(uint64_t hash, uint32_t record)
{
    hash ^= record + 0x9E3779B97F4A7C15ull + (hash << 6) + (hash >> 2);
    return hash * 0xff51afd7ed558ccdull;
}

int wire_open(const char *dir, unsigned who);
void wire_send(int fd, const char *dir, unsigned to, const struct wire *wire);
bool wire_receive(int fd, struct wire *wire);

#endif
