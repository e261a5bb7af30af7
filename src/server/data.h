/* SPDX-License-Identifier: Apache-2.0 */
/* server/data.h - a data directory opened for serving: disk, history, store, blobs, node.
 *
 * Ownership: the struct owns what it points to; open before lanes start, close after they ended,
 * and do not move it in between. */
#ifndef CN_SERVER_DATA_H
#define CN_SERVER_DATA_H
#include "base/err.h"
#include "service/service.h"

struct cn_disk;
struct cn_guest;
struct cn_history;
struct cn_node;
struct cn_shards;
struct cn_store;

struct cn_data {
    const struct cn_guest *guest;
    struct cn_disk *disk;
    struct cn_history *history;
    struct cn_store *store;
    struct cn_shards *shards;
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
};

/* Makes the folder (mode 0700) if it is absent. */
int cn_data_open(struct cn_data *data, const char *path, const struct cn_data_options *options,
                 struct cn_err *err);
/* Makes the directory of a project that was never served; one that exists stays as it is. */
int cn_data_make(const char *path, struct cn_err *err);
void cn_data_close(struct cn_data *data); /* one that was not opened is fine */

#endif
