/* SPDX-License-Identifier: Apache-2.0 */
/* An overlay behaves like a copy of the disk below, and leaves that disk alone. */
#include "base/overlay.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rand.h"
#include "test/lib/simdisk.h"
#include "test/lib/test.h"

enum { FILES = 6, SIZE = 20000 };

struct names {
    char text[64][32];
    int count;
};

static void add_name(void *data, const char *name, bool is_dir)
{
    struct names *names = data;
    snprintf(names->text[names->count++], 32, "%s%s", name, is_dir ? "/" : "");
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(a, b);
}

static void check_same_listing(struct cn_disk *a, struct cn_disk *b, const char *path)
{
    struct names x = {.count = 0}, y = {.count = 0};
    CHECK_INT(cn_disk_list(a, path, add_name, &x), cn_disk_list(b, path, add_name, &y));
    CHECK_INT(x.count, y.count);
    qsort(x.text, (size_t)x.count, 32, compare_names);
    qsort(y.text, (size_t)y.count, 32, compare_names);
    for (int i = 0; i < x.count; i++)
        CHECK_STR(x.text[i], y.text[i]);
}

static void check_same_file(struct cn_disk *a, struct cn_disk *b, const char *path)
{
    static uint8_t x[2 * SIZE], y[2 * SIZE];
    struct cn_disk_file *one, *two;
    int rc = cn_disk_open(a, path, CN_DISK_READONLY, &one);
    CHECK_INT(rc, cn_disk_open(b, path, CN_DISK_READONLY, &two));
    if (rc < 0)
        return;
    CHECK_INT(cn_disk_size(one), cn_disk_size(two));
    int64_t count = cn_disk_read(one, x, sizeof(x), 0);
    CHECK_INT(count, cn_disk_read(two, y, sizeof(y), 0));
    CHECK(memcmp(x, y, (size_t)count) == 0);
    cn_disk_close(one);
    cn_disk_close(two);
}

/* One random operation; the same on every disk for the same draws. */
static int operate(struct cn_disk *disk, struct cn_rand rand)
{
    static uint8_t bytes[SIZE];
    char path[32], other[32];
    snprintf(path, sizeof(path), "d/f%d", (int)cn_rand_below(&rand, FILES));
    snprintf(other, sizeof(other), "d/f%d", (int)cn_rand_below(&rand, FILES));
    uint64_t what = cn_rand_below(&rand, 10);
    if (what == 0)
        return cn_disk_unlink(disk, path);
    if (what == 1)
        return cn_disk_rename(disk, path, other);
    struct cn_disk_file *file;
    int rc = cn_disk_open(disk, path, what < 4 ? 0 : CN_DISK_CREATE, &file);
    if (rc < 0)
        return rc;
    size_t offset = cn_rand_below(&rand, SIZE), size = cn_rand_below(&rand, SIZE - offset);
    memset(bytes, (int)cn_rand_below(&rand, 256), size);
    rc = what < 6 ? cn_disk_truncate(file, offset) : cn_disk_write_all(file, bytes, size, offset);
    cn_disk_close(file);
    return rc;
}

TEST(overlay, acts_like_a_copy_and_changes_nothing_below)
{
    struct cn_rand rand;
    cn_rand_init(&rand, test_seed());
    struct simdisk *below = simdisk_new();
    CHECK_INT(0, cn_disk_mkdirs(simdisk_disk(below), "d"));
    for (int i = 0; i < 30; i++, cn_rand_next(&rand))
        operate(simdisk_disk(below), rand);
    struct simdisk *copy = simdisk_copy(below), *before = simdisk_copy(below);
    struct cn_disk *overlay = cn_disk_overlay_new(simdisk_disk(below));
    for (int i = 0; i < 300; i++, cn_rand_next(&rand)) {
        CHECK_INT(operate(simdisk_disk(copy), rand), operate(overlay, rand));
        check_same_listing(simdisk_disk(copy), overlay, "d");
        for (int f = 0; f < FILES; f++) {
            char path[32];
            snprintf(path, sizeof(path), "d/f%d", f);
            check_same_file(simdisk_disk(copy), overlay, path);
            check_same_file(simdisk_disk(before), simdisk_disk(below), path);
        }
    }
    CHECK_INT(0, cn_disk_mkdirs(overlay, "new/folder"));
    CHECK_INT(0, cn_disk_mkdirs(simdisk_disk(copy), "new/folder"));
    check_same_listing(simdisk_disk(copy), overlay, "");
    check_same_listing(simdisk_disk(copy), overlay, "new");
    check_same_listing(simdisk_disk(copy), overlay, "new/folder");
    check_same_listing(simdisk_disk(copy), overlay, "nowhere");
    cn_disk_overlay_free(overlay);
    simdisk_free(copy);
    simdisk_free(before);
    simdisk_free(below);
}
