/* SPDX-License-Identifier: Apache-2.0 */
/* service/queue/face.c - queues for code in C (module/face.h): send, sendBatch, metrics. Limits and
 * sentences are those of natives.c and prelude/workers/service/queue.js. */
#include "module/face.h"
#include "service/queue/queue.h"

#include <string.h>

#include "base/mem.h"
#include "module/json.h"

static int read_delay(const cairn_value *options, int64_t fallback, int64_t *delay,
                      struct cn_err *err)
{
    const cairn_value *given = cn_value_get(options, "delaySeconds");
    double number = -1;
    *delay = fallback;
    if (cn_face_absent(given))
        return 0;
    if (cn_value_number(given, &number) < 0 || !(number >= 0 && number <= CN_QUEUE_DELAY_MAX_S))
        return cn_err_set(err, CN_EINVALID, "delaySeconds must be a number from 0 to %d",
                          CN_QUEUE_DELAY_MAX_S);
    *delay = (int64_t)number;
    return 0;
}

static int read_type(const cairn_value *options, enum cn_queue_type *type, struct cn_err *err)
{
    static const char *const names[CN_QUEUE_TYPES] = {"json", "text", "bytes", "v8"};
    const cairn_value *given = cn_value_get(options, "contentType");
    const char *text = cn_value_text(given, NULL);
    *type = CN_QUEUE_JSON;
    for (int i = 0; i < CN_QUEUE_TYPES; i++) {
        if (text && strcmp(text, names[i]) == 0) {
            *type = (enum cn_queue_type)i;
            return 0;
        }
    }
    return cn_face_absent(given)
               ? 0
               : cn_err_set(err, CN_EINVALID, "Unsupported queue message content type");
}

static int encode(const cairn_value *body, enum cn_queue_type type, struct cn_buf *out,
                  struct cn_err *err)
{
    const void *bytes;
    size_t size;
    if (type == CN_QUEUE_JSON)
        return cn_value_append_json(body, out, err);
    if (type == CN_QUEUE_V8) {
        cairn_builder builder;
        cn_builder_init(&builder, 1u << 20);
        cn_build_value(&builder, body);
        int rc = cn_builder_finish(&builder, err);
        if (rc == 0)
            cn_buf_append(out, builder.bytes.data, builder.bytes.size);
        cn_builder_fini(&builder);
        return rc;
    }
    enum cairn_kind wanted = type == CN_QUEUE_TEXT ? CAIRN_TEXT : CAIRN_BYTES;
    if (cn_value_kind(body) != wanted || !cn_face_bytes(body, &bytes, &size))
        return cn_err_set(err, CN_EINVALID, "Content Type \"%s\" requires a value of that type",
                          type == CN_QUEUE_TEXT ? "text" : "bytes");
    cn_buf_append(out, bytes, size);
    return 0;
}

/* `options` has contentType and delaySeconds. */
static int add(struct cn_queue_call *call, const cairn_value *body, const cairn_value *options,
               int64_t delay, struct cn_err *err)
{
    enum cn_queue_type type;
    struct cn_buf out = {0};
    if (cn_value_kind(body) == CAIRN_UNDEFINED)
        return cn_err_set(err, CN_EINVALID, "Message body cannot be undefined");
    int rc = read_delay(options, delay, &delay, err);
    if (rc == 0)
        rc = read_type(options, &type, err);
    if (rc == 0)
        rc = encode(body, type, &out, err);
    if (rc == 0 && out.size > CN_QUEUE_MESSAGE_SIZE_MAX)
        rc = cn_err_set(err, CN_ELIMIT,
                        "Queue send failed: message length of %zu bytes exceeds limit of %d",
                        out.size, CN_QUEUE_MESSAGE_SIZE_MAX);
    if (rc == 0)
        cn_queue_add(call, out.data, out.size, type, delay);
    cn_buf_fini(&out);
    return rc;
}

static int64_t binding_delay(const struct cn_face_work *work)
{
    int64_t delay = 0;
    cn_value_int(cn_value_get(work->binding, "delay"), &delay);
    return delay;
}

static int send_all(struct cn_face_work *work, struct cn_queue_call *call, int rc,
                    struct cn_err *err)
{
    if (rc == 0 && call->bodies.size > CN_QUEUE_BATCH_SIZE_MAX)
        rc = cn_err_set(err, CN_ELIMIT,
                        "Queue send failed: batch size of %zu bytes exceeds limit of %d",
                        call->bodies.size, CN_QUEUE_BATCH_SIZE_MAX);
    if (rc < 0)
        cn_service_call_free(&call->base);
    else
        work->call = &call->base;
    return rc;
}

static int begin_send(struct cn_face_work *work, const cairn_value *arguments,
                      cairn_builder *result, struct cn_err *err)
{
    struct cn_queue_call *call = cn_queue_call_new(work->ns, CN_QUEUE_SEND);
    (void)result;
    return send_all(
        work, call,
        add(call, cn_value_at(arguments, 0), cn_value_at(arguments, 1), binding_delay(work), err),
        err);
}

static int begin_batch(struct cn_face_work *work, const cairn_value *arguments,
                       cairn_builder *result, struct cn_err *err)
{
    const cairn_value *list = cn_value_at(arguments, 0);
    size_t count = cn_value_kind(list) == CAIRN_ARRAY ? cn_value_count(list) : 0;
    int64_t delay;
    (void)result;
    if (!count)
        return cn_err_set(err, CN_EINVALID, "sendBatch() requires at least one message");
    if (count > CN_QUEUE_BATCH_COUNT_MAX)
        return cn_err_set(err, CN_ELIMIT,
                          "Queue send failed: batch message count of %zu exceeds limit of %d",
                          count, CN_QUEUE_BATCH_COUNT_MAX);
    int rc = read_delay(cn_value_at(arguments, 1), binding_delay(work), &delay, err);
    if (rc < 0)
        return rc;
    struct cn_queue_call *call = cn_queue_call_new(work->ns, CN_QUEUE_SEND);
    for (size_t i = 0; i < count && rc == 0; i++) {
        const cairn_value *message = cn_value_at(list, i);
        rc = add(call, cn_value_get(message, "body"), message, delay, err);
    }
    return send_all(work, call, rc, err);
}

static int begin_metrics(struct cn_face_work *work, const cairn_value *arguments,
                         cairn_builder *result, struct cn_err *err)
{
    (void)arguments, (void)result, (void)err;
    work->call = &cn_queue_call_new(work->ns, CN_QUEUE_METRICS)->base;
    return 0;
}

static int next(struct cn_face_work *work, struct cn_service_call *base, cairn_builder *result,
                struct cn_err *err)
{
    const struct cn_queue_metrics *metrics =
        &CN_CONTAINER_OF(base, struct cn_queue_call, base)->metrics;
    (void)work, (void)err;
    cn_build_object(result);
    cn_build_name(result, "backlogCount");
    cn_build_number(result, (double)metrics->count);
    cn_build_name(result, "backlogBytes");
    cn_build_number(result, (double)metrics->bytes);
    if (metrics->oldest_ms) {
        cn_build_name(result, "oldestMessageTimestamp");
        cn_build_date(result, (double)metrics->oldest_ms);
    }
    cn_build_end(result);
    return 0;
}

static const struct cn_face_method methods[] = {
    {"send", begin_send, next, "Queue send failed: "},
    {"sendBatch", begin_batch, next, "Queue send failed: "},
    {"metrics", begin_metrics, next, NULL},
    {0},
};
const struct cn_service_face cn_queue_face = {methods};
