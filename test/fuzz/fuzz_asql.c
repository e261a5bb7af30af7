/* SPDX-License-Identifier: Apache-2.0 */
/* Any text as SQL of Analytics Engine, over a dataset of some points: an answer, or an error with a
 * sentence. */
#include <stddef.h>
#include <stdint.h>

#include "analytics/asql.h"
#include "analytics/points.h"
#include "base/assert.h"
#include "base/clock.h"
#include "test/lib/simdisk.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int64_t then(struct cn_clock *clock)
{
    (void)clock;
    return 1767225600000;
}

static int drop(void *data, const char *type, const void *bytes, size_t size)
{
    (void)bytes;
    CN_ASSERT(type);
    *(size_t *)data += size;
    return 0;
}

static struct cn_disk *make_points(void)
{
    struct simdisk *sim = simdisk_new();
    struct cn_clock clock = {.wall_ms = then};
    struct cn_points_options options = {
        .disk = simdisk_disk(sim), .clock = &clock, .lane_count = 1};
    struct cn_points *points = cn_points_new(&options);
    uint32_t dataset;
    CN_ASSERT(cn_points_dataset(points, "t", &dataset, NULL) == 0);
    for (int i = 0; i < 20; i++) {
        struct cn_point point = {.time_ms = then(NULL) - i * 1000,
                                 .blobs = {{i % 2 ? "a" : "b\xc3\xb6", i % 2 ? 1 : 3}},
                                 .blob_count = 1,
                                 .doubles = {i, -i / 3.0},
                                 .double_count = 2};
        cn_points_write(points, 0, dataset, &point);
    }
    cn_points_free(points);
    return simdisk_disk(sim);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct cn_disk *disk;
    if (!disk)
        disk = make_points();
    size_t written = 0;
    struct cn_err err = {0};
    struct cn_asql asql = {.disk = disk, .now_ms = then(NULL), .write = drop, .data = &written};
    int rc = cn_asql_run(&asql, (const char *)data, size, &err);
    CN_ASSERT(rc < 0 ? err.code == rc && err.text[0] : err.code == 0);
    CN_ASSERT(rc == 0 || written == 0);
    return 0;
}
