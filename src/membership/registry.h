/* SPDX-License-Identifier: Apache-2.0 */
/* membership/registry.h - what the nodes of a cluster agree on besides who has which shard.
 *
 *     namespaces   a number for each name, the same on every node and in every shard
 *     documents    small texts with a version (the table of classes)
 *
 * Both are in the engine, and belong to no session: they are asked for by whoever deploys, rarely,
 * by a link of its own that is closed with the answer.
 *
 * B1  What is told was waited for: every question writes (D7 of engine_pg_schema.c), so nothing is
 *     told that a fail-over of the engine could take back.
 * B2  A question may be carried out twice, or once and unheard: each is such that this does no
 *     harm. A number is found the second time, a document that has the text already is success.
 * B3  A document is replaced only as it was known: of two nodes that change it at once, one is told
 *     CN_EEXISTS, and has to look again.
 *
 * Threads:   any that may block, one question each; `timeout_ms` is how long.
 * Ownership: the struct's texts are borrowed. */
#ifndef CN_MEMBERSHIP_REGISTRY_H
#define CN_MEMBERSHIP_REGISTRY_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cn_buf;
struct cn_err;

struct cn_registry {
    const char *conninfo;
    const char *node;               /* shown in the engine's list of connections */
    const char *cluster;            /* G4: its id; NULL: whichever it is */
    unsigned allow_flaws;           /* C11 */
    unsigned timeout_ms;            /* 0: 10 s */
    unsigned shard_count, replicas; /* of a cluster that it makes: membership/engine_pg.h */
    bool existing;                  /* no tables are made: membership/engine_pg.h */
};

/* The number of a name; made if it is new. */
int cn_registry_number(const struct cn_registry *registry, const char *name, uint32_t *number,
                       struct cn_err *err);
/* Another name for a number that was given out. CN_ENOTFOUND. */
int cn_registry_rename(const struct cn_registry *registry, uint32_t number, const char *name,
                       struct cn_err *err);

/* Appends the text. 1, or 0 if there is none (*version is 0 then). */
int cn_registry_recall(const struct cn_registry *registry, const char *name, struct cn_buf *text,
                       uint64_t *version, struct cn_err *err);
/* B3 */
int cn_registry_keep(const struct cn_registry *registry, const char *name, const char *text,
                     uint64_t *version, struct cn_err *err);

/* Any other question: SQL that is one text. Appends it; 1, or 0 if it is NULL. CN_ETIMEOUT: with
 * what the engine last said, or that it did not answer; CN_EDENIED: C11; CN_EVERSION: its tables
 * are of another major version. */
int cn_registry_ask(const struct cn_registry *registry, const char *sql, const char *const *values,
                    size_t count, struct cn_buf *text, struct cn_err *err);

#endif
