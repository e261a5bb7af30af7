/* SPDX-License-Identifier: Apache-2.0 */
/* Data points come back as they were written, survive every crash after a flush, and damage costs
 * only the block that has it. */
#include "analytics/points.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "analytics/points_scan.h"
#include "base/clock.h"
#include "base/mem.h"
#include "test/lib/simdisk.h"
#include "test/lib/test.h"

#define ALL (((uint64_t)1 << CN_POINTS_COLUMN_COUNT) - 1)

struct fake_clock {
    struct cn_clock base;
    _Atomic int64_t now_ms; /* the flusher reads it */
};

static int64_t fake_wall_ms(struct cn_clock *clock)
{
    return ((struct fake_clock *)clock)->now_ms;
}

static struct fake_clock clock_at(int64_t now_ms)
{
    return (struct fake_clock){{.wall_ms = fake_wall_ms}, now_ms};
}

static struct cn_points *open_points(struct simdisk *sim, struct fake_clock *clock,
                                     uint32_t *dataset)
{
    struct cn_points_options options = {
        .disk = simdisk_disk(sim), .clock = &clock->base, .lane_count = 2};
    struct cn_points *points = cn_points_new(&options);
    CHECK_INT(0, cn_points_dataset(points, "visits", dataset, NULL));
    return points;
}

static void write_number(struct cn_points *points, unsigned lane, uint32_t dataset, int64_t time_ms,
                         double number)
{
    char text[32];
    int size = snprintf(text, sizeof(text), "text %.0f", number);
    struct cn_point point = {.time_ms = time_ms,
                             .index = {"index", 5},
                             .blobs = {{text, (size_t)size}, {"", 0}, {"third", 5}},
                             .blob_count = 3,
                             .doubles = {number, 0, -number},
                             .double_count = 3};
    cn_points_write(points, lane, dataset, &point);
}

struct seen {
    uint64_t rows, damaged, holes;
    double sum, third;
    uint64_t intervals;
};

/* Reads all, and checks that each row is one that write_number() made. */
static struct seen look(struct simdisk *sim, int64_t first_ms, int64_t last_ms)
{
    struct cn_points_scan scan;
    struct cn_points_batch batch;
    struct seen seen = {0};
    int rc;
    CHECK_INT(
        0, cn_points_scan_open(&scan, simdisk_disk(sim), "visits", ALL, first_ms, last_ms, NULL));
    while ((rc = cn_points_scan_next(&scan, &batch, NULL)) > 0) {
        const struct cn_points_values *columns = batch.columns;
        const double *numbers = columns[CN_POINTS_DOUBLE].values;
        const double *third = columns[CN_POINTS_DOUBLE + 2].values;
        const int64_t *interval = columns[CN_POINTS_INTERVAL].values;
        CHECK(columns[CN_POINTS_DOUBLE + 1].values == NULL);
        CHECK(columns[CN_POINTS_BLOB + 1].ends == NULL);
        const struct cn_points_values *texts = &columns[CN_POINTS_BLOB];
        for (uint32_t i = 0; i < batch.row_count; i++) {
            char text[32];
            double number = numbers ? numbers[i] : 0;
            int size = snprintf(text, sizeof(text), "text %.0f", number);
            uint32_t begin = i ? texts->ends[i - 1] : 0;
            CHECK_INT(size, texts->ends[i] - begin);
            CHECK(memcmp(texts->bytes + begin, text, (size_t)size) == 0);
            seen.rows++;
            seen.sum += number;
            seen.third += third ? third[i] : 0;
            seen.intervals += interval ? (uint64_t)interval[i] : 1;
        }
    }
    CHECK_INT(0, rc);
    seen.damaged = scan.damaged;
    seen.holes = scan.holes;
    cn_points_scan_close(&scan);
    return seen;
}

struct found {
    int count;
    char path[128];
};

static void note_file(void *data, const char *path, uint64_t holes)
{
    struct found *found = data;
    found->count += (int)holes;
    snprintf(found->path, sizeof(found->path), "%s", path);
}

TEST(points, come_back_from_all_lanes_and_blocks)
{
    struct simdisk *sim = simdisk_new();
    struct fake_clock clock = clock_at(1000000);
    uint32_t dataset;
    struct cn_points *points = open_points(sim, &clock, &dataset);
    double sum = 0;
    for (int i = 0; i < 70000; i++) {
        write_number(points, (unsigned)i % 2, dataset, 1000000 + i, i);
        sum += i;
        if (i % 20000 == 0)
            cn_points_flush(points);
    }
    cn_points_flush(points);
    struct seen seen = look(sim, 0, INT64_MAX);
    CHECK_INT(70000, seen.rows);
    CHECK(seen.sum == sum && seen.third == -sum);
    CHECK_INT(0, seen.damaged);
    struct cn_points_stats stats;
    cn_points_stats(points, &stats);
    CHECK_INT(70000, stats.written);
    CHECK_INT(0, stats.dropped + stats.sampled);
    cn_points_free(points);
    simdisk_free(sim);
}

TEST(points, a_second_run_begins_another_segment_and_a_stop_flushes)
{
    struct simdisk *sim = simdisk_new();
    struct fake_clock clock = clock_at(1000000);
    uint32_t dataset;
    for (int run = 0; run < 3; run++) {
        struct cn_points *points = open_points(sim, &clock, &dataset);
        write_number(points, 0, dataset, 1000000, run);
        cn_points_free(points);
    }
    CHECK_INT(3, look(sim, 0, INT64_MAX).rows);
    struct cn_disk_entries entries;
    CHECK_INT(0, cn_disk_entries(simdisk_disk(sim), "analytics/visits", &entries));
    CHECK_INT(3, entries.count);
    cn_disk_entries_fini(&entries);
    simdisk_free(sim);
}

/* P3: whatever was flushed is found after losing power, and what is found is whole. */
TEST(points, flushed_points_survive_every_crash)
{
    struct simdisk *sim = simdisk_new();
    struct fake_clock clock = clock_at(1000000);
    uint32_t dataset;
    struct cn_points *points = open_points(sim, &clock, &dataset);
    for (int i = 0; i < 40; i++) {
        for (int k = 0; k < 50; k++)
            write_number(points, 0, dataset, 1000000, i * 50 + k);
        cn_points_flush(points);
        struct simdisk *after = simdisk_crash(sim, test_seed() + (uint64_t)i);
        CHECK_INT((i + 1) * 50, look(after, 0, INT64_MAX).rows);
        simdisk_free(after);
    }
    cn_points_free(points);
    simdisk_free(sim);
}

struct torn {
    struct simdisk *sim;
    uint64_t seed, flushed, images;
};

/* Before each sync the last block is on its way: of it any sectors may be there. */
static void crash_here(void *data, const char *name, const char *path)
{
    (void)name;
    (void)path;
    struct torn *torn = data;
    struct simdisk *after = simdisk_crash(torn->sim, torn->seed + torn->images++);
    struct cn_disk_entries entries;
    if (cn_disk_entries(simdisk_disk(after), "analytics/visits", &entries) == 0) {
        cn_disk_entries_fini(&entries);
        struct seen seen = look(after, 0, INT64_MAX);
        CHECK(seen.rows >= torn->flushed && seen.rows <= torn->flushed + 100);
    }
    simdisk_free(after);
}

TEST(points, a_torn_tail_hides_nothing_that_was_flushed)
{
    struct torn torn = {simdisk_new(), test_seed(), 0, 0};
    struct fake_clock clock = clock_at(1000000);
    uint32_t dataset;
    struct cn_points *points = open_points(torn.sim, &clock, &dataset);
    simdisk_set_hook(torn.sim, SIMDISK_SYNC, crash_here, &torn);
    for (int i = 0; i < 20; i++) {
        for (int k = 0; k < 100; k++)
            write_number(points, 1, dataset, 1000000, i * 100 + k);
        cn_points_flush(points);
        torn.flushed += 100;
    }
    CHECK(torn.images >= 20);
    cn_points_free(points);
    simdisk_free(torn.sim);
}

TEST(points, damage_costs_the_block_that_has_it)
{
    struct simdisk *sim = simdisk_new();
    struct fake_clock clock = clock_at(1000000);
    uint32_t dataset;
    struct cn_points *points = open_points(sim, &clock, &dataset);
    for (int i = 0; i < 10; i++) {
        for (int k = 0; k < 100; k++)
            write_number(points, 0, dataset, 1000000, i * 100 + k);
        cn_points_flush(points);
    }
    cn_points_free(points);
    const char *path = "analytics/visits/19700101-00000001.seg";
    struct simdisk *copy = simdisk_copy(sim);
    CHECK_INT(0, simdisk_damage(copy, path, 10, 3)); /* the size of the first block */
    struct seen seen = look(copy, 0, INT64_MAX);
    CHECK_INT(900, seen.rows);
    CHECK_INT(1, seen.damaged);
    CHECK_INT(1, seen.holes);
    simdisk_free(copy);
    copy = simdisk_copy(sim);
    CHECK_INT(0, simdisk_damage(copy, path, 700, 0)); /* one of its columns */
    seen = look(copy, 0, INT64_MAX);
    CHECK_INT(900, seen.rows);
    CHECK_INT(1, seen.damaged);
    CHECK_INT(1, seen.holes);
    struct found found = {0};
    CHECK_INT(0, cn_points_check(simdisk_disk(copy), note_file, &found, NULL));
    CHECK_INT(1, found.count);
    CHECK_STR("visits/19700101-00000001.seg", found.path);
    simdisk_free(copy);
    simdisk_free(sim);
}

TEST(points, only_blocks_of_the_wanted_time_are_read)
{
    struct simdisk *sim = simdisk_new();
    struct fake_clock clock = clock_at(0);
    uint32_t dataset;
    struct cn_points *points = open_points(sim, &clock, &dataset);
    for (int day = 0; day < 5; day++) {
        clock.now_ms = (int64_t)day * 86400000 + 5000;
        write_number(points, 0, dataset, clock.now_ms, day);
        cn_points_flush(points);
    }
    cn_points_free(points);
    CHECK_INT(5, look(sim, 0, INT64_MAX).rows);
    CHECK_INT(2, look(sim, 3 * (int64_t)86400000, INT64_MAX).rows);
    CHECK_INT(1, look(sim, 86400000, 2 * (int64_t)86400000 - 1).rows);
    simdisk_free(sim);
}

TEST(points, segments_go_when_they_are_too_old)
{
    struct simdisk *sim = simdisk_new();
    int64_t day_ms = 86400000;
    struct fake_clock clock = clock_at(100 * day_ms);
    uint32_t dataset;
    for (int day = 100; day < 103; day++) {
        struct cn_points *points = open_points(sim, &clock, &dataset);
        clock.now_ms = day * day_ms;
        write_number(points, 0, dataset, clock.now_ms, day);
        cn_points_free(points);
    }
    CHECK_INT(3, look(sim, 0, INT64_MAX).rows);
    clock.now_ms = (101 + CN_POINTS_RETENTION_DAYS) * day_ms;
    struct cn_points *points = open_points(sim, &clock, &dataset);
    cn_points_flush(points);
    cn_points_free(points);
    struct seen seen = look(sim, 0, INT64_MAX);
    CHECK_INT(2, seen.rows);
    CHECK(seen.sum == 101 + 102);
    simdisk_free(sim);
}

/* The disk refuses: points are counted as lost, and what comes later is kept. */
TEST(points, a_failed_write_is_counted_and_does_not_hurt_the_next)
{
    struct simdisk *sim = simdisk_new();
    struct fake_clock clock = clock_at(1000000);
    uint32_t dataset;
    struct cn_points *points = open_points(sim, &clock, &dataset);
    write_number(points, 0, dataset, 1000000, 1);
    cn_points_flush(points);
    struct simdisk_fault fault = {.kinds = SIMDISK_WRITE, .at = 1, .code = -EIO};
    simdisk_set_fault(sim, &fault);
    write_number(points, 0, dataset, 1000000, 2);
    cn_points_flush(points);
    write_number(points, 0, dataset, 1000000, 3);
    cn_points_flush(points);
    struct cn_points_stats stats;
    cn_points_stats(points, &stats);
    CHECK_INT(1, stats.dropped);
    CHECK_INT(2, stats.written);
    cn_points_free(points);
    struct seen seen = look(sim, 0, INT64_MAX);
    CHECK_INT(2, seen.rows);
    CHECK(seen.sum == 4);
    simdisk_free(sim);
}

/* P2: the flusher is kept busy by a slow disk, that is, held in its first sync. */
struct slow {
    pthread_mutex_t lock;
};

static void wait_here(void *data, const char *name, const char *path)
{
    (void)name;
    (void)path;
    struct slow *slow = data;
    pthread_mutex_lock(&slow->lock);
    pthread_mutex_unlock(&slow->lock);
}

TEST(points, a_disk_that_does_not_keep_up_costs_points_but_no_memory)
{
    struct simdisk *sim = simdisk_new();
    struct fake_clock clock = clock_at(1000000);
    uint32_t dataset;
    struct cn_points *points = open_points(sim, &clock, &dataset);
    struct slow slow = {PTHREAD_MUTEX_INITIALIZER};
    simdisk_set_hook(sim, SIMDISK_SYNC, wait_here, &slow);
    pthread_mutex_lock(&slow.lock);
    uint64_t count = 400000;
    for (uint64_t i = 0; i < count; i++)
        write_number(points, 0, dataset, 1000000, (double)i);
    pthread_mutex_unlock(&slow.lock);
    cn_points_flush(points);
    struct cn_points_stats stats;
    cn_points_stats(points, &stats);
    CHECK(stats.sampled > 0);
    CHECK_INT(count, stats.written + stats.sampled + stats.dropped);
    struct seen seen = look(sim, 0, INT64_MAX);
    CHECK_INT(stats.written, seen.rows);
    /* The intervals stand for those that are not there, but for the last of each hundred. */
    CHECK(seen.intervals >= count - stats.dropped - 100 && seen.intervals <= count + 100);
    cn_points_free(points);
    simdisk_free(sim);
}

TEST(points, names_of_datasets_are_checked)
{
    struct simdisk *sim = simdisk_new();
    struct fake_clock clock = clock_at(1000000);
    uint32_t first, again, other;
    struct cn_points *points = open_points(sim, &clock, &first);
    struct cn_err err = {0};
    CHECK_INT(0, cn_points_dataset(points, "visits", &again, &err));
    CHECK_INT(first, again);
    CHECK_INT(0, cn_points_dataset(points, "Other-1_x", &other, &err));
    CHECK(other != first);
    static const char *const bad[] = {"", "..", "a/b", "a b", "a.b"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        CHECK_INT(CN_EINVALID, cn_points_dataset(points, bad[i], &other, &err));
    struct cn_points_scan scan;
    CHECK_INT(CN_ENOTFOUND, cn_points_scan_open(&scan, simdisk_disk(sim), "none", ALL, 0, 1, &err));
    cn_points_free(points);
    simdisk_free(sim);
}
