/* SPDX-License-Identifier: Apache-2.0 */
/* worker/background.h - what runs on a lane besides requests, and what it sees of its lane.
 *
 * Queue consumers and cron triggers (background/) are started by the lane when it accepts requests
 * and after every deployment. They know neither the lane nor JavaScript: what they send is an event
 * for a handler of a script, and what comes back is how it ended.
 *
 *     lane ──► operations ──► background/ ──► send() ──► an event of the script (dispatch.h)
 *                                  ▲───────── done() ◄─────────┘
 *
 * B1  done() runs exactly once for each event, never from inside send(); when the lane stops it
 *     runs with an error.
 * B2  An event may be for another node, where the script runs as well. One that has not begun
 *     there, and is known not to have, is run here. One whose node is lost ends with an error that
 *     is not the script's (no CN_FAULT_REMOTE): it may have run.
 *
 * Threads:   the lane's.
 * Ownership: struct cn_background is part of its lane. */
#ifndef CN_WORKER_BACKGROUND_H
#define CN_WORKER_BACKGROUND_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "base/err.h"
#include "object/envelope.h"

struct cn_background;
struct cn_consumers;
struct cn_crons;
struct cn_deployment;
struct cn_http_request;
struct cn_namespace;
struct cn_node;
struct cn_object_lane;
struct cn_script;

/* How an event ended. Borrowed while done() runs. */
struct cn_background_answer {
    const uint8_t *result; /* what the prelude's handler gave back; NULL: nothing */
    size_t result_size;
    unsigned faults;   /* of enum cn_call_fault, if it failed */
    struct cn_err err; /* code 0: it did not */
};

struct cn_background_event {
    const char *script;  /* copied */
    const char *handler; /* "queue", "scheduled"; static */
    uint8_t *bytes;      /* for the handler; given away */
    size_t size;
    struct cn_place at; /* another node, B2; NOWHERE: here */
    void (*done)(void *data, const struct cn_background_answer *answer);
    void *data;
};

/* One lane as background work sees it. */
struct cn_background {
    uv_loop_t *loop;
    struct cn_node *node;                    /* NULL: there are no objects, and no services */
    struct cn_object_lane *objects;          /* for calls of services */
    unsigned index;                          /* of the lane */
    const bool *draining;                    /* nothing new is to begin */
    struct cn_deployment *const *deployment; /* the current one; NULL in it before the first */
    void (*send)(struct cn_background *background, const struct cn_background_event *event);
    struct cn_consumers *consumers; /* background/consumers.c; NULL: none */
    struct cn_crons *crons;         /* background/crons.c, on lane 0; NULL: none */
};

/* A run of scheduled() that somebody asks for. The lane's from `trigger` until it calls `done`. */
struct cn_manual_run {
    char *worker;         /* owned */
    char *cron;           /* owned; as configured. NULL: the first one, and is filled in */
    int64_t scheduled_ms; /* what the handler is told */
    void (*done)(struct cn_manual_run *run);
    /* The answer. */
    const char *outcome; /* static; NULL: it did not begin, and `err` says why */
    struct cn_err err;   /* code 0: it threw nothing */
    int64_t number;      /* in the history of runs, where it is when `done` is called */
    int64_t duration_ms;
};

/* What background/background.h provides. */
struct cn_background_operations {
    /* Requests are accepted from now on, or another deployment has become current. */
    void (*update)(struct cn_background *background);
    void (*stop)(struct cn_background *background); /* begin nothing, close handles */
    void (*free)(struct cn_background *background); /* the loop has ended */
    /* /cdn-cgi/handler/scheduled, in development; takes the request over. */
    void (*scheduled)(struct cn_background *background, struct cn_script *script,
                      struct cn_http_request *http);
    /* For the administration, on lane 0: runs scheduled(), and says what is due next (negative:
     * never). */
    void (*trigger)(struct cn_background *background, struct cn_manual_run *run);
    void (*schedules)(struct cn_background *background,
                      void (*each)(void *data, struct cn_namespace *ns, const char *worker,
                                   const char *cron, int64_t next_ms),
                      void *data);
};

struct cn_lane;
/* The lane's own, before anything runs on it. */
void cn_background_init(struct cn_background *background, struct cn_lane *lane);
/* For mail to a lane: what runs on it, and what that can be asked. NULL: nothing does. */
const struct cn_background_operations *cn_background_of(struct cn_lane *lane,
                                                        struct cn_background **background);

#endif
