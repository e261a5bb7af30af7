/* SPDX-License-Identifier: Apache-2.0 */
/* fleet/cluster.h - a server that is a node of a cluster.
 *
 * Connects four parts that do not know each other: the host (shard/host.h), which decides which
 * shards this node has; the replicas on its disk (shard/disk.h); the set of shards that its lanes
 * serve from (object/shard.h); and the registry (membership/registry.h), which holds in the engine
 * what a single server keeps in files of its own.
 *
 *     host's thread and workers      here                          lanes
 *     front.serve(shard)  ────────►  cn_shards_open(its store) ──► take it up
 *     front.stop(ticket)  ────────►  cn_shards_stop()          ──► let what runs end
 *     cn_host_stopped()   ◄────────  reached                   ◄── nothing is left
 *     front.close()       ────────►  cn_shards_close()         ──► let go, calls fail as retryable
 *     cn_host_shut()      ◄────────  reached                   ◄── the last has
 *     lease, gate         ◄────────  may_take(), the store's sink  ask for every call and answer
 *
 *     state      what is there                                       goes on to
 *     BOOTING    the engine is asked, for as long as it takes        JOINED, FAILED
 *     JOINED     shards come and go; the server may serve            LEFT, FAILED
 *     FAILED     nothing is served any more: the process is told to  LEFT
 *                end, with the reason as its error
 *     LEFT       no store is open, the session is over
 *
 * N1  A data directory is of one kind, for ever: that of a single server has FORMAT, that of a node
 *     shards/DISK. Each is refused by the other, and nothing in it is touched (server/data.c).
 * N2  Two nodes of one name are refused: at the start, a live session of another disk with the name
 *     of this one is watched for longer than a session can be silent; if it beats, this one ends.
 *     Of two that start at once, the one with the higher disk ends when it has seen the other for
 *     as long.
 * N3  The secret that ids of objects are made with comes from the cluster's, the numbers of
 *     namespaces and the table of classes from the registry. What a node has of them in its directory
 *     is a copy (classes.json).
 * N4  An object's call is answered by the owner of its shard, whichever node it came to
 *     (remote/remote.h), or, if there is none in time, refused as retryable with the name and
 *     address of the owner that is known. It is never answered from a copy.
 * N5  A move first lets streams that others read of its objects end, for LINGER_MS, while all else
 *     is served; then it waits for what runs in its shard for STOP_MS. What runs longer fails as
 *     retryable: its shard is closed in the place of being stopped, and opened again if the move
 *     does not happen.
 * N6  Leaving: the requests of this node have ended; calls of others that run in its objects have
 *     DEPART_MS to end, as in any move (N5); shards are handed over, the session ends, stores
 *     close, and then the lanes end. A server that is stopped at once ends its lanes first, and
 *     leaves after that. If the engine is away that is given up after the member's leave_ms;
 *     others then find this node silent. SIGKILL at any moment loses nothing that was
 *     acknowledged: the engine has it.
 * N7  Until it serves, a node waits for the engine for as long as that is away, whatever it asks of
 *     it: first of all for a session, since only JOIN tells of an engine that has gone back (C15)
 *     before numbers, classes and deployments are taken from it; afterwards what is asked for a deployment fails in time, and the last version serves on.
 * N8  If the process ends without leaving, its witness tells the engine (fleet/witness.h).
 * N9  No call waits for ever for a node that may not answer. New ones are refused from the end of
 *     the lease on. What was taken before, and could not be told since, fails as retryable when
 *     the lease has been over for LOST_MS: every shard is closed in the place of being served, as
 *     by N5, its sockets end, and it is opened again when the node may answer for it. What the
 *     engine had of it by then is there, so whether such a call was carried out is not known.
 * N10 A node owns nothing before the code that is deployed runs on its lanes (C12): until then its
 *     shards are others', or nobody's, and their calls wait. What is deployed meanwhile is loaded
 *     first (W4 of fleet/fleet.h).
 * N11 A node on a disk that is full ends (H7 of shard/host.h), and does not join again before
 *     there is room: a service manager may start it as often as it likes.
 *
 * Threads:   open, close and free by the one that opens data directories; hooks as
 *            shard/host.h says; the rest from any.
 * Ownership: cn_cluster_open() allocates; the set of shards is its own, and outlives the node. */
#ifndef CN_FLEET_CLUSTER_H
#define CN_FLEET_CLUSTER_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/siphash.h"

struct cn_blobs;
struct cn_registry;
struct cn_buf;
struct cn_cluster;
struct cn_disk;
struct cn_err;
struct cn_host;
struct cn_lane_remote;
struct cn_ledger;
struct cn_metrics_sink;
struct cn_node_calls;
struct cn_relay_net;
struct cn_remote_counts;
struct cn_node;
struct cn_shards;
struct cn_witness;

/* Texts are borrowed for the time of the call that they are given to. */
struct cn_cluster_options {
    const char *url;      /* of the engine: postgresql://... */
    const char *node;     /* its name */
    const char *peer;     /* HOST:PORT where other nodes reach it; port 0: any */
    unsigned shard_count; /* of a cluster that this node makes; 0: 256 */
    unsigned replicas;    /* the same; 0: 2 */
    bool verified;        /* every answer waits until the engine has said that it may leave (C5) */
    bool allow_async;     /* the engine may lose what it has acknowledged */
    unsigned lane_count;
    unsigned call_wait_ms;      /* of calls whose object has no owner; 0: 5000 */
    struct cn_disk *disk;       /* borrowed until it is freed: the data directory */
    struct cn_witness *witness; /* the same; NULL: there is none */
    int64_t history_ms;         /* 0: the default */
    uint64_t history_bytes;
};

/* The flaws of an engine (membership/engine.h) that are borne. */
unsigned cn_cluster_allowed(const struct cn_cluster_options *options);
/* Checks what can be checked without the engine. */
int cn_cluster_check(const struct cn_cluster_options *options, struct cn_err *err);

/* Waits until the cluster is joined, however long its engine is away. CN_EDENIED: it would lose
 * data, or is of another version. CN_EEXISTS: N2. */
int cn_cluster_open(const struct cn_cluster_options *options, struct cn_cluster **cluster,
                    struct cn_err *err);
/* N6: while lanes run; on a thread that may wait. */
void cn_cluster_depart(struct cn_cluster *cluster);
/* N6: when lanes have ended; does nothing if it has departed. Waits; a process that cannot leave
 * ends here. */
void cn_cluster_leave(struct cn_cluster *cluster);
/* After the node; NULL is fine. */
void cn_cluster_free(struct cn_cluster *cluster);

struct cn_shards *cn_cluster_shards(struct cn_cluster *cluster);
struct cn_host *cn_cluster_host(struct cn_cluster *cluster);
/* Blobs that lie on the disks of several nodes (shard/bodies.h); the caller's, to be closed after
 * cn_cluster_leave(). */
struct cn_blobs *cn_cluster_blobs(struct cn_cluster *cluster);
struct cn_bodies_stats;
void cn_cluster_bodies(struct cn_cluster *cluster, struct cn_bodies_stats *stats);
/* The objects that can say which of them are known. Until cn_cluster_leave(). */
void cn_cluster_serve(struct cn_cluster *cluster, struct cn_node *node);
void cn_cluster_secret(const struct cn_cluster *cluster, uint8_t secret[CN_SIPHASH_KEY_SIZE]);
#define CN_CLUSTER_SECRET_SIZE 32
/* The first, of the whole. */
void cn_cluster_secret_of(const uint8_t whole[CN_CLUSTER_SECRET_SIZE],
                          uint8_t secret[CN_SIPHASH_KEY_SIZE]);
/* The secret that all nodes have, whole: for keys that are made of it. */
void cn_cluster_whole_secret(const struct cn_cluster *cluster,
                             uint8_t secret[CN_CLUSTER_SECRET_SIZE]);
/* For questions to the engine besides those of the host. */
const struct cn_registry *cn_cluster_registry(const struct cn_cluster *cluster);
uint64_t cn_cluster_disk_id(const struct cn_cluster *cluster);
/* N7: whether `rc` says that the engine is away, and it is to be asked again; then *err is told. */
bool cn_cluster_is_away(struct cn_cluster *cluster, int rc, struct cn_err *err);
/* The version of the table of classes that was fetched last; on the deploying thread. */
uint64_t cn_cluster_ledger_version(const struct cn_cluster *cluster);
/* For struct cn_control.cluster: what the engine knows, and how this node sees itself. */
int cn_cluster_overview(void *cluster, struct cn_buf *json, struct cn_err *err);
/* For deployments: project/deploy_classes.h. */
const struct cn_ledger *cn_cluster_ledger(struct cn_cluster *cluster);
/* For the admin listener (fleet/cluster_report.c): why a load balancer should pass this node by,
 * NULL: it serves; and what is counted. Any thread, `cluster` is a struct cn_cluster. */
const char *cn_cluster_unready(void *cluster, char *text, size_t size);
void cn_cluster_metrics(void *cluster, struct cn_metrics_sink *sink);
/* What calls to and from other nodes came to. Any thread. */
void cn_cluster_counts(struct cn_cluster *cluster, struct cn_remote_counts *counts);
/* For lanes: their way to other nodes. */
const struct cn_lane_remote *cn_cluster_remote(struct cn_cluster *cluster);
/* Which disk it is, and which life of it (cn_node_options). */
void cn_cluster_mark(const struct cn_cluster *cluster, uint64_t *disk, uint64_t *life);
/* Whether it has failed; then *err says why. */
bool cn_cluster_failed(struct cn_cluster *cluster, struct cn_err *err);

/* For backups (fleet/cluster_backup.h): what they are made of, and that there is one at a time. */
struct cn_bodies;
struct cn_engine_pg_info;
struct cn_backup_streams;
struct cn_backup_streams *cn_cluster_backup_streams(struct cn_cluster *cluster);
struct cn_bodies *cn_cluster_body_keeper(struct cn_cluster *cluster);
const struct cn_engine_pg_info *cn_cluster_info(const struct cn_cluster *cluster);
bool cn_cluster_backup_begin(struct cn_cluster *cluster);
void cn_cluster_backup_end(struct cn_cluster *cluster);

/* How services ask other nodes (service/node_calls.h). */
const struct cn_node_calls *cn_cluster_others(struct cn_cluster *cluster);
/* How administration does (admin/relay.h), with the node that cn_cluster_serve() got. */
const struct cn_relay_net *cn_cluster_relay(struct cn_cluster *cluster);

#endif
