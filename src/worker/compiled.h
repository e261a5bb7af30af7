/* SPDX-License-Identifier: Apache-2.0 */
/* worker/compiled.h - events of a script whose worker is written in C (module/worker.h).
 *
 * A script with a `front` has an instance of that class beside its JavaScript. Events for which the
 * class has a function go there, and no JavaScript runs for them; they live the life of all events
 * (event.h), so they are counted, traced, drained and reloaded alike.
 *
 *     request ──► its body is gathered ──► cn_compiled_ask() ──► answered ──► freed
 *                         └── the client goes, or it is too large ──▲
 *
 * F1  A request is given to a class with fetch() when all of its body is there; a body has
 *     CN_COMPILED_BODY_MAX bytes, more is refused with 413. What is gathered counts as memory. One
 *     with fetch_stream() gets it when the head is there (compiled_body.h).
 * F2  When the client has gone, the event goes on: the class does not know, and its answer is
 *     dropped. It is given up as one of JavaScript is (cn_event_sweep()).
 * F3  An instance that is not current any more goes when its events have, and what its class has
 *     under way besides has ended, or 30 s have passed.
 *
 * Threads:   the lane's.
 * Ownership: the instance's. */
#ifndef CN_WORKER_COMPILED_H
#define CN_WORKER_COMPILED_H
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct cn_event;
struct cn_instance;
struct cn_script;
struct cn_ws_end;

#define CN_COMPILED_BODY_MAX (16u << 20)

/* Makes the instance of the script's class. */
int cn_compiled_start(struct cn_instance *instance, struct cn_err *err);
/* F3 */
bool cn_compiled_lingers(const struct cn_instance *instance);

/* Whether its fetch() is one in C. */
bool cn_compiled_fetches(const struct cn_script *script);
bool cn_compiled_takes_requests(const struct cn_instance *instance);
void cn_compiled_request(struct cn_event *event);
/* Its client has gone. */
void cn_compiled_aborted(struct cn_event *event);

struct cn_compiled_dispatch;
struct cn_object;
/* Of cn_compiled_host. */
struct cn_ws_end *cn_compiled_find_socket(void *lane, uint64_t number);
/* The same: from code in C to another worker. */
void cn_compiled_send(void *lane, struct cn_compiled_dispatch *dispatch, struct cn_object *gate);

bool cn_compiled_takes_dispatch(const struct cn_event *event);
void cn_compiled_dispatch(struct cn_event *event);

#endif
