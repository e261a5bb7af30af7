/* SPDX-License-Identifier: Apache-2.0 */
/* worker/ws_move.h - WebSockets that go with their object to another node (K7 of object/socket.h).
 *
 *     node B, its shard has moved        the clients' nodes             node C, which has it now
 *     send: PARK each other side  ─────► keeps what clients send
 *     all are PARKED              ◄─────
 *     a call to the object (ADOPT), by the way that all calls go ─────► adopt: sets, tags, ends
 *                                        goes on with C          ◄───── RESUME
 *     answered: forgets them
 *
 * M1  One call has at most CN_SOCKET_PARTY_MAX sockets, and LUGGAGE_MAX bytes of what clients had
 *     sent; a socket with more ends with 1012.
 * M2  Who does not park within PARK_WAIT_MS, and who is not adopted, ends with 1012.
 * M3  What another node gives is input: it is checked as a whole before anything is adopted.
 *
 * Threads:   the lane's.
 * Ownership: a move is the lane's, and goes when its call is answered. */
#ifndef CN_WORKER_WS_MOVE_H
#define CN_WORKER_WS_MOVE_H

struct cn_lane;
struct cn_ws_carrier;

/* The lane has a way to other nodes from now on; borrowed, it outlives the lane. */
void cn_ws_move_tie(struct cn_lane *lane, const struct cn_ws_carrier *carrier);
void cn_ws_move_lane_tick(struct cn_lane *lane);
void cn_ws_move_lane_stop(struct cn_lane *lane);

#endif
