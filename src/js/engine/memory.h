/* SPDX-License-Identifier: Apache-2.0 */
/* js/engine/memory.h - memory that the engine's allocator has kept goes back to the system.
 *
 * Threads: any. */
#ifndef CN_JS_ENGINE_MEMORY_H
#define CN_JS_ENGINE_MEMORY_H
#include "js/engine/patch.h"

extern const struct cn_js_patch cn_js_patch_memory;

void cn_js_engine_memory_release(void);

#endif
