/* SPDX-License-Identifier: Apache-2.0 */
/* The catalog: lists in order and by cursor, forgets what was deleted, ignores the past. */
#include "store/catalog.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "store/sqlite.h"
#include "test/lib/simdisk.h"
#include "test/lib/storetest.h"
#include "test/lib/test.h"

static struct cn_catalog_change change_of(unsigned number, uint64_t lsn)
{
    return (struct cn_catalog_change){
        .key = storetest_key(number), .lsn = lsn, .time_ms = (int64_t)lsn * 10, .page_count = 2};
}

struct list {
    struct cn_buf text;
    struct cn_catalog_entry last;
};

static int on_entry(void *data, const struct cn_catalog_entry *entry)
{
    struct list *list = data;
    if (entry->name)
        cn_buf_printf(&list->text, "%.*s ", entry->name_size, entry->name);
    else
        cn_buf_printf(&list->text, "- ");
    list->last = *entry;
    return 0;
}

static struct cn_catalog *open_catalog(struct simdisk *sim)
{
    struct cn_catalog *catalog;
    struct cn_err err = {0};
    CHECK_INT(0, cn_sqlite_setup(&err));
    if (cn_catalog_open(simdisk_disk(sim), &catalog, &err) < 0)
        test_fail(__FILE__, __LINE__, "%s", err.text);
    return catalog;
}

static void enter(struct cn_catalog *catalog, const struct cn_catalog_change *change)
{
    struct cn_err err = {0};
    if (cn_catalog_apply(catalog, change, &err) < 0)
        test_fail(__FILE__, __LINE__, "%s", err.text);
}

TEST(catalog, keeps_what_a_later_change_does_not_mention)
{
    struct simdisk *sim = simdisk_new();
    struct cn_catalog *catalog = open_catalog(sim);
    struct cn_catalog_entry entry;
    char name[CN_OBJECT_NAME_MAX + 1];
    struct cn_catalog_change change = change_of(1, 5);
    change.name = "first";
    change.name_size = 5;
    change.has_alarm = true;
    change.alarm_ms = 100;
    enter(catalog, &change);
    change = change_of(1, 7);
    change.page_count = 9;
    enter(catalog, &change);
    change = change_of(1, 6); /* out of date */
    change.has_alarm = true;
    change.alarm_ms = CN_ALARM_NONE;
    enter(catalog, &change);
    struct cn_object_key key = storetest_key(1);
    CHECK_INT(1, cn_catalog_find(catalog, &key, &entry, name, NULL));
    CHECK(entry.alarm_ms == 100 && entry.size == 9 * CN_PAGE_SIZE && entry.lsn == 7);
    CHECK(entry.created_ms == 50 && entry.changed_ms == 70);
    CHECK_STR("first", name);

    change = change_of(1, 9); /* deleted at 8 and made again at 9 */
    change.reborn_lsn = 8;
    enter(catalog, &change);
    enter(catalog, &change); /* twice does no harm */
    CHECK_INT(1, cn_catalog_find(catalog, &key, &entry, name, NULL));
    CHECK(entry.name == NULL && entry.alarm_ms == CN_ALARM_NONE && entry.created_ms == 90);
    change = change_of(1, 10);
    change.deleted = true;
    enter(catalog, &change);
    CHECK_INT(0, cn_catalog_find(catalog, &key, &entry, name, NULL));
    cn_catalog_close(catalog);
    simdisk_free(sim);
}

/* At most `limit` names with a prefix after another. */
static int list_names(struct cn_catalog *catalog, uint32_t namespace_id, const char *prefix,
                      const char *after, int limit, struct list *list)
{
    struct cn_catalog_listing listing = {
        .namespace_id = namespace_id, .limit = limit, .each = on_entry, .data = list};
    return cn_catalog_list_names(catalog, &listing, prefix, strlen(prefix), after,
                                 after ? strlen(after) : 0, NULL);
}

TEST(catalog, lists_by_name_and_by_alarm)
{
    struct simdisk *sim = simdisk_new();
    struct cn_catalog *catalog = open_catalog(sim);
    static const char *const names[] = {"room/2", "room/10", "user/7", "room/1", "a", "room0"};
    for (unsigned i = 0; i < 6; i++) {
        struct cn_catalog_change change = change_of(i, 1);
        change.name = names[i];
        change.name_size = (uint16_t)strlen(names[i]);
        change.has_alarm = i != 4;
        change.alarm_ms = 1000 - (int64_t)(i / 2) * 100; /* pairs at the same time */
        enter(catalog, &change);
    }
    struct list list = {0};
    CHECK_INT(3, list_names(catalog, 1, "room/", NULL, 10, &list));
    CHECK_STR("room/1 room/10 room/2 ", cn_buf_text(&list.text));
    cn_buf_clear(&list.text);
    CHECK_INT(1, list_names(catalog, 1, "room/", "room/1", 1, &list));
    CHECK_STR("room/10 ", cn_buf_text(&list.text));
    cn_buf_clear(&list.text);
    CHECK_INT(1, list_names(catalog, 1, "room/2", "a", 9, &list));
    CHECK_INT(0, list_names(catalog, 1, "room/", "z", 9, &list));
    CHECK_INT(5, list_names(catalog, 1, "", "a", 9, &list));
    cn_buf_clear(&list.text);
    CHECK_INT(6, list_names(catalog, 1, "", NULL, 10, &list));
    CHECK_STR("a room/1 room/10 room/2 room0 user/7 ", cn_buf_text(&list.text));
    CHECK_INT(0, list_names(catalog, 2, "", NULL, 10, &list));

    struct cn_alarm_cursor cursor;
    int total = 0, got;
    int64_t last = 0;
    const struct cn_alarm_cursor *after = NULL;
    while ((got = cn_catalog_list_alarms(catalog, 950, after, 2, on_entry, &list, NULL)) > 0) {
        total += got;
        CHECK(list.last.alarm_ms >= last && list.last.alarm_ms <= 950);
        last = list.last.alarm_ms;
        cursor = (struct cn_alarm_cursor){list.last.alarm_ms, list.last.key};
        after = &cursor;
    }
    CHECK_INT(3, total); /* 800, 900, 900; the one without an alarm is not there */
    cn_buf_fini(&list.text);
    uint64_t count, size;
    CHECK_INT(0, cn_catalog_count(catalog, 0, &count, &size, NULL));
    CHECK(count == 6 && size == 12 * CN_PAGE_SIZE);
    cn_catalog_close(catalog);
    simdisk_free(sim);
}

TEST(catalog, lists_everything_page_by_page)
{
    struct simdisk *sim = simdisk_new();
    struct cn_catalog *catalog = open_catalog(sim);
    for (unsigned i = 0; i < 500; i++) {
        struct cn_catalog_change change = change_of(i, 1);
        enter(catalog, &change);
    }
    struct list list = {0};
    const uint8_t *after = NULL;
    uint8_t cursor[CN_OBJECT_ID_SIZE];
    int total = 0, got;
    while ((got = cn_catalog_list(catalog, 1, after, 64, on_entry, &list, NULL)) > 0) {
        total += got;
        CHECK(!after || memcmp(list.last.key.id, cursor, sizeof(cursor)) > 0);
        memcpy(cursor, list.last.key.id, sizeof(cursor));
        after = cursor;
    }
    CHECK_INT(500, total);
    cn_buf_fini(&list.text);
    cn_catalog_close(catalog);
    simdisk_free(sim);
}

TEST(catalog, what_was_not_flushed_is_gone_after_a_crash)
{
    struct simdisk *sim = simdisk_new();
    struct cn_catalog *catalog = open_catalog(sim);
    struct cn_catalog_change change = change_of(1, 1);
    enter(catalog, &change);
    CHECK_INT(0, cn_catalog_flush(catalog, NULL, NULL));
    change = change_of(2, 1);
    enter(catalog, &change);
    struct simdisk *after = simdisk_crash(sim, test_seed());
    cn_catalog_close(catalog);
    catalog = open_catalog(after);
    uint64_t count, size;
    CHECK_INT(0, cn_catalog_count(catalog, 1, &count, &size, NULL));
    CHECK_INT(1, (long long)count);
    cn_catalog_close(catalog);
    simdisk_free(after);
    simdisk_free(sim);
}

/* All pages of a sorted list, two at a time, as numbers of objects. */
static void list_sorted(struct cn_catalog *catalog, enum cn_catalog_order order, const char *want)
{
    struct list list = {0};
    struct cn_catalog_cursor cursor;
    bool first = true;
    int count;
    do {
        struct cn_catalog_listing listing = {.namespace_id = storetest_key(1).namespace_id,
                                             .limit = 2,
                                             .each = on_entry,
                                             .data = &list};
        count = cn_catalog_list_sorted(catalog, &listing, order, first ? NULL : &cursor, NULL);
        CHECK(count >= 0);
        cursor.value = order == CN_CATALOG_NEXT_ALARM ? list.last.alarm_ms
                       : order == CN_CATALOG_OLDEST || order == CN_CATALOG_LATEST
                           ? list.last.changed_ms
                           : (int64_t)list.last.size;
        memcpy(cursor.id, list.last.key.id, sizeof(cursor.id));
        first = false;
    } while (count == 2);
    CHECK_STR(want, cn_buf_text(&list.text));
    cn_buf_fini(&list.text);
}

TEST(catalog, lists_by_size_last_change_and_alarm)
{
    /* name, pages, lsn (and so time), alarm */
    static const struct {
        const char *name;
        uint32_t pages;
        uint64_t lsn;
        int64_t alarm_ms;
    } objects[] = {{"a", 5, 9, 300},
                   {"b", 1, 3, CN_ALARM_NONE},
                   {"c", 4, 1, 100},
                   {"d", 2, 7, 200},
                   {"e", 9, 5, 250}};
    struct simdisk *sim = simdisk_new();
    struct cn_catalog *catalog = open_catalog(sim);
    for (unsigned i = 0; i < 5; i++) {
        struct cn_catalog_change change = change_of(i + 1, objects[i].lsn);
        change.page_count = objects[i].pages;
        change.name = objects[i].name;
        change.name_size = 1;
        change.has_alarm = true;
        change.alarm_ms = objects[i].alarm_ms;
        enter(catalog, &change);
    }
    list_sorted(catalog, CN_CATALOG_SMALLEST, "b d c a e ");
    list_sorted(catalog, CN_CATALOG_LARGEST, "e a c d b ");
    list_sorted(catalog, CN_CATALOG_OLDEST, "c b e d a ");
    list_sorted(catalog, CN_CATALOG_LATEST, "a d e b c ");
    list_sorted(catalog, CN_CATALOG_NEXT_ALARM, "c d e a ");
    cn_catalog_close(catalog);
    simdisk_free(sim);
}
