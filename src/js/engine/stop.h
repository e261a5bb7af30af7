/* SPDX-License-Identifier: Apache-2.0 */
/* js/engine/stop.h - the engine does not ask a thread to stop by way of its stack limit. */
#ifndef CN_JS_ENGINE_STOP_H
#define CN_JS_ENGINE_STOP_H

/* Once, before any VM exists. (A part of an archive is linked only if it is named.) */
void cn_js_engine_stop_setup(void);

#endif
