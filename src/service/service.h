/* SPDX-License-Identifier: Apache-2.0 */
/* service/service.h - services (KV, D1, R2, queues, ...) as classes of objects in C, and how to
 * write one.
 *
 * A service keeps its state in objects like those of JavaScript classes: an object lives on one
 * lane, has a database, and gets its events one at a time. What an event writes is one commit; its
 * answer leaves when that commit is durable. So a service has group commit, crash safety,
 * point-in-time recovery, eviction, alarms and listing without a line of its own.
 *
 *     JavaScript face        service/<name>/        call      service/<name>/
 *     prelude/workers/  ───► natives.c:        ───────────►   <name>.c, deliver():
 *     service/<name>.js ◄─── arguments to a    ◄───────────   SQL, fills the result
 *                            C struct and back                in, replies
 *
 * To add one, make its folder, and add its line to service/table.c: service/def.h says what is in
 * the folder, docs/inside/hacking.md shows one. Of its class:
 *
 *  1. <name>.h: a struct with a cn_service_call as its FIRST field, then what is asked, then what
 * is answered; an enum of operations for call.op; cn_<name>_class. The struct crosses lanes by
 *     pointer: it is the caller's before it is sent and after it was answered, the object's in
 *     between. Nothing in it is shared, so nothing in it is locked. It owns its buffers (moved, not
 *     copied, on both sides); `fini` frees them. call.size says how many bytes wait with it, which
 *     counts for the bound of the object's inbox.
 *
 *  2. <name>.c: the class (object/class.h).
 *       create    opens the database and brings its tables up to date with cn_service_open();
 *                 class_data is the struct cn_services
 *       deliver   by call->kind: CN_CALL_OTHER is a request (cn_service_request()), CN_CALL_ALARM
 *                 the alarm (cn_alarm_begin(), cn_alarm_succeeded(), object/alarm.h). It ends with
 *                 cn_service_answer(), or cn_call_reply(call, NULL) and cn_call_fail(call,
 *                 CN_FAULT_REMOTE, ...), now or later; later inside cn_object_enter()/leave()
 *       release   cn_service_sql_release()
 *       destroy   frees the instance
 *     Each event is a turn of its own, so undoing one that failed is cn_database_rollback(). What
 *     takes longer than a few milliseconds must not run on the lane (service/pool.h).
 *
 *  3. Its namespaces are "$<name>/ID". Workers' own are called "worker/Class", so the two cannot
 *     meet.
 *
 *  4. natives.c: natives that fill the struct and give it to cn_jsservice_send()
 *     (bindings/service_call.h), a line for each in border.ts. prelude/workers/service/<name>.js
 *     checks arguments and words the errors.
 *
 *  5. test/unit/service/<name>/test_<name>.c drives the class without JavaScript
 *     (test/lib/service_rig.h).
 *
 * State that every lane should share load for is spread over several objects of the namespace,
 * picked by a hash of the key (service/kv/kv.h).
 *
 * Threads:   a call is made and freed on its caller's lane, delivered on its object's.
 * Ownership: see 1. */
#ifndef CN_SERVICE_SERVICE_H
#define CN_SERVICE_SERVICE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "object/call.h"
#include "object/class.h"

struct cn_blobs;
struct cn_database;
struct cn_disk;
struct cn_kvcache;
struct cn_namespace;
struct cn_node;
struct cn_object;
struct cn_object_lane;
struct cn_node_calls;
struct cn_points;
struct cn_pool;
struct cn_service_def;
struct cn_statement;

/* What services use besides their objects. Borrowed; class_data of every service. */
struct cn_services {
    struct cn_blobs *blobs;
    struct cn_pool *pool; /* for what takes long (service/pool.h) */
    struct cn_kvcache *kv_cache;
    struct cn_points *points;           /* of Analytics Engine (analytics/points.h) */
    struct cn_disk *disk;               /* the data directory; NULL: there is none */
    const struct cn_node_calls *others; /* service/node_calls.h; NULL: this server is alone */
};

/* For cn_node_options.find_class: false if `ns` is no service's. */
bool cn_service_find(const struct cn_namespace *ns, const struct cn_class **class_);
bool cn_service_owns(const char *namespace_name);
/* The service that a namespace belongs to by its name, "$kv/ID"; NULL: none. */
const struct cn_service_def *cn_service_of(const char *namespace_name);

/* The namespace of a service that another node means by its number, which all of them share, and
 * its name: one that this node has, or has not heard of yet. NULL: it is no service's, or this
 * number is another service's. */
struct cn_namespace *cn_service_namespace(struct cn_node *node, uint32_t id, const char *name);

/* --- calls ----------------------------------------------------------------------------------- */

struct cn_service_call {
    struct cn_call call;
    /* On the caller's lane, once: answered, or failed if call.envelope.err.code. Frees the call. */
    void (*done)(struct cn_service_call *call);
    /* Frees what the struct owns, but not the struct. May be NULL. */
    void (*fini)(struct cn_service_call *call);
};

/* The object of a namespace with that name. */
void cn_service_key(const struct cn_namespace *ns, const char *name, struct cn_object_key *key);
/* Fills in a zeroed struct from cn_alloc_zero() (CN_NEW) that begins with a cn_service_call. `name`
 * names the object in the namespace. */
void cn_service_call_init(struct cn_service_call *call, struct cn_namespace *ns, const char *name,
                          unsigned op, void (*fini)(struct cn_service_call *call));
/* From `from`'s lane, at once. */
void cn_service_call_send(struct cn_service_call *call, struct cn_object_lane *from,
                          void (*done)(struct cn_service_call *call));
/* The same when the gate of the object `gate` opens; NULL: at once. */
void cn_service_call_send_gated(struct cn_service_call *call, struct cn_object_lane *from,
                                struct cn_object *gate, void (*done)(struct cn_service_call *call));
/* The same from a thread that is no lane's and may block: lane 0 sends it, and the answer is
 * awaited. `prepare` (or NULL) runs on that lane before. The call is the caller's again, whatever
 * the result, which is that of the call. */
int cn_service_call_wait(struct cn_service_call *call, struct cn_node *node,
                         void (*prepare)(struct cn_service_call *call, struct cn_object_lane *lane),
                         struct cn_err *err);
void cn_service_call_free(struct cn_service_call *call);

/* For on_done and drop of its envelope. */
struct cn_service_call *cn_service_call_of(struct cn_envelope *envelope);
/* For deliver: the request of a CN_CALL_OTHER call. */
static inline struct cn_service_call *cn_service_request(struct cn_call *call)
{
    CN_ASSERT(call->kind == CN_CALL_OTHER);
    return CN_CONTAINER_OF(call, struct cn_service_call, call);
}

/* Fails with the sentence and code of `err`. */
void cn_service_call_fail(struct cn_call *call, const struct cn_err *err);
/* The answer of an operation: a reply, or, if `rc` is negative, its turn undone and a failure. */
void cn_service_answer(struct cn_object *object, struct cn_call *call, int rc,
                       const struct cn_err *err);

/* --- databases ------------------------------------------------------------------------------- */

/* For create: the object's database with its tables up to date. NULL: `err` says why. */
struct cn_database *cn_service_open(struct cn_object *object, const char *const steps[],
                                    int step_count, struct cn_err *err);

/* Runs those of `steps` that the database has not seen, in order; how many it has seen is its
 * user_version. Steps are scripts of SQL, never changed once released: a new version adds one.
 * CN_EVERSION if the database has seen more than there are. */
int cn_service_schema(struct cn_database *db, const char *const steps[], int step_count,
                      struct cn_err *err);

/* The statements of a class, prepared when they are first used and kept until `release`. */
struct cn_service_sql {
    const char *const *texts; /* static */
    unsigned count;
    struct cn_statement **statements; /* owned; NULL: not prepared yet */
};
void cn_service_sql_init(struct cn_service_sql *sql, const char *const texts[], unsigned count);
/* The statement, ready to be bound: reset it (cn_statement_reset()) when its rows are read, so that
 * nothing stays open. */
int cn_service_sql_get(struct cn_service_sql *sql, struct cn_database *db, unsigned which,
                       struct cn_statement **statement, struct cn_err *err);
/* Steps a statement that returns no rows, and resets it. */
int cn_service_sql_run(struct cn_statement *statement, struct cn_err *err);
/* Before the database closes, or forgets its statements (cn_database_delete_all()). */
void cn_service_sql_release(struct cn_service_sql *sql);
void cn_service_sql_fini(struct cn_service_sql *sql);

#endif
