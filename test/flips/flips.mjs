// Flips bits all over a server's data directory, one at a time: `cairn check` must find what matters, and every
// answer of a server started on the damaged copy is the right one or an error, never another.
//
//     node test/flips/flips.mjs [--count 300 | --seconds 600] [--seed 7] [--kind objects]
//
// The directory has every kind of file: log, history (archives and images), catalog, databases of objects, KV, D1, R2's
// index, queues and the ledger, blobs, data points, SECRET, classes.json, admin.token, FORMAT. It was stopped in order;
// copies of a process that was killed are flipped by test/unit/store/test_damage.c.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { cpSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import http from "node:http";
import path from "node:path";
import { cairn, project, serve, tempDir } from "../integration/lib/server.mjs";

const files = {
  "wrangler.json": JSON.stringify({
    name: "app", main: "index.js", compatibility_date: "2026-01-01", no_bundle: true,
    durable_objects: { bindings: [{ name: "CELL", class_name: "Cell" }] }, migrations: [{ tag: "v1", new_sqlite_classes: ["Cell"] }],
    kv_namespaces: [{ binding: "KV", id: "kv" }], d1_databases: [{ binding: "DB", database_name: "db", database_id: "db" }],
    r2_buckets: [{ binding: "R2", bucket_name: "files" }], analytics_engine_datasets: [{ binding: "POINTS", dataset: "visits" }],
  }),
  "index.js": `import { DurableObject } from "cloudflare:workers";
const text = (seed, size) => { let out = "", x = seed * 2654435761 >>> 0; while (out.length < size) { x = (Math.imul(x, 1103515245) + 12345) >>> 0; out += x.toString(36); } return out.slice(0, size); };
export class Cell extends DurableObject {
  alarm() {}
  async fill(n) {
    const sql = this.ctx.storage.sql;
    sql.exec("CREATE TABLE IF NOT EXISTS t(k INTEGER PRIMARY KEY, v)");
    for (let i = 0; i < 12; i++) sql.exec("INSERT OR REPLACE INTO t VALUES(?, ?)", i, text(n * 100 + i, 200 + 300 * i));
    for (let i = 0; i < 8; i++) await this.ctx.storage.put("key" + i, { n, i, text: text(n + i, 100 * i) });
    await this.ctx.storage.setAlarm(Date.UTC(2100, 0, 1 + n));
  }
  async clear() { await this.ctx.storage.deleteAll(); }
  async read() {
    return { rows: this.ctx.storage.sql.exec("SELECT * FROM t").toArray(), kv: [...await this.ctx.storage.list()], alarm: await this.ctx.storage.getAlarm() };
  }
}
export default { async fetch(request, env) {
  const [, what, name] = new URL(request.url).pathname.split("/");
  if (what === "fill") {
    for (let n = 0; n < 12; n++) await env.CELL.getByName("cell" + n).fill(n);
    for (let n = 0; n < 3; n++) { const gone = env.CELL.getByName("gone" + n); await gone.fill(n); await gone.clear(); }
    for (let i = 0; i < 40; i++) await env.KV.put("kv" + i, text(i, 50 * i), { metadata: { i } });
    await env.DB.exec("CREATE TABLE IF NOT EXISTS items(k INTEGER PRIMARY KEY, v TEXT)");
    await env.DB.batch(Array.from({ length: 30 }, (_, i) => env.DB.prepare("INSERT OR REPLACE INTO items VALUES(?, ?)").bind(i, text(i, 400))));
    for (let i = 0; i < 6; i++) await env.R2.put("r2-" + i, text(i, 30_000 * i + 10), { customMetadata: { i: String(i) } });
    return new Response("filled");
  }
  if (what === "point") { for (let i = 0; i < 50; i++) env.POINTS.writeDataPoint({ indexes: [name], blobs: [text(i, 40)], doubles: [i] }); return new Response("written"); }
  try {
    if (what === "cell") return Response.json(await env.CELL.getByName(name).read());
    if (what === "id") return new Response(String(env.CELL.idFromName(name)));
    if (what === "kv") return Response.json(await env.KV.getWithMetadata(name));
    if (what === "kvlist") return Response.json((await env.KV.list()).keys);
    if (what === "d1") return Response.json((await env.DB.prepare("SELECT * FROM items").all()).results);
    if (what === "r2") { const o = await env.R2.get(name); return new Response(o.body, { headers: { etag: o.httpEtag, "x-i": o.customMetadata.i } }); }
    if (what === "range") return new Response(await (await env.R2.get(name, { range: { offset: 70_000, length: 5_000 } })).text());
    if (what === "r2list") return Response.json((await env.R2.list({ include: ["customMetadata"] })).objects.map((o) => [o.key, o.size, o.etag]));
  } catch (error) {
    return new Response(String(error), { status: 500 });
  }
  return new Response("?", { status: 404 });
} };`,
};

const questions = [
  ...Array.from({ length: 12 }, (_, i) => `/cell/cell${i}`), ...Array.from({ length: 40 }, (_, i) => `/kv/kv${i}`), ...Array.from({ length: 6 }, (_, i) => `/r2/r2-${i}`),
  "/id/cell0", "/kvlist", "/d1", "/range/r2-5", "/r2list",
];
const SQL = "SELECT index1, count() AS n, sum(double1) AS s FROM visits WHERE index1 = 'kept' GROUP BY index1 FORMAT JSON";

/** Status and body; status 0: no whole answer came. */
function ask(port, target, { method = "GET", body, headers } = {}) {
  return new Promise((resolve) => {
    const request = http.request({ host: "127.0.0.1", port, path: target, method, headers, agent: false, timeout: 60_000 }, (response) => {
      const parts = [];
      response.on("data", (part) => parts.push(part)).on("end", () => resolve({ status: response.complete ? response.statusCode : 0, text: Buffer.concat(parts).toString() })).on("error", () => resolve({ status: 0, text: "" }));
    });
    request.on("timeout", () => request.destroy()).on("error", () => resolve({ status: 0, text: "" }));
    request.end(body);
  });
}
const adminPort = async (server) => Number((await server.until(/admin on https?:\/\/\S+:(\d+)/))[1]);
const start = (dir, data) => serve(dir, { data, lanes: 1, env: { CAIRN_ADMIN: "127.0.0.1:0", CAIRN_ADMIN_TOKEN: "a token for the flips" } });

async function answers(server) {
  const all = {};
  for (const target of questions) all[target] = await ask(server.port, target);
  const port = await adminPort(server);
  const result = await ask(port, "/api/analytics/sql", { method: "POST", body: SQL, headers: { authorization: "Bearer a token for the flips", "content-type": "text/plain" } });
  if (result.status === 200) result.text = JSON.stringify(JSON.parse(result.text).data);
  all.analytics = result;
  return all;
}

const walk = (folder) => readdirSync(folder, { withFileTypes: true }).flatMap((entry) => (entry.isDirectory() ? walk(path.join(folder, entry.name)) : entry.isFile() ? [path.join(folder, entry.name)] : []));
const kindOf = (data, file) => {
  const relative = path.relative(data, file);
  return relative.includes("/") ? (relative.endsWith(".img") ? "history images" : relative.split("/")[0]) : relative;
};

/** Makes the directory and what a server answers from it. */
export async function prepare() {
  const data = tempDir(), dir = project(files);
  let server = await start(dir, data);
  assert.equal((await ask(server.port, "/fill")).text, "filled");
  assert.equal((await ask(server.port, "/point/kept")).text, "written");
  const written = () => walk(data).filter((file) => kindOf(data, file) === "analytics").reduce((sum, file) => sum + statSync(file).size, 0);
  await server.untilTrue(() => written() > 0, "a block of its own: points are flushed once a second");
  await ask(server.port, "/point/last"); // the last block of a file cannot be told from a torn one
  await server.stop();
  server = await serve(dir, { data, lanes: 1, env: { CAIRN_ADMIN: "127.0.0.1:0" } }); // makes admin.token; a second start archives
  await server.stop();
  server = await start(dir, data);
  const expected = await answers(server);
  await server.stop();
  for (const [target, { status, text }] of Object.entries(expected)) assert.equal(status, 200, `${target}: ${text}`);
  assert.match(expected.analytics.text, /"50"|50/);
  const clean = spawnSync(cairn, ["check", data], { encoding: "utf8" });
  assert.equal(clean.status, 0, clean.stdout + clean.stderr);
  return { data, dir, expected };
}

/** One flip. What is wrong is thrown; returns what came of it. */
export async function flip({ data, dir, expected }, random, only) {
  const kinds = new Map();
  for (const file of walk(data)) {
    if (statSync(file).size === 0 || /\.tmp$|\.sock$|bundle\//.test(file)) continue;
    const kind = kindOf(data, file);
    kinds.set(kind, [...(kinds.get(kind) ?? []), file]);
  }
  const names = [...kinds.keys()].filter((kind) => !only || kind === only);
  const kind = names[random(names.length)], choice = kinds.get(kind), original = choice[random(choice.length)];
  const at = random(statSync(original).size), bit = random(8);
  const copy = tempDir();
  cpSync(data, copy, { recursive: true, preserveTimestamps: true, filter: (file) => !file.endsWith(".sock") });
  const file = path.join(copy, path.relative(data, original)), bytes = readFileSync(file);
  bytes[at] ^= 1 << bit;
  writeFileSync(file, bytes);
  const where = `${path.relative(copy, file)}, byte ${at}, bit ${bit}`;
  const check = spawnSync(cairn, ["check", copy], { encoding: "utf8" });
  assert.ok([0, 1, 3].includes(check.status), `${where}: check ended with ${check.status ?? check.signal}: ${check.stderr}`);
  const found = check.status !== 0;
  let failed = null;
  let server;
  try {
    server = await start(dir, copy);
  } catch (error) {
    failed = `it does not start: ${String(error).slice(0, 500)}`;
  }
  if (server !== undefined) {
    const seen = await answers(server);
    for (const [target, want] of Object.entries(expected)) {
      const { status, text } = seen[target];
      if (status === 200) assert.equal(text, want.text, `${where}: ${target} is wrong`);
      else if (status >= 500 || status === 0 || (target === "analytics" && status >= 400)) failed ??= `${target}: ${status} ${text.slice(0, 300)}`;
      else assert.fail(`${where}: ${target}: ${status} ${text}`);
    }
    assert.equal(server.exit, undefined, `${where}: the server ended`);
    await server.kill();
  }
  rmSync(copy, { recursive: true, force: true });
  if (failed !== null && kind !== "admin.token") assert.ok(found, `${where}: check says clean, but ${failed}`);
  return { kind, where, found, failed };
}

export function randomOf(seed) {
  let state = BigInt(seed) | 1n;
  return (bound) => {
    state = (state * 6364136223846793005n + 1442695040888963407n) & 0xffffffffffffffffn;
    return Number((state >> 33n) % BigInt(bound));
  };
}

if (process.argv[1] === new URL(import.meta.url).pathname) {
  const option = (name, fallback) => { const at = process.argv.indexOf(`--${name}`); return at < 0 ? fallback : process.argv[at + 1]; };
  const seconds = Number(option("seconds", 0)), most = seconds ? Infinity : Number(option("count", 300)), seed = Number(option("seed", Date.now() % 1_000_000));
  console.log(`seed ${seed}`);
  const rig = await prepare(), random = randomOf(seed), table = {};
  const until = Date.now() + seconds * 1000;
  let count = 0;
  for (; seconds ? Date.now() < until : count < most; count++) {
    const { kind, found, failed } = await flip(rig, random, option("kind"));
    table[kind] ??= { flips: 0, found: 0, refused: 0 };
    table[kind].flips++;
    table[kind].found += found;
    table[kind].refused += failed !== null;
  }
  console.table(table);
  console.log(`${count} flips: no answer was wrong, and check found every one that kept an answer from coming`);
}
