/* SPDX-License-Identifier: Apache-2.0 */
#include "bindings/all.h"

#include "base/assert.h"
#include "js/native.h"

extern const struct cn_js_native cn_native_analytics[];
extern const struct cn_js_native cn_native_assets[];
extern const struct cn_js_native cn_native_cache[];
extern const struct cn_js_native cn_native_compression[];
extern const struct cn_js_native cn_native_node_zlib[];
extern const struct cn_js_native cn_native_console[];
extern const struct cn_js_native cn_native_dispatch[];
extern const struct cn_js_native cn_native_timers[];
extern const struct cn_js_native cn_native_fetch[];
extern const struct cn_js_native cn_native_encoding[];
extern const struct cn_js_native cn_native_html[];
extern const struct cn_js_native cn_native_http[];
extern const struct cn_js_native cn_native_d1[];
extern const struct cn_js_native cn_native_kv[];
extern const struct cn_js_native cn_native_multipart[];
extern const struct cn_js_native cn_native_node[];
extern const struct cn_js_native cn_native_node_crypto[];
extern const struct cn_js_native cn_native_node_dh[];
extern const struct cn_js_native cn_native_node_keys[];
extern const struct cn_js_native cn_native_node_x509[];
extern const struct cn_js_native cn_native_localcall[];
extern const struct cn_js_native cn_native_object[];
extern const struct cn_js_native cn_native_queue[];
extern const struct cn_js_native cn_native_r2[];
extern const struct cn_js_native cn_native_r2_body[];
extern const struct cn_js_native cn_native_r2_pipe[];
extern const struct cn_js_native cn_native_ratelimit[];
extern const struct cn_js_native cn_native_restore[];
extern const struct cn_js_native cn_native_storage[];
extern const struct cn_js_native cn_native_trace[];
extern const struct cn_js_native cn_native_turn[];
extern const struct cn_js_native cn_native_url[];
extern const struct cn_js_native cn_native_webcrypto[];
extern const struct cn_js_native cn_native_websocket[];
extern const struct cn_js_native cn_native_sockets[];

/* One line each, so that changes meet rarely. */
/* clang-format off */
static const struct cn_js_native *const tables[] = {
    cn_native_analytics,
    cn_native_assets,
    cn_native_cache,
    cn_native_compression,
    cn_native_node_zlib,
    cn_native_console,
    cn_native_d1,
    cn_native_dispatch,
    cn_native_encoding,
    cn_native_fetch,
    cn_native_html,
    cn_native_http,
    cn_native_kv,
    cn_native_multipart,
    cn_native_node,
    cn_native_node_crypto,
    cn_native_node_dh,
    cn_native_node_keys,
    cn_native_node_x509,
    cn_native_localcall,
    cn_native_object,
    cn_native_queue,
    cn_native_r2,
    cn_native_r2_body,
    cn_native_r2_pipe,
    cn_native_ratelimit,
    cn_native_restore,
    cn_native_sockets,
    cn_native_storage,
    cn_native_timers,
    cn_native_trace,
    cn_native_turn,
    cn_native_url,
    cn_native_webcrypto,
    cn_native_websocket,
};
/* clang-format on */

void cn_bindings_install(struct cn_runtime *runtime, JSObjectRef native)
{
    for (size_t i = 0; i < CN_ARRAY_COUNT(tables); i++)
        cn_js_native_install(runtime->context, native, tables[i]);
}
