/* SPDX-License-Identifier: Apache-2.0 */
/* bindings/service_call.h - from a native function to a service and back.
 *
 * A native fills the service's struct (service/service.h) and sends it here, with a callback of
 * the prelude. When the answer is there, `convert` makes a value of it and the callback gets
 *
 *     callback(value)                      it went well
 *     callback(undefined, text, code)      it failed: the sentence, and the code (base/err.h)
 *
 * prelude/workers/service/call.js makes a promise of that. Bytes that the struct owns are given to
 * JavaScript by cn_js_uint8array_take() (set the field to NULL then): nothing is copied.
 *
 * Inside a Durable Object the call waits for the object's own writes, as all its output does.
 *
 * Threads: the lane's. */
#ifndef CN_BINDINGS_SERVICE_CALL_H
#define CN_BINDINGS_SERVICE_CALL_H
#include "js/native.h"
#include "service/service.h"

struct cn_object_lane;

typedef JSValueRef (*cn_jsservice_convert)(JSContextRef ctx, struct cn_service_call *call);

/* Takes `call` over. `convert` may be NULL: the value is undefined. */
void cn_jsservice_send(JSContextRef ctx, struct cn_service_call *call, JSValueRef callback,
                       cn_jsservice_convert convert);

/* The namespace with the number that a binding of this script was made with (binding.ns), of the
 * service whose namespaces begin so ("$kv/"). NULL: it has no such binding, and *exception is set.
 */
struct cn_namespace *cn_jsservice_namespace(JSContextRef ctx, JSValueRef number, const char *prefix,
                                            JSValueRef *exception);
/* The objects of the lane that runs. */
struct cn_object_lane *cn_jsservice_lane(JSContextRef ctx);

/* Appends a body to `out`: UTF-8 of a string, or the bytes of a buffer or view. False: neither. */
bool cn_jsservice_body(JSContextRef ctx, JSValueRef value, struct cn_buf *out);

#endif
