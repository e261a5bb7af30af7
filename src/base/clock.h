/* SPDX-License-Identifier: Apache-2.0 */
/* base/clock.h - time, behind a small interface so that tests can own it. */
#ifndef CN_BASE_CLOCK_H
#define CN_BASE_CLOCK_H
#include <stdint.h>
#if !defined(__x86_64__) && !defined(__aarch64__)
#include <time.h>
#endif

struct cn_err;

struct cn_clock {
    /* Milliseconds since 1970-01-01 UTC. May step when the administrator sets the clock. */
    int64_t (*wall_ms)(struct cn_clock *clock);
    /* Nanoseconds from an arbitrary start; never goes back. */
    uint64_t (*mono_ns)(struct cn_clock *clock);
};

/* A time of people: 2026-01-31T12:00:00[.123]Z, or milliseconds since 1970. */
int cn_clock_parse(const char *text, int64_t *time_ms, struct cn_err *err);

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

/* A counter that goes at a constant rate, for durations that are measured too often for a clock: a
 * few cycles. Not exact across cores. */
static inline uint64_t cn_clock_ticks(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    uint64_t ticks;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
#else
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
#endif
}

/* So many nanoseconds are `ticks`. The rate is measured against the clock: from the first call on,
 * which therefore belongs at the start of the program. */
uint64_t cn_clock_ticks_ns(uint64_t ticks);

#endif
