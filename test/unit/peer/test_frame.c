/* SPDX-License-Identifier: Apache-2.0 */
/* What nodes say to each other, as bytes: whole, in pieces, and wrong. */
#include "peer/frame.h"

#include <string.h>

#include "base/err.h"
#include "test/lib/test.h"

struct seen {
    unsigned count, stop_after;
    struct cn_buf log; /* kind and body of each */
};

static bool see(void *data, const struct cn_frame *frame)
{
    struct seen *seen = data;
    cn_buf_append_byte(&seen->log, (uint8_t)frame->kind);
    cn_buf_append(&seen->log, frame->body, frame->size);
    return ++seen->count != seen->stop_after;
}

static void add(struct cn_buf *out, enum cn_frame_kind kind, const void *body, size_t size)
{
    uint8_t head[CN_FRAME_HEAD_SIZE];
    cn_frame_put_head(head, kind, 0, size);
    cn_buf_append(out, head, sizeof(head));
    cn_buf_append(out, body, size);
}

TEST(frame_read, finds_the_same_frames_however_the_bytes_are_cut)
{
    struct cn_buf stream = {0};
    char body[300];
    memset(body, 'x', sizeof(body));
    add(&stream, CN_FRAME_BEAT, NULL, 0);
    add(&stream, CN_FRAME_MESSAGE, body, sizeof(body));
    add(&stream, CN_FRAME_BEAT, NULL, 0);
    add(&stream, CN_FRAME_COPY, body, 1);
    for (size_t piece = 1; piece <= stream.size; piece++) {
        struct cn_frame_reader reader = {0};
        struct seen seen = {0};
        for (size_t at = 0; at < stream.size; at += piece) {
            size_t size = stream.size - at < piece ? stream.size - at : piece;
            CHECK_INT(0, cn_frame_read(&reader, stream.data + at, size, see, &seen));
        }
        CHECK_INT(4, seen.count);
        CHECK_INT(4 + sizeof(body) + 1, seen.log.size);
        CHECK_INT(0, reader.rest.size);
        cn_buf_fini(&seen.log);
        cn_frame_reader_fini(&reader);
    }
    cn_buf_fini(&stream);
}

/* The owner may have closed the link, and freed the reader, from inside. */
TEST(frame_read, stops_when_it_is_told_to)
{
    struct cn_buf stream = {0};
    struct cn_frame_reader reader = {0};
    struct seen seen = {.stop_after = 2};
    for (int i = 0; i < 4; i++)
        add(&stream, CN_FRAME_COPY, "ab", 2);
    CHECK_INT(0, cn_frame_read(&reader, stream.data, 3, see, &seen));
    CHECK_INT(0, cn_frame_read(&reader, stream.data + 3, stream.size - 3, see, &seen));
    CHECK_INT(2, seen.count);
    cn_buf_fini(&seen.log);
    cn_buf_fini(&stream);
    cn_frame_reader_fini(&reader);
}

static void check_malformed(const uint8_t head[CN_FRAME_HEAD_SIZE])
{
    for (size_t piece = 1; piece <= CN_FRAME_HEAD_SIZE; piece++) {
        struct cn_frame_reader reader = {0};
        struct seen seen = {0};
        int rc = 0;
        for (size_t at = 0; at < CN_FRAME_HEAD_SIZE && rc == 0; at += piece) {
            size_t left = CN_FRAME_HEAD_SIZE - at;
            rc = cn_frame_read(&reader, head + at, left < piece ? left : piece, see, &seen);
        }
        CHECK_INT(CN_EPROTOCOL, rc);
        CHECK_INT(0, seen.count);
        cn_frame_reader_fini(&reader);
    }
}

/* F2: before a byte of the body has come. */
TEST(frame_read, refuses_sizes_kinds_flags_and_channels_that_it_does_not_know)
{
    uint8_t head[CN_FRAME_HEAD_SIZE];
    cn_frame_put_head(head, CN_FRAME_COPY, 0, CN_FRAME_BODY_MAX);
    head[0]++;
    check_malformed(head);
    cn_frame_put_head(head, 0, 0, 4);
    check_malformed(head);
    cn_frame_put_head(head, CN_FRAME_KINDS, 0, 4);
    check_malformed(head);
    cn_frame_put_head(head, CN_FRAME_COPY, 0, 4);
    head[6] = 1;
    check_malformed(head);
    cn_frame_put_head(head, CN_FRAME_COPY, 1, 4);
    check_malformed(head);
}

TEST(frame_body, carries_what_its_question_or_answer_does_and_nothing_else)
{
    static uint8_t body[CN_FRAME_BODY_SIZE + CN_FRAME_BODY_PIECE_MAX + 1];
    struct cn_frame_body ask = {.op = CN_BODY_READ,
                                .shard = 7,
                                .number = 8,
                                .offset = 1ull << 40,
                                .size = CN_FRAME_BODY_PIECE_MAX,
                                .sum = 9},
                         got;
    struct cn_frame frame = {CN_FRAME_BODY_ASK, 0, body, CN_FRAME_BODY_SIZE};
    memset(ask.id, 'i', sizeof(ask.id));
    cn_frame_put_body(body, &ask);
    CHECK(cn_frame_get_body(&frame, &got));
    CHECK(got.op == ask.op && got.shard == 7 && got.number == 8 && got.offset == ask.offset &&
          got.size == ask.size && got.sum == 9 && got.rc == 0 && got.byte_count == 0);
    CHECK_INT(0, memcmp(got.id, ask.id, sizeof(got.id)));
    frame.kind = CN_FRAME_COPY;
    CHECK(!cn_frame_get_body(&frame, &got));
    static const struct {
        enum cn_frame_kind kind;
        unsigned op;
        uint32_t shard;
        uint64_t size;
        size_t bytes;
        int32_t rc;
        bool good;
    } rows[] = {
        {CN_FRAME_BODY_ASK, CN_BODY_READ, 0, CN_FRAME_BODY_PIECE_MAX + 1, 0, 0, false},
        {CN_FRAME_BODY_ASK, CN_BODY_READ, 0, 5, 5, 0, false},
        {CN_FRAME_BODY_ASK, CN_BODY_READ, CN_CLUSTER_SHARDS_MAX, 5, 0, 0, false},
        {CN_FRAME_BODY_ASK, CN_BODY_TAKE, 0, 5, 5, 0, true},
        {CN_FRAME_BODY_ASK, CN_BODY_TAKE, 0, 1ull << 40, 0, 0, true},
        {CN_FRAME_BODY_ASK, CN_BODY_TAKE, 0, 6, 5, 0, false},
        {CN_FRAME_BODY_ASK, CN_BODY_HAS, 0, 0, 32, 0, true},
        {CN_FRAME_BODY_ASK, CN_BODY_HAS, 0, 0, 33, 0, false},
        {CN_FRAME_BODY_ASK, CN_BODY_KNOWN, 0, 0, 0, 0, false},
        {CN_FRAME_BODY_ASK, CN_BODY_KNOWN, 0, 0, CN_FRAME_IDS_MAX * 16 + 16, 0, false},
        {CN_FRAME_BODY_ASK, CN_BODY_LIST, 0, 0, 16, 0, false},
        {CN_FRAME_BODY_ASK, CN_BODY_OPS, 0, 0, 0, 0, false},
        {CN_FRAME_BODY_ANSWER, CN_BODY_READ, 0, 0, CN_FRAME_BODY_PIECE_MAX, 0, true},
        {CN_FRAME_BODY_ANSWER, CN_BODY_READ, 0, 0, CN_FRAME_BODY_PIECE_MAX + 1, 0, false},
        {CN_FRAME_BODY_ANSWER, CN_BODY_READ, 0, 0, 0, CN_ENOTFOUND, true},
        {CN_FRAME_BODY_ANSWER, CN_BODY_READ, 0, 0, 0, 1, false},
        {CN_FRAME_BODY_ANSWER, CN_BODY_READ, 0, 0, 0, INT32_MIN, false}, /* has no opposite */
        {CN_FRAME_BODY_ANSWER, CN_BODY_LIST, 0, 0, 16, 0, true},
        {CN_FRAME_BODY_ANSWER, CN_BODY_LIST, 0, 0, 17, 0, false},
        {CN_FRAME_BODY_ANSWER, CN_BODY_DIGESTS, 0, 0, CN_FRAME_DIGEST_SIZE, 0, true},
        {CN_FRAME_BODY_ANSWER, CN_BODY_DIGESTS, 0, 0, CN_FRAME_DIGEST_SIZE - 1, 0, false},
        {CN_FRAME_BODY_ANSWER, CN_BODY_HAS, 0, 0, CN_FRAME_IDS_MAX + 1, 0, false},
        {CN_FRAME_BODY_ANSWER, CN_BODY_TAKE, 0, 0, 1, 0, false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        ask = (struct cn_frame_body){.op = (enum cn_frame_body_op)rows[i].op,
                                     .shard = rows[i].shard,
                                     .size = rows[i].size,
                                     .rc = rows[i].rc};
        cn_frame_put_body(body, &ask);
        frame.kind = rows[i].kind;
        frame.size = CN_FRAME_BODY_SIZE + rows[i].bytes;
        if (cn_frame_get_body(&frame, &got) != rows[i].good)
            test_fail(__FILE__, __LINE__, "row %zu", i);
    }
    frame.size = CN_FRAME_BODY_SIZE - 1;
    CHECK(!cn_frame_get_body(&frame, &got));
}

TEST(frame_hello, says_what_was_said_and_nothing_else_is_one)
{
    uint8_t body[CN_FRAME_HELLO_SIZE + 1];
    struct cn_frame_hello hello = {.version = 1, .disk = 1ull << 63, .life = 7, .to = 9}, got;
    memset(hello.cluster, 'c', sizeof(hello.cluster));
    cn_frame_put_hello(body, &hello);
    struct cn_frame frame = {CN_FRAME_HELLO, 0, body, CN_FRAME_HELLO_SIZE};
    CHECK(cn_frame_get_hello(&frame, &got));
    CHECK(got.version == 1 && got.disk == hello.disk && got.life == 7 && got.to == 9);
    CHECK_INT(0, memcmp(got.cluster, hello.cluster, sizeof(got.cluster)));
    frame.size--;
    CHECK(!cn_frame_get_hello(&frame, &got));
    frame.size += 2;
    CHECK(!cn_frame_get_hello(&frame, &got));
    frame.size = CN_FRAME_HELLO_SIZE;
    body[0] ^= 1;
    CHECK(!cn_frame_get_hello(&frame, &got));
}

TEST(frame_message, carries_records_exactly_if_it_is_a_feed_with_some)
{
    uint8_t body[CN_FRAME_MESSAGE_SIZE + 8] = {0};
    struct cn_member_message feed = {CN_MESSAGE_FEED, 7, 8, 9, 10, 12}, got;
    const uint8_t *records;
    size_t size;
    cn_frame_put_message(body, &feed);
    struct cn_frame frame = {CN_FRAME_MESSAGE, 0, body, sizeof(body)};
    CHECK(cn_frame_get_message(&frame, &got, &records, &size));
    CHECK(got.kind == feed.kind && got.shard == 7 && got.session == 8 && got.epoch == 9 &&
          got.from == 10 && got.to == 12);
    CHECK(records == body + CN_FRAME_MESSAGE_SIZE && size == 8);
    frame.size = CN_FRAME_MESSAGE_SIZE;
    CHECK(!cn_frame_get_message(&frame, &got, &records, &size)); /* none of them */
    const struct cn_member_message wrong[] = {
        {CN_MESSAGE_ASK, 7, 8, 9, 0, 0},                        /* with records */
        {CN_MESSAGE_FEED, 7, 8, 9, 12, 12},                     /* the same */
        {CN_MESSAGE_FEED, 7, 8, 9, 13, 12},                     /* backwards */
        {CN_MESSAGE_FEED, CN_CLUSTER_SHARDS_MAX, 8, 9, 10, 12}, /* no shard */
        {CN_MESSAGE_KINDS, 7, 8, 9, 10, 12},
    };
    frame.size = sizeof(body);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        cn_frame_put_message(body, &wrong[i]);
        CHECK(!cn_frame_get_message(&frame, &got, &records, &size));
    }
}

TEST(frame_copy, carries_bytes_exactly_if_it_is_a_piece)
{
    uint8_t body[CN_FRAME_COPY_SIZE + 8] = {0};
    struct cn_frame_copy piece = {.shard = 3, .part = CN_COPY_PIECE, .number = 4, .offset = 5}, got;
    cn_frame_put_copy(body, &piece);
    struct cn_frame frame = {CN_FRAME_COPY, 0, body, sizeof(body)};
    CHECK(cn_frame_get_copy(&frame, &got));
    CHECK(got.shard == 3 && got.number == 4 && got.offset == 5 && got.size == 8);
    frame.kind = CN_FRAME_COPIED;
    CHECK(!cn_frame_get_copy(&frame, &got));
    frame.size = CN_FRAME_COPY_SIZE;
    CHECK(cn_frame_get_copy(&frame, &got));
    frame.kind = CN_FRAME_COPY;
    CHECK(!cn_frame_get_copy(&frame, &got)); /* a piece of nothing */
    piece.part = CN_COPY_END;
    cn_frame_put_copy(body, &piece);
    CHECK(cn_frame_get_copy(&frame, &got));
    piece.part = CN_COPY_FAILED + 1;
    cn_frame_put_copy(body, &piece);
    CHECK(!cn_frame_get_copy(&frame, &got));
}
