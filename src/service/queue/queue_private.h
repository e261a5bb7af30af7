/* SPDX-License-Identifier: Apache-2.0 */
/* service/queue/queue_private.h - what a queue knows (queue.c), and its tables (queue_state.c). */
#ifndef CN_SERVICE_QUEUE_QUEUE_PRIVATE_H
#define CN_SERVICE_QUEUE_QUEUE_PRIVATE_H
#include <uv.h>

#include "service/queue/queue.h"

#define CN_QUEUE_DONE_ROWS_MAX 1000 /* settled rows that wait to be removed */

enum {
    CN_QUEUE_SQL_SEND,
    CN_QUEUE_SQL_SEND_DELAYED,
    CN_QUEUE_SQL_READ,
    CN_QUEUE_SQL_DELETE_RUN,
    CN_QUEUE_SQL_DELETE_DONE,
    CN_QUEUE_SQL_DELETE,
    CN_QUEUE_SQL_GET,
    CN_QUEUE_SQL_TO_READY,
    CN_QUEUE_SQL_TO_DELAYED,
    CN_QUEUE_SQL_AGAIN,
    CN_QUEUE_SQL_DUE,
    CN_QUEUE_SQL_DELETE_DELAYED,
    CN_QUEUE_SQL_FIRST_DUE,
    CN_QUEUE_SQL_OLDEST,
    CN_QUEUE_SQL_OLDEST_DELAYED,
    CN_QUEUE_SQL_SAVE,
    CN_QUEUE_SQL_LOAD,
    CN_QUEUE_SQL_RECOUNT,
    CN_QUEUE_SQL_COUNT,
};

struct cn_queue {
    struct cn_object *object;
    struct cn_service_sql sql;
    struct cn_list waiting;   /* of struct cn_queue_call: receives, oldest first */
    struct cn_list leases;    /* of struct lease, in the order they were given */
    struct cn_list transfers; /* of struct transfer: sent and not answered */
    uv_timer_t *timer;        /* owned: freed when it has been closed */
    bool holding;             /* the timer keeps the object in memory */
    uint64_t last_lease;
    int64_t cursor;   /* rows up to here have been read */
    uint64_t unread;  /* rows behind it */
    int64_t since_ms; /* since when there are unread ones */
    int64_t
        found; /* rows up to here were there when it was loaded: they may have been out before */
    /* The row of `state`. */
    int64_t last, ready, delayed, bytes, dropped, retention_s, done;
    bool paused;
    bool changed; /* and not yet written back */
    /* Settled and not yet removed, at least (what an earlier process left counts as many). */
    int64_t done_rows, done_bytes;
};

int64_t cn_queue_now(struct cn_queue *queue);
/* Makes the tables, or brings them up to date. */
int cn_queue_tables(struct cn_database *db, struct cn_err *err);
/* For cn_service_sql_init(): CN_QUEUE_SQL_COUNT texts. */
extern const char *const cn_queue_sql_texts[];

/* The statement with integers bound. */
int cn_queue_prepare(struct cn_queue *queue, unsigned which, size_t count, const int64_t values[],
                     struct cn_statement **statement, struct cn_err *err);
int cn_queue_run(struct cn_queue *queue, unsigned which, size_t count, const int64_t values[],
                 struct cn_err *err);
/* The first column of the first row; `fallback` if there is none. */
int cn_queue_read_int(struct cn_queue *queue, unsigned which, size_t count, const int64_t values[],
                      int64_t fallback, int64_t *value, struct cn_err *err);
#define CN_QUEUE_PREPARE(queue, which, statement, err, ...)                            \
    cn_queue_prepare(queue, which, sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), \
                     (int64_t[]){__VA_ARGS__}, statement, err)
#define CN_QUEUE_RUN(queue, which, err, ...)                                       \
    cn_queue_run(queue, which, sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), \
                 (int64_t[]){__VA_ARGS__}, err)

/* The row of `state`: read at the start; written back if it has changed, which also sees to the
 * alarm that removes messages nobody fetches. */
int cn_queue_load(struct cn_queue *queue, struct cn_err *err);
int cn_queue_save(struct cn_queue *queue, struct cn_err *err);
int cn_queue_read_metrics(struct cn_queue *queue, struct cn_queue_metrics *metrics,
                          struct cn_err *err);

#endif
