/* SPDX-License-Identifier: Apache-2.0 */
/* service/queue/queue_call.c - the caller's side of a queue: what is asked of it. */
#include "base/assert.h"
#include "base/mem.h"
#include "service/queue/queue.h"

void cn_queue_call_fini(struct cn_service_call *base)
{
    struct cn_queue_call *call = CN_CONTAINER_OF(base, struct cn_queue_call, base);
    cn_free(call->messages);
    cn_free(call->verdicts);
    cn_buf_fini(&call->bodies);
}

struct cn_queue_call *cn_queue_call_new(struct cn_namespace *ns, enum cn_queue_op op)
{
    struct cn_queue_call *call = CN_NEW(struct cn_queue_call);
    cn_service_call_init(&call->base, ns, CN_QUEUE_OBJECT, op, cn_queue_call_fini);
    cn_list_init(&call->link);
    call->paused = -1;
    call->retention_s = -1;
    return call;
}

void cn_queue_add(struct cn_queue_call *call, const void *body, size_t size,
                  enum cn_queue_type type, int64_t delay_s)
{
    CN_ASSERT(call->count < CN_QUEUE_BATCH_COUNT_MAX);
    if (!call->messages)
        call->messages = cn_alloc_zero(CN_QUEUE_BATCH_COUNT_MAX * sizeof(*call->messages));
    call->messages[call->count++] = (struct cn_queue_message){
        .offset = call->bodies.size, .size = size, .type = type, .delay_s = delay_s};
    cn_buf_append(&call->bodies, body, size);
}
