/* SPDX-License-Identifier: Apache-2.0 */
/* service/wire.h - how the calls of a service go to an object that another node has.
 *
 * On a node the struct of a call crosses lanes by pointer (service/service.h). To another node go
 * the fields that two tables (base/wire.h) name: what is asked, and, back, what is answered. There
 * a struct of the same type is made of them, sent to the object like any other call, and freed when
 * it is answered.
 *
 *     caller's node                              owner's node
 *     struct cn_NAME_call ── asked ────────────► struct cn_NAME_call ──► class->deliver
 *     the same struct    ◄── answered, err ───── its fields, or its failure
 *
 * A service says so in its descriptor (service/def.h, `wire`), beside its class or in a file of
 * its own; service/kv/kv.c is an example. What a caller on another node must know:
 *
 * R1  A call is carried out at most once by us. One that fails with CN_FAULT_RETRYABLE may have
 *     been carried out if its connection was lost; the text says which.
 * R2  Only fields of the tables travel: pointers to what a process has (a namespace, a function, a
 *     file) are made of numbers by CN_WIRE_OWN, whose `data` is the struct cn_node of the reader,
 *     or the operation is not in `ops`.
 * R3  A field that is asked and answered is in both tables. What is answered replaces what was
 *     asked.
 * R4  What a peer sends may break what the class relies on: `check` refuses it. It is input. So is
 *     an answer for who asked: `check_answer`.
 * R5  What was only asked does not come back: `trim` lets go of it before the answer is written.
 * R6  Every operation of a service whose descriptor has a name for it is in `ops`
 *     (test/unit/service/test_wire.c); one that is not there fails where it is called, with a
 *     sentence.
 *
 * Threads and ownership: service/service.h. */
#ifndef CN_SERVICE_WIRE_H
#define CN_SERVICE_WIRE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/wire.h"

struct cn_node;
struct cn_service_call;

struct cn_service_wire {
    size_t size;  /* of the struct of a call, which begins with a struct cn_service_call */
    uint32_t ops; /* operations that travel: bit 1 << call.op */
    const struct cn_wire_field *asked, *answered;
    /* Frees what the struct owns, but not the struct: what cn_service_call_init() is given. */
    void (*fini)(struct cn_service_call *call);
    /* R4; call.op is one of `ops`. NULL: the bounds of the tables are enough. */
    bool (*check)(const struct cn_service_call *call);
    bool (*check_answer)(const struct cn_service_call *call); /* the same of what is answered */
    void (*trim)(struct cn_service_call *call);               /* R5. NULL: there is nothing */
};

/* Whether the call's operation travels. */
bool cn_service_wire_has(const struct cn_service_wire *wire, unsigned op);
/* On the caller's node: appends what is asked. */
void cn_service_wire_ask(const struct cn_service_wire *wire, const struct cn_service_call *call,
                         struct cn_buf *out);
/* On the owner's: fills a call of cn_service_call_init(). CN_EPROTOCOL (R4), CN_EVERSION, CN_ENOMEM
 * as cn_wire_get(); cn_service_call_free() frees it, whatever the result. */
int cn_service_wire_asked(const struct cn_service_wire *wire, struct cn_service_call *call,
                          const uint8_t *bytes, size_t size, struct cn_node *node);
/* Appends what was answered, once: it trims the call. */
void cn_service_wire_answer(const struct cn_service_wire *wire, struct cn_service_call *call,
                            struct cn_buf *out);
/* On the caller's node again: what it asked with becomes what was answered. */
int cn_service_wire_answered(const struct cn_service_wire *wire, struct cn_service_call *call,
                             const uint8_t *bytes, size_t size, struct cn_node *node);

#endif
