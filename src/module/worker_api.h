/* SPDX-License-Identifier: Apache-2.0 */
/* module/worker_api.h - the functions of struct cairn_api that are about events of workers;
 * include/cairn.h says what they do. */
#ifndef CN_MODULE_WORKER_API_H
#define CN_MODULE_WORKER_API_H
#include "include/cairn.h"

int64_t cn_api_scheduled_time(const cairn_event *event);
const char *cn_api_scheduled_cron(const cairn_event *event);
const char *cn_api_queue_name(const cairn_event *event);
size_t cn_api_queue_count(const cairn_event *event);
int cn_api_queue_message(cairn_event *event, size_t index, struct cairn_message *message);
int cn_api_queue_ack(cairn_event *event, size_t index);
int cn_api_queue_retry(cairn_event *event, size_t index, int64_t delay);

#endif
