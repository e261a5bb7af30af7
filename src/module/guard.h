/* SPDX-License-Identifier: Apache-2.0 */
/* module/guard.h - whether what code in C calls with is what it may call with.
 *
 * A pointer that a module has (object, event, stream, ...) is looked for among those that are live
 * on the thread before anything is read of it. So one that was freed, that is another thread's, or
 * that is none, is told from a good one without touching it.
 *
 * G1  What is live on a thread is in that thread's set, with its kind and the object it is of; it
 *     leaves the set before it is freed. A set belongs to its thread: there is no lock.
 * G2  Functions are called from within a function of the object's class, or of its end. From
 *     anywhere else, a function of another object included, they are refused.
 * G3  What is refused is told in the log, by the name of the function and of the module, which is
 *     found by the address that the call comes from if no function of a class runs on the thread.
 *     Of many mistakes the first LINES_MAX are told, then each thousandth.
 *
 * Memory that was used again for something of the same kind is that one: a call with it is answered
 * as one to that. It corrupts nothing.
 *
 * Threads: each has its own. */
#ifndef CN_MODULE_GUARD_H
#define CN_MODULE_GUARD_H
#include <stdbool.h>

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

void cn_guard_add(const void *handle, enum cn_guard_kind kind, const cairn_object *owner);
void cn_guard_remove(const void *handle);

/* Whether `handle` is one of that kind, and may be used now (G2). `from` is the address that the
 * call has come from. */
bool cn_guard_allows(const void *handle, enum cn_guard_kind kind, const char *function,
                     const void *from);
/* The same without G2. */
bool cn_guard_knows(const void *handle, enum cn_guard_kind kind, const char *function,
                    const void *from);
/* Tells of a mistake (G3). */
void cn_guard_tell(const char *function, const void *from, const char *what);

#endif
