/* SPDX-License-Identifier: Apache-2.0 */
/* object/class.h - what a class of objects is to the core: a table of functions.
 *
 * The core knows no JavaScript. It gives a class events, one at a time; the class
 * may finish an event later and have several under way. JavaScript classes
 * (worker/) and the services (service/, in C) implement this table alike.
 *
 * Threads: every function runs on the lane that owns the object, inside a turn
 * of that object (object.h): what it writes is committed when it returns, and
 * what it sends out is held until that commit is durable. */
#ifndef CN_OBJECT_CLASS_H
#define CN_OBJECT_CLASS_H
#include <stdbool.h>

#include "base/err.h"

struct cn_object;
struct cn_call;
struct cn_database_limits;

struct cn_class {
    /* Makes the instance. The input gate is closed until it has returned 0, or, if it
     * returns 1 (still working), until cn_object_started(). Negative: the object is broken,
     * every waiting call fails with `err`, and the next call tries again. */
    int (*create)(struct cn_object *object, void *class_data, void **instance, struct cn_err *err);
    /* An event. Ends, now or later, with exactly one of cn_call_reply() and cn_call_fail(). */
    void (*deliver)(struct cn_object *object, void *instance, struct cn_call *call);
    /* After cn_object_kick(). May be NULL if that is never called. */
    void (*resume)(struct cn_object *object, void *instance);
    /* Back-pressure begins or ends (O8 of object.h): code of the object that has waited may go on
     * only while there is none. May be NULL. */
    void (*press)(struct cn_object *object, void *instance, bool begins);
    /* The database is about to be closed: let go of statements. May be NULL. */
    void (*release)(struct cn_object *object, void *instance);
    /* The object leaves memory (evicted, reset, node stops). Calls still under way have been
     * failed. No storage is available. */
    void (*destroy)(struct cn_object *object, void *instance);
    /* The core fails this call because the object was reset: the class may say more about it. May
     * be NULL. */
    void (*failed)(struct cn_object *object, void *instance, struct cn_call *call);
    /* The object gets no more events (its shard is stopped, object/shard.h), and is ended when
     * those that it has are answered: end now what only waits for another one. May be NULL. */
    void (*stopping)(struct cn_object *object, void *instance);
    /* Whether destroy() may come while there are holds: it then drops what they stand for. */
    bool lets_go;
    /* Whether calls of the kind CN_CALL_OTHER are delivered although the input gate is closed: it
     * makes them wait itself. */
    bool gates_lent;
    /* Of its databases (store/database.h); NULL: the defaults, those of Durable Objects. */
    const struct cn_database_limits *limits;
    /* Whether other threads use its database, which then has a connection of its own
     * (store/pool.h). */
    bool threads;
};

#endif
