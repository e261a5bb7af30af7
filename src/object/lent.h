/* SPDX-License-Identifier: Apache-2.0 */
/* object/lent.h - calls to what somebody has lent or exported: a function, a target, a stream.
 *
 * Whoever has exported something is known by an address, a text: "o<namespace>:<id>" is an object,
 * "w<lane>:<serial>" an instance of a worker on a lane; on a node of a cluster with
 * "@<disk>.<life>" (in hexadecimal) behind it: that life of that node, and no other, has it. To an
 * object goes a call of the kind CN_CALL_OTHER (object/message.h). To a worker the lane sends it
 * (worker/lent.c), by this letter, for classes that know nothing of workers.
 *
 * E1  For a letter that was sent, `done` runs once, on the sender's lane, outside of turns; instead
 *     of it, once, `dropped`, as P2 of object/envelope.h has it.
 *
 * Threads:   the lane's.
 * Ownership: the letter is the sender's, and stays where it is until E1; `method` and `bytes` are
 *            copied or taken as said. */
#ifndef CN_OBJECT_LENT_H
#define CN_OBJECT_LENT_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "object/envelope.h"
#include "store/record.h"

struct cn_lent_letter {
    unsigned lane;
    uint32_t serial;
    uint64_t disk, life; /* of another node; 0: this one */
    const char *method;  /* borrowed: copied when it is sent */
    uint8_t *bytes;      /* owned: taken when it is sent */
    size_t size;
    struct cn_origin origin;
    /* `envelope` has the error, if it failed; `result` is borrowed, of `size` bytes, or NULL. */
    void (*done)(struct cn_lent_letter *letter, const struct cn_envelope *envelope,
                 const uint8_t *result, size_t size);
    void (*dropped)(struct cn_lent_letter *letter);
};

/* What an address names. */
enum cn_lent_kind { CN_LENT_NOBODY, CN_LENT_OBJECT, CN_LENT_WORKER };

struct cn_lent_address {
    enum cn_lent_kind kind;
    struct cn_namespace *ns;  /* of an object: its namespace */
    struct cn_object_key key; /* and its key */
    unsigned lane;            /* of a worker */
    uint32_t serial;
    uint64_t disk, life; /* of another node's; 0: of this one */
};

struct cn_node;
/* `node` NULL: there are no objects. */
struct cn_lent_address cn_lent_parse(struct cn_node *node, const char *text);

#endif
