/* SPDX-License-Identifier: Apache-2.0 */
/* net/ws_deflate.h - permessage-deflate (RFC 7692), without context takeover.
 *
 * We always agree on server_no_context_takeover and client_no_context_takeover:
 * each message stands alone. So one compressor and one decompressor serve every
 * connection of a lane, a connection costs nothing while it is idle, and a
 * message to a whole room is compressed once.
 *
 * Threads:   the lane's.
 * Ownership: struct cn_ws_lane; zlib's memory is made at first use. */
#ifndef CN_NET_WS_DEFLATE_H
#define CN_NET_WS_DEFLATE_H
#include <stddef.h>
#include <stdint.h>

struct cn_ws_deflate;
struct cn_ws_message;

struct cn_ws_deflate *cn_ws_deflate_new(void);
void cn_ws_deflate_free(struct cn_ws_deflate *deflate);

/* The compressed payload of `message`, borrowed from it, or NULL if it is small or would not become
 * smaller: then it is sent as it is. `window_bits` 9..15: how far back the peer can look. */
struct cn_ws_message *cn_ws_deflate(struct cn_ws_deflate *deflate, struct cn_ws_message *message,
                                    unsigned window_bits);
/* 0 and a new reference, or the code to close with. */
uint16_t cn_ws_inflate(struct cn_ws_deflate *deflate, const struct cn_ws_message *message,
                       size_t size_max, struct cn_ws_message **inflated);

#endif
