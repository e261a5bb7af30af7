/* SPDX-License-Identifier: Apache-2.0 */
/* worker/allowance.h - what an invocation may do only so many times: write data points (Analytics
 * Engine), and open connections (subrequests).
 *
 * Of code that has waited it is not known whose it is, so the invocations of a worker on a lane,
 * and the calls of an object, that are under way share what they may; one that is alone has exactly
 * its own.
 *
 * Threads: the lane's. Embedded in struct cn_instance and struct cn_jsobject. */
#ifndef CN_WORKER_ALLOWANCE_H
#define CN_WORKER_ALLOWANCE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cn_instance;
struct cn_script;

#define CN_EVENT_POINTS_MAX 250u

struct cn_allowance {
    uint64_t points_left, subrequests_left;
};

/* One more begins, and `under_way` run with it. */
void cn_allowance_add(struct cn_allowance *allowance, const struct cn_script *script,
                      size_t under_way);
/* Of the object or worker whose code runs now. */
struct cn_allowance *cn_allowance_current(struct cn_instance *instance);
/* fetch(), connect() or new WebSocket(): false if that was too often. */
bool cn_allowance_take_subrequest(struct cn_instance *instance);

#endif
