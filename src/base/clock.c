/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/err.h"

static int64_t system_wall_ms(struct cn_clock *clock)
{
    (void)clock;
    struct timespec ts;
    clock_gettime(CLOCK_REALTIME, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static uint64_t system_mono_ns(struct cn_clock *clock)
{
    (void)clock;
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

struct cn_clock *cn_clock_system(void)
{
    static struct cn_clock clock = {system_wall_ms, system_mono_ns};
    return &clock;
}

/* Where the measurement of the rate began. */
static struct {
    pthread_once_t once;
    uint64_t ticks, ns;
} first = {.once = PTHREAD_ONCE_INIT};

static void measure_first(void)
{
    first.ticks = cn_clock_ticks();
    first.ns = system_mono_ns(NULL);
}

uint64_t cn_clock_ticks_ns(uint64_t ticks)
{
    pthread_once(&first.once, measure_first);
    uint64_t ns = system_mono_ns(NULL) - first.ns, gone = cn_clock_ticks() - first.ticks;
    return gone ? (uint64_t)((double)ticks * (double)ns / (double)gone) : 0;
}

/* The digits after a point as milliseconds; finer ones are cut off. NULL: there is none. */
static const char *parse_fraction(const char *digits, int64_t *ms)
{
    const char *at = digits;
    for (int weight = 100; *at >= '0' && *at <= '9'; at++, weight /= 10)
        *ms += weight * (*at - '0');
    return at > digits ? at : NULL;
}

int cn_clock_parse(const char *text, int64_t *time_ms, struct cn_err *err)
{
    char *end;
    errno = 0;
    *time_ms = strtoll(text, &end, 10);
    if (*text && !*end && !errno)
        return 0;
    struct tm tm = {0};
    const char *rest = strptime(text, "%Y-%m-%dT%H:%M:%S", &tm);
    int64_t fraction_ms = 0;
    if (rest && *rest == '.')
        rest = parse_fraction(rest + 1, &fraction_ms);
    if (!rest || strcmp(rest, "Z") != 0)
        return cn_err_set(err, CN_EINVALID,
                          "\"%.40s\" is no time: write 2026-01-31T12:00:00Z or milliseconds", text);
    *time_ms = (int64_t)timegm(&tm) * 1000 + fraction_ms;
    return 0;
}
