/* SPDX-License-Identifier: Apache-2.0 */
/* fleet/cluster_private.h - what the parts of cluster.h tell each other: cluster.c has the life of
 * a node, cluster_front.c shards that come and go, cluster_agree.c what nodes agree on,
 * cluster_remote.c the ways to other nodes, cluster_bodies.c what lies beside the stores. What
 * watches and reports (cluster_report.c) needs no more than cluster.h.
 *
 * One lock guards the state, the caches and what is known of each shard. It is never held while a
 * function of the host, the shards or the registry is called. A thread of its own (the *watch*) does
 * what has a time or may block: N5, N9. */
#ifndef CN_FLEET_CLUSTER_PRIVATE_H
#define CN_FLEET_CLUSTER_PRIVATE_H
#include <pthread.h>
#include <stdatomic.h>

#include "admin/relay.h"
#include "base/buf.h"
#include "base/err.h"
#include "fleet/cluster.h"
#include "membership/registry.h"
#include "project/deploy_classes.h"
#include "service/node_calls.h"
#include "shard/disk.h"
#include "shard/host.h"
#include "worker/remote.h"

enum {
    CN_CLUSTER_SILENT_MS = 4500, /* N2: longer than a live session is silent */
    CN_CLUSTER_LOOK_MS = 500,
};

enum cn_cluster_state { CN_CLUSTER_BOOTING, CN_CLUSTER_JOINED, CN_CLUSTER_FAILED, CN_CLUSTER_LEFT };

/* How far the front is with a shard, beyond what the set of shards knows. */
enum cn_front_state {
    CN_FRONT_SERVED,    /* or not here at all */
    CN_FRONT_LINGERING, /* N5: it is to be stopped when its streams have ended; all is served */
    CN_FRONT_STOPPING,  /* until its time is over */
    CN_FRONT_FORCING,   /* N5, N9: it is being closed in the place of being stopped, or served */
    CN_FRONT_FORCED,    /* it is closed */
    CN_FRONT_REOPENING  /* and is to be opened again */
};

struct cn_front_entry {
    struct cn_cluster *cluster;
    enum cn_front_state state;
    uint64_t ticket;
    int64_t stop_by_ms;               /* of LINGERING and of STOPPING */
    unsigned turn;                    /* LINGERING: of the streams that are waited for */
    bool open;                        /* between serve() and close() */
    bool silenced;                    /* N9: FORCING or FORCED, and nobody has asked it to stop */
    bool closing, stopping, resuming; /* what was wanted while that could not be done */
};

struct cn_cluster_name {
    uint32_t number;
    char *text; /* owned */
};

struct cn_cluster {
    struct cn_registry registry; /* its texts are owned by the struct */
    char *url, *node, *address;
    struct cn_cluster_disk disk;
    struct cn_host *host;
    struct cn_shards *shards;
    struct cn_remote *remote; /* from JOINED on */
    struct cn_node_calls others;
    struct cn_relay_net relay;
    struct cn_lane_remote lanes;
    unsigned lane_count, call_wait_ms;
    struct cn_engine_pg_info info;
    struct cn_host_front front;
    struct cn_host_beside beside;
    struct cn_blobs *blobs;            /* of this disk */
    struct cn_bodies *bodies;          /* NULL until it has joined */
    struct cn_backup_streams *streams; /* of shards that are served here */
    atomic_bool backing_up;
    struct cn_node *_Atomic objects;
    struct cn_ledger ledger;
    uint64_t ledger_version;    /* of the deploying thread */
    struct cn_witness *witness; /* borrowed, or NULL */
    bool unwatched;             /* of the watch: its loss was told */
    int64_t twin_since_ms;      /* of the watch; 0: there is none */
    int64_t lease_seen_ms;      /* of the watch */
    struct cn_buf apart;        /* of the watch: nodes that it has told not to be reached */
    pthread_t watch;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t changed;
    enum cn_cluster_state state;
    bool left, watching, ending;
    bool had_session;      /* the engine has given it one */
    bool parted;           /* cn_cluster_leave() is done */
    atomic_bool departing; /* N6 */
    bool served;           /* N7 */
    bool started;          /* the host: left() will come */
    struct cn_err why;     /* FAILED */
    struct cn_front_entry entries[CN_CLUSTER_SHARDS_MAX];
    struct cn_cluster_name *names; /* numbers as the engine last named them */
    size_t name_count;
};

static inline void cn_cluster_lock(struct cn_cluster *cluster)
{
    pthread_mutex_lock(&cluster->lock);
}

static inline void cn_cluster_unlock(struct cn_cluster *cluster)
{
    pthread_mutex_unlock(&cluster->lock);
}

/* cluster.c: FAILED; a hook of the host. */
void cn_cluster_fail(void *cluster, const struct cn_err *err);

/* cluster_front.c */
void cn_cluster_front_init(struct cn_cluster *cluster); /* its hooks, for the host */
void *cn_cluster_watch(void *cluster);                  /* a thread, until `ending` */

/* cluster_agree.c */
void cn_cluster_agree_init(struct cn_cluster *cluster); /* its hooks, for deployments */
/* Hooks of the shards: numbers of namespaces. */
int cn_cluster_number(void *cluster, const char *name, uint32_t *number, struct cn_err *err);
int cn_cluster_named(void *cluster, uint32_t number, const char *text, struct cn_err *err);

/* cluster_remote.c */
void cn_cluster_remote_init(struct cn_cluster *cluster); /* its hooks, for lanes */
int cn_cluster_remote_open(struct cn_cluster *cluster, struct cn_err *err);

/* cluster_bodies.c */
void cn_cluster_bodies_init(struct cn_cluster *cluster); /* its hooks, for the host */
void cn_cluster_backup_streams_open(struct cn_cluster *cluster);
int cn_cluster_bodies_open(struct cn_cluster *cluster, const struct cn_engine_pg_info *info,
                           struct cn_err *err);

#endif
