/* SPDX-License-Identifier: Apache-2.0 */
/* test/lib/js_rig.h - the engine for tests of js/: a VM on the test's thread, scripts as text.
 *
 *     struct js_rig rig;
 *     js_rig_open(&rig);
 *     CHECK_STR("3", js_rig_run(&rig, "1 + 2"));
 *     js_rig_close(&rig);
 *
 * The engine is set up once in a process. What depends on how it was set up (its environment, its
 * first VM) runs in a child: js_rig_child(). */
#ifndef CN_TEST_JS_RIG_H
#define CN_TEST_JS_RIG_H
#include "js/context.h"
#include "js/vm.h"
#include "test/lib/test.h"

struct js_rig {
    struct cn_js_vm *vm;
    struct cn_js_context *context;
};

void js_rig_open(struct js_rig *rig);
void js_rig_close(struct js_rig *rig);
/* Evaluates as a turn of its own. The result as text, or what was thrown. Valid until the next
 * call. */
const char *js_rig_run(struct js_rig *rig, const char *source);
/* The same of a context; `end`, if not NULL, says how its turn ended. */
const char *js_rig_evaluate(struct cn_js_context *context, const char *source, enum cn_js_end *end);
/* Runs `work` in a child that has not set up the engine; what it wrote to standard output. It fails
 * the test if the child does not end with 0. */
const char *js_rig_child(void (*work)(void *data), void *data);

#endif
