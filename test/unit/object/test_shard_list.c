/* SPDX-License-Identifier: Apache-2.0 */
/* Lists over several catalogs are those of one that had everything. */
#include "object/shard_list.h"

#include <stdlib.h>

#include "test/unit/object/counter.h"
#include "test/unit/object/shard_world.h"

enum { OBJECTS = 60 };

struct seen {
    struct cn_catalog_entry entries[OBJECTS];
    char names[OBJECTS][32];
    int count;
    int stop_after; /* 0: never */
};

static int see(void *data, const struct cn_catalog_entry *entry)
{
    struct seen *seen = data;
    CHECK(seen->count < OBJECTS);
    seen->entries[seen->count] = *entry;
    snprintf(seen->names[seen->count], sizeof(seen->names[0]), "%.*s", (int)entry->name_size,
             entry->name ? entry->name : "");
    seen->count++;
    return seen->count == seen->stop_after;
}

static struct cn_catalog_listing ask_for(struct shard_world *own, int limit, struct seen *seen)
{
    return (struct cn_catalog_listing){own->world.ns->id, limit, see, seen};
}

static void fill(struct shard_world *own)
{
    char name[32];
    shard_world_open(own, test_dir(), &counter);
    for (int i = 0; i < OBJECTS; i++) {
        snprintf(name, sizeof(name), "n%02d", i);
        own->world.clock.wall_ms += 10;
        ask(&own->world, name, ADD);
        if (i % 3 == 0) {
            own->world.alarm_in_ms = 1000000 - i * 1000;
            ask(&own->world, name, SET_ALARM);
        }
    }
}

TEST(shard_list, pages_by_id_name_and_time_go_over_all_shards_in_order)
{
    struct shard_world own;
    struct cn_err err;
    fill(&own);
    struct cn_shards *shards = own.world.shards;
    struct seen ids = {0}, names = {0}, times = {0};
    uint8_t after[CN_OBJECT_ID_SIZE];
    struct cn_catalog_cursor cursor;
    for (int page = 0; page < OBJECTS / 7 + 1; page++) {
        struct cn_catalog_listing listing = ask_for(&own, 7, &ids);
        if (ids.count)
            memcpy(after, ids.entries[ids.count - 1].key.id, sizeof(after));
        CHECK(cn_shards_list(shards, &listing, ids.count ? after : NULL, &err) >= 0);
        listing = ask_for(&own, 7, &names);
        const char *last = names.count ? names.names[names.count - 1] : NULL;
        CHECK(cn_shards_list_names(shards, &listing, "n", 1, last, last ? strlen(last) : 0, &err) >=
              0);
        listing = ask_for(&own, 7, &times);
        if (times.count) {
            cursor.value = times.entries[times.count - 1].changed_ms;
            memcpy(cursor.id, times.entries[times.count - 1].key.id, sizeof(cursor.id));
        }
        CHECK(cn_shards_list_sorted(shards, &listing, CN_CATALOG_LATEST,
                                    times.count ? &cursor : NULL, &err) >= 0);
    }
    CHECK_INT(OBJECTS, ids.count);
    CHECK_INT(OBJECTS, names.count);
    CHECK_INT(OBJECTS, times.count);
    for (int i = 1; i < OBJECTS; i++) {
        CHECK(memcmp(ids.entries[i - 1].key.id, ids.entries[i].key.id, CN_OBJECT_ID_SIZE) < 0);
        CHECK(strcmp(names.names[i - 1], names.names[i]) < 0);
        CHECK(times.entries[i - 1].changed_ms >= times.entries[i].changed_ms);
    }
    shard_world_close(&own);
}

TEST(shard_list, alarms_come_by_time_and_a_list_may_be_ended)
{
    struct shard_world own;
    struct cn_err err;
    fill(&own);
    struct seen all = {0}, some = {.stop_after = 3};
    struct cn_catalog_listing listing = ask_for(&own, OBJECTS, &all);
    CHECK_INT(OBJECTS / 3,
              cn_shards_list_sorted(own.world.shards, &listing, CN_CATALOG_NEXT_ALARM, NULL, &err));
    for (int i = 1; i < all.count; i++)
        CHECK(all.entries[i - 1].alarm_ms <= all.entries[i].alarm_ms);
    listing = ask_for(&own, OBJECTS, &some);
    CHECK_INT(3, cn_shards_list(own.world.shards, &listing, NULL, &err));
    shard_world_close(&own);
}

TEST(shard_list, what_is_closed_is_left_out_and_told_apart_from_what_is_not_there)
{
    struct shard_world own;
    struct cn_err err;
    struct cn_catalog_entry entry;
    char name[CN_OBJECT_NAME_MAX + 1];
    uint64_t count, size;
    uint32_t id, last;
    fill(&own);
    struct cn_shards *shards = own.world.shards;
    CHECK_INT(0, cn_shards_count_objects(shards, own.world.ns->id, &count, &size, &err));
    CHECK(count == OBJECTS && size > 0);
    struct seen all = {0}, rest = {0};
    struct cn_catalog_listing listing = ask_for(&own, OBJECTS, &all);
    CHECK_INT(OBJECTS, cn_shards_list(shards, &listing, NULL, &err));
    shard_close(&own, 2);
    listing = ask_for(&own, OBJECTS, &rest);
    CHECK(cn_shards_list(shards, &listing, NULL, &err) > 0);
    CHECK_INT(0, cn_shards_count_objects(shards, own.world.ns->id, &count, &size, &err));
    CHECK(count == (uint64_t)rest.count && rest.count < OBJECTS);
    for (int i = 0; i < OBJECTS; i++) {
        bool closed = cn_shard_index(&all.entries[i].key, SHARDS) == 2;
        int found = cn_shards_find(shards, &all.entries[i].key, &entry, name, &err);
        CHECK_INT(closed ? CN_ECLOSED : 1, found);
    }
    CHECK_INT(1, cn_shards_namespace_find(shards, "test/Counter", &id, &err));
    CHECK_INT(own.world.ns->id, id);
    CHECK_INT(1, cn_shards_namespace_name(shards, id, name, &err));
    CHECK_STR("test/Counter", name);
    CHECK_INT(0, cn_shards_namespace_find(shards, "test/Nobody", &id, &err));
    CHECK_INT(0, cn_shards_namespace_last(shards, &last, &err));
    CHECK(last >= own.world.ns->id);
    shard_world_close(&own);
}
