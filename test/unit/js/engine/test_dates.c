/* SPDX-License-Identifier: Apache-2.0 */
/* Dates are those of UTC whatever the machine's zone is (D1), with the patch and without. */
#include "js/engine/dates.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/rand.h"
#include "test/lib/js_rig.h"

/* What the engine calls at every entry: ours, by the library's name. */
void engine_forgets(void *cache) __asm__("_ZN3JSC9DateCache20resetIfNecessarySlowEv");

static void *forgotten;

static void librarys(void *cache)
{
    forgotten = cache;
}

/* P1 of patch.h: only what is off lets the library forget. */
TEST(js_dates, off_the_library_forgets_and_on_nobody_does)
{
    int cache;
    cn_js_patch_dates.found((void *const[]){(void *)librarys});
    engine_forgets(&cache);
    CHECK(forgotten == &cache);
    forgotten = NULL;
    cn_js_patch_dates.use(true);
    engine_forgets(&cache);
    CHECK(!forgotten);
    cn_js_patch_dates.use(false);
    engine_forgets(&cache);
    CHECK(forgotten == &cache);
}

/* Every part of a date, as the script sees it and as the C library does. */
static void compare(struct js_rig *rig, int64_t time_ms)
{
    char source[512], want[128];
    time_t seconds = (time_t)(time_ms / 1000);
    struct tm tm;
    CHECK(gmtime_r(&seconds, &tm));
    snprintf(source, sizeof(source),
             "(() => { const d = new Date(%lld); return [d.getFullYear(), d.getMonth(), "
             "d.getDate(), d.getHours(), d.getMinutes(), d.getSeconds(), d.getDay(), "
             "d.getTimezoneOffset()].join(); })()",
             (long long)time_ms);
    snprintf(want, sizeof(want), "%d,%d,%d,%d,%d,%d,%d,0", tm.tm_year + 1900, tm.tm_mon, tm.tm_mday,
             tm.tm_hour, tm.tm_min, tm.tm_sec, tm.tm_wday);
    CHECK_STR(want, js_rig_run(rig, source));
}

static void compare_many(struct js_rig *rig)
{
    /* Ends of years, of leap days, and hours that do not exist or exist twice in New York. */
    static const int64_t edges[] = {0,
                                    951782400000,
                                    951868799000,
                                    1710054000000,
                                    1710057600000,
                                    1730610000000,
                                    1730613600000,
                                    4102444799000};
    struct cn_rand rand;
    cn_rand_init(&rand, test_seed());
    for (size_t i = 0; i < sizeof(edges) / sizeof(edges[0]); i++)
        compare(rig, edges[i]);
    for (int i = 0; i < 200; i++)
        compare(rig, (int64_t)cn_rand_below(&rand, 4102444800) * 1000);
}

static const struct cn_js_patch_status *status(void)
{
    size_t count;
    const struct cn_js_patch_status *all = cn_js_engine_patches(&count);
    for (size_t i = 0; i < count; i++)
        if (strcmp(all[i].patch->name, "dates") == 0)
            return &all[i];
    return NULL;
}

static void in_new_york(void *data)
{
    struct js_rig rig;
    setenv("TZ", "America/New_York", 1);
    tzset();
    setenv("CAIRN_ENGINE_PATCHES", data ? "on" : "-dates", 1);
    js_rig_open(&rig);
    if (!data && status()->on) {
        printf("the patch is on although it was switched off");
        return;
    }
    compare_many(&rig);
    js_rig_close(&rig);
    printf("%s %s", getenv("TZ"), status()->on ? "on" : "off");
}

TEST(js_dates, D1_a_machine_elsewhere_has_scripts_in_UTC)
{
    static int with;
    CHECK(strstr(js_rig_child(in_new_york, &with), "UTC o")); /* on, if the library is known */
    CHECK_STR("UTC off", js_rig_child(in_new_york, NULL));
}

/* Whether the engine calls what stands in the place of its function is part of the proof. */
TEST(js_dates, is_proven_by_what_the_engine_calls)
{
    struct js_rig rig;
    js_rig_open(&rig);
    if (!status()->on)
        test_skip("the patch is off here");
    cn_js_patch_dates.use(true);
    const char *wrong = cn_js_patch_dates.prove(rig.vm);
    CHECK(!wrong);
    /* Proven, it counts no more: the next proof has to be begun by use(). */
    wrong = cn_js_patch_dates.prove(rig.vm);
    CHECK(wrong && strstr(wrong, "does not call"));
    compare_many(&rig);
    js_rig_close(&rig);
}
