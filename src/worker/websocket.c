/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/websocket.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/loop.h"
#include "base/mem.h"
#include "js/value.h"
#include "net/ws_conn.h"
#include "object/socket.h"
#include "worker/event.h"
#include "worker/event_life.h"
#include "worker/instance.h"
#include "worker/lane.h"
#include "worker/runtime.h"
#include "worker/ws_bridge.h"
#include "worker/ws_far.h"
#include "worker/ws_move.h"

#define TRANSIT_MS 60000

/* An end that somebody should have claimed by a certain time. */
struct transit {
    struct cn_list link;
    uint64_t handle;
    uint64_t deadline_ms;
};

static void on_spin(uv_idle_t *spin);

/* --- numbers ------------------------------------------------------------------------------- */

static void on_released(struct cn_ws_end *end, void *data)
{
    struct cn_lane *lane = data;
    cn_handles_remove(&lane->ends, end->handle);
}

void cn_websocket_keep(struct cn_instance *instance, struct cn_ws_end *end)
{
    cn_loop_assert_owner(&instance->lane->loop);
    CN_ASSERT(end->state == CN_WS_END_NEW && end->handle);
    cn_list_push_back(&instance->ends, &end->keeper);
}

uint64_t cn_websocket_number(struct cn_lane *lane, struct cn_ws_end *end)
{
    cn_loop_assert_owner(&lane->loop);
    CN_ASSERT(!end->handle);
    end->handle = cn_handles_add(&lane->ends, end);
    if (!end->handle) {
        cn_ws_end_release(end);
        return 0;
    }
    end->on_released = on_released;
    end->released_data = lane;
    return end->handle;
}

struct cn_ws_end *cn_websocket_find(struct cn_lane *lane, double handle)
{
    return cn_handles_find(&lane->ends, handle);
}

/* --- a script's ends ------------------------------------------------------------------------ */

static void jssocket_free(struct cn_jssocket *socket)
{
    struct cn_ws_end *end = socket->end;
    cn_list_remove(&socket->link);
    cn_list_remove(&socket->ready_link);
    cn_js_pin_clear(&socket->callback);
    cn_free(socket);
    cn_ws_end_release(end);
}

size_t cn_websocket_arguments(JSContextRef ctx, int kind, const struct cn_ws_item *item,
                              JSValueRef argv[CN_WEBSOCKET_ARGUMENTS_MAX])
{
    argv[0] = JSValueMakeNumber(ctx, kind);
    const struct cn_ws_message *message = item->message;
    const struct cn_ws_close *close = &item->close;
    if (kind == CN_SOCKET_MESSAGE) {
        const char *text = (const char *)message->bytes;
        argv[1] = message->text ? cn_js_text(ctx, text, message->size)
                                : cn_js_arraybuffer_take(
                                      ctx, cn_memdup(message->bytes, message->size), message->size);
        return 2;
    }
    if (kind == CN_SOCKET_ERROR) {
        argv[1] = cn_js_text_z(ctx, close->error);
        return 2;
    }
    argv[1] = JSValueMakeNumber(ctx, close->code);
    argv[2] = cn_js_text(ctx, close->reason, close->reason_size);
    argv[3] = JSValueMakeBoolean(ctx, close->clean);
    return 4;
}

static const struct cn_ws_end_ops jssocket_ops;

/* Both sides have closed, or the other is gone: nothing more can come. */
static void settle(struct cn_ws_end *end)
{
    if (end->ops == &jssocket_ops && end->close_taken &&
        (cn_ws_end_closed(end) || end->peer->state == CN_WS_END_RELEASED))
        jssocket_free(end->owner);
}

/* One turn of the script. False: it is gone. */
static bool tell(struct cn_jssocket *socket, int kind, const struct cn_ws_item *item)
{
    if (!cn_js_enter_pin(&socket->callback))
        return false;
    struct cn_js_context *context = socket->callback.context;
    JSValueRef argv[CN_WEBSOCKET_ARGUMENTS_MAX];
    size_t argc = cn_websocket_arguments(context->ref, kind, item, argv);
    /* The prelude's function throws nothing. */
    cn_js_invoke(context->ref, socket->callback.value, argc, argv, NULL);
    cn_js_leave(context);
    return true;
}

/* Gives the script what has come. Outside of JavaScript; the socket may go meanwhile. */
static void deliver(struct cn_lane *lane, struct cn_jssocket *socket)
{
    double handle = (double)socket->end->handle;
    struct cn_ws_item *item;
    while ((item = cn_ws_end_take(socket->end))) {
        bool close = !item->message;
        bool alive = true;
        if (close && item->close.error)
            alive = tell(socket, CN_SOCKET_ERROR, item);
        struct cn_ws_end *end = cn_websocket_find(lane, handle);
        if (alive && end)
            alive = tell(socket, close ? CN_SOCKET_CLOSE : CN_SOCKET_MESSAGE, item);
        cn_ws_item_free(item);
        end = cn_websocket_find(lane, handle);
        if (!end)
            return;
        if (!alive) {
            jssocket_free(socket);
            return;
        }
        settle(end);
        if (!cn_websocket_find(lane, handle))
            return;
    }
}

static void on_ready(struct cn_ws_end *end)
{
    struct cn_jssocket *socket = end->owner;
    struct cn_lane *lane = socket->instance->lane;
    /* From the loop, never from inside a script's call (send() to an end of its own, say) or while
     * an object's turn is being ended. */
    if (!cn_list_empty(&socket->ready_link))
        return;
    cn_list_push_back(&lane->sockets_ready, &socket->ready_link);
    uv_idle_start(&lane->sockets_spin, on_spin);
}

static void on_gone(struct cn_ws_end *end)
{
    if (end->close_taken)
        jssocket_free(end->owner);
}

static const struct cn_ws_end_ops jssocket_ops = {on_ready, NULL, on_gone};

static void on_spin(uv_idle_t *spin)
{
    struct cn_lane *lane = spin->data;
    struct cn_list now, *node;
    uv_idle_stop(spin);
    cn_list_init(&now);
    cn_list_splice(&now, &lane->sockets_ready);
    while ((node = cn_list_take_front(&now)))
        deliver(lane, CN_CONTAINER_OF(node, struct cn_jssocket, ready_link));
}

void cn_websocket_accept(struct cn_instance *instance, struct cn_ws_end *end, JSValueRef callback)
{
    cn_loop_assert_owner(&instance->lane->loop);
    struct cn_jssocket *socket = CN_NEW(struct cn_jssocket);
    socket->end = end;
    socket->instance = instance;
    cn_list_init(&socket->ready_link);
    cn_list_push_back(&instance->sockets, &socket->link);
    cn_js_pin_set(&socket->callback, instance->runtime->context, callback);
    cn_ws_end_claim(end, &jssocket_ops, socket);
    cn_websocket_attach(end);
}

void cn_websocket_close(struct cn_ws_end *end, const struct cn_ws_close *close)
{
    cn_ws_end_ref(end); /* closing may release it */
    cn_ws_end_close(end, close);
    settle(end);
    cn_ws_end_unref(end);
}

void cn_websocket_instance_end(struct cn_instance *instance)
{
    cn_loop_assert_owner(&instance->lane->loop);
    struct cn_ws_close close = {CN_WS_RESTART, true, "", 0, NULL};
    /* The first, until there is none: both ends of a pair may be here, and with one the other can
     * be freed. */
    while (!cn_list_empty(&instance->sockets)) {
        struct cn_jssocket *socket =
            CN_CONTAINER_OF(instance->sockets.next, struct cn_jssocket, link);
        struct cn_ws_end *end = socket->end;
        cn_ws_end_ref(end);
        cn_ws_end_close(end, &close);
        if (end->state != CN_WS_END_RELEASED)
            jssocket_free(socket);
        cn_ws_end_unref(end);
    }
}

void cn_websocket_instance_free(struct cn_instance *instance)
{
    cn_loop_assert_owner(&instance->lane->loop);
    cn_websocket_instance_end(instance);
    while (!cn_list_empty(&instance->ends))
        cn_ws_end_release(CN_CONTAINER_OF(instance->ends.next, struct cn_ws_end, keeper));
}

/* --- transit -------------------------------------------------------------------------------- */

void cn_websocket_transit(struct cn_lane *lane, struct cn_ws_end *end,
                          char address[CN_SOCKET_ADDRESS_SIZE])
{
    cn_loop_assert_owner(&lane->loop);
    CN_ASSERT(end->handle);
    struct transit *transit = CN_NEW(struct transit);
    transit->handle = end->handle;
    transit->deadline_ms = uv_now(&lane->loop) + TRANSIT_MS;
    cn_list_push_back(&lane->sockets_transit, &transit->link);
    cn_ws_end_depart(end);
    int size =
        snprintf(address, CN_SOCKET_ADDRESS_SIZE, "%u:%" PRIu64, lane->options.index, end->handle);
    if (lane->carrier)
        snprintf(address + size, CN_SOCKET_ADDRESS_SIZE - (size_t)size, "@%" PRIu64 ".%" PRIu64,
                 lane->carrier->disk, lane->carrier->life);
}

bool cn_websocket_offer(struct cn_object_lane *objects, struct cn_ws_end *own,
                        struct cn_ws_end *other, char address[CN_SOCKET_ADDRESS_SIZE])
{
    struct cn_lane *lane = objects->data;
    if (!cn_websocket_number(lane, own)) {
        cn_ws_end_release(other);
        return false;
    }
    if (!cn_websocket_number(lane, other)) {
        cn_ws_end_release(own);
        return false;
    }
    cn_websocket_transit(lane, other, address);
    return true;
}

/* "lane:handle@disk.life", or, where there are no other nodes, "lane:handle". */
static struct cn_ws_site read_address(const char *address)
{
    struct cn_ws_site site = {0};
    char *rest;
    site.lane = (unsigned)strtoul(address, &rest, 10);
    if (*rest == ':')
        site.handle = strtoull(rest + 1, &rest, 10);
    if (*rest == '@')
        site.disk = strtoull(rest + 1, &rest, 10);
    if (*rest == '.')
        site.life = strtoull(rest + 1, NULL, 10);
    return site;
}

/* An end of this lane that is on its way. NULL: it is gone. */
static struct cn_ws_end *claim_here(struct cn_lane *lane, uint64_t handle)
{
    struct cn_ws_end *end = cn_websocket_find(lane, (double)handle);
    if (!end || end->state != CN_WS_END_TRANSIT)
        return NULL;
    cn_ws_end_arrive(end);
    return end;
}

/* A new end here for one of another lane, or of another node. NULL: there is no such place. */
static struct cn_ws_end *claim_elsewhere(struct cn_lane *lane, const struct cn_ws_site *site,
                                         bool far)
{
    struct cn_ws_end *end = NULL;
    if (far)
        end = cn_ws_far_new(lane, site);
    else if (lane->options.node && cn_node_lane(lane->options.node, site->lane))
        end = cn_ws_bridge_new(lane, site->lane, site->handle);
    return end && cn_websocket_number(lane, end) ? end : NULL;
}

uint64_t cn_websocket_claim(struct cn_instance *instance, const char *address)
{
    cn_loop_assert_owner(&instance->lane->loop);
    struct cn_lane *lane = instance->lane;
    struct cn_ws_site site = read_address(address);
    bool far =
        lane->carrier && (site.disk != lane->carrier->disk || site.life != lane->carrier->life);
    struct cn_ws_end *end = !far && site.lane == lane->options.index
                                ? claim_here(lane, site.handle)
                                : claim_elsewhere(lane, &site, far);
    if (!end)
        return 0;
    cn_websocket_keep(instance, end);
    return end->handle;
}

void cn_websocket_attach(struct cn_ws_end *end)
{
    struct cn_ws_bridge *bridge = cn_ws_bridge_of(end->peer);
    struct cn_ws_far *far = cn_ws_far_of(end->peer);
    if (bridge)
        cn_ws_bridge_attach(bridge);
    if (far)
        cn_ws_far_attach(far);
}

int cn_websocket_respond(struct cn_event *event, const struct cn_http_header *headers, size_t count,
                         struct cn_ws_end *end)
{
    struct cn_lane *lane = event->instance->lane;
    struct cn_ws_bridge *bridge = cn_ws_bridge_of(end->peer);
    if (!bridge || cn_ws_bridge_attached(bridge)) {
        cn_ws_end_ref(end); /* it may have been lost already */
        int rc = cn_ws_upgrade(lane->ws, event->http, headers, count, end);
        if (rc == 0 && end->state != CN_WS_END_RELEASED)
            cn_websocket_attach(end);
        cn_ws_end_unref(end);
        return rc;
    }
    struct cn_ws_moved moved;
    int rc = cn_ws_upgrade_away(lane->ws, event->http, headers, count, end, &moved);
    if (rc == 0)
        cn_ws_bridge_replace(bridge, end, &moved);
    else if (rc == 1) {
        cn_ws_bridge_attach(bridge); /* it stays here */
        rc = 0;
    }
    return rc;
}

void cn_websocket_refuse(struct cn_event *event, int status)
{
    static const char text[] = "This is not a WebSocket handshake of version 13.\n";
    struct cn_http_header headers[] = {{"content-type", "text/plain;charset=UTF-8", 12, 24},
                                       {"sec-websocket-version", "13", 21, 2}};
    struct cn_http_head head = {.status = status, .headers = headers, .header_count = 2};
    event->status = status;
    (void)cn_http_respond(event->http, &head, text, sizeof(text) - 1, NULL,
                          NULL); /* or it is gone */
    cn_event_answered(event);
}

/* --- the lane ------------------------------------------------------------------------------- */

int cn_websocket_lane_start(struct cn_lane *lane, struct cn_err *err)
{
    cn_loop_assert_owner(&lane->loop);
    cn_list_init(&lane->sockets_ready);
    cn_list_init(&lane->sockets_transit);
    cn_list_init(&lane->far_trunks);
    cn_list_init(&lane->far_parked);
    cn_list_init(&lane->ws_moves);
    int rc = uv_idle_init(&lane->loop, &lane->sockets_spin);
    if (rc < 0)
        return cn_err_set(err, rc, "cannot make an idle handle");
    lane->sockets_spin.data = lane;
    lane->ws = cn_ws_lane_new(&lane->loop, &lane->options.websockets);
    return 0;
}

void cn_websocket_lane_tick(struct cn_lane *lane)
{
    cn_loop_assert_owner(&lane->loop);
    uint64_t now = uv_now(&lane->loop);
    cn_ws_far_lane_tick(lane);
    cn_ws_move_lane_tick(lane);
    while (!cn_list_empty(&lane->sockets_transit)) {
        struct transit *transit = CN_CONTAINER_OF(lane->sockets_transit.next, struct transit, link);
        if (transit->deadline_ms > now)
            break;
        struct cn_ws_end *end = cn_websocket_find(lane, (double)transit->handle);
        if (end && end->state == CN_WS_END_TRANSIT)
            cn_ws_end_release(end);
        cn_list_remove(&transit->link);
        cn_free(transit);
    }
}

void cn_websocket_lane_abort(struct cn_lane *lane)
{
    cn_loop_assert_owner(&lane->loop);
    cn_ws_lane_abort(lane->ws);
}

void cn_websocket_lane_stop(struct cn_lane *lane)
{
    cn_loop_assert_owner(&lane->loop);
    struct cn_list *node;
    while ((node = cn_list_take_front(&lane->sockets_transit)))
        cn_free(CN_CONTAINER_OF(node, struct transit, link));
    cn_ws_move_lane_stop(lane);
    /* Pairs whose ends nobody has taken, and bridges. */
    uint32_t cursor = 0;
    struct cn_ws_end *end;
    while ((end = cn_handles_next(&lane->ends, &cursor))) {
        if (end->state != CN_WS_END_CLAIMED)
            cn_ws_end_release(end);
        else if (cn_ws_bridge_of(end))
            cn_ws_bridge_free(cn_ws_bridge_of(end));
        else if (cn_ws_far_of(end))
            cn_ws_far_free(cn_ws_far_of(end));
    }
    cn_ws_far_lane_stop(lane);
    uv_close((uv_handle_t *)&lane->sockets_spin, NULL);
    cn_ws_lane_free(lane->ws);
}
