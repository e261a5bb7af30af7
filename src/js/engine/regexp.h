/* SPDX-License-Identifier: Apache-2.0 */
/* js/engine/regexp.h - a match of a regular expression can be given up.
 *
 * The engine compiles a regular expression to a function of its own that looks at nothing until it
 * returns: / +$/ on a megabyte of blanks takes hours. Here a thread that is in such a function is
 * made to leave it, by a signal:
 *
 *     matching ----> left, as if the code did ----> the turn is told ----> no match: the turn ends
 *                    not know the pattern           to end               before it goes on
 *     |              the function's own way out,
 *     |              "ask the interpreter"
 *     in the interpreter: it may neither begin
 *     elsewhere nor enter a group
 *
 * The engine then calls Yarr::interpret(), which is ours.
 *
 * X1  A match is given up only in a turn that is to end, and what it says is seen by nobody: the
 *     engine is told to end the turn, and has been heard to take note, before the match returns.
 * X2  A function is left by its own code (the exit that follows its first test), from a place
 *     behind its beginning, with the registers that it saved. It is known to be the function of a
 *     regular expression since the VM says which one runs, and that one that the function is its
 *     code.
 * X3  A place that is not known for certain is not left; the watchdog asks again.
 * X4  In the interpreter, which has patterns with lookbehinds and some with references to groups,
 *     nothing is left: it is told to begin nowhere else, and that the groups that it may enter are
 *     used up. What it does from one beginning without a group goes on.
 *
 * For x86-64. Without it a match goes on until it ends or the server starts itself anew (D4 of
 * worker/watchdog.h). Not interrupted are patterns inside of optimized code: vm.c turns that off.
 *
 * Threads: give_up on any; the rest on the thread that matches. */
#ifndef CN_JS_ENGINE_REGEXP_H
#define CN_JS_ENGINE_REGEXP_H
#include <stdint.h>
#include <sys/types.h>

#include "js/engine/patch.h"

extern const struct cn_js_patch cn_js_patch_regexp;

/* Once, before any VM. `is_over` says of the thread's turn whether it is to end; `end` tells the
 * engine too. */
void cn_js_engine_regexp_setup(bool (*is_over)(uint64_t now_mono_ns),
                               bool (*end)(uint64_t now_mono_ns));
/* Asks the thread, which may have ended, to give up the match that it is in, if it is in one. */
void cn_js_engine_give_up_match(pid_t thread);
/* Matches that were given up since the process started. */
unsigned cn_js_engine_matches_given_up(void);

#endif
