/* SPDX-License-Identifier: Apache-2.0 */
/* base/cron.h - cron expressions: five fields, UTC, by the minute.
 *
 *     minute hour day-of-month month day-of-week
 *     0-59   0-23 1-31         1-12  1-7 (Sunday is 1), or JAN.., SUN..
 *
 * Each field is a list of `*`, values, ranges a-b, and steps (after / : of all, of a range, or from
 * a value on). Days of the month may also be L (the last), L-n (n days before it), nW (the
 * working day nearest to the n-th, in the same month) and LW (the last working day); days of the
 * week nL (the last one of the month; L alone is Saturday) and n#k (the k-th). If both days are
 * restricted, either is enough, as cron has always had it. "?" is refused.
 *
 * Threads: pure. */
#ifndef CN_BASE_CRON_H
#define CN_BASE_CRON_H
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct cn_cron {
    uint64_t minutes;
    uint32_t hours, days, months; /* bit n: n is meant */
    uint8_t weekdays;             /* bit n: 1 is Sunday */
    bool any_day, any_weekday;    /* the field is "*" (or a step of all) */
    bool last_working_day;
    uint32_t days_before_last; /* bit n: n days before the last */
    uint32_t nearest_working;  /* bit n: nW */
    uint8_t last_weekdays;     /* bit n: nL */
    uint8_t nth_weekdays[6];   /* [k], bit n: n#k */
};

int cn_cron_parse(const char *text, struct cn_cron *cron, struct cn_err *err);
/* The first occurrence after `ms` (since 1970), or -1 if there is none within eight years. */
int64_t cn_cron_next(const struct cn_cron *cron, int64_t ms);
/* The last occurrence at or before `ms`, or -1 as above. */
int64_t cn_cron_previous(const struct cn_cron *cron, int64_t ms);

#endif
