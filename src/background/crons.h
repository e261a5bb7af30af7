/* SPDX-License-Identifier: Apache-2.0 */
/* background/crons.h - cron triggers of the deployed scripts.
 *
 * Lane 0 keeps the time for all of them: a timer goes to the next occurrence, which is claimed
 * (service/cron/cron.h) and then becomes an event "scheduled" of the script on that lane. An
 * occurrence is never early; when the server was down the latest missed one is run at the start.
 *
 *     update ──► open ──► (missed? run) ──► timer ──► claim ──► dispatch ──► finish
 *                                             ▲─────────┘
 *
 * C2  In a cluster the clock of a worker is kept, and its occurrences run, on the node that has its
 *     object of the service. Others look every second whether that has become theirs; then what was
 *     missed in between is made up. If two nodes believe so for a moment, the claim tells one of
 *     them no. (C1 is that of service/cron/cron.h.)
 *
 * Threads: the lane's. */
#ifndef CN_BACKGROUND_CRONS_H
#define CN_BACKGROUND_CRONS_H
#include <stdint.h>

struct cn_http_request;
struct cn_background;
struct cn_manual_run;
struct cn_namespace;
struct cn_script;

/* For struct cn_background_operations. */
void cn_crons_update(struct cn_background *background);
void cn_crons_stop(struct cn_background *background);
void cn_crons_free(struct cn_background *background);

/* /cdn-cgi/handler/scheduled?cron=...&time=... and /__scheduled?cron=... of `cairn dev`: runs the
 * handler now, on whichever lane it arrives, and answers how it ended. Takes the request over. */
void cn_crons_request(struct cn_background *background, struct cn_script *script,
                      struct cn_http_request *http);

/* What the administration asks of lane 0: worker/background.h. */
void cn_crons_trigger(struct cn_background *background, struct cn_manual_run *run);
void cn_crons_each(struct cn_background *background,
                   void (*each)(void *data, struct cn_namespace *ns, const char *worker,
                                const char *cron, int64_t next_ms),
                   void *data);

#endif
