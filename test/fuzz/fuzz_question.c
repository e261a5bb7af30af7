/* SPDX-License-Identifier: Apache-2.0 */
/* Questions and answers of another node: what is read, written again and read once more is the
 * same, the body is inside of the bytes, and there is what those who use it rely on (Q2). The first
 * byte says which of the two it is. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "object/call.h"
#include "remote/question.h"

static void require(int condition)
{
    if (!condition)
        abort();
}

/* Fields that are not known are skipped, so what is written may be less; and whoever sends may have
 * marked a field as one that must be known (base/wire.h), which is not kept. */
static void check_body(const struct cn_buf *again, const uint8_t *bytes, size_t size,
                       const uint8_t *body, size_t body_size)
{
    require(body + body_size == bytes + size && again->size <= (size_t)(body - bytes));
}

/* What remote/incoming.c and remote/stubs.c do not look at again. */
static void check_kind(const struct cn_question *question)
{
    switch (question->type) {
    case CN_QUESTION_CALL:
        require(question->kind == CN_CALL_FETCH || question->kind == CN_CALL_ADOPT ||
                question->method);
        /* fallthrough */
    case CN_QUESTION_SERVICE:
        require(question->namespace_id != 0);
        break;
    case CN_QUESTION_TARGET:
        require(question->serial && question->method);
        break;
    case CN_QUESTION_NODE:
        require(question->method != NULL);
        break;
    case CN_QUESTION_EVENT: /* compared with the names of handlers, and of scripts */
        require(question->name && question->method && question->name[question->name_size] == 0);
        break;
    default:
        require(question->type == CN_QUESTION_SOCKETS);
    }
}

static void check_question(const struct cn_buf *written)
{
    struct cn_question question = {0};
    struct cn_buf again = {0};
    const uint8_t *body;
    size_t body_size;
    require(cn_question_get(&question, written->data, written->size, &body, &body_size) == 0);
    cn_question_put(&question, &again);
    require(body_size == 0 && again.size == written->size &&
            memcmp(again.data, written->data, again.size) == 0);
    cn_question_clear(&question);
    cn_buf_fini(&again);
}

static void check_reply(const struct cn_buf *written)
{
    struct cn_reply reply = {0};
    struct cn_buf again = {0};
    const uint8_t *body;
    size_t body_size;
    require(cn_reply_get(&reply, written->data, written->size, &body, &body_size) == 0);
    cn_reply_put(&reply, &again);
    require(body_size == 0 && again.size == written->size &&
            memcmp(again.data, written->data, again.size) == 0);
    cn_reply_clear(&reply);
    cn_buf_fini(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct cn_question question = {0};
    struct cn_reply reply = {0};
    struct cn_buf again = {0};
    const uint8_t *body = NULL;
    size_t body_size = 0;
    if (size < 1)
        return 0;
    if (data[0] & 1) {
        if (cn_question_get(&question, data + 1, size - 1, &body, &body_size) == 0) {
            check_kind(&question);
            cn_question_put(&question, &again);
            check_body(&again, data + 1, size - 1, body, body_size);
            check_question(&again);
        }
    } else if (cn_reply_get(&reply, data + 1, size - 1, &body, &body_size) == 0) {
        require(reply.code < 0 || (!reply.code && reply.type != CN_REPLY_FAILED));
        cn_reply_put(&reply, &again);
        check_body(&again, data + 1, size - 1, body, body_size);
        check_reply(&again);
    }
    cn_question_clear(&question);
    cn_reply_clear(&reply);
    cn_buf_fini(&again);
    return 0;
}
