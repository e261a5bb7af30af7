/* SPDX-License-Identifier: Apache-2.0 */
/* module/batch.h - what background/ has packed for a worker, in C: a batch of a queue, a run of
 * scheduled(); and the verdicts on a batch.
 *
 * Threads:   the lane's.
 * Ownership: the event's. */
#ifndef CN_MODULE_BATCH_H
#define CN_MODULE_BATCH_H
#include "module/internal.h"

/* Reads event->bytes, `size` of them, of a kind that background/ sends. */
int cn_batch_read(cairn_event *event, size_t size, struct cn_err *err);
void cn_batch_free(struct cn_compiled_batch *batch);
/* What background/consumers.c reads (N4). */
uint8_t *cn_batch_verdicts(const cairn_event *event, bool failed, size_t *size);

#endif
