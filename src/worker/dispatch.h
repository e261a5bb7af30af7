/* SPDX-License-Identifier: Apache-2.0 */
/* worker/dispatch.h - events for a worker that do not come by HTTP.
 *
 * Three kinds of senders: another worker (or the worker itself) through a service
 * binding; whoever holds a stub of something that a worker has exported; and C,
 * which has an event for a handler ("queue", "scheduled", ...).
 *
 *     cn_dispatch_send() ──► a turn of the worker ──► cn_dispatch_reply() ──► on_done
 *
 * It is an envelope: object/envelope.h has its life, the way there and back, and who owns it when.
 * Everything that arrives is an event (event.h) of the instance: it keeps the
 * instance alive, and fails with it. The prelude's dispatchEvent() takes it and
 * answers by the natives eventReply() and eventReject() (bindings/dispatch.c). A
 * new kind of event for a handler is a function in prelude/workers/events.js and a
 * cn_dispatch whose `handler` is its name.
 *
 * D1  Each is delivered as a turn of its own, never inside the turn that sent it.
 * D2  What one lane sends to one worker is delivered in the order it was sent (P3).
 * D3  on_done runs exactly once for each, on the sender's lane, never from inside
 *     cn_dispatch_send() (P2). When that lane stops it runs with an error.
 *
 * Threads:   cn_dispatch_send() on the sender's lane; the rest on the worker's.
 * Ownership: P1; on_done frees it. */
#ifndef CN_WORKER_DISPATCH_H
#define CN_WORKER_DISPATCH_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/assert.h"
#include "js/context.h"
#include "object/envelope.h"
#include "object/lent.h"

struct cn_event;
struct cn_lane;

struct cn_dispatch {
    struct cn_envelope envelope;
    /* For whom, at the place `envelope.to`: the instance with this serial, or, if it is 0, the
     * script's current one. */
    uint32_t serial;
    char *script;        /* owned; NULL with a serial */
    char *version;       /* owned; of the script that sends to itself (R4); else NULL */
    const char *handler; /* "fetch", "rpc", "target", "queue", ...; static */
    char *entrypoint;    /* owned; the export that is meant; NULL: the default one */
    char *method;        /* owned; of RPC and targets; NULL otherwise */
    uint8_t *props;      /* owned; serialized ctx.props; NULL: none */
    uint8_t *bytes;      /* owned; serialized arguments */
    uint8_t *result;     /* owned; serialized result or error; NULL: none */
    size_t props_size, size, result_size;
    struct cn_lent_list lent;  /* of the result */
    struct cn_js_pin callback; /* for senders in JavaScript */
    void (*on_done)(struct cn_dispatch *dispatch);
    /* Instead of it, if it is dropped (P2); it is freed then. May be NULL. */
    void (*on_drop)(struct cn_dispatch *dispatch);
};

static inline struct cn_dispatch *cn_dispatch_of(struct cn_envelope *envelope)
{
    return CN_CONTAINER_OF(envelope, struct cn_dispatch, envelope);
}

struct cn_dispatch *cn_dispatch_new(struct cn_lane *from, struct cn_lane *to);
void cn_dispatch_free(struct cn_dispatch *dispatch);
/* When the gate of the object `gate` opens; NULL: at once. */
void cn_dispatch_send(struct cn_dispatch *dispatch, struct cn_object *gate);

/* Whether a script of this name would take an event on the lane, now. */
bool cn_dispatch_has_taker(struct cn_lane *lane, const char *script);

/* The worker's answer to an event of this kind; `bytes` are copied. The event lives on until the
 * worker is done with it (cn_event_done()). */
void cn_dispatch_reply(struct cn_event *event, const uint8_t *bytes, size_t size, bool streams);
/* What a reply with `streams` has begun is over. */
void cn_dispatch_end(struct cn_event *event);
void cn_dispatch_fail(struct cn_event *event, unsigned faults, int code, const char *text,
                      const uint8_t *bytes, size_t size);

#endif
