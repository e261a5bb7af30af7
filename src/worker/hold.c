/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/hold.h"

#include <string.h>

#include "base/assert.h"
#include "base/diag.h"
#include "base/list.h"
#include "base/loop.h"
#include "base/mem.h"
#include "net/server.h"
#include "worker/error_page.h"
#include "worker/event_life.h"
#include "worker/lane.h"

struct held {
    struct cn_list link; /* in lane->held, by ticket */
    struct cn_http_request *http;
    uint64_t ticket;
    uint64_t since_ms; /* loop time */
};

static void on_abort(struct cn_http_request *http, int status)
{
    (void)status;
    struct held *held = http->data;
    cn_list_remove(&held->link);
    cn_free(held);
    http->data = NULL;
    cn_http_request_release(http);
}

bool cn_hold_request(struct cn_lane *lane, struct cn_http_request *http)
{
    cn_loop_assert_owner(&lane->loop);
    struct cn_hold *hold = lane->options.hold;
    if (!hold)
        return false;
    struct held *held = CN_NEW(struct held);
    held->http = http;
    held->since_ms = uv_now(&lane->loop);
    held->ticket = atomic_fetch_add(&hold->drawn, 1) + 1; /* K1: before the look */
    http->data = held;
    http->on_abort = on_abort;
    cn_list_push_back(&lane->held, &held->link);
    if (lane->draining || lane->stopping)
        cn_hold_end(lane);
    else
        hold->ask(hold);
    return true;
}

/* The request is no longer held. */
static struct cn_http_request *let_go(struct held *held)
{
    struct cn_http_request *http = held->http;
    cn_list_remove(&held->link);
    cn_free(held);
    http->data = NULL;
    http->on_abort = NULL;
    return http;
}

static void refuse(struct held *held, int status, const char *problem)
{
    struct cn_http_request *http = let_go(held);
    cn_info("%.*s %.*s %d", (int)http->method_text.size, http->method_text.data,
            (int)http->target.size, http->target.data, status);
    cn_error_page(http, status, NULL, problem, strlen(problem));
    cn_http_request_release(http);
}

void cn_hold_release(struct cn_lane *lane, uint64_t last, const char *problem)
{
    cn_loop_assert_owner(&lane->loop);
    while (!cn_list_empty(&lane->held)) {
        struct held *held = CN_CONTAINER_OF(lane->held.next, struct held, link);
        if (held->ticket > last)
            return; /* K1: it came after the look */
        if (problem)
            refuse(held, 500, problem);
        else
            cn_event_route(lane, let_go(held));
    }
}

void cn_hold_sweep(struct cn_lane *lane)
{
    uint64_t now_ms = uv_now(&lane->loop);
    while (!cn_list_empty(&lane->held)) {
        struct held *held = CN_CONTAINER_OF(lane->held.next, struct held, link);
        if (now_ms - held->since_ms < CN_HOLD_MS_MAX)
            return;
        refuse(held, 503,
               "The project is still being built\nThe request has waited for a minute. "
               "Send it again when the terminal says that the build is done.");
    }
}

void cn_hold_end(struct cn_lane *lane)
{
    while (!cn_list_empty(&lane->held))
        refuse(CN_CONTAINER_OF(lane->held.next, struct held, link), 503, "The server is stopping");
}
