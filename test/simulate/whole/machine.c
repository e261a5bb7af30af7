/* SPDX-License-Identifier: Apache-2.0 */
#include "test/simulate/whole/machine.h"

#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "base/loop.h"
#include "test/simulate/whole/loop.h"
#include "test/simulate/world.h"

enum { FIBERS = 256, STACK = 1 << 20, GUARD = 4096, TLS_MAX = 256 };

enum fiber_state { FIBER_FREE, FIBER_READY, FIBER_WAITING, FIBER_DONE };
struct fiber {
    enum fiber_state state;
    struct process *process;
    const void *waits; /* for what */
    int64_t until_ns;  /* INT64_MAX: for ever */
    bool timed_out;
    void *stack_at; /* where it goes on */
    void *(*main)(void *data);
    void *data;
    char mark; /* in place of cn_thread_mark in loops that it owns */
    uint8_t tls[TLS_MAX];
};

int64_t now_ns;
unsigned machine_yield, machine_late;
uint64_t machine_switches;
static struct fiber fibers[FIBERS];
static unsigned fiber_top; /* none is used from there on */
static uint8_t *stacks;
static struct fiber *current; /* NULL: the world */
static void *world_at;
static uint8_t *tls, tls_first[TLS_MAX];
static size_t tls_size;

/* --- switching -------------------------------------------------------------------------------- */

void fiber_switch(void **save, void *to);
#if defined(__x86_64__)
__asm__(".text\n"
        ".globl fiber_switch\n"
        ".type fiber_switch, @function\n"
        "fiber_switch:\n"
        "  push %rbp\n  push %rbx\n  push %r12\n  push %r13\n  push %r14\n  push %r15\n"
        "  mov %rsp, (%rdi)\n"
        "  mov %rsi, %rsp\n"
        "  pop %r15\n  pop %r14\n  pop %r13\n  pop %r12\n  pop %rbx\n  pop %rbp\n"
        "  ret\n");
enum { SAVED = 6 };
#elif defined(__aarch64__)
__asm__(".text\n"
        ".globl fiber_switch\n"
        ".type fiber_switch, @function\n"
        "fiber_switch:\n"
        "  sub sp, sp, #160\n"
        "  stp x19, x20, [sp]\n  stp x21, x22, [sp, #16]\n  stp x23, x24, [sp, #32]\n"
        "  stp x25, x26, [sp, #48]\n  stp x27, x28, [sp, #64]\n  stp x29, x30, [sp, #80]\n"
        "  stp d8, d9, [sp, #96]\n  stp d10, d11, [sp, #112]\n"
        "  stp d12, d13, [sp, #128]\n  stp d14, d15, [sp, #144]\n"
        "  mov x9, sp\n  str x9, [x0]\n  mov sp, x1\n"
        "  ldp x19, x20, [sp]\n  ldp x21, x22, [sp, #16]\n  ldp x23, x24, [sp, #32]\n"
        "  ldp x25, x26, [sp, #48]\n  ldp x27, x28, [sp, #64]\n  ldp x29, x30, [sp, #80]\n"
        "  ldp d8, d9, [sp, #96]\n  ldp d10, d11, [sp, #112]\n"
        "  ldp d12, d13, [sp, #128]\n  ldp d14, d15, [sp, #144]\n"
        "  add sp, sp, #160\n"
        "  ret\n");
#else
#error "fiber_switch() is written for x86-64 and for arm64"
#endif

/* Loops that a fiber owns say so by the address of cn_thread_mark, which all fibers share: while
 * another one runs they have its own mark instead. */
static void loops_park(struct fiber *fiber)
{
    for (unsigned i = 0; i < fiber->process->loop_count; i++) {
        uv_loop_t *loop = fiber->process->loops[i]->uv;
        if (loop->data == &cn_thread_mark)
            loop->data = &fiber->mark;
    }
}

static void loops_unpark(struct fiber *fiber)
{
    for (unsigned i = 0; i < fiber->process->loop_count; i++) {
        uv_loop_t *loop = fiber->process->loops[i]->uv;
        if (loop->data == &fiber->mark)
            loop->data = &cn_thread_mark;
    }
}

static void run(struct fiber *fiber)
{
    machine_switches++;
    current = fiber;
    memcpy(tls, fiber->tls, tls_size);
    loops_unpark(fiber);
    fiber_switch(&world_at, fiber->stack_at);
    if (fiber->process && fiber->process->alive)
        loops_park(fiber);
    memcpy(fiber->tls, tls, tls_size);
    memcpy(tls, tls_first, tls_size);
    current = NULL;
}

static void give_way(void)
{
    fiber_switch(&current->stack_at, world_at);
}

static void fiber_begin(void)
{
    (void)current->main(current->data);
    current->state = FIBER_DONE;
    current->process->fiber_count--;
    fiber_wake(current, true);
    give_way();
    abort();
}

struct fiber *fiber_spawn(struct process *process, void *(*main)(void *data), void *data)
{
    unsigned i = 0;
    while (i < FIBERS && fibers[i].state != FIBER_FREE)
        i++;
    if (i == FIBERS)
        fail("too many threads");
    if (i == FIBERS)
        abort();
    struct fiber *fiber = &fibers[i];
    uintptr_t *top = (uintptr_t *)(stacks + (size_t)(i + 1) * STACK);
    *fiber = (struct fiber){.state = FIBER_READY, .process = process, .main = main, .data = data};
    memcpy(fiber->tls, tls_first, tls_size);
    fiber_top = i + 1 > fiber_top ? i + 1 : fiber_top;
#if defined(__x86_64__)
    *--top = 0; /* where a caller would be: keeps the stack aligned */
    *--top = (uintptr_t)fiber_begin;
    for (int k = 0; k < SAVED; k++)
        *--top = 0;
#else
    top -= 20;
    memset(top, 0, 160);
    top[11] = (uintptr_t)fiber_begin;
#endif
    fiber->stack_at = top;
    process->fiber_count++;
    return fiber;
}

/* --- processes -------------------------------------------------------------------------------- */

struct first {
    void (*main)(void *data);
    void *data;
};

static void *first_main(void *data)
{
    struct first first = *(struct first *)data;
    free(data);
    first.main(first.data);
    return NULL;
}

void process_start(struct process *process, void (*main)(void *data), void *data)
{
    struct first *first = malloc(sizeof(*first));
    *first = (struct first){main, data};
    process->alive = true;
    (void)fiber_spawn(process, first_main, first);
}

struct process *process_current(void)
{
    return current ? current->process : NULL;
}

int64_t process_clock_ns(const struct process *process)
{
    return process ? process->offset_ns + now_ns / 1000 * process->rate : now_ns;
}

int64_t process_true_ns(const struct process *process, int64_t clock_ns)
{
    return process ? (clock_ns - process->offset_ns) / process->rate * 1000 + 1000 : clock_ns;
}

/* --- waiting ---------------------------------------------------------------------------------- */

static void *held[1024]; /* locks that are locked */
static unsigned held_count;

bool fiber_wait(const void *what, int64_t until_ns)
{
    current->waits = what;
    current->until_ns = until_ns;
    current->timed_out = false;
    current->state = FIBER_WAITING;
    give_way();
    return !current->timed_out;
}

void fiber_wake(const void *what, bool all)
{
    struct fiber *waiting[FIBERS];
    unsigned count = 0;
    for (unsigned i = 0; i < fiber_top; i++)
        if (fibers[i].state == FIBER_WAITING && fibers[i].waits == what)
            waiting[count++] = &fibers[i];
    if (!count)
        return;
    unsigned only = all ? 0 : rnd(count);
    for (unsigned i = 0; i < count; i++)
        if (all || i == only)
            waiting[i]->state = FIBER_READY;
}

void fiber_sleep_ns(int64_t ns)
{
    (void)fiber_wait(&current->until_ns, now_ns + ns);
}

void fiber_step(void)
{
    if (!current || !machine_yield || !one_in(machine_yield))
        return;
    if (machine_late && !calm && one_in(machine_late))
        fiber_sleep_ns((int64_t)rnd(one_in(10) ? 300000 : 8000) * 1000);
    else
        give_way(); /* READY */
}

int64_t machine_run(void)
{
    for (;;) {
        struct fiber *ready[FIBERS];
        unsigned count = 0;
        int64_t next = INT64_MAX;
        for (unsigned i = 0; i < fiber_top; i++) {
            struct fiber *fiber = &fibers[i];
            if (fiber->state != FIBER_READY && fiber->state != FIBER_WAITING)
                continue;
            int64_t at = fiber->state == FIBER_READY ? now_ns : fiber->until_ns;
            if (at < fiber->process->frozen_ns)
                at = fiber->process->frozen_ns;
            if (at > now_ns) {
                next = at < next ? at : next;
                continue;
            }
            if (fiber->state == FIBER_WAITING)
                fiber->timed_out = true;
            ready[count++] = fiber;
        }
        if (!count || failed)
            return next;
        struct fiber *fiber = ready[count > 1 ? rnd(count) : 0];
        fiber->state = FIBER_READY;
        run(fiber);
    }
}

/* --- locks ------------------------------------------------------------------------------------ */

/* In the memory of a pthread_mutex_t, all zeros when it is made. */
struct lock {
    struct fiber *owner;
    unsigned depth, waiters;
    bool recursive;
};
static struct fiber world_fiber; /* stands for the world, which never waits */
_Static_assert(sizeof(struct lock) <= sizeof(pthread_mutex_t), "it has room");

static struct fiber *self(void)
{
    return current ? current : &world_fiber;
}

static void hold(void *what)
{
    if (held_count == sizeof(held) / sizeof(held[0]))
        abort();
    held[held_count++] = what;
}

static void let_go(void *what)
{
    for (unsigned i = held_count; i-- > 0;)
        if (held[i] == what) {
            held[i] = held[--held_count];
            return;
        }
}

int __wrap_pthread_mutex_init(pthread_mutex_t *mutex, const pthread_mutexattr_t *attr);
int __wrap_pthread_mutex_destroy(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_trylock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_unlock(pthread_mutex_t *mutex);
int __wrap_pthread_cond_init(pthread_cond_t *cond, const pthread_condattr_t *attr);
int __wrap_pthread_cond_destroy(pthread_cond_t *cond);
int __wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex);
int __wrap_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex,
                                  const struct timespec *until);
int __wrap_pthread_cond_signal(pthread_cond_t *cond);
int __wrap_pthread_cond_broadcast(pthread_cond_t *cond);
int __wrap_pthread_rwlock_init(pthread_rwlock_t *lock, const pthread_rwlockattr_t *attr);
int __wrap_pthread_rwlock_destroy(pthread_rwlock_t *lock);
int __wrap_pthread_rwlock_rdlock(pthread_rwlock_t *lock);
int __wrap_pthread_rwlock_wrlock(pthread_rwlock_t *lock);
int __wrap_pthread_rwlock_unlock(pthread_rwlock_t *lock);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*main)(void *),
                          void *data);
int __wrap_pthread_join(pthread_t thread, void **result);
int __wrap_pthread_once(pthread_once_t *once, void (*function)(void));
int __wrap_pthread_setname_np(pthread_t thread, const char *name);
int __wrap_clock_gettime(clockid_t clock, struct timespec *time);
int __wrap_nanosleep(const struct timespec *time, struct timespec *left);
ssize_t __wrap_getrandom(void *bytes, size_t size, unsigned flags);

int __wrap_pthread_mutex_init(pthread_mutex_t *mutex, const pthread_mutexattr_t *attr)
{
    struct lock *lock = (struct lock *)mutex;
    int type = PTHREAD_MUTEX_NORMAL;
    if (attr)
        pthread_mutexattr_gettype(attr, &type);
    *lock = (struct lock){.recursive = type == PTHREAD_MUTEX_RECURSIVE};
    return 0;
}

int __wrap_pthread_mutex_destroy(pthread_mutex_t *mutex)
{
    if (((struct lock *)mutex)->owner)
        abort();
    return 0;
}

int __wrap_pthread_mutex_trylock(pthread_mutex_t *mutex)
{
    struct lock *lock = (struct lock *)mutex;
    if (lock->owner && !(lock->recursive && lock->owner == self()))
        return EBUSY;
    if (!lock->owner)
        hold(lock);
    lock->owner = self();
    lock->depth++;
    return 0;
}

int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex)
{
    struct lock *lock = (struct lock *)mutex;
    fiber_step();
    while (__wrap_pthread_mutex_trylock(mutex) != 0) {
        if (!current || lock->owner == current) {
            fprintf(stderr, "a lock is waited for that is held by %s\n",
                    current ? "who waits" : "a thread, by the world");
            abort();
        }
        lock->waiters++;
        (void)fiber_wait(lock, INT64_MAX);
        lock->waiters--;
    }
    return 0;
}

static void unlock(struct lock *lock)
{
    if (lock->owner != self())
        abort();
    if (--lock->depth)
        return;
    lock->owner = NULL;
    let_go(lock);
    if (lock->waiters)
        fiber_wake(lock, false);
}

int __wrap_pthread_mutex_unlock(pthread_mutex_t *mutex)
{
    unlock((struct lock *)mutex);
    fiber_step();
    return 0;
}

int __wrap_pthread_cond_init(pthread_cond_t *cond, const pthread_condattr_t *attr)
{
    (void)attr;
    memset(cond, 0, sizeof(*cond));
    return 0;
}

int __wrap_pthread_cond_destroy(pthread_cond_t *cond)
{
    (void)cond;
    return 0;
}

static bool cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex, int64_t until_ns)
{
    if (!current)
        abort();
    unlock((struct lock *)mutex);
    bool woken = fiber_wait(cond, until_ns);
    (void)__wrap_pthread_mutex_lock(mutex);
    return woken;
}

int __wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex)
{
    /* Sometimes it wakes for nothing. */
    bool woken =
        cond_wait(cond, mutex, calm || !one_in(50) ? INT64_MAX : now_ns + (int64_t)rnd(20000000));
    (void)woken;
    return 0;
}

int __wrap_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex,
                                  const struct timespec *until)
{
    int64_t at = process_true_ns(process_current(), until->tv_sec * 1000000000ll + until->tv_nsec);
    return cond_wait(cond, mutex, at) ? 0 : ETIMEDOUT;
}

int __wrap_pthread_cond_signal(pthread_cond_t *cond)
{
    fiber_wake(cond, false);
    fiber_step();
    return 0;
}

int __wrap_pthread_cond_broadcast(pthread_cond_t *cond)
{
    fiber_wake(cond, true);
    fiber_step();
    return 0;
}

/* In the memory of a pthread_rwlock_t. */
struct rwlock {
    struct fiber *writer;
    unsigned readers, waiters;
};

int __wrap_pthread_rwlock_init(pthread_rwlock_t *lock, const pthread_rwlockattr_t *attr)
{
    (void)attr;
    memset(lock, 0, sizeof(*lock));
    return 0;
}

int __wrap_pthread_rwlock_destroy(pthread_rwlock_t *lock)
{
    (void)lock;
    return 0;
}

int __wrap_pthread_rwlock_rdlock(pthread_rwlock_t *rwlock)
{
    struct rwlock *lock = (struct rwlock *)rwlock;
    fiber_step();
    while (lock->writer) {
        lock->waiters++;
        (void)fiber_wait(lock, INT64_MAX);
        lock->waiters--;
    }
    lock->readers++;
    return 0;
}

int __wrap_pthread_rwlock_wrlock(pthread_rwlock_t *rwlock)
{
    struct rwlock *lock = (struct rwlock *)rwlock;
    fiber_step();
    while (lock->writer || lock->readers) {
        lock->waiters++;
        (void)fiber_wait(lock, INT64_MAX);
        lock->waiters--;
    }
    lock->writer = self();
    return 0;
}

int __wrap_pthread_rwlock_unlock(pthread_rwlock_t *rwlock)
{
    struct rwlock *lock = (struct rwlock *)rwlock;
    if (lock->writer)
        lock->writer = NULL;
    else
        lock->readers--;
    if (lock->waiters)
        fiber_wake(lock, true);
    fiber_step();
    return 0;
}

/* --- threads ---------------------------------------------------------------------------------- */

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*main)(void *),
                          void *data)
{
    (void)attr;
    *thread = (pthread_t)fiber_spawn(process_current(), main, data);
    fiber_step();
    return 0;
}

int __wrap_pthread_join(pthread_t thread, void **result)
{
    struct fiber *fiber = (struct fiber *)thread;
    while (fiber->state != FIBER_DONE)
        (void)fiber_wait(fiber, INT64_MAX);
    fiber->state = FIBER_FREE;
    if (result)
        *result = NULL;
    return 0;
}

/* Nothing that is done once waits. */
int __wrap_pthread_once(pthread_once_t *once, void (*function)(void))
{
    if (!*once) {
        *once = 1;
        unsigned yield = machine_yield;
        machine_yield = 0;
        function();
        machine_yield = yield;
    }
    return 0;
}

int __wrap_pthread_setname_np(pthread_t thread, const char *name)
{
    (void)thread;
    (void)name;
    return 0;
}

void process_kill(struct process *process)
{
    process->alive = false;
    for (unsigned i = held_count; i-- > 0;) {
        struct lock *lock = held[i];
        if (!lock->owner || lock->owner == &world_fiber || lock->owner->process != process)
            continue;
        lock->owner = NULL; /* one of all nodes', or it is of nobody any more */
        lock->depth = 0;
        held[i] = held[--held_count];
        fiber_wake(lock, true);
    }
    for (unsigned i = 0; i < fiber_top; i++) {
        struct fiber *fiber = &fibers[i];
        if (fiber->state == FIBER_FREE || fiber->process != process)
            continue;
        fiber->state = FIBER_FREE;
    }
    process->fiber_count = process->loop_count = 0;
}

bool machine_has_process(void)
{
    return fiber_top > 0;
}

/* --- time, chance ----------------------------------------------------------------------------- */

int __wrap_clock_gettime(clockid_t clock, struct timespec *time)
{
    const struct process *process = process_current();
    int64_t ns = process_clock_ns(process);
    if (clock == CLOCK_REALTIME)
        ns = 1700000000000000000ll + now_ns + (process ? process->wall_ns : 0);
    *time = (struct timespec){ns / 1000000000, ns % 1000000000};
    return 0;
}

int __wrap_nanosleep(const struct timespec *time, struct timespec *left)
{
    (void)left;
    fiber_sleep_ns(time->tv_sec * 1000000000ll + time->tv_nsec);
    return 0;
}

ssize_t __wrap_getrandom(void *bytes, size_t size, unsigned flags)
{
    (void)flags;
    for (size_t i = 0; i < size; i++)
        ((uint8_t *)bytes)[i] = (uint8_t)rnd(256);
    return (ssize_t)size;
}

/* --- its life --------------------------------------------------------------------------------- */

/* The variables that each thread has its own of: of this program, not of libraries. */
static int find_tls(struct dl_phdr_info *info, size_t size, void *data)
{
    (void)size;
    (void)data;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_TLS) {
            tls = info->dlpi_tls_data;
            tls_size = info->dlpi_phdr[i].p_memsz;
        }
    return 1; /* the first is the program */
}

void machine_init(void)
{
    dl_iterate_phdr(find_tls, NULL);
    if (tls_size > TLS_MAX)
        abort();
    memcpy(tls_first, tls, tls_size);
    stacks = mmap(NULL, (size_t)FIBERS * STACK, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (stacks == MAP_FAILED)
        abort();
    for (size_t i = 0; i < FIBERS; i++)
        if (mprotect(stacks + i * STACK, GUARD, PROT_NONE) < 0)
            abort();
}
