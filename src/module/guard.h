/* SPDX-License-Identifier: Apache-2.0 */
/* module/guard.h - whether what code in C calls with is what it may call with.
 *
 * What a module has of the server (an object, an event, a stream, ...) is no address but a number,
 * its handle, which the thread's table turns into the address:
 *
 *     1 | generation: 29 bits | thread: 8 bits | place in the thread's table: 26 bits
 *
 * So one that is gone, that is another thread's, or that never was one, is told from a good one
 * without reading any memory that it might point to; and code that takes it for an address faults
 * at once, since no address has the highest bit.
 *
 * G1  What a module may use on a thread is in that thread's table, with its kind and the object it
 *     is of; it leaves the table when the module may not use it any more, or when it is freed. A
 *     table belongs to its thread: there is no lock.
 * G2  Functions are called from within a function of the object's class, or of its end. From
 *     anywhere else, a function of another object included, they are refused.
 * G3  What is refused is told in the log, by the name of the function and of the module, which is
 *     found by the address that the call comes from if no function of a class runs on the thread.
 *     Of many mistakes the first LINES_MAX are told, then each thousandth.
 * G4  Every handle of a thread has a generation of its own: one that is gone is not taken for what
 *     has its place or its memory now, until 2^29 others have come.
 * G5  A struct that has a handle begins with it: a uintptr_t, 0 while it has none. Code of the
 *     server uses addresses; handles are made of them where something is given to a module.
 *
 * Threads: each has its own. */
#ifndef CN_MODULE_GUARD_H
#define CN_MODULE_GUARD_H
#include <stdbool.h>
#include <stdint.h>

#include "include/cairn.h"

enum cn_guard_kind {
    CN_GUARD_NONE,
    CN_GUARD_OBJECT,
    CN_GUARD_EVENT,
    CN_GUARD_BUILDER,
    CN_GUARD_STATEMENT,
    CN_GUARD_REMOTE,
    CN_GUARD_STREAM,
};

/* G5: gives it a handle, which it has none of; */
void cn_guard_add(void *thing, enum cn_guard_kind kind, const cairn_object *owner);
/* takes it away, if it has one; */
void cn_guard_remove(void *thing);
/* and what a module is given for it. NULL for NULL. */
static inline void *cn_guard_show(const void *thing)
{
    return thing ? (void *)*(const uintptr_t *)thing : NULL;
}

/* What a handle is of, if it is of that kind, and may be used now (G2). `from` is the address that
 * the call has come from. NULL: it is not, which was told (G3). */
void *cn_guard_take(const void *handle, enum cn_guard_kind kind, const char *function,
                    const void *from);
/* The same without G2. */
void *cn_guard_find(const void *handle, enum cn_guard_kind kind, const char *function,
                    const void *from);
/* Tells of a mistake (G3). Returns false. */
bool cn_guard_tell(const char *function, const void *from, const char *what);

#endif
