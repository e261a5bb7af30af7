/* SPDX-License-Identifier: Apache-2.0 */
/* bindings/call.h - what calls to objects and calls to workers have in common.
 *
 * A call that JavaScript makes has a callback, which gets (-1, bytes) or
 * (faults, bytes | undefined, message) as a turn of whoever made the call.
 *
 * Threads: the lane's. */
#ifndef CN_BINDINGS_CALL_H
#define CN_BINDINGS_CALL_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "js/context.h"

struct cn_dispatch;

/* Calls and empties the callback; takes the result. False: whoever made the call is gone. */
bool cn_call_tell(struct cn_js_pin *callback, unsigned faults, const struct cn_err *err,
                  uint8_t **result, size_t size);
/* Throws if so many bytes may not be sent (RPC-5). */
bool cn_call_too_large(JSContextRef ctx, JSValueRef *exception, size_t size);
/* Sends it with a copy of the bytes, once the gate of the object whose turn it is, if any, is
 * open; the callback gets the answer. */
void cn_dispatch_from_js(JSContextRef ctx, struct cn_dispatch *dispatch, const uint8_t *bytes,
                         size_t size, JSValueRef callback);

#endif
