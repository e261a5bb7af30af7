/* SPDX-License-Identifier: Apache-2.0 */
/* module/stream.h - bytes that objects and workers of modules read and write piece by piece
 * (include/cairn.h, "streams"), whatever is on the other side.
 *
 *     source ── ask, ready, take ──► stream ── stream_read() ──► the class
 *     the class ── stream_write() ──► stream ── want, give ──► sink
 *
 * Sources and sinks: a reference that is called (stream_lent.c), a client's request and response
 * (worker/compiled_body.c), an outgoing request (fetch_out.c), an object of R2 (service/r2/face.c).
 *
 * T1  A source is asked for one piece at a time, and what it has is taken in a turn of the stream's
 *     object, never from inside the function that asked. Nobody is asked for more than is wanted,
 *     so a writer is never more than a piece ahead.
 * T2  A stream that is written keeps CN_STREAM_BYTES_MAX at most, and says when
 *     CN_STREAM_BYTES_ENOUGH are waiting. Its sink is given them when it wants them, as much as it
 *     takes; when it wants some and there is nothing, the class is told, once for each time.
 * T3  A written stream is freed when both are done with it: the class by stream_end() or _fail(),
 *     the sink by its end, or by leaving. While somebody has it, the object stays in memory as with
 *     a promise of waitUntil(), and a worker of an older deployment lingers.
 * T4  A source is stopped once, and a sink ended once or left once; after that neither is touched.
 *
 *     written   OPEN ──► ENDED or FAILED ──► given: freed
 *                └──► CLOSED: nobody reads any more; freed when the class ends it
 *     read      OPEN ──► ENDED: nothing is left to ask for; freed when the class ends it
 *
 * Threads:   the lane's.
 * Ownership: the object's, until T3. */
#ifndef CN_MODULE_STREAM_H
#define CN_MODULE_STREAM_H
#include <stdbool.h>
#include <stdint.h>

#include "module/pending.h"

#define CN_STREAMS_MAX 1000          /* of an object, */
#define CN_STREAMS_WORKER_MAX 20000u /* and of a worker on a lane */
#define CN_STREAM_BYTES_ENOUGH (64u << 10)
#define CN_STREAM_BYTES_MAX (16u << 20)

/* What a source has; borrowed until it is asked again or stopped. */
struct cn_stream_piece {
    const char *error; /* NULL: none */
    bool over;         /* it has come to its end */
    bool is_value;     /* the bytes are those of a value: a piece, or what was thrown */
    const uint8_t *bytes;
    size_t size;
};

struct cn_stream_source {
    /* 1: there is something to take; 0: cn_stream_ready() will say so; negative: a CAIRN_E..., and
     * that is the object's last error. */
    int (*ask)(void *data);
    void (*take)(void *data, struct cn_stream_piece *piece);
    /* T4; `reason` NULL: it has come to its end, or failed by itself. */
    void (*stop)(void *data, const char *reason);
};

struct cn_stream_sink {
    /* Takes as much as it likes off the front. 1: it wants more at once; 0: it will say so;
     * negative: it has gone (T4). */
    int (*give)(void *data, struct cn_buf *bytes);
    /* T4; `failure` NULL: all has been given. */
    void (*end)(void *data, const char *failure);
};

enum cn_stream_state {
    CN_STREAM_OPEN,
    CN_STREAM_ENDED,
    CN_STREAM_FAILED,
    CN_STREAM_CLOSED,
};

struct cn_soon;

struct cairn_stream {
    uintptr_t handle;    /* 0 once the class has ended it, or given it to stream_pipe() */
    struct cn_list link; /* in cn_compiled_outside.streams */
    cairn_object *self;
    bool writes;
    enum cn_stream_state state;
    struct cn_buf bytes;  /* waiting: for the sink, or, without a source, for the class */
    struct cn_soon *soon; /* T1, T2: something is due in a turn; NULL: nothing */
    /* One that is read. */
    const struct cn_stream_source *source; /* NULL: it is `bytes` */
    void *source_data;
    bool reading;           /* T1: `read` is under way */
    struct cn_pending read; /* with what the class has given it */
    cairn_done done;
    void *data;
    cairn_event *collects; /* a request's body, for the class; NULL: it is the class's own */
    void (*then)(cairn_event *event, const struct cn_err *err);
    /* One that is written. */
    const struct cn_stream_sink *sink; /* NULL: nobody has it yet, or any more */
    void *sink_data;
    bool given;    /* somebody has, or had it, or will */
    unsigned turn; /* of the object that gives it: cn_object_stream_begin() */
    bool wants;    /* the sink does: T2 */
    bool ended_by_class;
    cairn_stream *piped; /* what is passed on into it: forward.c; NULL: nothing */
    cairn_fired wanted;
    char *failure;           /* owned */
    struct cn_origin origin; /* of the event that it was made for, */
    uint64_t trace;          /* and its trace */
    /* One that is written, and lent: stream_lent.c. */
    struct cn_list lent_link; /* in cn_compiled_outside.lent */
    double number;            /* by which its readers know it */
    unsigned readers;         /* how often it is counted */
    struct cn_call *pull;     /* the question that waits: of an object; NULL: none */
    cairn_event *pull_event;  /* of a worker */
};

/* NULL: there are too many, and that is the object's last error. */
cairn_stream *cn_stream_new(cairn_object *self, bool writes);
/* One that is read from a source. NULL: as above, and the source is the caller's still. */
cairn_stream *cn_stream_from(cairn_object *self, const struct cn_stream_source *source, void *data);
/* The source has something, or has failed, or is at its end: outside of turns, */
void cn_stream_ready(cairn_stream *stream);
/* from anywhere: the loop does it, */
void cn_stream_ready_soon(cairn_stream *stream);
/* and within one of the object, but in no function of its class. */
void cn_stream_ready_here(cairn_stream *stream);
/* Asks the source for the class, or, with `collects`, for the server. */
int cn_stream_ask(cairn_stream *stream);
/* Nothing more is asked for. NULL: it is at its end. */
void cn_stream_stop(cairn_stream *stream, const char *reason);

/* Whether it can be given to somebody. */
static inline bool cn_stream_is_free(const cairn_stream *stream)
{
    return stream->writes && !stream->given && stream->state == CN_STREAM_OPEN;
}
/* From now on it has a sink. */
void cn_stream_sink(cairn_stream *stream, const struct cn_stream_sink *sink, void *data);
/* One that was lent to a call (stream_lent.c), and that the server takes itself: from now on it has
 * this sink. NULL: the value is no such stream of the object. */
cairn_stream *cn_stream_take_lent(cairn_object *self, const cairn_value *value,
                                  const struct cn_stream_sink *sink, void *data);
/* The sink wants something. From anywhere; it may be given some before this returns. */
void cn_stream_want(cairn_stream *stream);
/* The same within a turn of the object, but in no function of its class: what is to be told is told
 * now. */
void cn_stream_want_here(cairn_stream *stream);
/* Nobody reads it any more, or will: the class is told. */
void cn_stream_left(cairn_stream *stream);
/* One that nobody has any more is freed. */
void cn_stream_free(cairn_stream *stream);

/* Calls a function soon, from the loop. */
struct cn_soon *cn_soon_start(uv_loop_t *loop, void (*run)(void *data), void *data);
void cn_soon_stop(struct cn_soon *soon); /* NULL is fine; not from inside `run` */

#endif
