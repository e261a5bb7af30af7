// `make slow`: whether anything that is given a text takes more time than in proportion to its length.
//
// Doors, each with the same texts, which are made of short units repeated:
//
//   APIs       every function of the platform in a worker (worker.js finds them), the text in each place of its arguments,
//              in their objects, lists and bodies; what it makes is used
//   others     doors.mjs: requests, S3, functions of SQL, HTMLRewriter, rules of assets, operations of the administration
//
// Measured is the CPU time of the server (schedstat), so that a busy machine matters little. All units at once at a length of N; if
// that took longer than it may, each alone at N, 2N, 4N and 8N: whoever grows faster than the text is reported, and the run fails.
//
//     node test/slow/run.mjs [--long] [--doors apis,requests,s3,sql,html,assets,admin] [--only PART OF A NAME]
import { readFileSync, readdirSync } from "node:fs";
import http from "node:http";
import path from "node:path";
import { project, root, serve } from "../integration/lib/server.mjs";
import * as doors from "./doors.mjs";
import { FRAMES, LONG_FRAMES, UNITS, textOf } from "./texts.js";

const option = (name) => process.argv.includes(name) && (process.argv[process.argv.indexOf(name) + 1] ?? "");
const chosen = new Set((option("--doors") || "apis,requests,s3,sql,html,assets,admin").split(","));
const long = process.argv.includes("--long"), only = option("--only") || "";
const N = 16_384; // with the square of it: 2 * 10^8 steps, a tenth of a second or more
const BATCH_MS = 40 + (long ? 120 : 0); // what all units of a batch may take before they are looked at one by one
const FLOOR_MS = 50; // at 8N: less says nothing
const GROWTH = 22; // from N to 8N; linear is 8, its square 64

const texts = [...FRAMES, ...(long ? LONG_FRAMES : [])].flatMap(([head, tail]) => UNITS.map((unit) => [head, unit, tail]));

/** CPU time of the server's threads, in ms. */
const cpuOf = (pid) => readdirSync(`/proc/${pid}/task`).reduce((sum, task) => {
  try { return sum + Number(readFileSync(`/proc/${pid}/task/${task}/schedstat`, "utf8").split(" ")[0]); } catch { return sum; }
}, 0) / 1e6;

const found = [];
let calls = 0, count = 0, restarts = 0;

/** Measures `run(texts, length)` of a door, which resolves with CPU milliseconds. */
async function examine(name, run, list = texts) {
  if (!name.includes(only)) return;
  count++;
  calls += list.length;
  const before = restarts, spent = await run(list, N);
  if (restarts > before) { // the lane was stuck for as long as a server waits for one
    found.push(name);
    console.log(`${name}: a text of ${N} characters, and the server starts itself anew`);
    return;
  }
  if (spent < BATCH_MS) return;
  for (const text of list) {
    const least = async (length) => Math.min(await run([text], length), await run([text], length), await run([text], length));
    if ((await run([text], 8 * N)) < FLOOR_MS) continue;
    const [one, two, four, eight] = [await least(N), await least(2 * N), await least(4 * N), await least(8 * N)];
    if (eight < FLOOR_MS || eight / one < GROWTH || eight / four < 2.8) continue;
    found.push(name);
    console.log(`${name}: ${JSON.stringify(text)}: ${[one, two, four, eight].map((ms) => ms.toFixed(1)).join(", ")} ms for ${N}, ${2 * N}, ${4 * N}, ${8 * N} characters`);
    return;
  }
}

const names = JSON.parse(readFileSync(path.join(root, "prelude/node/names.json"), "utf8"));
const config = (name, more = "") => `name = "${name}"\nmain = "index.js"\ncompatibility_date = "2026-06-01"\ncompatibility_flags = ["nodejs_compat"]\nroutes = ["${name}.test/*"]
[limits]\ncpu_ms = 8000\n[cairn.limits]\nstuck_ms = 600000\nheader_bytes = 1048576\nurl_bytes = 1048576\n${more}`;
const BINDINGS = `[vars]\nTEXT = "x"\n[[kv_namespaces]]\nbinding = "KV"\nid = "kv"\n[[r2_buckets]]\nbinding = "R2"\nbucket_name = "r2"\n[[d1_databases]]\nbinding = "D1"\ndatabase_name = "d1"\ndatabase_id = "d1"
[[queues.producers]]\nbinding = "Q"\nqueue = "q"\n[[analytics_engine_datasets]]\nbinding = "AE"\n`;
const reader = `export default { async fetch(request) {
  const url = new URL(request.url);
  [...url.searchParams]; [...request.headers];
  request.headers.get("cookie");
  for (const read of ["formData", "json", "blob", "text"]) try { await request.clone()[read](); } catch {}
  return new Response("read");
} };`;

function send(port, host, { method = "POST", target = "/", headers = {}, body = "" }) {
  return new Promise((resolve) => {
    const request = http.request({ host: "127.0.0.1", port, method, path: target, headers: { ...headers, host }, agent: false, maxHeaderSize: 1 << 22 }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (part) => (text += part)).on("end", () => resolve(text)).on("error", () => resolve(""));
    });
    request.on("error", () => resolve(""));
    request.end(body);
  });
}

const modules = `export const LOADERS = { ${names.map((name) => `${JSON.stringify(name)}: () => import(${JSON.stringify(name)})`).join(", ")} };`;
const file = (name) => readFileSync(path.join(root, "test/slow", name), "utf8");
const shared = { "modules.js": modules, "texts.js": file("texts.js") };
const server = await serve([
  project({ "wrangler.toml": config("apis", BINDINGS), "index.js": file("worker.js"), ...shared }),
  project({ "wrangler.toml": config("reader", doors.s3Config + '[[r2_buckets]]\nbinding = "files"\nbucket_name = "files"\n'), "index.js": reader }),
  project({ "wrangler.toml": config("doors", BINDINGS.replace('"d1"\ndatabase_id = "d1"', '"d2"\ndatabase_id = "d2"')), "index.js": file("doors.js"), ...shared }),
  project({ "wrangler.toml": config("assets", doors.assetConfig), "index.js": "export default { fetch: (request, env) => env.ASSETS.fetch(request) };", ...doors.assetFiles }),
], { lanes: 1, env: doors.environment });
const admin = Number(new URL((await server.until(/admin on (http:\S+)/))[1]).port);
for (const stream of [server.child.stdout, server.child.stderr]) { // consoles are called too: nothing is kept
  stream.removeAllListeners("data").on("data", (bytes) => { if (bytes.includes("starts itself anew")) restarts++; });
}
const timed = async (work) => {
  const before = cpuOf(server.pid);
  await work();
  return cpuOf(server.pid) - before;
};
/** Sends what `make` makes of each text. */
const sends = (port, host, make) => (some, length) => timed(async () => {
  for (const [head, unit, tail] of some) await send(port, host, await make(textOf(head, unit, tail, length)));
});
const json = (job) => ({ body: JSON.stringify(job), headers: { "content-type": "application/json" } });

if (chosen.has("apis")) {
  const ask = (job) => send(server.port, "apis.test", json(job));
  const listed = JSON.parse(await ask({ list: true }));
  for (const [index, name] of listed.names.entries())
    for (const shape of listed.shapes) await examine(`${name} (${shape.name})`, (some, length) => timed(() => ask({ index, shape: shape.name, texts: some, length })), shape.byLength ? [["", "a", ""]] : texts);
}
if (chosen.has("requests")) for (const [name, make] of Object.entries(doors.requests)) await examine(`request ${name}`, sends(server.port, "reader.test", make));
if (chosen.has("s3")) for (const [name, make] of Object.entries(doors.s3)) await examine(`S3 ${name}`, sends(server.port, "s3.test", make));
if (chosen.has("html")) {
  const ask = (job) => send(server.port, "doors.test", json(job));
  for (const html of JSON.parse(await ask({ texts: [], length: 0 }))) await examine(`HTML ${html}`, (some, length) => timed(() => ask({ html, texts: some, length })));
}
if (chosen.has("sql")) {
  const ask = (job) => send(server.port, "doors.test", json(job));
  await ask({ sql: {}, texts: [["CREATE VIRTUAL TABLE fts USING fts5(a)", "", ""]], length: 0 });
  for (const [name, sql] of Object.entries(doors.functions())) await examine(`SQL ${name}`, (some, length) => timed(() => ask({ sql, texts: some, length })));
}
if (chosen.has("assets")) await examine("assets", sends(server.port, "assets.test", doors.assetPath));
if (chosen.has("admin")) {
  const { result } = JSON.parse(await send(admin, "localhost", { method: "GET", target: "/client/v4/accounts", headers: { authorization: `Bearer ${doors.TOKEN}` } }));
  const list = UNITS.filter((_, i) => long || i % 5 === 0).map((unit) => ["", unit, ""]);
  for (const [name, make] of Object.entries(doors.operations(result[0].id))) await examine(name, sends(admin, "localhost", make), list);
}
await server.stop();

console.log(`slow: ${count} places for a text, ${calls} calls with texts of ${N} characters: ${found.length} grow faster than their text`);
process.exit(found.length ? 1 : 0);
