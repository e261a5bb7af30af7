/* SPDX-License-Identifier: Apache-2.0 */
/* fleet/cluster_report.c - what a node tells those who watch it: readiness and metrics. See
 * cluster.h. */
#include <stdio.h>
#include <string.h>

#include "admin/metrics.h"
#include "base/assert.h"
#include "base/buf.h"
#include "base/counter.h"
#include "base/err.h"
#include "fleet/cluster.h"
#include "membership/overview.h"
#include "membership/registry.h"
#include "object/shard.h"
#include "remote/remote.h"
#include "shard/bodies.h"
#include "shard/host.h"
#include "store/log.h"
#include "store/store.h"

static const char *const state_names[CN_MEMBER_STATES] = {
    [CN_MEMBER_AWAY] = "away",   [CN_MEMBER_JOINING] = "joining", [CN_MEMBER_LIVE] = "live",
    [CN_MEMBER_DOUBT] = "doubt", [CN_MEMBER_LEAVING] = "leaving", [CN_MEMBER_GONE] = "gone"};

const char *cn_cluster_unready(void *cluster, char *text, size_t size)
{
    struct cn_host_status status;
    cn_host_status(cn_cluster_host(cluster), &status);
    if (status.state != CN_MEMBER_LIVE && status.state != CN_MEMBER_DOUBT)
        return "not in the cluster: joining, or leaving";
    if (status.draining)
        return "draining: an operator wants this node empty";
    if (status.lease)
        return NULL;
    snprintf(text, size, "no lease: the engine does not answer%s%s", *status.engine ? ": " : "",
             status.engine);
    return text;
}

/* Bytes that wait for the engine. */
static uint64_t unsettled_bytes(struct cn_shards *shards)
{
    uint64_t bytes = 0;
    for (unsigned i = 0; i < cn_shards_count(shards); i++) {
        struct cn_shard *shard = cn_shards_hold_index(shards, i);
        if (!shard)
            continue;
        bytes += cn_log_pending(cn_store_log(shard->store));
        cn_shard_release(shard);
    }
    return bytes;
}

static void tell_append(struct cn_metrics_sink *sink, const struct cn_histogram *histogram)
{
    uint64_t ranges[CN_HISTOGRAM_BOUNDS + 1];
    struct cn_metric_value value = {
        .real = true, .number = (double)cn_counter_get(&histogram->sum) * 1e-6, .ranges = ranges};
    for (size_t i = 0; i <= CN_HISTOGRAM_BOUNDS; i++)
        ranges[i] = cn_counter_get(&histogram->ranges[i]);
    for (size_t i = 0; i < CN_HISTOGRAM_BOUNDS; i++)
        value.bounds[i] = (double)cn_histogram_us[i] * 1e-6;
    sink->family(sink, "cairn_cluster_append_duration_seconds", CN_METRIC_HISTOGRAM,
                 "A batch of commits, from its sending to the engine's answer.");
    sink->value(sink, &value);
}

void cn_cluster_metrics(void *cluster, struct cn_metrics_sink *sink)
{
    struct cn_host *host = cn_cluster_host(cluster);
    struct cn_host_status status;
    char text[CN_ERR_TEXT_MAX];
    struct cn_bodies_stats bodies;
    struct cn_remote_counts calls;
    cn_host_status(host, &status);
    cn_cluster_bodies(cluster, &bodies);
    cn_cluster_counts(cluster, &calls);
    const struct {
        const char *name;
        enum cn_metric_type type;
        const char *help;
        uint64_t value;
    } families[] = {
        {"cairn_cluster_ready", CN_METRIC_GAUGE, "Whether the node serves.",
         !cn_cluster_unready(cluster, text, sizeof(text))},
        {"cairn_cluster_lease", CN_METRIC_GAUGE, "Whether it may answer.", status.lease},
        {"cairn_cluster_nodes", CN_METRIC_GAUGE, "Live nodes that it knows of.", status.nodes},
        {"cairn_cluster_unsettled_records", CN_METRIC_GAUGE, "Commits that the engine lacks.",
         status.unsettled_records},
        {"cairn_cluster_unsettled_bytes", CN_METRIC_GAUGE, "Their size.",
         unsettled_bytes(cn_cluster_shards(cluster))},
        {"cairn_cluster_appends_total", CN_METRIC_COUNTER, "Batches that the engine took.",
         status.appends},
        {"cairn_cluster_takeovers_total", CN_METRIC_COUNTER,
         "Shards that it has begun to serve: taken over, or moved here.", status.takeovers},
        {"cairn_cluster_fenced_total", CN_METRIC_COUNTER, "Sessions of it that others ended.",
         status.fenced},
        {"cairn_cluster_engine_links_total", CN_METRIC_COUNTER, "Links to the engine.",
         status.engine_links},
        {"cairn_cluster_engine_links_broken_total", CN_METRIC_COUNTER, "... that ended.",
         status.engine_broken},
        {"cairn_cluster_links", CN_METRIC_GAUGE, "Links to other nodes.", status.links_up},
        {"cairn_cluster_links_broken_total", CN_METRIC_COUNTER, "... that ended.",
         status.links_broken},
        {"cairn_cluster_nodes_unreached", CN_METRIC_GAUGE,
         "Live nodes to which there has been no link for 10 s.", status.unreached},
        {"cairn_cluster_strangers_total", CN_METRIC_COUNTER,
         "Connections to the port for nodes by who does not have the key of the cluster.",
         status.strangers},
        {"cairn_cluster_link_queue_bytes", CN_METRIC_GAUGE, "What waits for other nodes.",
         status.link_bytes},
        {"cairn_cluster_replica_queue_bytes", CN_METRIC_GAUGE,
         "What replicas were given and have not written.", status.queued_bytes},
        {"cairn_cluster_feeds_dropped_total", CN_METRIC_COUNTER,
         "Feeds for which there was no room; replicas read them from the engine.",
         status.feeds_dropped},
        {"cairn_cluster_calls_sent_total", CN_METRIC_COUNTER,
         "Calls to objects of other nodes that were sent.", calls.sent},
        {"cairn_cluster_calls_served_total", CN_METRIC_COUNTER,
         "Calls of other nodes to objects here.", calls.served},
        {"cairn_cluster_calls_refused_total", CN_METRIC_COUNTER,
         "Calls that were sent to a node that does not have the object, and tried again.",
         calls.refused},
        {"cairn_cluster_calls_lost_total", CN_METRIC_COUNTER,
         "Calls that failed because their connection broke; they may have been carried out.",
         calls.lost},
        {"cairn_cluster_calls_given_up_total", CN_METRIC_COUNTER,
         "Calls that failed because no node answered for their object in time.", calls.given_up},
        {"cairn_cluster_calls_waiting", CN_METRIC_GAUGE,
         "Calls that wait for a node that answers for their object.", calls.held},
        {"cairn_cluster_loans", CN_METRIC_GAUGE,
         "Functions, targets and streams of objects and workers here that other nodes hold.",
         calls.leases},
        {"cairn_cluster_loans_let_go_total", CN_METRIC_COUNTER,
         "... that were let go of because the session of their holder was over.", calls.let_go},
        {"cairn_cluster_replicas_behind", CN_METRIC_GAUGE,
         "Replicas here that lack something, or have not heard of their owner.", status.behind},
        {"cairn_cluster_bodies", CN_METRIC_GAUGE, "Bodies of R2 on this disk.", bodies.count},
        {"cairn_cluster_bodies_lacking_shards", CN_METRIC_GAUGE,
         "Shards it owns of which a replica lacks bodies, or cannot be asked.", bodies.lacking},
        {"cairn_cluster_bodies_damaged", CN_METRIC_GAUGE, "... that wait to be repaired.",
         bodies.damaged},
        {"cairn_cluster_bodies_repaired_total", CN_METRIC_COUNTER,
         "Bodies that were missing or damaged here, and came from another node.", bodies.repaired},
        {"cairn_cluster_bodies_collected_total", CN_METRIC_COUNTER,
         "Bodies that no bucket knew, and are deleted.", bodies.collected},
        {"cairn_cluster_bodies_refused_total", CN_METRIC_COUNTER,
         "Puts that failed because no second node could be reached.", bodies.refused},
    };
    const struct {
        const char *role;
        unsigned count;
    } roles[] = {{"serving", status.serving},
                 {"following", status.following},
                 {"coming", status.coming},
                 {"leaving", status.leaving}};
    for (size_t i = 0; i < CN_ARRAY_COUNT(families); i++)
        cn_metrics_single(sink, families[i].name, families[i].type, families[i].help,
                          families[i].value);
    sink->family(sink, "cairn_cluster_replica_silence_seconds", CN_METRIC_GAUGE,
                 "The longest that a replica here has not heard of its owner.");
    cn_metrics_sample_real(sink, NULL, NULL, (double)status.silent_ms / 1000);
    sink->family(sink, "cairn_cluster_state", CN_METRIC_GAUGE, "1 for the state that it is in.");
    for (size_t i = 0; i < CN_MEMBER_STATES; i++)
        cn_metrics_sample(sink, "state", state_names[i], status.state == i);
    sink->family(sink, "cairn_cluster_shards", CN_METRIC_GAUGE, "Shards here, by role.");
    for (size_t i = 0; i < CN_ARRAY_COUNT(roles); i++)
        cn_metrics_sample(sink, "role", roles[i].role, roles[i].count);
    sink->family(sink, "cairn_cluster_copies", CN_METRIC_GAUGE, "Copies of shards under way.");
    cn_metrics_sample(sink, "direction", "in", status.copies_in);
    cn_metrics_sample(sink, "direction", "out", status.copies_out);
    tell_append(sink, cn_host_append_us(host));
}

/* --- for people ------------------------------------------------------------------------------ */

int cn_cluster_overview(void *cluster, struct cn_buf *json, struct cn_err *err)
{
    struct cn_host_status status;
    struct cn_registry registry = *cn_cluster_registry(cluster);
    registry.allow_flaws = ~0u; /* whoever looks wants to see them */
    registry.timeout_ms = 3000;
    int rc = cn_overview_all(&registry, json, err);
    if (rc < 0)
        return rc;
    cn_host_status(cn_cluster_host(cluster), &status);
    cn_buf_append_str(json, ",\"self\":{\"node\":");
    cn_buf_append_json(json, registry.node, strlen(registry.node));
    cn_buf_printf(json,
                  ",\"state\":\"%s\",\"lease\":%s,\"serving\":%u,\"following\":%u,\"coming\":%u,"
                  "\"leaving\":%u,\"engine\":",
                  state_names[status.state], status.lease ? "true" : "false", status.serving,
                  status.following, status.coming, status.leaving);
    cn_buf_append_json(json, status.engine, strlen(status.engine));
    cn_buf_append_str(json, "}}");
    return 0;
}
