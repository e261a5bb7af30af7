/* SPDX-License-Identifier: Apache-2.0 */
/* module/face.h - a service as code in C calls it: the methods that its bindings have in
 * JavaScript, by their names, with values as arguments and result.
 *
 * A service (service/def.h) has them in face.c of its folder. A call is a row of steps:
 *
 *     begin ──► a call to the service's objects ──► next ──► ... ──► the result is built
 *         └───► work on a thread ─────────────────► next
 *         └───► a piece of what the caller writes ► next
 *         └───► nothing: the result is built already
 *
 * A1  begin() runs in the function that asks: what it sends first waits for the output gate.
 * A2  Steps run on the lane, outside of turns; `run` on a thread of the services' pool, alone.
 * A3  A body that the caller writes as a stream is taken a piece at a time, when a step wants one:
 *     a service that is slow holds the writer back. If the stream fails, or its object goes, a
 *     step is told by `upload_err`, so that it can undo what it has begun.
 *
 * Threads:   the lane's, but for `run`.
 * Ownership: of a work its engine's (services.c), until done() or the lane's end; `state` goes with
 *            it, by `free`. */
#ifndef CN_MODULE_FACE_H
#define CN_MODULE_FACE_H
#include <stdbool.h>

#include "base/err.h"
#include "base/buf.h"
#include "module/value.h"

struct cn_namespace;
struct cn_node;
struct cn_object_lane;
struct cn_service_call;
struct cn_services;
struct cn_stream_source;

struct cn_face_work {
    /* Given to it. */
    struct cn_object_lane *lane;
    struct cn_services *services;
    struct cn_namespace *ns;    /* the binding's; NULL: it has none */
    const cairn_value *binding; /* what config.c wrote */
    /* The method's own. */
    void *state; /* NULL: none */
    void (*free)(void *state);
    /* What comes next, which a step says: one of them, or none, and then the result is built. */
    struct cn_service_call *call; /* given away */
    void (*run)(struct cn_face_work *work);
    bool takes_failures; /* next() is called after a call or a run that has failed, too */
    /* Of a run: code 0: it went well. */
    struct cn_err run_err;
    /* A3: what cn_face_take_stream() has taken. */
    cairn_object *asker;  /* of begin() alone */
    cairn_stream *upload; /* the engine's; NULL: none, or it has ended */
    bool wants;           /* next is a piece, or the end, or `upload_err` */
    struct cn_buf piece;  /* the engine's; a step or a run clears it */
    bool is_over;         /* all pieces have come */
    struct cn_err upload_err;
    /* What the caller reads as a stream: left by the last step, and the engine's from then on. */
    const struct cn_stream_source *source; /* NULL: nothing */
    void *source_data;
    void (*opened)(void *source_data, cairn_stream *stream);
};

/* Makes a value among the arguments, which is a stream that the caller writes, `upload`. */
int cn_face_take_stream(struct cn_face_work *work, const cairn_value *value, struct cn_err *err);

struct cn_face_method {
    const char *name;
    /* Negative: it has failed, and `err` has the sentence. `arguments` is an array. */
    int (*begin)(struct cn_face_work *work, const cairn_value *arguments, cairn_builder *result,
                 struct cn_err *err);
    /* After a call, which is the engine's, or a run (NULL). Calls that fail end the work. */
    int (*next)(struct cn_face_work *work, struct cn_service_call *call, cairn_builder *result,
                struct cn_err *err);
    const char *failure; /* before the sentence of a call that fails: "KV GET failed: 500 " */
};

/* The next() of a method that answers undefined. */
int cn_face_nothing(struct cn_face_work *work, struct cn_service_call *call, cairn_builder *result,
                    struct cn_err *err);

struct cn_service_face {
    const struct cn_face_method *methods; /* one without a name ends them */
};

/* The text or the bytes of a value. False: it is neither. */
bool cn_face_bytes(const cairn_value *value, const void **bytes, size_t *size);
/* `undefined`, or `null`. */
bool cn_face_absent(const cairn_value *value);

#endif
