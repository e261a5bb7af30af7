/* SPDX-License-Identifier: Apache-2.0 */
/* Questions and answers of another node: what is read is written as the same bytes again, and the
 * body is inside of them. The first byte says which of the two it is. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "remote/question.h"

static void require(int condition)
{
    if (!condition)
        abort();
}

/* Fields that are not known are skipped, so what is written may be less. */
static void check(const struct cn_buf *again, const uint8_t *bytes, size_t size,
                  const uint8_t *body, size_t body_size)
{
    size_t head = (size_t)(body - bytes);
    require(body + body_size == bytes + size && again->size <= head);
    if (again->size == head)
        require(memcmp(again->data, bytes, head) == 0);
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
            cn_question_put(&question, &again);
            check(&again, data + 1, size - 1, body, body_size);
        }
    } else if (cn_reply_get(&reply, data + 1, size - 1, &body, &body_size) == 0) {
        cn_reply_put(&reply, &again);
        check(&again, data + 1, size - 1, body, body_size);
    }
    cn_question_clear(&question);
    cn_reply_clear(&reply);
    cn_buf_fini(&again);
    return 0;
}
