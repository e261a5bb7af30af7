/* SPDX-License-Identifier: Apache-2.0 */
/* membership/overview.h - what the engine knows of a cluster, as JSON for people who look after it.
 *
 * It is read and not waited for: a picture of the moment, which decides nothing.
 *
 * Threads: any that may block. */
#ifndef CN_MEMBERSHIP_OVERVIEW_H
#define CN_MEMBERSHIP_OVERVIEW_H

struct cn_registry;
struct cn_buf;
struct cn_err;

enum cn_overview_part {
    CN_OVERVIEW_STATUS, /* an object: counts, the engine, the deployment that is under way */
    CN_OVERVIEW_NODES,  /* a list */
    CN_OVERVIEW_SHARDS, /* a list, with owners and replicas */
    CN_OVERVIEW_APART,  /* a list: live nodes that have no link to each other */
    CN_OVERVIEW_PARTS
};

/* Appends it. */
int cn_overview(const struct cn_registry *registry, enum cn_overview_part part, struct cn_buf *json,
                struct cn_err *err);
/* {"member": true, "status": ..., "nodes": ..., "shards": ..., "apart": ...} without the last
 * brace. */
int cn_overview_all(const struct cn_registry *registry, struct cn_buf *json, struct cn_err *err);

#endif
