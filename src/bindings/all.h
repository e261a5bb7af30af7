/* SPDX-License-Identifier: Apache-2.0 */
/* bindings/all.h - the one list of native tables (see js/native.h). */
#ifndef CN_BINDINGS_ALL_H
#define CN_BINDINGS_ALL_H
#include "worker/runtime.h"

void cn_bindings_install(struct cn_runtime *runtime, JSObjectRef native);

#endif
