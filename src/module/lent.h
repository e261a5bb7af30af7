/* SPDX-License-Identifier: Apache-2.0 */
/* module/lent.h - what an object of a module has of others (functions, stubs, streams that it
 * reads) and others have of it (streams that it writes); include/cairn.h says what the functions
 * do.
 *
 * What is by reference has an owner, which keeps it under a number for as long as somebody counts
 * (object/lent.h): "~retain" and "~release" are notes to the owner. The other side of the protocol
 * is prelude/workers/object/rpc.js.
 *
 * L1  What came in a value and is not lent is let go of when the value goes, unless it was kept:
 *     then by remote_release(), the end of the stream, or the object's.
 * L2  A stream that is lent has one question of its reader under way, which is answered with all
 *     that waits; the rest is in stream.h. A worker's are called at the address of its instance,
 *     beside what its JavaScript has lent: their numbers are above 2^40, and random.
 *
 * Threads:   the lane's.
 * Ownership: the object's. */
#ifndef CN_MODULE_LENT_H
#define CN_MODULE_LENT_H
#include <stdbool.h>
#include <stdint.h>

#include "module/internal.h"

#define CN_REMOTES_MAX 10000
struct cn_compiled_outside {
    struct cn_list remotes; /* of struct cairn_remote */
    struct cn_list streams; /* of struct cairn_stream, */
    struct cn_list lent;    /* and those among them that others call */
    unsigned remote_count, stream_count;
    unsigned given_count; /* of a worker: streams that somebody has (T3 of stream.h) */
};
struct cn_stream_piece;

struct cn_compiled_outside *cn_compiled_outside(cairn_object *self);
/* The object goes. */
void cn_compiled_drop_outside(cairn_object *self);
/* A call to a stream that the object writes; and that a worker does: `method` and `bytes` are its.
 */
void cn_compiled_deliver_lent(cairn_object *self, struct cn_call *call);
void cn_compiled_deliver_target(cairn_object *self, cairn_event *event);
/* Whoever asked by this event has gone. */
void cn_compiled_forget_pull(cairn_event *event);
void cn_compiled_free_streams(cairn_object *self);

/* Collects the streamed body of a request, then calls `then`, in a turn; NULL: all is well. */
void cn_compiled_collect(cairn_event *event,
                         void (*then)(cairn_event *event, const struct cn_err *err));
/* A piece of what is collected; the stream may be gone then. */
void cn_body_piece(cairn_stream *stream, const struct cn_stream_piece *piece);
/* Writes the body of the response as a stream. */
void cn_compiled_build_stream(cairn_builder *builder, cairn_stream *stream);
/* Nobody will read it: its event has failed. */
void cn_compiled_abandon(cairn_stream *stream);

cairn_remote *cn_api_remote_keep(cairn_object *object, const cairn_value *value);
void cn_api_remote_release(cairn_remote *remote);
int cn_api_remote_call(cairn_remote *remote, const char *method, cairn_builder *arguments,
                       cairn_done done, void *data);
void cn_api_build_remote(cairn_builder *builder, cairn_remote *remote);
void cn_api_build_stub(cairn_builder *builder, cairn_object *object, const char *binding,
                       const char *name);

cairn_stream *cn_api_stream_open(cairn_object *object, const cairn_value *value);
cairn_stream *cn_api_request_stream(cairn_event *event);
int cn_api_stream_read(cairn_stream *stream, cairn_done done, void *data);
cairn_stream *cn_api_stream_new(cairn_object *object, cairn_fired wanted, void *data);
int cn_api_response_stream(cairn_event *event, cairn_stream *stream);
void cn_api_build_stream(cairn_builder *builder, cairn_stream *stream);
int cn_api_stream_write(cairn_stream *stream, const void *bytes, size_t size);
void cn_api_stream_end(cairn_stream *stream);
void cn_api_stream_fail(cairn_stream *stream, const char *reason);

#endif
