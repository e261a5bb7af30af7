/* SPDX-License-Identifier: Apache-2.0 */
/* background/consumers.h - queue consumers of the deployed scripts, on one lane.
 *
 * For each queue that a script consumes, the lane keeps one request for messages at the queue. When
 * it is answered the batch becomes an event of the script's current instance ("queue",
 * worker/background.h), and the next request goes out at once, so that batches run side by side up
 * to the limit. When the event is over the queue is told what became of each message.
 *
 *     receive ──► batch ──► dispatch ──► settle
 *        ▲──────────┘ up to `limit` at a time
 *
 * max_concurrency is shared out among the lanes; without it a lane runs up to
 * CN_CONSUMER_CONCURRENCY at a time.
 *
 * Threads: the lane's. */
#ifndef CN_BACKGROUND_CONSUMERS_H
#define CN_BACKGROUND_CONSUMERS_H

struct cn_background;

#define CN_CONSUMER_CONCURRENCY 20

/* For struct cn_background_operations: a deployment has become current; the lane stops; it has
 * stopped. */
void cn_consumers_update(struct cn_background *background);
void cn_consumers_stop(struct cn_background *background);
void cn_consumers_free(struct cn_background *background);

#endif
