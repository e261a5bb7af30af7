/* SPDX-License-Identifier: Apache-2.0 */
/* Replicas: what is settled is there in every form, on every disk, after every end; nothing else
 * is. */
#include "store/replica.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/disk.h"
#include "base/mem.h"
#include "store/database.h"
#include "store/history.h"
#include "store/sink.h"
#include "store/store.h"
#include "test/lib/listengine.h"
#include "test/lib/simdisk.h"
#include "test/lib/storemodel.h"
#include "test/lib/storetest.h"
#include "test/lib/test.h"

enum { SHARD = 7 };

static struct cn_replicas *replicas_open(struct cn_disk *disk, struct listengine *engine)
{
    struct cn_replicas_config config = {
        .disk = disk,
        .hooks = listengine_hooks(engine),
        .segment_size = 512 << 10,
        .manual = true,
    };
    struct cn_replicas *replicas;
    struct cn_err err = {0};
    if (cn_replicas_open(&config, &replicas, &err) < 0)
        test_fail(__FILE__, __LINE__, "%s", err.text);
    return replicas;
}

static struct cn_replica *create(struct cn_replicas *replicas)
{
    struct cn_replica *replica;
    CHECK_INT(0, cn_replicas_create(replicas, SHARD, &replica, NULL));
    return replica;
}

static struct cn_store *promote(struct listengine *engine, struct cn_replica *replica)
{
    struct cn_store *store;
    struct cn_err err = {0};
    if (cn_replica_promote(replica, engine->last, NULL, &store, &err) < 0)
        test_fail(__FILE__, __LINE__, "%s", err.text);
    engine->owner = replica;
    return store;
}

static struct cn_replica_state state_of(struct cn_replica *replica)
{
    struct cn_replica_state state;
    cn_replica_state(replica, &state);
    return state;
}

/* Runs some turns; databases are closed. */
static void turns(struct model *model, struct cn_store *store, int count)
{
    uint64_t lsn;
    CHECK_INT(0, model_open_namespaces(model, store));
    for (int i = 0; i < count; i++) {
        if (model_turn(model, store, &lsn) < 0)
            test_fail(__FILE__, __LINE__, "%s", model->why);
    }
    model_close_databases(model);
}

static void compare(struct model *model, struct cn_store *store, uint64_t lsn)
{
    if (model_compare(model, store, lsn) < 0)
        test_fail(__FILE__, __LINE__, "%s", model->why);
}

TEST(replica, is_created_found_again_and_discarded)
{
    struct simdisk *sim = simdisk_new();
    struct cn_disk *disk = simdisk_disk(sim);
    struct listengine engine;
    listengine_init(&engine);
    struct cn_replicas *replicas = replicas_open(disk, &engine), *second;
    uint64_t identity = cn_replicas_disk(replicas), life[3];
    CHECK(identity != 0);
    CHECK(cn_replicas_find(replicas, SHARD) == NULL);
    struct cn_replica *replica = create(replicas);
    CHECK(cn_replicas_find(replicas, SHARD) == replica);
    CHECK_INT(CN_EEXISTS, cn_replicas_create(replicas, SHARD, &replica, NULL));
    CHECK_INT(CN_EINVALID, cn_replicas_create(replicas, 5000, &replica, NULL));
    CHECK_INT(0, (long long)state_of(replica).have);
    CHECK_INT(0, cn_replicas_life(replicas, &life[0], NULL));
    CHECK_INT(0, cn_replicas_life(replicas, &life[1], NULL));
    CHECK_INT(CN_ELOCKED,
              cn_replicas_open(&(struct cn_replicas_config){.disk = disk, .manual = true}, &second,
                               NULL));
    cn_replicas_close(replicas);

    replicas = replicas_open(disk, &engine);
    CHECK(identity == cn_replicas_disk(replicas));
    CHECK_INT(0, cn_replicas_life(replicas, &life[2], NULL));
    CHECK(life[0] < life[1] && life[1] < life[2]);
    CHECK(cn_replicas_find(replicas, SHARD) != NULL);
    CHECK_INT(0, cn_replicas_discard(replicas, SHARD, NULL));
    CHECK_INT(0, cn_replicas_discard(replicas, SHARD, NULL));
    CHECK(cn_replicas_find(replicas, SHARD) == NULL);
    cn_replicas_close(replicas);
    replicas = replicas_open(disk, &engine);
    CHECK(cn_replicas_find(replicas, SHARD) == NULL);
    replica = create(replicas);
    cn_replicas_close(replicas);
    listengine_fini(&engine);
    simdisk_free(sim);
}

static int64_t later_ms(struct cn_clock *clock)
{
    return cn_clock_wall_ms(cn_clock_system()) + 2 * 3600 * 1000;
}

static uint64_t later_ns(struct cn_clock *clock)
{
    return cn_clock_mono_ns(cn_clock_system());
}

/* What was discarded is a folder that can be put back by hand, for as long as it was asked for. */
TEST(replica, P10_what_is_discarded_is_set_aside_for_a_while)
{
    struct simdisk *sim = simdisk_new();
    struct cn_disk *disk = simdisk_disk(sim);
    struct listengine engine;
    struct cn_disk_entries aside;
    listengine_init(&engine);
    struct cn_replicas *replicas = replicas_open(disk, &engine);
    for (size_t i = 1; i <= 2; i++) { /* two of one shard in the same moment are two */
        (void)create(replicas);
        CHECK_INT(0, cn_replicas_discard(replicas, SHARD, NULL));
        CHECK_INT(0, cn_disk_entries(disk, "shards/aside", &aside));
        CHECK_INT(i, aside.count);
        cn_disk_entries_fini(&aside);
    }
    cn_replicas_tidy(replicas); /* not an hour old */
    struct simdisk *after = simdisk_crash(sim, 1);
    CHECK_INT(0, cn_disk_entries(simdisk_disk(after), "shards/aside", &aside));
    CHECK_INT(2, aside.count);
    char path[80], name[100];
    snprintf(path, sizeof(path), "shards/aside/%s", aside.items[0].name);
    snprintf(name, sizeof(name), "shards/aside/%s/REPLICA", aside.items[1].name);
    CHECK(cn_disk_has(simdisk_disk(after), name));
    cn_disk_entries_fini(&aside);
    simdisk_free(after);
    cn_replicas_close(replicas);

    CHECK_INT(0, cn_disk_rename(disk, path, "shards/0007"));
    replicas = replicas_open(disk, &engine);
    CHECK(cn_replicas_find(replicas, SHARD) != NULL);
    cn_replicas_close(replicas);
    struct cn_clock later = {later_ms, later_ns};
    struct cn_replicas_config config = {.disk = disk, .manual = true, .clock = &later};
    CHECK_INT(0, cn_replicas_open(&config, &replicas, NULL));
    CHECK(cn_disk_has(disk, name));
    cn_replicas_tidy(replicas);
    CHECK(!cn_disk_has(disk, name));
    cn_replicas_close(replicas);
    listengine_fini(&engine);
    simdisk_free(sim);
}

/* Two disks take turns as the owner; the other follows, with checkpoints of both at random. */
TEST(replica, P3_P5_ownership_goes_back_and_forth_and_every_owner_has_everything)
{
    struct simdisk *sims[2] = {simdisk_new(), simdisk_new()};
    struct listengine engine;
    struct cn_replicas *replicas[2];
    struct cn_replica *replica[2];
    struct model model;
    struct cn_rand rand;
    listengine_init(&engine);
    model_init(&model, test_seed(), 8);
    cn_rand_init(&rand, test_seed());
    for (int i = 0; i < 2; i++) {
        replicas[i] = replicas_open(simdisk_disk(sims[i]), &engine);
        replica[i] = create(replicas[i]);
    }
    for (int round = 0; round < 24; round++) {
        struct cn_replica *owner = replica[round % 2], *follower = replica[1 - round % 2];
        CHECK_INT(0, listengine_feed(&engine, owner, engine.last, 50000, NULL));
        struct cn_store *store = promote(&engine, owner);
        compare(&model, store, engine.last);
        for (int part = 0; part < 4; part++) {
            turns(&model, store, 6);
            CHECK_INT(0, listengine_settle(&engine, NULL));
            if (cn_rand_below(&rand, 3) == 0)
                CHECK_INT(0, cn_replica_checkpoint(owner, NULL));
            CHECK_INT(0, listengine_settle(&engine, NULL));
            /* The follower is some way behind, now and then. */
            uint64_t lsn = cn_rand_below(&rand, 2) ? engine.last : state_of(follower).have;
            CHECK_INT(0, listengine_feed(&engine, follower, lsn, 20000, NULL));
            if (cn_rand_below(&rand, 3) == 0)
                CHECK_INT(0, cn_replica_checkpoint(follower, NULL));
        }
        CHECK_INT(0, cn_replica_demote(owner, NULL));
        CHECK_INT((long long)engine.last, (long long)state_of(owner).have);
        if (cn_rand_below(&rand, 4) == 0) { /* its process ends */
            int i = round % 2;
            cn_replicas_close(replicas[i]);
            replicas[i] = replicas_open(simdisk_disk(sims[i]), &engine);
            replica[i] = cn_replicas_find(replicas[i], SHARD);
            CHECK_INT((long long)engine.last, (long long)state_of(replica[i]).have);
        }
    }
    CHECK(engine.checkpoints > 5);
    model_fini(&model);
    for (int i = 0; i < 2; i++) {
        cn_replicas_close(replicas[i]);
        simdisk_free(sims[i]);
    }
    listengine_fini(&engine);
}

TEST(replica, P1_what_was_not_settled_is_in_no_file_and_never_was)
{
    struct simdisk *sim = simdisk_new();
    struct listengine engine;
    struct model model;
    listengine_init(&engine);
    model_init(&model, test_seed(), 4);
    struct cn_replicas *replicas = replicas_open(simdisk_disk(sim), &engine);
    struct cn_replica *replica = create(replicas);
    struct cn_store *store = promote(&engine, replica);
    turns(&model, store, 20);
    CHECK_INT(0, listengine_settle(&engine, NULL));
    uint64_t settled = engine.last;
    engine.held = settled;
    model.faults = true; /* a second reset of an object waits for the first, and then for ever */
    uint64_t lsn;
    for (int i = 0; i < 20; i++)
        (void)model_turn(&model, store, &lsn);
    model_close_databases(&model);
    CHECK(cn_replica_appended(replica) > settled);
    model.faults = false;
    CHECK(cn_replica_checkpoint(replica, NULL) < 0); /* it would need what is not settled */
    CHECK_INT(0, cn_replica_demote(replica, NULL));
    CHECK_INT((long long)settled, (long long)state_of(replica).have);
    engine.held = 0;
    store = promote(&engine, replica);
    compare(&model, store, settled);
    turns(&model, store, 20); /* the same LSNs, given out again */
    CHECK_INT(0, listengine_settle(&engine, NULL));
    CHECK_INT(0, cn_replica_checkpoint(replica, NULL));
    compare(&model, store, settled);
    model_fini(&model);
    cn_replicas_close(replicas);
    listengine_fini(&engine);
    simdisk_free(sim);
}

TEST(replica, P4_after_a_loss_of_power_the_rest_comes_from_the_engine)
{
    struct simdisk *sim = simdisk_new();
    struct listengine engine;
    struct model model;
    listengine_init(&engine);
    model_init(&model, test_seed(), 6);
    struct cn_replicas *replicas = replicas_open(simdisk_disk(sim), &engine);
    struct cn_replica *replica = create(replicas);
    struct cn_store *store = promote(&engine, replica);
    unsigned shorter = 0;
    for (int round = 0; round < 12; round++) {
        turns(&model, store, 15);
        CHECK_INT(0, listengine_settle(&engine, NULL));
        if (round % 4 == 2)
            CHECK_INT(0, cn_replica_checkpoint(replica, NULL));
        if (round % 4 == 3)
            CHECK_INT(0, cn_replica_demote(replica, NULL)); /* as a follower, too */
        CHECK(round % 4 == 3 || listengine_settle(&engine, NULL) == 0);
        uint64_t checkpoint = state_of(replica).checkpoint;
        for (uint64_t seed = 0; seed < 6; seed++) {
            struct simdisk *after = simdisk_crash(sim, seed);
            struct listengine copy = engine;
            struct cn_replicas *others = replicas_open(simdisk_disk(after), &copy);
            struct cn_replica *other = cn_replicas_find(others, SHARD);
            CHECK(other != NULL);
            CHECK(state_of(other).have >= checkpoint); /* what the engine may have forgotten */
            shorter += state_of(other).have < engine.last;
            /* A checkpoint in between, of a log that has less than the files. */
            CHECK_INT(0, cn_replica_checkpoint(other, NULL));
            CHECK_INT(0, listengine_feed(&copy, other, copy.last, 9000, NULL));
            CHECK_INT(0, cn_replica_checkpoint(other, NULL));
            struct cn_store *again = promote(&copy, other);
            if (model_compare_copy(&model, again, engine.last) < 0)
                test_fail(__FILE__, __LINE__, "%s", model.why);
            cn_replicas_close(others);
            simdisk_free(after);
        }
        if (round % 4 == 3)
            store = promote(&engine, replica);
    }
    CHECK(shorter > 0);
    model_fini(&model);
    cn_replicas_close(replicas);
    listengine_fini(&engine);
    simdisk_free(sim);
}

TEST(replica, P2_damage_before_the_redo_point_is_no_replica)
{
    struct simdisk *sim = simdisk_new();
    struct listengine engine;
    struct model model;
    listengine_init(&engine);
    model_init(&model, test_seed(), 3);
    struct cn_replicas *replicas = replicas_open(simdisk_disk(sim), &engine);
    struct cn_replica *replica = create(replicas);
    turns(&model, promote(&engine, replica), 20);
    CHECK_INT(0, listengine_settle(&engine, NULL));
    CHECK_INT(0, cn_replica_checkpoint(replica, NULL));
    CHECK(state_of(replica).checkpoint > 5);
    cn_replicas_close(replicas);
    CHECK_INT(0, simdisk_damage(sim, "shards/0007/log/0000000001.seg", 200, 3));
    replicas = replicas_open(simdisk_disk(sim), &engine);
    CHECK(cn_replicas_find(replicas, SHARD) == NULL);
    struct cn_disk_file *file; /* kept, for whoever wants to look */
    CHECK_INT(0, cn_disk_open(simdisk_disk(sim), "shards/0007/DAMAGED", CN_DISK_READONLY, &file));
    cn_disk_close(file);
    replica = create(replicas);
    CHECK_INT(0, (long long)state_of(replica).have);
    model_fini(&model);
    cn_replicas_close(replicas);
    listengine_fini(&engine);
    simdisk_free(sim);
}

TEST(replica, P6_an_idle_shard_is_forgotten_by_the_engine_but_for_a_mark)
{
    struct simdisk *sims[2] = {simdisk_new(), simdisk_new()};
    struct listengine engine;
    struct model model;
    struct cn_replicas *replicas[2];
    struct cn_replica *replica[2];
    listengine_init(&engine);
    model_init(&model, test_seed(), 3);
    for (int i = 0; i < 2; i++) {
        replicas[i] = replicas_open(simdisk_disk(sims[i]), &engine);
        replica[i] = create(replicas[i]);
    }
    struct cn_store *store = promote(&engine, replica[0]);
    turns(&model, store, 20);
    CHECK_INT(0, listengine_settle(&engine, NULL));
    uint64_t last = engine.last;
    CHECK_INT(0, cn_replica_checkpoint(replica[0], NULL));
    CHECK_INT((long long)last, (long long)state_of(replica[0]).checkpoint);
    CHECK_INT(0, listengine_settle(&engine, NULL)); /* the mark */
    CHECK_INT((long long)last + 1, (long long)engine.last);
    CHECK_INT(0, listengine_feed(&engine, replica[1], engine.last, 10000, NULL));
    CHECK_INT(0, cn_replica_checkpoint(replica[1], NULL));
    CHECK_INT((long long)last, (long long)state_of(replica[1]).checkpoint);
    CHECK_INT((long long)last, (long long)engine.checkpointed);
    CHECK_INT(0, cn_replica_demote(replica[0], NULL));
    store = promote(&engine, replica[1]);
    struct cn_store_stats stats;
    cn_store_stats(store, &stats);
    CHECK_INT(1, (long long)stats.recovered_records); /* the mark */
    compare(&model, store, last);
    model_fini(&model);
    for (int i = 0; i < 2; i++) {
        cn_replicas_close(replicas[i]);
        simdisk_free(sims[i]);
    }
    listengine_fini(&engine);
}

static int64_t fake_ms;
static int64_t fake_wall(struct cn_clock *clock)
{
    (void)clock;
    return fake_ms;
}
static uint64_t fake_mono(struct cn_clock *clock)
{
    (void)clock;
    return 0;
}

TEST(replica, P7_P8_a_moment_before_a_take_over_is_restored_and_time_does_not_go_back)
{
    struct simdisk *sims[2] = {simdisk_new(), simdisk_new()};
    struct cn_clock clock = {fake_wall, fake_mono};
    struct listengine engine;
    struct cn_replicas *replicas[2];
    struct cn_replica *replica[2];
    listengine_init(&engine);
    for (int i = 0; i < 2; i++) {
        struct cn_replicas_config config = {.disk = simdisk_disk(sims[i]),
                                            .clock = &clock,
                                            .hooks = listengine_hooks(&engine),
                                            .manual = true};
        CHECK_INT(0, cn_replicas_open(&config, &replicas[i], NULL));
        replica[i] = create(replicas[i]);
    }
    fake_ms = 1800000000000;
    struct cn_store *store = promote(&engine, replica[0]);
    uint32_t namespace_id;
    CHECK_INT(0, cn_store_namespace(store, "test/Object", &namespace_id, NULL));
    struct cn_database *db = storetest_database(store, 1);
    storetest_exec(db, "CREATE TABLE t(x); INSERT INTO t VALUES(1)");
    storetest_commit(db);
    int64_t moment = fake_ms += 1000;
    uint8_t filler[200 << 10] = {7}; /* several segments, so that some are archived */
    for (int i = 0; i < 12; i++) {
        fake_ms += 1000;
        storetest_exec(db, "UPDATE t SET x = x + 1; CREATE TABLE IF NOT EXISTS f(b BLOB);"
                           "INSERT INTO f VALUES(randomblob(200000))");
        storetest_commit(db);
        CHECK_INT(0, listengine_settle(&engine, NULL));
        if (i % 4 == 0)
            CHECK_INT(0, cn_replica_checkpoint(replica[0], NULL));
        CHECK_INT(0, listengine_settle(&engine, NULL));
        CHECK_INT(0, listengine_feed(&engine, replica[1], engine.last, sizeof(filler), NULL));
        CHECK_INT(0, cn_replica_checkpoint(replica[1], NULL));
    }
    cn_database_close(db);
    CHECK_INT(0, cn_replica_demote(replica[0], NULL));

    fake_ms -= 3600000; /* the clock of the next owner is an hour behind */
    store = promote(&engine, replica[1]);
    struct cn_history *history = cn_replica_history(replica[1]);
    struct cn_history_stats stats;
    cn_history_stats(history, &stats);
    CHECK(stats.archive_count > 0);
    struct cn_object_key key = storetest_key(1);
    char bookmark[CN_BOOKMARK_SIZE];
    uint64_t lsn;
    struct cn_err err = {0};
    fake_ms += 7200000;
    if (cn_history_bookmark_at(history, store, &key, moment, bookmark, &err) < 0 ||
        cn_history_restore(history, store, &key, bookmark, &lsn, NULL, &err) < 0)
        test_fail(__FILE__, __LINE__, "%s", err.text);
    db = storetest_database(store, 1);
    CHECK_INT(1, storetest_int(db, "SELECT x FROM t"));
    cn_database_close(db);
    CHECK_INT(0, listengine_settle(&engine, NULL));
    int64_t time_ms = 0;
    for (uint64_t n = 1; n <= engine.last; n++) {
        struct cn_record record;
        CHECK(cn_record_read(engine.bytes.data + engine.ends[n - 1],
                             engine.ends[n] - engine.ends[n - 1], &record) > 0);
        CHECK(record.header.time_ms >= time_ms);
        time_ms = record.header.time_ms;
    }
    for (int i = 0; i < 2; i++) {
        cn_replicas_close(replicas[i]);
        simdisk_free(sims[i]);
    }
    listengine_fini(&engine);
}

/* --- copies ---------------------------------------------------------------------------------- */

struct pipe_end {
    struct cn_replica_copy *to; /* what arrives goes there at once, in odd pieces; NULL: nowhere */
    struct cn_buf bytes;
    int (*between)(struct pipe_end *end); /* called between pieces; NULL: nothing */
    void *data;
    size_t fail_at; /* bytes after which the link breaks; 0: never */
};

static int pipe_write(void *data, const void *bytes, size_t size)
{
    struct pipe_end *end = data;
    cn_buf_append(&end->bytes, bytes, size);
    if (end->fail_at && end->bytes.size > end->fail_at)
        return CN_ECLOSED;
    for (size_t at = 0; end->to && at < size;) {
        size_t piece = size - at < 70001 ? size - at : 70001;
        if (cn_replica_copy_take(end->to, (const char *)bytes + at, piece, NULL) < 0)
            return CN_ECLOSED;
        at += piece;
    }
    return end->between ? end->between(end) : 0;
}

struct busy {
    struct model *model;
    struct listengine *engine;
    int left;
};

static int commit_meanwhile(struct pipe_end *end)
{
    struct busy *busy = end->data;
    struct cn_store *store = cn_replica_store(busy->engine->owner);
    if (store && busy->left-- > 0) {
        turns(busy->model, store, 2);
        CHECK_INT(0, listengine_settle(busy->engine, NULL));
    }
    return 0;
}

/* The owner is copied while it commits, and a follower while it is fed; then the copies follow,
 * become owners, and have everything, the past included. */
TEST(replica, P9_a_copy_of_a_shard_in_use_is_whole)
{
    struct simdisk *sims[3] = {simdisk_new(), simdisk_new(), simdisk_new()};
    struct listengine engine;
    struct model model;
    struct cn_replicas *replicas[3];
    struct cn_replica *replica[3];
    listengine_init(&engine);
    model_init(&model, test_seed(), 8);
    for (int i = 0; i < 3; i++)
        replicas[i] = replicas_open(simdisk_disk(sims[i]), &engine);
    replica[0] = create(replicas[0]);
    struct cn_store *store = promote(&engine, replica[0]);
    turns(&model, store, 100);
    CHECK_INT(0, cn_replica_checkpoint(replica[0], NULL));
    turns(&model, store, 60);
    CHECK_INT(0, listengine_settle(&engine, NULL));
    CHECK_INT(0, cn_replica_checkpoint(replica[0], NULL));
    CHECK_INT(0, listengine_settle(&engine, NULL));
    for (int i = 1; i < 3; i++) { /* the second is a copy of the first copy, which follows */
        struct busy busy = {&model, &engine, 40};
        struct pipe_end end = {.between = commit_meanwhile, .data = &busy};
        struct cn_err err = {0};
        uint64_t lsn;
        CHECK_INT(0, cn_replica_copy_begin(replicas[i], SHARD, &end.to, NULL));
        CHECK_INT(CN_EEXISTS, cn_replicas_create(replicas[i], SHARD, &replica[i], NULL));
        if (cn_replica_copy(replica[i - 1], pipe_write, &end, &lsn, &err) < 0)
            test_fail(__FILE__, __LINE__, "%s", err.text);
        CHECK_INT(0, cn_replica_copy_end(end.to, &replica[i], NULL));
        CHECK_INT((long long)lsn, (long long)state_of(replica[i]).have);
        CHECK_INT(0, listengine_feed(&engine, replica[i], engine.last, 30000, NULL));
        CHECK_INT(0, cn_replica_checkpoint(replica[i], NULL));
        cn_buf_fini(&end.bytes);
    }
    CHECK_INT(0, cn_replica_demote(replica[0], NULL));
    for (int i = 1; i < 3; i++) {
        CHECK_INT(0, listengine_feed(&engine, replica[i], engine.last, 30000, NULL));
        compare(&model, promote(&engine, replica[i]), engine.last);
        CHECK_INT(0, cn_replica_demote(replica[i], NULL));
    }
    model_fini(&model);
    for (int i = 0; i < 3; i++) {
        cn_replicas_close(replicas[i]);
        simdisk_free(sims[i]);
    }
    listengine_fini(&engine);
}

/* Whatever cuts it short, wherever: nothing of it is a replica, then or after a restart. */
TEST(replica, P9_a_copy_that_is_not_whole_is_none)
{
    struct simdisk *from = simdisk_new();
    struct listengine engine;
    struct model model;
    listengine_init(&engine);
    model_init(&model, test_seed(), 2);
    struct cn_replicas *replicas = replicas_open(simdisk_disk(from), &engine);
    struct cn_replica *replica = create(replicas), *other;
    turns(&model, promote(&engine, replica), 15);
    CHECK_INT(0, listengine_settle(&engine, NULL));
    CHECK_INT(0, cn_replica_checkpoint(replica, NULL));
    struct pipe_end whole = {0};
    uint64_t lsn;
    CHECK_INT(0, cn_replica_copy(replica, pipe_write, &whole, &lsn, NULL));
    size_t size = whole.bytes.size;
    struct pipe_end broken = {.fail_at = size / 2};
    CHECK_INT(CN_ECLOSED, cn_replica_copy(replica, pipe_write, &broken, &lsn, NULL));
    cn_buf_fini(&broken.bytes);

    struct cn_rand rand;
    cn_rand_init(&rand, test_seed());
    for (int i = 0; i < 40; i++) {
        struct simdisk *to = simdisk_new();
        struct cn_replicas *others = replicas_open(simdisk_disk(to), &engine);
        struct cn_replica_copy *copy;
        size_t cut = i == 0 ? 0 : i == 1 ? size - 1 : cn_rand_below(&rand, size);
        CHECK_INT(0, cn_replica_copy_begin(others, SHARD, &copy, NULL));
        CHECK_INT(0, cn_replica_copy_take(copy, whole.bytes.data, cut, NULL));
        struct simdisk *killed = simdisk_copy(to);
        if (i % 3 == 0) { /* a bit flips on the way */
            whole.bytes.data[cut] ^= 1 << i % 8;
            int rc = cn_replica_copy_take(copy, whole.bytes.data + cut, size - cut, NULL);
            CHECK(rc == CN_EINVALID || rc == 0); /* 0: it waits for a frame that is longer */
            whole.bytes.data[cut] ^= 1 << i % 8;
        }
        CHECK_INT(CN_EINVALID, cn_replica_copy_end(copy, &other, NULL));
        CHECK(cn_replicas_find(others, SHARD) == NULL);
        cn_replicas_close(others);
        for (int k = 0; k < 2; k++) {
            others = replicas_open(simdisk_disk(k ? killed : to), &engine);
            CHECK(cn_replicas_find(others, SHARD) == NULL);
            other = create(others); /* nothing is left of it */
            CHECK_INT(0, (long long)state_of(other).have);
            cn_replicas_close(others);
        }
        simdisk_free(killed);
        simdisk_free(to);
    }
    cn_buf_fini(&whole.bytes);
    model_fini(&model);
    cn_replicas_close(replicas);
    listengine_fini(&engine);
    simdisk_free(from);
}

TEST(replica, is_promoted_with_exactly_what_is_settled)
{
    struct simdisk *sim = simdisk_new();
    struct listengine engine;
    struct model model;
    listengine_init(&engine);
    model_init(&model, test_seed(), 2);
    struct cn_replicas *replicas = replicas_open(simdisk_disk(sim), &engine);
    struct cn_replica *replica = create(replicas);
    struct cn_store *store = promote(&engine, replica);
    turns(&model, store, 10);
    CHECK_INT(0, listengine_settle(&engine, NULL));
    CHECK(engine.hints > 0);
    CHECK_INT(CN_EINVALID, cn_replica_feed(replica, "", 0, NULL)); /* it is open */
    CHECK_INT(CN_EINVALID, cn_replica_promote(replica, engine.last, NULL, &store, NULL));
    CHECK_INT(0, cn_replica_demote(replica, NULL));
    CHECK_INT(0, cn_replica_demote(replica, NULL));
    struct cn_err err = {0};
    CHECK_INT(CN_EINVALID, cn_replica_promote(replica, engine.last + 1, NULL, &store, NULL));
    CHECK_INT(CN_EINVALID, cn_replica_promote(replica, engine.last - 1, NULL, &store, &err));
    CHECK(strstr(err.text, "is the last that is settled") != NULL);
    CHECK_INT(CN_EINVALID, cn_replica_settled(replica, engine.last, NULL));
    compare(&model, promote(&engine, replica), engine.last);
    model_fini(&model);
    cn_replicas_close(replicas);
    listengine_fini(&engine);
    simdisk_free(sim);
}

/* --- with threads ---------------------------------------------------------------------------- */

enum { SHARDS = 6, TABLE_ROWS = 60 };

/* The owner's and the follower's disk, and one who settles for all shards, as a host does. */
struct cluster {
    struct cn_replicas *replicas[2];
    pthread_t thread;
    atomic_bool ending;
    atomic_int failures, checkpoints;
    uint64_t settled[SHARDS];
};

static void note_checkpoint(void *data, uint32_t shard, uint64_t lsn)
{
    (void)shard, (void)lsn;
    atomic_fetch_add(&((struct cluster *)data)->checkpoints, 1);
}

static void *settle_all(void *arg)
{
    struct cluster *cluster = arg;
    struct cn_buf records = {0};
    while (!atomic_load(&cluster->ending)) {
        for (uint32_t i = 0; i < SHARDS; i++) {
            struct cn_replica *owner = cn_replicas_find(cluster->replicas[0], i);
            uint64_t appended = cn_replica_appended(owner), from = cluster->settled[i];
            if (appended == from)
                continue;
            cn_buf_clear(&records);
            uint64_t last = cn_replica_records(owner, from + 1, appended, 100000, &records);
            if (last == 0 || cn_replica_settled(owner, last, NULL) < 0 ||
                cn_replica_feed(cn_replicas_find(cluster->replicas[1], i), records.data,
                                records.size, NULL) < 0)
                atomic_fetch_add(&cluster->failures, 1);
            cluster->settled[i] = last;
        }
        sched_yield();
    }
    cn_buf_fini(&records);
    return NULL;
}

TEST(replica, many_shards_share_threads_and_both_disks_checkpoint_meanwhile)
{
    struct cluster cluster = {0};
    struct cn_disk *disks[2] = {storetest_disk(), storetest_disk()};
    struct cn_store *stores[SHARDS];
    for (int d = 0; d < 2; d++) {
        struct cn_replicas_config config = {
            .disk = disks[d],
            .hooks = {.data = &cluster, .checkpointed = note_checkpoint},
            .log_live_size = 600 << 10, /* a checkpoint whenever a segment is full */
            .segment_size = 256 << 10,
            .dirty_size_max = 1 << 20,
            .pending_max = 300 << 10,
            .open_files_max = 3,
        };
        CHECK_INT(0, cn_replicas_open(&config, &cluster.replicas[d], NULL));
    }
    for (uint32_t i = 0; i < SHARDS; i++) {
        struct cn_replica *replica;
        CHECK_INT(0, cn_replicas_create(cluster.replicas[1], i, &replica, NULL));
        CHECK_INT(0, cn_replicas_create(cluster.replicas[0], i, &replica, NULL));
        CHECK_INT(0, cn_replica_promote(replica, 0, NULL, &stores[i], NULL));
    }
    CHECK_INT(0, pthread_create(&cluster.thread, NULL, settle_all, &cluster));
    for (uint32_t i = 0; i < SHARDS; i++) {
        uint32_t namespace_id;
        CHECK_INT(0, cn_store_namespace(stores[i], "test/Object", &namespace_id, NULL));
        struct cn_database *db = storetest_database(stores[i], 1);
        storetest_exec(db, "CREATE TABLE t(x, b BLOB)");
        storetest_commit(db);
        cn_database_close(db);
    }
    uint64_t last[SHARDS];
    for (int row = 0; row < TABLE_ROWS; row++) {
        for (uint32_t i = 0; i < SHARDS; i++) {
            struct cn_database *db = storetest_database(stores[i], 1);
            storetest_exec(db, "INSERT INTO t VALUES(1, randomblob(20000))");
            last[i] = storetest_commit(db);
            cn_database_close(db);
        }
        /* A boundary comes with the owner's checkpoint. While it is fed, it may be in the follower
         * and not in its file yet. */
        uint32_t each = (uint32_t)row % SHARDS;
        struct cn_replica *from = cn_replicas_find(cluster.replicas[0], each);
        struct cn_replica *to = cn_replicas_find(cluster.replicas[1], each);
        CHECK_INT(0, cn_store_wait(stores[each], last[each], NULL));
        CHECK_INT(0, cn_replica_checkpoint(from, NULL));
        uint64_t all = cn_replica_appended(from);
        do
            CHECK_INT(0, cn_replica_checkpoint(to, NULL));
        while (cn_replica_appended(to) < all);
    }
    for (uint32_t i = 0; i < SHARDS; i++) {
        struct cn_replica *owner = cn_replicas_find(cluster.replicas[0], i);
        CHECK_INT(0, cn_store_wait(stores[i], last[i], NULL));
        CHECK_INT(0, cn_replica_checkpoint(owner, NULL));
        CHECK_INT(0, cn_replica_checkpoint(cn_replicas_find(cluster.replicas[1], i), NULL));
    }
    CHECK(atomic_load(&cluster.checkpoints) >= 2 * SHARDS);
    atomic_store(&cluster.ending, true);
    pthread_join(cluster.thread, NULL);
    CHECK_INT(0, cluster.failures);
    for (uint32_t i = 0; i < SHARDS; i++) {
        struct cn_replica *follower = cn_replicas_find(cluster.replicas[1], i);
        CHECK_INT(0, cn_replica_demote(cn_replicas_find(cluster.replicas[0], i), NULL));
        CHECK_INT(0, cn_replica_promote(follower, cluster.settled[i], NULL, &stores[i], NULL));
        struct cn_database *db = storetest_database(stores[i], 1);
        CHECK_INT(TABLE_ROWS, storetest_int(db, "SELECT count(*) FROM t"));
        CHECK_STR("ok", storetest_text(db, "PRAGMA integrity_check"));
        cn_database_close(db);
    }
    for (int d = 0; d < 2; d++) {
        cn_replicas_close(cluster.replicas[d]);
        cn_disk_system_free(disks[d]);
    }
}
