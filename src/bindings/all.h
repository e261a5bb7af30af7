/* SPDX-License-Identifier: Apache-2.0 */
/* bindings/all.h - JavaScript with everything that scripts see: the one list of native tables (see
 * js/native.h), and the guest (worker/guest.h) that a server is given. */
#ifndef CN_BINDINGS_ALL_H
#define CN_BINDINGS_ALL_H
#include "worker/guest.h"

extern const struct cn_guest cn_javascript;

void cn_bindings_install(struct cn_runtime *runtime, struct OpaqueJSValue *native);

#endif
