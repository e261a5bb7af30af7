/* SPDX-License-Identifier: Apache-2.0 */
/* worker/event.h - events under way on a lane, known to JavaScript by a number.
 *
 * An event has come by HTTP (event_life.h) or from inside the server (dispatch.h). It exists from
 * the request's arrival until both its response is complete (or its client gone) and the script has
 * said that it is done with it, waitUntil() included. JavaScript holds a number (base/handles.h),
 * which finds nothing once the event is over.
 *
 *     RUNNING ──► STREAMING ──► ANSWERED      down: the script has said that it is done
 *        │  └──────────┼────────────▲ │
 *        ▼             ▼              ▼       right: its response begins, and is complete
 *      LEFT ────► LEFT_STREAMING ──► OVER ──► freed
 *        └─────────────────────────────▲
 *
 * E1  An event that is OVER is freed before anything else runs. Until then its number finds it.
 * E2  A response is begun once and completed once; `http` is there exactly until it is OVER, if the
 *     event came so.
 * E3  What feeds the response beside the script (`source`) is told when the event goes before it.
 * E4  One at a time reads the request's body: a callback (`read`), or the pipe that is fed by
 *     nothing else. Nobody reads on in one whose beginning was given up (`body_lost`).
 *
 * Threads:   the lane's.
 * Ownership: its instance's list; the HTTP request is released with the event. */
#ifndef CN_WORKER_EVENT_H
#define CN_WORKER_EVENT_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/list.h"
#include "js/context.h"

struct cairn_event;
struct cn_compiled_body;
struct cn_dispatch;
struct cn_http_request;
struct cn_instance;
struct cn_lane;

#define CN_EVENTS_MAX (1u << 20) /* of a lane */

enum cn_event_state {
    CN_EVENT_RUNNING,        /* no response yet */
    CN_EVENT_STREAMING,      /* the response has begun */
    CN_EVENT_ANSWERED,       /* the response is complete, or there is nobody to answer */
    CN_EVENT_LEFT,           /* as RUNNING, and */
    CN_EVENT_LEFT_STREAMING, /* as STREAMING, but the script is finished with it */
    CN_EVENT_OVER,
    CN_EVENT_STATES
};

enum cn_collect { CN_COLLECT_NOTHING, CN_COLLECT_BYTES, CN_COLLECT_TEXT };

struct cn_event {
    uint64_t handle;
    struct cn_instance *instance;
    struct cn_http_request *http; /* NULL: it did not come by HTTP, */
    struct cn_dispatch *dispatch; /* but so; NULL once that is answered */
    struct cn_list link;          /* in instance->events */
    enum cn_event_state state;
    int status;           /* of the response; 0: none has begun */
    uint64_t id;          /* of the request, in logs and error answers: random, or its caller's */
    uint64_t started_ns;  /* uv_hrtime(); 0: it did not come by HTTP */
    uint64_t born_turn;   /* vm->turn_count when it came */
    uint64_t trace;       /* handle of its trace (trace.h); 0: none */
    uint32_t depth;       /* how many calls from script to script it is in */
    bool unsampled;       /* its caller wants no trace kept */
    const char *outcome;  /* for the trace, if it did not end well; static */
    uint64_t answered_ms; /* loop time when the response was complete */
    size_t gathered;      /* of `early`: counted in the account */
    struct cn_buf early;  /* body bytes taken from the server before they were asked for */
    /* While its body is gathered in `early`: memory is short, answer 503. NULL: it is not. */
    void (*give_up)(struct cn_event *event);
    bool body_lost;                    /* E4 */
    enum cn_collect collect;           /* the pending read wants all of the body */
    struct cn_js_pin read;             /* callback of a pending body read */
    struct cn_js_pin drain;            /* callback of a blocked write */
    struct cn_js_pin pipe;             /* callback of a request body that is its own response */
    void *source;                      /* what feeds the pipe, if it is not the request; its own */
    void (*source_gone)(void *source); /* E3 */
    struct cn_js_pin abort;            /* callback for the request's AbortSignal */
    bool in_c;                         /* it is for a worker in C: worker/compiled.h */
    struct cairn_event *compiled;      /* what that one has of it; NULL: not yet, or no more */
    struct cn_compiled_body *body;     /* who reads its body there: compiled_body.h; NULL: nobody */
};

/* The outcome of one whose client is gone. */
extern const char cn_event_canceled[];

static inline bool cn_event_is_canceled(const struct cn_event *event)
{
    return event->outcome == cn_event_canceled;
}
/* E4: somebody reads the request's body. */
static inline bool cn_event_is_read(const struct cn_event *event)
{
    return event->read.context || (event->pipe.context && !event->source);
}
/* No response has begun. */
static inline bool cn_event_is_running(const struct cn_event *event)
{
    return event->state == CN_EVENT_RUNNING || event->state == CN_EVENT_LEFT;
}
/* It has, and is not complete. */
static inline bool cn_event_is_streaming(const struct cn_event *event)
{
    return event->state == CN_EVENT_STREAMING || event->state == CN_EVENT_LEFT_STREAMING;
}
static inline bool cn_event_is_answered(const struct cn_event *event)
{
    return event->state == CN_EVENT_ANSWERED || event->state == CN_EVENT_OVER;
}

/* Of its turns. */
static inline struct cn_js_cause cn_event_cause(const struct cn_event *event)
{
    return (struct cn_js_cause){event->id, event->trace, event->handle, event->depth,
                                event->unsampled};
}

/* One of the instance's, in its list and its lane's table. NULL: CN_EVENTS_MAX are under way. */
struct cn_event *cn_event_new(struct cn_instance *instance);
/* NULL if it is over. */
struct cn_event *cn_event_find(const struct cn_lane *lane, double handle);
/* Its response begins; is complete; the script is finished with it. What has been so already stays.
 * One that is OVER by it is the caller's to free (event_life.h does). */
void cn_event_begin(struct cn_event *event);
void cn_event_complete(struct cn_event *event);
void cn_event_leave(struct cn_event *event);
/* What was gathered of its body is counted no longer: it was given on, or goes. */
void cn_event_gathered(struct cn_event *event);
void cn_event_free(struct cn_event *event);

#endif
