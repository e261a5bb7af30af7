/* SPDX-License-Identifier: Apache-2.0 */
/* module/crash.h - the last line of a process that dies in a module names it (M4 of module.h).
 *
 * Threads: each says what it runs itself; setup once, any. */
#ifndef CN_MODULE_CRASH_H
#define CN_MODULE_CRASH_H
#include <stdatomic.h>
#include <stddef.h>

struct cn_module_class;

/* Installs handlers for the signals that end a process by its own fault. They pass on to those that
 * were there before, and to the system, so that a core is written as ever. */
void cn_module_crash_setup(void);
/* From now on this thread runs code of that class; NULL: of none. Returns what was said before. */
const struct cn_module_class *cn_module_crash_note(const struct cn_module_class *class_);
/* The same for another thread, which looks whether a function returns: `count` grows with each that
 * begins or ends. What `running` points to is there while that has not changed. */
struct cn_module_pulse {
    const struct cn_module_class *_Atomic running;
    atomic_uint_least64_t count;
};
/* This thread's, from now on; borrowed as long as it runs code of modules. */
void cn_module_crash_publish(struct cn_module_pulse *pulse);
/* Of a class that runs: "the module "x", class x:Y". */
void cn_module_crash_describe(const struct cn_module_class *class_, char *text, size_t size);
/* What it runs now; NULL: nothing. */
const struct cn_module_class *cn_module_crash_running(void);

#endif
