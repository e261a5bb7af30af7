/* SPDX-License-Identifier: Apache-2.0 */
/* js/profile.h - where the time of a VM goes, by the engine's own sampling profiler.
 *
 * A thread of the engine stops the lane's every millisecond while JavaScript runs in it, and notes
 * the stack. The three functions that it is used by belong to the engine's C API and are exported
 * like the rest of it, but are in none of its installed headers. So they are looked up when a
 * developer asks for a profile, and a library without them has none. Nothing else uses them: a
 * server that nobody profiles never starts that thread.
 *
 * Threads: the VM's, outside of turns. */
#ifndef CN_JS_PROFILE_H
#define CN_JS_PROFILE_H
#include <stdbool.h>

#include "base/buf.h"

struct cn_js_vm;

/* False: it cannot be had. */
bool cn_js_profile_start(struct cn_js_vm *vm);
/* Appends what was sampled since it was last asked, as the engine writes it:
 * {"interval","traces":[{"timestamp","frames":[{"sourceID","name","location","line","column"}]}],
 * "sources":[{"sourceID","url"}]}. */
void cn_js_profile_take(struct cn_js_vm *vm, struct cn_buf *json);
void cn_js_profile_stop(struct cn_js_vm *vm);

#endif
