/* SPDX-License-Identifier: Apache-2.0 */
/* A folder of another process: the same files, failures that are kept, and no way out of it. */
#include "base/netdisk.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/mem.h"
#include "test/lib/simdisk.h"
#include "test/lib/storetest.h"
#include "test/lib/test.h"

struct line {
    struct cn_netdisk_server *server;
    int count; /* of exchanges */
    int fails; /* with this */
};

static int exchange(void *data, const struct cn_buf *run, struct cn_buf *answer)
{
    struct line *line = data;
    line->count++;
    CHECK(run->size <= CN_NETDISK_MESSAGE_MAX);
    if (line->fails)
        return line->fails;
    cn_netdisk_serve(line->server, run->data, run->size, answer);
    CHECK(answer->size <= CN_NETDISK_MESSAGE_MAX);
    return 0;
}

static void count_entry(void *data, const char *name, bool is_dir)
{
    CHECK(is_dir == (name[0] == 'd'));
    ++*(int *)data;
}

static void use(struct cn_disk *below)
{
    struct line line = {.server = cn_netdisk_server_new(below)};
    struct cn_disk *disk = cn_netdisk_new(exchange, &line);
    struct cn_disk_file *file, *other;
    CHECK_INT(-ENOENT, cn_disk_open(disk, "a/x", CN_DISK_CREATE, &file));
    CHECK_INT(0, cn_disk_mkdirs(disk, "a/d"));
    CHECK_INT(0, cn_disk_open(disk, "a/x", CN_DISK_CREATE | CN_DISK_EXCLUSIVE, &file));
    CHECK_INT(-EEXIST, cn_disk_open(disk, "a/x", CN_DISK_CREATE | CN_DISK_EXCLUSIVE, &other));
    size_t size = 3 * CN_NETDISK_RUN_MAX + 5;
    uint8_t *bytes = cn_alloc(size), *again = cn_alloc(size + 10);
    for (size_t i = 0; i < size; i++)
        bytes[i] = (uint8_t)(i * 2654435761u >> 13);
    CHECK_INT(0, cn_disk_write_all(file, bytes, size, 7));
    CHECK_INT((int64_t)size, cn_disk_read(file, again, size + 10, 7));
    CHECK(memcmp(bytes, again, size) == 0);
    CHECK_INT((int64_t)size + 7, cn_disk_size(file));
    int before = line.count;
    CHECK_INT(0, cn_disk_truncate(file, 9)); /* N1 */
    CHECK_INT(0, cn_disk_sync_data(file));
    CHECK_INT(0, cn_disk_sync_dir(disk, "a"));
    CHECK_INT(before, line.count);
    CHECK_INT(9, cn_disk_size(file));
    cn_disk_close(file);
    CHECK_INT(0, cn_disk_replace(disk, "a/y", "hello", 5));
    CHECK_INT(0, cn_disk_rename(disk, "a/y", "a/z"));
    CHECK_INT(0, cn_disk_unlink(disk, "a/x"));
    CHECK_INT(-ENOENT, cn_disk_unlink(disk, "a/x"));
    int count = 0;
    CHECK_INT(0, cn_disk_list(disk, "a", count_entry, &count));
    CHECK_INT(2, count);
    CHECK_INT(-ENOENT, cn_disk_list(disk, "b", count_entry, &count));
    CHECK_INT(0, cn_disk_sync_all(disk));
    CHECK_INT(0, cn_netdisk_flush(disk));
    cn_netdisk_free(disk);
    cn_netdisk_server_free(line.server);
    cn_free(bytes);
    cn_free(again);
}

TEST(netdisk, is_a_simulated_and_a_real_disk)
{
    struct simdisk *sim = simdisk_new();
    use(simdisk_disk(sim));
    simdisk_free(sim);
    struct cn_disk *real = storetest_disk();
    use(real);
    cn_disk_system_free(real);
}

TEST(netdisk, lists_folders_that_no_answer_holds)
{
    enum { COUNT = 20000 };
    struct simdisk *sim = simdisk_new();
    struct line line = {.server = cn_netdisk_server_new(simdisk_disk(sim))};
    struct cn_disk *disk = cn_netdisk_new(exchange, &line);
    char name[120];
    memset(name, 'f', sizeof(name));
    for (int i = 0; i < COUNT; i++) {
        struct cn_disk_file *file;
        snprintf(name + 100, 20, "%d", i);
        CHECK_INT(0, cn_disk_open(simdisk_disk(sim), name, CN_DISK_CREATE, &file));
        cn_disk_close(file);
    }
    int count = 0;
    CHECK_INT(0, cn_disk_list(disk, "", count_entry, &count));
    CHECK_INT(COUNT, count);
    CHECK(line.count > 1);
    cn_netdisk_free(disk);
    cn_netdisk_server_free(line.server);
    simdisk_free(sim);
}

/* N2: whatever waits and fails is found by the flush, and by everything before it. */
TEST(netdisk, keeps_a_failure)
{
    for (int way = 0; way < 2; way++) {
        struct simdisk *sim = simdisk_new();
        struct line line = {.server = cn_netdisk_server_new(simdisk_disk(sim))};
        struct cn_disk *disk = cn_netdisk_new(exchange, &line);
        struct cn_disk_file *file;
        uint8_t bytes[4096] = {1};
        CHECK_INT(0, cn_disk_open(disk, "x", CN_DISK_CREATE, &file));
        struct simdisk_fault full = {.space_bytes = 1024};
        if (way == 0)
            simdisk_set_fault(sim, &full);
        else
            line.fails = -ETIMEDOUT;
        int want = way == 0 ? -ENOSPC : -ETIMEDOUT;
        CHECK_INT(0, cn_disk_write_all(file, bytes, sizeof(bytes), 0)); /* it waits */
        cn_disk_close(file);
        line.fails = way == 0 ? 0 : -ETIMEDOUT;
        CHECK_INT(want, cn_netdisk_flush(disk));
        simdisk_set_fault(sim, &(struct simdisk_fault){0});
        line.fails = 0;
        CHECK_INT(want, cn_disk_open(disk, "y", CN_DISK_CREATE, &file));
        CHECK_INT(want, cn_netdisk_flush(disk));
        cn_netdisk_free(disk);
        cn_netdisk_server_free(line.server);
        simdisk_free(sim);
    }
}

/* N3 */
TEST(netdisk, stays_in_its_folder)
{
    static const char *const paths[] = {"..",  "../x", "a/../../x", "/etc/x", "a//x",
                                        "./x", "a/.",  "a/..",      "/",      "x/"};
    struct cn_disk *real = storetest_disk();
    struct line line = {.server = cn_netdisk_server_new(real)};
    CHECK_INT(0, cn_disk_mkdir(real, "a"));
    for (size_t i = 0; i < CN_ARRAY_COUNT(paths); i++) {
        struct cn_disk *disk = cn_netdisk_new(exchange, &line);
        struct cn_disk_file *file;
        int count = 0;
        CHECK_INT(-EINVAL, cn_disk_open(disk, paths[i], CN_DISK_CREATE, &file));
        CHECK_INT(-EINVAL, cn_disk_mkdir(disk, paths[i]));
        CHECK_INT(-EINVAL, cn_disk_unlink(disk, paths[i]));
        CHECK_INT(-EINVAL, cn_disk_rename(disk, "a", paths[i]));
        CHECK_INT(-EINVAL, cn_disk_rename(disk, paths[i], "b"));
        CHECK_INT(-EINVAL, cn_disk_list(disk, paths[i], count_entry, &count));
        CHECK_INT(0, count);
        cn_netdisk_free(disk);
    }
    cn_netdisk_server_free(line.server);
    cn_disk_system_free(real);
}

/* Bytes of any kind are no operation, and end nothing. */
TEST(netdisk, takes_no_bytes_for_an_operation)
{
    struct simdisk *sim = simdisk_new();
    struct cn_netdisk_server *server = cn_netdisk_server_new(simdisk_disk(sim));
    uint8_t bytes[64];
    for (int i = 0; i < 20000; i++) {
        struct cn_buf answer = {0};
        size_t size = (size_t)i % sizeof(bytes);
        for (size_t k = 0; k < size; k++)
            bytes[k] = (uint8_t)((unsigned)i * 2654435761u >> (k % 24));
        if (size > 8)
            memcpy(bytes, &(uint32_t){(uint32_t)size - 4}, 4);
        cn_netdisk_serve(server, bytes, size, &answer);
        CHECK(answer.size > 0);
        cn_buf_fini(&answer);
    }
    cn_netdisk_server_free(server);
    simdisk_free(sim);
}
