/* SPDX-License-Identifier: Apache-2.0 */
/* permessage-deflate by itself: what it saves, what it refuses to make or to unpack. */
#include "net/ws_deflate.h"

#include <string.h>

#include "base/mem.h"
#include "base/rand.h"
#include "net/ws_frame.h"
#include "test/lib/test.h"

static struct cn_ws_message *words(size_t size)
{
    char *text = cn_alloc(size);
    for (size_t i = 0; i < size; i++)
        text[i] = "the quick brown fox "[i % 20];
    struct cn_ws_message *message = cn_ws_message_new(true, text, size);
    cn_free(text);
    return message;
}

static void check_round_trip(struct cn_ws_deflate *deflate, struct cn_ws_message *message,
                             unsigned bits)
{
    struct cn_ws_message *packed = cn_ws_deflate(deflate, message, bits), *unpacked;
    CHECK(packed && packed->size < message->size);
    CHECK_INT(0, cn_ws_inflate(deflate, packed, message->size, &unpacked));
    CHECK_INT(message->size, unpacked->size);
    CHECK(memcmp(message->bytes, unpacked->bytes, message->size) == 0);
    CHECK(unpacked->text);
    cn_ws_message_unref(unpacked);
}

TEST(ws_deflate, comes_back_whole_at_every_size_around_a_piece_and_every_window)
{
    static const size_t sizes[] = {128, 1000, 16383, 16384, 16385, 100000, 3000000};
    struct cn_ws_deflate *deflate = cn_ws_deflate_new();
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
        for (unsigned bits = 9; bits <= 15; bits += 3) {
            struct cn_ws_message *message = words(sizes[i]);
            check_round_trip(deflate, message, bits);
            cn_ws_message_unref(message);
        }
    cn_ws_deflate_free(deflate);
}

TEST(ws_deflate, small_and_incompressible_messages_are_sent_as_they_are)
{
    struct cn_ws_deflate *deflate = cn_ws_deflate_new();
    struct cn_ws_message *message = words(127);
    CHECK(!cn_ws_deflate(deflate, message, 15));
    cn_ws_message_unref(message);
    struct cn_rand rand;
    uint8_t noise[40000];
    cn_rand_init(&rand, 1);
    for (size_t i = 0; i < sizeof(noise); i++)
        noise[i] = (uint8_t)cn_rand_next(&rand);
    message = cn_ws_message_new(false, noise, sizeof(noise));
    CHECK(!cn_ws_deflate(deflate, message, 15));
    CHECK(message->deflate_tried);
    cn_ws_message_unref(message);
    cn_ws_deflate_free(deflate);
}

TEST(ws_deflate, a_room_is_compressed_for_once_and_again_for_a_peer_with_a_smaller_window)
{
    struct cn_ws_deflate *deflate = cn_ws_deflate_new();
    struct cn_ws_message *message = words(20000);
    struct cn_ws_message *first = cn_ws_deflate(deflate, message, 15);
    CHECK(first == cn_ws_deflate(deflate, message, 15));
    CHECK(cn_ws_deflate(deflate, message, 9));
    CHECK_INT(9, message->deflated_bits);
    first = message->deflated;
    CHECK(first == cn_ws_deflate(deflate, message, 15)); /* good for every window */
    cn_ws_message_unref(message);
    cn_ws_deflate_free(deflate);
}

TEST(ws_deflate, a_bomb_is_stopped_at_the_limit)
{
    struct cn_ws_deflate *deflate = cn_ws_deflate_new();
    size_t size = 8 << 20;
    uint8_t *zeros = cn_alloc_zero(size);
    struct cn_ws_message *message = cn_ws_message_new(false, zeros, size), *unpacked;
    cn_free(zeros);
    struct cn_ws_message *packed = cn_ws_deflate(deflate, message, 15);
    CHECK(packed->size < 100000);
    CHECK_INT(CN_WS_TOO_BIG, cn_ws_inflate(deflate, packed, size - 1, &unpacked));
    CHECK_INT(CN_WS_TOO_BIG, cn_ws_inflate(deflate, packed, 1000, &unpacked));
    CHECK_INT(0, cn_ws_inflate(deflate, packed, size, &unpacked)); /* and it goes on working */
    cn_ws_message_unref(unpacked);
    cn_ws_message_unref(message);
    cn_ws_deflate_free(deflate);
}

TEST(ws_deflate, what_is_no_deflate_closes_with_1007)
{
    struct cn_ws_deflate *deflate = cn_ws_deflate_new();
    static const uint8_t bad[] = {0xff, 0xff, 0xff, 0xff, 0xff};
    struct cn_ws_message *message = cn_ws_message_new(false, bad, sizeof(bad)), *unpacked;
    CHECK_INT(CN_WS_BAD_DATA, cn_ws_inflate(deflate, message, 1000, &unpacked));
    cn_ws_message_unref(message);
    message = cn_ws_message_new(true, "", 0); /* nothing at all is an empty message */
    CHECK_INT(0, cn_ws_inflate(deflate, message, 1000, &unpacked));
    CHECK_INT(0, unpacked->size);
    cn_ws_message_unref(unpacked);
    cn_ws_message_unref(message);
    cn_ws_deflate_free(deflate);
}
