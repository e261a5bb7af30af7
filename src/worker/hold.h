/* SPDX-License-Identifier: Apache-2.0 */
/* worker/hold.h - `cairn dev`: a request waits until what was saved before it answers it.
 *
 *     request ──► ticket, ask() ──► the owner compares the files; builds and deploys if one changed
 *                                     │
 *     routed, or the error page ◄── cn_lane_release(ticket, problem) on every lane
 *
 * K1  A request that comes after a file was saved is answered by code that was built from that
 *     save or from a later one. So a ticket is drawn before the owner looks at the files, and the
 *     owner lets go what was drawn before a look that has found every file as the running code
 *     was built from it. No request passes by another way.
 * K2  If that build has failed, or the code does not start, the answer is the problem: no older
 *     code answers in its place.
 * K3  Nothing is held for longer than CN_HOLD_MS_MAX and a tick of the house: then the answer is
 *     503, which is no older code either.
 * K4  A lane that drains or stops holds nothing.
 *
 * Threads:   the lane's; struct cn_hold is shared by all lanes and the owner.
 * Ownership: the request is the lane's from cn_hold_request() until it is routed or answered. */
#ifndef CN_WORKER_HOLD_H
#define CN_WORKER_HOLD_H
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct cn_http_request;
struct cn_lane;

#define CN_HOLD_MS_MAX 60000

/* Of whoever releases; lives longer than the lanes. */
struct cn_hold {
    _Atomic uint64_t drawn; /* the last ticket */
    /* On a lane's thread: there are requests to be released. Must not wait. */
    void (*ask)(struct cn_hold *hold);
};

/* Holds the request, if the lane holds requests. False: it is to be routed. */
bool cn_hold_request(struct cn_lane *lane, struct cn_http_request *http);
/* Routes those with a ticket up to `last`; with a problem (its first line is the title) they get
 * that instead. */
void cn_hold_release(struct cn_lane *lane, uint64_t last, const char *problem);
/* K3; once a second. */
void cn_hold_sweep(struct cn_lane *lane);
/* K4 */
void cn_hold_end(struct cn_lane *lane);

#endif
