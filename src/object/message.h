/* SPDX-License-Identifier: Apache-2.0 */
/* object/message.h - a call that carries structured values: what classes of JavaScript and of
 * modules are called with, and call others by.
 *
 * Arguments, a request, a result and what was thrown are bytes of
 * docs/reference/structured-clone.md, so neither side need know which language the other one is
 * written in.
 *
 *     kind             method          bytes                     result
 *     CN_CALL_RPC      path of names   array of arguments;       the value
 *                                      undefined: a property
 *     CN_CALL_FETCH    NULL            the request's parts       the response's parts
 *     CN_CALL_OTHER    "number:path"   as RPC: something lent    as RPC
 *
 * of a failed call `result` is what was thrown, or NULL.
 *
 * Threads and ownership: object/call.h; the message owns its texts and bytes. */
#ifndef CN_OBJECT_MESSAGE_H
#define CN_OBJECT_MESSAGE_H
#include <stddef.h>
#include <stdint.h>

#include "object/call.h"
#include "object/lent.h"

/* Workers and objects that call one another without end come to one: a call that is this deep makes
 * none. */
#define CN_CALL_DEPTH_MAX 32
#define CN_MESSAGE_SIZE_MAX (32u << 20) /* RPC-5 */

struct cn_message {
    struct cn_call call; /* its payload is the message */
    char *method;        /* owned; NULL for fetch */
    uint8_t *bytes;      /* owned */
    size_t size;
    uint8_t *result; /* owned */
    size_t result_size;
    /* Of a call that stays in its instance (bindings/localcall.c): no method, no bytes. */
    uint32_t home_serial;     /* of the instance; 0: any other call */
    uint32_t slot;            /* the prelude's number for what it carries */
    struct cn_lent_list lent; /* of the result */
};

static inline struct cn_message *cn_message_of(struct cn_envelope *envelope)
{
    return CN_CONTAINER_OF(cn_call_of(envelope), struct cn_message, call);
}

/* Before the caller is told: an answer that the output gate held back for ever is no error that was
 * thrown, and goes. */
void cn_message_settle(struct cn_message *message);
/* Frees what it owns, but not the struct. */
void cn_message_fini(struct cn_message *message);

#endif
