/* SPDX-License-Identifier: Apache-2.0 */
/* Samples reach whoever asked, bounded, whichever side goes first (Q1, Q2). */
#include "worker/profile.h"

#include "base/mem.h"
#include "test/lib/test.h"

static void wake(void *data)
{
    ++*(int *)data;
}

static void give(struct cn_profile *profile, unsigned lane, const char *text)
{
    struct cn_buf json = {0};
    cn_buf_append_str(&json, text);
    cn_profile_give(profile, lane, &json);
}

TEST(profile, pieces_come_in_order_and_it_is_done_with_the_last_lane)
{
    int woken = 0;
    unsigned lane = 9;
    struct cn_buf json = {0};
    struct cn_profile *profile = cn_profile_new(wake, &woken);
    cn_profile_join(profile);
    cn_profile_join(profile);
    give(profile, 1, "one");
    give(profile, 0, "two");
    cn_profile_done(profile);
    CHECK(!cn_profile_is_done(profile));
    cn_profile_done(profile);
    CHECK(!cn_profile_is_done(profile)); /* there is something to take */
    CHECK(cn_profile_take(profile, &json, &lane));
    CHECK_INT(1, lane);
    CHECK_STR("one", cn_buf_text(&json));
    cn_buf_fini(&json);
    CHECK(cn_profile_take(profile, &json, &lane));
    cn_buf_fini(&json);
    CHECK(!cn_profile_take(profile, &json, &lane));
    CHECK(cn_profile_is_done(profile));
    CHECK_INT(4, woken);
    CHECK(!cn_profile_is_refused(profile));
    cn_profile_refuse(profile);
    CHECK(cn_profile_is_refused(profile));
    cn_profile_unref(profile);
    cn_profile_unref(NULL);
}

TEST(profile, one_whose_asker_has_left_wakes_nobody_and_keeps_nothing)
{
    int woken = 0;
    unsigned lane;
    struct cn_buf json = {0};
    struct cn_profile *profile = cn_profile_new(wake, &woken);
    struct cn_profile *lanes = cn_profile_ref(profile);
    cn_profile_join(lanes);
    give(lanes, 0, "kept");
    cn_profile_leave(profile);
    give(lanes, 0, "not kept");
    cn_profile_done(lanes);
    CHECK_INT(1, woken);
    CHECK(cn_profile_take(profile, &json, &lane));
    cn_buf_fini(&json);
    CHECK(!cn_profile_take(profile, &json, &lane));
    cn_profile_unref(profile);
    cn_profile_unref(lanes);
}

TEST(profile, past_its_bound_samples_are_dropped)
{
    int woken = 0;
    struct cn_profile *profile = cn_profile_new(wake, &woken);
    for (unsigned i = 0; i < 5; i++) {
        struct cn_buf json = {0};
        cn_buf_reserve(&json, CN_PROFILE_WAITING_MAX / 4);
        json.size = CN_PROFILE_WAITING_MAX / 4;
        cn_profile_give(profile, 0, &json);
        CHECK_INT(0, json.size);
    }
    CHECK_INT(4, woken);
    cn_profile_unref(profile);
}
