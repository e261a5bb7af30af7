/* SPDX-License-Identifier: Apache-2.0 */
/* base/cond.h - conditions that are waited for with a time, by a clock that nobody sets.
 *
 * Threads:   any.
 * Ownership: the caller's memory; ended by pthread_cond_destroy(). */
#ifndef CN_BASE_COND_H
#define CN_BASE_COND_H
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

void cn_cond_init(pthread_cond_t *cond);
/* With the lock held, which is given back meanwhile. False: the time is over. True: look whether it
 * is as wanted. */
bool cn_cond_wait_ms(pthread_cond_t *cond, pthread_mutex_t *lock, int64_t ms);

#endif
