/* SPDX-License-Identifier: Apache-2.0 */
/* module/pending.h - what an object of a module, or a worker, has under way (async.c has the
 * design): the part that all kinds of it share.
 *
 * Threads:   the lane's.
 * Ownership: each frees its own when it has ended. */
#ifndef CN_MODULE_PENDING_H
#define CN_MODULE_PENDING_H
#include <uv.h>

#include "module/internal.h"

enum cn_pending_kind { CN_PENDING_OTHER, CN_PENDING_TIMER };

struct cn_pending {
    struct cn_list link; /* in cairn_object.pending; alone once the object has gone */
    cairn_object *self;  /* NULL: it has gone */
    enum cn_pending_kind kind;
    cairn_done done;
    cairn_fired fired;
    cn_compiled_ended ended; /* instead of `done`: the server's own; NULL: `done` */
    void *data;
    struct cn_origin origin; /* of the event that it was started for */
    uint64_t trace;          /* and its trace */
    unsigned loops;          /* and its loops: X4 of fetch_out.c */
    bool streams;            /* the body of the response is told as a stream */
    /* The object goes: it need not go on. May be NULL. */
    void (*dropped)(struct cn_pending *pending);
};

/* How something has ended: an error, or bytes of a value; the bytes of an error are what was
 * thrown. */
struct cn_pending_end {
    const char *error; /* NULL: well */
    unsigned faults;   /* of enum cn_call_fault */
    const uint8_t *bytes;
    size_t size;
    cairn_stream *stream; /* of a response that is streamed; NULL: none */
};

/* Whether something can be started now: 0, or the CAIRN_E... */
int cn_pending_admit(cairn_object *self);
/* From here on it is the object's, and holds it (N1). */
void cn_pending_start(struct cn_pending *pending, cairn_object *self, cairn_done done, void *data);
/* It is the object's no more. Returns that, or NULL if it has gone. */
cairn_object *cn_pending_leave(struct cn_pending *pending);
/* Calls the function in a turn of the object; `end` NULL: a timer's. Lets go of N1. */
void cn_pending_tell(cairn_object *self, const struct cn_pending *pending,
                     const struct cn_pending_end *end);
/* Nobody is told. */
void cn_pending_let_go(cairn_object *self);

uv_loop_t *cn_pending_loop(const cairn_object *self);
struct cn_desk *cn_pending_desk(const cairn_object *self);
/* CAIRN_ELIMIT: calls have called one another too often. */
int cn_pending_depth(cairn_object *self);
/* What the builder has as an array of arguments; nothing built is none. NULL: the last error. */
uint8_t *cn_pending_arguments(cairn_object *self, cairn_builder *arguments, size_t *size);

#endif
