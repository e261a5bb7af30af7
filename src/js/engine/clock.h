/* SPDX-License-Identifier: Apache-2.0 */
/* js/engine/clock.h - the clock by which the engine measures its time limit is ours.
 *
 * The engine begins its count anew at each entry, and every microtask is an entry: in an endless
 * chain of short ones it would never ask whether to go on. So a turn past its budget reads a time
 * past every deadline.
 *
 * Threads: any, after the setup. */
#ifndef CN_JS_ENGINE_CLOCK_H
#define CN_JS_ENGINE_CLOCK_H
#include <stdbool.h>
#include <stdint.h>

#include "js/engine/patch.h"

extern const struct cn_js_patch cn_js_patch_clock;

/* `overdue` is asked on the thread that the engine measures: whether its turn is past its budget.
 * Once, before any VM exists. */
void cn_js_engine_clock_setup(bool (*overdue)(uint64_t now_mono_ns));
/* Whether it is in use. */
bool cn_js_engine_clock_used(void);

#endif
