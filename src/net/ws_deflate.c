/* SPDX-License-Identifier: Apache-2.0 */
#include "net/ws_deflate.h"

#include <string.h>
#include <zlib.h>

#include "base/assert.h"
#include "base/buf.h"
#include "base/mem.h"
#include "net/ws_frame.h"

#define SMALL 128 /* below it a head start of Huffman tables eats what is won */
#define PIECE 16384
#define LEVEL 1 /* a chat line gains as much as from 6, at a third of the time */
#define WINDOW_BITS_MAX 15
/* What a sync flush ends with; not sent (RFC 7692, 7.2.1). */
static const uint8_t tail[4] = {0x00, 0x00, 0xff, 0xff};

struct cn_ws_deflate {
    z_stream out, in;
    unsigned out_bits; /* window of `out`; 0: not made yet */
    bool has_in;
    struct cn_buf scratch; /* the output of one call */
};

struct cn_ws_deflate *cn_ws_deflate_new(void)
{
    return CN_NEW(struct cn_ws_deflate);
}

void cn_ws_deflate_free(struct cn_ws_deflate *deflate)
{
    if (deflate->out_bits)
        deflateEnd(&deflate->out);
    if (deflate->has_in)
        inflateEnd(&deflate->in);
    cn_buf_fini(&deflate->scratch);
    cn_free(deflate);
}

static bool out_ready(struct cn_ws_deflate *deflate, unsigned bits)
{
    if (deflate->out_bits == bits)
        return deflateReset(&deflate->out) == Z_OK;
    if (deflate->out_bits)
        deflateEnd(&deflate->out);
    deflate->out_bits = 0;
    memset(&deflate->out, 0, sizeof(deflate->out));
    if (deflateInit2(&deflate->out, LEVEL, Z_DEFLATED, -(int)bits, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        return false;
    deflate->out_bits = bits;
    return true;
}

/* A large result is not kept for the next message. */
static void scratch_trim(struct cn_ws_deflate *deflate)
{
    if (deflate->scratch.capacity > 4 * PIECE)
        cn_buf_fini(&deflate->scratch);
}

/* zlib's function has the name that the parameters here like to have. */
static int flush_out(z_stream *out)
{
    return deflate(out, Z_SYNC_FLUSH);
}

static bool has_tail(const struct cn_buf *bytes)
{
    return bytes->size > sizeof(tail) &&
           memcmp(bytes->data + bytes->size - sizeof(tail), tail, sizeof(tail)) == 0;
}

static struct cn_ws_message *compress_now(struct cn_ws_deflate *deflate,
                                          const struct cn_ws_message *message, unsigned bits)
{
    if (!out_ready(deflate, bits))
        return NULL;
    z_stream *out = &deflate->out;
    struct cn_buf *scratch = &deflate->scratch;
    cn_buf_clear(scratch);
    out->next_in = (Bytef *)message->bytes; /* only read */
    out->avail_in = (uInt)message->size;
    /* The flush is over only when a call leaves room (zlib); output cut short at the end of a piece
     * has no tail. One that is no smaller than the message is given up, not sent. */
    do {
        cn_buf_reserve(scratch, PIECE);
        out->next_out = scratch->data + scratch->size;
        out->avail_out = PIECE;
        int rc = flush_out(out);
        if (rc != Z_OK && rc != Z_BUF_ERROR)
            return NULL;
        scratch->size += PIECE - out->avail_out;
    } while (out->avail_out == 0 && scratch->size < message->size + sizeof(tail));
    struct cn_ws_message *made = NULL;
    if (out->avail_out > 0 && has_tail(scratch) && scratch->size < message->size + sizeof(tail))
        made = cn_ws_message_new(message->text, scratch->data, scratch->size - sizeof(tail));
    scratch_trim(deflate);
    return made;
}

struct cn_ws_message *cn_ws_deflate(struct cn_ws_deflate *deflate, struct cn_ws_message *message,
                                    unsigned window_bits)
{
    CN_ASSERT(window_bits >= 9 && window_bits <= WINDOW_BITS_MAX);
    if (message->size < SMALL || message->size > UINT32_MAX)
        return NULL;
    /* What looks back less far than the window allows is good for every window; peers that ask
     * for a small one are rare, so theirs is made with the smallest. */
    if (!message->deflate_tried) {
        message->deflate_tried = true;
        message->deflated = compress_now(deflate, message, window_bits);
        message->deflated_bits = (uint8_t)window_bits;
    } else if (message->deflated && message->deflated_bits > window_bits) {
        struct cn_ws_message *smaller = compress_now(deflate, message, window_bits);
        cn_ws_message_unref(message->deflated);
        message->deflated = smaller;
        message->deflated_bits = (uint8_t)window_bits;
    }
    return message->deflated;
}

uint16_t cn_ws_inflate(struct cn_ws_deflate *deflate, const struct cn_ws_message *message,
                       size_t size_max, struct cn_ws_message **inflated)
{
    z_stream *in = &deflate->in;
    if (!deflate->has_in) {
        memset(in, 0, sizeof(*in));
        if (inflateInit2(in, -WINDOW_BITS_MAX) != Z_OK)
            return CN_WS_INTERNAL_ERROR;
        deflate->has_in = true;
    } else if (inflateReset(in) != Z_OK) {
        return CN_WS_INTERNAL_ERROR;
    }
    struct cn_buf *scratch = &deflate->scratch;
    cn_buf_clear(scratch);
    uint16_t code = 0;
    bool ended = false;
    for (int part = 0; part < 2 && code == 0 && !ended; part++) {
        in->next_in = part == 0 ? (Bytef *)message->bytes : (Bytef *)tail; /* only read */
        in->avail_in = part == 0 ? (uInt)message->size : sizeof(tail);
        do {
            cn_buf_reserve(scratch, PIECE);
            in->next_out = scratch->data + scratch->size;
            in->avail_out = PIECE;
            int rc = inflate(in, Z_SYNC_FLUSH);
            scratch->size += PIECE - in->avail_out;
            if (scratch->size > size_max)
                code = CN_WS_TOO_BIG;
            else if (rc == Z_STREAM_END)
                ended = true; /* a final block: nothing may follow, and nothing need */
            else if (rc != Z_OK && rc != Z_BUF_ERROR)
                code = CN_WS_BAD_DATA;
        } while (code == 0 && !ended && (in->avail_in > 0 || in->avail_out == 0));
    }
    if (code == 0) {
        *inflated = cn_ws_message_new(message->text, scratch->data, scratch->size);
        if (!*inflated)
            code = CN_WS_TOO_BIG;
    }
    scratch_trim(deflate);
    return code;
}
