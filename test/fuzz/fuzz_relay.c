/* SPDX-License-Identifier: Apache-2.0 */
/* What nodes ask each other's administration, and the answers (src/admin/relay.h): what is read,
 * written again and read once more is the same, the piece is inside of the bytes, and what a
 * request or a head is made of has what those who use it rely on. The first byte says which of the
 * two it is. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "admin/relay.h"

static void require(int condition)
{
    if (!condition)
        abort();
}

/* Fields that are not known are skipped, so what is written may be less; and whoever sends may have
 * marked a field as one that must be known (base/wire.h), which is not kept. */
static void check(const struct cn_buf *again, const uint8_t *bytes, size_t size,
                  const uint8_t *piece, size_t piece_size)
{
    require(piece + piece_size == bytes + size && again->size <= (size_t)(piece - bytes));
}

static void check_ask(const struct cn_buf *written)
{
    struct cn_relay_ask ask = {0};
    struct cn_buf again = {0};
    const uint8_t *piece;
    size_t piece_size;
    require(cn_relay_ask_get(&ask, written->data, written->size, &piece, &piece_size) == 0);
    cn_relay_ask_put(&ask, &again);
    require(piece_size == 0 && again.size == written->size &&
            memcmp(again.data, written->data, again.size) == 0);
    cn_relay_ask_clear(&ask);
    cn_buf_fini(&again);
}

static void check_answer(const struct cn_buf *written)
{
    struct cn_relay_answer answer = {0};
    struct cn_buf again = {0};
    const uint8_t *piece;
    size_t piece_size;
    require(cn_relay_answer_get(&answer, written->data, written->size, &piece, &piece_size) == 0);
    cn_relay_answer_put(&answer, &again);
    require(piece_size == 0 && again.size == written->size &&
            memcmp(again.data, written->data, again.size) == 0);
    cn_relay_answer_clear(&answer);
    cn_buf_fini(&again);
}

static void check_pairs(const struct cn_buf *pairs)
{
    const char *text = (const char *)pairs->data;
    for (size_t at = 0; at < pairs->size;) {
        size_t value = at + strlen(text + at) + 1;
        require(text[at] && value < pairs->size);
        at = value + strlen(text + value) + 1;
        require(at <= pairs->size);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct cn_relay_ask ask = {0};
    struct cn_relay_answer answer = {0};
    struct cn_buf again = {0};
    const uint8_t *piece = NULL;
    size_t piece_size = 0;
    if (size < 1)
        return 0;
    if (data[0] & 1) {
        if (cn_relay_ask_get(&ask, data + 1, size - 1, &piece, &piece_size) == 0) {
            require(ask.step != CN_RELAY_OPEN || (ask.target && ask.target[0] == '/'));
            check_pairs(&ask.sent);
            cn_relay_ask_put(&ask, &again);
            check(&again, data + 1, size - 1, piece, piece_size);
            check_ask(&again);
        }
    } else if (cn_relay_answer_get(&answer, data + 1, size - 1, &piece, &piece_size) == 0) {
        require(!answer.head || (answer.type && answer.status >= 200));
        check_pairs(&answer.fields);
        cn_relay_answer_put(&answer, &again);
        check(&again, data + 1, size - 1, piece, piece_size);
        check_answer(&again);
    }
    cn_relay_ask_clear(&ask);
    cn_relay_answer_clear(&answer);
    cn_buf_fini(&again);
    return 0;
}
