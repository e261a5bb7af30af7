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
 * CN_CONSUMER_CONCURRENCY at a time for each node of the cluster, CN_CONSUMER_CONCURRENCY_MAX at
 * most.
 *
 * N1  In a cluster the lanes of the node that has the queue take its batches; others look every
 *     second whether it has become theirs. So max_concurrency holds for all nodes, and a lease ends
 *     with the node that has given it: nothing waits for one that is lost.
 * N2  What became of a batch is told to the queue wherever it is by then, again and again if that
 *     fails as retryable: it is by the number of a lease, which is good once. A queue that was
 *     loaded anew meanwhile does not know the lease; it is told of the messages then. So one whose
 *     batch ended while its queue moved is not delivered again, unless the queue was faster.
 * N3  A batch runs on the node that has the fewest batches of this queue from this lane, its own if
 *     it is among them: a queue that is hardly used makes no traffic, a busy one uses all nodes.
 *     The messages of a batch whose node is lost are delivered again at once, with the attempts
 *     that they had (worker/background.h, B2). One that a node does not take (it is drained, or of
 *     an older release) costs the way there and back, and runs here, counted as that node's.
 * N4  A message is acknowledged by a verdict that says so and by nothing else. An answer that is
 *     not understood (none, its length, a verdict, a delay) is a failure, from wherever it comes:
 *     all its messages come again. A node of a release whose handlers answer nothing when they
 *     acknowledge all gets no batch (remote/question.h, Q3).
 * N5  A batch that could not be settled (the disk is full) comes again at once from a queue that
 *     was reset by that. So the lane takes no other one of this queue until its timer has fired.
 *
 * Threads: the lane's. */
#ifndef CN_BACKGROUND_CONSUMERS_H
#define CN_BACKGROUND_CONSUMERS_H

struct cn_background;

#define CN_CONSUMER_CONCURRENCY 20
#define CN_CONSUMER_CONCURRENCY_MAX 125

/* For struct cn_background_operations: a deployment has become current; the lane stops; it has
 * stopped. */
void cn_consumers_update(struct cn_background *background);
void cn_consumers_stop(struct cn_background *background);
void cn_consumers_free(struct cn_background *background);

#endif
