/* SPDX-License-Identifier: Apache-2.0 */
/* cli/cmd_cluster.c - `cairn cluster`: what the engine of a cluster knows, and an operator's
 * wishes.
 *
 * It asks the engine and no node, so it works from anywhere, also when all nodes are down; a wish
 * is carried out by the nodes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/buf.h"
#include "base/err.h"
#include "cli/args.h"
#include "cli/print.h"
#include "membership/engine.h"
#include "membership/engine_pg.h"
#include "membership/overview.h"
#include "membership/registry.h"

enum { MOVE_S = 20, BEATS_S = 4 }; /* more than it takes until a node is taken for dead */

struct options {
    const char *url, *shards, *replicas;
    bool off, allow_async, json, yes;
};

struct run {
    const struct options *options;
    const char **rest; /* behind the verb */
    size_t rest_count;
    struct cn_buf text;
};

/* Whoever looks wants to see an engine that has flaws, too. */
static struct cn_registry registry_of(const struct run *run)
{
    return (struct cn_registry){.conninfo = run->options->url,
                                .node = "operator",
                                .existing = true,
                                .allow_flaws = CN_ENGINE_NO_STANDBY | CN_ENGINE_ASYNC |
                                               CN_ENGINE_NO_FSYNC | CN_ENGINE_TORN_PAGES};
}

/* 1: there is a text, in run->text. */
static int ask(struct run *run, const char *sql, const char *const *values, size_t count,
               struct cn_err *err)
{
    struct cn_registry registry = registry_of(run);
    cn_buf_clear(&run->text);
    return cn_registry_ask(&registry, sql, values, count, &run->text, err);
}

static int print_json(struct run *run, enum cn_overview_part part, struct cn_err *err)
{
    struct cn_registry registry = registry_of(run);
    int rc = cn_overview(&registry, part, &run->text, err);
    if (rc == 0)
        printf("%s\n", cn_buf_text(&run->text));
    return rc;
}

static int read_count(const char *name, const char *text, unsigned max, unsigned *count,
                      struct cn_err *err)
{
    char *end;
    unsigned long value = text ? strtoul(text, &end, 10) : 0;
    *count = (unsigned)value;
    if (text && (*end || !value || value > max))
        return cn_err_set(err, CN_EINVALID, "--%s is a number from 1 to %u", name, max);
    return 0;
}

/* Makes the tables, or finds them. */
static int run_init(struct run *run, struct cn_err *err)
{
    struct cn_registry registry = {.conninfo = run->options->url, .node = "operator"};
    unsigned shards, replicas;
    int rc = read_count("shards", run->options->shards, CN_CLUSTER_SHARDS_MAX, &shards, err);
    if (rc == 0)
        rc =
            read_count("replicas", run->options->replicas, CN_CLUSTER_REPLICAS_MAX, &replicas, err);
    if (rc < 0)
        return rc;
    registry.shard_count = shards;
    registry.replicas = replicas;
    if (run->options->allow_async)
        registry.allow_flaws =
            CN_ENGINE_NO_STANDBY | CN_ENGINE_ASYNC | CN_ENGINE_NO_FSYNC | CN_ENGINE_TORN_PAGES;
    rc = cn_registry_ask(&registry,
                         "SELECT concat_ws(' ', shards, replicas, id) FROM cairn.cluster, LATERAL "
                         "(SELECT cairn.recall('classes')) waited",
                         NULL, 0, &run->text, err);
    if (rc == CN_EDENIED)
        return cn_err_context(err, "no cluster is made on it (--allow-async makes one)");
    if (rc < 0)
        return rc;
    char *end;
    unsigned long has_shards = strtoul(cn_buf_text(&run->text), &end, 10);
    unsigned long has_replicas = strtoul(end, &end, 10);
    if ((shards && shards != has_shards) || (replicas && replicas != has_replicas))
        return cn_err_set(err, CN_EEXISTS,
                          "the cluster is there, with %lu shards and %lu replicas of each: that "
                          "cannot be changed",
                          has_shards, has_replicas);
    printf(
        "cluster%s: %lu shards, %lu replicas of each\n\n"
        "Start each node with a name and a data directory of its own, where the others reach it:\n"
        "    CAIRN_CLUSTER='...' cairn serve [PROJECT] --data /var/lib/cairn/NAME --node NAME "
        "--peer HOST:7701\n",
        end, has_shards, has_replicas);
    return 0;
}

/* Lines of cells with tabs between them. */
static void print_rows(struct run *run, const char *heading, size_t columns)
{
    struct cn_table table;
    cn_table_init(&table, columns);
    const char *texts[] = {heading, cn_buf_text(&run->text)};
    for (size_t i = 0; i < 2; i++)
        for (const char *at = texts[i]; *at;) {
            size_t size = strcspn(at, "\t\n");
            cn_table_add(&table, at, size);
            at += size + (at[size] != 0);
        }
    cn_table_print(&table);
}

static int run_status(struct run *run, struct cn_err *err)
{
    if (run->options->json)
        return print_json(run, CN_OVERVIEW_STATUS, err);
    int rc = ask(
        run,
        "SELECT 'cluster' || E'\\t' || c.id || E'\\n' || 'shards' || E'\\t' || c.shards || E'\\n' "
        "|| "
        "'replicas wanted' || E'\\t' || c.replicas || E'\\n' || 'nodes alive' || E'\\t' || "
        "(SELECT count(*) FROM cairn.session WHERE live) || E'\\n' || 'shards without an owner' || "
        "E'\\t' || (SELECT count(*) FROM cairn.shard s WHERE NOT EXISTS (SELECT 1 FROM "
        "cairn.session x WHERE x.live AND x.id = s.owner)) || E'\\n' || "
        "'shards with fewer replicas alive' || E'\\t' || (SELECT count(*) FROM cairn.shard s WHERE "
        "(SELECT count(*) FROM cairn.session x WHERE x.live AND x.disk = ANY (s.disks)) < "
        "c.replicas) || E'\\n' || 'log in the engine' || E'\\t' || (SELECT "
        "pg_size_pretty(sum(pg_total_relation_size(format('cairn.log_%s', i)::regclass))) FROM "
        "generate_series(0, 3) i) || E'\\n' || 'version of the map' || E'\\t' || c.version || "
        "E'\\n' "
        "|| 'shards that are copied or moved' || E'\\t' || (SELECT count(*) FROM cairn.shard s "
        "WHERE cardinality(s.disks) > c.replicas) || E'\\n' || 'primary of the engine' || E'\\t' "
        "|| "
        "coalesce(host(inet_server_addr()) || ':' || inet_server_port(), 'a local socket') || ', "
        "PostgreSQL ' || current_setting('server_version') || E'\\n' || 'its standbys' || E'\\t' "
        "|| "
        "coalesce((SELECT string_agg(concat_ws(' ', r.application_name, r.state, r.sync_state, "
        "pg_size_pretty(pg_wal_lsn_diff(pg_current_wal_lsn(), r.flush_lsn)) || ' behind'), ', ' "
        "ORDER BY r.application_name) FROM pg_stat_replication r), 'NONE: writes wait') || E'\\n' "
        "|| "
        "'what it may lose' || E'\\t' || CASE WHEN current_setting('synchronous_standby_names') "
        "= '' OR current_setting('synchronous_commit') NOT IN ('on', 'remote_apply') OR "
        "current_setting('fsync') <> 'on' OR current_setting('full_page_writes') <> 'on' THEN "
        "'WHAT IT HAS ACKNOWLEDGED: ' || concat_ws(', ', 'synchronous_standby_names = ' || "
        "quote_literal(current_setting('synchronous_standby_names')), 'synchronous_commit = ' || "
        "current_setting('synchronous_commit'), 'fsync = ' || current_setting('fsync'), "
        "'full_page_writes = ' || current_setting('full_page_writes')) ELSE 'nothing' END || "
        "E'\\n' || 'shards of a restored engine that wait for a copy' || E'\\t' || (SELECT "
        "count(*) FROM cairn.restored) || E'\\n' || 'deployments' || E'\\t' || coalesce((SELECT "
        "'version ' || p.version || CASE "
        "WHEN "
        "p.holder <> '' THEN ', ' || cairn.node_of(p.disk) || ' deploys' || CASE WHEN p.offered IS "
        "NOT NULL THEN ': ' || cairn.depot_asked(p.change, p.disk) ELSE '' END ELSE '' END || "
        "coalesce(', not served yet by ' || cairn.depot_behind(p.version, 0), '') FROM cairn.depot "
        "p), 'none') FROM cairn.cluster c",
        NULL, 0, err);
    if (rc == 1)
        print_rows(run, "", 2);
    /* Tables that only nodes of an older version have used do not tell. */
    if (rc == 1)
        rc = ask(run, "SELECT to_regclass('cairn.apart')::text", NULL, 0, err);
    if (rc == 1)
        rc = ask(run,
                 "SELECT string_agg('NO LINK' || E'\\t' || 'from ' || node || ' to ' || other || ' "
                 "at ' || address || ': ' || why, E'\\n' ORDER BY node, other) FROM cairn.apart",
                 NULL, 0, err);
    if (rc == 1)
        print_rows(run, "", 2);
    return rc;
}

static int run_nodes(struct run *run, struct cn_err *err)
{
    if (run->options->json)
        return print_json(run, CN_OVERVIEW_NODES, err);
    int rc = ask(
        run,
        "SELECT string_agg(concat_ws(E'\\t', d.node, CASE WHEN EXISTS (SELECT 1 FROM "
        "cairn.session x "
        "WHERE x.live AND x.disk = d.id) THEN CASE WHEN d.draining THEN 'draining' ELSE "
        "'alive' END "
        "ELSE 'away' END, (SELECT count(*) FROM cairn.shard s JOIN cairn.session x ON x.id = "
        "s.owner "
        "AND x.live AND x.disk = d.id), (SELECT count(*) FROM cairn.shard s WHERE d.id = ANY "
        "(s.disks)), d.address, to_hex(d.id), coalesce((SELECT x.beat::text FROM cairn.session x "
        "WHERE x.live AND x.disk = d.id LIMIT 1), '-'), coalesce((SELECT f.version::text FROM "
        "cairn.follower f WHERE f.disk = d.id), '-')), E'\\n' ORDER BY d.node, d.id) FROM "
        "cairn.disk d",
        NULL, 0, err);
    if (rc >= 0)
        print_rows(run, "NODE\tSTATE\tOWNS\tREPLICAS\tADDRESS\tDISK\tBEAT\tDEPLOYED\n", 8);
    return rc;
}

static int run_shards(struct run *run, struct cn_err *err)
{
    if (run->options->json)
        return print_json(run, CN_OVERVIEW_SHARDS, err);
    int rc = ask(
        run,
        "SELECT string_agg(concat_ws(E'\\t', s.id, coalesce((SELECT d.node FROM cairn.session x "
        "JOIN "
        "cairn.disk d ON d.id = x.disk WHERE x.id = s.owner AND x.live), '-'), s.epoch, s.trim, "
        "coalesce((SELECT string_agg(d.node || CASE WHEN EXISTS (SELECT 1 FROM cairn.session x "
        "WHERE "
        "x.live AND x.disk = d.id) THEN '' ELSE ' (away)' END, ', ' ORDER BY d.node) FROM "
        "cairn.disk "
        "d WHERE d.id = ANY (s.disks)), '-'), coalesce((SELECT string_agg((greatest((SELECT "
        "max(l.upto) FROM cairn.log l WHERE l.shard = s.id), (SELECT max(k) FROM "
        "unnest(s.checkpoints) k)) - u.checkpoint)::text, ', ' ORDER BY d.node) FROM "
        "unnest(s.disks, s.checkpoints) AS u(disk, checkpoint) JOIN cairn.disk d ON d.id = "
        "u.disk), '-')), E'\\n' ORDER BY s.id) FROM cairn.shard s",
        NULL, 0, err);
    if (rc == 1)
        print_rows(run, "SHARD\tOWNER\tEPOCH\tTRIM\tREPLICAS\tBEHIND\n", 6);
    return rc;
}

static int no_such_node(const char *node, struct cn_err *err)
{
    return cn_err_set(err, CN_ENOTFOUND, "no node of the cluster is called %s", node);
}

static int run_drain(struct run *run, struct cn_err *err)
{
    const char *node = run->rest[0];
    const char *values[] = {node, run->options->off ? "false" : "true"};
    int rc =
        ask(run,
            "SELECT count(cairn.drain(d.id, $2::boolean))::text FROM cairn.disk d WHERE d.node "
            "= $1::text HAVING count(*) > 0",
            values, 2, err);
    if (rc == 0)
        return no_such_node(node, err);
    if (rc == 1)
        printf(run->options->off ? "%s takes shards again\n"
                                 : "%s gives its shards and replicas away; `cairn cluster nodes` "
                                   "shows how far it is\n",
               node);
    return rc;
}

static int run_forget(struct run *run, struct cn_err *err)
{
    const char *values[] = {run->rest[0]};
    int rc = ask(run, "cairn.forget($1::text)", values, 1, err);
    if (rc == 0)
        return no_such_node(run->rest[0], err);
    if (rc == 1 && strcmp(cn_buf_text(&run->text), "forgotten") != 0)
        return cn_err_set(err, CN_EDENIED, "%s is not forgotten: %s", run->rest[0],
                          cn_buf_text(&run->text));
    if (rc == 1)
        printf("%s is forgotten\n", run->rest[0]);
    return rc;
}

static const char owner_sql[] =
    "SELECT coalesce((SELECT d.node FROM cairn.session x JOIN cairn.disk d ON d.id = x.disk WHERE "
    "x.id = s.owner AND x.live), '-') FROM cairn.shard s WHERE s.id = $1::int";

/* All nodes are told, and its owner does it, or says in its log why not. */
static int run_move(struct run *run, struct cn_err *err)
{
    const char *shard = run->rest[0], *node = run->rest[1];
    const char *values[] = {shard, node};
    char *end;
    (void)strtoul(shard, &end, 10);
    if (*end || !*shard)
        return cn_err_set(err, CN_EINVALID, "\"%.40s\" is no number of a shard", shard);
    if (!cn_engine_pg_is_node(node))
        return no_such_node(node, err);
    int rc =
        ask(run,
            "SELECT pg_notify('cairn', 'move ' || s.id || ' ' || $2::text)::text FROM "
            "cairn.shard s WHERE s.id = $1::int AND EXISTS (SELECT 1 FROM cairn.disk d JOIN "
            "cairn.session x ON x.disk = d.id AND x.live WHERE d.node = $2::text AND d.id = ANY "
            "(s.disks))",
            values, 2, err);
    if (rc == 0)
        return cn_err_set(err, CN_ENOTFOUND,
                          "there is no shard %s, or no node %s that is alive and has a replica of "
                          "it: `cairn cluster shards`",
                          shard, node);
    for (int i = 0; rc == 1 && i < MOVE_S; i++) {
        rc = ask(run, owner_sql, values, 1, err);
        if (rc == 1 && strcmp(cn_buf_text(&run->text), node) == 0) {
            printf("shard %s is %s's\n", shard, node);
            return 0;
        }
        sleep(1);
    }
    return rc < 0 ? rc
                  : cn_err_set(err, CN_ETIMEOUT,
                               "shard %s is still %s's: the log of that node may say why", shard,
                               cn_buf_text(&run->text));
}

/* C15, C16: an engine that went back is the one to go on with. */
static int run_accept(struct run *run, struct cn_err *err)
{
    int rc = ask(run,
                 "SELECT format('version %s of the map, %s nodes were part of it, %s of them alive "
                 "as far as it knows', c.version, (SELECT count(*) FROM cairn.disk), (SELECT "
                 "count(*) FROM cairn.session WHERE live)) FROM cairn.cluster c",
                 NULL, 0, err);
    if (rc != 1)
        return rc;
    printf("the engine: %s\n", cn_buf_text(&run->text));
    if (!run->options->yes)
        return cn_err_set(
            err, CN_EDENIED,
            "nothing is changed without --yes. Nodes refuse an engine that knows less "
            "than it has told them. If the right one can be had, put that back "
            "instead: accepting this one loses what was acknowledged since and is on "
            "no disk. Each shard goes on with the copy of the first node that serves "
            "it; other copies are set aside, for an hour");
    rc = ask(run, "cairn.beats()", NULL, 0, err);
    if (rc < 0)
        return rc;
    char *beats = strdup(cn_buf_text(&run->text));
    const char *values[] = {beats};
    sleep(BEATS_S);
    rc = ask(run, "cairn.accept($1::text)", values, 1, err);
    free(beats);
    if (rc == 0)
        return cn_err_set(err, CN_EDENIED,
                          "nodes are alive and use this engine: there is nothing to accept (`cairn "
                          "cluster nodes`)");
    if (rc == 1)
        printf("accepted: start all nodes; the %s shards are served as soon as a node that has "
               "them is there (`cairn cluster status`)\n",
               cn_buf_text(&run->text));
    return rc;
}

static const struct {
    const char *name;
    size_t rest_count;
    int (*run)(struct run *run, struct cn_err *err);
} verbs[] = {{"init", 0, run_init},     {"status", 0, run_status},       {"nodes", 0, run_nodes},
             {"shards", 0, run_shards}, {"drain", 1, run_drain},         {"forget", 1, run_forget},
             {"move", 2, run_move},     {"accept-engine", 0, run_accept}};

static int run(const struct cn_args *args)
{
    struct cn_err err = {0};
    struct run own = {.options = args->options};
    for (size_t i = 0; i < CN_ARRAY_COUNT(verbs) && args->rest_count; i++) {
        if (strcmp(args->rest[0], verbs[i].name) != 0 ||
            args->rest_count - 1 != verbs[i].rest_count)
            continue;
        if (!own.options->url) {
            fprintf(stderr,
                    "cairn: cluster needs --cluster 'postgresql://...', or CAIRN_CLUSTER\n");
            return 2;
        }
        own.rest = args->rest + 1;
        own.rest_count = args->rest_count - 1;
        int rc = verbs[i].run(&own, &err);
        cn_buf_fini(&own.text);
        return cn_print_outcome(rc, &err);
    }
    fprintf(stderr,
            "cairn: cluster needs one of: init | status | nodes | shards | drain NODE | move SHARD "
            "NODE | forget NODE | accept-engine; `cairn help cluster` explains them\n");
    return 2;
}

#define AT(member) offsetof(struct options, member)

static const struct cn_option flags[] = {
    {"cluster", 0, "URL", "CAIRN_CLUSTER", "the cluster's PostgreSQL: postgresql://...", AT(url),
     0},
    {"json", 0, NULL, NULL, "status, nodes, shards: as JSON", AT(json), 0},
    {"off", 0, NULL, NULL, "drain: the node takes shards again", AT(off), 0},
    {"yes", 0, NULL, NULL, "accept-engine: do it", AT(yes), 0},
    {"shards", 0, "N", NULL, "init: into how many parts objects are divided, for ever (256)",
     AT(shards), 0},
    {"replicas", 0, "N", NULL, "init: on how many nodes each part is (2)", AT(replicas), 0},
    {"allow-async", 0, NULL, NULL, "init: also on an engine that may lose data", AT(allow_async),
     0},
};

const struct cn_command cn_cmd_cluster = {
    .name = "cluster",
    .usage = "init | status | nodes | shards | drain NODE | move SHARD NODE | forget NODE | "
             "accept-engine [OPTIONS]",
    .summary = "nodes and shards of a cluster",
    .text = "Asks the PostgreSQL of a cluster (docs/understand/cluster.md), also when all nodes "
            "are down.\n\n"
            "  cairn cluster init                makes the tables, if they are not there\n"
            "  cairn cluster status              counts, and what is not as it should be\n"
            "  cairn cluster nodes               who is there, and how much each has\n"
            "  cairn cluster shards              owners and replicas\n"
            "  cairn cluster drain NODE [--off]  empties a node, so that it can be removed\n"
            "  cairn cluster move SHARD NODE     to a node that has a replica of it\n"
            "  cairn cluster forget NODE         one that will not come back, or its DISK\n"
            "  cairn cluster accept-engine       goes on with an engine that nodes refuse, since\n"
            "                                    it knows less than it has told them",
    .rest_max = 3,
    .options = flags,
    .option_count = CN_ARRAY_COUNT(flags),
    .options_size = sizeof(struct options),
    .run = run,
};
