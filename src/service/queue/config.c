/* SPDX-License-Identifier: Apache-2.0 */
/* service/queue/config.c - `queues`: the bindings of producers, and whose messages the script
 * takes (background/consumers.h). */
#include "service/queue/config.h"

#include <string.h>

#include "base/mem.h"
#include "config/keys.h"
#include "config/service_config.h"
#include "service/queue/queue.h"
#include "worker/script.h"

/* clang-format off */
SCHEMA(producer_schema, struct cn_config_producer,
    STRING(cn_config_producer, binding, .flags = REQUIRED),
    STRING(cn_config_producer, queue, .flags = REQUIRED),
    INT(cn_config_producer, delivery_delay, 0, 86400),
    SUB_HOSTED("remote"));
SCHEMA(consumer_schema, struct cn_config_consumer,
    STRING(cn_config_consumer, queue, .flags = REQUIRED),
    STRING(cn_config_consumer, type, CHOICES("worker", "http_pull")),
    INT(cn_config_consumer, max_batch_size, 1, 100, SET(cn_config_consumer, max_batch_size_set)),
    INT(cn_config_consumer, max_batch_timeout, 0, 60,
        SET(cn_config_consumer, max_batch_timeout_set)),
    INT(cn_config_consumer, max_retries, 0, 100, SET(cn_config_consumer, max_retries_set)),
    INT(cn_config_consumer, max_concurrency, 1, 250, SET(cn_config_consumer, max_concurrency_set)),
    INT(cn_config_consumer, visibility_timeout_ms, 0, 43200000),
    INT(cn_config_consumer, retry_delay, 0, 86400),
    STRING(cn_config_consumer, dead_letter_queue));
SCHEMA(schema, struct cn_queue_entries,
    LIST(cn_queue_entries, producers, producer_schema), LIST(cn_queue_entries, consumers, consumer_schema));
/* clang-format on */

const struct cn_queue_entries *cn_queue_entries(const struct cn_config *config)
{
    return cn_config_entries(config, &cn_service_queue);
}

static bool wants_node(const void *entries)
{
    const struct cn_queue_entries *queues = entries;
    return queues->producers.count || queues->consumers.count;
}

static int add_consumer(struct cn_bindings *list, const struct cn_config_consumer *from,
                        struct cn_err *err)
{
    struct cn_script_consumer to = {
        .batch_count = from->max_batch_size_set ? (unsigned)from->max_batch_size : 10,
        .timeout_ms = from->max_batch_timeout_set ? (unsigned)from->max_batch_timeout * 1000 : 5000,
        .max_retries = from->max_retries_set ? (unsigned)from->max_retries : 3,
        .max_concurrency = from->max_concurrency_set ? (unsigned)from->max_concurrency : 0,
        .retry_delay_s = from->retry_delay,
        .pulls = from->type && strcmp(from->type, "http_pull") == 0,
        .visibility_ms = (unsigned)from->visibility_timeout_ms,
    };
    static const char added[] = "a queue consumer was added";
    int rc = cn_binding_namespace(list, added, from->queue, &to.ns, err);
    if (rc == 0 && from->dead_letter_queue)
        rc = cn_binding_namespace(list, added, from->dead_letter_queue, &to.dead_letters, err);
    if (rc == 0)
        list->script->consumers[list->script->consumer_count++] = to;
    return rc;
}

static int bind_all(struct cn_bindings *list, const void *entries, struct cn_err *err)
{
    const struct cn_queue_entries *queues = entries;
    if (queues->consumers.count)
        list->script->consumers =
            cn_alloc_zero(queues->consumers.count * sizeof(*list->script->consumers));
    for (size_t i = 0; i < queues->consumers.count; i++) {
        int rc = add_consumer(list, &queues->consumers.items[i], err);
        if (rc < 0)
            return rc;
    }
    for (size_t i = 0; i < queues->producers.count; i++) {
        const struct cn_config_producer *producer = &queues->producers.items[i];
        int rc = cn_binding_begin_service(list, producer->binding, "queue", producer->queue, err);
        if (rc < 0)
            return rc;
        cn_binding_number(list, "delay", producer->delivery_delay);
        cn_binding_end(list);
    }
    return 0;
}

const struct cn_service_config cn_queue_config = {
    .key = {.name = "queues", .kind = CN_FIELD_TABLE, .sub = &schema, .flags = OWN},
    .list = "producers",
    .name = "binding",
    .wants_node = wants_node,
    .bind = bind_all,
};
