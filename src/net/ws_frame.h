/* SPDX-License-Identifier: Apache-2.0 */
/* net/ws_frame.h - WebSocket frames (RFC 6455, 5): a peer's bytes to messages, and back.
 *
 * No sockets and no clock: a reader takes bytes as they come, in pieces of any
 * size, and gives whole messages and control frames; what breaks the protocol
 * becomes the code to close with. Between messages a reader holds no memory
 * but itself.
 *
 * Messages are counted and immutable, so that one can be on its way to a whole
 * room at once; its compressed form is made at most once (ws_deflate.h).
 *
 * Threads: the owner's; a message belongs to one lane with all its references. */
#ifndef CN_NET_WS_FRAME_H
#define CN_NET_WS_FRAME_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct cn_ws_deflate;

enum cn_ws_opcode {
    CN_WS_OP_CONTINUATION = 0,
    CN_WS_OP_TEXT = 1,
    CN_WS_OP_BINARY = 2,
    CN_WS_OP_CLOSE = 8,
    CN_WS_OP_PING = 9,
    CN_WS_OP_PONG = 10,
};

/* Close codes (RFC 6455, 7.4) that we send or report. */
enum cn_ws_code {
    CN_WS_NORMAL = 1000,
    CN_WS_GOING_AWAY = 1001,
    CN_WS_PROTOCOL_ERROR = 1002,
    CN_WS_NO_STATUS = 1005, /* the close frame had no code; never sent as one */
    CN_WS_ABNORMAL = 1006,  /* there was no close frame; never sent */
    CN_WS_BAD_DATA = 1007,
    CN_WS_TOO_BIG = 1009,
    CN_WS_INTERNAL_ERROR = 1011,
    CN_WS_RESTART = 1012,
    CN_WS_TRY_LATER = 1013,
};

#define CN_WS_HEAD_MAX 14
#define CN_WS_CONTROL_MAX 125
#define CN_WS_REASON_MAX (CN_WS_CONTROL_MAX - 2)

struct cn_ws_message {
    unsigned refs;
    bool text;                      /* valid UTF-8 */
    bool deflate_tried;             /* `deflated` has been decided, */
    uint8_t deflated_bits;          /* with this window */
    struct cn_ws_message *deflated; /* a reference to its compressed payload; NULL: not smaller */
    size_t size, capacity;
    uint8_t bytes[];
};

/* One reference, the caller's. NULL: no memory for a size chosen by others. */
struct cn_ws_message *cn_ws_message_new(bool text, const void *bytes, size_t size);
struct cn_ws_message *cn_ws_message_ref(struct cn_ws_message *message);
void cn_ws_message_unref(struct cn_ws_message *message); /* NULL is fine */

/* What does not change while a connection lasts. */
struct cn_ws_rules {
    bool masked;                    /* frames must be masked (we are the server), or must not be */
    bool deflate;                   /* permessage-deflate has been agreed on */
    size_t message_size_max;        /* after decompression */
    struct cn_ws_deflate *deflater; /* the lane's; used if `deflate` */
    bool any_mask;                  /* both are fine, whatever `masked` says */
};

/* A zeroed struct is the start of a connection. */
struct cn_ws_reader {
    struct cn_ws_message *partial; /* the message under way; NULL: none, or nothing of it yet */
    struct cn_buf control;         /* a control frame that came in pieces */
    uint64_t left;                 /* bytes of the frame's payload still to come */
    size_t checked;                /* bytes of `partial` known to be good UTF-8 */
    uint8_t head[CN_WS_HEAD_MAX];
    uint8_t head_size; /* bytes of the head so far */
    uint8_t mask_at;   /* 0..3: which byte of the mask is next */
    uint8_t opcode;    /* of the frame under way */
    uint8_t kind;      /* of the message under way: TEXT or BINARY; 0: none */
    bool in_payload;   /* the head is complete */
    bool final;        /* the frame under way ends its message */
    bool compressed;   /* the message under way is */
};

enum cn_ws_event_kind {
    CN_WS_MORE,    /* all bytes are used up */
    CN_WS_MESSAGE, /* a whole one */
    CN_WS_PING,
    CN_WS_PONG,
    CN_WS_CLOSE,
    CN_WS_ERROR, /* nothing more can be read */
};

struct cn_ws_event {
    struct cn_ws_message *message; /* of MESSAGE: the caller's reference */
    const char *problem;           /* of ERROR: a sentence. Static storage */
    uint16_t code;                 /* of CLOSE (1005: none was given) and ERROR */
    uint8_t size;
    uint8_t bytes[CN_WS_CONTROL_MAX]; /* of PING and PONG; of CLOSE: the reason */
};

/* Takes bytes from the front of *bytes and gives what they end with. Call until MORE. */
enum cn_ws_event_kind cn_ws_reader_next(struct cn_ws_reader *reader,
                                        const struct cn_ws_rules *rules, const uint8_t **bytes,
                                        size_t *size, struct cn_ws_event *event);
void cn_ws_reader_fini(struct cn_ws_reader *reader);

/* Writes the head of a whole, unfragmented frame; returns its size. `mask` NULL: unmasked. */
size_t cn_ws_head(uint8_t head[CN_WS_HEAD_MAX], enum cn_ws_opcode opcode, bool compressed,
                  uint64_t size, const uint8_t mask[4]);
/* Writes `size` bytes masked; `at` says where in the mask they begin. Returns where they end. */
unsigned cn_ws_mask(uint8_t *to, const uint8_t *from, size_t size, const uint8_t mask[4],
                    unsigned at);

/* Whether a peer may send this code in a close frame. */
bool cn_ws_code_valid(unsigned code);

#endif
