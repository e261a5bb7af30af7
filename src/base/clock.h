/* SPDX-License-Identifier: Apache-2.0 */
/* base/clock.h - time, behind a small interface so that tests can own it. */
#ifndef CN_BASE_CLOCK_H
#define CN_BASE_CLOCK_H
#include <stdint.h>

struct cn_clock {
    /* Milliseconds since 1970-01-01 UTC. May step when the administrator sets the clock. */
    int64_t (*wall_ms)(struct cn_clock *clock);
    /* Nanoseconds from an arbitrary start; never goes back. */
    uint64_t (*mono_ns)(struct cn_clock *clock);
};

/* The machine's clock. Static storage, usable from any thread. */
struct cn_clock *cn_clock_system(void);

static inline int64_t cn_clock_wall_ms(struct cn_clock *clock)
{
    return clock->wall_ms(clock);
}

static inline uint64_t cn_clock_mono_ns(struct cn_clock *clock)
{
    return clock->mono_ns(clock);
}

#endif
