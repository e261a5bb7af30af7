/* SPDX-License-Identifier: Apache-2.0 */
/* worker/compiled_body.h - the bodies of a request from outside to a worker in C, and of its
 * response, as streams (module/stream.h).
 *
 *     client ──► net/server.h ──► source ──► stream_read()
 *     stream_write() ──► sink ──► net/server.h ──► client
 *
 * B1  Nothing is read of the client that was not asked for, and nothing is given to the server's
 *     queue while it is full: a slow side holds the other one back.
 * B2  A client that goes ends both: reads fail, and the writer is told.
 *
 * Threads:   the lane's.
 * Ownership: the source is its stream's; the event knows it as long as both are there. */
#ifndef CN_WORKER_COMPILED_BODY_H
#define CN_WORKER_COMPILED_BODY_H
#include "module/worker.h"

struct cn_compiled_body;
struct cn_event;
struct cn_http_head;

/* Of cn_compiled_question: opens the request's body. */
cairn_stream *cn_compiled_body_open(void *event, cairn_object *worker);
/* The event goes. */
void cn_compiled_body_gone(struct cn_compiled_body *body);

/* Begins a response whose body is a stream. Negative: nothing was sent, and the stream is the
 * caller's. */
int cn_compiled_body_respond(struct cn_event *event, const struct cn_http_head *head,
                             cairn_stream *stream);

#endif
