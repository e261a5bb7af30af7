/* SPDX-License-Identifier: Apache-2.0 */
/* The watchdog on lanes that only say what they do: it ends the turns it was asked to end, and no
 * others. That a lane which hangs for good ends with its process is in security/cpu.test.mjs. */
#include "worker/watchdog.h"

#include <pthread.h>

#include "base/mem.h"
#include "test/lib/test.h"
#include "worker/lane.h"

enum { LANES = 3 };

struct world {
    struct cn_lane lanes[LANES];
    struct cn_watchdog *dog;
    _Atomic unsigned stuck;
};

static void count_stuck(void *data)
{
    atomic_fetch_add(&((struct world *)data)->stuck, 1);
}

static struct world *world_open(unsigned wall_ms)
{
    struct world *world = CN_NEW(struct world);
    for (unsigned i = 0; i < LANES; i++) {
        world->lanes[i].options.index = i;
        world->lanes[i].thread = pthread_self();
    }
    struct cn_watchdog_options options = {.lanes = world->lanes,
                                          .lane_count = LANES,
                                          .wall_ms = wall_ms,
                                          .on_stuck = count_stuck,
                                          .data = world};
    struct cn_err err;
    world->dog = cn_watchdog_start(&options, &err);
    CHECK(world->dog);
    return world;
}

static void world_close(struct world *world)
{
    cn_watchdog_stop(world->dog);
    CHECK_INT(0, atomic_load(&world->stuck));
    cn_free(world);
}

static void run_turn(struct world *world, unsigned lane, uint64_t turn)
{
    atomic_store(&world->lanes[lane].pulse.running, turn);
}

/* The turn that is to end, or 0: kept with one added (js/vm.h). */
static uint64_t told_to_end(struct world *world, unsigned lane)
{
    uint64_t unwanted = atomic_load(&world->lanes[lane].pulse.unwanted);
    return unwanted ? unwanted - 1 : 0;
}

static void wait_for_end(struct world *world, unsigned lane, uint64_t turn)
{
    while (told_to_end(world, lane) != turn)
        uv_sleep(1);
}

TEST(watchdog, a_turn_that_lasts_for_longer_than_the_wall_allows_is_ended_and_only_that_one)
{
    struct world *world = world_open(1);
    run_turn(world, 1, 7);
    wait_for_end(world, 1, 7);
    CHECK_INT(CN_JS_END_WALL, atomic_load(&world->lanes[1].pulse.why));
    CHECK_INT(0, told_to_end(world, 0));
    CHECK_INT(0, told_to_end(world, 2));
    run_turn(world, 1, 8); /* the next turn of that lane is another */
    wait_for_end(world, 1, 8);
    world_close(world);
}

TEST(watchdog, turns_are_ended_when_somebody_asks_on_every_lane_that_runs_one)
{
    struct world *world = world_open(0);
    run_turn(world, 0, 3);
    run_turn(world, 2, 4);
    while (!told_to_end(world, 0) || !told_to_end(world, 2)) {
        cn_watchdog_end_turns(world->dog, 0, CN_JS_END_STOP); /* until it has seen them */
        uv_sleep(1);
    }
    CHECK_INT(3, told_to_end(world, 0));
    CHECK_INT(4, told_to_end(world, 2));
    CHECK_INT(CN_JS_END_STOP, atomic_load(&world->lanes[2].pulse.why));
    CHECK_INT(0, told_to_end(world, 1));
    world_close(world);
}

TEST(watchdog, a_turn_that_is_younger_than_what_is_asked_for_goes_on)
{
    struct world *world = world_open(0);
    run_turn(world, 0, 5);
    cn_watchdog_end_turns(world->dog, 3600000, CN_JS_END_STOP);
    run_turn(world, 1, 6);
    while (!told_to_end(world, 1)) { /* it has looked since */
        run_turn(world, 0, 0);
        cn_watchdog_end_turns(world->dog, 0, CN_JS_END_STOP);
        uv_sleep(1);
    }
    CHECK_INT(0, told_to_end(world, 0));
    world_close(world);
}

TEST(watchdog, stops_at_once_however_it_was_started)
{
    for (int i = 0; i < 20; i++)
        world_close(world_open(0));
}
