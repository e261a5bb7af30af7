/* SPDX-License-Identifier: Apache-2.0 */
#include "net/ws_frame.h"

#include <string.h>

#include "base/assert.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "net/ws_deflate.h"

#define FINAL 0x80
#define COMPRESSED 0x40
#define RESERVED 0x30
#define MASKED 0x80
#define GROW_MIN 4096

/* --- messages --------------------------------------------------------------------------- */

static struct cn_ws_message *message_alloc(bool text, size_t capacity)
{
    struct cn_ws_message *message = cn_try_alloc(sizeof(*message) + capacity);
    if (!message)
        return NULL;
    *message = (struct cn_ws_message){.refs = 1, .text = text, .capacity = capacity};
    return message;
}

struct cn_ws_message *cn_ws_message_new(bool text, const void *bytes, size_t size)
{
    struct cn_ws_message *message = message_alloc(text, size);
    if (!message)
        return NULL;
    message->size = size;
    if (size > 0)
        memcpy(message->bytes, bytes, size);
    return message;
}

struct cn_ws_message *cn_ws_message_ref(struct cn_ws_message *message)
{
    message->refs++;
    return message;
}

void cn_ws_message_unref(struct cn_ws_message *message)
{
    if (!message)
        return;
    CN_ASSERT(message->refs > 0);
    if (--message->refs > 0)
        return;
    cn_ws_message_unref(message->deflated);
    cn_free(message);
}

/* --- masks ------------------------------------------------------------------------------- */

unsigned cn_ws_mask(uint8_t *to, const uint8_t *from, size_t size, const uint8_t mask[4],
                    unsigned at)
{
    uint8_t turned[8];
    for (unsigned i = 0; i < 8; i++)
        turned[i] = mask[(at + i) & 3];
    uint64_t word, key;
    memcpy(&key, turned, 8);
    size_t i = 0;
    for (; i + 8 <= size; i += 8) {
        memcpy(&word, from + i, 8);
        word ^= key;
        memcpy(to + i, &word, 8);
    }
    for (; i < size; i++)
        to[i] = from[i] ^ turned[i & 7];
    return (at + (unsigned)(size & 3)) & 3;
}

/* --- heads ------------------------------------------------------------------------------- */

size_t cn_ws_head(uint8_t head[CN_WS_HEAD_MAX], enum cn_ws_opcode opcode, bool compressed,
                  uint64_t size, const uint8_t mask[4])
{
    size_t at = 2;
    head[0] = (uint8_t)(FINAL | (compressed ? COMPRESSED : 0) | opcode);
    if (size < 126) {
        head[1] = (uint8_t)size;
    } else {
        unsigned count = size < 65536 ? 2 : 8;
        head[1] = count == 2 ? 126 : 127;
        for (unsigned i = 0; i < count; i++)
            head[at++] = (uint8_t)(size >> (8 * (count - 1 - i)));
    }
    if (mask) {
        head[1] |= MASKED;
        memcpy(head + at, mask, 4);
        at += 4;
    }
    return at;
}

bool cn_ws_code_valid(unsigned code)
{
    return (code >= 1000 && code <= 1003) || (code >= 1007 && code <= 1014) ||
           (code >= 3000 && code <= 4999);
}

/* Bytes that the head needs, as far as those that are there tell. */
static size_t head_wanted(const struct cn_ws_reader *reader)
{
    if (reader->head_size < 2)
        return 2;
    unsigned length = reader->head[1] & 127;
    return 2u +
           (length == 126   ? 2u
            : length == 127 ? 8u
                            : 0u) +
           (reader->head[1] & MASKED ? 4u : 0u);
}

static enum cn_ws_event_kind fail(struct cn_ws_event *event, uint16_t code, const char *problem)
{
    event->code = code;
    event->problem = problem;
    return CN_WS_ERROR;
}

static bool is_control(unsigned opcode)
{
    return opcode & 8;
}

/* The first two bytes say everything but the length. MORE: nothing is wrong. */
static enum cn_ws_event_kind check_start(const struct cn_ws_reader *reader,
                                         const struct cn_ws_rules *rules, struct cn_ws_event *event)
{
    unsigned opcode = reader->head[0] & 15, length = reader->head[1] & 127;
    bool control = is_control(opcode), compressed = reader->head[0] & COMPRESSED;
    if (reader->head[0] & RESERVED || (compressed && (!rules->deflate || control)))
        return fail(event, CN_WS_PROTOCOL_ERROR, "a reserved bit is set");
    if (!rules->any_mask && !(reader->head[1] & MASKED) != !rules->masked)
        return fail(event, CN_WS_PROTOCOL_ERROR,
                    rules->masked ? "a client's frame is not masked"
                                  : "a server's frame is masked");
    if (control) {
        if (opcode > CN_WS_OP_PONG)
            return fail(event, CN_WS_PROTOCOL_ERROR, "a reserved opcode");
        if (!(reader->head[0] & FINAL))
            return fail(event, CN_WS_PROTOCOL_ERROR, "a control frame is fragmented");
        if (length > CN_WS_CONTROL_MAX)
            return fail(event, CN_WS_PROTOCOL_ERROR, "a control frame is too long");
        return CN_WS_MORE;
    }
    if (opcode > CN_WS_OP_BINARY)
        return fail(event, CN_WS_PROTOCOL_ERROR, "a reserved opcode");
    if (opcode == CN_WS_OP_CONTINUATION) {
        if (!reader->kind)
            return fail(event, CN_WS_PROTOCOL_ERROR, "a continuation without a beginning");
        if (compressed)
            return fail(event, CN_WS_PROTOCOL_ERROR, "a continuation is marked as compressed");
    } else if (reader->kind) {
        return fail(event, CN_WS_PROTOCOL_ERROR, "a message begins inside another");
    }
    return CN_WS_MORE;
}

/* A complete head: MORE, or ERROR. */
static enum cn_ws_event_kind head_complete(struct cn_ws_reader *reader,
                                           const struct cn_ws_rules *rules,
                                           struct cn_ws_event *event)
{
    unsigned length = reader->head[1] & 127;
    unsigned count = length == 126 ? 2 : length == 127 ? 8 : 0;
    uint64_t size = count ? 0 : length;
    for (unsigned i = 0; i < count; i++)
        size = size << 8 | reader->head[2 + i];
    if ((count == 2 && size < 126) || (count == 8 && (size < 65536 || size >> 63)))
        return fail(event, CN_WS_PROTOCOL_ERROR, "a length is not in its shortest form");
    uint64_t have = reader->partial ? reader->partial->size : 0;
    if (size > rules->message_size_max || have + size > rules->message_size_max)
        return fail(event, CN_WS_TOO_BIG, "the message is too large");
    if (reader->head[1] & MASKED) /* to the front, where the payload finds it */
        memmove(reader->head, reader->head + 2 + count, 4);
    else
        memset(reader->head, 0, 4);
    reader->left = size;
    reader->mask_at = 0;
    reader->in_payload = true;
    return CN_WS_MORE;
}

/* Takes the head from *bytes. MORE with in_payload set: it is complete. */
static enum cn_ws_event_kind read_head(struct cn_ws_reader *reader, const struct cn_ws_rules *rules,
                                       const uint8_t **bytes, size_t *size,
                                       struct cn_ws_event *event)
{
    for (;;) {
        size_t wanted = head_wanted(reader), missing = wanted - reader->head_size;
        size_t taken = missing < *size ? missing : *size;
        memcpy(reader->head + reader->head_size, *bytes, taken);
        bool started = reader->head_size < 2 && reader->head_size + taken >= 2;
        reader->head_size = (uint8_t)(reader->head_size + taken);
        *bytes += taken;
        *size -= taken;
        if (reader->head_size < 2)
            return CN_WS_MORE;
        if (started) {
            if (check_start(reader, rules, event) == CN_WS_ERROR)
                return CN_WS_ERROR;
            reader->opcode = reader->head[0] & 15;
            reader->final = reader->head[0] & FINAL;
            if (!is_control(reader->opcode) && reader->opcode != CN_WS_OP_CONTINUATION) {
                reader->kind = reader->opcode;
                reader->compressed = reader->head[0] & COMPRESSED;
                reader->checked = 0;
            }
        }
        if (reader->head_size == head_wanted(reader))
            return head_complete(reader, rules, event);
        if (*size == 0)
            return CN_WS_MORE;
    }
}

/* --- messages as they come ---------------------------------------------------------------- */

/* Room for `extra` more bytes of the message; `whole` of them are to be expected in all. */
static bool partial_grow(struct cn_ws_reader *reader, size_t extra, size_t whole)
{
    struct cn_ws_message *partial = reader->partial;
    size_t have = partial ? partial->size : 0, capacity = partial ? partial->capacity : 0;
    if (partial && capacity - have >= extra)
        return true;
    /* What is announced is believed only up to twice what has come. */
    size_t wanted = have + extra, twice = 2 * wanted < GROW_MIN ? GROW_MIN : 2 * wanted;
    wanted = whole < twice ? (whole > wanted ? whole : wanted) : twice;
    if (!partial) {
        reader->partial = message_alloc(reader->kind == CN_WS_OP_TEXT, wanted);
        return reader->partial != NULL;
    }
    partial = cn_try_realloc(partial, sizeof(*partial) + wanted);
    if (!partial)
        return false;
    partial->capacity = wanted;
    reader->partial = partial;
    return true;
}

/* How many bytes at the end are the beginning of a sequence whose rest may still come; -1: of one
 * that cannot become valid. */
static int unfinished_tail(const uint8_t *text, size_t size)
{
    for (size_t back = 1; back <= 3 && back <= size; back++) {
        const uint8_t *lead = text + size - back;
        if (*lead < 0x80)
            return 0;
        if (*lead < 0xc0)
            continue;
        size_t full = *lead >= 0xf0 ? 4 : *lead >= 0xe0 ? 3 : 2;
        if (full <= back)
            return 0;
        uint8_t padded[4] = {0, *lead == 0xe0 ? 0xa0 : *lead == 0xf0 ? 0x90 : 0x80, 0x80, 0x80};
        memcpy(padded, lead, back);
        return cn_utf8_sequence((const char *)padded, full) ? (int)back : -1;
    }
    return 0;
}

/* Looks at the text that has come since the last time. */
static bool text_valid(struct cn_ws_reader *reader, bool whole)
{
    const uint8_t *text = reader->partial->bytes + reader->checked;
    size_t size = reader->partial->size - reader->checked;
    int tail = whole ? 0 : unfinished_tail(text, size);
    if (tail < 0 || !cn_utf8_valid((const char *)text, size - (size_t)tail))
        return false;
    reader->checked += size - (size_t)tail;
    return true;
}

/* The message is whole: gives it away. */
static enum cn_ws_event_kind message_complete(struct cn_ws_reader *reader,
                                              const struct cn_ws_rules *rules,
                                              struct cn_ws_event *event)
{
    if (!reader->partial && !partial_grow(reader, 0, 0))
        return fail(event, CN_WS_TOO_BIG, "there is no memory for the message");
    struct cn_ws_message *message = reader->partial;
    reader->kind = 0;
    if (reader->compressed) {
        struct cn_ws_message *inflated = NULL;
        uint16_t code = cn_ws_inflate(rules->deflater, message, rules->message_size_max, &inflated);
        reader->partial = NULL;
        cn_ws_message_unref(message);
        if (code)
            return fail(event, code,
                        code == CN_WS_TOO_BIG ? "the message is too large"
                                              : "the compressed data are damaged");
        message = inflated;
        if (message->text && !cn_utf8_valid((const char *)message->bytes, message->size)) {
            cn_ws_message_unref(message);
            return fail(event, CN_WS_BAD_DATA, "the text is not UTF-8");
        }
    } else if (message->text && !text_valid(reader, true)) {
        return fail(event, CN_WS_BAD_DATA, "the text is not UTF-8");
    }
    reader->partial = NULL;
    event->message = message;
    return CN_WS_MESSAGE;
}

static enum cn_ws_event_kind read_data(struct cn_ws_reader *reader, const struct cn_ws_rules *rules,
                                       const uint8_t **bytes, size_t *size,
                                       struct cn_ws_event *event)
{
    size_t taken = reader->left < *size ? (size_t)reader->left : *size;
    if (taken > 0) {
        size_t have = reader->partial ? reader->partial->size : 0;
        if (!partial_grow(reader, taken, have + (size_t)reader->left))
            return fail(event, CN_WS_TOO_BIG, "there is no memory for the message");
        uint8_t *to = reader->partial->bytes + reader->partial->size;
        reader->mask_at = (uint8_t)cn_ws_mask(to, *bytes, taken, reader->head, reader->mask_at);
        reader->partial->size += taken;
        reader->left -= taken;
        *bytes += taken;
        *size -= taken;
    }
    bool whole = reader->left == 0 && reader->final;
    /* A text that has gone wrong already is not waited for. */
    if (!whole && taken > 0 && reader->partial->text && !reader->compressed &&
        !text_valid(reader, false))
        return fail(event, CN_WS_BAD_DATA, "the text is not UTF-8");
    if (reader->left > 0)
        return CN_WS_MORE;
    reader->in_payload = false;
    reader->head_size = 0;
    return whole ? message_complete(reader, rules, event) : CN_WS_MORE;
}

/* --- control frames ----------------------------------------------------------------------- */

static enum cn_ws_event_kind close_complete(struct cn_ws_event *event)
{
    if (event->size == 0) {
        event->code = CN_WS_NO_STATUS;
        return CN_WS_CLOSE;
    }
    if (event->size == 1)
        return fail(event, CN_WS_PROTOCOL_ERROR, "a close frame with half a code");
    event->code = (uint16_t)(event->bytes[0] << 8 | event->bytes[1]);
    if (!cn_ws_code_valid(event->code))
        return fail(event, CN_WS_PROTOCOL_ERROR, "a close code that must not be sent");
    event->size = (uint8_t)(event->size - 2);
    memmove(event->bytes, event->bytes + 2, event->size);
    if (!cn_utf8_valid((const char *)event->bytes, event->size))
        return fail(event, CN_WS_BAD_DATA, "the reason of a close frame is not UTF-8");
    return CN_WS_CLOSE;
}

static enum cn_ws_event_kind read_control(struct cn_ws_reader *reader, const uint8_t **bytes,
                                          size_t *size, struct cn_ws_event *event)
{
    size_t taken = reader->left < *size ? (size_t)reader->left : *size;
    size_t have = reader->control.size;
    CN_ASSERT(have + reader->left <= CN_WS_CONTROL_MAX);
    reader->mask_at =
        (uint8_t)cn_ws_mask(event->bytes + have, *bytes, taken, reader->head, reader->mask_at);
    *bytes += taken;
    *size -= taken;
    reader->left -= taken;
    if (reader->left > 0) {
        cn_buf_append(&reader->control, event->bytes + have, taken);
        return CN_WS_MORE;
    }
    if (have > 0) {
        memcpy(event->bytes, reader->control.data, have);
        cn_buf_fini(&reader->control);
    }
    event->size = (uint8_t)(have + taken);
    reader->in_payload = false;
    reader->head_size = 0;
    if (reader->opcode == CN_WS_OP_PING)
        return CN_WS_PING;
    return reader->opcode == CN_WS_OP_PONG ? CN_WS_PONG : close_complete(event);
}

enum cn_ws_event_kind cn_ws_reader_next(struct cn_ws_reader *reader,
                                        const struct cn_ws_rules *rules, const uint8_t **bytes,
                                        size_t *size, struct cn_ws_event *event)
{
    for (;;) {
        enum cn_ws_event_kind kind = CN_WS_MORE;
        if (!reader->in_payload) {
            if (*size == 0)
                return CN_WS_MORE;
            kind = read_head(reader, rules, bytes, size, event);
            if (kind == CN_WS_ERROR || !reader->in_payload)
                return kind;
        }
        if (*size == 0 && reader->left > 0)
            return CN_WS_MORE;
        kind = is_control(reader->opcode) ? read_control(reader, bytes, size, event)
                                          : read_data(reader, rules, bytes, size, event);
        if (kind != CN_WS_MORE || *size == 0)
            return kind;
    }
}

void cn_ws_reader_fini(struct cn_ws_reader *reader)
{
    cn_ws_message_unref(reader->partial);
    reader->partial = NULL;
    cn_buf_fini(&reader->control);
}
