/* SPDX-License-Identifier: Apache-2.0 */
/* js/engine/stop.c - see stop.h.
 *
 * These take the place of the library's own, which do so, and take it back. Compiled code and the
 * interpreter look at the engine's flags (JSC_usePollingTraps), so the request is not needed; and
 * it ends the process if a flag is raised again between the thread's lowering it and its taking the
 * request back (2.50). */
#include "js/engine/stop.h"

void cn_js_engine_stop_setup(void)
{
}

void cn_js_engine_request_stop(void *traps, unsigned event) __asm__(
    "_ZN3JSC7VMTraps25requestThreadStopIfNeededEj");
void cn_js_engine_request_stop(void *traps, unsigned event)
{
    (void)traps, (void)event;
}
void cn_js_engine_cancel_stop(void *traps) __asm__("_ZN3JSC7VMTraps24cancelThreadStopIfNeededEv");
void cn_js_engine_cancel_stop(void *traps)
{
    (void)traps;
}
