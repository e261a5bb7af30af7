/* SPDX-License-Identifier: Apache-2.0 */
/* What nodes ask each other's administration as bytes: there and back, and what is refused (R5 of
 * admin/relay.h). Sessions, hops and losses are shown with real nodes: test/cluster/server. */
#include "admin/relay.h"

#include <string.h>

#include "base/assert.h"
#include "test/lib/test.h"

static struct cn_relay_ask sample(void)
{
    return (struct cn_relay_ask){.step = CN_RELAY_OPEN,
                                 .session = 7,
                                 .body_ends = true,
                                 .method = (char *)"POST",
                                 .target = (char *)"/api/x?y=1",
                                 .content_type = (char *)"application/json",
                                 .host = (char *)"h",
                                 .https = true,
                                 .scopes = CN_SCOPE_ALL,
                                 .who = (char *)"id",
                                 .name = (char *)"admin"};
}

static int read_ask(const struct cn_relay_ask *ask, struct cn_relay_ask *back)
{
    struct cn_buf out = {0};
    const uint8_t *piece;
    size_t size = 0;
    cn_relay_ask_put(ask, &out);
    cn_buf_append_str(&out, "piece");
    int rc = cn_relay_ask_get(back, out.data, out.size, &piece, &size);
    if (rc == 0)
        CHECK(size == 5 && memcmp(piece, "piece", 5) == 0);
    cn_buf_fini(&out);
    return rc;
}

TEST(relay_wire, a_request_comes_back_as_it_was)
{
    struct cn_relay_ask ask = sample(), back = {0};
    cn_buf_append(&ask.sent, "expires\0soon\0", 13);
    CHECK_INT(0, read_ask(&ask, &back));
    CHECK_STR("POST", back.method);
    CHECK_STR("/api/x?y=1", back.target);
    CHECK_STR("admin", back.name);
    CHECK(back.https && back.body_ends && back.session == 7 && back.scopes == CN_SCOPE_ALL);
    CHECK(back.sent.size == 13 && memcmp(back.sent.data, ask.sent.data, 13) == 0);
    cn_relay_ask_clear(&back);
    cn_buf_fini(&ask.sent);
}

TEST(relay_wire, what_no_node_sends_is_refused)
{
    struct cn_relay_ask back = {0}, ask = sample();
    ask.target = (char *)"api";
    CHECK_INT(CN_EPROTOCOL, read_ask(&ask, &back));
    ask = sample();
    ask.method = NULL;
    CHECK_INT(CN_EPROTOCOL, read_ask(&ask, &back));
    ask = sample();
    ask.scopes = 0; /* who may nothing does not ask */
    CHECK_INT(CN_EPROTOCOL, read_ask(&ask, &back));
    ask = sample();
    ask.session = 0;
    CHECK_INT(CN_EPROTOCOL, read_ask(&ask, &back));
    static const struct {
        const char *bytes;
        size_t size;
    } pairs[] = {{"a\0b", 3}, {"a\0", 2}, {"\0b\0", 3}, {"a\0b\r\nc: d\0", 10}};
    for (size_t i = 0; i < CN_ARRAY_COUNT(pairs); i++) {
        ask = sample();
        cn_buf_append(&ask.sent, pairs[i].bytes, pairs[i].size);
        CHECK_INT(CN_EPROTOCOL, read_ask(&ask, &back));
        cn_buf_fini(&ask.sent);
    }
    cn_relay_ask_clear(&back);
}

TEST(relay_wire, an_answer_comes_back_as_it_was_and_its_head_cannot_be_split)
{
    struct cn_relay_answer answer = {.head = true,
                                     .status = 200,
                                     .type = (char *)"application/json",
                                     .length = 3,
                                     .ended = true,
                                     .owner = UINT64_MAX},
                           back = {0};
    struct cn_buf out = {0};
    const uint8_t *piece;
    size_t size;
    cn_relay_answer_put(&answer, &out);
    CHECK_INT(0, cn_relay_answer_get(&back, out.data, out.size, &piece, &size));
    CHECK(back.head && back.ended && !back.cut && back.status == 200 && back.length == 3 &&
          back.owner == UINT64_MAX);
    for (size_t cut = 0; cut < out.size; cut++)
        CHECK(cn_relay_answer_get(&back, out.data, cut, &piece, &size) < 0 || !back.ended);
    static const char *const types[] = {"a\r\nb: c", "a\nb", NULL};
    for (size_t i = 0; i < CN_ARRAY_COUNT(types); i++) {
        cn_buf_clear(&out);
        answer.type = (char *)types[i];
        cn_relay_answer_put(&answer, &out);
        CHECK_INT(CN_EPROTOCOL, cn_relay_answer_get(&back, out.data, out.size, &piece, &size));
    }
    cn_relay_answer_clear(&back);
    cn_buf_fini(&out);
}
