/* SPDX-License-Identifier: Apache-2.0 */
/* js/engine/pages.h - memory that grows in place: of WebAssembly, and of resizable buffers.
 *
 * The engine does not take it from its allocation functions (alloc.h). It reserves addresses,
 * gigabytes of them, and makes pages of them usable as the memory grows, in compiled code too
 * (memory.grow):
 *
 *     reserve ──► protect: none of it, or a first part, is usable ──► protect: more, or less, is
 *        └───────────────────────────────────────────────────────────────┴──► release
 *
 * E1  What is usable is noted for who holds it (alloc.h, M5), written or not: a script can write it
 *     in one call that nothing interrupts. What is only reserved is not.
 * E2  The engine asks how much memory the machine has before it makes more usable, and holds three
 *     times that against what is usable in the process. It is answered with what is left (alloc.h,
 *     M2), so that growing fails as the language says: a RangeError, -1 in WebAssembly.
 * E3  What is no longer usable is not held either: its pages go back to the system.
 *
 * Threads: any. */
#ifndef CN_JS_ENGINE_PAGES_H
#define CN_JS_ENGINE_PAGES_H
#include <stdint.h>

#include "js/engine/patch.h"

extern const struct cn_js_patch cn_js_patch_pages;

/* What is usable, of all VMs. */
uint64_t cn_js_pages_bytes(void);

#endif
