/* SPDX-License-Identifier: Apache-2.0 */
/* test/simulate/whole/machine.h - the machines that nodes run on, in one thread.
 *
 * A *process* is a node's; a *fiber* is a thread of it, with a stack of its own. pthread_*, clocks
 * and sleeps of the code under test are linked to the functions of this file (rules.mk, --wrap), so
 * that the seed decides which fiber runs next, how long a fiber is kept from running, and which of
 * several waiters is woken. Time stands still while any fiber can run, and then jumps to the next
 * moment at which something happens.
 *
 * A fiber gives way where threads meet: at locks, conditions, mail. So what is found are orders of
 * such steps, and no torn reads of memory that is shared without a lock: those are for
 * ThreadSanitizer (make san SAN=thread).
 *
 * Each process has a clock of its own: it begins anywhere and goes at another rate than true time.
 * One that is killed never runs again; what its fibers have locked that outlives it is released. */
#ifndef CN_TEST_WHOLE_MACHINE_H
#define CN_TEST_WHOLE_MACHINE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fiber;
struct loop; /* loop.c */
enum { LOOPS_MAX = 4 };
struct process {
    int index; /* of its node */
    bool alive;
    int64_t frozen_ns; /* until then none of its fibers runs */
    int32_t rate;      /* of its clock, per mille */
    int64_t offset_ns;
    int64_t wall_ns; /* what its wall clock is off by */
    struct loop *loops[LOOPS_MAX];
    unsigned loop_count;
    unsigned fiber_count;
};

extern int64_t now_ns;         /* true time */
extern unsigned machine_yield; /* this seed's: a fiber gives way at one of so many steps */
extern unsigned machine_late;  /* and is kept from running for a while at one of so many */
extern uint64_t machine_switches;

void machine_init(void); /* once, before seeds */
void process_start(struct process *process, void (*main)(void *data), void *data);
void process_kill(struct process *process);
/* NULL: the world itself is running. */
struct process *process_current(void);
int64_t process_clock_ns(const struct process *process);
int64_t process_true_ns(const struct process *process, int64_t clock_ns);

/* By a fiber. */
void fiber_sleep_ns(int64_t ns);
void fiber_step(void); /* may give way */
/* Waits until somebody calls fiber_wake() with this address; or until then, true time. False: the
 * time is over. */
bool fiber_wait(const void *what, int64_t until_ns);
void fiber_wake(const void *what, bool all);
struct fiber *fiber_spawn(struct process *process, void *(*main)(void *data), void *data);

/* Runs fibers until none can; the earliest time at which one would, INT64_MAX: never. */
int64_t machine_run(void);
bool machine_has_process(void);

#endif
