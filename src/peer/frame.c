/* SPDX-License-Identifier: Apache-2.0 */
#include "peer/frame.h"

#include <assert.h>
#include <string.h>

#include "base/assert.h"
#include "base/err.h"

#define HELLO_MAGIC 0x4b4c4e43u /* "CNLK" */

static_assert(CN_FRAME_BODY_SIZE == 4 + 4 + 8 + CN_FRAME_ID_SIZE + 8 + 8 + 4 + 4, "bodies");
static_assert(CN_FRAME_IDS_MAX * CN_FRAME_ID_SIZE <= CN_FRAME_BODY_PIECE_MAX, "ids are a piece");
static_assert(CN_CLUSTER_SHARDS_MAX * CN_FRAME_DIGEST_SIZE <= CN_FRAME_BODY_PIECE_MAX,
              "so are they");
static_assert(CN_FRAME_HELLO_SIZE == 4 + 4 + CN_FRAME_CLUSTER_SIZE + 3 * 8, "HELLO");

/* --- numbers ---------------------------------------------------------------------------------- */

static uint8_t *put(uint8_t *at, uint64_t value, size_t size)
{
    for (size_t i = 0; i < size; i++)
        at[i] = (uint8_t)(value >> (8 * i));
    return at + size;
}

static uint64_t get(const uint8_t **at, size_t size)
{
    uint64_t value = 0;
    for (size_t i = 0; i < size; i++)
        value |= (uint64_t)(*at)[i] << (8 * i);
    *at += size;
    return value;
}

/* --- writing ---------------------------------------------------------------------------------- */

void cn_frame_put_head(uint8_t head[CN_FRAME_HEAD_SIZE], enum cn_frame_kind kind, uint32_t channel,
                       size_t size)
{
    CN_ASSERT(size <= CN_FRAME_BODY_MAX);
    uint8_t *at = put(head, size, 4);
    at = put(at, kind, 2);
    at = put(at, 0, 2);
    put(at, channel, 4);
}

void cn_frame_put_hello(uint8_t body[CN_FRAME_HELLO_SIZE], const struct cn_frame_hello *hello)
{
    uint8_t *at = put(body, HELLO_MAGIC, 4);
    at = put(at, hello->version, 4);
    memcpy(at, hello->cluster, CN_FRAME_CLUSTER_SIZE);
    at = put(at + CN_FRAME_CLUSTER_SIZE, hello->disk, 8);
    at = put(at, hello->life, 8);
    put(at, hello->to, 8);
}

void cn_frame_put_message(uint8_t body[CN_FRAME_MESSAGE_SIZE],
                          const struct cn_member_message *message)
{
    uint8_t *at = put(body, message->kind, 4);
    at = put(at, message->shard, 4);
    at = put(at, message->session, 8);
    at = put(at, message->epoch, 8);
    at = put(at, message->from, 8);
    put(at, message->to, 8);
}

void cn_frame_put_copy(uint8_t body[CN_FRAME_COPY_SIZE], const struct cn_frame_copy *copy)
{
    uint8_t *at = put(body, copy->shard, 4);
    at = put(at, copy->part, 4);
    at = put(at, copy->number, 8);
    at = put(at, copy->offset, 8);
    put(at, copy->lsn, 8);
}

void cn_frame_put_body(uint8_t head[CN_FRAME_BODY_SIZE], const struct cn_frame_body *body)
{
    uint8_t *at = put(head, body->op, 4);
    at = put(at, body->shard, 4);
    at = put(at, body->number, 8);
    memcpy(at, body->id, CN_FRAME_ID_SIZE);
    at = put(at + CN_FRAME_ID_SIZE, body->offset, 8);
    at = put(at, body->size, 8);
    at = put(at, body->sum, 4);
    put(at, (uint32_t)body->rc, 4);
}

/* --- reading ---------------------------------------------------------------------------------- */

bool cn_frame_get_hello(const struct cn_frame *frame, struct cn_frame_hello *hello)
{
    const uint8_t *at = frame->body;
    if (frame->kind != CN_FRAME_HELLO || frame->size != CN_FRAME_HELLO_SIZE ||
        get(&at, 4) != HELLO_MAGIC)
        return false;
    hello->version = (uint32_t)get(&at, 4);
    memcpy(hello->cluster, at, CN_FRAME_CLUSTER_SIZE);
    at += CN_FRAME_CLUSTER_SIZE;
    hello->disk = get(&at, 8);
    hello->life = get(&at, 8);
    hello->to = get(&at, 8);
    return true;
}

bool cn_frame_get_message(const struct cn_frame *frame, struct cn_member_message *message,
                          const uint8_t **records, size_t *size)
{
    const uint8_t *at = frame->body;
    if (frame->kind != CN_FRAME_MESSAGE || frame->size < CN_FRAME_MESSAGE_SIZE)
        return false;
    uint32_t kind = (uint32_t)get(&at, 4);
    *message = (struct cn_member_message){.shard = (uint32_t)get(&at, 4)};
    message->session = get(&at, 8);
    message->epoch = get(&at, 8);
    message->from = get(&at, 8);
    message->to = get(&at, 8);
    *records = at;
    *size = frame->size - CN_FRAME_MESSAGE_SIZE;
    if (kind >= CN_MESSAGE_KINDS || message->shard >= CN_CLUSTER_SHARDS_MAX ||
        message->from > message->to)
        return false;
    message->kind = (enum cn_member_message_kind)kind;
    bool carries = message->kind == CN_MESSAGE_FEED && message->from < message->to;
    return carries == (*size > 0);
}

bool cn_frame_get_copy(const struct cn_frame *frame, struct cn_frame_copy *copy)
{
    const uint8_t *at = frame->body;
    if ((frame->kind != CN_FRAME_COPY && frame->kind != CN_FRAME_COPIED) ||
        frame->size < CN_FRAME_COPY_SIZE)
        return false;
    *copy = (struct cn_frame_copy){.shard = (uint32_t)get(&at, 4)};
    uint32_t part = (uint32_t)get(&at, 4);
    copy->number = get(&at, 8);
    copy->offset = get(&at, 8);
    copy->lsn = get(&at, 8);
    copy->bytes = at;
    copy->size = frame->size - CN_FRAME_COPY_SIZE;
    if (part > CN_COPY_FAILED || copy->shard >= CN_CLUSTER_SHARDS_MAX)
        return false;
    copy->part = (enum cn_frame_copy_part)part;
    bool carries = frame->kind == CN_FRAME_COPY && copy->part == CN_COPY_PIECE;
    return carries == (copy->size > 0);
}

static bool is_ids(size_t size)
{
    return size % CN_FRAME_ID_SIZE == 0 && size <= CN_FRAME_IDS_MAX * CN_FRAME_ID_SIZE;
}

/* Whether a question carries what one of its kind does. */
static bool is_question(const struct cn_frame_body *body)
{
    switch (body->op) {
    case CN_BODY_TAKE:
        return !body->byte_count || body->byte_count == body->size;
    case CN_BODY_READ:
    case CN_BODY_STORE:
        return !body->byte_count && body->size <= CN_FRAME_BODY_PIECE_MAX;
    case CN_BODY_HAS:
    case CN_BODY_KNOWN:
    case CN_BODY_DROP:
        return body->byte_count && is_ids(body->byte_count);
    default:
        return !body->byte_count;
    }
}

static bool is_answer(const struct cn_frame_body *body)
{
    switch (body->op) {
    case CN_BODY_LIST:
        return is_ids(body->byte_count);
    case CN_BODY_DIGESTS:
        return body->byte_count % CN_FRAME_DIGEST_SIZE == 0;
    case CN_BODY_HAS:
    case CN_BODY_KNOWN:
        return body->byte_count <= CN_FRAME_IDS_MAX;
    case CN_BODY_READ:
    case CN_BODY_STORE:
        return true;
    default:
        return !body->byte_count;
    }
}

bool cn_frame_get_body(const struct cn_frame *frame, struct cn_frame_body *body)
{
    const uint8_t *at = frame->body;
    if ((frame->kind != CN_FRAME_BODY_ASK && frame->kind != CN_FRAME_BODY_ANSWER) ||
        frame->size < CN_FRAME_BODY_SIZE ||
        frame->size > CN_FRAME_BODY_SIZE + CN_FRAME_BODY_PIECE_MAX)
        return false;
    uint32_t op = (uint32_t)get(&at, 4);
    *body = (struct cn_frame_body){.shard = (uint32_t)get(&at, 4)};
    body->number = get(&at, 8);
    memcpy(body->id, at, CN_FRAME_ID_SIZE);
    at += CN_FRAME_ID_SIZE;
    body->offset = get(&at, 8);
    body->size = get(&at, 8);
    body->sum = (uint32_t)get(&at, 4);
    body->rc = (int32_t)(uint32_t)get(&at, 4);
    body->bytes = at;
    body->byte_count = frame->size - CN_FRAME_BODY_SIZE;
    if (op >= CN_BODY_OPS || body->shard >= CN_CLUSTER_SHARDS_MAX)
        return false;
    body->op = (enum cn_frame_body_op)op;
    return frame->kind == CN_FRAME_BODY_ASK
               ? is_question(body)
               : body->rc <= 0 && body->rc > INT32_MIN && is_answer(body);
}

void cn_frame_reader_fini(struct cn_frame_reader *reader)
{
    cn_buf_fini(&reader->rest);
}

/* F1. *size: of the body. */
static bool take_head(const uint8_t *at, bool pipe, struct cn_frame *frame)
{
    frame->size = (size_t)get(&at, 4);
    uint32_t kind = (uint32_t)get(&at, 2), flags = (uint32_t)get(&at, 2);
    frame->channel = (uint32_t)get(&at, 4);
    frame->kind = (enum cn_frame_kind)kind;
    bool known = (kind >= CN_FRAME_HELLO && kind < CN_FRAME_KINDS) ||
                 (kind >= CN_FRAME_BODY_ASK && kind < CN_FRAME_BODY_END);
    if (pipe)
        known = kind == CN_FRAME_BEAT || (kind >= CN_FRAME_PIPE && kind < CN_FRAME_PIPE_KINDS);
    return frame->size <= CN_FRAME_BODY_MAX && !flags && (known || kind == CN_FRAME_PIPE) &&
           (pipe || !frame->channel);
}

/* How many bytes of it are missing until it is known how large it is, or until it is whole. */
static size_t lacks(const struct cn_frame_reader *reader, struct cn_frame *frame, bool *good)
{
    const struct cn_buf *rest = &reader->rest;
    if (rest->size < CN_FRAME_HEAD_SIZE)
        return CN_FRAME_HEAD_SIZE - rest->size;
    *good = take_head(rest->data, reader->pipe, frame);
    frame->body = rest->data + CN_FRAME_HEAD_SIZE;
    return *good ? CN_FRAME_HEAD_SIZE + frame->size - rest->size : 0;
}

int cn_frame_read(struct cn_frame_reader *reader, const uint8_t *bytes, size_t size,
                  bool (*each)(void *data, const struct cn_frame *frame), void *data)
{
    struct cn_buf *rest = &reader->rest;
    struct cn_frame frame = {0};
    while (rest->size > 0) { /* of one that had begun before */
        bool good = true, headless = rest->size < CN_FRAME_HEAD_SIZE;
        size_t want = lacks(reader, &frame, &good);
        size_t take = want < size ? want : size;
        cn_buf_append(rest, bytes, take); /* F2: what has come */
        bytes += take;
        size -= take;
        if (take < want)
            return 0;
        if (headless) {
            (void)lacks(reader, &frame, &good);
            if (!good)
                return CN_EPROTOCOL;
            if (frame.size > 0)
                continue;
        }
        frame.body = rest->data + CN_FRAME_HEAD_SIZE; /* it may have moved */
        struct cn_buf whole = *rest;
        *rest = (struct cn_buf){0};
        bool go_on = each(data, &frame);
        cn_buf_fini(&whole);
        if (!go_on)
            return 0;
    }
    while (size >= CN_FRAME_HEAD_SIZE) {
        if (!take_head(bytes, reader->pipe, &frame))
            return CN_EPROTOCOL;
        if (size - CN_FRAME_HEAD_SIZE < frame.size)
            break;
        frame.body = bytes + CN_FRAME_HEAD_SIZE;
        bytes += CN_FRAME_HEAD_SIZE + frame.size;
        size -= CN_FRAME_HEAD_SIZE + frame.size;
        if (!each(data, &frame))
            return 0;
    }
    if (size > 0)
        cn_buf_append(rest, bytes, size);
    return 0;
}
