/* SPDX-License-Identifier: Apache-2.0 */
/* The account of memory: invariants A1 to A6 of base/account.h. */
#include "base/account.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "test/lib/test.h"

#define MB ((uint64_t)1 << 20)

static void calm(uint64_t limit)
{
    cn_account_set_limit(limit);
    (void)cn_account_look(0);
    (void)cn_account_look(0);
}

static void put(const char *root, const char *path, const char *text)
{
    char *whole = cn_sprintf("%s%s", root, path);
    for (char *at = whole + strlen(root) + 1; (at = strchr(at, '/')); at++) {
        *at = 0;
        (void)mkdir(whole, 0700);
        *at = '/';
    }
    FILE *file = fopen(whole, "w");
    CHECK(file && fputs(text, file) >= 0 && fclose(file) == 0);
    cn_free(whole);
}

TEST(account, levels_come_in_order_as_memory_grows)
{
    calm(1000 * MB);
    CHECK_INT(CN_ACCOUNT_CALM, cn_account_look(699 * MB));
    enum cn_account_level last = CN_ACCOUNT_CALM;
    for (uint64_t used = 700; used <= 1000; used++) {
        enum cn_account_level level = cn_account_look(used * MB);
        CHECK(level == last || level == last + 1); /* A2 */
        last = level;
    }
    CHECK_INT(CN_ACCOUNT_RELIEVE_RESET, last);
    CHECK_INT(50 * MB, cn_account_excess(CN_ACCOUNT_RELIEVE_RESET));
    calm(1000 * MB);
    CHECK_INT(CN_ACCOUNT_RELIEVE_RESET, cn_account_look(2000 * MB)); /* at once, not step by step */
}

TEST(account, a_level_is_left_only_below_its_slack)
{
    calm(1000 * MB);
    CHECK_INT(CN_ACCOUNT_RELIEVE_REQUESTS, cn_account_look(900 * MB));
    CHECK_INT(CN_ACCOUNT_RELIEVE_REQUESTS, cn_account_look(899 * MB)); /* A3 */
    CHECK_INT(CN_ACCOUNT_RELIEVE_REQUESTS, cn_account_look(870 * MB));
    CHECK_INT(CN_ACCOUNT_RELIEVE_BODIES, cn_account_look(869 * MB));
    CHECK_INT(CN_ACCOUNT_RELIEVE_BODIES, cn_account_look(899 * MB));
    CHECK_INT(CN_ACCOUNT_CALM, cn_account_look(100 * MB));
}

TEST(account, bodies_get_a_quarter_once_half_is_used)
{
    calm(1000 * MB);
    (void)cn_account_look(400 * MB);
    CHECK(cn_account_take(CN_ACCOUNT_BODIES, 300 * MB)); /* nothing is short */
    (void)cn_account_look(501 * MB);
    CHECK(!cn_account_take(CN_ACCOUNT_BODIES, 1)); /* A4 */
    cn_account_add(CN_ACCOUNT_BODIES, -100 * (int64_t)MB);
    CHECK(cn_account_take(CN_ACCOUNT_BODIES, 50 * MB));
    CHECK(!cn_account_take(CN_ACCOUNT_BODIES, 1));
    CHECK_INT(250 * MB,
              cn_account_kind_bytes(CN_ACCOUNT_BODIES)); /* what was refused is not kept */
    cn_account_add(CN_ACCOUNT_BODIES, -250 * (int64_t)MB);
    (void)cn_account_look(860 * MB);
    CHECK(!cn_account_take(CN_ACCOUNT_BODIES, 1)); /* level BODIES */
    CHECK_INT(0, cn_account_kind_bytes(CN_ACCOUNT_BODIES));
}

TEST(account, without_a_limit_nothing_gives_way)
{
    calm(0);
    CHECK_INT(CN_ACCOUNT_CALM, cn_account_look(UINT64_MAX / 2)); /* A6 */
    CHECK(cn_account_take(CN_ACCOUNT_BODIES, 1u << 30));
    cn_account_add(CN_ACCOUNT_BODIES, -(1 << 30));
    CHECK_INT(0, cn_account_excess(CN_ACCOUNT_RELIEVE_RESET));
}

static uint64_t told;
static unsigned forgotten;
static uint64_t source_bytes(void *data)
{
    (void)data;
    return told;
}
static void source_forget(void *data)
{
    (void)data;
    forgotten++;
    told = 0;
}

TEST(account, a_source_is_counted_by_what_it_says_now)
{
    struct cn_account_source source = {CN_ACCOUNT_CACHES, source_bytes, source_forget, NULL};
    cn_account_source_add(&source);
    told = 7 * MB;
    cn_account_sources_ask();
    cn_account_sources_ask();
    CHECK_INT(7 * MB, cn_account_kind_bytes(CN_ACCOUNT_CACHES));
    cn_account_sources_forget();
    cn_account_sources_ask();
    CHECK_INT(1, forgotten);
    CHECK_INT(0, cn_account_kind_bytes(CN_ACCOUNT_CACHES));
    told = 3 * MB;
    cn_account_sources_ask();
    cn_account_sources_clear();
    CHECK_INT(0, cn_account_kind_bytes(CN_ACCOUNT_CACHES)); /* A5 */
}

TEST(account, what_the_kernel_says_grows_with_memory_that_is_written)
{
    uint64_t before = cn_account_read_used();
    CHECK(before > 0);
    size_t size = 64 * MB;
    volatile char *memory = malloc(size);
    CHECK(memory);
    for (size_t i = 0; i < size; i += 4096)
        memory[i] = 1;
    uint64_t after = cn_account_read_used();
    CHECK(after > before + 60 * MB); /* A1 */
    free((void *)memory);
}

TEST(account, the_default_is_three_quarters_of_the_machine_or_of_its_group)
{
    const char *root = test_dir();
    put(root, "/proc/meminfo", "MemTotal:        8388608 kB\nMemFree: 1 kB\n");
    CHECK_INT(6144 * MB, cn_account_default(root));
    put(root, "/proc/self/cgroup", "0::/system.slice/cairn.service\n");
    put(root, "/sys/fs/cgroup/system.slice/cairn.service/memory.max", "max\n");
    CHECK_INT(6144 * MB, cn_account_default(root));
    put(root, "/sys/fs/cgroup/system.slice/memory.max", "1073741824\n"); /* that of its parent */
    CHECK_INT(768 * MB, cn_account_default(root));
    put(root, "/sys/fs/cgroup/system.slice/cairn.service/memory.max", "536870912\n");
    CHECK_INT(384 * MB, cn_account_default(root));
    put(root, "/proc/self/cgroup", "5:cpu:/x\n4:memory:/docker/abc\n0::/\n");
    put(root, "/sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes", "268435456\n");
    CHECK_INT(192 * MB, cn_account_default(root));
    put(root, "/sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes", "9223372036854771712\n");
    CHECK_INT(6144 * MB, cn_account_default(root)); /* version 1 writes "none" so */
}
