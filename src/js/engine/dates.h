/* SPDX-License-Identifier: Apache-2.0 */
/* js/engine/dates.h - what the engine knows of dates is kept from one entry to the next.
 *
 * Whenever a script is entered, the engine forgets what it has computed of dates, in case the time
 * zone was changed since: 380 instructions, six times in a request to an object, 4 % of it. Scripts
 * have UTC, always (vm.c sets it before the engine starts), so there is nothing to forget.
 *
 * D1  The time zone of the process is UTC from before the first VM until its end.
 *
 * Threads: any, after the setup. */
#ifndef CN_JS_ENGINE_DATES_H
#define CN_JS_ENGINE_DATES_H
#include "js/engine/patch.h"

extern const struct cn_js_patch cn_js_patch_dates;

#endif
