/* SPDX-License-Identifier: Apache-2.0 */
/* Compatibility dates and flags: the table is sound, and what is on follows from it. */
#include "config/compat.h"

#include <string.h>

#include "test/lib/test.h"

TEST(compat, every_name_of_the_table_is_found_and_stands_for_one_flag)
{
    const struct cn_compat_flag *flag;
    size_t count = 0;
    for (; (flag = cn_compat_at(count)); count++) {
        bool enables;
        CHECK(cn_compat_find(flag->enable, &enables) == flag && enables);
        if (flag->disable)
            CHECK(cn_compat_find(flag->disable, &enables) == flag && !enables);
        CHECK(!flag->date || cn_compat_date_valid(flag->date));
        CHECK(!flag->implied_by == !flag->implied_date);
        if (flag->implied_by)
            CHECK(cn_compat_find(flag->implied_by, &enables) && enables &&
                  cn_compat_date_valid(flag->implied_date));
        /* Asking for the side that there is is fine; for the other only if both are built. */
        CHECK(cn_compat_is_built(flag, true) == (flag->side != CN_COMPAT_OFF));
        CHECK(cn_compat_is_built(flag, false) == (flag->side != CN_COMPAT_ON));
    }
    CHECK(count > 100);
    CHECK(!cn_compat_at(count + 1000));
}

TEST(compat, a_flag_is_on_from_its_date_unless_it_is_turned_off)
{
    const struct cn_compat_flag *flag;
    for (size_t i = 0; (flag = cn_compat_at(i)); i++) {
        const char *off[] = {flag->disable}, *on[] = {flag->enable};
        CHECK(cn_compat_is_on(flag->enable, NULL, on, 1));
        if (!flag->date)
            continue;
        CHECK(cn_compat_is_on(flag->enable, flag->date, NULL, 0));
        CHECK(cn_compat_is_on(flag->enable, "9999-12-31", NULL, 0));
        if (flag->disable)
            CHECK(!cn_compat_is_on(flag->enable, "9999-12-31", off, 1));
        if (!flag->implied_by)
            CHECK(!cn_compat_is_on(flag->enable, "2000-01-01", NULL, 0));
    }
}

TEST(compat, a_mistyped_name_leads_to_the_nearest_and_nonsense_to_none)
{
    bool enables;
    CHECK(!cn_compat_find("nodejs_comapt", &enables));
    CHECK_STR("nodejs_compat", cn_compat_suggest("nodejs_comapt"));
    CHECK(!cn_compat_suggest("completely_different_thing_altogether"));
    CHECK(!cn_compat_find("", &enables));
}

TEST(compat, dates_that_do_not_exist_are_no_dates)
{
    static const char *const good[] = {"2026-01-31", "2024-02-29", "2021-11-03"};
    static const char *const bad[] = {"",           "2026",        "2026-1-31",  "2026-02-29",
                                      "2026-13-01", "2026-00-10",  "2026-04-31", "2026-01-00",
                                      "2026/01/31", "2026-01-31 ", "x026-01-31", "today"};
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        CHECK(cn_compat_date_valid(good[i]));
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        CHECK(!cn_compat_date_valid(bad[i]));
}
