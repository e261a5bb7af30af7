/* SPDX-License-Identifier: Apache-2.0 */
/* service/r2/r2_wire.c - calls of buckets to other nodes (service/wire.h): of the index. Of bodies
 * that are blobs their ids travel; the bodies themselves go another way. */
#include <string.h>

#include "base/mem.h"
#include "service/r2/r2.h"
#include "service/wire.h"

/* No less than a script can give: what is too much for one message is told by who sends it. */
#define TEXT_MAX (16u << 20)
#define KEYS_MAX (CN_R2_LIST_MAX * (CN_R2_KEY_SIZE_MAX + 1u))
#define JSON_MAX (64u << 20)

static const struct cn_wire_field segment[] = {
    CN_WIRE_FIXED(1, struct cn_r2_segment, blob),
    CN_WIRE_UINT(2, struct cn_r2_segment, size, CN_BLOB_SIZE_MAX), CN_WIRE_END};

/* If there are bytes, the size is theirs: they come behind it. */
static const struct cn_wire_field body[] = {
    CN_WIRE_UINT(1, struct cn_r2_body, size, CN_BLOB_SIZE_MAX),
    CN_WIRE_LIST(2, struct cn_r2_body, segments, count, segment, CN_R2_PARTS_MAX),
    CN_WIRE_BYTES(3, struct cn_r2_body, bytes, size, CN_R2_INLINE_MAX), CN_WIRE_END};
static_assert(sizeof(((struct cn_r2_body *)0)->size) == sizeof(size_t), "it is a size of bytes");

static const struct cn_wire_field condition[] = {
    CN_WIRE_TEXT(1, struct cn_r2_condition, match, TEXT_MAX),
    CN_WIRE_TEXT(2, struct cn_r2_condition, none_match, TEXT_MAX),
    CN_WIRE_INT(3, struct cn_r2_condition, after_ms),
    CN_WIRE_INT(4, struct cn_r2_condition, before_ms),
    CN_WIRE_BOOL(5, struct cn_r2_condition, seconds),
    CN_WIRE_END};

static const struct cn_wire_field asked[] = {
    CN_WIRE_BUF(1, struct cn_r2_call, key, KEYS_MAX),
    CN_WIRE_GROUP(2, struct cn_r2_call, only_if, condition),
    CN_WIRE_GROUP(3, struct cn_r2_call, body, body),
    CN_WIRE_TEXT(4, struct cn_r2_call, etag, TEXT_MAX),
    CN_WIRE_TEXT(5, struct cn_r2_call, checksums, TEXT_MAX),
    CN_WIRE_TEXT(6, struct cn_r2_call, http, TEXT_MAX),
    CN_WIRE_TEXT(7, struct cn_r2_call, custom, TEXT_MAX),
    CN_WIRE_TEXT(8, struct cn_r2_call, storage_class, TEXT_MAX),
    CN_WIRE_TEXT(9, struct cn_r2_call, ssec, TEXT_MAX),
    CN_WIRE_TEXT(10, struct cn_r2_call, upload, TEXT_MAX),
    CN_WIRE_UINT(11, struct cn_r2_call, part, UINT32_MAX),
    CN_WIRE_TEXT(12, struct cn_r2_call, parts, TEXT_MAX),
    CN_WIRE_BUF(13, struct cn_r2_call, prefix, TEXT_MAX),
    CN_WIRE_BUF(14, struct cn_r2_call, delimiter, TEXT_MAX),
    CN_WIRE_BUF(15, struct cn_r2_call, after, TEXT_MAX),
    CN_WIRE_BOOL(16, struct cn_r2_call, after_prefix),
    CN_WIRE_UINT(17, struct cn_r2_call, limit, UINT32_MAX),
    CN_WIRE_BOOL(18, struct cn_r2_call, include_http),
    CN_WIRE_BOOL(19, struct cn_r2_call, include_custom),
    CN_WIRE_BUF(20, struct cn_r2_call, ids, KEYS_MAX),
    CN_WIRE_INT(21, struct cn_r2_call, uploaded_ms),
    CN_WIRE_END};

static const struct cn_wire_field answered[] = {
    CN_WIRE_GROUP(1, struct cn_r2_call, body, body),
    CN_WIRE_BOOL(2, struct cn_r2_call, found),
    CN_WIRE_BOOL(3, struct cn_r2_call, failed),
    CN_WIRE_UINT(4, struct cn_r2_call, problem, UINT32_MAX),
    CN_WIRE_BUF(5, struct cn_r2_call, json, JSON_MAX),
    CN_WIRE_BOOL(6, struct cn_r2_call, truncated),
    CN_WIRE_BUF(7, struct cn_r2_call, last, TEXT_MAX),
    CN_WIRE_BOOL(8, struct cn_r2_call, last_prefix),
    CN_WIRE_UINT(9, struct cn_r2_call, total_objects, UINT64_MAX),
    CN_WIRE_UINT(10, struct cn_r2_call, total_bytes, UINT64_MAX),
    CN_WIRE_BUF(11, struct cn_r2_call, ids, KEYS_MAX),
    CN_WIRE_END};

/* Its bytes, or segments that add up to its size. */
static bool is_body(const struct cn_r2_body *of)
{
    uint64_t size = 0;
    if (of->bytes)
        return !of->segments;
    for (size_t i = 0; i < of->count; i++)
        size += of->segments[i].size; /* PARTS_MAX times BLOB_SIZE_MAX is less than 2^64 */
    return size == of->size;
}
static_assert(CN_BLOB_SIZE_MAX < UINT64_MAX / CN_R2_PARTS_MAX, "sizes can be added up");

static bool check(const struct cn_service_call *base)
{
    const struct cn_r2_call *call = (const struct cn_r2_call *)base;
    if (!is_body(&call->body))
        return false;
    switch ((enum cn_r2_op)base->call.op) {
    case CN_R2_ANNOUNCE:
    case CN_R2_FORGET:
        return call->body.count == 1;
    case CN_R2_PUT:
        return call->etag != NULL;
    case CN_R2_UPLOAD_PART:
        return call->etag && call->upload && call->body.count == 1;
    case CN_R2_UPLOAD_COMPLETE:
        return call->upload && call->parts && !call->body.count && !call->body.bytes;
    case CN_R2_UPLOAD_ABORT:
    case CN_R2_UPLOAD_PARTS:
        return call->upload != NULL;
    case CN_R2_KNOWN:
        return call->ids.size % sizeof(struct cn_blob_id) == 0;
    default:
        return true;
    }
}

static bool check_answer(const struct cn_service_call *base)
{
    return is_body(&((const struct cn_r2_call *)base)->body);
}

static void trim(struct cn_service_call *base)
{
    struct cn_r2_call *call = (struct cn_r2_call *)base;
    if (base->call.op == CN_R2_GET)
        return;
    cn_r2_body_fini(&call->body);
}

const struct cn_service_wire cn_r2_wire = {
    .size = sizeof(struct cn_r2_call),
    .ops = (1u << (CN_R2_KNOWN + 1)) - 1,
    .asked = asked,
    .answered = answered,
    .fini = cn_r2_call_fini,
    .check = check,
    .check_answer = check_answer,
    .trim = trim,
};
