/* SPDX-License-Identifier: Apache-2.0 */
/* admin/cdp.h - the words of the Chrome DevTools Protocol that the inspector speaks, as texts: what
 * a worker logged or threw becomes an event. No sockets, no state. */
#ifndef CN_ADMIN_CDP_H
#define CN_ADMIN_CDP_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/diag.h"

/* A message of a worker. */
struct cn_cdp_note {
    int64_t time_ms;
    enum cn_diag_level level;
    bool exception; /* that nobody caught */
    const char *worker;
    unsigned context; /* the number of the worker's execution context */
    const char *text; /* of an exception: its stack, with the places of the project's files */
    size_t size;
};

/* Appends Runtime.consoleAPICalled, or Runtime.exceptionThrown. */
void cn_cdp_append_note(struct cn_buf *out, const struct cn_cdp_note *note);
/* The address under which DevTools knows a file of a worker: file:///WORKER/PATH. */
void cn_cdp_append_url(struct cn_buf *out, const char *worker, const char *path, size_t size);

/* Why a method cannot be had here; NULL: nothing is known of it. */
const char *cn_cdp_refusal(const char *method);
/* Whether a method is answered with an empty result: a wish that changes nothing here. */
bool cn_cdp_is_wish(const char *method);

#endif
