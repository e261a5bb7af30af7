/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints: the log stays bounded, memory is given back, the past is handed over. */
#include "store/checkpoint.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/rand.h"
#include "store/catalog.h"
#include "test/lib/simdisk.h"
#include "test/lib/storetest.h"
#include "test/lib/test.h"

TEST(checkpoint, closed_databases_leave_memory_and_the_log_shrinks)
{
    struct simdisk *sim = simdisk_new();
    struct cn_store_config config = {.manual = true, .segment_size = 64 << 10, .open_files_max = 4};
    struct cn_store *store = storetest_open(simdisk_disk(sim), &config);
    struct cn_store_stats stats;
    for (unsigned i = 0; i < 100; i++) {
        struct cn_database *db = storetest_database(store, i);
        storetest_exec(db, "CREATE TABLE t(a); INSERT INTO t VALUES(randomblob(5000))");
        storetest_commit(db);
        cn_database_close(db);
    }
    cn_store_stats(store, &stats);
    CHECK_INT(100, stats.image_count);
    CHECK(stats.dirty_pages >= 300 && stats.log_live_bytes > 500000);
    CHECK_INT(0, cn_store_checkpoint(store, NULL));
    cn_store_stats(store, &stats);
    CHECK_INT(0, stats.image_count);
    CHECK_INT(0, stats.dirty_pages);
    CHECK_INT(0, stats.open_files);
    CHECK(stats.log_live_bytes < 128 << 10);
    CHECK(stats.redo_lsn == stats.appended_lsn + 1);
    struct cn_database *db = storetest_database(store, 42);
    CHECK_INT(5000, storetest_int(db, "SELECT length(a) FROM t"));
    cn_database_close(db);
    cn_store_close(store);
    simdisk_free(sim);
}

struct taken {
    uint64_t next_number, next_lsn;
    int segments, asides, refuse;
};

static int on_segment(void *data, const char *path, const struct cn_segment_info *segment,
                      struct cn_err *err)
{
    struct taken *taken = data;
    if (taken->refuse > 0) {
        taken->refuse--;
        return cn_err_set(err, -EIO, "not now");
    }
    CHECK_INT((long long)taken->next_number, (long long)segment->number);
    CHECK_INT((long long)taken->next_lsn, (long long)segment->first_lsn);
    taken->next_number++;
    taken->next_lsn = segment->last_lsn + 1;
    taken->segments++;
    return 0;
}

static int on_aside(void *data, const struct cn_object_key *key, uint64_t lsn, const char *path,
                    struct cn_err *err)
{
    CHECK(strncmp(path, "aside/", 6) == 0);
    ((struct taken *)data)->asides++;
    return 0;
}

TEST(checkpoint, history_gets_every_segment_in_order_and_every_file_set_aside)
{
    struct simdisk *sim = simdisk_new();
    struct taken taken = {.next_number = 1, .next_lsn = 1};
    struct cn_store_history history = {&taken, on_segment, on_aside};
    struct cn_store_config config = {.manual = true, .segment_size = 64 << 10, .history = &history};
    struct cn_store *store = storetest_open(simdisk_disk(sim), &config);
    for (unsigned i = 0; i < 120; i++) {
        struct cn_database *db = storetest_database(store, i % 7);
        storetest_exec(db,
                       "CREATE TABLE IF NOT EXISTS t(a); INSERT INTO t VALUES(randomblob(3000))");
        if (i % 40 == 39)
            CHECK_INT(0, cn_database_delete_all(db, false, NULL));
        storetest_commit(db);
        cn_database_close(db);
        taken.refuse = i == 50; /* asked again later */
        if (i % 25 == 0)
            (void)cn_store_checkpoint(store, NULL);
    }
    uint64_t lsn;
    struct cn_object_key key = storetest_key(3);
    CHECK_INT(0, cn_store_delete(store, &key, &lsn, NULL));
    CHECK_INT(0, cn_store_checkpoint(store, NULL));
    CHECK(taken.segments >= 4);
    CHECK_INT(4, taken.asides);
    cn_store_close(store);
    simdisk_free(sim);
}

TEST(checkpoint, commits_are_refused_while_the_disk_is_full_and_reads_go_on)
{
    struct simdisk *sim = simdisk_new();
    struct cn_store_config config = {
        .manual = true, .segment_size = 1 << 20, .dirty_size_max = 64 << 10};
    struct cn_store *store = storetest_open(simdisk_disk(sim), &config);
    struct cn_database *db = storetest_database(store, 1);
    storetest_exec(db, "CREATE TABLE t(a)");
    storetest_commit(db);
    simdisk_set_fault(sim, &(struct simdisk_fault){.space_bytes = 1});
    int rc = 0, rows = 0;
    struct cn_err err = {0};
    for (int i = 0; i < 500 && rc == 0; i++) {
        uint64_t lsn;
        storetest_exec(db, "INSERT INTO t VALUES(randomblob(3000))");
        rc = cn_database_commit(db, &lsn, &err);
        rows += rc == 0;
    }
    CHECK_INT(CN_EREADONLY, rc);
    CHECK_INT(CN_EREADONLY, cn_store_status(store, &err));
    CHECK_INT(rows, storetest_int(db, "SELECT count(*) FROM t")); /* the refused turn is undone */
    simdisk_set_fault(sim, NULL);
    CHECK_INT(0, cn_store_checkpoint(store, NULL));
    CHECK_INT(0, cn_store_status(store, NULL));
    storetest_exec(db, "INSERT INTO t VALUES(1)");
    storetest_commit(db);
    cn_database_close(db);
    cn_store_close(store);
    store = storetest_open(simdisk_disk(sim), &config);
    db = storetest_database(store, 1);
    CHECK_INT(rows + 1, storetest_int(db, "SELECT count(*) FROM t"));
    cn_database_close(db);
    cn_store_close(store);
    simdisk_free(sim);
}

/* The keeper notices by itself, also if far too little waits to be written back for any other
 * reason. */
TEST(checkpoint, space_is_noticed_without_a_restart_however_little_is_dirty)
{
    struct simdisk *sim = simdisk_new();
    struct cn_store_config config = {.segment_size = 1 << 20};
    struct cn_store *store = storetest_open(simdisk_disk(sim), &config);
    struct cn_database *db = storetest_database(store, 1);
    storetest_exec(db, "CREATE TABLE t(a); INSERT INTO t VALUES(randomblob(60000))");
    storetest_commit(db);
    simdisk_set_fault(sim, &(struct simdisk_fault){.space_bytes = 1});
    struct cn_err err = {0};
    CHECK(cn_store_checkpoint(store, &err) < 0);
    CHECK_INT(CN_EREADONLY, cn_store_status(store, NULL));
    simdisk_set_fault(sim, NULL);
    for (int i = 0; i < 6000 && cn_store_status(store, NULL) < 0; i++)
        usleep(10000);
    CHECK_INT(0, cn_store_status(store, &err));
    storetest_exec(db, "INSERT INTO t VALUES(1)");
    storetest_commit(db);
    cn_database_close(db);
    cn_store_close(store);
    simdisk_free(sim);
}

/* ---- With threads: lanes commit while the keeper works ---- */

enum { LANES = 3, PER_LANE = 5, TURNS = 600 };

struct lane {
    struct cn_store *store;
    pthread_t thread;
    unsigned first;
    int committed[PER_LANE];
    const char *failed;
    struct cn_err err;
};

static void *lane_run(void *arg)
{
    struct lane *lane = arg;
    struct cn_rand rand;
    struct cn_database *dbs[PER_LANE] = {0};
    struct cn_err err = {0};
    cn_rand_init(&rand, lane->first);
    for (int i = 0; i < TURNS && !lane->failed; i++) {
        unsigned n = (unsigned)cn_rand_below(&rand, PER_LANE);
        struct cn_object_key key = storetest_key(lane->first + n);
        uint64_t lsn;
        if (!dbs[n] && cn_database_open(lane->store, &key, NULL, &dbs[n], &err) < 0)
            lane->failed = "open";
        else if (cn_database_exec(dbs[n],
                                  "CREATE TABLE IF NOT EXISTS t(a INTEGER PRIMARY KEY, b);"
                                  "INSERT INTO t(b) VALUES(randomblob(700));"
                                  "UPDATE t SET b = randomblob(300) WHERE a % 7 = 0",
                                  &err) < 0)
            lane->failed = "exec";
        else if (cn_database_set_alarm(dbs[n], 1000 + i, &err) < 0 ||
                 cn_database_commit(dbs[n], &lsn, &err) < 0)
            lane->failed = "commit";
        else
            lane->committed[n]++;
        if (i % 50 == 0 && !lane->failed && cn_store_wait(lane->store, lsn, &err) < 0)
            lane->failed = "wait";
        if (i % 10 == 0 && !lane->failed) {
            cn_database_close(dbs[n]);
            dbs[n] = NULL;
        }
    }
    for (int i = 0; i < PER_LANE; i++)
        cn_database_close(dbs[i]);
    lane->err = err;
    return NULL;
}

static int count_each(void *data, const struct cn_catalog_entry *entry)
{
    (*(int *)data)++;
    return 0;
}

TEST(checkpoint, lanes_commit_while_checkpoints_run)
{
    struct cn_disk *disk = storetest_disk();
    struct cn_store_config config = {
        .sync = CN_LOG_OS, /* this is about threads, not about the disk */
        .segment_size = 128 << 10,
        .log_live_size = 2 << 20, /* commits are refused at four times that: far from here */
        .dirty_size_max = 64 << 10,
        .open_files_max = 3,
    };
    struct cn_store *store = storetest_open(disk, &config);
    struct lane lanes[LANES];
    for (unsigned i = 0; i < LANES; i++) {
        lanes[i] = (struct lane){.store = store, .first = 100 * (i + 1)};
        pthread_create(&lanes[i].thread, NULL, lane_run, &lanes[i]);
    }
    for (int i = 0; i < 10; i++) { /* asks for checkpoints and lists meanwhile */
        int seen = 0;
        CHECK_INT(0, cn_store_checkpoint(store, NULL));
        CHECK(cn_catalog_list(cn_store_catalog(store), 1, NULL, 100, count_each, &seen, NULL) >= 0);
    }
    for (int i = 0; i < LANES; i++) {
        pthread_join(lanes[i].thread, NULL);
        if (lanes[i].failed)
            test_fail(__FILE__, __LINE__, "a lane failed to %s: %s", lanes[i].failed,
                      lanes[i].err.text);
    }
    cn_store_close(store);
    store = storetest_open(disk, &config);
    for (unsigned i = 0; i < LANES; i++) {
        for (unsigned n = 0; n < PER_LANE; n++) {
            struct cn_database *db = storetest_database(store, lanes[i].first + n);
            CHECK_INT(lanes[i].committed[n], storetest_int(db, "SELECT count(*) FROM t"));
            CHECK_STR("ok", storetest_text(db, "PRAGMA integrity_check"));
            cn_database_close(db);
        }
    }
    int seen = 0;
    CHECK_INT(LANES * PER_LANE,
              cn_catalog_list(cn_store_catalog(store), 1, NULL, 100, count_each, &seen, NULL));
    cn_store_close(store);
    cn_disk_system_free(disk);
}

TEST(checkpoint, one_large_database_does_not_fill_the_memory)
{
    struct cn_disk *disk = storetest_disk();
    struct cn_store_config config = {.sync = CN_LOG_OS, .dirty_size_max = 16 << 20};
    struct cn_store *store = storetest_open(disk, &config);
    struct cn_database *small = storetest_database(store, 1), *large = storetest_database(store, 2);
    storetest_exec(small, "CREATE TABLE t(a); INSERT INTO t VALUES(randomblob(5000))");
    storetest_commit(small);
    struct cn_store_stats stats;
    cn_store_stats(store, &stats);
    uint64_t others = stats.dirty_pages;
    storetest_exec(large, "CREATE TABLE t(a); INSERT INTO t VALUES(randomblob(2000000))");
    storetest_commit(large); /* 490 pages: an eighth of what all may have */
    uint64_t deadline = cn_clock_mono_ns(cn_clock_system()) + 60000000000u;
    do {
        usleep(1000);
        cn_store_stats(store, &stats);
    } while (stats.dirty_pages > others && cn_clock_mono_ns(cn_clock_system()) < deadline);
    CHECK_INT((long long)others, (long long)stats.dirty_pages);
    CHECK_INT(0, (long long)stats.checkpoint_count);
    CHECK_INT(2000000, storetest_int(large, "SELECT length(a) FROM t"));
    cn_database_close(small);
    cn_database_close(large);
    cn_store_close(store);
    cn_disk_system_free(disk);
}
