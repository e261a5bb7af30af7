/* SPDX-License-Identifier: Apache-2.0 */
/* The real disk does what base/disk.h says. */
#include "base/disk.h"

#include <errno.h>
#include <string.h>

#include "test/lib/simdisk.h"
#include "test/lib/test.h"

struct listing {
    int files, dirs;
    char last[64];
};

static void count_entry(void *data, const char *name, bool is_dir)
{
    struct listing *listing = data;
    *(is_dir ? &listing->dirs : &listing->files) += 1;
    strncpy(listing->last, name, sizeof(listing->last) - 1);
}

TEST(disk, reads_what_was_written_and_stops_at_the_end)
{
    struct cn_disk *disk = cn_disk_system_new(test_dir());
    struct cn_disk_file *file;
    CHECK_INT(-ENOENT, cn_disk_open(disk, "a", 0, &file));
    CHECK_INT(0, cn_disk_open(disk, "a", CN_DISK_CREATE, &file));
    char one[] = "hello ", two[] = "world";
    struct iovec parts[] = {{one, 6}, {NULL, 0}, {two, 5}};
    CHECK_INT(0, cn_disk_writev_all(file, parts, 3, 2));
    CHECK_INT(13, cn_disk_size(file));
    char back[32];
    CHECK_INT(13, cn_disk_read(file, back, sizeof(back), 0));
    CHECK(memcmp(back, "\0\0hello world", 13) == 0);
    CHECK_INT(0, cn_disk_read(file, back, sizeof(back), 13));
    int64_t now = cn_disk_read_now(file, back, 5, 2);
    CHECK(now == -EAGAIN || (now == 5 && memcmp(back, "hello", 5) == 0)); /* by the file system */
    CHECK_INT(-EAGAIN, cn_disk_read_now(file, back, sizeof(back), 0)); /* never less than asked */
    CHECK_INT(0, cn_disk_allocate(file, 0, 4096));
    CHECK_INT(4096, cn_disk_size(file));
    CHECK_INT(0, cn_disk_truncate(file, 3));
    CHECK_INT(0, cn_disk_sync_data(file));
    CHECK_INT(3, cn_disk_size(file));
    cn_disk_close(file);
    CHECK_INT(-EEXIST, cn_disk_open(disk, "a", CN_DISK_CREATE | CN_DISK_EXCLUSIVE, &file));
    CHECK_INT(0, cn_disk_open(disk, "a", CN_DISK_READONLY, &file));
    CHECK_INT(-EBADF, cn_disk_write_all(file, "x", 1, 0));
    cn_disk_close(file);
    cn_disk_system_free(disk);
}

TEST(disk, makes_lists_renames_and_removes)
{
    struct cn_disk *disk = cn_disk_system_new(test_dir());
    CHECK_INT(0, cn_disk_mkdirs(disk, "x/y/z"));
    CHECK_INT(0, cn_disk_mkdirs(disk, "x/y/z"));
    CHECK_INT(0, cn_disk_replace(disk, "x/y/f", "old", 3));
    CHECK_INT(0, cn_disk_replace(disk, "x/y/f", "newer", 5));
    struct listing listing = {0};
    CHECK_INT(0, cn_disk_list(disk, "x/y", count_entry, &listing));
    CHECK_INT(1, listing.files);
    CHECK_INT(1, listing.dirs);
    CHECK_INT(0, cn_disk_rename(disk, "x/y/f", "g"));
    CHECK_INT(-ENOENT, cn_disk_rename(disk, "x/y/f", "g"));
    CHECK_INT(-ENOENT, cn_disk_list(disk, "nowhere", count_entry, &listing));
    listing = (struct listing){0};
    CHECK_INT(0, cn_disk_list(disk, "", count_entry, &listing));
    CHECK_INT(1, listing.files);
    CHECK_INT(0, cn_disk_unlink(disk, "g"));
    CHECK_INT(-ENOENT, cn_disk_unlink(disk, "g"));
    CHECK_INT(0, cn_disk_sync_dir(disk, ""));
    cn_disk_system_free(disk);
}

TEST(disk, a_second_lock_is_refused)
{
    struct cn_disk *disk = cn_disk_system_new(test_dir());
    struct cn_disk_file *one, *two;
    CHECK_INT(0, cn_disk_open(disk, "lock", CN_DISK_CREATE, &one));
    CHECK_INT(0, cn_disk_open(disk, "lock", CN_DISK_CREATE, &two));
    CHECK_INT(0, cn_disk_lock(one));
    CHECK_INT(-EAGAIN, cn_disk_lock(two));
    cn_disk_close(one);
    CHECK_INT(0, cn_disk_lock(two));
    cn_disk_close(two);
    cn_disk_system_free(disk);
    CHECK(!cn_disk_system_new("/nonexistent/place"));
}

static int is_folder(struct cn_disk *disk, const char *path)
{
    struct cn_disk_file *file;
    int rc = cn_disk_open(disk, path, CN_DISK_READONLY, &file);
    if (rc == 0)
        cn_disk_close(file);
    return rc == 0 || rc == -EISDIR;
}

/* Whoever made a folder may have been killed before its name was synced: the next one to ask for it
 * must not take it for durable. */
TEST(disk, folders_that_a_killed_process_made_are_synced_by_the_next)
{
    for (uint64_t at = 1;; at++) {
        struct simdisk *sim = simdisk_new();
        simdisk_set_fault(
            sim, &(struct simdisk_fault){.kinds = SIMDISK_CHANGES, .at = at, .code = -EIO});
        int rc = cn_disk_mkdirs(simdisk_disk(sim), "a/b/c");
        simdisk_set_fault(sim, NULL);
        CHECK(rc == 0 || rc == -EIO);
        CHECK_INT(0, cn_disk_mkdirs(simdisk_disk(sim), "a/b/c"));
        for (uint64_t seed = 0; seed < 30; seed++) {
            struct simdisk *after = simdisk_crash(sim, seed);
            CHECK(is_folder(simdisk_disk(after), "a/b/c"));
            simdisk_free(after);
        }
        simdisk_free(sim);
        if (rc == 0) {
            CHECK(at > 6);
            break;
        }
    }
}
