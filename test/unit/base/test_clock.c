/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"

#include <string.h>

#include "base/err.h"
#include "test/lib/test.h"

static int64_t parsed(const char *text)
{
    struct cn_err err;
    int64_t time_ms;
    CHECK_INT(0, cn_clock_parse(text, &time_ms, &err));
    return time_ms;
}

TEST(clock, reads_times_of_people_and_milliseconds)
{
    CHECK_INT(0, parsed("1970-01-01T00:00:00Z"));
    CHECK_INT(1769860800000, parsed("2026-01-31T12:00:00Z"));
    CHECK_INT(1769860800123, parsed("2026-01-31T12:00:00.123Z"));
    CHECK_INT(1769860800100, parsed("2026-01-31T12:00:00.1Z"));
    CHECK_INT(1769860800999, parsed("2026-01-31T12:00:00.99999999999999999999999999Z"));
    CHECK_INT(1769860800123, parsed("1769860800123"));
    CHECK_INT(-1, parsed("-1"));
}

TEST(clock, refuses_what_is_no_time_and_says_how_to_write_one)
{
    static const char *const texts[] = {"",
                                        "yesterday",
                                        "2026-01-31",
                                        "2026-01-31T12:00:00",
                                        "2026-01-31T12:00:00+01:00",
                                        "2026-01-31T12:00:00.Z",
                                        "2026-01-31T12:00:00.1e300Z",
                                        "2026-01-31T12:00:00.nanZ",
                                        "2026-01-31T12:00:00Z ",
                                        "2026-13-01T00:00:00Z",
                                        "2026-01-31T25:00:00Z",
                                        "12 ",
                                        "99999999999999999999",
                                        "0x10"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct cn_err err;
        int64_t time_ms;
        CHECK_INT(CN_EINVALID, cn_clock_parse(texts[i], &time_ms, &err));
        CHECK(strstr(err.text, "2026-01-31T12:00:00Z"));
    }
}

TEST(clock, ticks_and_nanoseconds_of_the_machine_go_forward)
{
    struct cn_clock *clock = cn_clock_system();
    uint64_t ns = cn_clock_mono_ns(clock), ticks = cn_clock_ticks();
    (void)cn_clock_ticks_ns(0); /* the measurement begins */
    uint64_t end = ns;
    while (end - ns < 1000000) {
        CHECK(cn_clock_mono_ns(clock) >= end);
        end = cn_clock_mono_ns(clock);
    }
    CHECK(cn_clock_ticks() > ticks);
    CHECK(cn_clock_ticks_ns(cn_clock_ticks() - ticks) > 0);
    CHECK_INT(0, cn_clock_ticks_ns(0));
    CHECK(cn_clock_wall_ms(clock) > 1700000000000);
}
