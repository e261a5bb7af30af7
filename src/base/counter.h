/* SPDX-License-Identifier: Apache-2.0 */
/* base/counter.h - numbers that one thread counts and others look at.
 *
 * A counter has one writer, so counting is a load, an addition and a store, all
 * relaxed: no locked instruction, no waiting. A reader sees some recent value.
 *
 * Threads: writing, the owner's; reading, any. */
#ifndef CN_BASE_COUNTER_H
#define CN_BASE_COUNTER_H
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

struct cn_counter {
    atomic_uint_least64_t value;
};

static inline uint64_t cn_counter_get(const struct cn_counter *counter)
{
    return atomic_load_explicit(&counter->value, memory_order_relaxed);
}

static inline void cn_counter_set(struct cn_counter *counter, uint64_t value)
{
    atomic_store_explicit(&counter->value, value, memory_order_relaxed);
}

static inline void cn_counter_add(struct cn_counter *counter, uint64_t count)
{
    cn_counter_set(counter, cn_counter_get(counter) + count);
}

/* How often values fell into each range. The bounds are shared by all histograms of durations,
 * or of counts, and are the upper ends of the ranges, inclusive; the last range has none. */
#define CN_HISTOGRAM_BOUNDS 18
extern const uint64_t cn_histogram_us[CN_HISTOGRAM_BOUNDS];    /* 50 us to 60 s */
extern const uint64_t cn_histogram_count[CN_HISTOGRAM_BOUNDS]; /* 1 to 131,072 */

struct cn_histogram {
    struct cn_counter ranges[CN_HISTOGRAM_BOUNDS + 1];
    struct cn_counter sum;
};

static inline void cn_histogram_note(struct cn_histogram *histogram,
                                     const uint64_t bounds[CN_HISTOGRAM_BOUNDS], uint64_t value)
{
    size_t i = 0;
    while (i < CN_HISTOGRAM_BOUNDS && value > bounds[i])
        i++;
    cn_counter_add(&histogram->ranges[i], 1);
    cn_counter_add(&histogram->sum, value);
}

#endif
