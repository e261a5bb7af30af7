/* SPDX-License-Identifier: Apache-2.0 */
/* service/d1/d1.h - D1 databases: SQL from workers, one object each.
 *
 * A database is the one object of its namespace, CN_D1_OBJECT. Each call is a turn, so what it
 * writes is one commit: a batch is atomic because a failure rolls the turn back.
 *
 * Queries run on the lane for CN_D1_LANE_NS at most. One that is not done by then is undone and run
 * again, from the start, on a thread of the pool; meanwhile the input gate is closed, so the
 * database is used by one thread at a time and queries keep their order, as on the platform, where
 * a database runs one query at a time too.
 *
 * D1  Rows are JSON text, made where the query ran: they cost nothing to move between lanes, and
 *     JSON is what D1's values are (a BLOB is an array of numbers).
 *     Databases may be on other nodes; what is asked of them is done by their owner, which also
 *     makes the bookmarks of sessions: every session reads the last state.
 * D2  The instance's `job` is set exactly while a thread may touch the database. While it is,
 *     object->transactions keeps turns from committing, and `release` waits for the thread.
 *
 * Threads and ownership: service/service.h. */
#ifndef CN_SERVICE_D1_D1_H
#define CN_SERVICE_D1_D1_H
#include <assert.h>
#include <stdatomic.h>
#include <stdint.h>

#include "base/buf.h"
#include "service/def.h"
#include "service/service.h"
#include "store/bookmark.h"
#include "store/database.h"

#define CN_D1_OBJECT "db"
#define CN_D1_LANE_NS 5000000ull            /* on the lane */
#define CN_D1_QUERY_NS (30ull * 1000000000) /* in all */
#define CN_D1_SQL_MAX 100000                /* bytes of a query */
#define CN_D1_RESULT_MAX (64u << 20)        /* bytes of JSON */

enum cn_d1_format {
    CN_D1_OBJECTS, /* rows as objects */
    CN_D1_ROWS,    /* column names, and rows as arrays */
    CN_D1_COUNT,   /* no rows; one answer for all queries */
};
#define CN_D1_FORMATS 3

struct cn_d1_value {
    enum cn_sql_type type;
    int64_t integer;
    double real;
    size_t at, size; /* TEXT, BLOB: in `bytes` */
};

struct cn_d1_query {
    size_t at, size;     /* SQL, in `bytes` */
    size_t first, count; /* parameters, in `values` */
};

struct cn_d1_call {
    struct cn_service_call base;
    /* Asked. Owned arrays. */
    struct cn_buf bytes;
    struct cn_d1_query *queries;
    struct cn_d1_value *values;
    size_t query_count, query_capacity, value_count, value_capacity;
    enum cn_d1_format format;
    uint64_t limit_ns;     /* of all queries together; 0: CN_D1_QUERY_NS */
    bool trusted;          /* an import: longer statements than a worker may send */
    atomic_bool cancelled; /* by the lane while a thread runs it: end soon */
    bool plain;      /* for people: objects {results, meta} and {count, meta} instead of arrays */
    bool in_session; /* a bookmark is wanted */
    /* Answered: an array with the results of each query; nothing at all if those are rows as
     * objects and there is none, or nobody wants them (CN_D1_COUNT). Plain: with what they did as
     * well. Of a query that failed: {"error": text, "index": which}. */
    struct cn_buf json;
    /* Unless plain: struct cn_d1_meta of each query, or of all of CN_D1_COUNT. */
    struct cn_buf metas;
    char *bookmark; /* owned; of a session, if another node answered; NULL: cn_d1_bookmark() */
};

/* What a query did. Numbers as JavaScript has them, which gets them as they are: as JSON they would
 * be half of the cost of a batch of small writes. */
struct cn_d1_meta {
    double duration_ms, changes, last_rowid;
    double changed; /* 0, 1 */
    double size_after, rows_read, rows_written;
};
#define CN_D1_META_NUMBERS 7
static_assert(sizeof(struct cn_d1_meta) == CN_D1_META_NUMBERS * sizeof(double),
              "one after another");

extern const struct cn_class cn_d1_class;

/* The descriptor (service/def.h) and its parts. */
extern const struct cn_service_def cn_service_d1;
extern const struct cn_service_config cn_d1_config;
extern const struct cn_js_natives cn_d1_natives;
extern const struct cn_service_face cn_d1_face;
extern const struct cn_control_routes cn_d1_routes;
extern const struct cn_command cn_d1_command;
extern const struct cn_service_wire cn_d1_wire;
extern const struct cn_database_limits cn_d1_limits;

struct cn_d1_call *cn_d1_call_new(struct cn_namespace *ns, enum cn_d1_format format);
void cn_d1_call_fini(struct cn_service_call *call); /* for cn_d1_wire */
/* Adds a query without parameters, then parameters to it. Bytes are copied. */
void cn_d1_call_query(struct cn_d1_call *call, const char *sql, size_t size);
/* Another one with the SQL of the last. */
void cn_d1_call_again(struct cn_d1_call *call);
struct cn_d1_value *cn_d1_call_value(struct cn_d1_call *call, enum cn_sql_type type);
/* Numbers are REAL, whole ones too, as on the platform; what is not finite is NULL. */
void cn_d1_call_number(struct cn_d1_call *call, double number);
void cn_d1_call_bytes(struct cn_d1_call *call, enum cn_sql_type type, const void *bytes,
                      size_t size);

/* Of the state that a call which was answered has seen. (d1_wire.c) */
void cn_d1_bookmark(const struct cn_d1_call *call, char bookmark[CN_BOOKMARK_SIZE]);

/* Runs the queries and fills in `json`; nothing is committed. CN_ETIMEOUT: the deadline
 * (cn_clock_mono_ns()) has passed; what was written is to be rolled back. A query that fails is
 * rolled back with all before it, and is an answer, not an error: 0. (d1_run.c) */
int cn_d1_run(struct cn_database *db, struct cn_d1_call *call, uint64_t deadline_ns,
              struct cn_err *err);

#endif
