/* SPDX-License-Identifier: Apache-2.0 */
/* js/engine/lock.h - the engine's lock, taken once per turn and not again inside.
 *
 * Threads: the flag is each thread's own. */
#ifndef CN_JS_ENGINE_LOCK_H
#define CN_JS_ENGINE_LOCK_H
#include <stdbool.h>

#include "js/engine/patch.h"

extern const struct cn_js_patch cn_js_patch_lock;

/* Whether this thread holds the lock of its VM now, and until it says otherwise. */
void cn_js_engine_lock_held(bool held);

#endif
