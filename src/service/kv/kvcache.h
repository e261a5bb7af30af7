/* SPDX-License-Identifier: Apache-2.0 */
/* service/kv/kvcache.h - values of KV namespaces that were read lately, for all lanes.
 *
 * A hit needs no call to the shard, which may live on another lane. It is never old:
 *
 *     reader                               shard, on its lane
 *     get: a miss, takes a ticket
 *     call ──────────────────────────────► reads, answers when that is durable
 *                                          put, delete: drop(), in the turn that writes
 *     keep: only if nothing was dropped
 *           since the ticket
 *
 * C1  Once a write has happened in its shard the value before it is in no cache, and cannot come
 *     into one: drop() outdates every ticket taken before it. Whoever was told of the write
 *     therefore reads it, or a later one.
 * C2  What is kept was the answer to a call, so it is durable.
 * C3  A shard that starts and finds its database other than it left it, after a restore for
 *     example, outdates all that was kept of it.
 * C4  While the node does not answer for a shard (cn_object_lane_serves()) nothing of it is taken
 *     from here but what C5 allows; what was kept before it was closed is not taken afterwards
 *     either.
 *
 * That is for who reads where the shard is. Elsewhere a get is a call to another node, unless its
 * script has said how old a value may be (`cacheTtl`). What such gets were answered is kept apart:
 *
 * C5  It is given to gets that allow an age and are made where the shard is not, and to no others;
 *     and never when more than that age has passed since the get that read it was sent.
 * C6  A write that goes through this node takes its key out when it is sent, and again before it is
 *     acknowledged: who wrote here reads that, or later, here. Writes through other nodes are seen
 *     when C5 says so.
 *
 * Threads:   any. The cache is cut into stripes with a lock each, held for a look-up and a copy of
 *            at most CN_KVCACHE_VALUE_MAX bytes.
 * Ownership: the node's services; values are copied in and out. */
#ifndef CN_SERVICE_KV_KVCACHE_H
#define CN_SERVICE_KV_KVCACHE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/record.h"

struct cn_kv_call;
struct cn_kvcache;

#define CN_KVCACHE_VALUE_MAX (16u << 10) /* larger ones are not kept */

struct cn_kvcache *cn_kvcache_new(size_t bytes_max);
void cn_kvcache_free(struct cn_kvcache *cache); /* NULL is fine */

/* Answers a get from the cache; false: ask the shard. Either way the call has its ticket. */
bool cn_kvcache_get(struct cn_kvcache *cache, struct cn_kv_call *call, int64_t now_s);
/* The same where the shard is not: an answer may be `age_ns` old (C5). `now_ns` never goes back. */
bool cn_kvcache_get_far(struct cn_kvcache *cache, struct cn_kv_call *call, int64_t now_s,
                        uint64_t now_ns, uint64_t age_ns);
/* Keeps what a get was answered. */
void cn_kvcache_keep(struct cn_kvcache *cache, const struct cn_kv_call *call);
/* The call writes its key, or has written it (C6). */
void cn_kvcache_drop(struct cn_kvcache *cache, const struct cn_kv_call *call);
/* A shard starts, with its last commit at `lsn`; and ends. */
void cn_kvcache_start(struct cn_kvcache *cache, const struct cn_object_key *key, uint64_t lsn);
void cn_kvcache_end(struct cn_kvcache *cache, const struct cn_object_key *key, uint64_t lsn);

/* A shard of the node was closed, and others may write to its objects from now on: all that was
 * kept is outdated, and what is on its way to be. */
void cn_kvcache_outdate(struct cn_kvcache *cache);
/* The call is not to be answered from here, nor kept: its shard is not open on this node. */
void cn_kvcache_pass(struct cn_kv_call *call);

/* Memory is short: it starts empty again. */
void cn_kvcache_forget(struct cn_kvcache *cache);

struct cn_kvcache_stats {
    uint64_t hits, misses, entries, bytes;
};
void cn_kvcache_stats(struct cn_kvcache *cache, struct cn_kvcache_stats *stats);

#endif
