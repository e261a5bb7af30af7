/* SPDX-License-Identifier: Apache-2.0 */
/* test/lib/scarce.h - memory that runs out: the n-th allocation that may fail does.
 *
 * Those that may are cn_try_alloc(), cn_try_alloc_large() and cn_try_realloc() (base/mem.h), by
 * which SQLite has its memory too; all others abort when they fail. A program that uses this is
 * linked with $(SCARCE) of rules.mk, which puts it between them and their callers.
 *
 * Threads: any. */
#ifndef CN_TEST_SCARCE_H
#define CN_TEST_SCARCE_H
#include <stdbool.h>
#include <stdint.h>

/* From now on the `at`-th (from 1; 0: none) fails, and with `sticky` every one after it. */
void scarce_set(uint64_t at, bool sticky);
/* How many were asked for since. */
uint64_t scarce_count(void);

#endif
