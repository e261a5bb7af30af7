/* SPDX-License-Identifier: Apache-2.0 */
#include "server/run.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "admin/otlp.h"
#include "admin/relay.h"
#include "base/account.h"
#include "base/diag.h"
#include "base/err.h"
#include "base/mem.h"
#include "config/address.h"
#include "config/adminconf.h"
#include "config/config.h"
#include "config/otlpconf.h"
#include "deploy/deploy.h"
#include "fleet/cluster.h"
#include "fleet/cluster_backup.h"
#include "fleet/fleet.h"
#include "fleet/witness.h"
#include "net/egress.h"
#include "net/tls.h"
#include "net/trust.h"
#include "object/shard.h"
#include "project/monitor.h"
#include "server/console.h"
#include "server/data.h"
#include "server/enter_sandbox.h"
#include "server/first.h"
#include "server/serve.h"
#include "server/systemd.h"
#include "server/watch.h"
#include "service/cache/cache.h"
#include "service/kv/kvcache.h"
#include "shard/host.h"
#include "store/sqlite_memory.h"
#include "store/store.h"
#include "v4/depot.h"
#include "v4/tokens.h"
#include "v4/v4.h"
#include "worker/taps.h"

#define LANES_MAX 256

/* How long a turn of `cairn dev` may hold its lane by the clock on the wall. */
#define DEV_WALL_MS 10000

struct settings {
    struct cn_serve_options serve; /* owns tls, trust, egress, proxies and otlp in it */
    char *host;                    /* owned */
    int *listen_fds;               /* owned; passed to the process (systemd.h); NULL: none */
    struct cn_data data;           /* Durable Objects; not opened if no project has any */
    struct cn_monitor monitor;
    struct cn_adminconf adminconf;
    struct cn_admin_options admin;
    struct cn_v4 v4; /* deployments by upload */
    struct cn_taps taps;
    struct cn_cluster_options cluster; /* url NULL: a single server */
    struct cn_witness witness;         /* of a node */
    struct cn_fleet *fleet;            /* deployments of a cluster, or NULL */
    struct cn_watch watch;
    struct cn_console console; /* cairn dev */
};

static int choose_listen(const struct cn_run_options *asked, const struct cn_config *config,
                         struct settings *settings, struct cn_err *err)
{
    int rc = cn_systemd_sockets(&settings->listen_fds, &settings->serve.server.listen_count,
                                &settings->host, &settings->serve.server.port, err);
    if (rc < 0 || settings->serve.server.listen_count)
        return rc;
    if (asked->listen)
        return cn_address_parse(asked->listen, &settings->host, &settings->serve.server.port, err);
    if (config->server.listen && !asked->ip && !asked->port)
        return cn_address_parse(config->server.listen, &settings->host,
                                &settings->serve.server.port, err);
    const struct cn_config_dev *dev = &config->dev;
    bool development = asked->deploy.development;
    const char *ip = asked->ip ? asked->ip : development && dev->ip ? dev->ip : "127.0.0.1";
    long port = asked->port                    ? cn_address_port(asked->port)
                : development && dev->port_set ? (long)dev->port
                                               : 8787;
    if (port < 0)
        return cn_err_set(err, CN_EINVALID,
                          "--port must be a number from 0 to 65535, not \"%.40s\"", asked->port);
    settings->host = cn_strdup(ip);
    settings->serve.next_port = development && !asked->port && !dev->port_set;
    settings->serve.server.port = (uint16_t)port;
    return 0;
}

static int choose_lanes(const struct cn_run_options *asked, const struct cn_config *config,
                        struct settings *settings, struct cn_err *err)
{
    char *end = NULL;
    long count = asked->lanes ? strtol(asked->lanes, &end, 10) : config->server.lanes;
    if (asked->lanes && (*end || count < 1 || count > LANES_MAX))
        return cn_err_set(err, CN_EINVALID, "--lanes must be a number from 1 to %d, not \"%.40s\"",
                          LANES_MAX, asked->lanes);
    if (count == 0 && !asked->deploy.development)
        count = sysconf(_SC_NPROCESSORS_ONLN);
    settings->serve.server.lane_count = count < 1           ? 1
                                        : count > LANES_MAX ? LANES_MAX
                                                            : (unsigned)count;
    /* libuv reads it when its pool is first used. A thread more for each lane: what waits there for
     * the log, one of each lane at the most (O9 of object/object.h), leaves the usual four. */
    char threads[16];
    snprintf(threads, sizeof(threads), "%u", settings->serve.server.lane_count + 4);
    (void)setenv("UV_THREADPOOL_SIZE", threads, 0); /* or it stays at four */
    return 0;
}

static int choose_tls(const struct cn_run_options *asked, const struct cn_config *config,
                      struct settings *settings, struct cn_err *err)
{
    const char *cert = asked->tls_cert, *key = asked->tls_key;
    if (!cert != !key)
        return cn_err_set(err, CN_EINVALID, "--tls-cert and --tls-key belong together");
    if (cert)
        return cn_tls_context_new(cert, key, &settings->serve.server.tls, err);
    if (!config->server.tls.cert)
        return 0;
    /* Paths in the file count from the project. */
    cert = config->server.tls.cert;
    key = config->server.tls.key;
    char *cert_path = *cert == '/' ? cn_strdup(cert) : cn_sprintf("%s/%s", config->home, cert);
    char *key_path = *key == '/' ? cn_strdup(key) : cn_sprintf("%s/%s", config->home, key);
    int rc = cn_tls_context_new(cert_path, key_path, &settings->serve.server.tls, err);
    cn_free(cert_path);
    cn_free(key_path);
    return rc;
}

/* What a thread's part of the allocator may keep: a share of the limit, since there are dozens. */
static size_t kept_of(uint64_t limit)
{
    const uint64_t least = 512u << 10, most = 32u << 20; /* most: what malloc() takes */
    uint64_t share = limit / 512;
    return (size_t)(share < least ? least : share > most || !limit ? most : share);
}

static void choose_limits(const struct cn_config *config, struct settings *settings)
{
    struct cn_http_limits *limits = &settings->serve.server.limits;
    *limits = cn_http_limits_default;
    if (config->server.limits.url_bytes)
        limits->target_size_max = (size_t)config->server.limits.url_bytes;
    if (config->server.limits.header_bytes)
        limits->head_size_max = (size_t)config->server.limits.header_bytes;
    if (config->server.limits.body_bytes)
        limits->body_size_max = (uint64_t)config->server.limits.body_bytes;
    if (config->server.limits.header_timeout_ms)
        limits->head_timeout_ms = (unsigned)config->server.limits.header_timeout_ms;
    if (config->server.limits.idle_timeout_ms)
        limits->idle_timeout_ms = (unsigned)config->server.limits.idle_timeout_ms;
    if (config->server.limits.connections)
        limits->connection_count_max = (unsigned)config->server.limits.connections;
    settings->serve.server.heap_bytes_max = (size_t)config->server.limits.heap_bytes;
    settings->serve.server.stuck_ms = (unsigned)config->server.limits.stuck_ms;
    uint64_t memory = (uint64_t)config->server.limits.memory_bytes;
    cn_account_set_limit(memory ? memory : cn_account_default(""));
    cn_mem_keep(kept_of(cn_account_limit()));
    settings->serve.server.websockets = (struct cn_ws_options){
        .message_size_max = (size_t)config->server.limits.websocket_message_bytes,
        .output_size_max = (size_t)config->server.limits.websocket_output_bytes,
        .ping_interval_ms = (unsigned)config->server.limits.websocket_ping_ms,
        .no_deflate =
            config->server.websocket_compression_set && !config->server.websocket_compression,
    };
}

static int choose(const struct cn_run_options *asked, const struct cn_config *config,
                  struct settings *settings, struct cn_err *err)
{
    int rc = cn_project_setup_log(asked->log ? asked->log : config->server.log, err);
    if (rc == 0)
        rc = choose_listen(asked, config, settings, err);
    if (rc == 0)
        rc = choose_lanes(asked, config, settings, err);
    if (rc == 0)
        rc = choose_tls(asked, config, settings, err);
    if (rc < 0)
        return rc;
    choose_limits(config, settings);
    const struct cn_config_server *server = &config->server;
    settings->serve.server.egress =
        cn_egress_new(server->egress.deny.items, server->egress.deny.count,
                      server->egress.allow.items, server->egress.allow.count, err);
    if (!settings->serve.server.egress)
        return cn_err_context(err, "[cairn.egress]");
    if (server->trusted_proxies.count) {
        settings->serve.server.proxies = cn_egress_new(server->trusted_proxies.items,
                                                       server->trusted_proxies.count, NULL, 0, err);
        if (!settings->serve.server.proxies)
            return cn_err_context(err, "[cairn] trusted_proxies");
    }
    settings->serve.server.trust = cn_trust_new(NULL, err);
    return settings->serve.server.trust ? 0 : err->code;
}

/* `cairn dev` works on this machine alone, whatever the configuration says. */
static int choose_cluster(const struct cn_run_options *asked, const struct cn_config *config,
                          struct settings *settings, struct cn_err *err)
{
    const struct cn_config_server *server = &config->server;
    struct cn_cluster_options *cluster = &settings->cluster;
    const char *url = asked->cluster ? asked->cluster : server->cluster.url;
    if (asked->deploy.development)
        return 0;
    if (!url && (asked->node || asked->peer || asked->allow_async || server->cluster.node ||
                 server->cluster.peer))
        return cn_err_set(
            err, CN_EINVALID,
            "a node's name and address are of a cluster, and none is given: --cluster "
            "'postgresql://...'");
    if (!url)
        return 0;
    *cluster = (struct cn_cluster_options){
        .url = url,
        .node = asked->node ? asked->node : server->cluster.node,
        .peer = asked->peer ? asked->peer : server->cluster.peer,
        .shard_count = (unsigned)server->cluster.shards,
        .replicas = (unsigned)server->cluster.replicas,
        .call_wait_ms = (unsigned)server->cluster.call_wait_ms,
        .allow_async = asked->allow_async || server->cluster.allow_async,
    };
    const char *reads = server->cluster.reads;
    cluster->verified = reads && strcmp(reads, "verified") == 0;
    if (reads && !cluster->verified && strcmp(reads, "lease") != 0)
        return cn_err_set(err, CN_EINVALID,
                          "[cairn.cluster] reads must be \"lease\" or \"verified\", not "
                          "\"%.40s\"",
                          reads);
    if (asked->sandbox || server->sandbox)
        return cn_err_set(err, CN_EUNSUPPORTED,
                          "a server in a sandbox cannot be a node of a cluster yet");
    return cn_cluster_check(cluster, err);
}

/* While there is one thread. Without it a node serves all the same. */
static void start_witness(struct settings *settings)
{
    struct cn_witness_options options = {.conninfo = settings->cluster.url,
                                         .node = settings->cluster.node,
                                         .allow_flaws = cn_cluster_allowed(&settings->cluster)};
    struct cn_err err;
    if (cn_witness_start(&settings->witness, &options, &err) < 0)
        cn_warn("cluster: %s; if this node is killed, others take over when it has been silent for "
                "long enough",
                err.text);
    else
        settings->cluster.witness = &settings->witness;
}

/* It was made by somebody else, or opened up. */
static void tell_if_open(const char *data)
{
    struct stat info;
    if (stat(data, &info) == 0 && (info.st_mode & 077))
        cn_warn("others can read the data directory (mode %03o): chmod 700 %s",
                (unsigned)info.st_mode & 0777, data);
}

/* --- what the account of memory (base/account.h) asks ---------------------------------------- */

static uint64_t cache_bytes(void *data)
{
    (void)data;
    struct cn_cache_stats stats;
    cn_cache_stats(&stats);
    return stats.memory_bytes + cn_kept_bytes();
}

static void cache_forget(void *data)
{
    (void)data;
    cn_cache_forget();
}

static uint64_t kv_bytes(void *data)
{
    struct cn_kvcache_stats stats;
    cn_kvcache_stats(data, &stats);
    return stats.bytes;
}

static void kv_forget(void *data)
{
    cn_kvcache_forget(data);
}

static uint64_t sqlite_bytes(void *data)
{
    (void)data;
    return cn_sqlite_memory_bytes();
}

static uint64_t store_bytes(void *data)
{
    uint64_t bytes = 0;
    for (unsigned i = 0; i < cn_shards_count(data); i++) {
        struct cn_shard *shard = cn_shards_hold_index(data, i);
        if (!shard)
            continue;
        bytes += cn_store_memory(shard->store);
        cn_shard_release(shard);
    }
    return bytes;
}

static void add_sources(const struct settings *settings)
{
    struct cn_account_source cache = {CN_ACCOUNT_CACHES, cache_bytes, cache_forget, NULL};
    struct cn_account_source sqlite = {CN_ACCOUNT_SQLITE, sqlite_bytes, NULL, NULL};
    struct cn_account_source kv = {CN_ACCOUNT_CACHES, kv_bytes, kv_forget,
                                   settings->data.services.kv_cache};
    struct cn_account_source store = {CN_ACCOUNT_LOG, store_bytes, NULL, settings->data.shards};
    cn_account_source_add(&cache);
    cn_account_source_add(&sqlite);
    if (kv.data)
        cn_account_source_add(&kv);
    if (store.data)
        cn_account_source_add(&store);
}

static int open_data(struct settings *settings, const struct cn_guest *guest,
                     struct cn_deployer *deployer, struct cn_err *err)
{
    const struct cn_project *first = cn_deployer_settings(deployer);
    const struct cn_config_server *server = &first->config->server;
    struct cn_data_options options = {
        .guest = guest,
        .lane_count = settings->serve.server.lane_count,
        .history_ms = cn_project_history_ms(first),
        .history_bytes = (uint64_t)server->history.bytes,
        .object_idle_ms = (unsigned)server->limits.object_idle_ms,
        .new_objects_per_minute = (unsigned)server->limits.new_objects_per_minute,
        .analytics_days = (unsigned)server->analytics.days,
        .cluster = settings->cluster.url ? &settings->cluster : NULL,
    };
    int rc = cn_data_open(&settings->data, first->data, &options, err);
    if (rc < 0)
        return rc;
    deployer->node = settings->data.node;
    deployer->disk = settings->data.disk;
    if (settings->data.cluster)
        deployer->ledger = cn_cluster_ledger(settings->data.cluster);
    return 0;
}

/* Who may deploy, and what was deployed. */
static int open_depot(struct settings *settings, const struct cn_run_options *asked,
                      struct cn_deployer *deployer, struct cn_err *err)
{
    struct cn_v4 *v4 = &settings->v4;
    if (!settings->data.disk)
        return 0;
    int rc = cn_tokens_open(settings->data.disk, &v4->tokens, err);
    if (rc < 0 || asked->deploy.development)
        return rc;
    if (settings->data.cluster)
        rc = cn_fleet_open(settings->data.cluster, settings->data.disk, &settings->fleet, err);
    if (rc == 0 && settings->fleet)
        rc = cn_fleet_share_tokens(settings->fleet, v4->tokens, err);
    if (rc < 0)
        return rc;
    rc = cn_depot_open(settings->data.disk, cn_deployer_settings(deployer)->data, asked->domain,
                       settings->fleet ? cn_fleet_common(settings->fleet) : NULL, &v4->depot, err);
    if (settings->fleet)
        cn_fleet_set_depot(settings->fleet, v4->depot);
    deployer->fleet = settings->fleet;
    v4->build = cn_deployer_build_version;
    v4->build_data = deployer;
    deployer->depot = v4->depot;
    if (deployer->monitor)
        v4->no_build = "a server in a sandbox serves what was deployed and takes nothing new: it "
                       "starts no program that builds it; deploy while it runs without --sandbox";
    return rc;
}

static int open_admin(struct settings *settings, const struct cn_run_options *asked,
                      const struct cn_project *first, struct cn_err *err)
{
    struct cn_adminconf_wishes wishes = {
        .address = asked->admin,
        .token = asked->admin_token,
        .health = asked->health,
        .config = first->config,
        .data = first->data,
        .tls = settings->serve.server.tls,
        .development = asked->deploy.development,
    };
    int rc = cn_adminconf_choose(&settings->adminconf, &wishes, &settings->admin, err);
    if (rc < 0)
        return rc;
    settings->admin.control = (struct cn_control){.disk = settings->data.disk,
                                                  .shards = settings->data.shards,
                                                  .node = settings->data.node,
                                                  .points = settings->data.services.points,
                                                  .more = cn_v4_routes,
                                                  .check = cn_v4_check,
                                                  .is_good = cn_v4_is_good,
                                                  .pause = cn_v4_pause,
                                                  .more_data = &settings->v4};
    if (settings->data.cluster) {
        settings->admin.control.cluster = cn_cluster_overview;
        settings->admin.control.backup = cn_cluster_backup;
        settings->admin.control.cluster_data = settings->data.cluster;
        settings->admin.control.relay = cn_cluster_relay(settings->data.cluster);
        cn_taps_set_node(&settings->taps, settings->admin.control.relay->name);
    }
    settings->admin.find_token = cn_v4_find_token;
    if (settings->data.cluster) {
        settings->admin.unready = cn_cluster_unready;
        settings->admin.metrics = cn_cluster_metrics;
        settings->admin.above = settings->data.cluster;
    }
    if (asked->inspector_port) {
        long port = cn_address_port(asked->inspector_port);
        if (port < 0)
            return cn_err_set(err, CN_EINVALID,
                              "--inspector-port must be a number from 0 to 65535, not \"%.40s\"",
                              asked->inspector_port);
        settings->admin.inspector = true;
        settings->admin.inspector_port = (uint16_t)port;
    }
    rc = cn_otlpconf_start(first->config, settings->serve.server.trust, &settings->serve.otlp, err);
    settings->admin.otlp = settings->serve.otlp;
    settings->admin.taps = settings->v4.taps = settings->serve.server.taps = &settings->taps;
    return rc;
}

static int load(void *data, bool reread, struct cn_deployment **deployment, struct cn_err *err)
{
    return cn_watch_load(&((struct settings *)data)->watch, reread, deployment, err);
}

static void start(struct cn_serve *serve, void *data)
{
    struct settings *settings = data;
    struct cn_err err = {0};
    if (settings->serve.server.show_errors) /* development */
        cn_watch_start(serve, &settings->watch);
    if (settings->serve.server.show_errors)
        cn_console_start(serve, &settings->console);
    if (settings->fleet && cn_fleet_start(settings->fleet, cn_serve_deploy, serve, &err) < 0)
        cn_error("%s; what other nodes deploy is not followed", err.text);
}

/* N10 of fleet/cluster.h */
static void serving(void *data)
{
    struct settings *settings = data;
    if (settings->data.cluster)
        cn_host_open(cn_cluster_host(settings->data.cluster));
    else
        cn_console_serving(&settings->console);
}

static bool ready(void *data)
{
    return cn_console_ready(&((struct settings *)data)->console);
}

static void stop(struct cn_serve *serve, void *data)
{
    struct settings *settings = data;
    if (settings->fleet)
        cn_fleet_stop(settings->fleet);
    cn_watch_stop(serve, &settings->watch);
    cn_console_stop(&settings->console);
}

static void settled(struct cn_serve *serve, const struct cn_err *err, void *data)
{
    cn_watch_settled(serve, err, &((struct settings *)data)->watch);
    cn_console_settled(&((struct settings *)data)->console, err);
}

static void depart(void *data)
{
    cn_cluster_depart(((struct settings *)data)->data.cluster);
}

static int serve(const struct cn_run_options *asked, struct cn_deployer *deployer,
                 struct settings *settings, struct cn_err *err)
{
    bool development = asked->deploy.development;
    (void)signal(SIGPIPE, SIG_IGN); /* U1 */
    int rc = cn_project_setup_log(asked->log, err);
    if (rc == 0)
        rc = cn_deployer_init(deployer, &asked->deploy, err);
    if (rc == 0)
        rc = cn_deployer_open(deployer, err);
    if (rc < 0 && asked->unread)
        *asked->unread = true;
    if (rc == 0)
        rc = choose(asked, cn_deployer_settings(deployer)->config, settings, err);
    if (rc == 0)
        rc = choose_cluster(asked, cn_deployer_settings(deployer)->config, settings, err);
    if (rc == 0 && !development &&
        (asked->sandbox || cn_deployer_settings(deployer)->config->server.sandbox))
        rc =
            cn_enter_sandbox(&settings->monitor, deployer, asked, &settings->admin.control_fd, err);
    if (rc == 0 && settings->cluster.url)
        start_witness(settings);
    if (rc == 0 && (cn_deployer_wants_node(deployer) || settings->cluster.url))
        rc = open_data(settings, asked->guest, deployer, err);
    if (rc == 0)
        rc = open_depot(settings, asked, deployer, err);
    if (rc < 0)
        return rc;
    const struct cn_project *first = cn_deployer_settings(deployer);
    rc = cn_project_make_data(first, err);
    if (rc < 0)
        return rc;
    tell_if_open(first->data);
    rc = open_admin(settings, asked, first, err);
    if (rc < 0)
        return rc;
    char *cache = cn_sprintf("%s/cache", first->data);
    cn_cache_setup(cache);
    cn_free(cache);
    add_sources(settings);
    cn_watch_init(&settings->watch, deployer);
    struct cn_serve_options *options = &settings->serve;
    options->server.guest = asked->guest;
    options->server.host = settings->host;
    options->server.listen_fds = settings->listen_fds;
    options->server.wall_ms = development ? DEV_WALL_MS : 0;
    options->server.node = settings->data.node;
    if (settings->data.cluster) {
        options->server.remote = cn_cluster_remote(settings->data.cluster);
        options->depart = depart;
        options->on_serving = serving;
    }
    options->admin = &settings->admin;
    options->server.show_errors = development;
    options->server.hold = development ? &settings->watch.hold : NULL;
    if (development) {
        settings->console.deployer = deployer;
        settings->console.token = settings->admin.token;
        options->on_settled = settled;
        options->on_serving = serving;
        options->on_ready = ready;
    }
    options->load = load;
    options->on_start = start;
    options->on_stop = stop;
    options->data = settings;
    return cn_serve(options, err);
}

int cn_run(const struct cn_run_options *options, struct cn_err *err)
{
    if (getpid() == 1 && cn_first_step_down(err) < 0)
        return err->code;
    struct cn_deployer deployer = {0};
    struct settings settings = {.witness = {.fd = -1}};
    cn_v4_init(&settings.v4);
    cn_taps_init(&settings.taps);
    int rc = serve(options, &deployer, &settings, err);
    /* CN_ELOCKED of a node: its disk lives on elsewhere (C14), which is for somebody to decide. */
    if (settings.data.cluster && cn_cluster_failed(settings.data.cluster, err)) {
        if (err->code == CN_ELOCKED)
            err->code = CN_EOLDER;
        rc = err->code;
    }
    cn_account_sources_clear();
    cn_otlp_stop(settings.serve.otlp);
    cn_fleet_close(settings.fleet);
    cn_depot_close(settings.v4.depot);
    cn_tokens_close(settings.v4.tokens);
    cn_v4_fini(&settings.v4);
    cn_taps_fini(&settings.taps);
    cn_data_close(&settings.data);
    cn_witness_close(&settings.witness);
    cn_adminconf_fini(&settings.adminconf);
    cn_monitor_stop(&settings.monitor);
    cn_deployer_fini(&deployer);
    cn_tls_context_unref(settings.serve.server.tls);
    cn_trust_free(settings.serve.server.trust);
    cn_egress_free(settings.serve.server.egress);
    cn_egress_free(settings.serve.server.proxies);
    cn_free(settings.host);
    cn_free(settings.listen_fds);
    return rc;
}
