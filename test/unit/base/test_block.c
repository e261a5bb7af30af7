/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that serve: what waits there is found (B1), and exceptions end (B3). */
#include "base/block.h"

#include <stdlib.h>

#include "base/disk.h"
#include "test/lib/test.h"

static void wait_here(void *data)
{
    (void)data;
    cn_may_block_here();
}

static void sync_disk(void *data)
{
    (void)cn_disk_sync_all(data);
}

TEST(block, what_waits_on_a_thread_that_serves_is_found)
{
    struct cn_disk *disk = cn_disk_system_new("/tmp");
    CHECK(disk != NULL);
    setenv("CAIRN_STRICT", "1", 1);
    CHECK(cn_may_block());
    wait_here(NULL);
    cn_block_forbid(true);
    CHECK(!cn_may_block());
    CHECK_ASSERTS("wait_here", wait_here, NULL);
    CHECK_ASSERTS("system_sync_all", sync_disk, disk);
    cn_block_forbid(false);
    wait_here(NULL);
    cn_disk_system_free(disk);
}

TEST(block, an_exception_ends_where_it_began)
{
    cn_block_forbid(true);
    bool before = cn_block_except(false);
    CHECK(before && cn_may_block());
    (void)cn_block_except(before);
    CHECK(!cn_may_block());
    cn_block_forbid(false);
}
