/* SPDX-License-Identifier: Apache-2.0 */
/* js/engine/stop.h - the engine does not ask a thread to stop by way of its stack limit. */
#ifndef CN_JS_ENGINE_STOP_H
#define CN_JS_ENGINE_STOP_H
#include "js/engine/patch.h"

extern const struct cn_js_patch cn_js_patch_stop;

#endif
