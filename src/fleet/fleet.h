/* SPDX-License-Identifier: Apache-2.0 */
/* fleet/fleet.h - workers that were deployed by upload, on all nodes of a cluster.
 *
 * The engine has the state of what is deployed and the files of all versions; each node has a copy
 * (v4/depot.h, DB). The node that is asked to change the state leads, the others follow:
 *
 *     the node that is asked                 the engine                 every other that serves
 *     begin: hold ─────────────────────────► holder
 *     tries the version on itself
 *     offer: files, the state ─────────────► offered ─────────────────► fetches what it lacks,
 *                                                                       builds it, tries it
 *     waits for all ◄─────────────────────── ready, or why not ◄─────── says so
 *     lanes start it; commit ──────────────► state, classes ──────────► loads it
 *     end: sweeps, lets go, waits ◄───────── version ◄───────────────── says so
 *
 * Nodes look once a second, and when the engine notifies them (membership/poller.h).
 * Terms: docs/understand/glossary.md.
 *
 * W1  What is deployed is what the engine says; a copy on a disk decides nothing.
 * W2  Nothing of a new version serves anywhere before every node that is alive and serves has tried
 *     it with success; one that cannot serve it ends the deployment, with its reason, and nothing
 *     has changed. A node whose session ends is not waited for; nor is any for longer than
 *     CN_FLEET_READY_MS.
 * W3  The commit is one statement (D10, D11 of engine_pg_depot.c). Whoever dies before it: all
 *     serve the old version; after it: all serve the new one, those that were away when they are
 *     back. If the engine does not answer, the leader does not know which, says so, and follows.
 * W4  A node serves for the first time with what is current: it says so to the engine, which
 *     refuses if something else is by now. Then it loads again before it serves.
 * W5  A state that is current is adopted whatever happens: what cannot be served of it here is
 *     broken here (H5 of hosted.h), as after a start. A load that fails is tried again.
 * W6  A token that was revoked is refused by every node when the answer comes, or the answer names
 *     those that have not said so yet.
 *
 * Threads:   open, start and close by the one that serves; cn_fleet_stop() any; a thread of its own
 *            follows.
 * Ownership: cn_fleet_open() allocates. */
#ifndef CN_FLEET_FLEET_H
#define CN_FLEET_FLEET_H
#include <stdbool.h>
#include <stdint.h>

struct cn_cluster;
struct cn_depot;
struct cn_depot_common;
struct cn_depot_state;
struct cn_disk;
struct cn_err;
struct cn_fleet;
struct cn_tokens;

#define CN_FLEET_READY_MS 60000 /* W2 */

/* Waits for the engine, and fetches what is to be served. */
int cn_fleet_open(struct cn_cluster *cluster, struct cn_disk *disk, struct cn_fleet **fleet,
                  struct cn_err *err);
void cn_fleet_close(struct cn_fleet *fleet); /* NULL is fine */
/* For cn_depot_open(). */
const struct cn_depot_common *cn_fleet_common(struct cn_fleet *fleet);
/* The tokens become those of all nodes. */
int cn_fleet_share_tokens(struct cn_fleet *fleet, struct cn_tokens *tokens, struct cn_err *err);
/* Follows, from when it serves on; `deploy` is cn_serve_deploy(). */
int cn_fleet_start(struct cn_fleet *fleet, int (*deploy)(void *data, struct cn_err *err),
                   void *data, struct cn_err *err);
/* The server stops: nothing is waited for any more. */
void cn_fleet_stop(struct cn_fleet *fleet);
/* W4: on the first lane, before what was made of the state serves. CN_EABORTED: load again. */
int cn_fleet_serves(struct cn_fleet *fleet, const struct cn_depot_state *state, struct cn_err *err);
/* The key that secrets of workers are encrypted with, made of the cluster's secret
 * (CN_CLUSTER_SECRET_SIZE bytes; CN_DEPOT_KEY_SIZE). */
void cn_fleet_key(const uint8_t *secret, uint8_t *key);
/* Before cn_fleet_serves() can be called. */
void cn_fleet_set_depot(struct cn_fleet *fleet, struct cn_depot *depot);

#endif
