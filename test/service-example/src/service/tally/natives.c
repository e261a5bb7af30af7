/* SPDX-License-Identifier: Apache-2.0 */
/* service/tally/natives.c - Tally.add() and get() of prelude/workers/service/tally.js. */
#include "border/tally/natives.h"
#include "bindings/service_call.h"
#include "service/tally/tally.h"

static JSValueRef convert(JSContextRef ctx, struct cn_service_call *call)
{
    return JSValueMakeNumber(ctx, (double)((struct cn_tally_call *)call)->count);
}

static JSValueRef native_tally(CN_JS_NATIVE_ARGS)
{
    struct cn_namespace *ns = cn_jsservice_namespace(ctx, cn_js_arg(0), "$tally/", exception);
    if (!ns)
        return JSValueMakeUndefined(ctx);
    bool adds = !JSValueIsUndefined(ctx, cn_js_arg(1));
    struct cn_tally_call *call = cn_tally_call_new(ns, adds ? CN_TALLY_ADD : CN_TALLY_GET,
                                                   cn_js_to_int64(ctx, cn_js_arg(1)));
    cn_jsservice_send(ctx, &call->base, cn_js_arg(2), convert);
    return JSValueMakeUndefined(ctx);
}
