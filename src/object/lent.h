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

/* A note to whoever has lent something, about how long it lasts: "~retain" and "~release", one
 * holder more or less; "~lend@<disk>.<session>" (in hexadecimal): that session of another node
 * holds one of those that the sender has held (remote/leases.h). Its bytes are the number. */
enum cn_lent_note_kind { CN_LENT_NO_NOTE, CN_LENT_RETAIN, CN_LENT_RELEASE, CN_LENT_LEND };

struct cn_lent_note {
    enum cn_lent_note_kind kind;
    double number;
    uint64_t disk, session; /* of LEND */
};

/* NO_NOTE also for what is malformed. */
struct cn_lent_note cn_lent_note_read(const char *method, const uint8_t *bytes, size_t size);
bool cn_lent_mark_read(const char *text, uint64_t *disk, uint64_t *session);
/* The bytes of a note about this number. */
#define CN_LENT_NUMBER_SIZE 10
size_t cn_lent_number_write(double number, uint8_t bytes[CN_LENT_NUMBER_SIZE]);

/* What an answer has by reference, for whoever carries it to another node. */
struct cn_lent_given {
    char *address; /* owned; of who has it */
    double number;
};

struct cn_lent_list {
    struct cn_lent_given *items; /* owned */
    unsigned count;
    bool wanted; /* the answer goes to another node: otherwise nothing is added */
};

/* `address` is taken over. */
void cn_lent_list_add(struct cn_lent_list *list, char *address, double number);
void cn_lent_list_fini(struct cn_lent_list *list);
/* `from` is empty then; so is what was in `list`, which gets it if that is wanted. */
void cn_lent_list_move(struct cn_lent_list *list, struct cn_lent_list *from);

struct cn_node;
/* `node` NULL: there are no objects. */
struct cn_lent_address cn_lent_parse(struct cn_node *node, const char *text);

#endif
