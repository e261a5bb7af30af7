/* SPDX-License-Identifier: Apache-2.0 */
/* admin/job.h - one control call: a thread that works and a request that waits for it.
 *
 *     loop:    thread starts, body ──► incoming       take what is ready ──► http    joined, freed
 *     thread:  cn_control_run(), which reads incoming ──► ready (bounded) ──► ended
 *
 * J1  The thread touches the request never; the loop touches the call only before the
 *     thread starts, after it has ended, and what is said of the answer once something is ready.
 *     What they share is behind `lock`.
 * J2  At most CN_JOB_READY_MAX bytes wait for the loop: then the thread does.
 * J3  When CN_JOB_READY_MAX bytes of the body wait for the thread, the client does.
 * J4  An answer that has said its length is as long, or its connection is cut: a reader never takes
 *     a part for the whole, however soon the call gave up. So it is with one that was cut off on
 *     another node (relay.h, R3).
 * J5  What was read goes out only as long as who asked may read it: the rest is cut off.
 *
 * Threads:   as said; the functions here are the loop's.
 * Ownership: the job owns itself and releases its request at the end. */
#ifndef CN_ADMIN_JOB_H
#define CN_ADMIN_JOB_H
#include <pthread.h>
#include <stdbool.h>
#include <uv.h>

#include "admin/control.h"
#include "base/buf.h"
#include "base/list.h"
#include "base/mailbox.h"

struct cn_http_request;

#define CN_JOB_READY_MAX ((size_t)256 << 10)

struct cn_job {
    struct cn_control_call call; /* first: call->write finds the job */
    struct cn_mail mail;
    struct cn_mailbox *mailbox; /* of the loop */
    struct cn_list link;        /* in the admin's list */
    struct cn_http_request *http;
    struct cn_buf method, target, content_type, host, sent;
    uv_thread_t thread;
    bool begun, full;     /* the loop's */
    bool reading;         /* the loop's: a piece of the body will come */
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t room;  /* the loop has taken something, or the reader is gone */
    pthread_cond_t more;  /* the loop has brought something, or the client is gone */
    struct cn_buf ready, incoming;
    bool posted, ended, gone;
    bool body_whole;                                /* nothing follows `incoming` */
    void (*on_end)(struct cn_job *job, void *data); /* on the loop; frees nothing */
    void *data;
};

/* Runs the call, with the request's body as it comes, answers, releases the request, frees the job.
 */
void cn_job_start(const struct cn_control *control, struct cn_mailbox *mailbox,
                  struct cn_http_request *http, const struct cn_guard_who *who,
                  struct cn_list *jobs, void (*on_end)(struct cn_job *job, void *data), void *data);
/* The reader is gone, or the server stops: the call is told to hurry. */
void cn_job_cancel(struct cn_job *job);

/* Answers a request with a status and a small JSON error, and releases it. */
void cn_job_refuse(struct cn_http_request *http, int status, const char *code, const char *sentence,
                   unsigned retry_seconds);

#endif
