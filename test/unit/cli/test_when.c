/* SPDX-License-Identifier: Apache-2.0 */
/* Moments as people write them, in a zone with summer time. */
#include "cli/when.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/err.h"
#include "test/lib/test.h"

#define NOW 1769860800123 /* 2026-01-31T12:00:00.123Z, 13:00 in Berlin */

static int64_t parsed(const char *text)
{
    struct cn_err err = {0};
    int64_t time_ms = 0;
    setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1); /* that of Berlin, without its file */
    tzset();
    int rc = cn_when_parse(text, NOW, &time_ms, &err);
    CHECK_STR("", err.text);
    CHECK_INT(0, rc);
    return time_ms;
}

TEST(when, a_time_with_a_zone_is_any_form_of_iso)
{
    static const char *const texts[] = {
        "2026-01-31T12:00:00Z",      "2026-01-31T12:00Z",          "2026-01-31 12:00:00z",
        "2026-01-31T13:00:00+01:00", "2026-01-31T13:00:00+0100",   "2026-01-31T13:00+01",
        "2026-01-31 06:30:00-05:30", "20260131T120000Z",           "20260131T1200Z",
        "2026-01-31T12:00:00.000Z",  "2026-01-31T12:00:00 +00:00", "1769860800000"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        CHECK_INT(1769860800000, parsed(texts[i]));
    CHECK_INT(1769860800123, parsed("2026-01-31T12:00:00.123456Z"));
    CHECK_INT(1769860800500, parsed("2026-01-31T12:00:00,5Z"));
}

TEST(when, a_time_without_a_zone_is_local)
{
    CHECK_INT(1769860800000, parsed("2026-01-31 13:00"));
    CHECK_INT(1769860800000, parsed("13:00"));
    CHECK_INT(1769860800000, parsed("today 13:00:00"));
    CHECK_INT(1769860800000 - 86400000 - 3 * 3600000, parsed("yesterday 10:00"));
    CHECK_INT(1769814000000, parsed("2026-01-31"));
    CHECK_INT(1769814000000, parsed("today"));
    CHECK_INT(1769814000000 - 86400000, parsed("Yesterday"));
    CHECK_INT(1784541600000, parsed("2026-07-20 12:00")); /* 10:00 UTC: summer */
    CHECK_INT(NOW, parsed("now"));
    CHECK_INT(NOW - 5400000, parsed("90 minutes ago"));
    CHECK_INT(NOW - 7200000, parsed("2h ago"));
    CHECK_INT(NOW - 86400000, parsed("1 day ago"));
}

TEST(when, what_is_no_time_is_refused)
{
    static const char *const texts[] = {"",
                                        "tomorrow",
                                        "2026-13-01",
                                        "2026-06-31 10:00",
                                        "25:00",
                                        "10:60",
                                        "10:00x",
                                        "2026-01-31T",
                                        "2026-01-31T12",
                                        "2026-01-31Q",
                                        "5 apples ago",
                                        "2 hours",
                                        "2026-01-31T12:00+25:00",
                                        "yesterdays",
                                        " 12",
                                        "-3h ago",
                                        "2026-01-31T12:00:00.Z",
                                        "99999999999999999999"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct cn_err err = {0};
        int64_t time_ms;
        CHECK_INT(CN_EINVALID, cn_when_parse(texts[i], NOW, &time_ms, &err));
        CHECK(strstr(err.text, "yesterday 10:00"));
    }
}
