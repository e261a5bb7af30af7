/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"

#include <pthread.h>
#include <string.h>

#include "base/account.h"
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

/* Blocks of many sizes, each the largest of its thread's part of malloc() for a while. */
static void *take_and_free(void *data)
{
    (void)data;
    for (size_t mb = 1; mb <= 24; mb++) {
        void *block = cn_alloc(mb << 20);
        memset(block, 7, mb << 20);
        cn_free(block);
    }
    return NULL;
}

TEST(mem, what_threads_have_freed_goes_back_to_the_system)
{
    cn_mem_keep(1 << 20);
    pthread_t threads[8];
    uint64_t before = cn_account_read_used();
    for (size_t i = 0; i < 8; i++)
        CHECK_INT(0, pthread_create(&threads[i], NULL, take_and_free, NULL));
    for (size_t i = 0; i < 8; i++)
        pthread_join(threads[i], NULL);
    CHECK(cn_account_read_used() < before + (20u << 20));
}

TEST(mem, arrays_that_grow_keep_what_they_have)
{
    unsigned *items = NULL, *counted = NULL;
    unsigned count = 0, capacity = 0;
    for (size_t n = 0; n < 1000; n++) {
        CN_GROW(items, count, capacity);
        CN_GROW_COUNTED(counted, n);
        CHECK(capacity > count && capacity <= 2 * count + 8);
        items[count++] = counted[n] = (unsigned)n;
    }
    for (unsigned n = 0; n < 1000; n++)
        CHECK(items[n] == n && counted[n] == n);
    cn_free(items);
    cn_free(counted);
}
