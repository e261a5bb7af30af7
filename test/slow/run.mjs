// `make slow`: whether anything that is given a text takes more time than in proportion to its length.
//
// Two doors, each with the same texts, which are made of short units repeated:
//
//   APIs       every function of the platform in a worker (worker.js finds them), the text in each place of its arguments
//   requests   the parts of a request, to a worker that reads all of them
//
// Measured is the CPU time of the server's lane (schedstat), so that a busy machine does not matter. All units at once at a length of N; if
// that took longer than it may, each alone at N, 2N and 4N: whoever grows faster than the text, twice, is reported, and the run fails.
//
//     node test/slow/run.mjs [--long] [--only PART OF A NAME]
import { readFileSync, readdirSync } from "node:fs";
import http from "node:http";
import path from "node:path";
import { project, root, serve } from "../integration/lib/server.mjs";

const option = (name) => process.argv.includes(name) && (process.argv[process.argv.indexOf(name) + 1] ?? "");
const long = process.argv.includes("--long"), only = option("--only") || "";
const N = 16_384; // with the square of it: 2 * 10^8 steps, a tenth of a second or more
const BATCH_MS = 40 + (long ? 120 : 0); // what all units of a batch may take before they are looked at one by one
const FLOOR_MS = 25; // at 4N: less says nothing
const GROWTH = 3; // of a text twice as long; 2 is linear

const UNITS = [" ", "\t", "\r\n", "a", "0", "/", "\\", "%", "%41", "&", "=", ";", ",", ":", '"', "'", "<", "<a>", "</a", "(", "[", "{", "-", ".", "../", "@", "#", "?", "*", "\0", "\u0100", "\ud800", "\u{1f600}", "\u001b]", "\u009d", "|", "$", "a=b;", "a: b\r\n", "--a\r\n"];
const FRAMES = [["", ""], [" a", "b "], ["http://a/", ""], ["a/b;c=\"", ""]];
const LONG_FRAMES = [["http://", "/"], ["http://a/?", ""], ["data:,", ""], ["<a ", ""], ['{"a":"', ""], ["/", "b"], ["a", "\n"]];
const texts = [...FRAMES, ...(long ? LONG_FRAMES : [])].flatMap(([head, tail]) => UNITS.map((unit) => [head, unit, tail]));

/** CPU time of the server's threads, in ms. */
const cpuOf = (pid) => readdirSync(`/proc/${pid}/task`).reduce((sum, task) => {
  try { return sum + Number(readFileSync(`/proc/${pid}/task/${task}/schedstat`, "utf8").split(" ")[0]); } catch { return sum; }
}, 0) / 1e6;

const found = [];
let calls = 0;

/** Measures `run(texts, length)` of a door, which resolves with CPU milliseconds. */
async function examine(name, run) {
  calls += texts.length;
  if ((await run(texts, N)) < BATCH_MS) return;
  for (const text of texts) {
    const least = async (length) => Math.min(await run([text], length), await run([text], length));
    if ((await run([text], 4 * N)) < FLOOR_MS) continue;
    const [one, two, four] = [await least(N), await least(2 * N), await least(4 * N)];
    if (four < FLOOR_MS || two / one < GROWTH || four / two < GROWTH) continue;
    found.push(name);
    console.log(`${name}: ${JSON.stringify(text)}: ${[one, two, four].map((ms) => ms.toFixed(1)).join(", ")} ms for ${N}, ${2 * N}, ${4 * N} characters`);
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
const server = await serve([
  project({ "wrangler.toml": config("apis", BINDINGS), "index.js": readFileSync(path.join(root, "test/slow/worker.js"), "utf8"), "modules.js": modules }),
  project({ "wrangler.toml": config("reader"), "index.js": reader }),
], { lanes: 1 });
for (const stream of [server.child.stdout, server.child.stderr]) stream.removeAllListeners("data").resume(); // consoles are called too
const timed = async (work) => {
  const before = cpuOf(server.pid);
  await work();
  return cpuOf(server.pid) - before;
};

// APIs
const ask = (job) => send(server.port, "apis.test", { body: JSON.stringify(job), headers: { "content-type": "application/json" } });
const listed = JSON.parse(await ask({ list: true }));
const wanted = [...listed.names.entries()].filter(([, name]) => name.includes(only));
for (const [index, name] of wanted)
  for (const shape of listed.shapes) await examine(`${name} (${shape})`, (some, length) => timed(() => ask({ index, shape, texts: some, length })));

// Requests: what cannot be sent is not. A field of its own for each kind of header that something here reads.
const FIELDS = ["cookie", "content-type", "accept", "accept-encoding", "cache-control", "if-none-match", "if-match", "if-modified-since", "range", "authorization", "forwarded", "x-forwarded-for", "upgrade", "sec-websocket-protocol", "sec-websocket-extensions", "traceparent", "cdn-loop", "x-other"];
const sendable = (text) => text.replace(/[^\t\x20-\x7e]/g, "a");
const place = {
  target: (text) => ({ method: "GET", target: `/${text.replace(/[^\x21-\x7e]/g, "%")}` }),
  query: (text) => ({ method: "GET", target: `/?${text.replace(/[^\x21-\x7e]/g, "+")}` }),
  form: (text) => ({ body: text, headers: { "content-type": "application/x-www-form-urlencoded" } }),
  parts: (text) => ({ body: `--a\r\n${text}\r\n--a--\r\n`, headers: { "content-type": "multipart/form-data; boundary=a" } }),
  boundary: (text) => ({ body: text, headers: { "content-type": `multipart/form-data; boundary="${sendable(text).replace(/["\\]/g, "a").slice(0, 60)}"` } }),
  json: (text) => ({ body: text, headers: { "content-type": "application/json" } }),
  ...Object.fromEntries(FIELDS.map((name) => [name, (text) => ({ method: "GET", headers: { [name]: sendable(text) } })])),
};
for (const [name, make] of Object.entries(place)) {
  if (!`request ${name}`.includes(only)) continue;
  await examine(`request ${name}`, (some, length) => timed(async () => {
    for (const [head, unit, tail] of some) await send(server.port, "reader.test", make(head + unit.repeat(length / unit.length) + tail));
  }));
}
await server.stop();

console.log(`slow: ${listed.names.length} functions and ${Object.keys(place).length} parts of requests, ${calls} calls with texts of ${N} characters: ${found.length} grow faster than their text`);
process.exit(found.length ? 1 : 0);
