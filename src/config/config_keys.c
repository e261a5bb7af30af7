/* SPDX-License-Identifier: Apache-2.0 */
/* config/config_keys.c - every key of wrangler's configuration, and [cairn]; but the keys of
 * services are in their folders (config/service_config.h).
 *
 * One line per key. The last word says what becomes of it:
 *   (nothing)  supported
 *   HOSTED     only means something on the hosted platform: named in the log
 *   UNBUILT    parsed and checked, then refused; remove the word when the
 *              service is there
 *   QUIET      says nothing that matters here, and is passed over
 * OWN keys are not inherited by [env.NAME]; TOP keys must not stand in one. */
#include "config/config.h"
#include "config/keys.h"

/* A key that is only named: hosted, or known without a reader. */
#define NAMED(text, what)                                                                  \
    {                                                                                      \
        .name = text, .kind = CN_FIELD_NODE, .offset = offsetof(struct cn_config, unread), \
        .flags = what                                                                      \
    }

/* clang-format off */

SCHEMA(rule, struct cn_config_rule,
    STRING(cn_config_rule, type, .flags = REQUIRED,
           CHOICES("ESModule", "CommonJS", "CompiledWasm", "Text", "Data", "JSON")),
    STRINGS(cn_config_rule, globs, .flags = REQUIRED),
    BOOL(cn_config_rule, fallthrough, SET(cn_config_rule, fallthrough_set)));

SCHEMA(limits, struct cn_config_limits,
    INT(cn_config_limits, cpu_ms, 1, 86400000),
    INT(cn_config_limits, subrequests, 1, 10000000));

SCHEMA(build, struct cn_config_build,
    STRING(cn_config_build, command),
    STRING(cn_config_build, cwd),
    {.name = "watch_dir", .kind = CN_FIELD_STRING_OR_STRINGS, AT(cn_config_build, watch_dir)});

SCHEMA(dev, struct cn_config_dev,
    STRING(cn_config_dev, ip),
    INT(cn_config_dev, port, 0, 65535, SET(cn_config_dev, port_set)),
    STRING(cn_config_dev, local_protocol, CHOICES("http", "https")),
    SUB_HOSTED("inspector_port"), SUB_HOSTED("inspector_ip"), SUB_HOSTED("upstream_protocol"),
    SUB_HOSTED("host"), SUB_HOSTED("enable_containers"), SUB_HOSTED("container_engine"),
    SUB_HOSTED("generate_types"));

SCHEMA(secrets, struct cn_strings,
    {.name = "required", .kind = CN_FIELD_STRINGS});

SCHEMA(object, struct cn_config_object,
    STRING(cn_config_object, name, .flags = REQUIRED),
    STRING(cn_config_object, class_name, .flags = REQUIRED),
    STRING(cn_config_object, script_name),
    STRING(cn_config_object, environment));
struct objects { struct cn_schema_list bindings; };
SCHEMA(durable_objects, struct objects,
    {.name = "bindings", .kind = CN_FIELD_LIST, .sub = &object},
    SUB_HOSTED("code_update_strategy"));

SCHEMA(renamed, struct cn_config_renamed,
    STRING(cn_config_renamed, from, .flags = REQUIRED),
    STRING(cn_config_renamed, to, .flags = REQUIRED));
SCHEMA(transferred, struct cn_config_transferred,
    STRING(cn_config_transferred, from, .flags = REQUIRED),
    STRING(cn_config_transferred, from_script, .flags = REQUIRED),
    STRING(cn_config_transferred, to, .flags = REQUIRED));
SCHEMA(migration, struct cn_config_migration,
    STRING(cn_config_migration, tag, .flags = REQUIRED),
    STRINGS(cn_config_migration, new_classes),
    STRINGS(cn_config_migration, new_sqlite_classes),
    STRINGS(cn_config_migration, deleted_classes),
    LIST(cn_config_migration, renamed_classes, renamed),
    LIST(cn_config_migration, transferred_classes, transferred));

SCHEMA(export, struct cn_config_export,
    STRING(cn_config_export, type, .flags = REQUIRED,
           CHOICES("durable-object", "worker", "workflow")),
    STRING(cn_config_export, state,
           CHOICES("created", "deleted", "renamed", "transferred", "expecting-transfer")),
    STRING(cn_config_export, storage, CHOICES("sqlite", "legacy-kv")),
    STRING(cn_config_export, renamed_to),
    STRING(cn_config_export, transferred_to),
    STRING(cn_config_export, transfer_from),
    STRING(cn_config_export, container),
    SUB_HOSTED("cache"), /* of a worker; the others are those of a workflow, refused as a whole */
    SUB_QUIET("name"), SUB_QUIET("limits"), SUB_QUIET("concurrency"), SUB_QUIET("schedules"),
    SUB_QUIET("default_retention"), SUB_QUIET("jurisdiction"));

SCHEMA(workflow, struct cn_config_workflow,
    STRING(cn_config_workflow, binding, .flags = REQUIRED),
    STRING(cn_config_workflow, name, .flags = REQUIRED),
    STRING(cn_config_workflow, class_name, .flags = REQUIRED),
    STRING(cn_config_workflow, script_name),
    NODE(cn_config_workflow, limits), NODE(cn_config_workflow, schedules),
    SUB_QUIET("concurrency"), SUB_QUIET("default_retention"), SUB_QUIET("jurisdiction"),
    SUB_HOSTED("remote"));

SCHEMA(assets, struct cn_config_assets,
    STRING(cn_config_assets, directory),
    STRING(cn_config_assets, binding),
    STRING(cn_config_assets, base_path),
    STRING(cn_config_assets, html_handling,
           CHOICES("auto-trailing-slash", "force-trailing-slash", "drop-trailing-slash", "none")),
    STRING(cn_config_assets, not_found_handling,
           CHOICES("single-page-application", "404-page", "none")),
    {.name = "run_worker_first", .kind = CN_FIELD_BOOL_OR_STRINGS,
     AT(cn_config_assets, run_worker_first)});

SCHEMA(service, struct cn_config_service,
    STRING(cn_config_service, binding, .flags = REQUIRED),
    STRING(cn_config_service, service, .flags = REQUIRED),
    STRING(cn_config_service, environment),
    STRING(cn_config_service, entrypoint),
    NODE(cn_config_service, props),
    SUB_HOSTED("remote"));

SCHEMA(tail, struct cn_config_tail,
    STRING(cn_config_tail, service, .flags = REQUIRED),
    STRING(cn_config_tail, environment));

SCHEMA(dispatch, struct cn_config_dispatch,
    STRING(cn_config_dispatch, binding, .flags = REQUIRED),
    STRING(cn_config_dispatch, namespace, .flags = REQUIRED),
    NODE(cn_config_dispatch, outbound),
    SUB_HOSTED("remote"));

SCHEMA(binding, struct cn_config_binding,
    STRING(cn_config_binding, binding, .flags = REQUIRED));

SCHEMA(site, struct cn_config_site,
    STRING(cn_config_site, bucket, .flags = REQUIRED),
    STRINGS(cn_config_site, include),
    STRINGS(cn_config_site, exclude),
    {.name = "entry-point", .kind = CN_FIELD_STRING, AT(cn_config_site, entry_point)});

struct access_dev { const char *aud; const struct cn_confnode *identity; };
SCHEMA(access_dev, struct access_dev,
    STRING(access_dev, aud, .flags = REQUIRED), NODE(access_dev, identity));
struct access { struct access_dev dev; };
SCHEMA(access, struct access, TABLE(access, dev, access_dev));

struct tls { const char *cert, *key; };
SCHEMA(tls, struct tls,
    STRING(tls, cert, .flags = REQUIRED), STRING(tls, key, .flags = REQUIRED));
struct egress { struct cn_strings deny, allow; };
SCHEMA(egress, struct egress, STRINGS(egress, deny), STRINGS(egress, allow));
struct server_limits {
    int64_t url_bytes, header_bytes, body_bytes, header_timeout_ms, idle_timeout_ms, connections,
        heap_bytes, object_idle_ms, object_block_ms, new_objects_per_minute, websocket_message_bytes,
        websocket_output_bytes, websocket_ping_ms, memory_bytes, stuck_ms,
        start_cpu_ms;
};
SCHEMA(server_limits, struct server_limits,
    INT(server_limits, url_bytes, 256, 1 << 20),
    INT(server_limits, header_bytes, 1024, 16 << 20),
    INT(server_limits, body_bytes, 1, INT64_MAX),
    INT(server_limits, header_timeout_ms, 100, 3600000),
    INT(server_limits, idle_timeout_ms, 100, 86400000),
    INT(server_limits, connections, 1, 10000000),
    INT(server_limits, heap_bytes, 16 << 20, INT64_MAX),
    INT(server_limits, object_idle_ms, 10, 86400000),
    INT(server_limits, object_block_ms, 10, 86400000),
    INT(server_limits, new_objects_per_minute, 1, 1000000000),
    INT(server_limits, websocket_message_bytes, 125, 1 << 30),
    INT(server_limits, websocket_output_bytes, 1024, INT64_MAX),
    INT(server_limits, websocket_ping_ms, 1000, 86400000),
    INT(server_limits, memory_bytes, 128 << 20, INT64_MAX),
    INT(server_limits, stuck_ms, 100, 3600000),
    INT(server_limits, start_cpu_ms, 10, 3600000));
struct s3 { const char *host; };
SCHEMA(s3, struct s3, STRING(s3, host, .flags = REQUIRED));
struct kept { int64_t days, bytes; };
SCHEMA(kept, struct kept,
    INT(kept, days, 1, 36500),
    INT(kept, bytes, 1 << 20, INT64_MAX));
struct analytics { int64_t days; };
SCHEMA(analytics, struct analytics,
    INT(analytics, days, 1, 36500));
struct cluster { const char *url, *node, *peer, *reads; int64_t shards, replicas, call_wait_ms; bool allow_async; };
SCHEMA(cluster, struct cluster,
    STRING(cluster, url),
    STRING(cluster, node),
    STRING(cluster, peer),
    STRING(cluster, reads),
    INT(cluster, shards, 1, 1024),
    INT(cluster, replicas, 1, 4),
    INT(cluster, call_wait_ms, 1, 600000),
    BOOL(cluster, allow_async));
struct otlp {
    const char *endpoint;
    const struct cn_confnode *headers;
    int64_t interval, timeout;
    struct cn_strings signals;
};
SCHEMA(otlp, struct otlp,
    STRING(otlp, endpoint),
    NODE(otlp, headers),
    INT(otlp, interval, 1, 86400),
    INT(otlp, timeout, 1, 3600),
    STRINGS(otlp, signals));
struct gateway { const char *url, *key; const struct cn_confnode *models; };
SCHEMA(gateway, struct gateway,
    STRING(gateway, url, .flags = REQUIRED),
    STRING(gateway, key),
    {.name = "models", .kind = CN_FIELD_STRING_MAP, AT(gateway, models)});
struct mail { const char *url, *user, *password, *starttls; int64_t timeout_ms; };
SCHEMA(mail, struct mail,
    STRING(mail, url, .flags = REQUIRED),
    STRING(mail, user),
    STRING(mail, password),
    STRING(mail, starttls, CHOICES("required", "offered", "never")),
    INT(mail, timeout_ms, 100, 600000));
SCHEMA(server, struct cn_config_server,
    STRING(cn_config_server, admin),
    STRING(cn_config_server, health),
    STRING(cn_config_server, listen),
    STRING(cn_config_server, data),
    STRING(cn_config_server, log, CHOICES("json", "pretty")),
    INT(cn_config_server, lanes, 1, 256),
    BOOL(cn_config_server, sandbox),
    STRINGS(cn_config_server, sandbox_write),
    STRINGS(cn_config_server, hosts),
    STRINGS(cn_config_server, trusted_proxies),
    BOOL(cn_config_server, websocket_compression,
         SET(cn_config_server, websocket_compression_set)),
    TABLE(cn_config_server, tls, tls),
    TABLE(cn_config_server, s3, s3),
    TABLE(cn_config_server, egress, egress),
    TABLE(cn_config_server, history, kept),
    TABLE(cn_config_server, analytics, analytics),
    TABLE(cn_config_server, cluster, cluster),
    TABLE(cn_config_server, otlp, otlp),
    TABLE(cn_config_server, ai, gateway),
    TABLE(cn_config_server, email, mail),
    {.name = "modules", .kind = CN_FIELD_STRING_MAP, AT(cn_config_server, modules)},
    STRING(cn_config_server, worker),
    TABLE(cn_config_server, limits, server_limits));

static const struct cn_schema_field top_fields[] = {
    /* the worker */
    STRING(cn_config, name),
    STRING(cn_config, main),
    {.name = "compatibility_date", .kind = CN_FIELD_DATE, AT(cn_config, compatibility_date)},
    STRINGS(cn_config, compatibility_flags),
    {.name = "vars", .kind = CN_FIELD_NODE, AT(cn_config, vars_node), .flags = OWN},
    TABLE(cn_config, secrets, secrets, .flags = OWN),
    TABLE(cn_config, limits, limits),
    {.name = "route", .kind = CN_FIELD_NODE, AT(cn_config, route_node)},
    {.name = "routes", .kind = CN_FIELD_NODE, AT(cn_config, routes_node)},
    TABLE(cn_config, version_metadata, binding, .flags = OWN),

    /* bundling */
    BOOL(cn_config, no_bundle),
    BOOL(cn_config, minify),
    BOOL(cn_config, keep_names, SET(cn_config, keep_names_set)),
    LIST(cn_config, rules, rule),
    {.name = "define", .kind = CN_FIELD_STRING_MAP, AT(cn_config, define), .flags = OWN},
    {.name = "alias", .kind = CN_FIELD_STRING_MAP, AT(cn_config, alias), .flags = TOP},
    STRING(cn_config, tsconfig),
    STRING(cn_config, jsx_factory),
    STRING(cn_config, jsx_fragment),
    TABLE(cn_config, build, build),
    NAMED("base_dir", HOSTED), /* these two only shape an upload */
    NAMED("preserve_file_names", HOSTED),
    BOOL(cn_config, find_additional_modules),

    /* the server */
    {.name = "cairn", .kind = CN_FIELD_TABLE, .sub = &server, AT(cn_config, server), .flags = TOP},
    TABLE(cn_config, dev, dev, .flags = TOP),

    /* objects, and bindings that are no service's (service/def.h) */
    TABLE(cn_config, durable_objects, durable_objects, .flags = OWN),
    LIST(cn_config, migrations, migration),
    {.name = "exports", .kind = CN_FIELD_MAP, .sub = &export, AT(cn_config, exports)},
    TABLE(cn_config, assets, assets, SET(cn_config, assets_set)),
    LIST(cn_config, services, service, .flags = OWN),
    LIST(cn_config, tail_consumers, tail, .flags = OWN),
    LIST(cn_config, streaming_tail_consumers, tail, .flags = OWN | UNBUILT),
    LIST(cn_config, workflows, workflow, .flags = OWN | UNBUILT),
    LIST(cn_config, dispatch_namespaces, dispatch, .flags = OWN | UNBUILT),
    {.name = "unsafe", .kind = CN_FIELD_NODE, AT(cn_config, unsafe_node), .flags = OWN},
    TABLE(cn_config, access, access),
    LIST(cn_config, worker_loaders, binding, .flags = OWN | UNBUILT),
    NAMED("containers", OWN | UNBUILT),
    TABLE(cn_config, site, site, .flags = TOP),
    STRING(cn_config, pages_build_output_dir, .flags = TOP),
    NAMED("wasm_modules", TOP | UNBUILT),
    NAMED("text_blobs", TOP | UNBUILT),
    NAMED("data_blobs", TOP | UNBUILT),
    NAMED("connect", OWN | UNBUILT),
    NAMED("node_compat", UNBUILT),

    /* services that only the hosted platform has: a binding would be missing */
    NAMED("agent_memory", OWN | UNBUILT),
    NAMED("analytics", OWN | UNBUILT),
    NAMED("ai_search", OWN | UNBUILT),
    NAMED("ai_search_namespaces", OWN | UNBUILT),
    NAMED("artifacts", OWN | UNBUILT),
    NAMED("browser", OWN | UNBUILT),
    NAMED("flagship", OWN | UNBUILT),
    NAMED("images", OWN | UNBUILT),
    NAMED("k2", OWN | UNBUILT),
    NAMED("media", OWN | UNBUILT),
    NAMED("mtls_certificates", OWN | UNBUILT),
    NAMED("pipelines", OWN | UNBUILT),
    NAMED("secrets_store_secrets", OWN | UNBUILT),
    NAMED("stream", OWN | UNBUILT),
    NAMED("unsafe_hello_world", OWN | UNBUILT),
    NAMED("vectorize", OWN | UNBUILT),
    NAMED("vpc_networks", OWN | UNBUILT),
    NAMED("vpc_services", OWN | UNBUILT),

    /* the hosted platform and wrangler itself */
    NAMED("account_id", HOSTED),
    NAMED("addresses", HOSTED),
    NAMED("cloudchamber", OWN | HOSTED),
    NAMED("cache", HOSTED), /* in front of the worker: its answers are the same without */
    NAMED("compliance_region", HOSTED),
    NAMED("dependencies_instrumentation", HOSTED),
    NAMED("first_party_worker", HOSTED),
    NAMED("keep_vars", HOSTED),
    NAMED("legacy_env", TOP | HOSTED),
    NAMED("logfwdr", HOSTED),
    NAMED("logpush", HOSTED),
    NODE(cn_config, observability),
    NAMED("placement", HOSTED),
    NAMED("preview_urls", HOSTED),
    NAMED("previews", HOSTED),
    NAMED("send_metrics", TOP | HOSTED),
    NAMED("type", TOP | HOSTED),
    NAMED("upload_source_maps", HOSTED),
    NAMED("usage_model", HOSTED),
    NAMED("workers_dev", HOSTED),
    NAMED("zone_id", HOSTED),

    /* what build tools add to a configuration that they generate, and defaults of theirs */
    NAMED("configPath", TOP | QUIET),
    NAMED("userConfigPath", TOP | QUIET),
    NAMED("topLevelName", TOP | QUIET),
    NAMED("definedEnvironments", TOP | QUIET),
    NAMED("targetEnvironment", TOP | QUIET),
    NAMED("python_modules", QUIET),
};
/* clang-format on */

const struct cn_schema cn_config_schema = {sizeof(struct cn_config), top_fields,
                                           CN_ARRAY_COUNT(top_fields)};
