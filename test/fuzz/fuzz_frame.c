/* SPDX-License-Identifier: Apache-2.0 */
/* Frames of another node. The first byte is the size of the pieces, its highest bit says whether
 * they are those of a pipe. However the bytes are cut, what is found must be the same; and what a
 * body is taken for is inside of it. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "peer/frame.h"
#include "peer/pipe.h"

static void require(int condition)
{
    if (!condition)
        abort();
}

static bool each(void *data, const struct cn_frame *frame)
{
    struct cn_buf *log = data;
    struct cn_frame_hello hello;
    struct cn_member_message message;
    struct cn_frame_copy copy;
    const uint8_t *records;
    size_t size;
    struct cn_frame_body body;
    require(frame->size <= CN_FRAME_BODY_MAX && frame->kind && frame->kind < CN_FRAME_PIPE_KINDS);
    if (frame->kind == CN_FRAME_PIPE)
        require(cn_pipe_hello_lane(frame->body, frame->size, 3) < 3);
    cn_buf_append_byte(log, (uint8_t)frame->kind);
    cn_buf_append(log, frame->body, frame->size);
    if (cn_frame_get_hello(frame, &hello)) {
        uint8_t again[CN_FRAME_HELLO_SIZE];
        cn_frame_put_hello(again, &hello);
        require(memcmp(again, frame->body, sizeof(again)) == 0);
    }
    if (cn_frame_get_message(frame, &message, &records, &size)) {
        uint8_t again[CN_FRAME_MESSAGE_SIZE];
        cn_frame_put_message(again, &message);
        require(memcmp(again, frame->body, sizeof(again)) == 0);
        require(records + size == frame->body + frame->size && message.from <= message.to);
    }
    if (cn_frame_get_copy(frame, &copy)) {
        uint8_t again[CN_FRAME_COPY_SIZE];
        cn_frame_put_copy(again, &copy);
        require(memcmp(again, frame->body, sizeof(again)) == 0);
        require(copy.bytes + copy.size == frame->body + frame->size);
    }
    if (cn_frame_get_body(frame, &body)) {
        uint8_t again[CN_FRAME_BODY_SIZE];
        cn_frame_put_body(again, &body);
        require(memcmp(again, frame->body, sizeof(again)) == 0);
        require(body.bytes + body.byte_count == frame->body + frame->size);
        require(body.byte_count <= CN_FRAME_BODY_PIECE_MAX && body.shard < CN_CLUSTER_SHARDS_MAX);
        require(frame->kind != CN_FRAME_BODY_ANSWER || (body.rc <= 0 && body.rc > INT32_MIN));
        require(frame->kind != CN_FRAME_BODY_ASK || body.op != CN_BODY_DROP ||
                body.byte_count / CN_FRAME_ID_SIZE * CN_FRAME_ID_SIZE == body.byte_count);
    }
    return true;
}

static int run(const uint8_t *data, size_t size, size_t piece, bool pipe, struct cn_buf *log)
{
    struct cn_frame_reader reader = {.pipe = pipe};
    int rc = 0;
    for (size_t at = 0; at < size && rc == 0; at += piece)
        rc = cn_frame_read(&reader, data + at, size - at < piece ? size - at : piece, each, log);
    cn_frame_reader_fini(&reader);
    return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct cn_buf whole = {0}, pieces = {0};
    if (size < 1)
        return 0;
    int rc = run(data + 1, size - 1, size, data[0] & 128, &whole);
    require(rc == run(data + 1, size - 1, 1 + (data[0] & 127), data[0] & 128, &pieces));
    require(whole.size == pieces.size &&
            (!whole.size || !memcmp(whole.data, pieces.data, whole.size)));
    cn_buf_fini(&whole);
    cn_buf_fini(&pieces);
    return 0;
}
