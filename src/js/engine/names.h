/* SPDX-License-Identifier: Apache-2.0 */
/* js/engine/names.h - a list of property names that is too long ends with its turn.
 *
 * Object.keys(), JSON.stringify(), for-in and the like make a list of the names of what they are
 * given, and an array of 20 million elements has 20 million names: 40 seconds in which the engine
 * looks at nothing, and gigabytes. Each name of an index is made by one function of the library,
 * which is passed on through here. Once the turn is past its limit it makes one of 256 names
 * instead: the list takes each of them once, so the rest of the loop takes no memory and little
 * time, and then the engine looks and ends the turn. Nothing of the script runs in between: it
 * would look first.
 *
 * K1  In a turn that is within its limits every name is the library's.
 *
 * Threads: any, after the setup. */
#ifndef CN_JS_ENGINE_NAMES_H
#define CN_JS_ENGINE_NAMES_H
#include <stdbool.h>
#include <stdint.h>

#include "js/engine/patch.h"

extern const struct cn_js_patch cn_js_patch_names;

/* `overdue` is asked on the thread that makes names: whether its turn is past its limit. Once,
 * before any VM exists. */
void cn_js_engine_names_setup(bool (*overdue)(uint64_t now_mono_ns));

#endif
