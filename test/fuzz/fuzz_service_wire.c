/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of services from another node, and answers to them. The first byte says which service, the
 * second which operation and way. What is taken is read as the class or the caller would; and
 * written, read and written once more it is the same bytes. (Not those that came: there may be
 * fields in them that are not known, or are marked as ones that must be: base/wire.h.) */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "object/node.h"
#include "service/d1/d1.h"
#include "service/queue/queue.h"
#include "service/r2/r2.h"
#include "service/service.h"
#include "service/wire.h"

/* The size of a body of R2 is written before its bytes, which are enough for who reads it. */
enum { R2_SIZE_MAX = 16 };

static struct cn_namespace ns = {.name = (char *)"$any/x"};
static volatile unsigned sum;

static void touch(const void *bytes, size_t size)
{
    const uint8_t *at = bytes;
    for (size_t i = 0; at && i < size; i++)
        sum += at[i];
}

/* As d1_run.c does. */
static void touch_d1(const struct cn_d1_call *call)
{
    for (size_t i = 0; i < call->query_count; i++) {
        const struct cn_d1_query *query = &call->queries[i];
        if (query->size)
            touch(call->bytes.data + query->at, query->size);
        if (query->count)
            touch(&call->values[query->first], query->count * sizeof(*call->values));
        if (i == 100)
            break;
    }
}

/* As queue.c and background/consumers.c do. */
static void touch_queue(const struct cn_queue_call *call)
{
    for (size_t i = 0; i < call->count; i++) {
        if (call->messages[i].size)
            touch(call->bodies.data + call->messages[i].offset, call->messages[i].size);
        touch(call->messages[i].id, strlen(call->messages[i].id));
    }
}

static void check_again(const struct cn_service_wire *wire, unsigned op, const struct cn_buf *once)
{
    struct cn_service_call *call = cn_alloc_zero(wire->size);
    struct cn_buf twice = {0};
    cn_service_call_init(call, &ns, "0", op, wire->fini);
    if (cn_service_wire_asked(wire, call, once->data, once->size, NULL) != 0)
        abort();
    cn_service_wire_ask(wire, call, &twice);
    if (twice.size != once->size || (twice.size && memcmp(twice.data, once->data, twice.size) != 0))
        abort();
    cn_buf_fini(&twice);
    cn_service_call_free(call);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t count = 0;
    const struct cn_service_def *wired[CN_SERVICE_MAX];
    for (size_t i = 0; cn_service_table[i]; i++)
        if (cn_service_table[i]->wire)
            wired[count++] = cn_service_table[i];
    if (size < 2)
        return 0;
    const struct cn_service_def *def = wired[data[0] % count];
    const struct cn_service_wire *wire = def->wire;
    bool is_answer = data[1] & 0x80;
    struct cn_service_call *call = cn_alloc_zero(wire->size);
    cn_service_call_init(call, &ns, "0", data[1] & 0x1f, wire->fini);
    int rc = is_answer ? cn_service_wire_answered(wire, call, data + 2, size - 2, NULL)
                       : cn_service_wire_asked(wire, call, data + 2, size - 2, NULL);
    if (rc == 0 && def == &cn_service_d1)
        touch_d1((struct cn_d1_call *)call);
    if (rc == 0 && def == &cn_service_queue)
        touch_queue((struct cn_queue_call *)call);
    if (rc == 0 && !is_answer) {
        struct cn_buf once = {0};
        cn_service_wire_ask(wire, call, &once);
        if (once.size > size - 2 + (def == &cn_service_r2 ? R2_SIZE_MAX : 0))
            abort();
        check_again(wire, data[1] & 0x1f, &once);
        cn_buf_fini(&once);
    }
    cn_service_call_free(call);
    return 0;
}
