/* SPDX-License-Identifier: Apache-2.0 */
/* The states of an event, without JavaScript: every order in which a response and its script can
 * end, and what its number finds. */
#include "worker/event.h"

#include "base/account.h"
#include "base/loop.h"
#include "base/mem.h"
#include "js/vm.h"
#include "test/lib/test.h"
#include "worker/instance.h"
#include "worker/lane.h"

struct world {
    struct cn_lane lane;
    struct cn_js_vm vm; /* its turns are counted, and none runs */
    struct cn_instance instance;
};

static struct world *world_new(void)
{
    struct world *world = CN_NEW(struct world);
    CHECK_INT(0, cn_loop_init(&world->lane.loop, NULL)); /* which is the test's */
    world->lane.vm = &world->vm;
    world->instance.lane = &world->lane;
    cn_rand_init(&world->lane.rand, 1);
    cn_list_init(&world->instance.events);
    return world;
}

static void world_free(struct world *world)
{
    CHECK(cn_list_empty(&world->instance.events));
    CHECK_INT(0, world->lane.events.live);
    cn_handles_fini(&world->lane.events);
    CHECK_INT(0, uv_loop_close(&world->lane.loop));
    cn_free(world);
}

/* Each letter a step: b begins, c completes, l leaves; then it must be over. */
static const char *const lives[] = {"cl", "lc", "bcl", "blc", "lbc", "ccl", "llc", "bccl", "blllc"};

TEST(event, E1_E2_every_life_ends_over_and_its_number_finds_nothing_then)
{
    struct world *world = world_new();
    for (size_t i = 0; i < sizeof(lives) / sizeof(lives[0]); i++) {
        struct cn_event *event = cn_event_new(&world->instance);
        double handle = (double)event->handle;
        CHECK(cn_event_is_running(event) && !cn_event_is_answered(event));
        for (const char *step = lives[i]; *step; step++) {
            CHECK(event->state != CN_EVENT_OVER);
            CHECK(cn_event_find(&world->lane, handle) == event);
            if (*step == 'b')
                cn_event_begin(event);
            else if (*step == 'c')
                cn_event_complete(event);
            else
                cn_event_leave(event);
        }
        CHECK_INT(CN_EVENT_OVER, event->state);
        CHECK(cn_event_is_answered(event));
        cn_event_complete(event); /* what has been so already stays */
        cn_event_leave(event);
        CHECK_INT(CN_EVENT_OVER, event->state);
        cn_event_free(event);
        CHECK(!cn_event_find(&world->lane, handle));
    }
    world_free(world);
}

TEST(event, its_questions_agree_with_its_state)
{
    struct world *world = world_new();
    struct cn_event *event = cn_event_new(&world->instance);
    cn_event_begin(event);
    CHECK(cn_event_is_streaming(event) && !cn_event_is_running(event));
    cn_event_leave(event);
    CHECK_INT(CN_EVENT_LEFT_STREAMING, event->state);
    CHECK(cn_event_is_streaming(event) && !cn_event_is_answered(event));
    event->outcome = "canceled"; /* the same words, and not the same thing */
    CHECK(cn_event_is_canceled(event) == (event->outcome == cn_event_canceled));
    event->outcome = cn_event_canceled;
    CHECK(cn_event_is_canceled(event));
    cn_event_complete(event);
    cn_event_free(event);
    world_free(world);
}

static void note_gone(void *source)
{
    ++*(int *)source;
}

TEST(event, E3_its_source_is_told_and_what_it_gathered_is_counted_no_longer)
{
    struct world *world = world_new();
    struct cn_event *event = cn_event_new(&world->instance);
    int gone = 0;
    uint64_t before = cn_account_kind_bytes(CN_ACCOUNT_BODIES);
    event->source = &gone;
    event->source_gone = note_gone;
    cn_account_add(CN_ACCOUNT_BODIES, 1000);
    event->gathered = 1000;
    cn_event_complete(event);
    cn_event_leave(event);
    CHECK_INT(0, gone);
    cn_event_free(event);
    CHECK_INT(1, gone);
    CHECK_INT(before, cn_account_kind_bytes(CN_ACCOUNT_BODIES));
    world_free(world);
}

TEST(event, numbers_differ_and_a_foreign_one_finds_nothing)
{
    struct world *world = world_new();
    struct cn_event *first = cn_event_new(&world->instance);
    struct cn_event *second = cn_event_new(&world->instance);
    CHECK(first->handle != second->handle && first->id != second->id);
    static const double numbers[] = {0, -1, 0.5, 1e300, -1e300, 4294967296.0 * 4294967296.0};
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        CHECK(!cn_event_find(&world->lane, numbers[i]));
    CHECK(!cn_event_find(&world->lane, __builtin_nan("")));
    CHECK_INT(2, world->lane.events.live);
    struct cn_event *both[] = {first, second};
    for (int i = 0; i < 2; i++) {
        cn_event_complete(both[i]);
        cn_event_leave(both[i]);
        cn_event_free(both[i]);
    }
    world_free(world);
}
