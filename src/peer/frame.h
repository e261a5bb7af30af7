/* SPDX-License-Identifier: Apache-2.0 */
/* peer/frame.h - messages between nodes of a cluster, as bytes.
 *
 * A link is a stream of frames. All numbers are little-endian:
 *
 *     size      4   of the body, at most CN_FRAME_BODY_MAX
 *     kind      2   enum cn_frame_kind
 *     flags     2   0 in this version
 *     channel   4   of a pipe: which question or answer it belongs to; 0 elsewhere
 *     body      size bytes
 *
 * There is no checksum: a link is TLS, which has one. There is no version in a frame either: HELLO
 * is the first of each side and has it.
 *
 * F1  Bytes of a peer are input like any other: every length is checked before it is believed, and
 *     what breaks a rule is CN_EPROTOCOL, which ends the link and nothing else.
 * F2  A reader holds at most one frame that is not whole, and as many bytes of it as have come: a
 *     size that was only announced costs nothing.
 * F3  A body is given to the caller in one piece, borrowed until its call returns.
 *
 * Threads:   none of its own.
 * Ownership: the reader has its buffer. */
#ifndef CN_PEER_FRAME_H
#define CN_PEER_FRAME_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "membership/member.h"

#define CN_FRAME_HEAD_SIZE 12
#define CN_FRAME_BODY_MAX (1u << 20)
#define CN_FRAME_VERSION 1
#define CN_FRAME_CLUSTER_SIZE 36 /* of a cluster's id as text */

enum cn_frame_kind {
    CN_FRAME_HELLO = 1,   /* struct cn_frame_hello; the first of each side, and only that */
    CN_FRAME_BEAT = 2,    /* nothing: the sender is alive */
    CN_FRAME_MESSAGE = 3, /* struct cn_member_message, and the records of a FEED */
    CN_FRAME_COPY = 4,    /* struct cn_frame_copy, and bytes of it */
    CN_FRAME_COPIED = 5,  /* struct cn_frame_copy: so much of it is on the disk there */
    CN_FRAME_KINDS,
    /* Of bodies (shard/bodies.h): struct cn_frame_body, and bytes of it. */
    CN_FRAME_BODY_ASK = 16,
    CN_FRAME_BODY_ANSWER = 17,
    CN_FRAME_BODY_END,
    /* Of pipes (peer/pipe.h). The first of a connection that is to become one; only PIPE may
     * come where a link is expected. */
    CN_FRAME_PIPE = 32,      /* who asks, and whom */
    CN_FRAME_WELCOME = 33,   /* the answer to it */
    CN_FRAME_WHOLE = 34,     /* a message */
    CN_FRAME_LARGE = 35,     /* 4 bytes: a message of this size is to be sent in pieces */
    CN_FRAME_ROOM = 36,      /* nothing: go on with it */
    CN_FRAME_PIECE = 37,     /* bytes of it */
    CN_FRAME_CANCEL = 38,    /* nothing: the answer is not wanted any more */
    CN_FRAME_CANCELLED = 39, /* nothing: and does not come */
    CN_FRAME_PIPE_KINDS
};

struct cn_frame {
    enum cn_frame_kind kind;
    uint32_t channel;
    const uint8_t *body;
    size_t size;
};

struct cn_frame_hello {
    uint32_t version;
    char cluster[CN_FRAME_CLUSTER_SIZE];
    uint64_t disk, life; /* of the sender; a later life of a disk replaces the link of an earlier */
    uint64_t to;         /* the disk it means to speak to: an address may have a new tenant */
};

enum cn_frame_copy_part {
    CN_COPY_PIECE, /* bytes of the stream, from `offset` on */
    CN_COPY_END,   /* that was all: `offset` is its size, `lsn` how far it goes */
    CN_COPY_FAILED /* there will be no more */
};

/* A part of a copy of a shard, or what became of it. */
struct cn_frame_copy {
    uint32_t shard;
    enum cn_frame_copy_part part;
    uint64_t
        number; /* of the copy, by its sender: one that was given up is not mixed with another */
    uint64_t offset;
    uint64_t lsn;
    const uint8_t *bytes;
    size_t size;
};

#define CN_FRAME_ID_SIZE 16
#define CN_FRAME_IDS_MAX 1024                /* of one question */
#define CN_FRAME_BODY_PIECE_MAX (256u << 10) /* bytes of a body in one frame */
#define CN_FRAME_DIGEST_SIZE \
    28 /* shard 4, count 8, the sum of the ids 16: of an answer to DIGESTS */

enum cn_frame_body_op {
    CN_BODY_TAKE,    /* have it, synced: of `size` bytes, with this sum. Its bytes follow, or are to
                        be read from the sender */
    CN_BODY_READ,    /* `size` bytes of it from `offset` on. Answered with them, its size (in
                        `offset`) and its sum */
    CN_BODY_LIST,    /* ids of the shard behind `id` that are there; answered with them, rising */
    CN_BODY_DIGESTS, /* of every shard that has bodies there */
    CN_BODY_HAS,     /* which of these ids (one byte each in the answer): and they will stay */
    CN_BODY_KNOWN,   /* the owner of the shard: which of these ids may be named, now or later */
    CN_BODY_CATCH_UP, /* have all of the shard that the sender has */
    CN_BODY_DROP,     /* these ids are nobody's any more. Not answered */
    CN_BODY_STORE,    /* `size` bytes, from `offset` on, of a copy of the shard's store, which `id`
                         names (shard/backup_stream.h). Answered with them, the epoch (in `offset`), and in
                         `size` whether that was all */
    CN_BODY_OPS
};

/* A question about bodies, or the answer to one. */
struct cn_frame_body {
    enum cn_frame_body_op op;
    uint32_t shard;
    uint64_t number; /* of the question, by who asks */
    uint8_t id[CN_FRAME_ID_SIZE];
    uint64_t offset, size;
    uint32_t sum;
    int32_t rc; /* of an answer: 0, or an error */
    const uint8_t *bytes;
    size_t byte_count;
};

/* --- writing ---------------------------------------------------------------------------------- */

void cn_frame_put_head(uint8_t head[CN_FRAME_HEAD_SIZE], enum cn_frame_kind kind, uint32_t channel,
                       size_t size);
/* Bodies. Those of messages and copies are followed by their bytes. */
#define CN_FRAME_HELLO_SIZE 68
#define CN_FRAME_MESSAGE_SIZE 40
#define CN_FRAME_COPY_SIZE 32
#define CN_FRAME_BODY_SIZE 56
void cn_frame_put_hello(uint8_t body[CN_FRAME_HELLO_SIZE], const struct cn_frame_hello *hello);
void cn_frame_put_message(uint8_t body[CN_FRAME_MESSAGE_SIZE],
                          const struct cn_member_message *message);
void cn_frame_put_copy(uint8_t body[CN_FRAME_COPY_SIZE], const struct cn_frame_copy *copy);
void cn_frame_put_body(uint8_t head[CN_FRAME_BODY_SIZE], const struct cn_frame_body *body);

/* --- reading ---------------------------------------------------------------------------------- */

/* False: it is none. What has an unknown kind, flags or channel is none either. */
bool cn_frame_get_hello(const struct cn_frame *frame, struct cn_frame_hello *hello);
/* `records`: what is behind the message, borrowed. */
bool cn_frame_get_message(const struct cn_frame *frame, struct cn_member_message *message,
                          const uint8_t **records, size_t *size);
bool cn_frame_get_copy(const struct cn_frame *frame, struct cn_frame_copy *copy);
/* What follows is as its operation says: of ids whole ones, of a body no more than a piece. */
bool cn_frame_get_body(const struct cn_frame *frame, struct cn_frame_body *body);

struct cn_frame_reader {
    struct cn_buf rest; /* of a frame that is not whole */
    bool pipe;          /* frames of a pipe come, and BEAT */
};
void cn_frame_reader_fini(struct cn_frame_reader *reader);
/* Gives every frame that is whole now to `each`, in order, until it returns false (the link was
 * closed: the reader may be gone then). 0, or CN_EPROTOCOL: a head that cannot be one. */
int cn_frame_read(struct cn_frame_reader *reader, const uint8_t *bytes, size_t size,
                  bool (*each)(void *data, const struct cn_frame *frame), void *data);

#endif
