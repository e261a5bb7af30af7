/* SPDX-License-Identifier: Apache-2.0 */
/* server/data.h - a data directory opened for serving: disk, history, store, blobs, node.
 *
 * It is that of a single server, with a store of its own, or that of a node of a cluster
 * (fleet/cluster.h), with replicas of shards. It is never both: N1.
 *
 * Ownership: the struct owns what it points to; open before lanes start, close after they ended,
 * and do not move it in between. */
#ifndef CN_SERVER_DATA_H
#define CN_SERVER_DATA_H
#include <stdbool.h>

#include "base/err.h"
#include "service/service.h"

struct cn_cluster;
struct cn_cluster_options;
struct cn_disk;
struct cn_guest;
struct cn_history;
struct cn_moved;
struct cn_node;
struct cn_shards;
struct cn_store;

struct cn_data {
    const struct cn_guest *guest;
    struct cn_disk *disk;
    struct cn_history *history; /* of a single server, */
    struct cn_store *store;     /* and its */
    struct cn_cluster *cluster; /* NULL: a single server */
    struct cn_shards *shards;   /* in a cluster, its own */
    struct cn_moved *moved;     /* ids of imported objects */
    struct cn_node *node;
    struct cn_services services; /* what it lends to the services */
};

struct cn_data_options {
    const struct cn_guest *guest; /* whose classes its objects have; NULL: none is started */
    unsigned lane_count;
    int64_t history_ms;              /* 0: the default */
    uint64_t history_bytes;          /* 0: no limit */
    unsigned object_idle_ms;         /* 0: the default */
    unsigned new_objects_per_minute; /* 0: no limit */
    unsigned analytics_days;         /* data points are kept; 0: the default */
    /* NULL: a single server. Its disk and history are set here. */
    const struct cn_cluster_options *cluster;
};

/* Makes the folder (mode 0700) if it is absent. */
int cn_data_open(struct cn_data *data, const char *path, const struct cn_data_options *options,
                 struct cn_err *err);
/* Makes the directory of a project that was never served; one that exists stays as it is, that of a
 * node too: its server may answer. */
int cn_data_make(const char *path, struct cn_err *err);
/* N1: whether the directory is of that kind, or of none yet; and no backup of a cluster, nor half
 * restored. CN_EINVALID, with a sentence. */
int cn_data_check(struct cn_disk *disk, bool cluster, struct cn_err *err);
/* Fills `err` (CN_ELOCKED): which process uses the data directory. */
void cn_data_tell_holder(const char *path, struct cn_err *err);
void cn_data_close(struct cn_data *data); /* one that was not opened is fine */

#endif
