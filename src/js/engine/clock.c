/* SPDX-License-Identifier: Apache-2.0 */
#include "js/engine/clock.h"

#include <math.h>

#include "base/clock.h"

static bool (*is_overdue)(uint64_t now_mono_ns);

void cn_js_engine_clock_setup(bool (*overdue)(uint64_t now_mono_ns))
{
    is_overdue = overdue;
}

/* Takes the place of the library's WTF::CPUTime::forCurrentThread(). */
double cn_js_engine_cpu_seconds(void) __asm__("_ZN3WTF7CPUTime16forCurrentThreadEv");
double cn_js_engine_cpu_seconds(void)
{
    uint64_t now = cn_clock_mono_ns(cn_clock_system());
    return is_overdue && is_overdue(now) ? INFINITY : (double)now * 1e-9;
}
