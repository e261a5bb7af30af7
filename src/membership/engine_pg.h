/* SPDX-License-Identifier: Apache-2.0 */
/* membership/engine_pg.h - PostgreSQL as the engine of a cluster.
 *
 * Sends the statements of membership/engine.h and tells their answers, by libpq in its pipeline mode:
 * several statements are under way on one connection, each a transaction of its own. A driver has
 * at most one link at a time, and makes one only when it is told to: how often, and when one that
 * does not answer is given up, is decided by the member (membership/member.h), for ever.
 *
 * The tables are made by whoever comes first (engine_pg_schema.c), in the schema `cairn` of the
 * database that the connection string names. Several hosts may be in it; a link that fails begins
 * with the next of them, so one that swallows packets does not keep us from the others.
 *
 * G1  An answer is told after its transaction's end was heard of, not with its result: the result
 *     comes before the commit, and so before the wait for the standby (E2, E3).
 * G2  A warning on a link is the end of it. PostgreSQL warns, and reports success, when a wait for
 *     the standby was cancelled.
 * G3  Every answer brings the flaws of the engine's settings along: one that stops waiting for its
 *     standby while a link lasts loses the link (C11). `synchronous_commit` is fixed when a link
 *     begins.
 * G4  Once the id of the cluster is known, a database with another, or without tables, is refused:
 *     an empty engine would let every node throw its data away (C8).
 * G5  After a link was closed or told to be down, nothing more of it is told. With several hosts
 *     the next begins with the one after that at which it was: one that hangs is passed over.
 * G6  Hooks are called by the loop, never from inside a function of this header (but record(), from
 *     inside cn_engine_pg_send()): a member may call them from its own.
 *
 * Threads:   that of the loop.
 * Ownership: cn_engine_pg_new() allocates; cn_engine_pg_free() closes, and frees when the loop is
 *            through with it. Hooks may call everything here but free. */
#ifndef CN_MEMBERSHIP_ENGINE_PG_H
#define CN_MEMBERSHIP_ENGINE_PG_H
#include <uv.h>

#include "membership/engine.h"

struct cn_err;
struct cn_engine_pg;

#define CN_ENGINE_PG_ID_SIZE 37 /* of a cluster, with its NUL */
#define CN_ENGINE_PG_SECRET_SIZE 32
#define CN_ENGINE_PG_NODE_MAX 63     /* bytes of a node's name, */
#define CN_ENGINE_PG_ADDRESS_MAX 255 /* and of its address */
#define CN_ENGINE_PG_RECORD_MAX (256u << 20)

struct cn_engine_record {
    const void *body;
    size_t size;
};

/* What the engine says of the cluster, with a link. */
struct cn_engine_pg_info {
    struct cn_engine_link link;
    char cluster[CN_ENGINE_PG_ID_SIZE];
    uint8_t secret[CN_ENGINE_PG_SECRET_SIZE]; /* that its nodes share, and nobody else */
    unsigned shard_count, replicas;
};

/* A node with a live session, as it said of itself. */
struct cn_engine_pg_node {
    uint64_t disk;
    const char *node, *address;
};

struct cn_engine_pg_hooks {
    void *data;
    /* The link is there; the member may still refuse it for its flaws. */
    void (*up)(void *data, uint64_t link, const struct cn_engine_pg_info *info);
    void (*down)(void *data, uint64_t link, const char *why);
    /* `records`: of READ, those after the `from` that was asked with, in order. */
    void (*answer)(void *data, const struct cn_engine_answer *answer,
                   const struct cn_engine_record *records, size_t record_count);
    void (*hint)(void *data);
    /* All nodes, with every map that is told, before its answer. May be NULL. */
    void (*nodes)(void *data, const struct cn_engine_pg_node *nodes, size_t count);
    /* A record that APPEND is to take, borrowed until the next is asked for. Body NULL: it is not
     * there; nothing is sent, and the link ends. */
    struct cn_engine_record (*record)(void *data, uint32_t shard, uint64_t lsn);
    /* To a question: NULL if it has no row. Borrowed. May be NULL if nothing is asked. */
    void (*told)(void *data, const char *text);
    /* An operator wants the shard to be that node's: a notification "move SHARD NODE". It may be
     * lost. May be NULL. */
    void (*wish)(void *data, uint32_t shard, const char *node);
};

struct cn_engine_pg_config {
    const char *conninfo; /* postgresql://... or key=value; copied */
    const char *node;     /* letters, digits, '-', '_', '.'; also shown in the engine's list of
                             connections; copied */
    const char *address;  /* where other nodes reach it, told to them; NULL: nowhere; copied */
    const char *cluster;  /* G4: its id, NULL: not known yet; copied */
    unsigned shard_count; /* of a cluster that this one makes: 256 */
    unsigned replicas;    /* the same: 2 */
    unsigned allow_flaws; /* of enum cn_engine_flaw: what G3 bears */
    uint64_t slot_size;   /* a table of the ring that is larger is left: 64 MB */
    bool existing;        /* a database without tables is refused, and none are changed */
    struct cn_engine_pg_hooks hooks;
};

/* CN_EUNSUPPORTED: no libpq here. CN_EINVALID: the connection string is none, or asks for anything
 * but a server that takes writes; or a name or an address that cannot be one. */
int cn_engine_pg_new(uv_loop_t *loop, const struct cn_engine_pg_config *config,
                     struct cn_engine_pg **pg, struct cn_err *err);
/* After this no hook is called; `closed` (may be NULL) is, once. */
void cn_engine_pg_free(struct cn_engine_pg *pg, void (*closed)(void *data), void *data);
/* Closes the link there is, without a word, and begins that one. up() or down() follows. */
void cn_engine_pg_connect(struct cn_engine_pg *pg, uint64_t link);
/* Nothing is sent of another link than the one that is up. */
void cn_engine_pg_send(struct cn_engine_pg *pg, const struct cn_engine_statement *statement);

/* Besides the statements: SQL with one row of one text, or none, and what its parameters are. It is
 * a transaction of its own, answered in its order (G1 to G3) by told(). SQL that fails ends the
 * link. */
void cn_engine_pg_ask(struct cn_engine_pg *pg, uint64_t link, const char *sql,
                      const char *const *values, size_t count);

bool cn_engine_pg_is_node(const char *name);
bool cn_engine_pg_is_address(const char *address);

/* What flaws mean for the data, a sentence each. */
const char *cn_engine_flaw_text(enum cn_engine_flaw flaw);

#endif
