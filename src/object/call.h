/* SPDX-License-Identifier: Apache-2.0 */
/* object/call.h - an event on its way to an object and its answer on the way back.
 *
 *     caller's lane                 owner's lane
 *     cn_call_send() ── mailbox ──► inbox ── input gate ──► class->deliver
 *     on_reply()   ◄── mailbox ─── output gate ◄── cn_call_reply(), cn_call_fail()
 *
 * C1  Calls from one lane to one object arrive in the order they were sent.
 * C2  on_reply runs exactly once for every call that was sent, on the caller's
 *     lane, never from inside cn_call_send().
 * C3  A reply leaves the owner's lane only when every write the object had made
 *     by then is durable.
 *
 * Threads:   cn_call_send() on the caller's lane; reply and fail on the owner's.
 * Ownership: the call is the caller's before it is sent and again from on_reply
 *            on, which frees it. In between it belongs to the core, and its
 *            `payload` to the class once delivered. */
#ifndef CN_OBJECT_CALL_H
#define CN_OBJECT_CALL_H
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/list.h"
#include "base/mailbox.h"
#include "base/origin.h"
#include "object/output.h"
#include "store/record.h"

struct cn_namespace;
struct cn_object;
struct cn_object_lane;

enum cn_call_kind {
    CN_CALL_FETCH,
    CN_CALL_RPC,
    CN_CALL_ALARM,
    CN_CALL_OTHER,  /* what a service and its binding have agreed on */
    CN_CALL_ACCESS, /* of the core itself (object/access.h): no class sees it */
    CN_CALL_SOCKET, /* an event of a WebSocket: object/socket.h */
};

/* What kind of failure the caller sees (DO-ERR-1). */
enum cn_call_fault {
    CN_FAULT_REMOTE = 1,     /* thrown by the object's own code */
    CN_FAULT_RETRYABLE = 2,  /* the object was not reached; a new try may succeed */
    CN_FAULT_OVERLOADED = 4, /* a bound was reached */
    CN_FAULT_RESET = 8,      /* the object was reset meanwhile */
};

enum cn_call_state { CN_CALL_SENT, CN_CALL_ANSWERED };

struct cn_call {
    struct cn_mail mail;
    struct cn_list link; /* in an inbox, then in object->running */
    struct cn_output output;
    enum cn_call_kind kind;
    enum cn_call_state state;
    struct cn_namespace *ns;
    struct cn_object_key key;
    char *name; /* owned; the name the id was made from, or NULL */
    size_t name_size;
    struct cn_object_lane *caller;
    struct cn_object_lane *owner; /* set by cn_call_send() */
    struct cn_object *object;     /* while it is there */
    size_t size;                  /* bytes of the payload, which count for the inbox's bound */
    void *payload;                /* what the caller asks; meaning by kind and class */
    void *result;                 /* what cn_call_reply() was given */
    unsigned faults;              /* of enum cn_call_fault, when it failed */
    struct cn_err err;            /* code 0: success */
    void (*on_reply)(struct cn_call *call);
    /* Frees payload and result if the call ends before anyone took them. May be NULL. */
    void (*drop)(struct cn_call *call);
    /* For the class, while the call is delivered: its own number for it, and who is told if the
     * core takes the call back unanswered (reset). NULL: nobody. */
    uint64_t tag;
    uint64_t trace; /* and of its trace; 0: none */
    void (*taken_back)(struct cn_call *call);
    void *data;          /* the caller's own */
    uint64_t arrived_ns; /* at the owner's lane */
    struct cn_origin origin;
    unsigned op; /* CN_CALL_OTHER: the operation, a service's own number; it is counted */
};

/* Sends it on its way. */
void cn_call_send(struct cn_call *call);

/* The answer; the class is finished with the event. */
void cn_call_reply(struct cn_call *call, void *result);
void cn_call_fail(struct cn_call *call, unsigned faults, int code, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#endif
