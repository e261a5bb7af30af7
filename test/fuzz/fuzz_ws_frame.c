/* SPDX-License-Identifier: Apache-2.0 */
/* WebSocket frames. The first byte chooses: bit 0 a server reads (masked), bit 1 compression, bits
 * 2..7 the size of the pieces. However the bytes are cut, the events must be the same. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/utf8.h"
#include "net/ws_deflate.h"
#include "net/ws_frame.h"

#define MESSAGE_MAX 70000

static void require(int condition)
{
    if (!condition)
        abort();
}

static void record(struct cn_buf *log, enum cn_ws_event_kind kind, struct cn_ws_event *event)
{
    cn_buf_append_byte(log, (uint8_t)kind);
    if (kind == CN_WS_MESSAGE) {
        struct cn_ws_message *message = event->message;
        require(message->size <= MESSAGE_MAX && message->refs == 1);
        require(!message->text || cn_utf8_valid((char *)message->bytes, message->size));
        cn_buf_append(log, message->bytes, message->size);
        cn_ws_message_unref(message);
    } else if (kind == CN_WS_ERROR) {
        require(event->code == 1002 || event->code == 1007 || event->code == 1009);
        require(event->problem && strlen(event->problem) <= CN_WS_REASON_MAX);
        cn_buf_append(log, &event->code, 2);
    } else if (kind != CN_WS_MORE) {
        require(event->size <= CN_WS_CONTROL_MAX);
        require(kind != CN_WS_CLOSE || event->code == 1005 || cn_ws_code_valid(event->code));
        cn_buf_append(log, event->bytes, event->size);
    }
}

static void run(const uint8_t *data, size_t size, uint8_t options, size_t piece, struct cn_buf *log)
{
    struct cn_ws_deflate *deflater = cn_ws_deflate_new();
    struct cn_ws_rules rules = {options & 1, options & 2, MESSAGE_MAX, deflater, options & 4};
    struct cn_ws_reader reader = {0};
    struct cn_ws_event event;
    bool over = false;
    for (size_t at = 0; at < size && !over; at += piece) {
        const uint8_t *bytes = data + at;
        size_t left = size - at < piece ? size - at : piece;
        while (left > 0 && !over) {
            enum cn_ws_event_kind kind = cn_ws_reader_next(&reader, &rules, &bytes, &left, &event);
            if (kind == CN_WS_MORE)
                break;
            record(log, kind, &event);
            over = kind == CN_WS_ERROR || kind == CN_WS_CLOSE;
        }
    }
    cn_ws_reader_fini(&reader);
    cn_ws_deflate_free(deflater);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    struct cn_buf whole = {0}, pieces = {0};
    run(data + 1, size - 1, data[0], SIZE_MAX / 2, &whole);
    run(data + 1, size - 1, data[0], 1 + (data[0] >> 2), &pieces);
    require(whole.size == pieces.size &&
            (whole.size == 0 || memcmp(whole.data, pieces.data, whole.size) == 0));
    cn_buf_fini(&whole);
    cn_buf_fini(&pieces);
    return 0;
}
