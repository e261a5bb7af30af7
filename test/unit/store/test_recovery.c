/* SPDX-License-Identifier: Apache-2.0 */
/* Recovery: what was committed is there after a kill; damage is reported, never skipped. */
#include "store/recovery.h"

#include <stdio.h>
#include <string.h>

#include "store/catalog.h"
#include "store/checkpoint.h"
#include "store/image_private.h"
#include "store/log.h"
#include "store/store_private.h"
#include "store/sums.h"
#include "test/lib/simdisk.h"
#include "test/lib/storetest.h"
#include "test/lib/test.h"

static const struct cn_store_config manual = {.manual = true, .segment_size = 64 << 10};

/* A disk as left by a process that was killed after making three rows in object 1
 * and two in object 2, each row a commit. Nothing was written back. */
static struct simdisk *killed(void)
{
    struct simdisk *sim = simdisk_new();
    struct cn_store *store = storetest_open(simdisk_disk(sim), &manual);
    struct cn_database *one = storetest_database(store, 1), *two = storetest_database(store, 2);
    storetest_exec(one, "CREATE TABLE t(a, b)");
    storetest_exec(two, "CREATE TABLE t(a, b)");
    storetest_commit(one);
    storetest_commit(two);
    CHECK_INT(0, cn_database_set_alarm(two, 777, NULL));
    uint64_t lsn = 0;
    for (int i = 0; i < 5; i++) {
        struct cn_database *db = i % 2 ? two : one;
        storetest_exec(db, "INSERT INTO t VALUES((SELECT count(*) FROM t), randomblob(900))");
        lsn = storetest_commit(db);
        CHECK_INT(0, cn_store_wait(store, lsn, NULL)); /* a flush each */
    }
    struct simdisk *after = simdisk_copy(sim);
    cn_database_close(one);
    cn_database_close(two);
    cn_store_close(store);
    simdisk_free(sim);
    return after;
}

static void check_rows(struct simdisk *sim, int one, int two)
{
    struct cn_store *store = storetest_open(simdisk_disk(sim), &manual);
    struct cn_database *db = storetest_database(store, 1);
    CHECK_INT(one, storetest_int(db, "SELECT count(*) FROM t"));
    CHECK_STR("ok", storetest_text(db, "PRAGMA integrity_check"));
    cn_database_close(db);
    db = storetest_database(store, 2);
    CHECK_INT(two, storetest_int(db, "SELECT count(*) FROM t"));
    CHECK_INT(777, cn_database_alarm(db));
    cn_database_close(db);
    cn_store_close(store);
}

TEST(recovery, brings_back_what_was_durable)
{
    struct simdisk *sim = killed();
    struct simdisk *again = simdisk_copy(sim);
    struct cn_store *store = storetest_open(simdisk_disk(sim), &manual);
    struct cn_store_stats stats;
    cn_store_stats(store, &stats);
    CHECK_INT(8, stats.recovered_records); /* with the namespace */
    cn_store_close(store);
    check_rows(sim, 3, 2);
    store = storetest_open(simdisk_disk(sim), &manual); /* closed clean: nothing to redo */
    cn_store_stats(store, &stats);
    CHECK_INT(0, stats.recovered_records);
    cn_store_close(store);
    simdisk_free(sim);

    /* Killed again right after its recovery: the same once more. */
    store = storetest_open(simdisk_disk(again), &manual);
    struct simdisk *third = simdisk_copy(again);
    cn_store_close(store);
    check_rows(third, 3, 2);
    simdisk_free(again);
    simdisk_free(third);
}

/* Opens a damaged disk; the code, and the sentence in `err`. */
static int open_damaged(struct simdisk *sim, struct cn_err *err)
{
    struct cn_store_config config = manual;
    struct cn_store *store;
    config.disk = simdisk_disk(sim);
    *err = (struct cn_err){0};
    int rc = cn_store_open(&config, &store, err);
    if (rc == 0)
        cn_store_close(store);
    return rc;
}

/* Offset of the n-th record (from 0) of the first segment. */
static uint64_t record_offset(struct simdisk *sim, int n)
{
    struct cn_segment_reader reader;
    struct cn_record record;
    CHECK_INT(0, cn_segment_reader_open(&reader, simdisk_disk(sim), "log/0000000001.seg", NULL));
    for (int i = 0; i < n; i++)
        CHECK_INT(1, cn_segment_reader_next(&reader, &record, NULL));
    uint64_t offset = reader.offset;
    cn_segment_reader_close(&reader);
    return offset;
}

TEST(recovery, cuts_a_torn_tail_and_goes_on)
{
    struct simdisk *sim = killed();
    CHECK_INT(0, simdisk_damage(sim, "log/0000000001.seg", record_offset(sim, 7) + 60, 0));
    check_rows(sim, 2, 2); /* the last row of object 1 is gone, as if never written */
    struct cn_store *store = storetest_open(simdisk_disk(sim), &manual);
    struct cn_database *db = storetest_database(store, 1);
    storetest_exec(db, "INSERT INTO t VALUES(9, 9)"); /* takes the LSN of the one that was cut */
    CHECK_INT(0, cn_store_wait(store, storetest_commit(db), NULL));
    struct simdisk *after = simdisk_copy(sim);
    cn_database_close(db);
    cn_store_close(store);
    check_rows(after, 3, 2);
    simdisk_free(after);
    simdisk_free(sim);
}

TEST(recovery, reports_damage_in_the_middle)
{
    struct simdisk *sim = killed();
    struct cn_err err;
    CHECK_INT(0, simdisk_damage(sim, "log/0000000001.seg", record_offset(sim, 3) + 60, 0));
    CHECK_INT(CN_ECORRUPT, open_damaged(sim, &err));
    CHECK(strstr(err.text, "record 4") && strstr(err.text, "was durable"));
    simdisk_free(sim);

    sim = killed();
    CHECK_INT(0, simdisk_damage(sim, "log/0000000001.seg", 20, 0));
    CHECK_INT(CN_ECORRUPT, open_damaged(sim, &err));
    CHECK(strstr(err.text, "segment header") != NULL);
    simdisk_free(sim);
}

TEST(recovery, reports_a_missing_segment_and_a_log_that_ends_too_early)
{
    struct simdisk *sim = simdisk_new();
    struct cn_store *store = storetest_open(simdisk_disk(sim), &manual);
    struct cn_database *db = storetest_database(store, 1);
    storetest_exec(db, "CREATE TABLE t(a)");
    for (int i = 0; i < 40; i++) {
        storetest_exec(db, "INSERT INTO t VALUES(randomblob(9000))");
        CHECK_INT(0, cn_store_wait(store, storetest_commit(db), NULL));
    }
    struct simdisk *gap = simdisk_copy(sim);
    CHECK_INT(0, cn_store_checkpoint(store, NULL)); /* says how far the log reaches */
    struct simdisk *cut = simdisk_copy(sim);
    cn_database_close(db);
    cn_store_close(store);
    struct cn_err err;
    CHECK_INT(0, cn_disk_unlink(simdisk_disk(gap), "log/0000000003.seg"));
    CHECK_INT(CN_ECORRUPT, open_damaged(gap, &err));
    CHECK_STR("log segment 3 is missing", err.text);
    struct cn_disk_file *file;
    char path[CN_SEGMENT_PATH_MAX];
    uint64_t number = 1;
    do /* the checkpoint released all but the last */
        cn_segment_path(++number, path);
    while (cn_disk_open(simdisk_disk(cut), path, 0, &file) < 0);
    CHECK_INT(0, cn_disk_truncate(file, 64));
    cn_disk_close(file);
    CHECK_INT(CN_ECORRUPT, open_damaged(cut, &err));
    CHECK(strstr(err.text, "was durable") != NULL);
    simdisk_free(sim);
    simdisk_free(gap);
    simdisk_free(cut);
}

/* A database of five pages, with a commit that is only in the log. */
static struct cn_database *old_database(struct cn_store *store)
{
    struct cn_database *db = storetest_database(store, 1);
    storetest_exec(db, "CREATE TABLE old(a); INSERT INTO old VALUES(randomblob(20000))");
    storetest_commit(db);
    CHECK_INT(0, cn_store_checkpoint(store, NULL));
    storetest_exec(db, "INSERT INTO old VALUES(2)");
    storetest_commit(db);
    return db;
}

TEST(recovery, a_reset_is_finished_wherever_it_stopped)
{
    struct simdisk *sim = simdisk_new();
    struct cn_store *store = storetest_open(simdisk_disk(sim), &manual);
    struct cn_database *db = old_database(store);
    CHECK_INT(0, cn_database_delete_all(db, true, NULL));
    storetest_exec(db, "CREATE TABLE new(a); INSERT INTO new VALUES(3)");
    uint64_t reset_lsn = storetest_commit(db);
    storetest_exec(db, "INSERT INTO new VALUES(4)");
    CHECK_INT(0, cn_store_wait(store, storetest_commit(db), NULL));
    struct simdisk *before = simdisk_copy(sim); /* the rename has not happened */
    struct cn_object_key key = storetest_key(1);
    cn_database_close(db);
    cn_store_close(store);
    simdisk_free(sim);

    for (int i = 0; i < 2; i++) { /* second round: it has happened, and recovery comes again */
        store = storetest_open(simdisk_disk(before), &manual);
        struct simdisk *next = simdisk_copy(before);
        db = storetest_database(store, 1);
        CHECK_STR("new", storetest_text(db, "SELECT group_concat(name) FROM sqlite_schema"));
        CHECK_STR("3,4", storetest_text(db, "SELECT group_concat(a) FROM new"));
        cn_database_close(db);
        char aside[128];
        snprintf(aside, sizeof(aside), "aside/%016llx-", (unsigned long long)reset_lsn);
        struct cn_disk_file *file;
        char path[256];
        snprintf(path, sizeof(path), "%s%08x-", aside, key.namespace_id);
        for (size_t j = 0; j < sizeof(key.id); j++)
            snprintf(path + strlen(path), 3, "%02x", key.id[j]);
        strcat(path, ".db");
        CHECK_INT(0, cn_disk_open(simdisk_disk(before), path, CN_DISK_READONLY, &file));
        CHECK(cn_disk_size(file) >= 5 * CN_PAGE_SIZE); /* the old database, whole */
        cn_disk_close(file);
        cn_store_close(store);
        CHECK(cn_disk_open(simdisk_disk(before), path, CN_DISK_READONLY, &file) < 0); /* let go */
        simdisk_free(before);
        before = next;
    }
    simdisk_free(before);
}

/* I7. The steps of a checkpoint, in whose middle a reset comes; the crash is before the old file
 * was set aside. What the checkpoint has written is not in the log any more: its checksums have to
 * be in the catalog, although the database that it belongs to is gone. */
TEST(recovery, a_reset_during_a_checkpoint_leaves_the_old_database_whole)
{
    struct simdisk *sim = simdisk_new();
    struct cn_store *store = storetest_open(simdisk_disk(sim), &manual);
    struct cn_database *db = old_database(store);

    pthread_rwlock_wrlock(&store->images.commit_gate);
    uint64_t boundary = cn_log_checkpoint_start(store->log);
    pthread_rwlock_unlock(&store->images.commit_gate);
    CHECK_INT(0, cn_images_write_back(&store->images, 0, NULL));
    CHECK_INT(0, cn_images_sync(&store->images, NULL));
    CHECK_INT(0, cn_database_delete_all(db, true, NULL));
    storetest_exec(db, "CREATE TABLE new(a)");
    uint64_t reset_lsn = storetest_commit(db);
    CHECK_INT(0, cn_store_wait(store, reset_lsn, NULL));
    CHECK_INT(0, cn_catalog_flush(store->catalog, store->log, NULL));
    CHECK_INT(
        0, cn_checkpoint_write(simdisk_disk(sim), boundary + 1, cn_log_durable(store->log), NULL));
    struct simdisk *killed = simdisk_copy(sim);
    cn_database_close(db);
    cn_store_close(store);
    simdisk_free(sim);

    store = storetest_open(simdisk_disk(killed), &manual);
    struct cn_object_key key = storetest_key(1);
    char path[CN_IMAGE_PATH_MAX];
    cn_image_aside_path(&key, reset_lsn, path);
    struct cn_disk_file *file;
    CHECK_INT(0, cn_disk_open(simdisk_disk(killed), path, CN_DISK_READONLY, &file));
    struct cn_sums sums = {0};
    uint32_t page_count = 0;
    CHECK_INT(0, cn_sums_read(&sums, file, &page_count, NULL));
    CHECK(page_count >= 5);
    for (uint32_t no = 1; no <= page_count; no++) {
        uint8_t page[CN_PAGE_SIZE];
        CHECK_INT(CN_PAGE_SIZE,
                  cn_disk_read(file, page, CN_PAGE_SIZE, (uint64_t)(no - 1) * CN_PAGE_SIZE));
        CHECK(cn_sums_get(&sums, no) != CN_SUM_UNKNOWN);
        CHECK_INT(0, cn_sums_check(&sums, no, page, NULL));
    }
    cn_sums_fini(&sums);
    cn_disk_close(file);
    cn_store_close(store);
    simdisk_free(killed);
}
