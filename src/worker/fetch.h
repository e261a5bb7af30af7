/* SPDX-License-Identifier: Apache-2.0 */
/* worker/fetch.h - the life of one HTTP request as an event of a script.
 *
 * The lane gives each arriving request to cn_fetch_request(); the script's side
 * of the event comes back through bindings/http.c and the functions below.
 *
 * Threads: the lane's. Ownership: see event.h. */
#ifndef CN_WORKER_FETCH_H
#define CN_WORKER_FETCH_H
#include "base/err.h"
#include "worker/event.h"

struct cn_lane;
struct cn_http_server;

void cn_fetch_request(struct cn_http_server *server, struct cn_http_request *http);
void cn_fetch_abort(struct cn_http_server *server, struct cn_http_request *http, int status);

/* The number by which logs and error answers name the request. */
void cn_fetch_id_text(uint64_t id, char text[17]);
/* Gives the event to JavaScript. The instance is ready. */
void cn_fetch_dispatch(struct cn_event *event);
/* The script threw, or its answer cannot be sent: 500 with a reference, details in the log;
 * a response that has begun is cut. `status` 503 for limits. */
void cn_fetch_fail(struct cn_event *event, int status, const char *reason, size_t reason_size);
/* The response is complete. */
void cn_fetch_answered(struct cn_event *event);
/* The script is finished with the event (its waitUntil() promises too). */
void cn_fetch_done(struct cn_event *event);
/* Frees it if it is both answered and done. */
void cn_fetch_settle(struct cn_event *event);
/* Once a second: ends what has run on for too long after its response. */
void cn_fetch_sweep(struct cn_lane *lane);

#endif
