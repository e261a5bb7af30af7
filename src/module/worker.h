/* SPDX-License-Identifier: Apache-2.0 */
/* module/worker.h - workers written in C (include/cairn.h), as the rest of the server knows them.
 *
 * A class that `[cairn] worker` names gets the events of its script that it has functions for. It
 * has one instance on each lane: a cairn_object without an object, so without storage and gates.
 *
 *     an event ──► cn_compiled_ask() ──► a function of the class ──► ended()
 *                                                 └── CAIRN_LATER ──────┘
 *
 * W1  Functions of a worker run outside of turns: nothing of JavaScript or of an object is on the
 *     stack. What they send goes on when the outermost one has returned.
 * W2  ended() runs once for each event, perhaps before cn_compiled_ask() returns, unless
 *     whoever asked has gone (cn_compiled_forget()).
 * W3  An event that nobody asks for any more stays until the class answers it, or the instance
 *     goes: the class may still have its pointer.
 * W4  A worker has CN_COMPILED_EVENTS_MAX events, forgotten ones too.
 *
 * Threads:   the lane's.
 * Ownership: the instance of the script (worker/instance.h) owns it. */
#ifndef CN_MODULE_WORKER_H
#define CN_MODULE_WORKER_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/origin.h"
#include "include/cairn.h"

struct cn_compiled_answer;
struct cn_compiled_tracer;
struct cn_client;
struct cn_counter;
struct cn_desk;
struct cn_http_request;
struct cn_module_class;
struct cn_object;
struct cn_object_lane;
struct cn_rand;
struct cn_ws_end;

#define CN_COMPILED_EVENTS_MAX (1u << 20)

/* An event for another worker: of a binding. Who sends owns it, until one of the functions. */
struct cn_compiled_dispatch {
    char *worker, *entrypoint; /* owned; NULL: the default one */
    char *method;              /* owned; NULL: a request */
    uint8_t *bytes, *props;    /* owned; props NULL: none */
    size_t size, props_size;
    struct cn_origin origin;
    /* `err` NULL: well. */
    void (*done)(struct cn_compiled_dispatch *dispatch, const struct cn_err *err, unsigned faults,
                 const uint8_t *bytes, size_t size);
    void (*lost)(
        struct cn_compiled_dispatch *dispatch); /* the sender was reset, or its lane ends */
};

/* A lane, as code in C on it sees it. */
struct cn_compiled_host {
    unsigned index; /* the lane's */
    struct cn_rand *rand;
    uv_loop_t *loop;
    struct cn_desk *desk;
    struct cn_object_lane *objects; /* NULL: there are none */
    struct cn_client *client;       /* NULL: there is no network */
    /* Sends it, when the gate of the object opens; NULL: at once. NULL: there are no workers. */
    void (*dispatch)(void *data, struct cn_compiled_dispatch *dispatch, struct cn_object *gate);
    const struct cn_compiled_tracer *tracer; /* NULL: nobody watches */
    /* The end of a WebSocket by its number; NULL: there is none any more. */
    struct cn_ws_end *(*find_socket)(void *data, uint64_t number);
    /* The outermost function of a worker has returned. */
    void (*turn_ended)(void *data);
    void *data;
};

enum cn_compiled_kind {
    CN_COMPILED_CALL,
    CN_COMPILED_FETCH,
    CN_COMPILED_ALARM,
    CN_COMPILED_SCHEDULED,
    CN_COMPILED_QUEUE,
    CN_COMPILED_TARGET, /* a call to a stream that it writes: no function of the class's own */
};

/* What a worker is asked. */
struct cn_compiled_question {
    enum cn_compiled_kind kind;
    const char *method; /* of a call; borrowed as long as somebody asks */
    /* Given away. Of a request from outside the body (NULL: it has none); of one from inside and of
     * a call a value; of the others what background/ has packed. */
    uint8_t *bytes;
    size_t size;
    const struct cn_http_request *http; /* of one from outside; as long as somebody asks */
    const char *address;                /* of its client, "" if it is not known; copied */
    /* Of one whose body has not come, instead of `bytes`: opens it, while somebody asks. */
    cairn_stream *(*open_body)(void *data, cairn_object *worker);
    struct cn_origin origin;
    uint64_t trace; /* of the host: tracer.h; 0: nobody watches */
    void (*ended)(void *data, struct cn_compiled_answer *answer);
    void *data; /* not NULL */
};

/* How an event has ended. Borrowed while ended() runs, which may take buffers out of it. */
struct cn_compiled_answer {
    const char *error_type, *error; /* NULL: well */
    uint8_t *bytes;                 /* owned: a value, what was thrown, verdicts; NULL: none */
    size_t size;
    int status;                   /* of a request from outside */
    const struct cn_buf *headers; /* "name\0value\0" ... */
    struct cn_buf *body;
    /* Instead of the body, one that ended() gives a sink (module/stream.h), and sets to NULL, or
     * else is told that nobody wants it; NULL: none. */
    cairn_stream *stream;
    const char *socket; /* the address of a WebSocket for the client; NULL: none */
};

/* The instance of a worker's class on a lane; create() runs. `ticks` is added what its functions
 * take. NULL: it has failed. */
cairn_object *cn_compiled_worker_new(const struct cn_module_class *class_,
                                     const struct cn_compiled_host *host, uint32_t serial,
                                     struct cn_counter *ticks, struct cn_err *err);
/* Nobody asks it any more; what it has under way finds nobody. */
void cn_compiled_worker_free(cairn_object *worker);
/* Whether the class has a function for such events. */
bool cn_compiled_takes(const struct cn_module_class *class_, enum cn_compiled_kind kind);
/* Whether it gets requests whose bodies have not come. */
bool cn_compiled_streams(const struct cn_module_class *class_);
/* Whether a call of the kind CN_COMPILED_TARGET is for it. */
bool cn_compiled_has_lent(cairn_object *worker, const char *method, const uint8_t *bytes,
                          size_t size);
/* Whether it waits for anything that it has begun. */
bool cn_compiled_worker_waits(const cairn_object *worker);

/* *place is the event for cn_compiled_forget(), set before its function runs: ended() clears it. */
void cn_compiled_ask(cairn_object *worker, const struct cn_compiled_question *question,
                     cairn_event **place);
/* W3, but for one of the kind CN_COMPILED_TARGET, which the class does not know: it is gone. */
void cn_compiled_forget(cairn_event *event);

#endif
