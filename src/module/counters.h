/* SPDX-License-Identifier: Apache-2.0 */
/* module/counters.h - what code in C counts: numbers by worker and name, among the server's
 * metrics.
 *
 * C1  A number never goes down while the process lives: reloads keep it.
 * C2  Bounded: CN_COUNTERS_MAX in the process; one more is refused.
 *
 * Threads:   any; one lock around the table, held for a look-up.
 * Ownership: the process's. */
#ifndef CN_MODULE_COUNTERS_H
#define CN_MODULE_COUNTERS_H
#include <stddef.h>
#include <stdint.h>

#include "include/cairn.h"

#define CN_COUNTERS_MAX 1000
#define CN_COUNTER_NAME_MAX 64

int cn_api_count(cairn_object *object, const char *name, uint64_t amount);
/* All of them, oldest first, under the lock: be quick. */
void cn_counters_each(void (*each)(void *data, const char *worker, const char *name,
                                   uint64_t number),
                      void *data);

#endif
