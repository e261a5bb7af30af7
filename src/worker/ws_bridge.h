/* SPDX-License-Identifier: Apache-2.0 */
/* worker/ws_bridge.h - two ends on different lanes, joined by mail.
 *
 *     lane X:  [object's end | bridge] ◄── mail ──► [bridge | script's end]  :lane Y
 *
 * A bridge is made on lane Y when a Response arrives there, and reaches out to
 * lane X only when somebody on Y wants to use it: until then what the object has
 * sent waits on X, so that nothing is under way when a connection moves there.
 *
 * Threads: each side its lane's. */
#ifndef CN_WORKER_WS_BRIDGE_H
#define CN_WORKER_WS_BRIDGE_H
#include <stdbool.h>
#include <stdint.h>

struct cn_lane;
struct cn_ws_bridge;
struct cn_ws_end;
struct cn_ws_moved;

/* A new end here whose other side is end `handle` of lane `index`. NULL: there are too many. */
struct cn_ws_end *cn_ws_bridge_new(struct cn_lane *lane, unsigned index, uint64_t handle);
/* The bridge behind an end, or NULL. */
struct cn_ws_bridge *cn_ws_bridge_of(struct cn_ws_end *end);
/* Reaches out, if it has not. */
void cn_ws_bridge_attach(struct cn_ws_bridge *bridge);
bool cn_ws_bridge_attached(const struct cn_ws_bridge *bridge);
/* Ends it here; the other side is not told: its lane stops too. */
void cn_ws_bridge_free(struct cn_ws_bridge *bridge);
/* Sends a connection to the other side and ends the bridge here, with `end`, its script's end. */
void cn_ws_bridge_replace(struct cn_ws_bridge *bridge, struct cn_ws_end *end,
                          const struct cn_ws_moved *moved);

#endif
