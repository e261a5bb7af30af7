/* SPDX-License-Identifier: Apache-2.0 */
/* js/engine/stop.h - the engine does not ask a thread to stop by way of its stack limit.
 *
 * Whoever has told the engine to end a turn can wait until it has taken note, so that no line of
 * the script runs any more (regexp.h, X1). */
#ifndef CN_JS_ENGINE_STOP_H
#define CN_JS_ENGINE_STOP_H
#include <stdatomic.h>
#include <stdint.h>

#include "base/list.h"
#include "js/engine/patch.h"

struct cn_js_vm;

struct cn_js_stop_wait {
    struct cn_list link;
    const char *vm; /* the engine's */
    atomic_bool asked;
};

/* From now on what the engine asks of the thread of `vm` is noted. */
void cn_js_stop_wait_begin(struct cn_js_stop_wait *wait, struct cn_js_vm *vm);
/* Waits for it; false: it did not come in that time. May be called again. */
bool cn_js_stop_wait_end(struct cn_js_stop_wait *wait, unsigned ms);

extern const struct cn_js_patch cn_js_patch_stop;

#endif
