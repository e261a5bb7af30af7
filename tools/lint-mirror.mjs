// Tests mirror src/ down to the file: src/ROOM/FILE.c is tested by test/unit/ROOM/test_FILE.c, or it stands in the table below
// with its reason and the tests that cover it. Part of `make lint`; `node tools/lint-mirror.mjs --gap` counts by room.
//
// A row goes when its file gets a test of its own, and a row whose file or whose tests are gone is a complaint, so the
// table says what is true and only shrinks.
import { existsSync, readdirSync } from "node:fs";
import { pathToFileURL } from "node:url";

/**
 * Parts of a whole that is tested as one, by its own unit test: nobody calls them but the whole.
 * The file (below src/) -> the unit test (below test/unit/).
 */
const PARTS = {
  "admin/metrics_sample.c": "admin/test_metrics.c",
  "analytics/asql_aggregate.c": "analytics/test_asql.c",
  "analytics/asql_compile.c": "analytics/test_asql.c",
  "analytics/asql_format.c": "analytics/test_asql.c",
  "analytics/asql_function.c": "analytics/test_asql.c",
  "analytics/asql_parse.c": "analytics/test_asql.c",
  "analytics/asql_run.c": "analytics/test_asql.c",
  "analytics/asql_value.c": "analytics/test_asql.c",
  "analytics/points_scan.c": "analytics/test_points.c",
  "peer/dial.c": "peer/test_link.c",
  "membership/engine_pg_call.c": "membership/test_engine_pg.c",
  "membership/engine_pg_schema.c": "membership/test_engine_pg.c",
  "shard/bodies_keep.c": "shard/test_bodies.c",
  "shard/host_beside.c": "shard/test_host.c",
  "shard/host_copy.c": "shard/test_host.c",
  "shard/host_seen.c": "shard/test_host.c",
  "shard/host_step.c": "shard/test_host.c",
  "peer/pipe_answer.c": "peer/test_pipe.c",
  "peer/pipe_ask.c": "peer/test_pipe.c",
  "peer/pipe_message.c": "peer/test_pipe.c",
  "membership/pq.c": "membership/test_engine_pg.c",
  "membership/member_place.c": "membership/test_member.c",
  "membership/member_shard.c": "membership/test_member.c",
  "module/builder.c": "module/test_value.c",
  "v4/depot_state.c": "v4/test_depot.c",
  "module/json.c": "module/test_value.c",
  "net/http_conn.c": "net/test_server.c",
  "net/http_response.c": "net/test_server.c",
  "net/stream.c": "net/test_server.c",
  "net/ws_client.c": "net/test_ws_conn.c",
  "store/log_spare.c": "store/test_log.c",
  "store/replica_copy.c": "store/test_replica.c",
  "remote/leases.c": "remote/test_remote.c",
  "remote/incoming.c": "remote/test_remote.c",
  "remote/outgoing.c": "remote/test_remote.c",
  "project/classes.c": "project/test_migrate.c",
  "service/d1/d1_wire.c": "service/test_wire.c",
  "service/queue/queue_wire.c": "service/test_wire.c",
  "service/r2/r2_wire.c": "service/test_wire.c",
  "fleet/cluster_agree.c": "fleet/test_cluster.c",
  "fleet/cluster_front.c": "fleet/test_cluster.c",
  "config/config_bindings.c": "config/test_config.c",
  "config/config_env.c": "config/test_config.c",
  "config/config_keys.c": "config/test_config.c",
  "config/config_pages.c": "config/test_config.c",
  "config/config_vars.c": "config/test_config.c",
  "config/config_worker.c": "config/test_config.c",
  "config/confnode.c": "config/test_toml.c",
  "config/confscan.c": "config/test_toml.c",
  "server/offline.c": "cli/test_offline.c",
  "server/offline_lane.c": "cli/test_offline.c",
  "config/schema.c": "config/test_config.c",
  "service/cron/cron.c": "background/test_crons.c",
  "service/d1/d1_run.c": "service/d1/test_d1.c",
  "service/queue/queue_call.c": "service/queue/test_queue.c",
  "service/queue/queue_peek.c": "service/queue/test_queue.c",
  "service/queue/queue_state.c": "service/queue/test_queue.c",
  "service/r2/r2_upload.c": "service/r2/test_r2.c",
  "service/r2/r2_writer.c": "service/r2/test_r2.c",
  "store/archive.c": "store/test_history.c",
  "store/authorizer.c": "store/test_database.c",
  "store/check.c": "store/test_damage.c",
  "store/diskvfs.c": "store/test_catalog.c",
  "store/image.c": "store/test_store.c",
  "store/imagefile.c": "store/test_store.c",
  "store/segment.c": "store/test_log.c",
  "store/sqlite.c": "store/test_database.c",
  "store/template.c": "store/test_pool.c",
  "store/sqlite/engine.c": "store/test_database.c",
  "store/sqlite_memory.c": "store/test_database.c",
  "store/statement.c": "store/test_database.c",
  "store/sums.c": "store/test_damage.c",
  "store/vfs.c": "store/test_database.c",
  "store/walk.c": "store/test_history.c",
  "store/writeback.c": "store/test_checkpoint.c",
};

/** Glue: converts, calls, converts back, or prints. -> why, and the tests that cover it (below test/). */
const GLUE = {
  "service/analytics/analytics.c": ["a table", "integration/services/analytics-engine.test.mjs"],
  "admin/control_backup.c": ["calls store/backup.c", "integration/admin/backup.test.mjs"],
  "admin/control_deploy.c": ["calls what server/ has given", "integration/cli/reload.test.mjs"],
  "admin/control_objects.c": ["calls object/access.h", "integration/admin/objects.test.mjs"],
  "admin/control_services.c": ["lists", "integration/admin/services.test.mjs"],
  "admin/inspector.c": ["requests and messages to admin/cdp.c and back", "integration/admin/inspector.test.mjs"],
  "admin/dashboard.c": ["files of the binary", "integration/admin/dashboard.test.mjs"],
  "admin/live.c": ["WebSockets of the admin listener", "integration/deploy/tail.test.mjs"],
  "background/background.c": ["a table", "integration/services/cron.test.mjs", "integration/services/queues.test.mjs"],
  "base/assert.c": ["prints and aborts", "integration/cli/commands.test.mjs"],
  "base/counter.c": ["two tables of bounds", "integration/admin/metrics.test.mjs"],
  "bindings/all.c": ["a table", "integration/serve/handlers.test.mjs"],
  "bindings/assets.c": ["converts, calls, converts back", "integration/services/assets.test.mjs"],
  "bindings/compression.c": ["converts, calls, converts back", "conformance/web/compression-stream.test.js"],
  "bindings/console.c": ["converts, calls, converts back", "integration/admin/logs.test.mjs"],
  "bindings/dispatch.c": ["converts, calls, converts back", "integration/services/services.test.mjs"],
  "bindings/encoding.c": ["converts, calls, converts back", "conformance/web/text-encoding.test.js"],
  "bindings/fetch.c": ["converts, calls, converts back", "integration/security/limits.test.mjs"],
  "bindings/html.c": ["converts, calls, converts back", "conformance/web/html-rewriter.test.js"],
  "bindings/http.c": ["converts, calls, converts back", "integration/serve/handlers.test.mjs"],
  "bindings/localcall.c": ["converts, calls, converts back", "integration/objects/objects.test.mjs"],
  "bindings/multipart.c": ["converts, calls, converts back", "conformance/web/form-data.test.js"],
  "bindings/node.c": ["converts, calls, converts back", "conformance/node/misc.test.js"],
  "bindings/node_crypto.c": ["converts, calls, converts back", "conformance/node/crypto.test.js"],
  "bindings/node_dh.c": ["converts, calls, converts back", "conformance/node/crypto.test.js"],
  "bindings/node_keys.c": ["converts, calls, converts back", "conformance/node/crypto-keys.test.js"],
  "bindings/node_x509.c": ["converts, calls, converts back", "conformance/node/crypto-keys.test.js"],
  "bindings/node_zlib.c": ["converts, calls, converts back", "conformance/node/zlib.test.js"],
  "bindings/object.c": ["converts, calls, converts back", "integration/objects/objects.test.mjs"],
  "bindings/restore.c": ["converts, calls, converts back", "integration/objects/recovery.test.mjs"],
  "bindings/service_call.c": ["converts, calls, converts back", "integration/services/kv.test.mjs"],
  "bindings/sockets.c": ["converts, calls, converts back", "integration/serve/sockets.test.mjs"],
  "bindings/storage.c": ["converts, calls, converts back", "integration/objects/surface.test.mjs"],
  "bindings/timers.c": ["converts, calls, converts back", "integration/security/limits.test.mjs"],
  "bindings/trace.c": ["converts, calls, converts back", "integration/services/tail.test.mjs"],
  "bindings/turn.c": ["converts, calls, converts back", "integration/objects/turns.test.mjs"],
  "bindings/url.c": ["converts, calls, converts back", "conformance/web/url.test.js"],
  "bindings/webcrypto.c": ["converts, calls, converts back", "conformance/web/crypto.test.js", "conformance/web/subtle-crypto.test.js"],
  "bindings/websocket.c": ["converts, calls, converts back", "integration/websockets/websockets.test.mjs"],
  "config/frame.c": ["a line for people", "integration/cli/dev-advice.test.mjs"],
  "worker/advice.c": ["texts for people", "integration/cli/dev-advice.test.mjs"],
  "deploy/tell.c": ["lines of a configuration, for people", "integration/cli/dev-terminal.test.mjs"],
  "server/console.c": ["needs a terminal", "integration/cli/dev-terminal.test.mjs"],
  "cli/cmd_backup.c": ["arguments, a call, what is printed", "integration/admin/backup.test.mjs"],
  "cli/cmd_build.c": ["arguments, a call, what is printed", "integration/cli/bundle.test.mjs"],
  "cli/cmd_check.c": ["arguments, a call, what is printed", "integration/cli/damage.test.mjs"],
  "admin/relay_host.c": ["calls of another node", "cluster/server/admin.test.mjs"],
  "admin/spread.c": ["lists of several nodes", "cluster/server/admin.test.mjs"],
  "admin/gather.c": ["what several nodes say", "cluster/server/admin.test.mjs"],
  "cli/cmd_restore.c": ["arguments, a call, what is printed", "cluster/server/backup.test.mjs"],
  "fleet/backup_shard.c": ["opens a store and lists", "cluster/server/backup.test.mjs"],
  "fleet/cluster_backup.c": ["what it decides is seen with nodes that die", "cluster/server/backup.test.mjs"],
  "fleet/cluster_restore.c": ["files and an engine: what it makes is served", "cluster/server/backup.test.mjs"],
  "service/r2/named.c": ["a statement", "cluster/server/backup.test.mjs"],
  "cli/cmd_cluster.c": ["arguments, a call, what is printed", "cluster/server/nodes.test.mjs"],
  "membership/engine_pg_depot.c": ["SQL: what it decides is seen with nodes that die", "cluster/server/deploy.test.mjs"],
  "membership/poller.c": ["a link and its hints", "cluster/server/deploy.test.mjs"],
  "membership/overview.c": ["SQL for people", "cluster/server/nodes.test.mjs"],
  "fleet/fleet.c": ["several nodes and their engine", "cluster/server/deploy.test.mjs"],
  "fleet/version_files.c": ["files to the engine and back", "cluster/server/deploy.test.mjs"],
  "fleet/cluster_bodies.c": ["hooks that ask others", "cluster/server/r2.test.mjs"],
  "fleet/cluster_remote.c": ["hooks that ask others", "cluster/server/calls.test.mjs"],
  "fleet/cluster_report.c": ["a list of numbers", "cluster/server/watched.test.mjs"],
  "cli/cmd_dashboard.c": ["arguments, a call, what is printed", "integration/admin/listener.test.mjs"],
  "cli/cmd_health.c": ["arguments, a call, what is printed", "integration/cli/commands.test.mjs"],
  "cli/cmd_deploy.c": ["arguments, a call, what is printed", "integration/cli/reload.test.mjs"],
  "cli/cmd_delete.c": ["arguments, a call, what is printed", "integration/deploy/remote.test.mjs"],
  "cli/cmd_login.c": ["arguments, a call, what is printed", "integration/deploy/remote.test.mjs"],
  "cli/cmd_new.c": ["arguments, a call, what is printed", "integration/cli/starters.test.mjs"],
  "cli/cmd_secret.c": ["arguments, a call, what is printed", "integration/deploy/remote.test.mjs"],
  "cli/cmd_types.c": ["a configuration, what is printed of it", "integration/cli/starters.test.mjs"],
  "cli/cmd_versions.c": ["arguments, a call, what is printed", "integration/deploy/remote.test.mjs"],
  "cli/prompt.c": ["reads a line", "integration/deploy/remote.test.mjs"],
  "cli/remote.c": ["a request, an answer", "integration/deploy/remote.test.mjs"],
  "cli/resource.c": ["a request, an answer", "integration/deploy/remote.test.mjs"],
  "cli/starter.c": ["writes files", "integration/cli/starters.test.mjs"],
  "cli/upload.c": ["a configuration as a request", "integration/deploy/remote.test.mjs"],
  "cli/upload_send.c": ["requests, answers", "integration/deploy/remote.test.mjs"],
  "cli/upload_site.c": ["requests, answers", "integration/deploy/remote.test.mjs"],
  "cli/cmd_import.c": ["arguments, a call, what is printed", "integration/cli/import.test.mjs"],
  "cli/import_objects.c": ["calls store/plain.c, object/moved.c and import/v8value.c", "integration/cli/import.test.mjs"],
  "cli/import_s3.c": ["asks an S3 server, calls the control API", "integration/cli/import-hosted.test.mjs"],
  "cli/import_hosted.c": ["asks an API, calls the control API", "integration/cli/import-hosted.test.mjs"],
  "cli/import_stream.c": ["reads lines, calls store/plain.c", "integration/cli/import.test.mjs"],
  "cli/import_target.c": ["calls object/moved.c and the store", "integration/cli/import.test.mjs"],
  "cli/import_services.c": ["calls store/plain.c and the control API", "integration/cli/import.test.mjs"],
  "cli/cmd_objects.c": ["arguments, a call, what is printed", "integration/admin/objects.test.mjs"],
  "cli/cmd_replay.c": ["arguments, a call, what is printed", "integration/cli/replay.test.mjs"],
  "cli/cmd_serve.c": ["arguments, a call, what is printed", "integration/serve/lifecycle.test.mjs"],
  "cli/cmd_tail.c": ["arguments, a call, what is printed", "integration/admin/tail.test.mjs"],
  "cli/cmd_tokens.c": ["arguments, a call, what is printed", "integration/deploy/tokens.test.mjs"],
  "cli/cmd_version.c": ["arguments, a call, what is printed", "integration/cli/engine.test.mjs"],
  "bundler/convert.c": ["converts", "integration/cli/bundle.test.mjs"],
  "bundler/files.c": ["converts, calls, converts back", "integration/cli/bundle.test.mjs", "integration/projects/site.test.mjs"],
  "bundler/main.c": ["two pipes and a script", "integration/cli/bundle.test.mjs"],
  "cli/main.c": ["the list of commands", "integration/cli/commands.test.mjs"],
  "cli/print.c": ["prints tables", "integration/cli/data.test.mjs"],
  "cli/progress.c": ["draws a bar", "integration/cli/data.test.mjs"],
  "cli/verb.c": ["picks a verb", "integration/cli/commands.test.mjs"],
  "module/api.c": ["a table, and what objects say of themselves", "integration/modules/modules.test.mjs"],
  "module/checked.c": ["a table", "integration/modules/misuse.test.mjs"],
  "module/guard.c": ["tells wrong calls", "integration/modules/misuse.test.mjs"],
  "module/batch.c": ["reads what background/ packs", "integration/modules/workers.test.mjs"],
  "module/counters.c": ["a table under a lock", "integration/modules/workers.test.mjs"],
  "module/body.c": ["opens and gathers what stream.c reads", "integration/modules/flow.test.mjs"],
  "module/fetch.c": ["sends, and calls back", "integration/modules/services.test.mjs"],
  "module/forward.c": ["passes on what streams and requests bring", "integration/modules/streams.test.mjs"],
  "module/stream_lent.c": ["calls, and answers calls", "integration/modules/flow.test.mjs"],
  "module/fetch_out.c": ["sends, and calls back", "integration/modules/streams.test.mjs"],
  "worker/compiled_body.c": ["between a connection and a stream", "integration/modules/streams.test.mjs"],
  "module/services.c": ["sends, and calls back", "integration/modules/services.test.mjs"],
  "service/kv/face.c": ["converts, calls, converts back", "integration/modules/services.test.mjs"],
  "service/d1/face.c": ["converts, calls, converts back", "integration/modules/services.test.mjs"],
  "service/r2/face.c": ["converts, calls, converts back", "integration/modules/services.test.mjs"],
  "service/queue/face.c": ["converts, calls, converts back", "integration/modules/services.test.mjs"],
  "service/analytics/face.c": ["converts, calls, converts back", "integration/modules/services.test.mjs"],
  "module/request.c": ["copies parts of a request", "integration/modules/workers.test.mjs"],
  "module/tracer.c": ["describes events to the host", "integration/modules/watch.test.mjs"],
  "module/worker.c": ["calls the module's functions", "integration/modules/workers.test.mjs"],
  "worker/address.c": ["reads headers of a request", "integration/platform/address.test.mjs"],
  "worker/compiled_trace.c": ["hands what a module says to a trace", "integration/modules/watch.test.mjs"],
  "worker/compiled.c": ["gives events to a module", "integration/modules/workers.test.mjs"],
  "module/async.c": ["sends, and calls back", "integration/modules/modules.test.mjs"],
  "module/crash.c": ["prints and dies", "integration/modules/modules.test.mjs"],
  "module/http.c": ["parts of a value", "integration/modules/modules.test.mjs"],
  "module/lent.c": ["sends, and keeps what was sent", "integration/modules/flow.test.mjs"],
  "module/letter.c": ["sends, and calls back", "integration/modules/flow.test.mjs"],
  "module/module.c": ["calls the dynamic linker", "integration/modules/modules.test.mjs"],
  "module/object.c": ["calls the module's functions", "integration/modules/modules.test.mjs"],
  "module/sockets.c": ["converts, calls, converts back", "integration/modules/modules.test.mjs"],
  "module/storage.c": ["converts, calls, converts back", "integration/modules/modules.test.mjs"],
  "module/stream.c": ["asks others, and is asked", "integration/modules/flow.test.mjs"],
  "worker/lent.c": ["fills in a dispatch", "integration/modules/flow.test.mjs"],
  "v4/v4.c": ["routes, and who may", "integration/deploy/tokens.test.mjs"],
  "v4/v4_assets.c": ["a request, calls of the depot, an answer", "integration/deploy/deploy.test.mjs"],
  "v4/v4_audit.c": ["a request, notes of the depot, an answer", "integration/deploy/audit.test.mjs"],
  "v4/v4_content.c": ["a request, files of the depot, an answer", "integration/deploy/verbs.test.mjs"],
  "v4/v4_d1.c": ["a request, calls of the control API, an answer", "integration/deploy/data.test.mjs"],
  "v4/v4_data.c": ["a request, a call of the control API, an answer", "integration/deploy/data.test.mjs"],
  "v4/v4_graphql.c": ["a request, a call of the control API, an answer", "integration/deploy/verbs.test.mjs"],
  "v4/v4_messages.c": ["a request, a call of the control API, an answer", "integration/deploy/pull.test.mjs"],
  "v4/v4_zones.c": ["a request, the state, an answer", "integration/deploy/routes.test.mjs"],
  "v4/v4_references.c": ["a request, versions of the depot, an answer", "integration/deploy/verbs.test.mjs"],
  "v4/v4_services.c": ["a request, a call of the control API, an answer", "integration/deploy/data.test.mjs"],
  "v4/v4_scripts.c": ["a request, calls of the depot, an answer", "integration/deploy/deploy.test.mjs"],
  "v4/v4_secrets.c": ["a request, calls of the depot, an answer", "integration/deploy/deploy.test.mjs"],
  "v4/v4_tails.c": ["a request, a call of worker/taps.c, an answer", "integration/deploy/tail.test.mjs"],
  "v4/v4_tokens.c": ["a request, calls of the tokens, an answer", "integration/deploy/tokens.test.mjs"],
  "v4/v4_transfers.c": ["files by addresses that are secrets", "integration/deploy/data.test.mjs"],
  "v4/v4_upload.c": ["a request, calls of the depot, an answer", "integration/deploy/deploy.test.mjs", "integration/deploy/attacks.test.mjs"],
  "v4/v4_versions.c": ["a request, calls of the depot, an answer", "integration/deploy/deploy.test.mjs"],
  "remote/sockets.c": ["letters between WebSockets of two servers", "cluster/server/calls.test.mjs"],
  "remote/node_calls.c": ["questions of services to other servers", "cluster/server/services.test.mjs"],
  "remote/stubs.c": ["calls between workers of two servers", "cluster/server/calls.test.mjs"],
  "net/caller.c": ["calls libcurl", "integration/deploy/remote.test.mjs"],
  "net/curl_lazy.c": ["loads libcurl with the first call", "integration/admin/egress.test.mjs"],
  "object/message.c": ["frees", "integration/objects/objects.test.mjs"],
  "server/data.c": ["opens the parts of a data directory", "integration/cli/data.test.mjs"],
  "server/enter_sandbox.c": ["lists what base/sandbox.c is to allow", "integration/security/sandbox.test.mjs"],
  "deploy/hosted.c": ["what the depot has as projects", "integration/deploy/deploy.test.mjs"],
  "server/run.c": ["puts the parts of a server together", "integration/serve/lifecycle.test.mjs", "integration/serve/activation.test.mjs"],
  "server/serve.c": ["the loop of a server: signals to calls", "integration/serve/lifecycle.test.mjs", "integration/cli/reload.test.mjs"],
  "worker/hold.c": ["requests of a lane, and a file that changes", "integration/cli/dev-hold.test.mjs"],
  "worker/error_page.c": ["an answer of `cairn dev`", "integration/cli/dev-hold.test.mjs"],
  "worker/background.c": ["dispatch.h as background/ sees it", "integration/services/cron.test.mjs"],
};

/** What stands in every folder of a service beside the service itself is glue by its name: natives.c, control_browse.c. -> why. */
const ROLES = {
  natives: "converts, calls, converts back",
  control: "a request of the control API, a call, what is answered",
  command: "arguments, a call, what is printed",
  config: "keys of the configuration to a binding",
  metrics: "sums counters",
};
/** They are covered by test/integration/services/, by a file whose name begins with the service's; or by these (below test/). */
const ELSEWHERE = { ai: "integration/projects/bindings.test.mjs", hyperdrive: "integration/projects/bindings.test.mjs" };
const servicesTests = () => readdirSync("test/integration/services").filter((name) => name.endsWith(".test.mjs"));

/** The rows of those files that have no test of their own. */
export function roles(sources, exists, tests = servicesTests()) {
  const rows = {};
  for (const file of sources) {
    const [, service, role] = /^service\/(\w+)\/([a-z]+)(?:_\w+)?\.c$/.exec(file) ?? [];
    if (!Object.hasOwn(ROLES, role ?? "") || exists(mirror(file))) continue;
    const found = tests.find((name) => name.startsWith(service));
    const test = ELSEWHERE[service] ?? (found && `integration/services/${found}`);
    if (test) rows[file] = [ROLES[role], test];
  }
  return rows;
}

/** Not glue, and without a test of their own yet. What covers them meanwhile (below test/). */
const OWED = {};

/** What is wrong with the tables, given the files of the tree: a list of sentences. */
export function complaints(sources, exists, tables = { PARTS, GLUE: { ...GLUE, ...roles(sources, exists) }, OWED }) {
  const found = [];
  const rows = new Map();
  for (const [table, entries] of Object.entries(tables))
    for (const [file, value] of Object.entries(entries)) {
      if (rows.has(file)) found.push(`tools/lint-mirror.mjs: ${file} stands there twice`);
      const tests = table === "PARTS" ? [`unit/${value}`] : table === "GLUE" ? value.slice(1) : value;
      rows.set(file, tests);
      if (!sources.includes(file)) found.push(`tools/lint-mirror.mjs: there is no src/${file}`);
      if (tests.length === 0) found.push(`tools/lint-mirror.mjs: ${file} names no test that covers it`);
      for (const test of tests) if (!exists(`test/${test}`)) found.push(`tools/lint-mirror.mjs: ${file}: there is no test/${test}`);
    }
  for (const file of sources) {
    const test = mirror(file);
    if (exists(test) && rows.has(file)) found.push(`tools/lint-mirror.mjs: ${file} has its own ${test}: take its row out`);
    if (!exists(test) && !rows.has(file)) found.push(`src/${file}: has no ${test} (nor a row in tools/lint-mirror.mjs)`);
  }
  return found;
}

/** The unit test of a file of src/. */
export const mirror = (file) => `test/unit/${file.replace(/([^/]+)\.c$/, "test_$1.c")}`;

function show(sources) {
  const rooms = new Map();
  const glue = { ...GLUE, ...roles(sources, existsSync) };
  for (const file of sources) {
    const room = file.split("/")[0];
    const counts = rooms.get(room) ?? { files: 0, tested: 0, parts: 0, glue: 0, owed: 0 };
    counts.files++;
    counts[existsSync(mirror(file)) ? "tested" : file in PARTS ? "parts" : file in glue ? "glue" : "owed"]++;
    rooms.set(room, counts);
  }
  console.table(Object.fromEntries(rooms));
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  process.chdir(new URL("..", import.meta.url).pathname);
  const sources = readdirSync("src", { recursive: true }).filter((name) => name.endsWith(".c")).sort();
  if (process.argv[2] === "--gap") show(sources);
  const found = complaints(sources, existsSync);
  for (const line of found) console.log(line);
  process.exitCode = found.length > 0 ? 1 : 0;
}
