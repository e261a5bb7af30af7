/* SPDX-License-Identifier: Apache-2.0 */
/* object/call.h - an envelope to an object: an event for it, and the answer.
 *
 *     sender's lane                 owner's lane
 *     cn_call_send() ─────────────► inbox ── input gate ──► class->deliver
 *     on_done()    ◄─────────────── output gate ◄── cn_call_reply(), cn_call_fail()
 *
 * object/envelope.h has its life, the way there and back, and who owns it when.
 *
 * C1  Calls from one lane to one object arrive in the order they were sent (P3).
 * C2  on_done runs exactly once for every call that was sent, on the sender's
 *     lane, never from inside cn_call_send() (P2).
 * C3  A reply leaves the owner's lane only when every write the object had made
 *     by then is durable.
 *
 * Threads:   cn_call_send() on the sender's lane; reply and fail on the owner's.
 * Ownership: P1 and P4. `payload` belongs to the class once it is delivered; `name` is freed by
 *            whoever frees the call. */
#ifndef CN_OBJECT_CALL_H
#define CN_OBJECT_CALL_H
#include <stdbool.h>
#include <stdint.h>

#include "base/assert.h"
#include "object/envelope.h"
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
    CN_CALL_ADOPT,  /* WebSockets of an object that has moved here (K7 there): no class sees it */
};

struct cn_call {
    struct cn_envelope envelope; /* its link, while ARRIVED: in an inbox, then in object->running */
    enum cn_call_kind kind;
    unsigned op; /* CN_CALL_OTHER: the operation, a service's own number; it is counted */
    struct cn_namespace *ns;
    struct cn_object_key key;
    char *name; /* owned; the name the id was made from, or NULL */
    size_t name_size;
    struct cn_object *object; /* while it is there */
    size_t size;              /* bytes of the payload, which count for the inbox's bound */
    void *payload;            /* what the sender asks; meaning by kind and class */
    void *result;             /* what cn_call_reply() was given */
    /* For the class, while the call is delivered: its own number for it, and who is told if the
     * core takes the call back unanswered (reset). NULL: nobody. */
    uint64_t tag;
    uint64_t trace; /* and of its trace; 0: none */
    void (*taken_back)(struct cn_call *call);
    uint64_t arrived_ns; /* at the owner's lane */
};

static inline struct cn_call *cn_call_of(struct cn_envelope *envelope)
{
    return CN_CONTAINER_OF(envelope, struct cn_call, envelope);
}

/* Sends it on its way from envelope.from, when the gate of the object `gate` opens; NULL: at once.
 */
void cn_call_send(struct cn_call *call, struct cn_object *gate);

/* The answer; the class is finished with the event. */
void cn_call_reply(struct cn_call *call, void *result);
void cn_call_fail(struct cn_call *call, unsigned faults, int code, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* For the carrier that has it (P8): it is back at the lane to which it had come, ARRIVED. Then it is
 * answered there, or one of the two below. */
void cn_call_back(struct cn_call *call);
/* Its shard is here (cn_lane_shard_is_here()): takes it in, although calls of the shard may be AWAY.
 */
void cn_call_take_in(struct cn_call *call);
void cn_call_turn_away(struct cn_call *call, unsigned faults, int code, const char *text);

#endif
