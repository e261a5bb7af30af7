/* SPDX-License-Identifier: Apache-2.0 */
/* Cron expressions (CR-1): what is understood, what is refused, and when they come round. */
#include "base/cron.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "test/lib/test.h"

static int64_t at(const char *text)
{
    struct tm tm = {0};
    int year, month, day, hour, minute;
    CHECK(sscanf(text, "%d-%d-%d %d:%d", &year, &month, &day, &hour, &minute) == 5);
    tm.tm_year = year - 1900;
    tm.tm_mon = month - 1;
    tm.tm_mday = day;
    tm.tm_hour = hour;
    tm.tm_min = minute;
    return (int64_t)timegm(&tm) * 1000;
}

static const char *show(int64_t ms)
{
    static char text[2][32];
    static int which;
    which = !which;
    if (ms < 0)
        return "never";
    time_t seconds = (time_t)(ms / 1000);
    struct tm tm;
    strftime(text[which], sizeof(text[which]), "%Y-%m-%d %H:%M", gmtime_r(&seconds, &tm));
    return text[which];
}

static void check_next(const char *expression, const char *from, const char *want)
{
    struct cn_cron cron;
    struct cn_err err;
    if (cn_cron_parse(expression, &cron, &err) < 0)
        test_fail(__FILE__, __LINE__, "%s", err.text);
    int64_t next = cn_cron_next(&cron, at(from));
    if (strcmp(show(next), want) != 0)
        test_fail(__FILE__, __LINE__, "\"%s\" after %s: want %s, got %s", expression, from, want,
                  show(next));
    if (next < 0)
        return;
    CHECK_STR(want, show(cn_cron_previous(&cron, next)));
    CHECK_STR(want, show(cn_cron_previous(&cron, next + 59999)));
    CHECK(cn_cron_previous(&cron, next - 1) < next);
    CHECK(cn_cron_previous(&cron, next - 1) <= at(from));
}

TEST(cron, plain_fields_lists_ranges_and_steps)
{
    check_next("* * * * *", "2026-11-15 05:25", "2026-11-15 05:26");
    check_next("*/15 * * * *", "2026-11-15 05:25", "2026-11-15 05:30");
    check_next("0 0 * * *", "2026-11-15 05:25", "2026-11-16 00:00");
    check_next("59 23 31 12 *", "2026-12-31 23:59", "2027-12-31 23:59");
    check_next("5,10,40-45/2 3 * * *", "2026-01-01 03:11", "2026-01-01 03:40");
    check_next("5,10,40-45/2 3 * * *", "2026-01-01 03:42", "2026-01-01 03:44");
    check_next("50/3 * * * *", "2026-01-01 03:51", "2026-01-01 03:53");
    check_next("0 12 29 2 *", "2026-01-01 00:00", "2028-02-29 12:00");
    check_next("0 0 30 2 *", "2026-01-01 00:00", "never");
    check_next("0 12 1 JAN,jul *", "2026-01-01 12:00", "2026-07-01 12:00");
    check_next("0 12 * mar-May *", "2026-05-31 12:00", "2027-03-01 12:00");
}

TEST(cron, weekdays_count_from_sunday)
{
    /* 2026-11-15 is a Sunday. */
    check_next("0 9 * * 1", "2026-11-15 05:25", "2026-11-15 09:00");
    check_next("0 9 * * SUN", "2026-11-15 09:00", "2026-11-22 09:00");
    check_next("0 9 * * 2-6", "2026-11-15 05:25", "2026-11-16 09:00");
    check_next("0 9 * * MON-FRI", "2026-11-20 09:00", "2026-11-23 09:00");
    check_next("0 9 * * 7", "2026-11-15 05:25", "2026-11-21 09:00");
    check_next("0 9 * * L", "2026-11-15 05:25", "2026-11-21 09:00");
    /* If both days are restricted, either will do. */
    check_next("0 9 18 * 1", "2026-11-15 10:00", "2026-11-18 09:00");
    check_next("0 9 18 * 1", "2026-11-18 10:00", "2026-11-22 09:00");
}

TEST(cron, special_days)
{
    check_next("0 0 L * *", "2026-02-01 00:00", "2026-02-28 00:00");
    check_next("0 0 L * *", "2028-02-01 00:00", "2028-02-29 00:00");
    check_next("0 0 L-2 * *", "2026-04-01 00:00", "2026-04-28 00:00");
    check_next("0 0 LW * *", "2026-05-01 00:00", "2026-05-29 00:00");  /* the 31st is a Sunday */
    check_next("0 0 15W * *", "2026-11-01 00:00", "2026-11-16 00:00"); /* Sunday to Monday */
    check_next("0 0 14W * *", "2026-11-01 00:00", "2026-11-13 00:00"); /* Saturday to Friday */
    check_next("0 0 1W * *", "2026-08-01 00:00", "2026-08-03 00:00");  /* not back into July */
    check_next("0 0 31W * *", "2026-05-01 00:00", "2026-05-29 00:00"); /* nor on into June */
    check_next("0 0 * * 6L", "2026-11-01 00:00", "2026-11-27 00:00");
    check_next("0 0 * * FRIL", "2026-11-27 00:00", "2026-12-25 00:00");
    check_next("0 0 * * 2#2", "2026-11-01 00:00", "2026-11-09 00:00");
    check_next("0 0 * * MON#5", "2026-11-01 00:00", "2026-11-30 00:00");
    check_next("0 0 1,L * *", "2026-11-02 00:00", "2026-11-30 00:00");
}

TEST(cron, what_is_refused)
{
    static const char *const bad[] = {
        "",
        "* * * *",
        "* * * * * *",
        "60 * * * *",
        "* 24 * * *",
        "* * 0 * *",
        "* * 32 * *",
        "* * * 13 *",
        "* * * * 0",
        "* * * * 8",
        "? * * * *",
        "* * ? * *",
        "*/0 * * * *",
        "5-1 * * * *",
        "1- * * * *",
        "a * * * *",
        "1,,2 * * * *",
        "1, * * * *",
        "* * L-31 * *",
        "* * W * *",
        "* * * * 2#6",
        "* * * * 2#0",
        "* * * JANX *",
        "-1 * * * *",
        "1/ * * * *",
        "*-5 * * * *",
        "* * * * MONDAY",
        "1000 * * * *",
        "1 * * * * ; rm",
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct cn_cron cron;
        struct cn_err err;
        if (cn_cron_parse(bad[i], &cron, &err) == 0)
            test_fail(__FILE__, __LINE__, "accepted: %s", bad[i]);
    }
}

/* Against a plain search by the minute with the C library's calendar. */
TEST(cron, agrees_with_a_plain_search)
{
    struct cn_cron cron;
    CHECK(cn_cron_parse("7,33 */5 3-9,28 * 3", &cron, NULL) == 0);
    int64_t next = at("2027-12-20 00:00");
    for (int64_t ms = next; ms < at("2028-03-10 00:00"); ms += 60000) {
        time_t seconds = (time_t)(ms / 1000);
        struct tm tm;
        gmtime_r(&seconds, &tm);
        bool day = (tm.tm_mday >= 3 && tm.tm_mday <= 9) || tm.tm_mday == 28 || tm.tm_wday == 2;
        bool fits = day && tm.tm_hour % 5 == 0 && (tm.tm_min == 7 || tm.tm_min == 33);
        if (!fits)
            continue;
        CHECK_STR(show(ms), show(cn_cron_next(&cron, next)));
        next = ms;
    }
}
