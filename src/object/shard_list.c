/* SPDX-License-Identifier: Apache-2.0 */
#include "object/shard_list.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/mem.h"
#include "object/shard.h"
#include "store/store.h"

/* What a list is, to each catalog. */
struct question {
    const struct cn_catalog_listing *listing;
    int (*ask)(struct cn_catalog *catalog, const struct question *question,
               const struct cn_catalog_listing *listing, struct cn_err *err);
    int (*compare)(const void *a, const void *b);
    const void *after;
    size_t after_size;
    const char *prefix;
    size_t prefix_size;
    enum cn_catalog_order order;
};

/* The entries that are first, so far. */
struct page {
    struct cn_catalog_entry *entries; /* owned, and the name of each */
    size_t count, capacity;
};

static int collect(void *data, const struct cn_catalog_entry *entry)
{
    struct page *page = data;
    CN_GROW(page->entries, page->count, page->capacity);
    struct cn_catalog_entry *copy = &page->entries[page->count++];
    *copy = *entry;
    copy->name = entry->name ? cn_strndup(entry->name, entry->name_size) : NULL;
    return 0;
}

static void cut_page(struct page *page, size_t count)
{
    while (page->count > count)
        cn_free((char *)page->entries[--page->count].name);
}

static int ask_all(struct cn_shards *shards, const struct question *question, struct page *page,
                   struct cn_err *err)
{
    struct cn_catalog_listing each = *question->listing;
    each.each = collect;
    each.data = page;
    int rc = 0;
    for (unsigned i = 0; i < cn_shards_count(shards) && rc >= 0; i++) {
        struct cn_shard *shard = cn_shards_hold_index(shards, i);
        if (!shard)
            continue;
        rc = question->ask(cn_store_catalog(shard->store), question, &each, err);
        cn_shard_release(shard);
        if (page->count)
            qsort(page->entries, page->count, sizeof(*page->entries), question->compare);
        cut_page(page, (size_t)each.limit);
    }
    return rc < 0 ? rc : 0;
}

static int list_merged(struct cn_shards *shards, const struct question *question,
                       struct cn_err *err)
{
    const struct cn_catalog_listing *listing = question->listing;
    struct page page = {0};
    int rc = ask_all(shards, question, &page, err), count = 0;
    for (size_t i = 0; rc == 0 && i < page.count; i++) {
        count++;
        if (listing->each(listing->data, &page.entries[i]))
            break;
    }
    cut_page(&page, 0);
    cn_free(page.entries);
    return rc < 0 ? rc : count;
}

static int list(struct cn_shards *shards, const struct question *question, struct cn_err *err)
{
    if (cn_shards_count(shards) > 1)
        return list_merged(shards, question, err);
    struct cn_shard *only = cn_shards_hold_index(shards, 0);
    if (!only)
        return cn_err_set(err, CN_ECLOSED, "the store is closed");
    int rc = question->ask(cn_store_catalog(only->store), question, question->listing, err);
    cn_shard_release(only);
    return rc;
}

/* --- orders ---------------------------------------------------------------------------------- */

static int by_id(const void *a, const void *b)
{
    const struct cn_catalog_entry *one = a, *two = b;
    return memcmp(one->key.id, two->key.id, CN_OBJECT_ID_SIZE);
}

static int by_name(const void *a, const void *b)
{
    const struct cn_catalog_entry *one = a, *two = b;
    size_t size = one->name_size < two->name_size ? one->name_size : two->name_size;
    int order = size ? memcmp(one->name, two->name, size) : 0;
    return order ? order : (int)one->name_size - (int)two->name_size;
}

static int by_number(int64_t one, int64_t two, const void *a, const void *b)
{
    return one < two ? -1 : one > two ? 1 : by_id(a, b);
}

static int by_size(const void *a, const void *b)
{
    const struct cn_catalog_entry *one = a, *two = b;
    return by_number((int64_t)one->size, (int64_t)two->size, a, b);
}

static int by_size_down(const void *a, const void *b)
{
    return by_size(b, a);
}

static int by_change(const void *a, const void *b)
{
    const struct cn_catalog_entry *one = a, *two = b;
    return by_number(one->changed_ms, two->changed_ms, a, b);
}

static int by_change_down(const void *a, const void *b)
{
    return by_change(b, a);
}

static int by_alarm(const void *a, const void *b)
{
    const struct cn_catalog_entry *one = a, *two = b;
    return by_number(one->alarm_ms, two->alarm_ms, a, b);
}

/* --- lists ----------------------------------------------------------------------------------- */

static int ask_ids(struct cn_catalog *catalog, const struct question *question,
                   const struct cn_catalog_listing *listing, struct cn_err *err)
{
    return cn_catalog_list(catalog, listing->namespace_id, question->after, listing->limit,
                           listing->each, listing->data, err);
}

int cn_shards_list(struct cn_shards *shards, const struct cn_catalog_listing *listing,
                   const uint8_t after[CN_OBJECT_ID_SIZE], struct cn_err *err)
{
    struct question question = {
        .listing = listing, .ask = ask_ids, .compare = by_id, .after = after};
    return list(shards, &question, err);
}

static int ask_names(struct cn_catalog *catalog, const struct question *question,
                     const struct cn_catalog_listing *listing, struct cn_err *err)
{
    return cn_catalog_list_names(catalog, listing, question->prefix, question->prefix_size,
                                 question->after, question->after_size, err);
}

int cn_shards_list_names(struct cn_shards *shards, const struct cn_catalog_listing *listing,
                         const char *prefix, size_t prefix_size, const char *after,
                         size_t after_size, struct cn_err *err)
{
    struct question question = {.listing = listing,
                                .ask = ask_names,
                                .compare = by_name,
                                .after = after,
                                .after_size = after_size,
                                .prefix = prefix,
                                .prefix_size = prefix_size};
    return list(shards, &question, err);
}

static int ask_sorted(struct cn_catalog *catalog, const struct question *question,
                      const struct cn_catalog_listing *listing, struct cn_err *err)
{
    return cn_catalog_list_sorted(catalog, listing, question->order, question->after, err);
}

int cn_shards_list_sorted(struct cn_shards *shards, const struct cn_catalog_listing *listing,
                          enum cn_catalog_order order, const struct cn_catalog_cursor *after,
                          struct cn_err *err)
{
    static int (*const orders[])(const void *a, const void *b) = {
        [CN_CATALOG_SMALLEST] = by_size,    [CN_CATALOG_LARGEST] = by_size_down,
        [CN_CATALOG_OLDEST] = by_change,    [CN_CATALOG_LATEST] = by_change_down,
        [CN_CATALOG_NEXT_ALARM] = by_alarm,
    };
    struct question question = {.listing = listing,
                                .ask = ask_sorted,
                                .compare = orders[order],
                                .after = after,
                                .order = order};
    return list(shards, &question, err);
}

/* --- single answers -------------------------------------------------------------------------- */

int cn_shards_find(struct cn_shards *shards, const struct cn_object_key *key,
                   struct cn_catalog_entry *entry, char name_buffer[CN_OBJECT_NAME_MAX + 1],
                   struct cn_err *err)
{
    struct cn_shard *shard;
    int rc = cn_shards_hold(shards, key, &shard, err);
    if (rc < 0)
        return rc;
    rc = cn_catalog_find(cn_store_catalog(shard->store), key, entry, name_buffer, err);
    cn_shard_release(shard);
    return rc;
}

int cn_shards_count_objects(struct cn_shards *shards, uint32_t namespace_id, uint64_t *count,
                            uint64_t *size, struct cn_err *err)
{
    uint64_t counts = 0, sizes = 0;
    int rc = 0;
    for (unsigned i = 0; i < cn_shards_count(shards) && rc >= 0; i++) {
        struct cn_shard *shard = cn_shards_hold_index(shards, i);
        uint64_t some = 0, bytes = 0;
        if (!shard)
            continue;
        rc = cn_catalog_count(cn_store_catalog(shard->store), namespace_id, &some, &bytes, err);
        cn_shard_release(shard);
        counts += some;
        sizes += bytes;
    }
    if (rc < 0)
        return rc;
    *count = counts;
    *size = sizes;
    return 0;
}

int cn_shards_namespace_find(struct cn_shards *shards, const char *name, uint32_t *namespace_id,
                             struct cn_err *err)
{
    int rc = 0;
    for (unsigned i = 0; i < cn_shards_count(shards) && rc == 0; i++) {
        struct cn_shard *shard = cn_shards_hold_index(shards, i);
        if (!shard)
            continue;
        rc = cn_catalog_namespace_find(cn_store_catalog(shard->store), name, strlen(name),
                                       namespace_id, err);
        cn_shard_release(shard);
    }
    return rc;
}

int cn_shards_namespace_name(struct cn_shards *shards, uint32_t namespace_id,
                             char name[CN_OBJECT_NAME_MAX + 1], struct cn_err *err)
{
    int rc = 0;
    for (unsigned i = 0; i < cn_shards_count(shards) && rc == 0; i++) {
        struct cn_shard *shard = cn_shards_hold_index(shards, i);
        if (!shard)
            continue;
        rc = cn_catalog_namespace_name(cn_store_catalog(shard->store), namespace_id, name, err);
        cn_shard_release(shard);
    }
    return rc;
}

int cn_shards_namespace_last(struct cn_shards *shards, uint32_t *namespace_id, struct cn_err *err)
{
    uint32_t largest = 0;
    int rc = 0;
    for (unsigned i = 0; i < cn_shards_count(shards) && rc >= 0; i++) {
        struct cn_shard *shard = cn_shards_hold_index(shards, i);
        uint32_t last = 0;
        if (!shard)
            continue;
        rc = cn_catalog_namespace_last(cn_store_catalog(shard->store), &last, err);
        cn_shard_release(shard);
        largest = last > largest ? last : largest;
    }
    if (rc < 0)
        return rc;
    *namespace_id = largest;
    return 0;
}
