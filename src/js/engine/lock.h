/* SPDX-License-Identifier: Apache-2.0 */
/* js/engine/lock.h - the engine's lock, taken once per turn and not again inside.
 *
 * Threads: the flag is each thread's own. */
#ifndef CN_JS_ENGINE_LOCK_H
#define CN_JS_ENGINE_LOCK_H
#include <stdbool.h>

#include "js/jsc.h"

/* Finds the engine's own functions and tries whether they work as expected; call once, before
 * any turn. If not, the engine keeps its locks and calls cost more. */
void cn_js_engine_lock_setup(JSContextGroupRef group);
/* Whether this thread holds the lock of its VM now, and until it says otherwise. */
void cn_js_engine_lock_held(bool held);

#endif
