/* SPDX-License-Identifier: Apache-2.0 */
#include "module/batch.h"

#include <string.h>

#include "base/mem.h"
#include "module/json.h"
#include "module/worker_api.h"

#define DELAY_MAX_S 86400
#define VERDICT_SIZE 5 /* a byte, and the delay in 32 bits */

enum { SAID_NOTHING, SAID_ACK, SAID_RETRY };
enum { TYPE_JSON, TYPE_TEXT, TYPE_BYTES, TYPE_VALUE }; /* as queues number them */
enum { NUMBER_SENT, NUMBER_ATTEMPTS, NUMBER_TYPE, NUMBER_SIZE, NUMBERS }; /* of each message */
#define ID_SIZE 32

struct said {
    int what;
    int32_t delay_s;
};

struct item {
    char id[ID_SIZE + 1];
    int64_t sent_ms, attempts, type;
    const uint8_t *body; /* in event->bytes */
    size_t size;
    bool is_read;
    struct cn_document document; /* of the body, once it was asked for, */
    uint8_t *bytes;              /* owned: which is of these */
    struct said said;
};

struct cn_compiled_batch {
    cairn_builder builder; /* has the bytes of the document */
    struct cn_document document;
    struct item *items; /* owned */
    size_t count;
    struct said said; /* of those that nothing else is said about */
};

void cn_batch_free(struct cn_compiled_batch *batch)
{
    if (!batch)
        return;
    for (size_t i = 0; i < batch->count; i++) {
        cn_document_fini(&batch->items[i].document);
        cn_free(batch->items[i].bytes);
    }
    cn_document_fini(&batch->document);
    cn_builder_fini(&batch->builder);
    cn_free(batch->items);
    cn_free(batch);
}

/* --- reading --------------------------------------------------------------------------------- */

static int damaged(struct cn_err *err)
{
    return cn_err_set(err, CN_ECORRUPT, "the event cannot be read");
}

static int read_json(struct cn_compiled_batch *batch, const uint8_t *text, size_t size,
                     struct cn_err *err)
{
    int rc = cn_build_json(&batch->builder, (const char *)text, size, err);
    if (rc == 0)
        rc = cn_builder_finish(&batch->builder, err);
    if (rc == 0)
        rc = cn_document_read(&batch->document, batch->builder.bytes.data,
                              batch->builder.bytes.size, err);
    return rc;
}

/* As background/consumers.c writes them. */
static int read_messages(struct cn_compiled_batch *batch, const uint8_t *bodies, size_t left,
                         struct cn_err *err)
{
    const cairn_value *root = batch->document.root, *list = cn_value_get(root, "numbers");
    size_t ids_size = 0, count = cn_value_count(list) / NUMBERS;
    const char *ids = cn_value_text(cn_value_get(root, "ids"), &ids_size);
    int64_t since = 0;
    cn_value_int(cn_value_get(root, "since"), &since);
    if (!ids || ids_size != count * ID_SIZE)
        return damaged(err);
    batch->items = cn_alloc_zero((count + 1) * sizeof(*batch->items));
    for (size_t i = 0; i < count; i++) {
        struct item *item = &batch->items[batch->count++];
        int64_t numbers[NUMBERS] = {0, 1, TYPE_BYTES, -1};
        for (size_t k = 0; k < NUMBERS; k++)
            cn_value_int(cn_value_at(list, i * NUMBERS + k), &numbers[k]);
        if (numbers[NUMBER_SIZE] < 0 || (uint64_t)numbers[NUMBER_SIZE] > left)
            return damaged(err);
        memcpy(item->id, ids + i * ID_SIZE, ID_SIZE);
        item->sent_ms = since + numbers[NUMBER_SENT];
        item->attempts = numbers[NUMBER_ATTEMPTS];
        item->type = numbers[NUMBER_TYPE];
        item->body = bodies;
        item->size = (size_t)numbers[NUMBER_SIZE];
        bodies += item->size;
        left -= item->size;
    }
    return 0;
}

int cn_batch_read(cairn_event *event, size_t size, struct cn_err *err)
{
    const uint8_t *bytes = event->bytes;
    struct cn_compiled_batch *batch = CN_NEW(struct cn_compiled_batch);
    event->asked->batch = batch;
    cn_builder_init(&batch->builder, 16u << 20);
    if (event->kind == CN_COMPILED_SCHEDULED) {
        int rc = read_json(batch, bytes, size, err);
        cn_value_int(cn_value_get(batch->document.root, "scheduledTime"), &event->scheduled_ms);
        return rc;
    }
    uint32_t head;
    if (size < sizeof(head))
        return damaged(err);
    memcpy(&head, bytes, sizeof(head));
    if (head > size - sizeof(head))
        return damaged(err);
    int rc = read_json(batch, bytes + sizeof(head), head, err);
    return rc < 0
               ? rc
               : read_messages(batch, bytes + sizeof(head) + head, size - sizeof(head) - head, err);
}

/* The body as a value, for documents are made of bytes of one. */
static void read_body(struct item *item)
{
    const int64_t type = item->type;
    struct cn_err err;
    cairn_builder builder;
    int rc = 0;
    item->is_read = true;
    cn_builder_init(&builder, item->size * 4 + 4096);
    if (type == TYPE_VALUE)
        item->bytes = cn_memdup(item->body, item->size);
    else if (type == TYPE_JSON)
        rc = cn_build_json(&builder, (const char *)item->body, item->size, &err);
    else if (type == TYPE_TEXT)
        cn_build_text(&builder, (const char *)item->body, item->size);
    else
        cn_build_bytes(&builder, item->body, item->size);
    size_t size = item->size;
    if (rc == 0 && type != TYPE_VALUE)
        item->bytes = cn_builder_take(&builder, &size, &err);
    if (item->bytes) /* one that cannot be read is NULL, and its bytes are there */
        (void)cn_document_read(&item->document, item->bytes, size, &err);
    cn_builder_fini(&builder);
}

/* --- what the api has of it ------------------------------------------------------------------ */

static struct cn_compiled_batch *batch_of(const cairn_event *event, enum cn_compiled_kind kind)
{
    return event->kind == kind && event->asked ? event->asked->batch : NULL;
}

int64_t cn_api_scheduled_time(const cairn_event *event)
{
    return event->kind == CN_COMPILED_SCHEDULED ? event->scheduled_ms : 0;
}

static const char *text_or_empty(const struct cn_compiled_batch *batch, const char *name)
{
    const char *text = batch ? cn_value_text(cn_value_get(batch->document.root, name), NULL) : NULL;
    return text ? text : "";
}

const char *cn_api_scheduled_cron(const cairn_event *event)
{
    return text_or_empty(batch_of(event, CN_COMPILED_SCHEDULED), "cron");
}

const char *cn_api_queue_name(const cairn_event *event)
{
    return text_or_empty(batch_of(event, CN_COMPILED_QUEUE), "queue");
}

size_t cn_api_queue_count(const cairn_event *event)
{
    const struct cn_compiled_batch *batch = batch_of(event, CN_COMPILED_QUEUE);
    return batch ? batch->count : 0;
}

int cn_api_queue_message(cairn_event *event, size_t index, struct cairn_message *message)
{
    struct cn_compiled_batch *batch = batch_of(event, CN_COMPILED_QUEUE);
    if (!batch || index >= batch->count)
        return cn_compiled_refuse(event->object, CAIRN_EMISMATCH, "there is no such message");
    struct item *item = &batch->items[index];
    if (!item->is_read)
        read_body(item);
    struct cairn_message found = {.size = message->size,
                                  .id = item->id,
                                  .body = item->document.root,
                                  .bytes = item->body,
                                  .byte_count = item->size,
                                  .sent = item->sent_ms,
                                  .attempts = (unsigned)item->attempts};
    memcpy(message, &found, found.size < sizeof(found) ? found.size : sizeof(found));
    return 0;
}

static int say(cairn_event *event, size_t index, int what, int64_t delay)
{
    struct cn_compiled_batch *batch = batch_of(event, CN_COMPILED_QUEUE);
    if (!batch || (index != CAIRN_ALL && index >= batch->count))
        return cn_compiled_refuse(event->object, CAIRN_EMISMATCH, "there is no such message");
    if (delay > DELAY_MAX_S)
        return cn_compiled_refuse(event->object, CAIRN_ELIMIT,
                                  "a message is delayed by 86400 s at most");
    struct said *said = index == CAIRN_ALL ? &batch->said : &batch->items[index].said;
    if (said->what == SAID_NOTHING)
        *said = (struct said){what, delay < 0 ? -1 : (int32_t)delay};
    return 0;
}

int cn_api_queue_ack(cairn_event *event, size_t index)
{
    return say(event, index, SAID_ACK, -1);
}

int cn_api_queue_retry(cairn_event *event, size_t index, int64_t delay)
{
    return say(event, index, SAID_RETRY, delay);
}

uint8_t *cn_batch_verdicts(const cairn_event *event, bool failed, size_t *size)
{
    const struct cn_compiled_batch *batch = event->asked->batch;
    *size = batch ? batch->count * VERDICT_SIZE : 0;
    uint8_t *bytes = *size ? cn_alloc_zero(*size) : NULL;
    for (size_t i = 0; bytes && i < batch->count; i++) {
        struct said said = batch->items[i].said;
        if (said.what == SAID_NOTHING)
            said = batch->said;
        if (said.what == SAID_NOTHING)
            said = (struct said){failed ? SAID_RETRY : SAID_ACK, -1};
        if (said.what == SAID_ACK)
            continue;
        bytes[i * VERDICT_SIZE] = 1;
        memcpy(bytes + i * VERDICT_SIZE + 1, &said.delay_s, sizeof(said.delay_s));
    }
    return bytes;
}
