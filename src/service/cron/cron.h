/* SPDX-License-Identifier: Apache-2.0 */
/* service/cron/cron.h - what is known of a worker's cron triggers: which occurrences have been run.
 *
 * The namespace "$cron/WORKER" has one object, "0". The scheduler (background/crons.h) asks it
 * before it runs anything:
 *
 *     OPEN    the expression is deployed: when did it last run? A new one begins now
 *     CLAIM   may this occurrence run? Yes once, durably, before it begins
 *     FINISH  how it ended
 *     LIST    the last CN_CRON_RUNS_MAX runs, or the last one of an expression
 *
 * C1  An occurrence that was claimed is never run again, also after a crash in the middle of it (it
 *     is then listed as interrupted): at most once. One that came while the server was down is
 *     claimed at the next start if it is the latest.
 *
 * Threads and ownership: service/service.h. */
#ifndef CN_SERVICE_CRON_CRON_H
#define CN_SERVICE_CRON_CRON_H
#include "base/buf.h"
#include "service/def.h"
#include "service/service.h"

#define CN_CRON_RUNS_MAX 100
#define CN_CRON_OBJECT "0"

enum cn_cron_op { CN_CRON_OPEN, CN_CRON_CLAIM, CN_CRON_FINISH, CN_CRON_LIST };

struct cn_cron_call {
    struct cn_service_call base; /* call.op is an enum cn_cron_op */
    char *expression;            /* owned; as the configuration has it */
    int64_t scheduled_ms;        /* claim: the occurrence */
    bool manual;                 /* claim: somebody asked for it; it is no occurrence */
    int64_t run;                 /* claim answers, finish asks */
    char *outcome;               /* finish; owned: "ok", "exception", ... */
    char *message;               /* finish; owned: what it threw; NULL: nothing */
    int64_t last_ms;             /* open answers: the last occurrence that was claimed */
    bool claimed;                /* claim answers */
    struct cn_buf runs;          /* list answers: a JSON array, the latest first */
};

extern const struct cn_class cn_cron_class;

/* The descriptor (service/def.h) and its parts. */
extern const struct cn_service_def cn_service_cron;
extern const struct cn_service_config cn_cron_config;
extern const struct cn_control_routes cn_cron_routes;
extern const struct cn_command cn_cron_command;

struct cn_cron_call *cn_cron_call_new(struct cn_namespace *ns, enum cn_cron_op op,
                                      const char *expression);

#endif
