/* SPDX-License-Identifier: Apache-2.0 */
/* worker/watchdog.h - a thread outside the lanes that sees what they cannot see of themselves.
 *
 * Many times a second it reads how much memory the process has (base/account.h) and which turn
 * each lane runs, and for how long.
 *
 *     a turn   runs ──► overdue ──► stuck
 *              │        the engine was told to end it and has not: it is inside a function
 *              │        that looks at nothing (a sort, say); a line names it
 *              └► ended by the engine, at its next look (every 10 ms)
 *
 * D1  It only reads what lanes publish, sets flags and wakes loops: a lane that hangs does not
 *     hang it.
 * D2  A level of memory pressure (base/account.h, A2) is passed to every lane at once, and
 *     again every RELIEF_MS while it lasts.
 * D3  Past the limit the turn that has grown most is ended, and no other. One that has grown by
 *     little is not: it would pay for what the turn before it has left, which is collected soon.
 *     Without the engine's patch `alloc` a heap's growth is not known: then it is the turn since
 *     whose beginning the process has grown most.
 * D4  A turn is stuck when it has used `stuck_ms` of CPU time beyond what ends it. Then
 *     `on_stuck` is called, once: the server restarts itself (server/serve.c) rather than hang.
 *     A match of a regular expression is no such call: the lane is asked to give it up
 *     (js/engine/regexp.h) at every look, as soon as its turn is overdue.
 * D5  After cn_watchdog_end_by() the process ends by then if a turn still runs, and half a
 *     minute later if lanes wait for something else.
 *
 * D6  A function of a module (module/crash.h) that has not returned for 3 s is told in a line that
 *     names the module and the class, and every 30 s again. Nothing can end it.
 *
 * Threads:   start and stop on the owner's; the others on any.
 * Ownership: struct cn_server. */
#ifndef CN_WORKER_WATCHDOG_H
#define CN_WORKER_WATCHDOG_H
#include <stdint.h>

#include "base/err.h"
#include "js/vm.h"

struct cn_lane;
struct cn_watchdog;

struct cn_watchdog_options {
    struct cn_lane *lanes; /* borrowed */
    unsigned lane_count;
    unsigned stuck_ms; /* 0: 10 s */
    unsigned wall_ms;  /* a turn may last so long by the clock on the wall; 0: any time */
    /* On the watchdog's thread. */
    void (*on_stuck)(void *data);
    void *data;
};

/* NULL: there is no thread for it (W4 of base/loop.h). */
struct cn_watchdog *cn_watchdog_start(const struct cn_watchdog_options *options,
                                      struct cn_err *err);
void cn_watchdog_stop(struct cn_watchdog *watchdog);
/* Watches the turns of a lane that is on trial too (server.c, S2); NULL: there is none any more.
 * The lane is there for as long as it is watched; its thread may end before. */
void cn_watchdog_watch_trial(struct cn_watchdog *watchdog, struct cn_lane *lane);
/* Ends the turns that have lasted for `age_ms`, on every lane. */
void cn_watchdog_end_turns(struct cn_watchdog *watchdog, unsigned age_ms, enum cn_js_end why);
/* The process ends in `ms`, with a line that says so, unless it has ended before. */
void cn_watchdog_end_by(struct cn_watchdog *watchdog, unsigned ms);

#endif
