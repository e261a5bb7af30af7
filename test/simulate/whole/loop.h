/* SPDX-License-Identifier: Apache-2.0 */
/* test/simulate/whole/loop.h - what of libuv the code under test uses, on fibers: timers, asyncs,
 * idle handles, work of the pool, semaphores. Connections are in net.c. */
#ifndef CN_TEST_WHOLE_LOOP_H
#define CN_TEST_WHOLE_LOOP_H
#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

/* Something that the loop is to do at its next round, once. */
struct pending {
    struct pending *next;
    bool queued;
    void (*run)(struct pending *pending);
};

struct loop {
    uv_loop_t *uv;
    uint64_t time_ms;
    uint64_t starts;      /* of timers, so that equal ones keep their order */
    uv_handle_t *handles; /* all that are not closed, by u.reserved[0], [1] */
    uv_handle_t *closing;
    struct pending *pending, **pending_end;
    unsigned others; /* streams, work: what else keeps it going */
};

struct loop *loop_of(uv_loop_t *loop);
void loop_wake(struct loop *loop);
void loop_pend(struct loop *loop, struct pending *pending);

#endif
