/* SPDX-License-Identifier: Apache-2.0 */
#include "bindings/all.h"

#include "base/assert.h"
#include "border/all.h"
#include "js/engine/patch.h"
#include "js/vm.h"
#include "service/def.h"
#include "worker/jsclass.h"
#include "worker/runtime.h"

void cn_bindings_install(struct cn_runtime *runtime, JSObjectRef native)
{
    for (size_t i = 0; i < CN_ARRAY_COUNT(tables); i++)
        cn_js_native_install(runtime->context, native, tables[i]);
    for (size_t i = 0; cn_service_table[i]; i++) {
        const struct cn_js_natives *natives = cn_service_table[i]->natives;
        for (size_t k = 0; natives && natives->tables[k]; k++)
            cn_js_native_install(runtime->context, native, natives->tables[k]);
    }
}

const struct cn_guest cn_javascript = {
    .setup = cn_js_setup,
    .describe = cn_js_engine_describe,
    .install = cn_bindings_install,
    .find_class = cn_jsclass_find,
};
