/* SPDX-License-Identifier: Apache-2.0 */
#include "js/engine/memory.h"

/* The library's own, WTF::releaseFastMallocFreeMemory(). */
void cn_js_engine_release(void) __asm__("_ZN3WTF27releaseFastMallocFreeMemoryEv")
    __attribute__((weak));

void cn_js_engine_memory_release(void)
{
    if (cn_js_engine_release)
        cn_js_engine_release();
}
