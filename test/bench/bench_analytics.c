/* SPDX-License-Identifier: Apache-2.0 */
/* A million data points: what writing one costs a lane, and how long queries over all of them take
 * on one thread, the best of three. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analytics/asql.h"
#include "analytics/points.h"
#include "base/assert.h"
#include "base/clock.h"
#include "base/disk.h"
#include "base/mem.h"
#include "base/rand.h"

enum { POINTS = 1000000, TOWNS = 500 };

static double ms_since(uint64_t start)
{
    return (double)(cn_clock_mono_ns(cn_clock_system()) - start) / 1e6;
}

static int count_bytes(void *data, const char *type, const void *bytes, size_t size)
{
    (void)type;
    (void)bytes;
    *(size_t *)data += size;
    return 0;
}

static void write_points(struct cn_disk *disk)
{
    struct cn_points_options options = {.disk = disk, .lane_count = 1};
    struct cn_points *points = cn_points_new(&options);
    struct cn_rand rand;
    uint32_t dataset;
    struct cn_err err;
    CN_ASSERT(cn_points_dataset(points, "visits", &dataset, &err) == 0);
    cn_rand_init(&rand, 1);
    int64_t now_ms = cn_clock_wall_ms(cn_clock_system());
    double spent_ms = 0;
    for (int i = 0; i < POINTS; i++) {
        char town[32];
        uint64_t drawn = cn_rand_next(&rand);
        int size = snprintf(town, sizeof(town), "town-%u", (unsigned)(drawn % TOWNS));
        struct cn_point point = {
            .time_ms = now_ms - (POINTS - i) * (int64_t)60,
            .index = {"customer", 8},
            .blobs = {{town, (size_t)size}, {drawn & 1024 ? "GET" : "POST", drawn & 1024 ? 3 : 4}},
            .blob_count = 2,
            .doubles = {(double)(drawn >> 40 & 0xffff), 1.5},
            .double_count = 2,
        };
        if (i % 20000 == 0) /* so that none is sampled away */
            cn_points_flush(points);
        uint64_t start = cn_clock_mono_ns(cn_clock_system());
        cn_points_write(points, 0, dataset, &point);
        spent_ms += ms_since(start);
    }
    cn_points_free(points);
    printf("%-44s %7.0f ns\n", "analytics: write a point", spent_ms * 1e6 / POINTS);
}

static void measure(struct cn_disk *disk, const char *name, const char *sql)
{
    double best_ms = 1e9;
    size_t written = 0;
    for (int i = 0; i < 3; i++) {
        struct cn_err err = {0};
        struct cn_asql asql = {.disk = disk,
                               .now_ms = cn_clock_wall_ms(cn_clock_system()),
                               .write = count_bytes,
                               .data = &written};
        uint64_t start = cn_clock_mono_ns(cn_clock_system());
        if (cn_asql_run(&asql, sql, strlen(sql), &err) < 0) {
            printf("%s: %s\n", name, err.text);
            exit(1);
        }
        double ms = ms_since(start);
        best_ms = ms < best_ms ? ms : best_ms;
    }
    printf("%-44s %7.0f ms\n", name, best_ms);
}

int main(void)
{
    char path[] = "/tmp/cairn-bench-XXXXXX";
    CN_ASSERT(mkdtemp(path));
    struct cn_disk *disk = cn_disk_system_new(path);
    CN_ASSERT(disk);
    write_points(disk);
    measure(disk, "analytics: count 1,000,000 points", "SELECT count() FROM visits");
    measure(disk, "analytics: group by 500 texts, sum, avg",
            "SELECT blob1, sum(_sample_interval) AS n, avg(double1) FROM visits GROUP BY blob1 "
            "ORDER BY n DESC LIMIT 10");
    measure(disk, "analytics: two quantiles of all",
            "SELECT quantileExactWeighted(0.5)(double1, _sample_interval), "
            "quantileExactWeighted(0.99)(double1, _sample_interval) FROM visits");
    measure(disk, "analytics: hours x methods, count, quantile",
            "SELECT toStartOfInterval(timestamp, INTERVAL '1' HOUR) AS hour, blob2, "
            "sum(_sample_interval), quantileExactWeighted(0.95)(double1, _sample_interval) FROM "
            "visits WHERE timestamp > NOW() - INTERVAL '1' DAY AND blob1 != 'town-7' GROUP BY "
            "hour, blob2 ORDER BY hour, blob2");
    measure(
        disk, "analytics: the last hour of 17",
        "SELECT blob1, count() FROM visits WHERE timestamp > NOW() - INTERVAL '1' HOUR GROUP BY "
        "blob1");
    cn_disk_system_free(disk);
    char *command = cn_sprintf("rm -r %s", path);
    CN_ASSERT(system(command) == 0);
    cn_free(command);
    return 0;
}
