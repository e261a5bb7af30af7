/* SPDX-License-Identifier: Apache-2.0 */
/* service/kv/kv.h - key-value namespaces (KV).
 *
 * A namespace is CN_KV_SHARDS objects, named "0", "1", ...; a keyed hash of a key says which one
 * has it. So one busy namespace uses every lane. A list asks all shards and merges what they say
 * (prelude/workers/service/kv.js).
 *
 * K1  A value that was acknowledged is durable, and every later get sees it, on whichever lane:
 *     all that happens to a key happens in one object.
 *     The cache in between (service/kv/kvcache.h) keeps to that.
 *     On another node than the shard's that holds for every get without `cacheTtl`, and, of writes
 *     through that node, for those with it; of writes through others these may be that much older.
 * K2  A key that has expired is gone for get and list from that second on; its row goes later,
 *     with the shard's alarm.
 *
 * Values above CN_KV_INLINE_MAX lie in a table of their own, so that listing keys does not read
 * past them.
 *
 * Threads and ownership: service/service.h. */
#ifndef CN_SERVICE_KV_KV_H
#define CN_SERVICE_KV_KV_H
#include <stdint.h>

#include "base/buf.h"
#include "service/def.h"
#include "service/service.h"

#define CN_KV_SHARDS 16 /* on disk: never changes */
#define CN_KV_INLINE_MAX 1024
#define CN_KV_VALUE_MAX (25u << 20)
#define CN_KV_KEY_MAX 512
#define CN_KV_LIST_MAX 1000
#define CN_KV_TIME_MAX_S 253402300799 /* of an expiration: the year 9999 */

enum cn_kv_op { CN_KV_GET, CN_KV_PUT, CN_KV_DELETE, CN_KV_LIST };

struct cn_kv_call {
    struct cn_service_call base; /* call.op is an enum cn_kv_op */
    /* Asked. */
    struct cn_buf key;   /* list: the prefix */
    struct cn_buf after; /* list: only keys after this one; data NULL: from the first */
    unsigned limit;      /* list: at most this many */
    /* Put asks with them, get answers with them. */
    uint8_t *value; /* owned */
    size_t value_size;
    struct cn_buf metadata; /* JSON; data NULL: none */
    int64_t expires_s;      /* Unix time; 0: never */
    bool ttl;               /* put: expires_s counts from now */
    /* Of service/kv/kvcache.h: when a get began. */
    uint64_t ticket, generation, since_ns;
    /* Answered. */
    bool found;          /* get */
    struct cn_buf names; /* list: [{"name","expiration"?,"metadata"?},...] in order of bytes */
    bool more;           /* list: there are more keys */
};

extern const struct cn_class cn_kv_class;

/* The descriptor (service/def.h) and its parts. */
extern const struct cn_service_def cn_service_kv;
extern const struct cn_service_config cn_kv_config;
extern const struct cn_js_natives cn_kv_natives;
extern const struct cn_service_face cn_kv_face;
extern const struct cn_control_routes cn_kv_routes;
extern const struct cn_command cn_kv_command;
void cn_kv_cache_numbers(const struct cn_metrics_sources *sources,
                         struct cn_service_cache *numbers);

/* A call about `key` (bytes are copied), to the shard that has it. */
struct cn_kv_call *cn_kv_call_new(struct cn_namespace *ns, enum cn_kv_op op, const void *key,
                                  size_t key_size);
/* A list of one shard. */
struct cn_kv_call *cn_kv_list_new(struct cn_namespace *ns, unsigned shard);

/* Whoever calls with cn_kv_call_new() does this before and after. Before a get is sent: true if the
 * cache has answered it. `age_s` is what a script allows on other nodes (cacheTtl); 0: nothing. */
bool cn_kv_cached(struct cn_kv_call *call, struct cn_object_lane *lane, int64_t age_s);
/* Before a put or delete is sent: a get behind it, not awaited, must not overtake it. */
void cn_kv_writes(const struct cn_kv_call *call);
/* When it was answered, and did not fail, before anybody is told. */
void cn_kv_answered(const struct cn_kv_call *call);

#endif
