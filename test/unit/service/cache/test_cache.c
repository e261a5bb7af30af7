/* SPDX-License-Identifier: Apache-2.0 */
/* The store of the Cache API: expiry, replacement under a reader, bounds. */
#include "service/cache/cache.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "test/lib/test.h"

static bool put(const char *key, const char *body, size_t size, int64_t expires_ms)
{
    struct cn_cache_entry *entry = cn_cache_entry_new(key, strlen(key));
    entry->status = 200;
    entry->body = cn_alloc(size + 1);
    memset(entry->body, body[0], size);
    entry->size = size;
    entry->expires_ms = expires_ms;
    return cn_cache_put(entry);
}

static struct cn_cache_entry *find(const char *key, int64_t now_ms)
{
    return cn_cache_find(key, strlen(key), now_ms);
}

TEST(cache, an_entry_that_has_expired_is_gone)
{
    CHECK(put("a", "x", 10, 1000));
    struct cn_cache_entry *entry = find("a", 999);
    CHECK(entry && entry->size == 10);
    cn_cache_entry_unref(entry);
    CHECK(!find("a", 1000));
    CHECK(!find("a", 999)); /* it was dropped */
    CHECK(put("a", "x", 10, 1000));
    CHECK(!cn_cache_remove("a", 1, 1000)); /* there, but over */
}

TEST(cache, a_reader_keeps_what_it_has)
{
    CHECK(put("b", "1", 5, INT64_MAX));
    struct cn_cache_entry *old = find("b", 0);
    CHECK(put("b", "2", 6, INT64_MAX));
    CHECK_INT('1', old->body[4]);
    struct cn_cache_entry *new = find("b", 0);
    CHECK_INT('2', new->body[5]);
    CHECK(cn_cache_remove("b", 1, 0));
    CHECK(!find("b", 0));
    CHECK_INT('2', new->body[0]);
    cn_cache_entry_unref(old);
    cn_cache_entry_unref(new);
}

TEST(cache, what_was_used_longest_ago_goes_first)
{
    char key[32];
    size_t size = CN_CACHE_MEMORY_MAX / 20;
    for (int i = 0; i < 40; i++) {
        snprintf(key, sizeof(key), "lru%d", i);
        CHECK(put(key, "x", size, INT64_MAX));
        cn_cache_entry_unref(find("lru0", 0)); /* stays in use */
    }
    struct cn_cache_stats stats;
    cn_cache_stats(&stats);
    CHECK(stats.memory_bytes <= CN_CACHE_MEMORY_MAX && stats.evictions >= 20);
    struct cn_cache_entry *first = find("lru0", 0), *last = find("lru39", 0);
    CHECK(first && last && !find("lru1", 0));
    cn_cache_entry_unref(first);
    cn_cache_entry_unref(last);
    CHECK(!put("huge", "x", CN_CACHE_MEMORY_MAX / 2, INT64_MAX));
    CHECK(cn_cache_purge(&(struct cn_cache_purge){"lru", 3, .everything = true}) > 10);
    cn_cache_stats(&stats);
    CHECK_INT(0, stats.entries);
    CHECK_INT(0, stats.memory_bytes);
}

static void put_tagged(const char *key, const char *place, const char *tags, size_t tags_size)
{
    struct cn_cache_entry *entry = cn_cache_entry_new(key, strlen(key));
    entry->status = 200;
    entry->expires_ms = INT64_MAX;
    entry->place = cn_strdup(place);
    entry->tags = tags ? cn_memdup(tags, tags_size) : NULL;
    entry->tags_size = tags_size;
    CHECK(cn_cache_put(entry));
}

static bool is_there(const char *key)
{
    struct cn_cache_entry *entry = find(key, 0);
    cn_cache_entry_unref(entry);
    return entry != NULL;
}

TEST(cache, a_purge_takes_what_it_names_and_no_more)
{
    put_tagged("w1 a", "h.com/a", "red\0blue", 9);
    put_tagged("w1 b", "h.com/a/b", "redder", 7);
    put_tagged("w1 c", "other.com/ab", NULL, 0);
    put_tagged("w2 a", "h.com/a", "red", 4);
    CHECK_INT(0, cn_cache_purge(&(struct cn_cache_purge){.prefix = "w1 ", .prefix_size = 3}));
    CHECK_INT(0, cn_cache_purge(&(struct cn_cache_purge){"w1 ", 3, .tags = "re", .tags_size = 3}));
    CHECK_INT(
        1, cn_cache_purge(&(struct cn_cache_purge){"w1 ", 3, .tags = "no\0blue", .tags_size = 8}));
    CHECK(!is_there("w1 a") && is_there("w1 b") && is_there("w2 a"));
    put_tagged("w1 a", "h.com/a", NULL, 0);
    /* "/a" has a and a/b, not ab; a host has its own */
    CHECK_INT(2,
              cn_cache_purge(&(struct cn_cache_purge){"w1 ", 3, .paths = "/a", .paths_size = 3}));
    CHECK(is_there("w1 c"));
    CHECK_INT(0, cn_cache_purge(
                     &(struct cn_cache_purge){"w1 ", 3, .paths = "h.com/ab", .paths_size = 9}));
    CHECK_INT(1, cn_cache_purge(&(struct cn_cache_purge){"w1 ", 3, .paths = "/", .paths_size = 2}));
    CHECK_INT(1, cn_cache_purge(&(struct cn_cache_purge){"w", 1, .everything = true}));
    struct cn_cache_stats stats;
    cn_cache_stats(&stats);
    CHECK_INT(0, stats.entries);
    CHECK_INT(0, stats.memory_bytes);
}

TEST(cache, files_are_bounded_by_themselves)
{
    char dir[] = "/tmp/cairn-test-cache-XXXXXX";
    CHECK(mkdtemp(dir));
    cn_cache_setup(dir);
    for (int i = 0; i < 5; i++) {
        char key[16];
        snprintf(key, sizeof(key), "f%d", i);
        struct cn_cache_entry *entry = cn_cache_entry_new(key, strlen(key));
        entry->fd = cn_cache_file();
        CHECK(entry->fd >= 0);
        entry->size = CN_CACHE_BODY_MAX; /* as it claims: four of them are too much */
        entry->expires_ms = INT64_MAX;
        CHECK(cn_cache_put(entry));
    }
    struct cn_cache_stats stats;
    cn_cache_stats(&stats);
    CHECK_INT(2, stats.entries);
    CHECK(stats.disk_bytes <= CN_CACHE_DISK_MAX);
    cn_cache_purge(&(struct cn_cache_purge){"f", 1, .everything = true});
    cn_cache_setup(NULL);
    CHECK_INT(-1, cn_cache_file());
    CHECK_INT(0, rmdir(dir)); /* the files have no names */
}
