/* SPDX-License-Identifier: Apache-2.0 */
/* service/d1/d1_wire.c - calls of D1 databases to other nodes (service/wire.h).
 *
 * The bookmark of a session is made where the database is, when the answer is written: by then it
 * is durable. */
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "object/node.h"
#include "service/d1/d1.h"
#include "service/wire.h"
#include "store/history.h"

/* No less than a script can ask for: what is too much for one message is told by who sends it. */
#define BYTES_MAX UINT32_MAX
#define COUNT_MAX (1u << 22)
#define LIMIT_NS_MAX (3600ull * 1000000000)

void cn_d1_bookmark(const struct cn_d1_call *call, char bookmark[CN_BOOKMARK_SIZE])
{
    struct cn_node *node = call->base.call.ns->node;
    const struct cn_object_key *key = &call->base.call.key;
    struct cn_shard *shard;
    struct cn_err err;
    if (call->bookmark) {
        memcpy(bookmark, call->bookmark, strlen(call->bookmark) + 1);
    } else if (cn_shards_hold(cn_node_shards(node), key, &shard, &err) == 0) {
        cn_history_bookmark_now(shard->history, shard->store, key, 0, bookmark);
        cn_shard_release(shard);
    } else { /* it has moved since it answered: by the time alone */
        struct cn_bookmark now = {.time_ms = cn_clock_wall_ms(cn_node_clock(node))};
        cn_bookmark_format(&now, key, bookmark);
    }
}

static bool put_bookmark(const void *field, struct cn_buf *out)
{
    const uint8_t *at = (const uint8_t *)field - offsetof(struct cn_d1_call, bookmark);
    const struct cn_d1_call *call = (const struct cn_d1_call *)(const void *)at;
    char bookmark[CN_BOOKMARK_SIZE];
    if (!call->in_session)
        return false;
    cn_d1_bookmark(call, bookmark);
    cn_buf_append_str(out, bookmark);
    return true;
}

static bool get_bookmark(void *field, const uint8_t *bytes, size_t size, void *data)
{
    (void)data;
    if (!size || size >= CN_BOOKMARK_SIZE || memchr(bytes, 0, size))
        return false;
    *(char **)field = cn_strndup((const char *)bytes, size);
    return true;
}

static void clear_bookmark(void *field)
{
    cn_free(*(char **)field);
}

static const struct cn_wire_own bookmark = {put_bookmark, get_bookmark, clear_bookmark};

static const struct cn_wire_field value[] = {
    CN_WIRE_UINT(1, struct cn_d1_value, type, CN_SQL_BLOB),
    CN_WIRE_INT(2, struct cn_d1_value, integer),
    CN_WIRE_UINT(3, struct cn_d1_value, real, UINT64_MAX), /* its bits */
    CN_WIRE_UINT(4, struct cn_d1_value, at, BYTES_MAX),
    CN_WIRE_UINT(5, struct cn_d1_value, size, BYTES_MAX),
    CN_WIRE_END};

static const struct cn_wire_field query[] = {CN_WIRE_UINT(1, struct cn_d1_query, at, BYTES_MAX),
                                             CN_WIRE_UINT(2, struct cn_d1_query, size, BYTES_MAX),
                                             CN_WIRE_UINT(3, struct cn_d1_query, first, COUNT_MAX),
                                             CN_WIRE_UINT(4, struct cn_d1_query, count, COUNT_MAX),
                                             CN_WIRE_END};

static const struct cn_wire_field asked[] = {
    CN_WIRE_BUF(1, struct cn_d1_call, bytes, BYTES_MAX),
    CN_WIRE_LIST(2, struct cn_d1_call, queries, query_count, query, COUNT_MAX),
    CN_WIRE_LIST(3, struct cn_d1_call, values, value_count, value, COUNT_MAX),
    CN_WIRE_UINT(4, struct cn_d1_call, format, CN_D1_FORMATS - 1),
    CN_WIRE_UINT(5, struct cn_d1_call, limit_ns, LIMIT_NS_MAX),
    CN_WIRE_BOOL(6, struct cn_d1_call, trusted),
    CN_WIRE_BOOL(7, struct cn_d1_call, plain),
    CN_WIRE_BOOL(8, struct cn_d1_call, in_session),
    CN_WIRE_END};

static const struct cn_wire_field answered[] = {
    CN_WIRE_BUF(1, struct cn_d1_call, json, CN_D1_RESULT_MAX + CN_D1_RESULT_MAX / 8),
    CN_WIRE_BUF(2, struct cn_d1_call, metas, (uint64_t)COUNT_MAX * sizeof(struct cn_d1_meta)),
    CN_WIRE_OWN(3, struct cn_d1_call, bookmark, &bookmark), CN_WIRE_END};

static bool is_inside(size_t at, size_t count, size_t of)
{
    return at <= of && count <= of - at;
}

/* What is said of bytes and values lies inside of them. */
static bool check(const struct cn_service_call *base)
{
    const struct cn_d1_call *call = (const struct cn_d1_call *)base;
    for (size_t i = 0; i < call->query_count; i++) {
        const struct cn_d1_query *item = &call->queries[i];
        if (!is_inside(item->at, item->size, call->bytes.size) ||
            !is_inside(item->first, item->count, call->value_count))
            return false;
    }
    for (size_t i = 0; i < call->value_count; i++)
        if (!is_inside(call->values[i].at, call->values[i].size, call->bytes.size))
            return false;
    return true;
}

static bool check_answer(const struct cn_service_call *base)
{
    return ((const struct cn_d1_call *)base)->metas.size % sizeof(struct cn_d1_meta) == 0;
}

const struct cn_service_wire cn_d1_wire = {
    .size = sizeof(struct cn_d1_call),
    .ops = 1u << 0,
    .asked = asked,
    .answered = answered,
    .fini = cn_d1_call_fini,
    .check = check,
    .check_answer = check_answer,
};
