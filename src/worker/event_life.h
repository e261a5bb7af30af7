/* SPDX-License-Identifier: Apache-2.0 */
/* worker/event_life.h - the life of an event of a script (event.h), from its arrival to its end.
 *
 * The lane gives each HTTP request to cn_event_request(), and dispatch.c makes the events that come
 * from inside the server. From there on all live the same life: given to JavaScript, answered or
 * failed, left by the script, freed. The script's side of it comes back through bindings/http.c and
 * bindings/dispatch.c to the functions below.
 *
 * Threads: the lane's. Ownership: see event.h. */
#ifndef CN_WORKER_EVENT_LIFE_H
#define CN_WORKER_EVENT_LIFE_H
#include "base/err.h"
#include "worker/event.h"

struct cn_lane;
struct cn_http_request;
struct cn_http_server;

void cn_event_request(struct cn_http_server *server, struct cn_http_request *http);
/* The same without being held (hold.h): to the worker that it is for, as of now. */
void cn_event_route(struct cn_lane *lane, struct cn_http_request *http);
void cn_event_abort(struct cn_http_server *server, struct cn_http_request *http, int status);

/* The number by which logs and error answers name the request. */
void cn_event_id_text(uint64_t id, char text[17]);
/* Gives the event to JavaScript. The instance is ready. */
void cn_event_dispatch(struct cn_event *event);
/* The script threw, or its answer cannot be sent: 500 with a reference, details in the log;
 * a response that has begun is cut. `status` 503 for limits. */
void cn_event_fail(struct cn_event *event, int status, const char *reason, size_t reason_size);
/* The same of an error that C has made for a call (prelude/internal/fault.js): `told` is what it said
 * then; "": it is the script's own, whatever its text. */
void cn_event_fail_told(struct cn_event *event, int status, const char *reason, size_t reason_size,
                        const char *told);
/* The response is complete. */
void cn_event_answered(struct cn_event *event);
/* The script is finished with the event (its waitUntil() promises too). */
void cn_event_done(struct cn_event *event);
/* Frees it if it is both answered and done. */
void cn_event_settle(struct cn_event *event);
/* Once a second: ends what has run on for too long after its response. */
void cn_event_sweep(struct cn_lane *lane);

#endif
