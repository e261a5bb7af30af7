/* SPDX-License-Identifier: Apache-2.0 */
/* worker/websocket.h - the WebSockets of scripts: ends by number, events in JavaScript, ends on
 * their way to other scripts.
 *
 * JavaScript names an end (net/ws_end.h) by a number of its lane. An end is
 *   - nobody's, after `new WebSocketPair()`: it goes when the collector finds that no
 *     script can use it, or with the instance that made it;
 *   - a script's, after accept() outside of objects: its events are calls of a
 *     function of the prelude;
 *   - an object's (object/socket.h), after accept() or acceptWebSocket() there;
 *   - in transit, in a Response that is being sent to another script: whoever gets
 *     that claims it, or it is let go after TRANSIT_MS;
 *   - a connection's, once its Response has gone to a client.
 *
 * Lanes: an end that is claimed on another lane stays where it is. If it goes on to
 * a client, the client's connection moves to its lane (so that an object and its
 * clients are together); if a script accepts it, the two lanes are bridged by mail. One that is
 * claimed on another node is joined to it by letters (ws_far.h), and the connection stays.
 *
 * Threads:   the lane's.
 * Ownership: numbers end with their ends. */
#ifndef CN_WORKER_WEBSOCKET_H
#define CN_WORKER_WEBSOCKET_H
#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "js/context.h"
#include "net/http.h"
#include "net/ws_end.h"
#include "object/socket.h"

struct cn_event;
struct cn_instance;
struct cn_lane;
struct cn_object_lane;

/* A script's end, outside of objects. */
struct cn_jssocket {
    struct cn_ws_end *end;
    struct cn_instance *instance;
    struct cn_list link;       /* in instance->sockets */
    struct cn_list ready_link; /* in lane->sockets_ready */
    struct cn_js_pin callback; /* (kind, ...): cn_websocket_arguments() */
};

int cn_websocket_lane_start(struct cn_lane *lane, struct cn_err *err);
void cn_websocket_lane_tick(struct cn_lane *lane); /* once a second */
/* Cuts what is still open, before the server closes. */
void cn_websocket_lane_abort(struct cn_lane *lane);
void cn_websocket_lane_stop(struct cn_lane *lane); /* no connection is left */

/* Gives an end its number. 0: there are too many, and it has been released. */
uint64_t cn_websocket_number(struct cn_lane *lane, struct cn_ws_end *end);
/* A NEW end that has its number is the instance's: it is released with it at the latest. */
void cn_websocket_keep(struct cn_instance *instance, struct cn_ws_end *end);
/* NULL: there is no such end any more. */
struct cn_ws_end *cn_websocket_find(struct cn_lane *lane, double handle);

/* accept() outside of objects: `callback` gets the events from now on. */
void cn_websocket_accept(struct cn_instance *instance, struct cn_ws_end *end, JSValueRef callback);
/* A script, outside of objects, closes it. */
void cn_websocket_close(struct cn_ws_end *end, const struct cn_ws_close *close);
/* The instance's code is replaced: its ends close with 1012. */
void cn_websocket_instance_end(struct cn_instance *instance);
/* The instance goes, and every end that is still its. */
void cn_websocket_instance_free(struct cn_instance *instance);

/* The arguments of an event for JavaScript: kind (enum cn_socket_event_kind), then the message
 * (text or ArrayBuffer), or code, reason, clean, or the error's text. Returns their number. */
#define CN_WEBSOCKET_ARGUMENTS_MAX 4
size_t cn_websocket_arguments(JSContextRef ctx, int kind, const struct cn_ws_item *item,
                              JSValueRef argv[CN_WEBSOCKET_ARGUMENTS_MAX]);

/* Sends an end on its way; the address is for cn_websocket_claim() on any lane, of any node. */
void cn_websocket_transit(struct cn_lane *lane, struct cn_ws_end *end,
                          char address[CN_SOCKET_ADDRESS_SIZE]);
/* What struct cn_object_lane.offer_socket is. */
bool cn_websocket_offer(struct cn_object_lane *lane, struct cn_ws_end *own, struct cn_ws_end *other,
                        char address[CN_SOCKET_ADDRESS_SIZE]);
/* The number of the end here, 0 if it is gone. */
uint64_t cn_websocket_claim(struct cn_instance *instance, const char *address);
/* Answers the event with 101 and gives the end to its client's connection. As cn_ws_upgrade(). */
int cn_websocket_respond(struct cn_event *event, const struct cn_http_header *headers, size_t count,
                         struct cn_ws_end *end);
/* Answers a client whose handshake is not proper (RFC 6455, 4.2.2) with what that said. */
void cn_websocket_refuse(struct cn_event *event, int status);
/* Before an end that may be a bridge's other side is used here. */
void cn_websocket_attach(struct cn_ws_end *end);

#endif
