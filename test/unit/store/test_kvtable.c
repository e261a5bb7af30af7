/* SPDX-License-Identifier: Apache-2.0 */
/* The key-value table agrees with a sorted array, whatever the range asked for. */
#include "store/kvtable.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/rand.h"
#include "test/lib/storetest.h"
#include "test/lib/test.h"

static struct cn_kv_bytes text(const char *bytes)
{
    return (struct cn_kv_bytes){bytes, strlen(bytes)};
}

TEST(kvtable, gets_what_was_put)
{
    struct cn_disk *disk = storetest_disk();
    struct cn_store *store = storetest_open(disk, NULL);
    struct cn_database *db = storetest_database(store, 1);
    struct cn_kv_bytes value;
    CHECK_INT(0, cn_kvtable_get(db, text("a"), &value, NULL)); /* no table yet */
    CHECK_INT(0, cn_kvtable_delete(db, text("a"), NULL));
    CHECK_INT(0, (long long)storetest_commit(db)); /* reading made nothing */
    CHECK_INT(0, cn_kvtable_put(db, text("a"), text("one"), NULL));
    CHECK_INT(0, cn_kvtable_put(db, text("a"), text("two"), NULL));
    CHECK_INT(0, cn_kvtable_put(db, text(""), (struct cn_kv_bytes){"\0\1", 2}, NULL));
    CHECK_INT(0, cn_kvtable_put(db, text("empty"), (struct cn_kv_bytes){NULL, 0}, NULL));
    CHECK_INT(1, cn_kvtable_get(db, text("a"), &value, NULL));
    CHECK(value.size == 3 && memcmp(value.data, "two", 3) == 0);
    storetest_commit(db);
    CHECK_INT(1, cn_kvtable_get(db, text(""), &value, NULL));
    CHECK(value.size == 2 && memcmp(value.data, "\0\1", 2) == 0);
    CHECK_INT(1, cn_kvtable_get(db, text("empty"), &value, NULL));
    CHECK_INT(0, (long long)value.size);
    CHECK_INT(1, cn_kvtable_delete(db, text("a"), NULL));
    CHECK_INT(0, cn_kvtable_delete(db, text("a"), NULL));
    cn_database_rollback(db);
    CHECK_INT(1, cn_kvtable_get(db, text("a"), &value, NULL));

    CHECK_INT(0, cn_database_delete_all(db, false, NULL));
    CHECK_INT(0, cn_kvtable_get(db, text("a"), &value, NULL));
    int level = cn_database_savepoint(db, NULL); /* the table itself comes and goes with them */
    CHECK_INT(0, cn_kvtable_put(db, text("b"), text("x"), NULL));
    CHECK_INT(0, cn_database_savepoint_rollback(db, level, NULL));
    CHECK_INT(0, cn_kvtable_get(db, text("b"), &value, NULL));
    CHECK_INT(0, cn_kvtable_put(db, text("c"), text("x"), NULL));
    cn_database_rollback(db);
    CHECK_INT(1, cn_kvtable_get(db, text("a"), &value, NULL));
    cn_database_close(db);
    cn_store_close(store);
    cn_disk_system_free(disk);
}

struct walk {
    struct cn_buf keys;
    struct cn_database *db;
    bool deletes;
    int stop_after;
};

static int on_pair(void *data, struct cn_kv_bytes key, struct cn_kv_bytes value)
{
    struct walk *walk = data;
    cn_buf_append(&walk->keys, key.data, key.size);
    cn_buf_append_byte(&walk->keys, ' ');
    if (walk->deletes)
        CHECK_INT(1, cn_kvtable_delete(walk->db, key, NULL));
    return walk->stop_after && --walk->stop_after == 0;
}

static void check_list(struct cn_database *db, struct cn_kvtable_range range, const char *want)
{
    struct walk walk = {.db = db};
    CHECK_INT(0, cn_kvtable_list(db, &range, on_pair, &walk, NULL));
    CHECK_STR(want, cn_buf_text(&walk.keys));
    cn_buf_fini(&walk.keys);
}

TEST(kvtable, lists_ranges_in_byte_order)
{
    struct cn_disk *disk = storetest_disk();
    struct cn_store *store = storetest_open(disk, NULL);
    struct cn_database *db = storetest_database(store, 1);
    static const char *const keys[] = {"b", "a", "ab", "abc", "b\xc3\xa9", "Z", "c"};
    check_list(db, (struct cn_kvtable_range){0}, "");
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        CHECK_INT(0, cn_kvtable_put(db, text(keys[i]), text("v"), NULL));
    check_list(db, (struct cn_kvtable_range){0}, "Z a ab abc b b\xc3\xa9 c ");
    check_list(db, (struct cn_kvtable_range){.reverse = true}, "c b\xc3\xa9 b abc ab a Z ");
    check_list(db, (struct cn_kvtable_range){.prefix = text("a")}, "a ab abc ");
    check_list(db, (struct cn_kvtable_range){.prefix = text("a"), .reverse = true, .limit = 2},
               "abc ab ");
    check_list(db, (struct cn_kvtable_range){.start = text("ab"), .end = text("b")}, "ab abc ");
    check_list(db, (struct cn_kvtable_range){.start = text("ab"), .start_after = true},
               "abc b b\xc3\xa9 c ");
    check_list(db, (struct cn_kvtable_range){.start = text("abb"), .prefix = text("a")}, "abc ");
    check_list(db, (struct cn_kvtable_range){.start = text("x"), .prefix = text("a")}, "");
    check_list(db, (struct cn_kvtable_range){.limit = 3}, "Z a ab ");
    struct walk walk = {.db = db, .deletes = true, .stop_after = 2};
    CHECK_INT(1, cn_kvtable_list(db, &(struct cn_kvtable_range){0}, on_pair, &walk, NULL));
    cn_buf_fini(&walk.keys);
    check_list(db, (struct cn_kvtable_range){0}, "ab abc b b\xc3\xa9 c ");
    cn_database_close(db);
    cn_store_close(store);
    cn_disk_system_free(disk);
}

static int count_pair(void *data, struct cn_kv_bytes key, struct cn_kv_bytes value)
{
    char want[16];
    snprintf(want, sizeof(want), "key-%05d", (*(int *)data)++);
    CHECK(key.size == 9 && memcmp(key.data, want, 9) == 0);
    return 0;
}

TEST(kvtable, a_long_listing_sees_every_key_once)
{
    struct cn_disk *disk = storetest_disk();
    struct cn_store *store = storetest_open(disk, NULL);
    struct cn_database *db = storetest_database(store, 1);
    for (int i = 0; i < 1000; i++) {
        char key[16];
        snprintf(key, sizeof(key), "key-%05d", i);
        CHECK_INT(0, cn_kvtable_put(db, text(key), text(key), NULL));
    }
    storetest_commit(db);
    int count = 0;
    CHECK_INT(0, cn_kvtable_list(db, &(struct cn_kvtable_range){0}, count_pair, &count, NULL));
    CHECK_INT(1000, count);
    struct walk walk = {.db = db, .deletes = true}; /* changes the table under the walk */
    CHECK_INT(
        0, cn_kvtable_list(db, &(struct cn_kvtable_range){.reverse = true}, on_pair, &walk, NULL));
    CHECK_INT(10000, (long long)walk.keys.size);
    check_list(db, (struct cn_kvtable_range){0}, "");
    cn_buf_fini(&walk.keys);
    cn_database_close(db);
    cn_store_close(store);
    cn_disk_system_free(disk);
}
