/* SPDX-License-Identifier: Apache-2.0 */
/* service/queue/queue_wire.c - calls of queues to other nodes (service/wire.h). */
#include <string.h>

#include "base/mem.h"
#include "object/node.h"
#include "service/queue/queue.h"
#include "service/wire.h"

#define BODIES_MAX (32u << 20)
#define DELAY_S_MAX (10 * 365 * 86400ll) /* times are reckoned with it */

/* --- the dead letter queue: the number and the name of its namespace -------------------------- */

static bool put_namespace(const void *field, struct cn_buf *out)
{
    const struct cn_namespace *ns = *(struct cn_namespace *const *)field;
    if (!ns)
        return false;
    cn_wire_put_varint(out, ns->id);
    cn_buf_append_str(out, ns->name);
    return true;
}

static bool get_namespace(void *field, const uint8_t *bytes, size_t size, void *data)
{
    const uint8_t *at = bytes, *end = bytes + size;
    struct cn_namespace *ns = NULL;
    uint64_t id;
    if (!data || !cn_wire_get_varint(&at, end, &id) || id > UINT32_MAX ||
        memchr(at, 0, (size_t)(end - at)))
        return false;
    char *name = cn_strndup((const char *)at, (size_t)(end - at));
    if (cn_service_of(name) == &cn_service_queue)
        ns = cn_service_namespace(data, (uint32_t)id, name);
    cn_free(name);
    *(struct cn_namespace **)field = ns;
    return ns != NULL;
}

static const struct cn_wire_own dead_letters = {put_namespace, get_namespace, NULL};

/* --- tables ----------------------------------------------------------------------------------- */

static const struct cn_wire_field message[] = {
    CN_WIRE_UINT(1, struct cn_queue_message, offset, BODIES_MAX),
    CN_WIRE_UINT(2, struct cn_queue_message, size, BODIES_MAX),
    CN_WIRE_UINT(3, struct cn_queue_message, type, CN_QUEUE_TYPES - 1),
    CN_WIRE_INT(4, struct cn_queue_message, delay_s),
    CN_WIRE_INT(5, struct cn_queue_message, row),
    CN_WIRE_INT(6, struct cn_queue_message, sent_ms),
    CN_WIRE_UINT(7, struct cn_queue_message, attempts, UINT32_MAX),
    CN_WIRE_FIXED(8, struct cn_queue_message, id),
    CN_WIRE_END};

static const struct cn_wire_field verdict[] = {
    CN_WIRE_BOOL(1, struct cn_queue_verdict, retry),
    CN_WIRE_INT(2, struct cn_queue_verdict, delay_s),
    CN_WIRE_INT(3, struct cn_queue_verdict, row),
    CN_WIRE_UINT(4, struct cn_queue_verdict, attempts, UINT32_MAX),
    CN_WIRE_BOOL(5, struct cn_queue_verdict, good),
    CN_WIRE_END};

static const struct cn_wire_field policy[] = {
    CN_WIRE_UINT(1, struct cn_queue_policy, max_retries, UINT32_MAX),
    CN_WIRE_INT(2, struct cn_queue_policy, retry_delay_s),
    CN_WIRE_OWN(3, struct cn_queue_policy, dead_letters, &dead_letters), CN_WIRE_END};

static const struct cn_wire_field metrics[] = {
    CN_WIRE_UINT(1, struct cn_queue_metrics, count, UINT64_MAX),
    CN_WIRE_UINT(2, struct cn_queue_metrics, bytes, UINT64_MAX),
    CN_WIRE_INT(3, struct cn_queue_metrics, oldest_ms),
    CN_WIRE_UINT(4, struct cn_queue_metrics, leased, UINT64_MAX),
    CN_WIRE_UINT(5, struct cn_queue_metrics, dropped, UINT64_MAX),
    CN_WIRE_BOOL(6, struct cn_queue_metrics, paused),
    CN_WIRE_INT(7, struct cn_queue_metrics, retention_s),
    CN_WIRE_END};

static const struct cn_wire_field asked[] = {
    CN_WIRE_LIST(1, struct cn_queue_call, messages, count, message, CN_QUEUE_BATCH_COUNT_MAX),
    CN_WIRE_BUF(2, struct cn_queue_call, bodies, BODIES_MAX),
    CN_WIRE_UINT(3, struct cn_queue_call, count_max, CN_QUEUE_BATCH_COUNT_MAX),
    CN_WIRE_UINT(4, struct cn_queue_call, timeout_ms, UINT32_MAX),
    CN_WIRE_BOOL(5, struct cn_queue_call, waits),
    CN_WIRE_BOOL(6, struct cn_queue_call, paused_too),
    CN_WIRE_UINT(7, struct cn_queue_call, lease_ms, UINT32_MAX),
    CN_WIRE_GROUP(8, struct cn_queue_call, policy, policy),
    CN_WIRE_UINT(9, struct cn_queue_call, lease, UINT64_MAX),
    CN_WIRE_LIST(10, struct cn_queue_call, verdicts, verdict_count, verdict,
                 CN_QUEUE_BATCH_COUNT_MAX),
    CN_WIRE_BOOL(11, struct cn_queue_call, release),
    CN_WIRE_INT(12, struct cn_queue_call, paused),
    CN_WIRE_INT(13, struct cn_queue_call, retention_s),
    CN_WIRE_END};

static const struct cn_wire_field answered[] = {
    CN_WIRE_LIST(1, struct cn_queue_call, messages, count, message, CN_QUEUE_BATCH_COUNT_MAX),
    CN_WIRE_BUF(2, struct cn_queue_call, bodies, BODIES_MAX),
    CN_WIRE_UINT(3, struct cn_queue_call, lease, UINT64_MAX),
    CN_WIRE_LIST(4, struct cn_queue_call, verdicts, verdict_count, verdict,
                 CN_QUEUE_BATCH_COUNT_MAX),
    CN_WIRE_UINT(5, struct cn_queue_call, settled, CN_QUEUE_BATCH_COUNT_MAX),
    CN_WIRE_GROUP(6, struct cn_queue_call, metrics, metrics),
    CN_WIRE_BOOL(7, struct cn_queue_call, unknown),
    CN_WIRE_END};

/* --- what a peer may not say ------------------------------------------------------------------ */

static bool is_delay(int64_t delay_s, int64_t least)
{
    return delay_s >= least && delay_s <= DELAY_S_MAX;
}

/* Bodies lie inside of `bodies`, ids end. */
static bool are_messages(const struct cn_queue_call *call)
{
    for (size_t i = 0; i < call->count; i++) {
        const struct cn_queue_message *item = &call->messages[i];
        if (item->offset > call->bodies.size || item->size > call->bodies.size - item->offset ||
            !is_delay(item->delay_s, 0) || item->id[CN_QUEUE_ID_HEX])
            return false;
    }
    return true;
}

static bool check(const struct cn_service_call *base)
{
    const struct cn_queue_call *call = (const struct cn_queue_call *)base;
    for (size_t i = 0; i < call->verdict_count; i++)
        if (!is_delay(call->verdicts[i].delay_s, -1))
            return false;
    return are_messages(call) && is_delay(call->policy.retry_delay_s, 0) &&
           is_delay(call->retention_s, -1) && call->paused >= -1 && call->paused <= 1 &&
           !call->waits && /* N1 of background/consumers.h: for who asks where the queue is */
           (base->call.op == CN_QUEUE_RECEIVE ? !call->count && call->count_max
                                              : !call->count || base->call.op == CN_QUEUE_SEND);
}

static bool check_answer(const struct cn_service_call *base)
{
    const struct cn_queue_call *call = (const struct cn_queue_call *)base;
    return are_messages(call) && (!call->count || base->call.op == CN_QUEUE_RECEIVE);
}

static void trim(struct cn_service_call *base)
{
    struct cn_queue_call *call = (struct cn_queue_call *)base;
    if (base->call.op != CN_QUEUE_RECEIVE) {
        cn_free(call->messages);
        call->messages = NULL;
        call->count = 0;
        cn_buf_fini(&call->bodies);
        call->lease = 0;
    }
    if (base->call.op != CN_QUEUE_ACK) {
        cn_free(call->verdicts);
        call->verdicts = NULL;
        call->verdict_count = 0;
    }
}

const struct cn_service_wire cn_queue_wire = {
    .size = sizeof(struct cn_queue_call),
    .ops = 1u << CN_QUEUE_SEND | 1u << CN_QUEUE_RECEIVE | 1u << CN_QUEUE_SETTLE |
           1u << CN_QUEUE_ACK | 1u << CN_QUEUE_METRICS | 1u << CN_QUEUE_PURGE |
           1u << CN_QUEUE_CONFIGURE,
    .asked = asked,
    .answered = answered,
    .fini = cn_queue_call_fini,
    .check = check,
    .check_answer = check_answer,
    .trim = trim,
};
