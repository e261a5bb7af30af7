/* SPDX-License-Identifier: Apache-2.0 */
/* Files of assets on their way in: one that is found under its hash is whole, whatever fails and
 * whenever the power goes; and what was not kept is gone after the next start. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/disk.h"
#include "base/mem.h"
#include "test/lib/simdisk.h"
#include "test/lib/test.h"
#include "v4/depot.h"

#define FILES 3
#define SIZE 3000 /* more than a sector, so that it can be torn */

static struct cn_depot *open_on(struct simdisk *sim)
{
    struct cn_depot *depot = NULL;
    struct cn_err err = {0};
    CHECK_INT(0, cn_depot_open(simdisk_disk(sim), "/nowhere", NULL, NULL, &depot, &err));
    return depot;
}

static void name_of(size_t index, char hash[33])
{
    snprintf(hash, 33, "%032zx", index);
}

static int put_all(struct cn_depot *depot, struct cn_err *err)
{
    struct cn_depot_arrival *arrival;
    char hash[33];
    uint8_t bytes[SIZE];
    int rc = cn_depot_arrival_begin(depot, "w", &arrival, err);
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < FILES && rc == 0; i++) {
        memset(bytes, 'a' + (int)i, SIZE);
        name_of(i, hash);
        rc = cn_depot_arrival_put(arrival, hash, bytes, SIZE, err);
    }
    return cn_depot_arrival_end(arrival, rc, err);
}

/* How many are there; each of them is whole. */
static size_t count_whole(struct simdisk *sim)
{
    size_t count = 0;
    for (size_t i = 0; i < FILES; i++) {
        struct cn_disk_file *file;
        char hash[33], path[100];
        uint8_t bytes[SIZE + 1], want[SIZE];
        name_of(i, hash);
        snprintf(path, sizeof(path), "deployed/assets/w/%s", hash);
        if (cn_disk_open(simdisk_disk(sim), path, CN_DISK_READONLY, &file) < 0)
            continue;
        CHECK_INT(SIZE, cn_disk_read(file, bytes, sizeof(bytes), 0));
        memset(want, 'a' + (int)i, SIZE);
        CHECK(memcmp(bytes, want, SIZE) == 0);
        cn_disk_close(file);
        count++;
    }
    return count;
}

static void count_entry(void *data, const char *name, bool is_dir)
{
    (void)name;
    (void)is_dir;
    ++*(size_t *)data;
}

static size_t count_staged(struct simdisk *sim)
{
    size_t count = 0;
    (void)cn_disk_list(simdisk_disk(sim), CN_DEPOT_TRANSFERS, count_entry, &count);
    return count;
}

static void crash_here(void *data, const char *name, const char *path)
{
    (void)name;
    (void)path;
    for (uint64_t seed = 1; seed <= 5; seed++) {
        struct simdisk *found = simdisk_crash(data, seed);
        (void)count_whole(found);
        struct cn_depot *depot = open_on(found);
        CHECK_INT(0, count_staged(found));
        cn_depot_close(depot);
        simdisk_free(found);
    }
}

TEST(depot_arrival, a_file_is_whole_whenever_the_power_goes)
{
    struct simdisk *sim = simdisk_new();
    struct cn_depot *depot = open_on(sim);
    struct cn_err err = {0};
    simdisk_set_hook(sim, SIMDISK_CHANGES, crash_here, sim);
    CHECK_INT(0, put_all(depot, &err));
    simdisk_set_hook(sim, 0, NULL, NULL);
    CHECK_INT(FILES, count_whole(sim));
    CHECK_INT(0, count_staged(sim));
    cn_depot_close(depot);
    simdisk_free(sim);
}

TEST(depot_arrival, a_failure_of_any_operation_is_told_and_leaves_whole_files)
{
    int rc = -1;
    for (uint64_t at = 1; rc < 0; at++) {
        struct simdisk *sim = simdisk_new();
        struct cn_depot *depot = open_on(sim);
        struct cn_err err = {0};
        simdisk_set_fault(
            sim, &(struct simdisk_fault){.kinds = SIMDISK_CHANGES, .at = at, .code = -EIO});
        rc = put_all(depot, &err);
        CHECK(rc == 0 || err.text[0]);
        size_t count = count_whole(sim);
        CHECK(rc < 0 || count == FILES);
        CHECK_INT(0, put_all(depot, &err)); /* and it can be made again */
        CHECK_INT(FILES, count_whole(sim));
        cn_depot_close(depot);
        simdisk_free(sim);
    }
}

TEST(depot_arrival, one_that_is_refused_keeps_nothing)
{
    struct simdisk *sim = simdisk_new();
    struct cn_depot *depot = open_on(sim);
    struct cn_depot_arrival *arrival;
    struct cn_err err = {0};
    char hash[33];
    name_of(0, hash);
    CHECK_INT(0, cn_depot_arrival_begin(depot, "w", &arrival, &err));
    CHECK_INT(0, cn_depot_arrival_put(arrival, hash, "a", 1, &err));
    CHECK_INT(CN_EINVALID, cn_depot_arrival_put(arrival, hash, "b", 1, &err));
    CHECK_INT(CN_EINVALID, cn_depot_arrival_end(arrival, CN_EINVALID, &err));
    CHECK_INT(0, count_whole(sim));
    CHECK_INT(0, count_staged(sim));
    /* Two requests with the same file are not in each other's way. */
    struct cn_depot_arrival *other;
    CHECK_INT(0, cn_depot_arrival_begin(depot, "v", &arrival, &err));
    CHECK_INT(0, cn_depot_arrival_begin(depot, "v", &other, &err));
    CHECK_INT(0, cn_depot_arrival_put(arrival, hash, "a", 1, &err));
    CHECK_INT(0, cn_depot_arrival_put(other, hash, "a", 1, &err));
    CHECK_INT(0, cn_depot_arrival_end(arrival, 0, &err));
    CHECK_INT(0, cn_depot_arrival_end(other, 0, &err));
    cn_depot_close(depot);
    simdisk_free(sim);
}
