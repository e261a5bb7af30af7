/* SPDX-License-Identifier: Apache-2.0 */
/* The simulated disk: a crash keeps what was synced and may do anything else, faults strike where
 * they were told to, and everything repeats from its seed. */
#include "test/lib/simdisk.h"

#include <errno.h>
#include <string.h>

#include "base/rand.h"
#include "test/lib/test.h"

enum { SECTOR = 512 };

static struct cn_disk_file *open_file(struct simdisk *sim, const char *path)
{
    struct cn_disk_file *file;
    CHECK_INT(0, cn_disk_open(simdisk_disk(sim), path, CN_DISK_CREATE, &file));
    return file;
}

/* The contents after a crash, or -1 if the name is gone. */
static int64_t contents(struct simdisk *sim, const char *path, uint8_t *bytes, size_t size)
{
    struct cn_disk_file *file;
    if (cn_disk_open(simdisk_disk(sim), path, CN_DISK_READONLY, &file) < 0)
        return -1;
    int64_t count = cn_disk_read(file, bytes, size, 0);
    cn_disk_close(file);
    return count;
}

TEST(simdisk, a_crash_keeps_what_was_synced)
{
    struct simdisk *sim = simdisk_new();
    CHECK_INT(0, cn_disk_mkdirs(simdisk_disk(sim), "a/b"));
    CHECK_INT(0, cn_disk_replace(simdisk_disk(sim), "a/b/f", "hello", 5));
    for (uint64_t seed = 0; seed < 50; seed++) {
        struct simdisk *after = simdisk_crash(sim, seed);
        uint8_t bytes[16];
        CHECK_INT(5, contents(after, "a/b/f", bytes, sizeof(bytes)));
        CHECK(memcmp(bytes, "hello", 5) == 0);
        CHECK_INT(-1, contents(after, "a/b/f.tmp", bytes, sizeof(bytes)));
        simdisk_free(after);
    }
    simdisk_free(sim);
}

TEST(simdisk, unsynced_sectors_survive_in_every_combination)
{
    struct simdisk *sim = simdisk_new();
    struct cn_disk_file *file = open_file(sim, "f");
    uint8_t bytes[2 * SECTOR];
    memset(bytes, 'o', sizeof(bytes));
    CHECK_INT(0, cn_disk_write_all(file, bytes, sizeof(bytes), 0));
    CHECK_INT(0, cn_disk_sync_data(file));
    CHECK_INT(0, cn_disk_sync_dir(simdisk_disk(sim), ""));
    memset(bytes, 'm', sizeof(bytes));
    CHECK_INT(0, cn_disk_write_all(file, bytes, sizeof(bytes), 0));
    memset(bytes, 'n', sizeof(bytes));
    CHECK_INT(0, cn_disk_write_all(file, bytes, sizeof(bytes), 0));
    bool seen[3][3] = {{0}};
    for (uint64_t seed = 0; seed < 500; seed++) {
        struct simdisk *after = simdisk_crash(sim, seed);
        CHECK_INT(sizeof(bytes), contents(after, "f", bytes, sizeof(bytes)));
        for (int i = 0; i < 2 * SECTOR; i++)
            CHECK(bytes[i] == bytes[i / SECTOR * SECTOR]); /* a sector never tears */
        static const char versions[] = "omn";
        seen[strchr(versions, bytes[0]) - versions][strchr(versions, bytes[SECTOR]) - versions] =
            true;
        simdisk_free(after);
    }
    for (int i = 0; i < 9; i++)
        CHECK(seen[i / 3][i % 3]);
    cn_disk_close(file);
    simdisk_free(sim);
}

TEST(simdisk, names_and_sizes_may_be_lost)
{
    struct simdisk *sim = simdisk_new();
    struct cn_disk *disk = simdisk_disk(sim);
    struct cn_disk_file *file = open_file(sim, "old");
    CHECK_INT(0, cn_disk_allocate(file, 0, 10));
    CHECK_INT(0, cn_disk_sync_data(file));
    CHECK_INT(0, cn_disk_sync_dir(disk, ""));
    CHECK_INT(0, cn_disk_truncate(file, 3));
    cn_disk_close(file);
    CHECK_INT(0, cn_disk_rename(disk, "old", "new"));
    file = open_file(sim, "other");
    CHECK_INT(0, cn_disk_sync_data(file));
    cn_disk_close(file);
    int olds = 0, news = 0, others = 0, cut = 0, whole = 0;
    for (uint64_t seed = 0; seed < 200; seed++) {
        struct simdisk *after = simdisk_crash(sim, seed);
        uint8_t bytes[16];
        int64_t old = contents(after, "old", bytes, 16), new = contents(after, "new", bytes, 16);
        CHECK((old < 0) != (new < 0)); /* a rename is atomic */
        *(old < 0 ? &news : &olds) += 1;
        int64_t size = old < 0 ? new : old;
        CHECK(size == 10 || size == 3);
        *(size == 3 ? &cut : &whole) += 1;
        others += contents(after, "other", bytes, 16) == 0;
        simdisk_free(after);
    }
    CHECK(olds && news && cut && whole && others > 0 && others < 200);
    simdisk_free(sim);
}

TEST(simdisk, a_synced_rename_brings_the_creation_before_it)
{
    struct simdisk *sim = simdisk_new();
    struct cn_disk *disk = simdisk_disk(sim);
    CHECK_INT(0, cn_disk_mkdirs(disk, "a"));
    CHECK_INT(0, cn_disk_mkdirs(disk, "b"));
    cn_disk_close(open_file(sim, "a/f"));
    CHECK_INT(0, cn_disk_rename(disk, "a/f", "b/f"));
    CHECK_INT(0, cn_disk_sync_dir(disk, "b"));
    for (uint64_t seed = 0; seed < 50; seed++) {
        struct simdisk *after = simdisk_crash(sim, seed);
        uint8_t byte;
        CHECK_INT(-1, contents(after, "a/f", &byte, 1));
        CHECK_INT(0, contents(after, "b/f", &byte, 1));
        simdisk_free(after);
    }
    simdisk_free(sim);
}

TEST(simdisk, sync_all_keeps_everything)
{
    struct simdisk *sim = simdisk_new();
    struct cn_disk *disk = simdisk_disk(sim);
    CHECK_INT(0, cn_disk_mkdir(disk, "d"));
    struct cn_disk_file *file = open_file(sim, "d/f");
    CHECK_INT(0, cn_disk_write_all(file, "abc", 3, 0));
    CHECK_INT(0, cn_disk_rename(disk, "d/f", "d/g"));
    CHECK_INT(0, cn_disk_sync_all(disk));
    cn_disk_close(file);
    for (uint64_t seed = 0; seed < 50; seed++) {
        struct simdisk *after = simdisk_crash(sim, seed);
        uint8_t bytes[4];
        CHECK_INT(3, contents(after, "d/g", bytes, 4));
        CHECK_INT(-1, contents(after, "d/f", bytes, 4));
        simdisk_free(after);
    }
    simdisk_free(sim);
}

TEST(simdisk, faults_strike_the_operation_they_were_told_to)
{
    struct simdisk *sim = simdisk_new();
    struct cn_disk_file *file = open_file(sim, "f");
    simdisk_set_fault(sim, &(struct simdisk_fault){.kinds = SIMDISK_WRITE, .at = 2, .code = -EIO});
    CHECK_INT(0, cn_disk_write_all(file, "ab", 2, 0));
    CHECK_INT(-EIO, cn_disk_write_all(file, "cd", 2, 2));
    CHECK_INT(0, cn_disk_write_all(file, "cd", 2, 2));
    CHECK_INT(4, cn_disk_size(file));
    simdisk_set_fault(sim, &(struct simdisk_fault){.kinds = SIMDISK_WRITE, .at = 1});
    struct iovec part = {"efgh", 4};
    int64_t wrote = cn_disk_write(file, &part, 1, 0);
    CHECK(wrote >= 1 && wrote < 4);
    simdisk_set_fault(sim, &(struct simdisk_fault){.space_bytes = 3});
    CHECK_INT(0, cn_disk_write_all(file, "xyz", 3, 4));
    CHECK_INT(-ENOSPC, cn_disk_write_all(file, "x", 1, 7));
    CHECK_INT(0, cn_disk_write_all(file, "x", 1, 0));
    simdisk_set_fault(
        sim, &(struct simdisk_fault){.kinds = SIMDISK_SYNC, .at = 1, .code = -EIO, .sticky = true});
    CHECK_INT(-EIO, cn_disk_sync_data(file));
    CHECK_INT(-EIO, cn_disk_sync_dir(simdisk_disk(sim), ""));
    cn_disk_close(file);
    CHECK_INT(6, simdisk_count(sim, SIMDISK_WRITE) - 1);
    simdisk_free(sim);
}

TEST(simdisk, planted_sync_bugs_lose_data)
{
    struct simdisk *sim = simdisk_new();
    struct cn_disk_file *file = open_file(sim, "log");
    CHECK_INT(0, cn_disk_sync_dir(simdisk_disk(sim), ""));
    simdisk_set_fault(sim, &(struct simdisk_fault){.late_sync = "log"});
    CHECK_INT(0, cn_disk_write_all(file, "a", 1, 0));
    CHECK_INT(0, cn_disk_sync_data(file));
    int kept = 0;
    uint8_t byte;
    for (uint64_t seed = 0; seed < 50; seed++) {
        struct simdisk *after = simdisk_crash(sim, seed);
        kept += contents(after, "log", &byte, 1) == 1;
        simdisk_free(after);
    }
    CHECK(kept > 0 && kept < 50);
    CHECK_INT(0, cn_disk_write_all(file, "b", 1, 1)); /* now "a" is durable */
    for (uint64_t seed = 0; seed < 50; seed++) {
        struct simdisk *after = simdisk_crash(sim, seed);
        CHECK_INT(1, contents(after, "log", &byte, 1));
        simdisk_free(after);
    }
    cn_disk_close(file);
    simdisk_free(sim);
}

TEST(simdisk, repeats_from_its_seed_and_agrees_with_an_array)
{
    enum { SIZE = 4000 };
    static uint8_t model[SIZE], one[SIZE], two[SIZE];
    struct cn_rand rand;
    cn_rand_init(&rand, test_seed());
    struct simdisk *sim = simdisk_new();
    struct cn_disk_file *file = open_file(sim, "f");
    CHECK_INT(0, cn_disk_sync_dir(simdisk_disk(sim), ""));
    size_t size = 0;
    memset(model, 0, SIZE);
    for (int step = 0; step < 300; step++) {
        size_t at = cn_rand_below(&rand, SIZE), length = cn_rand_below(&rand, SIZE - at) + 1;
        switch (cn_rand_below(&rand, 4)) {
        case 0:
            CHECK_INT(0, cn_disk_truncate(file, at));
            memset(model + at, 0, SIZE - at);
            size = at;
            break;
        case 1:
            CHECK_INT(0, cn_disk_sync_data(file));
            break;
        default:
            memset(one, step, length);
            CHECK_INT(0, cn_disk_write_all(file, one, length, at));
            memset(model + at, step, length);
            size = at + length > size ? at + length : size;
        }
        struct simdisk *after = simdisk_crash(sim, (uint64_t)step);
        struct simdisk *again = simdisk_crash(sim, (uint64_t)step);
        struct simdisk *killed = simdisk_copy(sim);
        int64_t count = contents(after, "f", one, SIZE);
        CHECK_INT(count, contents(again, "f", two, SIZE));
        CHECK(count >= 0 && memcmp(one, two, (size_t)count) == 0);
        CHECK_INT(size, contents(killed, "f", one, SIZE));
        CHECK(memcmp(one, model, size) == 0);
        simdisk_free(after);
        simdisk_free(again);
        simdisk_free(killed);
    }
    CHECK_INT(0, cn_disk_sync_data(file));
    struct simdisk *after = simdisk_crash(sim, 1);
    CHECK_INT(size, contents(after, "f", one, SIZE));
    CHECK(memcmp(one, model, size) == 0);
    simdisk_free(after);
    cn_disk_close(file);
    simdisk_free(sim);
}

TEST(simdisk, damages_a_bit_and_refuses_a_second_lock)
{
    struct simdisk *sim = simdisk_new();
    struct cn_disk_file *file = open_file(sim, "f"), *second = open_file(sim, "f");
    CHECK_INT(0, cn_disk_write_all(file, "a", 1, 0));
    CHECK_INT(0, simdisk_damage(sim, "f", 0, 1));
    CHECK_INT(-EINVAL, simdisk_damage(sim, "f", 1, 1));
    CHECK_INT(-ENOENT, simdisk_damage(sim, "g", 0, 1));
    uint8_t byte;
    CHECK_INT(1, contents(sim, "f", &byte, 1));
    CHECK_INT('c', byte);
    CHECK_INT(0, cn_disk_lock(file));
    CHECK_INT(-EAGAIN, cn_disk_lock(second));
    cn_disk_close(file);
    CHECK_INT(0, cn_disk_lock(second));
    cn_disk_close(second);
    simdisk_free(sim);
}
