/* SPDX-License-Identifier: Apache-2.0 */
#include "js/profile.h"

#include <dlfcn.h>

#include "js/jsc.h"
#include "js/value.h"
#include "js/vm.h"

struct functions {
    bool (*enable)(JSContextGroupRef group);
    void (*disable)(JSContextGroupRef group);
    JSStringRef (*take)(JSContextGroupRef group);
};

static bool find(struct functions *functions)
{
    *(void **)&functions->enable = dlsym(RTLD_DEFAULT, "JSContextGroupEnableSamplingProfiler");
    *(void **)&functions->disable = dlsym(RTLD_DEFAULT, "JSContextGroupDisableSamplingProfiler");
    *(void **)&functions->take =
        dlsym(RTLD_DEFAULT, "JSContextGroupTakeSamplesFromSamplingProfiler");
    return functions->enable && functions->disable && functions->take;
}

bool cn_js_profile_start(struct cn_js_vm *vm)
{
    struct functions functions;
    return find(&functions) && functions.enable(vm->group);
}

void cn_js_profile_take(struct cn_js_vm *vm, struct cn_buf *json)
{
    struct functions functions;
    JSStringRef text = find(&functions) ? functions.take(vm->group) : NULL;
    if (!text)
        return;
    cn_js_append_string(text, json);
    JSStringRelease(text);
}

void cn_js_profile_stop(struct cn_js_vm *vm)
{
    struct functions functions;
    if (find(&functions))
        functions.disable(vm->group);
}
