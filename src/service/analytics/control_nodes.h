/* SPDX-License-Identifier: Apache-2.0 */
/* service/analytics/control_nodes.h - the data points of all nodes as one disk, for queries.
 *
 * Every node of a cluster writes the points of its own lanes to its own disk (analytics/points.h).
 * A query reads them all: through a disk that has the segments of this node under their names, and
 * those of others as YYYYMMDD-NUMBER~OTHER.seg, read piece by piece (service/node_calls.h).
 *
 * F1  A query is of all points that were written before it, on every node that is part of the
 *     cluster: nodes flush when they are asked what they have.
 * F2  If a node fails in the middle, the query fails: `err` says so, and nothing of it is told.
 * F3  What others ask is input: names are checked, pieces have at most CN_ANALYTICS_PIECE_MAX
 *     bytes.
 *
 * Answering others is cn_analytics_asked() (analytics.h).
 *
 * Threads:   one that may block, and is no lane's.
 * Ownership: cn_analytics_nodes_new() allocates. */
#ifndef CN_SERVICE_ANALYTICS_CONTROL_NODES_H
#define CN_SERVICE_ANALYTICS_CONTROL_NODES_H
#include <stddef.h>
#include <stdint.h>

#include "base/disk.h"
#include "base/err.h"

struct cn_node;

#define CN_ANALYTICS_PIECE_MAX (1u << 20)

struct cn_analytics_nodes {
    struct cn_disk disk;
    struct cn_err err; /* F2; code 0: all that was read is there */
};

/* NULL: there are no other nodes, `own` has it all. */
struct cn_analytics_nodes *cn_analytics_nodes_new(struct cn_node *node, struct cn_disk *own);
void cn_analytics_nodes_free(struct cn_analytics_nodes *far); /* NULL is fine */

#endif
