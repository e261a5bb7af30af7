/* SPDX-License-Identifier: Apache-2.0 */
/* bindings/call.h - what calls to objects and calls to workers have in common.
 *
 * A call that JavaScript makes has a callback, which gets (RETURNED, bytes) or
 * (FAILED, bytes | undefined, faults, message) as a turn of whoever made the call.
 *
 * Threads: the lane's. */
#ifndef CN_BINDINGS_CALL_H
#define CN_BINDINGS_CALL_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "js/context.h"
#include "object/message.h"

struct cn_dispatch;
struct cn_lane;
struct cn_namespace;

/* How a call has ended, as JavaScript is told. */
enum cn_outcome {
    CN_OUTCOME_RETURNED, /* and this is what */
    CN_OUTCOME_FAILED,
    CN_OUTCOME_DROPPED, /* its caller is gone: only what was kept for it is to be let go */
};

/* Calls and empties the callback; takes the result. False: whoever made the call is gone. */
bool cn_call_tell(struct cn_js_pin *callback, unsigned faults, const struct cn_err *err,
                  uint8_t **result, size_t size);
/* C1: what JavaScript sends reaches classes of JavaScript alone: a service, and the core, would
 * take the call for one of their own. The namespace of that number, or NULL if it is none or a
 * service's; and whether a number is a kind of call that scripts make: FETCH or RPC. */
struct cn_namespace *cn_call_namespace(const struct cn_lane *lane, uint32_t id);
/* C2: a script makes ids of the namespaces that its bindings name; of others it has what it was
 * sent, and an id that was not made for its namespace is none. The namespace that a binding names,
 * or NULL; that of an address (`id` has CN_OBJECT_ID_SIZE bytes), or NULL. */
struct cn_namespace *cn_call_own_namespace(JSContextRef ctx, uint32_t id);
struct cn_namespace *cn_call_address(JSContextRef ctx, uint32_t ns_id, const uint8_t id[]);
bool cn_call_kind_sendable(uint32_t kind);
/* Throws if so many bytes may not be sent (RPC-5). */
bool cn_call_too_large(JSContextRef ctx, JSValueRef *exception, size_t size);
/* C3: workers and objects that call one another without end come to one: a call that is
 * CN_CALL_DEPTH_MAX deep makes none. Whether it is; cn_call_too_deep() throws then. */
bool cn_call_at_depth(const struct cn_lane *lane);
bool cn_call_too_deep(JSContextRef ctx, JSValueRef *exception);
/* Sends it with a copy of the bytes, once the gate of the object whose turn it is, if any, is
 * open; the callback gets the answer. */
void cn_dispatch_from_js(JSContextRef ctx, struct cn_dispatch *dispatch, const uint8_t *bytes,
                         size_t size, JSValueRef callback);

/* As scripts are told them. */
double cn_call_faults(unsigned faults, const struct cn_err *err);

#endif
