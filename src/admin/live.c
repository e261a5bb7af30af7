/* SPDX-License-Identifier: Apache-2.0 */
#include "admin/live.h"

#include <stdio.h>
#include <string.h>

#include "admin/control.h"
#include "admin/job.h"
#include "base/assert.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/loop.h"
#include "base/mem.h"
#include "net/server.h"
#include "net/ws_conn.h"
#include "net/ws_end.h"
#include "worker/taps.h"

#define TICK_MS 500

/* A client. Its end is ours; the other one is the connection's. */
struct cn_listener {
    struct cn_list link;
    struct cn_live *live;
    struct cn_tap *tap;
    struct cn_ws_end *end, *wire;
    bool busy, over; /* it has ended while something was done with it */
};

static void end_listener(struct cn_listener *listener)
{
    struct cn_live *live = listener->live;
    cn_list_remove(&listener->link);
    cn_taps_detach(live->taps, listener->tap);
    cn_ws_end_release(listener->end);
    if (cn_list_empty(&live->listeners))
        uv_timer_stop(&live->timer);
    cn_free(listener);
}

static void close_listener(struct cn_listener *listener)
{
    static const char reason[] = "the tail has ended";
    struct cn_ws_close close = {
        .code = CN_WS_NORMAL, .clean = true, .reason = reason, .reason_size = sizeof(reason) - 1};
    listener->busy = true; /* the connection may end with it */
    cn_ws_end_close(listener->end, &close);
    end_listener(listener);
}

/* The client has gone, or closed. */
static void finish(struct cn_listener *listener)
{
    if (listener->busy)
        listener->over = true;
    else
        close_listener(listener);
}

/* What a client sends ({"debug":false}) changes nothing; its close ends it. */
static void on_ready(struct cn_ws_end *end)
{
    struct cn_listener *listener = end->owner;
    struct cn_ws_item *item;
    bool over = false;
    while ((item = cn_ws_end_take(end))) {
        over |= !item->message;
        cn_ws_item_free(item);
    }
    if (over)
        finish(listener);
}

static void on_gone(struct cn_ws_end *end)
{
    finish(end->owner);
}

static const struct cn_ws_end_ops ops = {on_ready, NULL, on_gone};

/* V1 */
static bool may_listen(const struct cn_live *live, const struct cn_tap *tap)
{
    struct cn_guard_who who = {.scopes = CN_SCOPE_READ};
    if (!tap->by[0] || !live->control->is_good)
        return true;
    memcpy(who.id, tap->by, sizeof(who.id));
    return live->control->is_good(live->control->more_data, &who);
}

/* V2. False: it is over. */
static bool give_pending(struct cn_listener *listener)
{
    struct cn_live *live = listener->live;
    int64_t now = cn_clock_wall_ms(cn_clock_system());
    int rc = 1;
    while (rc > 0 && !listener->over && cn_ws_waiting(listener->wire) < CN_LIVE_WAITING_MAX) {
        struct cn_buf text = {0};
        rc = cn_tap_take(live->taps, listener->tap, now, &text);
        struct cn_ws_message *message =
            rc > 0 ? cn_ws_message_new(true, text.data, text.size) : NULL;
        if (message)
            (void)cn_ws_end_send(listener->end, message); /* or its close comes to us */
        cn_ws_message_unref(message);
        cn_buf_fini(&text);
    }
    return rc >= 0 && !listener->over;
}

/* The listener may be gone when it returns. */
static void give(struct cn_listener *listener)
{
    listener->busy = true;
    bool lasts = may_listen(listener->live, listener->tap) && give_pending(listener);
    listener->busy = false;
    if (!lasts)
        close_listener(listener);
}

static void give_all(struct cn_live *live)
{
    CN_LIST_FOREACH(&live->listeners, node)
    give(CN_CONTAINER_OF(node, struct cn_listener, link));
}

static void on_async(uv_async_t *async)
{
    give_all(async->data);
}

static void on_timer(uv_timer_t *timer)
{
    give_all(timer->data);
}

/* On any thread. */
static void on_notify(void *data)
{
    struct cn_live *live = data;
    uv_async_send(&live->async);
}

void cn_live_init(struct cn_live *live, uv_loop_t *loop, const struct cn_control *control,
                  struct cn_taps *taps)
{
    cn_loop_assert_owner(loop);
    struct cn_ws_options options = {.message_size_max = 64u << 10, .any_mask = true};
    *live = (struct cn_live){.control = control, .taps = taps};
    cn_list_init(&live->listeners);
    live->ws = cn_ws_lane_new(loop, &options);
    int rc = uv_async_init(loop, &live->async, on_async);
    CN_ASSERT(rc == 0);
    rc = uv_timer_init(loop, &live->timer);
    CN_ASSERT(rc == 0);
    live->async.data = live->timer.data = live;
    if (taps)
        cn_taps_set_notify(taps, on_notify, live);
}

bool cn_live_is_path(const struct cn_http_request *http)
{
    static const char *const pattern[CN_TARGET_SEGMENT_MAX] = {"client", "v4", "tails", "*"};
    return cn_target_fits(http->target.data, http->target.size, pattern);
}

static struct cn_tap *find_tap(struct cn_live *live, struct cn_http_request *http)
{
    size_t size;
    const char *secret = cn_target_segment(http->target.data, http->target.size, 3, &size);
    if (!live->taps)
        return NULL;
    return cn_taps_attach(live->taps, secret, size, cn_http_request_remote(http, NULL),
                          cn_clock_wall_ms(cn_clock_system()));
}

void cn_live_upgrade(struct cn_live *live, struct cn_http_request *http)
{
    static const struct cn_http_header protocol = {"sec-websocket-protocol", "trace-v1", 22, 8};
    if (!http->upgrade)
        return cn_job_refuse(http, 426, "upgrade", "this is a WebSocket", 0);
    struct cn_tap *tap = find_tap(live, http);
    if (!tap)
        return cn_job_refuse(http, 404, "not_found", "there is no such tail, or it is read", 0);
    struct cn_listener *listener = CN_NEW(struct cn_listener);
    *listener = (struct cn_listener){.live = live, .tap = tap};
    cn_ws_pair_new(&listener->end, &listener->wire);
    int rc = cn_ws_upgrade(live->ws, http, &protocol, 1, listener->wire);
    if (rc != 0) {
        cn_ws_end_release(listener->end);
        cn_ws_end_release(listener->wire);
        cn_taps_detach(live->taps, tap);
        cn_free(listener);
        return cn_job_refuse(http, rc > 0 ? rc : 400, "invalid", "no WebSocket was asked for", 0);
    }
    cn_http_request_release(http);
    if (cn_list_empty(&live->listeners))
        uv_timer_start(&live->timer, on_timer, TICK_MS, TICK_MS);
    cn_list_push_back(&live->listeners, &listener->link);
    cn_ws_end_claim(listener->end, &ops, listener);
    uv_async_send(&live->async); /* what came meanwhile */
}

void cn_live_stop(struct cn_live *live)
{
    if (live->taps)
        cn_taps_set_notify(live->taps, NULL, NULL);
    CN_LIST_FOREACH(&live->listeners, node)
    close_listener(CN_CONTAINER_OF(node, struct cn_listener, link));
    cn_ws_lane_abort(live->ws);
}

void cn_live_close(struct cn_live *live)
{
    CN_ASSERT(cn_list_empty(&live->listeners));
    cn_ws_lane_free(live->ws);
    uv_close((uv_handle_t *)&live->async, NULL);
    uv_close((uv_handle_t *)&live->timer, NULL);
}
