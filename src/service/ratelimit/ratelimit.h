/* SPDX-License-Identifier: Apache-2.0 */
/* service/ratelimit/ratelimit.h - the rate limiting binding: so many calls per key and period.
 *
 * A namespace "$ratelimit/ID" is CN_RATELIMIT_SHARDS objects; a hash of the key says which one
 * counts it, so that all lanes see one count and share the work. Periods are those of the clock:
 * with 60 s, a count begins anew with every minute, also when the clock is set back.
 *
 * Counts are kept in memory and written down every CN_RATELIMIT_FLUSH_MS: a call does not wait for
 * the disk, and a crash forgets at most what was counted since (RL-1).
 *
 * Threads and ownership: service/service.h. */
#ifndef CN_SERVICE_RATELIMIT_RATELIMIT_H
#define CN_SERVICE_RATELIMIT_RATELIMIT_H
#include "base/buf.h"
#include "service/def.h"
#include "service/service.h"

#define CN_RATELIMIT_SHARDS 16
#define CN_RATELIMIT_FLUSH_MS 250
#define CN_RATELIMIT_KEY_SIZE_MAX 4096
/* Keys that one object counts at a time. Past them, new keys are let through and not counted until
 * a period of those that are counted is over. */
#define CN_RATELIMIT_KEYS_MAX 100000

struct cn_ratelimit_call {
    struct cn_service_call base;
    struct cn_buf key;
    uint64_t limit;
    unsigned period_s;
    bool success; /* answered */
};

extern const struct cn_class cn_ratelimit_class;

/* The descriptor (service/def.h) and its parts. */
extern const struct cn_service_def cn_service_ratelimit;
extern const struct cn_service_config cn_ratelimit_config;
extern const struct cn_js_natives cn_ratelimit_natives;

/* The key's bytes are copied. */
struct cn_ratelimit_call *cn_ratelimit_call_new(struct cn_namespace *ns, const void *key,
                                                size_t key_size, uint64_t limit, unsigned period_s);

#endif
