/* SPDX-License-Identifier: Apache-2.0 */
/* service/queue/queue.h - message queues (Queues).
 *
 * A queue is one object, named "0", of the namespace "$queue/NAME". Consumers ask for
 * messages and are answered when there are enough of them or the oldest has waited long enough;
 * then they say what became of each:
 *
 *     SEND ──► ready ──RECEIVE──► leased ──SETTLE: ack──► gone
 *       │        ▲                  │ retry, lease over
 *       └► delayed ◄────────────────┘       └──► too often: dead letter queue, or dropped
 *          (until due)
 *
 * Q1  A message whose send was acknowledged is on disk, and stays until it is acknowledged, sent on
 *     to the dead letter queue (durably), expired, purged, or dropped after its last retry.
 * Q2  A lease is only in memory: after a crash everything not settled is delivered again, with the
 *     attempts it had. So a message is delivered at least once, and its attempts are those that
 *     ended in a retry, plus one. Who pulled it before the crash and acknowledges it afterwards is
 *     heard, unless it has been delivered again by then: its row and its attempts are the same, and
 *     a message that is retried gets another row.
 *     The number of a lease is never given again, by whichever node has the queue: a verdict that
 *     comes late is for no other batch.
 * Q3  `ready` is a table in order of its row ids with no further index: sending appends at its end,
 *     receiving reads behind a cursor, acknowledging deletes a run of rows at its beginning. What
 *     each of them costs does not depend on how many messages wait
 *     (docs/understand/performance.md).
 * Q4  A message is acknowledged by a verdict that names it, or stands at its place in its lease.
 *     No verdict, too few or too many acknowledge nothing.
 *
 * Threads and ownership: service/service.h. */
#ifndef CN_SERVICE_QUEUE_QUEUE_H
#define CN_SERVICE_QUEUE_QUEUE_H
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/list.h"
#include "service/def.h"
#include "service/service.h"

#define CN_QUEUE_OBJECT "0"
#define CN_QUEUE_BATCH_COUNT_MAX 100
#define CN_QUEUE_BATCH_SIZE_MAX 256000
#define CN_QUEUE_MESSAGE_SIZE_MAX 128000
#define CN_QUEUE_DELAY_MAX_S 86400
#define CN_QUEUE_RETENTION_DEFAULT_S (4 * 86400)
#define CN_QUEUE_ID_HEX 32
#define CN_QUEUE_LEASE_MS (15 * 60 * 1000) /* of a worker: its wall time */

enum cn_queue_op {
    CN_QUEUE_SEND,
    CN_QUEUE_RECEIVE,
    CN_QUEUE_SETTLE,
    CN_QUEUE_ACK, /* by lease ids, from outside */
    CN_QUEUE_METRICS,
    CN_QUEUE_PURGE,
    CN_QUEUE_CONFIGURE, /* paused and retention_s; -1: as they are */
};

enum cn_queue_type { CN_QUEUE_JSON, CN_QUEUE_TEXT, CN_QUEUE_BYTES, CN_QUEUE_V8 };
#define CN_QUEUE_TYPES 4

/* A message on its way in or out. */
struct cn_queue_message {
    size_t offset, size; /* of its body in call->bodies */
    enum cn_queue_type type;
    int64_t delay_s; /* in: before it is delivered */
    int64_t row;     /* out: with `attempts` it is the lease of this delivery */
    int64_t sent_ms;
    uint32_t attempts; /* from 1 */
    char id[CN_QUEUE_ID_HEX + 1];
};

/* What becomes of a message. */
struct cn_queue_verdict {
    bool retry;
    int64_t delay_s; /* -1: the consumer's own */
    int64_t row;     /* ACK: which; with its attempts */
    uint32_t attempts;
    bool good; /* ACK answers: it was out, or had been before a restart */
};

/* The consumer's settings, which say what a retry means. */
struct cn_queue_policy {
    unsigned max_retries;
    int64_t retry_delay_s;
    struct cn_namespace *dead_letters; /* NULL: none */
};

struct cn_queue_metrics {
    uint64_t count, bytes; /* of all messages that are not gone, leased and delayed ones too */
    int64_t oldest_ms;     /* 0: there are none */
    uint64_t leased, dropped;
    bool paused;
    int64_t retention_s;
};

struct cn_queue_call {
    struct cn_service_call base; /* call.op is an enum cn_queue_op */
    struct cn_list link;         /* the object's */
    /* Send asks with them, receive answers with them. */
    struct cn_queue_message *messages; /* owned */
    size_t count;
    struct cn_buf bodies;
    /* Receive. */
    size_t count_max;
    unsigned timeout_ms; /* 0: whatever is there, at once */
    bool waits;          /* until there is something; false: an empty answer */
    bool paused_too;     /* take from a paused queue as well: administration */
    unsigned lease_ms;
    struct cn_queue_policy policy; /* settle and ack take it too */
    uint64_t lease;                /* answered; what settle names */
    /* Settle: one for each message of the lease, unless `release`. Ack: any. */
    struct cn_queue_verdict *verdicts; /* owned */
    size_t verdict_count;
    bool release;   /* settle: it was not tried: deliver it again, attempts as they are */
    size_t settled; /* ack: how many leases were still good */
    /* Settle answers: there is no such lease, or no verdict was given; ack says what became of the
     * messages. */
    bool unknown;
    /* Configure. */
    int paused;          /* -1, 0, 1 */
    int64_t retention_s; /* -1 */
    /* All. */
    struct cn_queue_metrics metrics;
};

extern const struct cn_class cn_queue_class;

/* The descriptor (service/def.h) and its parts. */
extern const struct cn_service_def cn_service_queue;
extern const struct cn_service_config cn_queue_config;
extern const struct cn_js_natives cn_queue_natives;
extern const struct cn_service_face cn_queue_face;
extern const struct cn_control_routes cn_queue_routes;
extern const struct cn_command cn_queue_command;
extern const struct cn_service_wire cn_queue_wire;
void cn_queue_metrics(struct cn_metrics_sink *sink, const struct cn_metrics_sources *sources);

/* Looking at messages without taking them, at the queue's database (queue_peek.c): first those that
 * are ready or out, in the order of delivery, then delayed ones. */
struct cn_queue_peek {
    int64_t after; /* row of the last one seen; 0: from the first */
    bool delayed;  /* that one was a delayed one */
    size_t limit;
    size_t size_max; /* of bodies: no further message once it is reached */
    bool more;       /* answered: the limit was reached */
    void *data;
    /* `due_ms` is 0 unless it is delayed. */
    void (*each)(void *data, const struct cn_queue_message *message, const void *body,
                 int64_t due_ms);
};
int cn_queue_peek(struct cn_namespace *ns, struct cn_database *db, struct cn_queue_peek *peek,
                  struct cn_err *err);
/* The id that consumers see of a message whose first row was `origin`. */
void cn_queue_public_id(const struct cn_namespace *ns, int64_t origin,
                        char id[CN_QUEUE_ID_HEX + 1]);

struct cn_queue_call *cn_queue_call_new(struct cn_namespace *ns, enum cn_queue_op op);
void cn_queue_call_fini(struct cn_service_call *call); /* for cn_queue_wire */
/* Adds a message to a send; the body is copied. */
void cn_queue_add(struct cn_queue_call *call, const void *body, size_t size,
                  enum cn_queue_type type, int64_t delay_s);

#endif
