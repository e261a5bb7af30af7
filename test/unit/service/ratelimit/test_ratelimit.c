/* SPDX-License-Identifier: Apache-2.0 */
/* Rate limits with a clock that the test moves: counts by key and period, written down and read
 * back, a clock that is set back, and more keys than are counted. */
#include "service/ratelimit/ratelimit.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/siphash.h"
#include "object/object.h"
#include "store/database.h"
#include "test/lib/service_rig.h"
#include "test/lib/simdisk.h"
#include "test/lib/storetest.h"
#include "test/lib/test.h"

#define MINUTE_MS 60000

static void open_rig(struct service_rig *rig, struct simdisk *disk)
{
    service_rig_open(rig, simdisk_disk(disk), &cn_ratelimit_class, "$ratelimit/7");
    rig->wall_ms = 1700000040000; /* a minute begins */
}

static bool limit(struct service_rig *rig, const char *key, uint64_t most, unsigned period_s)
{
    struct cn_ratelimit_call *call =
        cn_ratelimit_call_new(rig->ns, key, strlen(key), most, period_s);
    service_rig_call(rig, &call->base);
    CHECK_INT(0, call->base.call.envelope.err.code);
    bool success = call->success;
    cn_service_call_free(&call->base);
    return success;
}

static unsigned passed(struct service_rig *rig, const char *key, uint64_t most, unsigned period_s,
                       unsigned tries)
{
    unsigned count = 0;
    for (unsigned i = 0; i < tries; i++)
        count += limit(rig, key, most, period_s);
    return count;
}

/* Runs the lane until what was counted is written down: nothing holds the object any more. */
static void wait_written(struct service_rig *rig, const char *key)
{
    struct cn_ratelimit_call *call = cn_ratelimit_call_new(rig->ns, key, strlen(key), 1, 60);
    struct cn_object *object =
        cn_map_find(&rig->lane.objects, &call->base.call.key, sizeof(call->base.call.key));
    CHECK(object);
    service_rig_hurry(rig, CN_RATELIMIT_FLUSH_MS);
    while (object->holds)
        uv_run(&rig->loop, UV_RUN_ONCE);
    cn_service_call_free(&call->base);
}

TEST(ratelimit, so_many_pass_in_a_period_and_the_next_begins_anew)
{
    struct service_rig rig;
    struct simdisk *disk = simdisk_new();
    open_rig(&rig, disk);
    CHECK_INT(3, passed(&rig, "a", 3, 60, 10));
    CHECK_INT(2, passed(&rig, "b", 2, 60, 5)); /* keys are apart */
    CHECK_INT(0, passed(&rig, "c", 0, 60, 2));
    rig.wall_ms += MINUTE_MS - 1;
    CHECK_INT(0, passed(&rig, "a", 3, 60, 2));
    rig.wall_ms += 1;
    CHECK_INT(3, passed(&rig, "a", 3, 60, 4));
    service_rig_close(&rig);
    simdisk_free(disk);
}

/* Periods are those of the clock, not of the first call. */
TEST(ratelimit, a_period_ends_where_the_clocks_does)
{
    struct service_rig rig;
    struct simdisk *disk = simdisk_new();
    open_rig(&rig, disk);
    rig.wall_ms += 9500;
    CHECK_INT(2, passed(&rig, "a", 2, 10, 3));
    rig.wall_ms += 500;
    CHECK_INT(2, passed(&rig, "a", 2, 10, 3));
    service_rig_close(&rig);
    simdisk_free(disk);
}

TEST(ratelimit, the_same_key_is_counted_apart_for_each_period)
{
    struct service_rig rig;
    struct simdisk *disk = simdisk_new();
    open_rig(&rig, disk);
    CHECK_INT(2, passed(&rig, "a", 2, 60, 3));
    CHECK_INT(2, passed(&rig, "a", 2, 10, 3));
    rig.wall_ms += 10000;
    CHECK_INT(0, passed(&rig, "a", 2, 60, 3));
    CHECK_INT(2, passed(&rig, "a", 2, 10, 3));
    service_rig_close(&rig);
    simdisk_free(disk);
}

TEST(ratelimit, keys_are_bytes)
{
    struct service_rig rig;
    struct simdisk *disk = simdisk_new();
    open_rig(&rig, disk);
    static const char *const keys[] = {"", "a", "aa", "a\xff", "A"};
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        CHECK(limit(&rig, keys[i], 1, 60));
    struct cn_ratelimit_call *call = cn_ratelimit_call_new(rig.ns, "a\0b", 3, 1, 60);
    service_rig_call(&rig, &call->base);
    CHECK(call->success);
    cn_service_call_free(&call->base);
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        CHECK(!limit(&rig, keys[i], 1, 60));
    service_rig_close(&rig);
    simdisk_free(disk);
}

/* RL-1 */
TEST(ratelimit, what_was_written_down_counts_after_a_restart_for_its_period)
{
    struct service_rig rig;
    struct simdisk *disk = simdisk_new();
    open_rig(&rig, disk);
    CHECK_INT(2, passed(&rig, "a", 5, 60, 2));
    wait_written(&rig, "a");
    service_rig_close(&rig);
    open_rig(&rig, disk);
    CHECK_INT(3, passed(&rig, "a", 5, 60, 10));
    wait_written(&rig, "a");
    service_rig_close(&rig);
    open_rig(&rig, disk);
    rig.wall_ms += MINUTE_MS;
    CHECK_INT(5, passed(&rig, "a", 5, 60, 10));
    service_rig_close(&rig);
    simdisk_free(disk);
}

/* A clock that was wrong by a day must not shut a key out for a day. */
TEST(ratelimit, a_clock_set_back_begins_its_period_anew)
{
    struct service_rig rig;
    struct simdisk *disk = simdisk_new();
    open_rig(&rig, disk);
    rig.wall_ms += 86400000;
    CHECK_INT(2, passed(&rig, "a", 2, 60, 3));
    rig.wall_ms -= 86400000;
    CHECK_INT(2, passed(&rig, "a", 2, 60, 3));
    rig.wall_ms += 86400000;
    CHECK_INT(2, passed(&rig, "b", 2, 60, 3));
    wait_written(&rig, "b");
    service_rig_close(&rig);
    open_rig(&rig, disk); /* the day before: what was read is of no period of now */
    CHECK_INT(2, passed(&rig, "b", 2, 60, 3));
    service_rig_close(&rig);
    simdisk_free(disk);
}

static struct cn_object *object_of(struct service_rig *rig, const char *key)
{
    struct cn_ratelimit_call *call = cn_ratelimit_call_new(rig->ns, key, strlen(key), 1, 60);
    struct cn_object *object =
        cn_map_find(&rig->lane.objects, &call->base.call.key, sizeof(call->base.call.key));
    cn_service_call_free(&call->base);
    CHECK(object && object->db);
    return object;
}

/* Another key that the object of `key` counts. */
static void find_neighbour(struct service_rig *rig, const char *key, char neighbour[16])
{
    uint8_t hash[CN_SIPHASH_SIZE], other[CN_SIPHASH_SIZE];
    unsigned next = 0;
    cn_siphash(rig->ns->keys.name, key, strlen(key), hash);
    do {
        snprintf(neighbour, 16, "%u", next++);
        cn_siphash(rig->ns->keys.name, neighbour, strlen(neighbour), other);
    } while (hash[0] % CN_RATELIMIT_SHARDS != other[0] % CN_RATELIMIT_SHARDS);
}

/* Random keys in great number may go uncounted while they come, and no longer. */
TEST(ratelimit, keys_past_the_bound_pass_uncounted_until_a_period_ends)
{
    struct service_rig rig;
    struct simdisk *disk = simdisk_new();
    char key[16], sql[256];
    open_rig(&rig, disk);
    find_neighbour(&rig, "first", key);
    CHECK(limit(&rig, "first", 1, 60));
    wait_written(&rig, "first");
    snprintf(sql, sizeof(sql),
             "WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < %d) "
             "INSERT INTO counter SELECT CAST(i AS BLOB), 60, %lld, 1 FROM n",
             CN_RATELIMIT_KEYS_MAX - 1, (long long)(rig.wall_ms / 60000));
    storetest_exec(object_of(&rig, "first")->db, sql);
    storetest_commit(object_of(&rig, "first")->db);
    service_rig_close(&rig);
    open_rig(&rig, disk);
    CHECK(!limit(&rig, "first", 1, 60));
    CHECK_INT(5, passed(&rig, key, 1, 60, 5)); /* not counted */
    rig.wall_ms += MINUTE_MS;
    CHECK_INT(1, passed(&rig, key, 1, 60, 5)); /* though no old key was asked for */
    service_rig_close(&rig);
    simdisk_free(disk);
}
