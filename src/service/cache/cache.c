/* SPDX-License-Identifier: Apache-2.0 */
#include "service/cache/cache.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/wire.h"

static struct {
    pthread_mutex_t lock; /* guards all that follows */
    bool ready;
    char *folder; /* owned; NULL: no disk. Set before threads start */
    struct cn_map entries;
    struct cn_list memory, disk; /* of struct cn_cache_entry.used, latest first */
    struct cn_cache_stats stats;
} cache = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void lock(void)
{
    pthread_mutex_lock(&cache.lock);
    if (cache.ready)
        return;
    cache.ready = true;
    cn_map_init(&cache.entries);
    cn_list_init(&cache.memory);
    cn_list_init(&cache.disk);
}

static void unlock(void)
{
    pthread_mutex_unlock(&cache.lock);
}

void cn_cache_setup(const char *folder)
{
    cn_free(cache.folder);
    cache.folder = folder ? cn_strdup(folder) : NULL;
    if (folder)
        (void)mkdir(folder, 0700); /* if it is not there, cn_cache_file() fails */
}

int cn_cache_file(void)
{
    if (!cache.folder)
        return -1;
    int fd = open(cache.folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0)
        return fd;
    char *path = cn_sprintf("%s/bodyXXXXXX", cache.folder);
    fd = mkostemp(path, O_CLOEXEC);
    if (fd >= 0)
        unlink(path);
    cn_free(path);
    return fd;
}

struct cn_cache_entry *cn_cache_entry_new(const void *key, size_t key_size)
{
    struct cn_cache_entry *entry = CN_NEW(struct cn_cache_entry);
    atomic_init(&entry->refs, 1);
    cn_list_init(&entry->used);
    entry->key = cn_memdup(key, key_size);
    entry->key_size = key_size;
    entry->fd = -1;
    return entry;
}

void cn_cache_entry_unref(struct cn_cache_entry *entry)
{
    if (!entry || atomic_fetch_sub(&entry->refs, 1) != 1)
        return;
    CN_ASSERT(!entry->listed);
    if (entry->fd >= 0)
        close(entry->fd);
    cn_free(entry->key);
    cn_free(entry->head);
    cn_free(entry->place);
    cn_free(entry->tags);
    cn_free(entry->body);
    cn_free(entry);
}

static uint64_t memory_of(const struct cn_cache_entry *entry)
{
    return sizeof(*entry) + entry->key_size * 2 + entry->head_size + entry->tags_size +
           (entry->place ? strlen(entry->place) : 0) + (entry->fd < 0 ? entry->size : 0);
}

static uint64_t disk_of(const struct cn_cache_entry *entry)
{
    return entry->fd < 0 ? 0 : entry->size;
}

/* Takes it out of the cache; the cache's reference is the caller's. */
static void unlist(struct cn_cache_entry *entry)
{
    struct cn_cache_entry *found = cn_map_take(&cache.entries, entry->key, entry->key_size);
    CN_ASSERT(found == entry && entry->listed);
    entry->listed = false;
    cn_list_remove(&entry->used);
    cache.stats.memory_bytes -= memory_of(entry);
    cache.stats.disk_bytes -= disk_of(entry);
}

/* What was used longest ago goes until the bounds hold. */
static void evict(struct cn_list *garbage)
{
    for (;;) {
        bool memory = cache.stats.memory_bytes > CN_CACHE_MEMORY_MAX ||
                      cache.entries.count > CN_CACHE_ENTRIES_MAX;
        bool disk = cache.stats.disk_bytes > CN_CACHE_DISK_MAX;
        struct cn_list *list = disk || cn_list_empty(&cache.memory) ? &cache.disk : &cache.memory;
        if ((!memory && !disk) || cn_list_empty(list))
            return;
        struct cn_cache_entry *entry = CN_CONTAINER_OF(list->prev, struct cn_cache_entry, used);
        unlist(entry);
        cn_list_push_back(garbage, &entry->used);
        cache.stats.evictions++;
    }
}

/* Outside the lock: files are closed, memory is freed. */
static void drop(struct cn_list *garbage)
{
    struct cn_list *node;
    while ((node = cn_list_take_front(garbage)))
        cn_cache_entry_unref(CN_CONTAINER_OF(node, struct cn_cache_entry, used));
}

void cn_cache_forget(void)
{
    struct cn_list garbage;
    cn_list_init(&garbage);
    lock();
    while (!cn_list_empty(&cache.memory)) {
        struct cn_cache_entry *entry =
            CN_CONTAINER_OF(cache.memory.next, struct cn_cache_entry, used);
        unlist(entry);
        cn_list_push_back(&garbage, &entry->used);
        cache.stats.evictions++;
    }
    unlock();
    drop(&garbage);
}

bool cn_cache_put(struct cn_cache_entry *entry)
{
    if (entry->size > CN_CACHE_BODY_MAX || memory_of(entry) > CN_CACHE_MEMORY_MAX / 4) {
        cn_cache_entry_unref(entry);
        return false;
    }
    struct cn_list garbage;
    cn_list_init(&garbage);
    lock();
    struct cn_cache_entry *old = cn_map_find(&cache.entries, entry->key, entry->key_size);
    if (old) {
        unlist(old);
        cn_list_push_back(&garbage, &old->used);
    }
    entry->listed = true;
    cn_map_set(&cache.entries, entry->key, entry->key_size, entry);
    cn_list_push_front(entry->fd < 0 ? &cache.memory : &cache.disk, &entry->used);
    cache.stats.memory_bytes += memory_of(entry);
    cache.stats.disk_bytes += disk_of(entry);
    evict(&garbage);
    unlock();
    drop(&garbage);
    return true;
}

struct cn_cache_entry *cn_cache_find(const void *key, size_t key_size, int64_t now_ms)
{
    struct cn_list garbage;
    cn_list_init(&garbage);
    lock();
    struct cn_cache_entry *entry = cn_map_find(&cache.entries, key, key_size);
    if (entry && entry->expires_ms <= now_ms) { /* H1 */
        unlist(entry);
        cn_list_push_back(&garbage, &entry->used);
        entry = NULL;
    }
    if (entry) {
        atomic_fetch_add(&entry->refs, 1);
        cn_list_remove(&entry->used);
        cn_list_push_front(entry->fd < 0 ? &cache.memory : &cache.disk, &entry->used);
        cache.stats.hits++;
    } else {
        cache.stats.misses++;
    }
    unlock();
    drop(&garbage);
    return entry;
}

bool cn_cache_remove(const void *key, size_t key_size, int64_t now_ms)
{
    struct cn_list garbage;
    cn_list_init(&garbage);
    bool fresh = false;
    lock();
    struct cn_cache_entry *entry = cn_map_find(&cache.entries, key, key_size);
    if (entry) {
        fresh = entry->expires_ms > now_ms;
        unlist(entry);
        cn_list_push_back(&garbage, &entry->used);
    }
    unlock();
    drop(&garbage);
    return fresh;
}

static bool has_tag(const struct cn_cache_entry *entry, const char *tag)
{
    const char *end = entry->tags + entry->tags_size;
    for (const char *at = entry->tags; at && at < end; at += strlen(at) + 1) {
        if (strcmp(at, tag) == 0)
            return true;
    }
    return false;
}

static bool is_below(const struct cn_cache_entry *entry, const char *path)
{
    const char *place = entry->place;
    if (place && path[0] == '/')
        place = strchr(place, '/');
    size_t size = strlen(path);
    if (!place || strncmp(place, path, size) != 0)
        return false;
    return size == 0 || path[size - 1] == '/' || place[size] == 0 || place[size] == '/';
}

static bool is_meant(const struct cn_cache_entry *entry, const struct cn_cache_purge *purge)
{
    if (entry->key_size < purge->prefix_size ||
        memcmp(entry->key, purge->prefix, purge->prefix_size) != 0)
        return false;
    bool meant = purge->everything;
    for (size_t at = 0; !meant && at < purge->tags_size; at += strlen(purge->tags + at) + 1)
        meant = has_tag(entry, purge->tags + at);
    for (size_t at = 0; !meant && at < purge->paths_size; at += strlen(purge->paths + at) + 1)
        meant = is_below(entry, purge->paths + at);
    return meant;
}

size_t cn_cache_purge(const struct cn_cache_purge *purge)
{
    struct cn_list garbage;
    cn_list_init(&garbage);
    size_t count = 0;
    lock();
    struct cn_list *const lists[] = {&cache.memory, &cache.disk};
    for (size_t i = 0; i < CN_ARRAY_COUNT(lists); i++) {
        CN_LIST_FOREACH(lists[i], node)
        {
            struct cn_cache_entry *entry = CN_CONTAINER_OF(node, struct cn_cache_entry, used);
            if (!is_meant(entry, purge))
                continue;
            unlist(entry);
            cn_list_push_back(&garbage, &entry->used);
            count++;
        }
    }
    unlock();
    drop(&garbage);
    return count;
}

/* --- purges of other nodes: H3 --------------------------------------------------------------- */

struct purge_asked {
    struct cn_buf prefix, tags, paths;
    bool everything;
};

static const struct cn_wire_field purge_fields[] = {
    CN_WIRE_BUF(1, struct purge_asked, prefix, UINT32_MAX),
    CN_WIRE_BUF(2, struct purge_asked, tags, UINT32_MAX),
    CN_WIRE_BUF(3, struct purge_asked, paths, UINT32_MAX),
    CN_WIRE_BOOL(4, struct purge_asked, everything), CN_WIRE_END};

static struct cn_buf borrowed(const char *bytes, size_t size)
{
    return (struct cn_buf){(uint8_t *)bytes, size, size};
}

void cn_cache_purge_put(const struct cn_cache_purge *purge, struct cn_buf *out)
{
    const struct purge_asked asked = {.prefix = borrowed(purge->prefix, purge->prefix_size),
                                      .tags = borrowed(purge->tags, purge->tags_size),
                                      .paths = borrowed(purge->paths, purge->paths_size),
                                      .everything = purge->everything};
    cn_wire_put(purge_fields, &asked, out);
}

/* Each text of a list has its NUL. */
static bool is_list(const struct cn_buf *texts)
{
    return !texts->size || !texts->data[texts->size - 1];
}

int cn_cache_purge_asked(struct cn_services *services, const uint8_t *bytes, size_t size,
                         struct cn_buf *answer, struct cn_err *err)
{
    struct purge_asked asked = {0};
    (void)services, (void)answer;
    int rc = cn_wire_get(purge_fields, &asked, bytes, size, NULL);
    if (rc == 0 && (!asked.prefix.size || !is_list(&asked.tags) || !is_list(&asked.paths)))
        rc = CN_EPROTOCOL;
    if (rc < 0) {
        cn_err_set(err, rc, "this is no purge");
    } else {
        struct cn_cache_purge purge = {.prefix = (const char *)asked.prefix.data,
                                       .prefix_size = asked.prefix.size,
                                       .tags = (const char *)asked.tags.data,
                                       .tags_size = asked.tags.size,
                                       .paths = (const char *)asked.paths.data,
                                       .paths_size = asked.paths.size,
                                       .everything = asked.everything};
        cn_cache_purge(&purge);
    }
    cn_wire_clear(purge_fields, &asked);
    return rc;
}

void cn_cache_stats(struct cn_cache_stats *stats)
{
    lock();
    *stats = cache.stats;
    stats->entries = cache.entries.count;
    unlock();
}

/* --- the descriptor -------------------------------------------------------------------------- */

const struct cn_service_def cn_service_cache = {
    .name = "cache",
    .title = "Cache API",
    .about = "responses that are kept for a while; `caches` is there without a binding",
    .page = "reference/cache.md",
    .asked = cn_cache_purge_asked,
    .natives = &cn_cache_natives,
    .metrics = cn_cache_metrics,
    .cache = cn_cache_numbers,
};
