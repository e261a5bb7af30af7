/* SPDX-License-Identifier: Apache-2.0 */
/* The engine's sampling profiler says which function a VM was in, and can be started again. */
#include "js/profile.h"

#include <string.h>

#include "base/err.h"
#include "base/json.h"
#include "test/lib/js_rig.h"

/* How many of the samples were in the function. */
static size_t count_in(const struct cn_json *traces, const char *name)
{
    size_t count = 0;
    for (const struct cn_json *each = traces->first; each; each = each->next) {
        const struct cn_json *top = cn_json_find(each, "frames")->first;
        count += top && strcmp(cn_json_text(top, "name"), name) == 0;
    }
    return count;
}

TEST(js_profile, says_where_the_time_went)
{
    struct js_rig rig;
    struct cn_err err = {0};
    js_rig_open(&rig);
    for (unsigned round = 0; round < 2; round++) {
        struct cn_buf text = {0};
        CHECK(cn_js_profile_start(rig.vm));
        size_t found = 0;
        for (unsigned i = 0; i < 100 && found == 0; i++) { /* until one falls into it */
            js_rig_run(&rig, "function busy(n){let x=0;for(let i=0;i<n;i++)x+=i%7;return x}"
                             "busy(2e6)");
            cn_buf_clear(&text);
            cn_js_profile_take(rig.vm, &text);
            struct cn_json *json = cn_json_parse((const char *)text.data, text.size, &err);
            CHECK(json);
            found = count_in(cn_json_find(json, "traces"), "busy");
            cn_json_free(json);
        }
        CHECK(found > 0);
        cn_js_profile_stop(rig.vm);
        cn_buf_fini(&text);
    }
    js_rig_close(&rig);
}
