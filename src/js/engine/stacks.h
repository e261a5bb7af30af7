/* SPDX-License-Identifier: Apache-2.0 */
/* js/engine/stacks.h - error.stack in the form that programs know.
 *
 * The engine keeps the frames of an error and makes its properties `line`, `column`, `sourceURL`
 * and `stack` of them when one of these is first asked for: lines "function@file:line:column",
 * without the error's name and message. Programs are written for another form, "Name: message" and
 * lines "    at function (file:line:column)". The engine offers no place to say so, but what it
 * does with errors' properties goes through the table of functions of their class, and five of
 * those make the properties. Here is what stands in their place: it lets the engine make them, and
 * then a function of the context (cn_js_context.stacks) gives them their shape. An error whose
 * stack nobody reads costs what it did.
 *
 *     stack not made ----> made, the engine's form ----> shaped
 *     a bit in the cell    for an instant, or in a
 *     tells                global without a function
 *
 * T1  The function is called once for an error, at the first look at one of the four properties, or
 *     at all names, or after one of the four was first written or deleted.
 * T2  What the engine remembers of a place in the program (its inline caches) is never made from
 *     the first writing or deleting: the engine itself makes the properties inside of those, and
 *     forbids it.
 *
 * T3  What the function throws is dropped: the engine's form stays.
 *
 * Threads: the VM's; the engine's other threads only read the table, whose entries change at once.
 */
#ifndef CN_JS_ENGINE_STACKS_H
#define CN_JS_ENGINE_STACKS_H
#include "js/engine/patch.h"

extern const struct cn_js_patch cn_js_patch_stacks;

#endif
