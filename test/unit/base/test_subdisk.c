/* SPDX-License-Identifier: Apache-2.0 */
/* A folder as a disk: the same files under longer names, and none outside. */
#include "base/subdisk.h"

#include <errno.h>
#include <string.h>

#include "test/lib/simdisk.h"
#include "test/lib/storetest.h"
#include "test/lib/test.h"

static void collect(void *data, const char *name, bool is_dir)
{
    char *names = data;
    strcat(strcat(names, name), is_dir ? "/ " : " ");
}

static void use(struct cn_disk *below)
{
    struct cn_disk *disk = cn_disk_sub_new(below, "a/b");
    struct cn_disk_file *file;
    char names[100] = "", text[6] = "";
    CHECK_INT(-ENOENT, cn_disk_open(disk, "x", CN_DISK_CREATE, &file));
    CHECK_INT(0, cn_disk_mkdirs(below, "a/b"));
    CHECK_INT(0, cn_disk_mkdirs(disk, "c/d"));
    CHECK_INT(0, cn_disk_replace(disk, "c/x", "hello", 5));
    CHECK_INT(0, cn_disk_rename(disk, "c/x", "c/y"));
    CHECK_INT(0, cn_disk_sync_dir(disk, "c"));
    CHECK_INT(0, cn_disk_sync_all(disk));
    CHECK_INT(0, cn_disk_list(disk, "c", collect, names));
    CHECK(strstr(names, "d/ ") && strstr(names, "y "));
    CHECK_INT(0, cn_disk_open(below, "a/b/c/y", CN_DISK_READONLY, &file));
    CHECK_INT(5, cn_disk_read(file, text, 5, 0));
    CHECK_STR("hello", text);
    cn_disk_close(file);
    CHECK_INT(0, cn_disk_unlink(disk, "c/y"));
    CHECK_INT(-ENOENT, cn_disk_open(below, "a/b/c/y", 0, &file));
    char longest[600];
    memset(longest, 'x', sizeof(longest) - 1);
    longest[sizeof(longest) - 1] = 0;
    CHECK_INT(-ENAMETOOLONG, cn_disk_open(disk, longest, 0, &file));
    cn_disk_sub_free(disk);
}

TEST(subdisk, is_a_folder_of_a_simulated_and_of_a_real_disk)
{
    struct simdisk *sim = simdisk_new();
    use(simdisk_disk(sim));
    simdisk_free(sim);
    struct cn_disk *real = storetest_disk();
    use(real);
    CHECK_INT(0, cn_disk_unlink(real, "a/b/c/d")); /* an empty folder */
    CHECK_INT(-ENOTEMPTY, cn_disk_unlink(real, "a/b"));
    cn_disk_system_free(real);
}
