/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"

#include <string.h>

#include "test/lib/test.h"

#define MEGABYTE ((size_t)1 << 20)

TEST(mem, a_large_block_is_used_again)
{
    char *block = cn_try_alloc_large(10 * MEGABYTE);
    memset(block, 1, 10 * MEGABYTE);
    cn_free_large(block);
    char *again = cn_try_alloc_large(9 * MEGABYTE);
    CHECK(again == block);
    cn_free_large(again);
    cn_free_kept();
}

TEST(mem, one_of_another_size_is_not)
{
    char *block = cn_try_alloc_large(32 * MEGABYTE);
    cn_free_large(block);
    char *smaller = cn_try_alloc_large(5 * MEGABYTE), *larger = cn_try_alloc_large(40 * MEGABYTE);
    CHECK(smaller != block);
    CHECK(larger != block);
    cn_free_large(smaller);
    cn_free_large(larger);
    cn_free_kept();
}

TEST(mem, small_blocks_and_nothing_can_be_freed_too)
{
    cn_free_large(NULL);
    cn_free_large(cn_alloc(1));
    cn_free_large(cn_try_alloc_large(100));
    cn_free_kept();
    cn_free_kept();
}

TEST(mem, few_are_kept)
{
    char *blocks[20];
    for (int i = 0; i < 20; i++)
        blocks[i] = cn_try_alloc_large(16 * MEGABYTE);
    for (int i = 0; i < 20; i++)
        cn_free_large(blocks[i]); /* what is not kept is freed: the sanitizers would see it */
    cn_free_kept();
}
