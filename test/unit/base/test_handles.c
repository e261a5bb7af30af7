/* SPDX-License-Identifier: Apache-2.0 */
/* A number that JavaScript holds must never stand for something else later. */
#include "base/handles.h"

#include <math.h>
#include <stdint.h>

#include "base/assert.h"
#include "test/lib/test.h"

static int things[4];

TEST(handles, find_what_they_stand_for)
{
    struct cn_handles handles = {0};
    uint64_t a = cn_handles_add(&handles, &things[0]);
    uint64_t b = cn_handles_add(&handles, &things[1]);
    CHECK(a != b);
    CHECK(a > UINT32_MAX && b > UINT32_MAX); /* H2 */
    CHECK(a < (uint64_t)1 << 53);
    CHECK(cn_handles_find(&handles, (double)a) == &things[0]);
    CHECK(cn_handles_find(&handles, (double)b) == &things[1]);
    CHECK(handles.live == 2);
    cn_handles_remove(&handles, a);
    CHECK(!cn_handles_find(&handles, (double)a));
    CHECK(cn_handles_find(&handles, (double)b) == &things[1]);
    cn_handles_fini(&handles);
}

/* H1: the tables before had 9 or 11 bits of generation, and the 510th user of a slot had the number
 * of the first. */
TEST(handles, are_not_repeated_after_a_million_uses_of_a_slot)
{
    struct cn_handles handles = {0};
    uint64_t first = cn_handles_add(&handles, &things[0]);
    cn_handles_remove(&handles, first);
    uint64_t last = first;
    for (int i = 0; i < 1000000; i++) {
        uint64_t number = cn_handles_add(&handles, &things[1]);
        CHECK(number > last);
        CHECK(!cn_handles_find(&handles, (double)last));
        last = number;
        cn_handles_remove(&handles, number);
    }
    CHECK(handles.count == 1);
    CHECK(!cn_handles_find(&handles, (double)first));
    cn_handles_fini(&handles);
}

/* H1 at its end. */
TEST(handles, leave_a_slot_whose_generations_are_used_up)
{
    struct cn_handles handles = {0};
    uint64_t number = cn_handles_add(&handles, &things[0]);
    cn_handles_remove(&handles, number);
    handles.slots[0].generation = UINT32_MAX - 1;
    uint64_t last = cn_handles_add(&handles, &things[1]);
    CHECK(last < (uint64_t)1 << 53);
    CHECK(cn_handles_find(&handles, (double)last) == &things[1]);
    cn_handles_remove(&handles, last);
    uint64_t next = cn_handles_add(&handles, &things[2]);
    CHECK(handles.count == 2);
    CHECK(!cn_handles_find(&handles, (double)last));
    CHECK(cn_handles_find(&handles, (double)next) == &things[2]);
    cn_handles_fini(&handles);
}

TEST(handles, any_double_is_a_fine_question)
{
    struct cn_handles handles = {0};
    CHECK(!cn_handles_find(&handles, 0));
    uint64_t number = cn_handles_add(&handles, &things[0]);
    const double others[] = {0,
                             -0.0,
                             -1,
                             0.5,
                             1,
                             NAN,
                             INFINITY,
                             -INFINITY,
                             1e300,
                             9007199254740992.0,
                             18446744073709551616.0,
                             -(double)number,
                             (double)number + 1,
                             (double)(uint32_t)number,
                             (double)number + 0.5};
    for (size_t i = 0; i < CN_ARRAY_COUNT(others); i++)
        CHECK(!cn_handles_find(&handles, others[i]));
    cn_handles_fini(&handles);
}

TEST(handles, have_an_end_and_say_so)
{
    struct cn_handles handles = {0};
    uint64_t last = 0;
    for (uint32_t i = 0; i < CN_HANDLES_MAX; i++) {
        last = cn_handles_add(&handles, &things[0]);
        CHECK(last);
    }
    CHECK(!cn_handles_add(&handles, &things[1]));
    CHECK(handles.live == CN_HANDLES_MAX);
    cn_handles_remove(&handles, last);
    CHECK(cn_handles_add(&handles, &things[1]));
    cn_handles_fini(&handles);
}

TEST(handles, can_be_walked_over_while_they_go)
{
    struct cn_handles handles = {0};
    uint64_t numbers[4];
    for (int i = 0; i < 4; i++)
        numbers[i] = cn_handles_add(&handles, &things[i]);
    cn_handles_remove(&handles, numbers[1]);
    uint32_t cursor = 0;
    CHECK(cn_handles_next(&handles, &cursor) == &things[0]);
    cn_handles_remove(&handles, numbers[0]);
    cn_handles_remove(&handles, numbers[2]);
    CHECK(cn_handles_next(&handles, &cursor) == &things[3]);
    CHECK(!cn_handles_next(&handles, &cursor));
    cn_handles_fini(&handles);
}

static void check(void *data)
{
    cn_handles_check(data);
}

/* W3 of base/loop.h: a counter that is off, a slot that is lost, and a circle are found. */
TEST(handles, are_counted)
{
    struct cn_handles handles = {0};
    cn_handles_check(&handles);
    uint64_t numbers[4];
    for (int i = 0; i < 4; i++)
        numbers[i] = cn_handles_add(&handles, &things[i]);
    cn_handles_remove(&handles, numbers[1]);
    cn_handles_remove(&handles, numbers[2]);
    cn_handles_check(&handles);
    handles.live++;
    CHECK_ASSERTS("handles->live == used", check, &handles);
    handles.live--;
    uint32_t free = handles.free;
    handles.free = 0;
    CHECK_ASSERTS("handles->count == used + worn + free", check, &handles);
    handles.free = free;
    uint32_t next = handles.slots[free - 1].next_free;
    handles.slots[free - 1].next_free = free;
    CHECK_ASSERTS("++free <= handles->count", check, &handles);
    handles.slots[free - 1].next_free = 1; /* which is in use */
    CHECK_ASSERTS("!handles->slots[at - 1].value", check, &handles);
    handles.slots[free - 1].next_free = next;
    cn_handles_check(&handles);
    cn_handles_fini(&handles);
}
