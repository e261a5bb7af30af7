/* SPDX-License-Identifier: Apache-2.0 */
/* The WebSocket codec: the areas of the Autobahn test suite (framing, pings, reserved bits and
 * opcodes, fragmentation, UTF-8, close codes, limits, compression), each in one piece and byte by
 * byte. */
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/rand.h"
#include "net/ws_deflate.h"
#include "net/ws_frame.h"
#include "net/ws_handshake.h"
#include "test/lib/test.h"

#define MESSAGE_MAX (1u << 20)

static const uint8_t key[4] = {0x37, 0xfa, 0x21, 0x3d};

/* What a reader made of some bytes, as text: "t:hello b:.. p: q:.. c1000:bye !1002". */
static const char *read_all(const struct cn_buf *wire, size_t piece, bool deflate)
{
    static struct cn_buf seen;
    struct cn_ws_deflate *deflater = cn_ws_deflate_new();
    struct cn_ws_rules rules = {true, deflate, MESSAGE_MAX, deflater, false};
    struct cn_ws_reader reader = {0};
    struct cn_ws_event event = {0};
    cn_buf_clear(&seen);
    bool over = false;
    for (size_t at = 0; at < wire->size && !over; at += piece) {
        const uint8_t *bytes = wire->data + at;
        size_t size = wire->size - at < piece ? wire->size - at : piece;
        while (size > 0 && !over) {
            enum cn_ws_event_kind kind = cn_ws_reader_next(&reader, &rules, &bytes, &size, &event);
            if (kind != CN_WS_MORE && seen.size)
                cn_buf_append_byte(&seen, ' ');
            switch (kind) {
            case CN_WS_MESSAGE:
                cn_buf_append_str(&seen, event.message->text ? "t:" : "b:");
                if (event.message->size > 64)
                    cn_buf_printf(&seen, "%zu", event.message->size);
                else
                    cn_buf_append(&seen, event.message->bytes, event.message->size);
                cn_ws_message_unref(event.message);
                break;
            case CN_WS_PING:
            case CN_WS_PONG:
                cn_buf_printf(&seen, "%c:%.*s", kind == CN_WS_PING ? 'p' : 'q', event.size,
                              (char *)event.bytes);
                break;
            case CN_WS_CLOSE:
                cn_buf_printf(&seen, "c%u:%.*s", event.code, event.size, (char *)event.bytes);
                over = true;
                break;
            case CN_WS_ERROR:
                CHECK(event.problem);
                cn_buf_printf(&seen, "!%u", event.code);
                over = true;
                break;
            case CN_WS_MORE:
                CHECK_INT(0, size);
            }
        }
    }
    cn_ws_reader_fini(&reader);
    cn_ws_deflate_free(deflater);
    return cn_buf_text(&seen);
}

/* A frame of a client; `first` is its first byte. */
static void add(struct cn_buf *wire, uint8_t first, const void *bytes, size_t size)
{
    uint8_t head[CN_WS_HEAD_MAX];
    size_t head_size = cn_ws_head(head, CN_WS_OP_TEXT, false, size, key);
    head[0] = first;
    cn_buf_append(wire, head, head_size);
    cn_buf_reserve(wire, size);
    if (size)
        cn_ws_mask(wire->data + wire->size, bytes, size, key, 0);
    wire->size += size;
}

#define ADD(wire, first, text) add(wire, first, text, sizeof(text) - 1)

static void expect_with(struct cn_buf *wire, const char *want, bool deflate)
{
    static const size_t pieces[] = {1u << 30, 1, 2, 3, 7};
    for (size_t i = 0; i < sizeof(pieces) / sizeof(*pieces); i++)
        CHECK_STR(want, read_all(wire, pieces[i], deflate));
    cn_buf_fini(wire);
}

#define EXPECT(wire, want) expect_with(wire, want, false)

TEST(ws_frame, whole_messages)
{
    struct cn_buf wire = {0};
    ADD(&wire, 0x81, "hello");
    ADD(&wire, 0x82, "bytes");
    ADD(&wire, 0x81, "");
    EXPECT(&wire, "t:hello b:bytes t:");
}

TEST(ws_frame, every_form_of_length)
{
    static const size_t sizes[] = {125, 126, 127, 128, 65535, 65536, 70000};
    static const char *const seen[] = {"b:125",   "b:126",   "b:127",  "b:128",
                                       "b:65535", "b:65536", "b:70000"};
    uint8_t *bytes = cn_alloc_zero(70000);
    for (size_t i = 0; i < 7; i++) {
        struct cn_buf wire = {0};
        add(&wire, 0x82, bytes, sizes[i]);
        EXPECT(&wire, seen[i]);
    }
    cn_free(bytes);
}

TEST(ws_frame, lengths_must_be_short)
{
    struct cn_buf wire = {0};
    cn_buf_append(&wire, "\x82\xfe\x00\x7d\1\2\3\4", 8);
    EXPECT(&wire, "!1002");
    cn_buf_append(&wire, "\x82\xff\0\0\0\0\0\0\xff\xff\1\2\3\4", 14);
    EXPECT(&wire, "!1002");
    cn_buf_append(&wire, "\x82\xff\x80\0\0\0\0\0\0\0\1\2\3\4", 14);
    EXPECT(&wire, "!1002");
}

TEST(ws_frame, too_large_is_1009_before_it_has_come)
{
    struct cn_buf wire = {0};
    cn_buf_append(&wire, "\x82\xff\0\0\0\0\0\x10\0\1\1\2\3\4", 14);
    EXPECT(&wire, "!1009");
    uint8_t *bytes = cn_alloc_zero(MESSAGE_MAX);
    add(&wire, 0x02, bytes, MESSAGE_MAX);
    ADD(&wire, 0x80, "x");
    CHECK_STR("!1009", read_all(&wire, 65536, false));
    cn_buf_fini(&wire);
    cn_free(bytes);
}

TEST(ws_frame, pings_and_pongs)
{
    struct cn_buf wire = {0};
    uint8_t long_one[126] = {0};
    ADD(&wire, 0x89, "");
    ADD(&wire, 0x89, "are you there");
    ADD(&wire, 0x8a, "unasked");
    add(&wire, 0x89, long_one, 125);
    struct cn_buf copy = {0};
    cn_buf_append(&copy, wire.data, wire.size);
    EXPECT(&wire, "p: p:are you there q:unasked p:");
    add(&copy, 0x89, long_one, 126);
    EXPECT(&copy, "p: p:are you there q:unasked p: !1002");
}

TEST(ws_frame, reserved_bits_and_opcodes)
{
    static const uint8_t first[] = {0xc1, 0xa1, 0x91, 0xf1, 0xc9, 0xc8, 0x83, 0x84,
                                    0x85, 0x86, 0x87, 0x8b, 0x8c, 0x8f, 0x09, 0x08};
    for (size_t i = 0; i < sizeof(first); i++) {
        struct cn_buf wire = {0};
        ADD(&wire, 0x81, "before");
        add(&wire, first[i], "x", 1);
        EXPECT(&wire, "t:before !1002");
    }
}

TEST(ws_frame, frames_of_a_client_are_masked)
{
    struct cn_buf wire = {0};
    cn_buf_append(&wire, "\x81\x05hello", 7);
    EXPECT(&wire, "!1002");
    struct cn_ws_rules rules = {false, false, MESSAGE_MAX, NULL, false};
    struct cn_ws_reader reader = {0};
    struct cn_ws_event event;
    const uint8_t *bytes = (const uint8_t *)"\x81\x05hello\x81\x81";
    size_t size = 9;
    CHECK_INT(CN_WS_MESSAGE, cn_ws_reader_next(&reader, &rules, &bytes, &size, &event));
    CHECK(event.message->size == 5 && memcmp(event.message->bytes, "hello", 5) == 0);
    cn_ws_message_unref(event.message);
    CHECK_INT(CN_WS_ERROR, cn_ws_reader_next(&reader, &rules, &bytes, &size, &event));
    cn_ws_reader_fini(&reader);
}

TEST(ws_frame, where_it_does_not_matter_both_are_read)
{
    struct cn_ws_rules rules = {.masked = true, .message_size_max = 100, .any_mask = true};
    struct cn_ws_reader reader = {0};
    struct cn_ws_event event;
    const uint8_t *bytes = (const uint8_t *)"\x81\x02hi\x81\x82\x01\x01\x01\x01ih";
    size_t size = 12;
    for (int i = 0; i < 2; i++) {
        CHECK_INT(CN_WS_MESSAGE, cn_ws_reader_next(&reader, &rules, &bytes, &size, &event));
        CHECK(event.message->size == 2 && memcmp(event.message->bytes, "hi", 2) == 0);
        cn_ws_message_unref(event.message);
    }
    cn_ws_reader_fini(&reader);
}

TEST(ws_frame, fragments)
{
    struct cn_buf wire = {0};
    ADD(&wire, 0x01, "one ");
    ADD(&wire, 0x00, "");
    ADD(&wire, 0x89, "between");
    ADD(&wire, 0x00, "two ");
    ADD(&wire, 0x80, "three");
    ADD(&wire, 0x02, "");
    ADD(&wire, 0x80, "");
    EXPECT(&wire, "p:between t:one two three b:");
    ADD(&wire, 0x80, "nothing began");
    EXPECT(&wire, "!1002");
    ADD(&wire, 0x01, "one");
    ADD(&wire, 0x81, "another");
    EXPECT(&wire, "!1002");
    ADD(&wire, 0x81, "done");
    ADD(&wire, 0x00, "nothing began");
    EXPECT(&wire, "t:done !1002");
}

TEST(ws_frame, text_is_utf8)
{
    struct cn_buf wire = {0};
    ADD(&wire, 0x81, "\xce\xba\xe1\xbd\xb9\xf4\x8f\xbf\xbf\xef\xbf\xbf");
    EXPECT(&wire, "t:\xce\xba\xe1\xbd\xb9\xf4\x8f\xbf\xbf\xef\xbf\xbf");
    /* Split inside a character, across frames. */
    ADD(&wire, 0x01, "\xce\xba\xe1");
    ADD(&wire, 0x00, "\xbd");
    ADD(&wire, 0x80, "\xb9\xf0\x90\x80\x80");
    EXPECT(&wire, "t:\xce\xba\xe1\xbd\xb9\xf0\x90\x80\x80");
    static const char *const bad[] = {"\x80",
                                      "\xc0\xaf",
                                      "\xe0\x80\xaf",
                                      "\xed\xa0\x80",
                                      "\xf4\x90\x80\x80",
                                      "\xf8\x88\x80\x80\x80",
                                      "\xfe",
                                      "ok\xce",
                                      "\xe1\xbd",
                                      "\xf0\x90\x80",
                                      "a\x80\x80\x80",
                                      "\xc1\xbf",
                                      "\xf0\x8f\xbf\xbf"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        add(&wire, 0x81, bad[i], strlen(bad[i]));
        EXPECT(&wire, "!1007");
    }
    ADD(&wire, 0x82, "\xc0\xaf");
    EXPECT(&wire, "b:\xc0\xaf");
}

TEST(ws_frame, bad_text_is_not_waited_for)
{
    static const char *const bad[] = {"x\xf4\x90", "x\xed\xa0", "x\xc0", "x\xe0\x80", "\x80"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        struct cn_buf wire = {0};
        add(&wire, 0x01, bad[i], strlen(bad[i]));
        EXPECT(&wire, "!1007");
    }
    struct cn_buf wire = {0};
    ADD(&wire, 0x01, "\xf4\x8f\xbf");
    ADD(&wire, 0x00, "\xbf\xed\x9f");
    ADD(&wire, 0x80, "\xbf");
    EXPECT(&wire, "t:\xf4\x8f\xbf\xbf\xed\x9f\xbf");
}

TEST(ws_frame, closes)
{
    struct cn_buf wire = {0};
    ADD(&wire, 0x88, "");
    EXPECT(&wire, "c1005:");
    ADD(&wire, 0x88,
        "\x03\xe8"
        "bye");
    EXPECT(&wire, "c1000:bye");
    ADD(&wire, 0x88, "\x03");
    EXPECT(&wire, "!1002");
    ADD(&wire, 0x88, "\x03\xe8\xc0\xaf");
    EXPECT(&wire, "!1007");
    ADD(&wire, 0x88, "\x03\xe8");
    ADD(&wire, 0x81, "too late");
    EXPECT(&wire, "c1000:");
    static const unsigned good[] = {1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010,
                                    1011, 1012, 1013, 1014, 3000, 3999, 4000, 4999};
    static const unsigned bad[] = {0,    999,  1004, 1005, 1006, 1015,
                                   1016, 1100, 2000, 2999, 5000, 65535};
    for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++)
        CHECK(cn_ws_code_valid(good[i]));
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        uint8_t code[2] = {(uint8_t)(bad[i] >> 8), (uint8_t)bad[i]};
        add(&wire, 0x88, code, 2);
        EXPECT(&wire, "!1002");
    }
}

TEST(ws_frame, compressed_messages)
{
    struct cn_buf wire = {0};
    /* The example of RFC 7692, 7.2.3.1, whole and in two fragments; then one that is not. */
    ADD(&wire, 0xc1, "\xf2\x48\xcd\xc9\xc9\x07\x00");
    ADD(&wire, 0x41, "\xf2\x48\xcd");
    ADD(&wire, 0x80, "\xc9\xc9\x07\x00");
    ADD(&wire, 0x81, "plain");
    ADD(&wire, 0xc1, "\x00");
    expect_with(&wire, "t:Hello t:Hello t:plain t:", true);
    ADD(&wire, 0xc1, "\xff\xff\xff");
    expect_with(&wire, "!1007", true);
    ADD(&wire, 0x41, "\xf2\x48\xcd");
    ADD(&wire, 0xc0, "\xc9\xc9\x07\x00");
    expect_with(&wire, "!1002", true);
    ADD(&wire, 0xc9, "x");
    expect_with(&wire, "!1002", true);
}

TEST(ws_frame, a_bomb_is_1009)
{
    struct cn_ws_deflate *deflater = cn_ws_deflate_new();
    uint8_t *zeros = cn_alloc_zero(4 * MESSAGE_MAX);
    struct cn_ws_message *bomb = cn_ws_message_new(false, zeros, 4 * MESSAGE_MAX);
    struct cn_ws_message *small = cn_ws_deflate(deflater, bomb, 15);
    CHECK(small && small->size < 50000);
    struct cn_buf wire = {0};
    add(&wire, 0xc2, small->bytes, small->size);
    CHECK_STR("!1009", read_all(&wire, 65536, true));
    cn_buf_fini(&wire);
    cn_ws_message_unref(bomb);
    cn_free(zeros);
    cn_ws_deflate_free(deflater);
}

TEST(ws_frame, what_we_compress_comes_back)
{
    struct cn_rand rand;
    cn_rand_init(&rand, test_seed());
    struct cn_ws_deflate *deflater = cn_ws_deflate_new();
    for (int i = 0; i < 200; i++) {
        size_t size = cn_rand_below(&rand, 100000);
        uint8_t *bytes = cn_alloc(size + 1);
        for (size_t k = 0; k < size; k++)
            bytes[k] = (uint8_t)(cn_rand_next(&rand) % (i % 5 ? 7 : 256));
        struct cn_ws_message *message = cn_ws_message_new(false, bytes, size), *back;
        unsigned bits = 9 + (unsigned)cn_rand_below(&rand, 7);
        struct cn_ws_message *made = cn_ws_deflate(deflater, message, bits);
        CHECK(made == cn_ws_deflate(deflater, message, 15)); /* made once */
        if (made) {
            CHECK(made->size < size);
            CHECK_INT(0, cn_ws_inflate(deflater, made, size, &back));
            CHECK(back->size == size && memcmp(back->bytes, bytes, size) == 0);
            cn_ws_message_unref(back);
            CHECK_INT(CN_WS_TOO_BIG, cn_ws_inflate(deflater, made, size - 1, &back));
        } else {
            CHECK(size < 128 || i % 5 == 0);
        }
        cn_ws_message_unref(message);
        cn_free(bytes);
    }
    cn_ws_deflate_free(deflater);
}

TEST(ws_handshake, accept_key_of_the_standard)
{
    char accept[CN_WS_ACCEPT_SIZE + 1];
    cn_ws_accept_of("dGhlIHNhbXBsZSBub25jZQ==", 24, accept);
    CHECK_STR("s3pPLMBiTxaQ9kYGzzhZRbK+xOo=", accept);
}

static const char *choose(const char *offer)
{
    static char text[200];
    struct cn_ws_terms terms;
    if (!cn_ws_offer_choose(offer, strlen(offer), &terms))
        return "none";
    cn_ws_offer_answer(&terms, text, sizeof(text));
    return text;
}

/* Bytes that do not compress end their output at every place of a piece of it, also at its very
 * end: none of that may be taken for the end of the flush. */
TEST(ws_frame, messages_around_the_size_of_a_piece_are_compressed_or_left)
{
    struct cn_rand rand;
    cn_rand_init(&rand, test_seed());
    struct cn_ws_deflate *deflater = cn_ws_deflate_new();
    static uint8_t bytes[3 * 16384 + 64];
    for (int pieces = 1; pieces <= 3; pieces++) {
        for (int off = -40; off <= 40; off++) {
            for (size_t plain = 0; plain <= 32; plain += 8) { /* a little that does compress */
                size_t size = (size_t)(pieces * 16384 + off);
                for (size_t i = 0; i < size; i++)
                    bytes[i] = (uint8_t)cn_rand_next(&rand);
                memset(bytes, 'a', plain);
                struct cn_ws_message *message = cn_ws_message_new(false, bytes, size), *back;
                struct cn_ws_message *made = cn_ws_deflate(deflater, message, 15);
                if (made) {
                    CHECK(made->size < size);
                    CHECK_INT(0, cn_ws_inflate(deflater, made, sizeof(bytes), &back));
                    CHECK(back->size == size && memcmp(back->bytes, bytes, size) == 0);
                    cn_ws_message_unref(back);
                }
                cn_ws_message_unref(message);
            }
        }
    }
    cn_ws_deflate_free(deflater);
}

TEST(ws_handshake, terms_of_compression)
{
    const char *plain = CN_WS_OFFER;
    CHECK_STR(plain, choose("permessage-deflate"));
    CHECK_STR(plain, choose("permessage-deflate; client_max_window_bits"));
    CHECK_STR(plain,
              choose("x-webkit-deflate-frame, permessage-deflate; client_max_window_bits=10"));
    CHECK_STR(CN_WS_OFFER "; server_max_window_bits=10",
              choose("permessage-deflate; server_max_window_bits=10"));
    CHECK_STR(plain, choose("permessage-deflate; server_max_window_bits=8, permessage-deflate"));
    CHECK_STR(
        CN_WS_OFFER "; server_max_window_bits=12",
        choose("permessage-deflate;server_max_window_bits=\"12\" ; server_no_context_takeover"));
    CHECK_STR("none", choose(""));
    CHECK_STR("none", choose("permessage-deflate; unknown"));
    CHECK_STR("none", choose("permessage-deflate; server_max_window_bits=16"));
    CHECK_STR("none", choose("permessage-deflate; server_max_window_bits"));
    CHECK_STR("none", choose("permessage-deflate; client_max_window_bits; client_max_window_bits"));
    CHECK_STR("none", choose("permessage-deflate; server_no_context_takeover=1"));
    struct cn_ws_terms terms;
    CHECK(cn_ws_answer_check(plain, strlen(plain), &terms));
    CHECK(!cn_ws_answer_check("permessage-deflate", 18, &terms));
    CHECK(!cn_ws_answer_check("other", 5, &terms));
}
