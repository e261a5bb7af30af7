/* SPDX-License-Identifier: Apache-2.0 */
/* Calls to other nodes as bytes: there and back, and what is refused. */
#include "remote/question.h"

#include <string.h>

#include "base/err.h"
#include "object/call.h"
#include "test/lib/test.h"

static struct cn_question sample(void)
{
    struct cn_question question = {
        .type = CN_QUESTION_CALL,
        .kind = CN_CALL_RPC,
        .namespace_id = 3,
        .id = {1, 2, 3},
        .name = (uint8_t *)"na\0me",
        .name_size = 5,
        .turn = 9,
        .method = (char *)"method",
        .origin = {.request = 1, .trace = {2, 3}, .span = 4, .depth = 5, .unsampled = true}};
    return question;
}

static int read_back(const struct cn_question *question, struct cn_question *back)
{
    struct cn_buf out = {0};
    const uint8_t *body;
    size_t size = 0;
    cn_question_put(question, &out);
    cn_buf_append_str(&out, "the body");
    int rc = cn_question_get(back, out.data, out.size, &body, &size);
    if (rc == 0)
        CHECK(size == 8 && memcmp(body, "the body", 8) == 0);
    cn_buf_fini(&out);
    return rc;
}

TEST(question, comes_back_as_it_was)
{
    struct cn_question question = sample(), back = {0};
    CHECK_INT(0, read_back(&question, &back));
    CHECK_INT(question.kind, back.kind);
    CHECK(back.namespace_id == 3 && back.turn == 9 && memcmp(back.id, question.id, 32) == 0);
    CHECK(back.name_size == 5 && memcmp(back.name, "na\0me", 6) == 0);
    CHECK_STR("method", back.method);
    CHECK(memcmp(&back.origin, &question.origin, sizeof(back.origin)) == 0);
    cn_question_clear(&back);

    struct cn_question target = {.type = CN_QUESTION_TARGET,
                                 .life = UINT64_MAX,
                                 .lane = 1,
                                 .serial = 2,
                                 .method = (char *)"1:f"};
    CHECK_INT(0, read_back(&target, &back));
    CHECK(back.life == UINT64_MAX && back.lane == 1 && back.serial == 2);
    cn_question_clear(&back);

    struct cn_question event = {.type = CN_QUESTION_EVENT,
                                .name = (uint8_t *)"queue",
                                .name_size = 5,
                                .method = (char *)"script"};
    CHECK_INT(0, read_back(&event, &back));
    CHECK_STR("queue", (char *)back.name);
    CHECK_STR("script", back.method);
    cn_question_clear(&back);
    event.method = NULL; /* of no script */
    CHECK_INT(CN_EPROTOCOL, read_back(&event, &back));
    cn_question_clear(&back);
}

/* Q2 */
TEST(question, is_refused_if_no_peer_may_ask_it)
{
    struct cn_question back = {0}, question;
#define REFUSED(change)                                   \
    question = sample();                                  \
    question.change;                                      \
    CHECK_INT(CN_EPROTOCOL, read_back(&question, &back)); \
    cn_question_clear(&back)
    REFUSED(type = 0);
    REFUSED(type = CN_QUESTION_EVENT + 1);
    REFUSED(kind = CN_CALL_ALARM);
    REFUSED(kind = CN_CALL_ACCESS);
    REFUSED(kind = CN_CALL_SOCKET);
    REFUSED(namespace_id = 0);
    REFUSED(method = NULL);
    REFUSED(type = CN_QUESTION_SERVICE); /* which is of the kind OTHER */
    REFUSED(type = CN_QUESTION_TARGET);  /* of no instance */
    const uint8_t *body;
    size_t size;
    CHECK_INT(CN_EPROTOCOL, cn_question_get(&back, (const uint8_t *)"\1\0\0", 3, &body, &size));
    CHECK_INT(CN_EPROTOCOL, cn_question_get(&back, (const uint8_t *)"\5\0\0\0ab", 6, &body, &size));
}

TEST(reply, comes_back_as_it_was)
{
    struct cn_reply reply = {.type = CN_REPLY_FAILED,
                             .code = CN_EJS,
                             .faults = CN_FAULT_REMOTE | CN_FAULT_RESET,
                             .text = (char *)"it threw",
                             .has_bytes = true},
                    back = {0};
    struct cn_buf out = {0};
    const uint8_t *body;
    size_t size;
    cn_reply_put(&reply, &out);
    CHECK_INT(0, cn_reply_get(&back, out.data, out.size, &body, &size));
    CHECK(back.type == CN_REPLY_FAILED && back.code == CN_EJS && back.faults == 9);
    CHECK(back.has_bytes && size == 0);
    CHECK_STR("it threw", back.text);
    cn_reply_clear(&back);
    reply.code = 0; /* a failure has one */
    cn_buf_clear(&out);
    cn_reply_put(&reply, &out);
    CHECK_INT(CN_EPROTOCOL, cn_reply_get(&back, out.data, out.size, &body, &size));
    cn_reply_clear(&back);
    cn_buf_fini(&out);
}

/* Q2 */
TEST(reply, is_refused_if_its_code_is_none_of_an_error)
{
    for (uint32_t type = CN_REPLY_DONE; type <= CN_REPLY_REFUSED; type++) {
        struct cn_reply reply = {.type = type, .code = 1}, back = {0};
        struct cn_buf out = {0};
        const uint8_t *body;
        size_t size;
        cn_reply_put(&reply, &out);
        CHECK_INT(CN_EPROTOCOL, cn_reply_get(&back, out.data, out.size, &body, &size));
        cn_reply_clear(&back);
        cn_buf_fini(&out);
    }
}

/* Q3. A release whose answers of nothing are assent knows "queue" alone. */
TEST(event, is_asked_for_by_a_word_that_earlier_releases_refuse)
{
    CHECK_STR("batch", cn_event_word("queue"));
    CHECK_STR("queue", cn_event_handler((const uint8_t *)"batch", 5));
    CHECK_STR("queue", cn_event_handler((const uint8_t *)"queue", 5));
    CHECK(!cn_event_handler((const uint8_t *)"scheduled", 9));
    CHECK(!cn_event_handler((const uint8_t *)"batches", 7));
    CHECK(!cn_event_handler((const uint8_t *)"batch", 4));
    CHECK(!cn_event_handler((const uint8_t *)"batch", 6)); /* and its NUL */
    CHECK(!cn_event_handler(NULL, 0));
}
