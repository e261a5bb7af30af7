/* SPDX-License-Identifier: Apache-2.0 */
/* js/engine/patch.h - what Cairn replaces and uses inside JavaScriptCore, and whether it does.
 *
 * Everything that is not in the engine's C API is in this folder, one file per patch; the table is
 * in patch.c. A security update may bring another library at any time, so nothing is taken on
 * trust:
 *
 *     wanted ----> found ----> tried ----> proven: on
 *     the switch   every       unknown     by behaviour, on the
 *                  symbol      builds: in  process's first VM
 *                              a child
 *     else, at whichever step: off, with a reason
 *
 * P1  A patch does nothing before it is proven, and nothing after it has failed: then the engine
 *     works as it was built, at the cost that the table names.
 * P2  A library that none of the builds in the table is runs its proofs in a child first. What ends
 *     the child is off; it does not end the server.
 * P3  What is off is said: one line when the first VM starts, the metric cairn_engine_patch,
 *     `cairn version --engine`.
 * P4  A turn past its CPU budget ends with any of them off (vm.c).
 * P5  A patch whose proof needs another one is off with it: a proof never puts the server at risk.
 * P6  A library that does by itself what a patch is for has no need of it: the patch is not used, and
 *     that is no fault.
 *
 * CAIRN_ENGINE_PATCHES in the environment chooses: "off" (none), names ("lock,clock": these alone),
 * or names with a minus ("-lock": all the others).
 *
 * Threads: setup and prove as said below; the rest on any, after them. */
#ifndef CN_JS_ENGINE_PATCH_H
#define CN_JS_ENGINE_PATCH_H
#include <stdbool.h>
#include <stddef.h>

struct cn_err;
struct cn_js_context;
struct cn_js_vm;

#define CN_JS_PATCH_SYMBOLS_MAX 16

/* One patch, by the file that has it. */
struct cn_js_patch {
    const char *name;
    const char *replaces; /* what, in the library */
    const char *why;
    const char *gain;    /* measured, with the switch */
    const char *without; /* what is otherwise when it is off */
    const char *needs;   /* another one, before it in the table, or NULL (P5) */
    /* What the library must have; "a|b": one of them. */
    const char *symbols[CN_JS_PATCH_SYMBOLS_MAX];
    const char *superseded; /* a symbol of libraries that have no need of it (P6); or NULL */
    /* Takes the functions of `symbols` as the library has them, in their order. May be NULL. */
    void (*found)(void *const functions[]);
    /* Switches it. Off when the process starts. */
    void (*use)(bool on);
    /* Whether it behaves, while it is in use: NULL, or a sentence that says what is wrong. Runs on
     * the thread of `vm`, outside of any turn. */
    const char *(*prove)(struct cn_js_vm *vm);
};

/* Inside a function that takes the place of one of the library's: `original` is that one, the next
 * definition of the name after ours. */
#define CN_JS_ORIGINAL(type, name)                    \
    static type original;                             \
    if (__builtin_expect(!original, 0))               \
        *(void **)&original = dlsym(RTLD_NEXT, name); \
    CN_ASSERT(original)

/* How one of them stands. */
struct cn_js_patch_status {
    const struct cn_js_patch *patch;
    bool on;
    bool is_unneeded; /* P6: not on, and nothing is missed */
    char reason[160]; /* why it is off */
};

/* Once, before any thread and any VM: reads the switch, looks for the symbols and, for an unknown
 * build, tries in a child, in which `try_out` makes a VM. */
int cn_js_engine_setup(void (*try_out)(void), struct cn_err *err);
/* On the thread of a new VM: the first one proves what can be used; others wait for it. */
void cn_js_engine_prove(struct cn_js_vm *vm);

/* For proofs: whether the source runs to its end, as a turn of the context. */
bool cn_js_engine_evaluates(struct cn_js_context *context, const char *source);

/* The table as it stands: `count` of them. Before the first VM, what is not off counts as on. */
const struct cn_js_patch_status *cn_js_engine_patches(size_t *count);
/* Of the library: its build id in hexadecimal ("": it has none), and whether it is in the table. */
const char *cn_js_engine_build_id(void);
bool cn_js_engine_build_known(void);
/* Prints all of it, for `cairn version --engine`, on a VM that it makes (describe.c). */
int cn_js_engine_describe(struct cn_err *err);
/* "2.50.6" */
const char *cn_js_engine_version(void);

#endif
