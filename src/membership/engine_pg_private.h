/* SPDX-License-Identifier: Apache-2.0 */
/* membership/engine_pg_private.h - what the parts of the driver tell each other.
 *
 * engine_pg.c has the link and its life; engine_pg_call.c turns statements into parameters and
 * results into answers; engine_pg_schema.c has the tables and functions,
 * engine_pg_depot.c those of deployments. */
#ifndef CN_MEMBERSHIP_ENGINE_PG_PRIVATE_H
#define CN_MEMBERSHIP_ENGINE_PG_PRIVATE_H
#include "base/buf.h"
#include "membership/engine_pg.h"
#include "membership/pq.h"

#define CN_ENGINE_PG_MAJOR 1
#define CN_ENGINE_PG_MINOR 8
#define CN_ENGINE_PG_CHUNK 8096    /* bytes of a row: as many as fit a page */
#define CN_ENGINE_PG_TAIL_ROWS 256 /* that one READ asks for; the last batch is whole */
#define CN_ENGINE_PG_PARAMS_MAX 8
#define CN_ENGINE_PG_TIDY CN_ENGINE_KINDS       /* our own: the ring goes on */
#define CN_ENGINE_PG_TRIM (CN_ENGINE_KINDS + 1) /* the second half of READ: D5 */
#define CN_ENGINE_PG_CALLS (CN_ENGINE_KINDS + 2)
#define CN_ENGINE_PG_ASK CN_ENGINE_PG_CALLS /* a question: it is not prepared */

/* C11, as enum cn_engine_flaw. Asked with every answer: settings can be changed while a link lasts.
 */
#define CN_ENGINE_PG_FLAWS                                                              \
    "((current_setting('synchronous_standby_names') = '')::int + "                      \
    "(current_setting('synchronous_commit') NOT IN ('on', 'remote_apply'))::int * 2 + " \
    "(current_setting('fsync') <> 'on')::int * 4 + "                                    \
    "(current_setting('full_page_writes') <> 'on')::int * 8)"

extern const char cn_engine_pg_schema[], cn_engine_pg_functions[], cn_engine_pg_depot[],
    cn_engine_pg_end[];

/* The text of a call, and the name it is prepared under. */
struct cn_engine_pg_call {
    const char *name, *sql;
};
extern const struct cn_engine_pg_call cn_engine_pg_calls[CN_ENGINE_PG_CALLS];

struct cn_engine_pg_params {
    int count;
    const char *values[CN_ENGINE_PG_PARAMS_MAX];
    int lengths[CN_ENGINE_PG_PARAMS_MAX], formats[CN_ENGINE_PG_PARAMS_MAX];
    struct cn_buf text;                      /* values, one after the other */
    size_t offsets[CN_ENGINE_PG_PARAMS_MAX]; /* in `text`; then in `values` */
    struct cn_buf bodies, frames;            /* of APPEND */
    bool lacking;                            /* a record of it is not there */
    const char *node, *address;              /* of JOIN */
};
/* Values stay until the next call with these params. */
void cn_engine_pg_encode(struct cn_engine_pg_params *params,
                         const struct cn_engine_statement *statement,
                         const struct cn_engine_pg_hooks *hooks);
void cn_engine_pg_params_fini(struct cn_engine_pg_params *params);

/* An answer and what it points to. */
struct cn_engine_pg_answer {
    struct cn_engine_answer a;
    unsigned flaws;
    struct cn_engine_view view;
    struct cn_engine_item items[CN_ENGINE_ITEMS_MAX];
    struct cn_engine_shard shards[CN_CLUSTER_SHARDS_MAX];
    struct cn_engine_session sessions[CN_CLUSTER_NODES_MAX];
    struct cn_engine_pg_node nodes[CN_CLUSTER_NODES_MAX];
    size_t node_count;
    bool told_nodes;
    bool told;             /* a question has a text, in `words` */
    struct cn_buf words;   /* of nodes, or of a question */
    struct cn_buf body;    /* of READ */
    struct cn_buf records; /* of struct cn_engine_record */
    size_t record_count;
};
/* 0, or CN_EPROTOCOL: what came is not what our functions tell. `tail` and `trim`: of READ. */
int cn_engine_pg_decode(const struct cn_pq *pq, const PGresult *result,
                        struct cn_engine_pg_answer *answer, unsigned shard_count,
                        struct cn_err *err);
int cn_engine_pg_decode_tail(const struct cn_pq *pq, const PGresult *result, uint64_t from,
                             struct cn_engine_pg_answer *answer, struct cn_err *err);
int cn_engine_pg_decode_trim(const struct cn_pq *pq, const PGresult *result,
                             struct cn_engine_pg_answer *answer, struct cn_err *err);

#endif
