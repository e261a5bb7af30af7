/* SPDX-License-Identifier: Apache-2.0 */
/* js/engine/lock.c - see lock.h.
 *
 * The engine lets any thread use a VM: every function of its C API takes the
 * VM's lock (five atomic instructions when it is held already), and a call from
 * JavaScript to C lets go of the lock and takes it again, so that each API
 * function inside takes and frees a mutex. A lane's VM is used by one thread, and a
 * turn holds the lock from its beginning to its end (vm.c), so all of this is for
 * nothing; it was a fifth of the time of a call to a Durable Object.
 *
 * The definitions below take the place of the library's constructors and
 * destructors of two classes, JSLockHolder and JSLock::DropAllLocks. In a turn they
 * do nothing; otherwise, and on other threads, they call the library's.
 *
 * E1  What a constructor here left alone has a null VM, which the library never
 *     leaves: the destructor knows by that whose it is, whatever the flag says now.
 * E2  The flag is set only between JSLock() and JSUnlock() of a turn.
 * E3  If the library's classes are not laid out as below, the flag stays off. */
#include "js/engine/lock.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "base/assert.h"

struct holder {
    void *vm;
};

struct dropper {
    intptr_t count;
    void *vm;
    /* more, which only the library uses */
};

static _Thread_local bool held;
static bool usable; /* set once, before any turn */

void cn_js_engine_lock_held(bool now)
{
    held = now && usable;
}

/* The library's functions: the next definition of the name after ours. */
#define ORIGINAL(type, name)                          \
    static type original;                             \
    if (!original)                                    \
        *(void **)&original = dlsym(RTLD_NEXT, name); \
    CN_ASSERT(original)

typedef void (*construct)(void *self, void *argument);
typedef void (*destruct)(void *self);

#define HOLDER_CONSTRUCTOR(function, name)                                     \
    void function##_1(struct holder *self,                                     \
                      void *argument) __asm__("_ZN3JSC12JSLockHolderC1" name); \
    void function##_2(struct holder *self,                                     \
                      void *argument) __asm__("_ZN3JSC12JSLockHolderC2" name); \
    void function##_1(struct holder *self, void *argument)                     \
    {                                                                          \
        if (held) {                                                            \
            self->vm = NULL;                                                   \
            return;                                                            \
        }                                                                      \
        ORIGINAL(construct, "_ZN3JSC12JSLockHolderC1" name);                   \
        original(self, argument);                                              \
    }                                                                          \
    void function##_2(struct holder *self, void *argument)                     \
    {                                                                          \
        function##_1(self, argument);                                          \
    }

HOLDER_CONSTRUCTOR(holder_of_global, "EPNS_14JSGlobalObjectE")
HOLDER_CONSTRUCTOR(holder_of_vm, "EPNS_2VME")
HOLDER_CONSTRUCTOR(holder_of_vm_reference, "ERNS_2VME")

void holder_destructor_1(struct holder *self) __asm__("_ZN3JSC12JSLockHolderD1Ev");
void holder_destructor_2(struct holder *self) __asm__("_ZN3JSC12JSLockHolderD2Ev");
void holder_destructor_1(struct holder *self)
{
    if (!self->vm)
        return; /* E1 */
    ORIGINAL(destruct, "_ZN3JSC12JSLockHolderD1Ev");
    original(self);
}
void holder_destructor_2(struct holder *self)
{
    holder_destructor_1(self);
}

#define DROPPER_CONSTRUCTOR(function, name)                                           \
    void function##_1(struct dropper *self,                                           \
                      void *argument) __asm__("_ZN3JSC6JSLock12DropAllLocksC1" name); \
    void function##_2(struct dropper *self,                                           \
                      void *argument) __asm__("_ZN3JSC6JSLock12DropAllLocksC2" name); \
    void function##_1(struct dropper *self, void *argument)                           \
    {                                                                                 \
        if (held) {                                                                   \
            self->count = 0;                                                          \
            self->vm = NULL;                                                          \
            return;                                                                   \
        }                                                                             \
        ORIGINAL(construct, "_ZN3JSC6JSLock12DropAllLocksC1" name);                   \
        original(self, argument);                                                     \
    }                                                                                 \
    void function##_2(struct dropper *self, void *argument)                           \
    {                                                                                 \
        function##_1(self, argument);                                                 \
    }

DROPPER_CONSTRUCTOR(dropper_of_global, "EPNS_14JSGlobalObjectE")
DROPPER_CONSTRUCTOR(dropper_of_vm, "EPNS_2VME")
DROPPER_CONSTRUCTOR(dropper_of_vm_reference, "ERNS_2VME")

void dropper_destructor_1(struct dropper *self) __asm__("_ZN3JSC6JSLock12DropAllLocksD1Ev");
void dropper_destructor_2(struct dropper *self) __asm__("_ZN3JSC6JSLock12DropAllLocksD2Ev");
void dropper_destructor_1(struct dropper *self)
{
    if (!self->vm)
        return; /* E1 */
    ORIGINAL(destruct, "_ZN3JSC6JSLock12DropAllLocksD1Ev");
    original(self);
}
void dropper_destructor_2(struct dropper *self)
{
    dropper_destructor_1(self);
}

/* E3: what the library's own constructors write, on memory that can be looked at. */
static bool works_as_expected(void *vm)
{
    construct hold, drop;
    destruct unhold, undrop;
    *(void **)&hold = dlsym(RTLD_NEXT, "_ZN3JSC12JSLockHolderC1EPNS_2VME");
    *(void **)&unhold = dlsym(RTLD_NEXT, "_ZN3JSC12JSLockHolderD1Ev");
    *(void **)&drop = dlsym(RTLD_NEXT, "_ZN3JSC6JSLock12DropAllLocksC1EPNS_2VME");
    *(void **)&undrop = dlsym(RTLD_NEXT, "_ZN3JSC6JSLock12DropAllLocksD1Ev");
    if (!hold || !unhold || !drop || !undrop)
        return false;
    const uintptr_t untouched = 0x5a5a5a5a;
    uintptr_t words[8] = {untouched, untouched};
    hold(words, vm);
    bool good = words[0] == (uintptr_t)vm && words[1] == untouched;
    unhold(words);
    words[0] = words[1] = untouched;
    drop(words, vm);
    good = good && words[0] == 0 && words[1] == (uintptr_t)vm; /* the lock is free: count 0 */
    undrop(words);
    return good;
}

void cn_js_engine_lock_setup(JSContextGroupRef group)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static bool tried;
    pthread_mutex_lock(&lock);
    if (!tried)
        usable = works_as_expected((void *)group);
    tried = true;
    pthread_mutex_unlock(&lock);
}
