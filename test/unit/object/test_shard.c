/* SPDX-License-Identifier: Apache-2.0 */
/* The set of shards by itself: what its functions promise whatever lanes there are. */
#include "object/shard.h"

#include "test/unit/object/shard_world.h"

TEST(shard, S1_the_shard_of_an_id_is_what_it_has_always_been)
{
    struct cn_object_key key = {.namespace_id = 7};
    for (unsigned i = 0; i < CN_OBJECT_ID_SIZE; i++)
        key.id[i] = (uint8_t)(i * 7 + 1);
    /* Bytes 16 to 23, the lowest first: 0xa29b948d867f7871. */
    CHECK_INT(0xa29b948d867f7871ull % 256, cn_shard_index(&key, 256));
    CHECK_INT(0xa29b948d867f7871ull % 1000, cn_shard_index(&key, 1000));
    CHECK_INT(0, cn_shard_index(&key, 1));
    unsigned before = cn_shard_index(&key, 256);
    key.id[15]++;
    key.id[24]++;
    key.namespace_id++;
    CHECK_INT(before, cn_shard_index(&key, 256));
}

struct alone {
    struct cn_shards *shards;
    struct under under;
    struct fake_clock clock;
};

static void alone_open(struct alone *alone)
{
    *alone = (struct alone){.clock = {{fake_wall, fake_mono}, 1000000}};
    alone->shards = cn_shards_new(&(struct cn_shards_options){.count = SHARDS, .number = number});
    under_open(&alone->under, test_dir(), 1, &alone->clock.clock, NULL);
}

static void alone_close(struct alone *alone)
{
    cn_shards_free(alone->shards);
    under_close(&alone->under);
}

TEST(shard, without_lanes_a_change_is_over_when_nobody_holds_the_shard)
{
    struct alone alone;
    struct outcome opened = {0}, stopped = {0}, resumed = {0}, closed = {0};
    struct cn_err err;
    alone_open(&alone);
    CHECK_INT(CN_SHARD_CLOSED, cn_shards_state(alone.shards, 1));
    CHECK(!cn_shards_hold_index(alone.shards, 1));
    CHECK_INT(0, cn_shards_open(alone.shards, 1, alone.under.store, alone.under.history, on_outcome,
                                &opened, &err));
    CHECK_INT(1, opened.count);
    CHECK(opened.reached);
    CHECK_INT(CN_SHARD_OPEN, cn_shards_state(alone.shards, 1));
    struct cn_shard *held = cn_shards_hold_index(alone.shards, 1);
    CHECK(held && held->store == alone.under.store);
    cn_shards_stop(alone.shards, 1, on_outcome, &stopped);
    CHECK_INT(0, stopped.count);
    CHECK(!cn_shards_hold_index(alone.shards, 1)); /* who comes now comes too late */
    cn_shard_hold_more(held);
    cn_shard_release(held);
    CHECK_INT(CN_SHARD_STOPPING, cn_shards_state(alone.shards, 1));
    cn_shard_release(held);
    CHECK(stopped.count == 1 && stopped.reached);
    CHECK_INT(CN_SHARD_STOPPED, cn_shards_state(alone.shards, 1));
    cn_shards_resume(alone.shards, 1, on_outcome, &resumed);
    CHECK(resumed.count == 1 && resumed.reached);
    held = cn_shards_hold_index(alone.shards, 1);
    cn_shards_close(alone.shards, 1, on_outcome, &closed);
    CHECK_INT(0, closed.count);
    CHECK(held->store == alone.under.store); /* S3, S4 */
    CHECK(atomic_load(&held->shut));         /* S2 */
    cn_shard_release(held);
    CHECK(closed.count == 1 && closed.reached);
    CHECK_INT(CN_SHARD_CLOSED, cn_shards_state(alone.shards, 1));
    alone_close(&alone);
}

TEST(shard, a_change_that_is_overtaken_or_impossible_says_so)
{
    struct alone alone;
    struct outcome stopped = {0}, resumed = {0}, closed = {0}, again = {0}, never = {0};
    struct cn_err err;
    alone_open(&alone);
    cn_shards_stop(alone.shards, 1, on_outcome, &never);
    CHECK(never.count == 1 && !never.reached);
    never = (struct outcome){0};
    cn_shards_close(alone.shards, 1, on_outcome, &never);
    CHECK(never.count == 1 && !never.reached);
    CHECK_INT(0, cn_shards_open(alone.shards, 1, alone.under.store, NULL, NULL, NULL, &err));
    CHECK_INT(CN_ELOCKED,
              cn_shards_open(alone.shards, 1, alone.under.store, NULL, on_outcome, &again, &err));
    CHECK_INT(0, again.count);
    struct cn_shard *held = cn_shards_hold_index(alone.shards, 1);
    cn_shards_stop(alone.shards, 1, on_outcome, &stopped);
    cn_shards_resume(alone.shards, 1, on_outcome, &resumed); /* reached: it waits for no holds */
    CHECK(stopped.count == 1 && !stopped.reached);
    CHECK(resumed.count == 1 && resumed.reached);
    stopped = (struct outcome){0};
    cn_shards_stop(alone.shards, 1, on_outcome, &stopped);
    cn_shards_close(alone.shards, 1, on_outcome, &closed);
    CHECK(stopped.count == 1 && !stopped.reached);
    cn_shards_close(alone.shards, 1, on_outcome, &again);
    CHECK(again.count == 1 && !again.reached && !closed.count);
    cn_shard_release(held);
    CHECK(closed.count == 1 && closed.reached);
    /* And opened again. */
    CHECK_INT(0, cn_shards_open(alone.shards, 1, alone.under.store, NULL, NULL, NULL, &err));
    cn_shards_close(alone.shards, 1, NULL, NULL);
    alone_close(&alone);
}
