/* SPDX-License-Identifier: Apache-2.0 */
/* service/cache/cache.h - responses kept for caches.default, caches.open() and fetch(): bounded,
 * for the whole process.
 *
 * An entry is a key with a status, headers, and a body in memory or in a file. Small bodies are
 * kept in memory, large ones on disk; each side has a bound, past which the entries used
 * longest ago go. The index is in memory and the files begin anew with the process: a cache may
 * forget, and what it would have to sync costs more than it is worth.
 *
 * H1  An entry that has expired is never given out.
 * H2  A body does not change: whoever holds an entry reads it to its end, also when it was
 *     replaced, removed or evicted meanwhile.
 *
 * H3  Of a cluster every node has a cache of its own, as every location of the platform has; what
 *     is removed by cn_cache_remove() is removed here. A purge is for all: the other nodes are
 *     asked (service/node_calls.h), and it has not succeeded before each of them has done it.
 *
 * Threads:   any; one lock, held for the time of a look-up.
 * Ownership: the process; entries are counted. */
#ifndef CN_SERVICE_CACHE_CACHE_H
#define CN_SERVICE_CACHE_CACHE_H
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/list.h"
#include "service/def.h"

#define CN_CACHE_MEMORY_MAX (64u << 20) /* of bodies, heads and keys; */
#define CN_CACHE_DISK_MAX (1ull << 30)
#define CN_CACHE_BODY_MEMORY_MAX (256u << 10) /* a larger body goes to disk, */
#define CN_CACHE_BODY_MAX (512ull << 20)      /* one larger than this is not kept */
#define CN_CACHE_ENTRIES_MAX 200000
#define CN_CACHE_TAGS_SIZE_MAX (16u << 10) /* of one entry */

struct cn_cache_entry {
    atomic_uint refs;
    struct cn_list used; /* in the cache's list, latest first */
    bool listed;
    char *key; /* owned; any bytes */
    size_t key_size;
    int status;
    char *head; /* owned: "name: value\r\n"... */
    size_t head_size;
    char *place;      /* owned: "host/path", for purges by path; NULL: none */
    char *tags;       /* owned: for purges by tag, each with its NUL, in lower case; NULL: none */
    size_t tags_size; /* CN_CACHE_TAGS_SIZE_MAX at most */
    int64_t stored_ms, expires_ms;
    uint8_t *body; /* owned; NULL: in the file */
    int fd;        /* an unlinked file; -1: none */
    uint64_t size; /* of the body */
};

/* Where files go: a folder, made if need be. Without it only memory is used. Once, before lanes
 * start. */
void cn_cache_setup(const char *folder);

/* An open, unlinked file for a body; negative: there is none to be had. */
int cn_cache_file(void);

struct cn_cache_entry *cn_cache_entry_new(const void *key, size_t key_size);
void cn_cache_entry_unref(struct cn_cache_entry *entry);

/* Takes the reference over; replaces what has the same key. False: it is too large. */
bool cn_cache_put(struct cn_cache_entry *entry);
/* A reference, or NULL. */
struct cn_cache_entry *cn_cache_find(const void *key, size_t key_size, int64_t now_ms);
bool cn_cache_remove(const void *key, size_t key_size, int64_t now_ms);

/* Which entries a purge removes: of those whose key begins with `prefix` all, or those that one of
 * the tags or one of the paths fits. Lists of texts, each with its NUL; NULL: none. */
struct cn_cache_purge {
    const char *prefix;
    size_t prefix_size;
    const char *tags; /* in lower case */
    size_t tags_size;
    /* "/path" of any host, or "host/path": the place itself and what is below it, by segments. */
    const char *paths;
    size_t paths_size;
    bool everything;
};
/* For other nodes, and of them (service/node_calls.h). */
void cn_cache_purge_put(const struct cn_cache_purge *purge, struct cn_buf *out);
int cn_cache_purge_asked(struct cn_services *services, const uint8_t *bytes, size_t size,
                         struct cn_buf *answer, struct cn_err *err);
/* Returns how many. Looks at every entry while others wait: tens of milliseconds if there are very
 * many. */
size_t cn_cache_purge(const struct cn_cache_purge *purge);

/* Memory is short: entries whose bodies are in memory go. */
void cn_cache_forget(void);

struct cn_cache_stats {
    uint64_t hits, misses, evictions, entries, memory_bytes, disk_bytes;
};
void cn_cache_stats(struct cn_cache_stats *stats);

/* The descriptor (service/def.h) and its parts. */
extern const struct cn_service_def cn_service_cache;
extern const struct cn_js_natives cn_cache_natives;
void cn_cache_metrics(struct cn_metrics_sink *sink, const struct cn_metrics_sources *sources);
void cn_cache_numbers(const struct cn_metrics_sources *sources, struct cn_service_cache *numbers);

#endif
