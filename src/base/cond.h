/* SPDX-License-Identifier: Apache-2.0 */
/* base/cond.h - condition variables with timeouts, on CLOCK_MONOTONIC.
 *
 * W1  Every wait with a time is one of these: a step of the wall clock lengthens and shortens none
 *     (tools/lint refuses pthread_cond_timedwait() elsewhere).
 *
 * Threads:   any.
 * Ownership: the caller's memory; ended by pthread_cond_destroy(). */
#ifndef CN_BASE_COND_H
#define CN_BASE_COND_H
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

void cn_cond_init(pthread_cond_t *cond);
/* The time of that clock. */
int64_t cn_cond_now_ms(void);
/* With the lock held, which is released while it waits. False: the time is over, at once
 * if it is 0 or negative. True: it was signalled, or woke without a reason; the caller looks at
 * what it waits for. */
bool cn_cond_wait_ms(pthread_cond_t *cond, pthread_mutex_t *lock, int64_t ms);

#endif
