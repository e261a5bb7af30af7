/* SPDX-License-Identifier: Apache-2.0 */
/* service/queue/config.h - `queues` of the configuration. */
#ifndef CN_SERVICE_QUEUE_CONFIG_H
#define CN_SERVICE_QUEUE_CONFIG_H
#include <stddef.h>

#include "config/config.h"

struct cn_config_producer {
    const char *binding;
    const char *queue;
    int64_t delivery_delay; /* seconds */
};

struct cn_config_consumer {
    const char *queue;
    const char *type; /* worker, http_pull */
    int64_t max_batch_size, max_batch_timeout, max_retries, max_concurrency, retry_delay;
    int64_t visibility_timeout_ms;
    bool max_batch_size_set, max_batch_timeout_set, max_retries_set, max_concurrency_set;
    const char *dead_letter_queue;
};

struct cn_queue_entries {
    CN_CONFIG_LIST(cn_config_producer) producers;
    CN_CONFIG_LIST(cn_config_consumer) consumers;
};

const struct cn_queue_entries *cn_queue_entries(const struct cn_config *config);

#endif
