/* SPDX-License-Identifier: Apache-2.0 */
/* module/crash.h - the last line of a process that dies in a module names it (M4 of module.h).
 *
 * Threads: each says what it runs itself; setup once, any. */
#ifndef CN_MODULE_CRASH_H
#define CN_MODULE_CRASH_H

struct cn_module_class;

/* Installs handlers for the signals that end a process by its own fault. They pass on to those that
 * were there before, and to the system, so that a core is written as ever. */
void cn_module_crash_setup(void);
/* From now on this thread runs code of that class; NULL: of none. Returns what was said before. */
const struct cn_module_class *cn_module_crash_note(const struct cn_module_class *class_);

#endif
