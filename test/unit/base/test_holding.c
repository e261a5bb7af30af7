/* SPDX-License-Identifier: Apache-2.0 */
/* What is taken from a holding is given back exactly (H1); a refused block is no block (H2). */
#include "base/holding.h"

#include "base/mem.h"
#include "test/lib/test.h"

struct purse {
    struct cn_holding base;
    size_t room, held;
};

static bool take(struct cn_holding *base, size_t bytes)
{
    struct purse *purse = (struct purse *)base;
    bool fits = base->must || purse->held + bytes <= purse->room;
    purse->held += fits ? bytes : 0;
    return fits;
}

static void give(struct cn_holding *base, size_t bytes)
{
    ((struct purse *)base)->held -= bytes;
}

TEST(holding, gives_back_what_it_took)
{
    struct purse purse = {{.take = take, .give = give}, 100000, 0};
    void *a = cn_holding_alloc(&purse, 1001), *b = cn_holding_alloc_items(&purse, 100, 33);
    CHECK(a && b && purse.held >= 1001 + 3300);
    cn_holding_free(&purse, a);
    CHECK(purse.held >= 3300 && purse.held < 3300 + 1001);
    cn_holding_free(&purse, b);
    cn_holding_free(&purse, NULL);
    CHECK_INT(0, purse.held);
}

TEST(holding, refuses_past_its_room_and_without_memory)
{
    struct purse purse = {{.take = take, .give = give}, 1001, 0};
    CHECK(!cn_holding_alloc(&purse, 1002));
    CHECK(!cn_holding_alloc(&purse, 1001)); /* malloc() gives a little more */
    CHECK_INT(0, purse.held);
    purse.room = SIZE_MAX;
    CHECK(!cn_holding_alloc(&purse, (size_t)1 << 60));
    CHECK_INT(0, purse.held);
    CHECK(!cn_holding_alloc_items(NULL, 0xffffffffu, 0xffffffffu));
    void *free_one = cn_holding_alloc(NULL, 100);
    CHECK(free_one);
    cn_holding_free(NULL, free_one);
}

TEST(holding, H3_what_must_be_given_is_counted)
{
    struct purse purse = {{.take = take, .give = give}, 100, 0};
    CHECK(!cn_holding_has_room(&purse.base, 101));
    CHECK(cn_holding_has_room(&purse.base, 100));
    CHECK_INT(0, purse.held);
    void *block = cn_holding_alloc_always(&purse, 1000);
    CHECK(block && purse.held >= 1000 && !purse.base.must);
    cn_holding_free(&purse, block);
    CHECK_INT(0, purse.held);
}
