/* SPDX-License-Identifier: Apache-2.0 */
#include "membership/overview.h"

#include "base/assert.h"
#include "base/buf.h"
#include "base/err.h"
#include "membership/registry.h"

#define LIVE "EXISTS (SELECT 1 FROM cairn.session x WHERE x.live AND x.disk = d.id)"

static const char *const questions[CN_OVERVIEW_PARTS] = {
    [CN_OVERVIEW_STATUS] =
        "SELECT json_build_object('cluster', c.id, 'shards', c.shards, 'replicas', c.replicas, "
        "'version', c.version, 'nodesAlive', (SELECT count(*) FROM cairn.session WHERE live), "
        "'shardsWithoutOwner', (SELECT count(*) FROM cairn.shard s WHERE NOT EXISTS (SELECT 1 FROM "
        "cairn.session x WHERE x.live AND x.id = s.owner)), 'shardsWithFewerReplicas', (SELECT "
        "count(*) FROM cairn.shard s WHERE (SELECT count(*) FROM cairn.session x WHERE x.live AND "
        "x.disk = ANY (s.disks)) < c.replicas), 'shardsMoving', (SELECT count(*) FROM cairn.shard "
        "s WHERE cardinality(s.disks) > c.replicas), 'shardsRestored', (SELECT count(*) FROM "
        "cairn.restored), 'engine', json_build_object('address', "
        "coalesce(host(inet_server_addr()) || ':' || inet_server_port(), 'a local socket'), "
        "'serverVersion', current_setting('server_version'), 'timeline', ('x' || "
        "substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::bigint, "
        "'synchronousStandbyNames', current_setting('synchronous_standby_names'), "
        "'synchronousCommit', current_setting('synchronous_commit'), 'fsync', "
        "current_setting('fsync'), 'fullPageWrites', current_setting('full_page_writes'), "
        "'logBytes', (SELECT sum(pg_total_relation_size(format('cairn.log_%s', i)::regclass)) FROM "
        "generate_series(0, 3) i), 'filesBytes', (SELECT coalesce(sum(size), 0) FROM cairn.piece), "
        "'standbys', (SELECT coalesce(json_agg(json_build_object('name', r.application_name, "
        "'state', r.state, 'sync', r.sync_state, 'behindBytes', "
        "pg_wal_lsn_diff(pg_current_wal_lsn(), r.flush_lsn)) ORDER BY r.application_name), '[]') "
        "FROM pg_stat_replication r)), 'deployment', (SELECT json_build_object('version', "
        "p.version, 'workers', json_array_length(p.state::json -> 'scripts'), 'underWay', CASE "
        "WHEN p.holder <> '' THEN json_build_object('node', cairn.node_of(p.disk), 'offered', "
        "p.offered IS NOT NULL, 'waitsFor', CASE WHEN p.offered IS NOT NULL THEN "
        "cairn.depot_asked(p.change, p.disk) END) END, 'behind', "
        "cairn.depot_behind(p.version, 0)) FROM cairn.depot p))::text FROM cairn.cluster c",
    [CN_OVERVIEW_NODES] =
        "SELECT coalesce(json_agg(json_build_object('name', d.node, 'state', CASE WHEN NOT " LIVE
        " THEN 'away' WHEN d.draining THEN 'draining' ELSE 'alive' END, 'address', d.address, "
        "'disk', to_hex(d.id), 'owns', (SELECT count(*) FROM cairn.shard s JOIN cairn.session x ON "
        "x.id = s.owner AND x.live AND x.disk = d.id), 'replicas', (SELECT count(*) FROM "
        "cairn.shard s WHERE d.id = ANY (s.disks)), 'beat', (SELECT x.beat FROM cairn.session x "
        "WHERE x.live AND x.disk = d.id LIMIT 1), 'deployed', (SELECT f.version FROM "
        "cairn.follower f WHERE f.disk = d.id)) ORDER BY d.node, d.id), '[]')::text FROM "
        "cairn.disk d",
    [CN_OVERVIEW_APART] =
        "SELECT coalesce(json_agg(json_build_object('node', node, 'other', other, 'address', "
        "address, 'why', why) ORDER BY node, other), '[]')::text FROM cairn.apart",
    [CN_OVERVIEW_SHARDS] =
        "SELECT json_agg(json_build_object('id', s.id, 'owner', (SELECT d.node FROM cairn.session "
        "x JOIN cairn.disk d ON d.id = x.disk WHERE x.id = s.owner AND x.live), 'epoch', s.epoch, "
        "'trim', s.trim, 'head', h.head, 'replicas', (SELECT coalesce(json_agg(json_build_object("
        "'node', d.node, 'alive', " LIVE ", 'checkpoint', u.checkpoint, 'behind', h.head - "
        "u.checkpoint) ORDER BY d.node), '[]') FROM unnest(s.disks, s.checkpoints) AS u(disk, "
        "checkpoint) JOIN cairn.disk d ON d.id = u.disk)) ORDER BY s.id)::text FROM cairn.shard s, "
        "LATERAL (SELECT greatest((SELECT max(l.upto) FROM cairn.log l WHERE l.shard = s.id), "
        "(SELECT max(k) FROM unnest(s.checkpoints) k), 0) AS head) h",
};

int cn_overview(const struct cn_registry *registry, enum cn_overview_part part, struct cn_buf *json,
                struct cn_err *err)
{
    CN_ASSERT(part < CN_OVERVIEW_PARTS);
    int rc = cn_registry_ask(registry, questions[part], NULL, 0, json, err);
    if (rc == 0)
        rc = cn_err_set(err, CN_EPROTOCOL, "the engine does not know the cluster");
    return rc < 0 ? rc : 0;
}

int cn_overview_all(const struct cn_registry *registry, struct cn_buf *json, struct cn_err *err)
{
    static const char *const names[CN_OVERVIEW_PARTS] = {
        "{\"member\":true,\"status\":", ",\"nodes\":", ",\"shards\":", ",\"apart\":"};
    int rc = 0;
    for (unsigned i = 0; i < CN_OVERVIEW_PARTS && rc == 0; i++) {
        cn_buf_append_str(json, names[i]);
        rc = cn_overview(registry, (enum cn_overview_part)i, json, err);
    }
    return rc;
}
