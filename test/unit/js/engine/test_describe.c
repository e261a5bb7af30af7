/* SPDX-License-Identifier: Apache-2.0 */
/* What `cairn version --engine` says: every patch, how it stands and why (P3 of patch.h). Each case
 * is a process of its own. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "js/engine/patch.h"
#include "test/lib/js_rig.h"

static void describe(void *data)
{
    struct cn_err err = {0};
    setenv("CAIRN_ENGINE_PATCHES", data, 1);
    int rc = cn_js_engine_describe(&err);
    if (rc < 0)
        printf("%d %s", rc, err.text);
}

static unsigned count(const char *text, const char *part)
{
    unsigned found = 0;
    for (const char *at = text; (at = strstr(at, part)); at += strlen(part))
        found++;
    return found;
}

TEST(js_describe, P3_every_patch_is_told_with_what_it_means)
{
    size_t patches;
    const struct cn_js_patch_status *all = cn_js_engine_patches(&patches);
    CHECK(patches >= 9);
    const char *said = js_rig_child(describe, "on");
    CHECK(strncmp(said, "JavaScriptCore ", 15) == 0);
    for (size_t i = 0; i < patches; i++) {
        char head[64];
        snprintf(head, sizeof(head), "\n\n%s: o", all[i].patch->name);
        if (i == 0)
            snprintf(head, sizeof(head), "\n%s: o", all[i].patch->name);
        CHECK(strstr(said, head));
        CHECK(strstr(said, all[i].patch->replaces) && strstr(said, all[i].patch->why));
        CHECK(strstr(said, all[i].patch->gain) && strstr(said, all[i].patch->without));
    }
    CHECK_INT(patches, count(said, "\n  without   "));
}

TEST(js_describe, P3_what_is_off_says_why)
{
    const char *said = js_rig_child(describe, "-lock,-names");
    CHECK(strstr(said, "\nlock: off, by CAIRN_ENGINE_PATCHES\n"));
    CHECK(strstr(said, "\nnames: off, by CAIRN_ENGINE_PATCHES\n"));
    CHECK_INT(2, count(said, "off, by CAIRN_ENGINE_PATCHES"));
    said = js_rig_child(describe, "off");
    size_t patches;
    (void)cn_js_engine_patches(&patches);
    CHECK_INT(patches, count(said, ": off, by CAIRN_ENGINE_PATCHES\n"));
    CHECK_INT(0, count(said, ": on\n"));
}

/* P5 */
TEST(js_describe, P5_a_patch_goes_with_the_one_that_it_needs)
{
    const char *said = js_rig_child(describe, "-stop");
    CHECK(strstr(said, "\nstop: off, by CAIRN_ENGINE_PATCHES\n"));
    CHECK(strstr(said, "\nclock: off, it needs stop\n"));
    said = js_rig_child(describe, "clock");
    CHECK(strstr(said, "\nclock: off, it needs stop\n"));
}

/* Whatever stands in the environment: it is refused with a sentence, and nothing is described. */
TEST(js_describe, a_switch_that_nobody_knows_is_refused)
{
    static const char *const wrong[] = {"lok",    "lock,",   ",lock",      "-lock,clock",
                                        "lock,-", "-",       "lock clock", "OFF",
                                        "off,on", "-lock,,", "on,lock",    "--lock"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        const char *said = js_rig_child(describe, (void *)wrong[i]);
        if (strcmp(wrong[i], "lock,") == 0) { /* a comma at the end is forgiven */
            CHECK(strstr(said, "JavaScriptCore"));
            continue;
        }
        char head[64];
        snprintf(head, sizeof(head), "%d CAIRN_ENGINE_PATCHES: \"", CN_EINVALID);
        if (strncmp(said, head, strlen(head)) != 0)
            test_fail(__FILE__, __LINE__, "%s: %.200s", wrong[i], said);
    }
}
