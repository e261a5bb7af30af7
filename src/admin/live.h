/* SPDX-License-Identifier: Apache-2.0 */
/* admin/live.h - WebSockets on the admin listener for those who listen to a worker (`wrangler
 * tail`): GET /client/v4/tails/SECRET, with the subprotocol trace-v1.
 *
 *   V1  The secret, which a token got for it (worker/taps.h), is the permission; it is good for one
 *       connection. When that token is revoked, nothing more is sent.
 *   V2  At most CN_LIVE_WAITING_MAX bytes wait for a client; the rest stays in its tap, where it is
 *       bounded too.
 *
 * Threads:   the admin thread's; taps call on_notify from any.
 * Ownership: embedded in the admin. */
#ifndef CN_ADMIN_LIVE_H
#define CN_ADMIN_LIVE_H
#include <stdbool.h>
#include <uv.h>

#include "base/list.h"

struct cn_control;
struct cn_http_request;
struct cn_taps;
struct cn_ws_lane;

#define CN_LIVE_PATH "/client/v4/tails/"
#define CN_LIVE_WAITING_MAX (256u << 10)

struct cn_live {
    const struct cn_control *control; /* borrowed: who may still listen */
    struct cn_taps *taps;             /* borrowed; NULL: nobody can listen */
    struct cn_ws_lane *ws;
    struct cn_list listeners; /* of struct cn_listener */
    uv_async_t async;
    uv_timer_t timer; /* while there are any */
};

void cn_live_init(struct cn_live *live, uv_loop_t *loop, const struct cn_control *control,
                  struct cn_taps *taps);
bool cn_live_is_path(const struct cn_http_request *http);
/* Answers with 101 or an error; the request is released. */
void cn_live_upgrade(struct cn_live *live, struct cn_http_request *http);
/* Cuts whoever listens; before the servers close. */
void cn_live_stop(struct cn_live *live);
/* After they have: closes the handles. */
void cn_live_close(struct cn_live *live);

#endif
