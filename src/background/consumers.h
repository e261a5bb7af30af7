/* SPDX-License-Identifier: Apache-2.0 */
/* background/consumers.h - queue consumers of the deployed scripts, on one lane.
 *
 * For each queue that a script consumes, the lane keeps one request for messages at the queue. When
 * it is answered the batch becomes an event of the script's current instance ("queue",
 * worker/dispatch.h), and the next request goes out at once, so that batches run side by side up
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

struct cn_lane;

#define CN_CONSUMER_CONCURRENCY 20

/* For cn_lane_options: a deployment has become current; the lane stops; it has stopped. */
void cn_consumers_update(struct cn_lane *lane);
void cn_consumers_stop(struct cn_lane *lane);
void cn_consumers_free(struct cn_lane *lane);

#endif
